"""Translations are checked against lists of terms."""

from __future__ import annotations

import pytest

import xswe
from xswe.__main__ import main
from xswe.alignment.term_check import AgreedTerm, TermCheckConfig, _Finder, _Text, check_terms, read_terms
from xswe.alignment.terms import bilingual_terms
from xswe.errors import ConfigError, InputError


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


PAIRS = [
    ("The invoices are late.", "Die Rechnungen sind verspätet."),
    ("Post the sales invoice.", "Buchen Sie die Verkaufsrechnung."),
    ("An invoice was sent.", "Eine Faktura wurde gesendet."),
    ("The train leaves at eight.", "Der Zug fährt um acht."),
    ("All trains are late.", "Alle Bahnen sind verspätet."),
    ("It is raining.", "Es regnet."),
]
TERMS = [AgreedTerm("invoice", "Rechnung"), AgreedTerm("train", "Zug"), AgreedTerm("sales invoice", "Verkaufsrechnung")]


def checked(mini, pairs, terms, languages=("en", "de"), **settings):
    links = xswe.align_words(mini, *map(list, zip(*pairs, strict=True)))
    return check_terms(links, terms, languages, TermCheckConfig(**settings), name="book.tsv")


def test_places_without_the_agreed_translation(mini):
    found = checked(mini, [*PAIRS, ("The train left.", ""), ("No invoice.", " ")], TERMS)  # the last two are not translated
    assert [(one.place, one.problem, one.term, one.found) for one in found] == [
        ("book.tsv:3", "missing", "invoice", "Faktura"),
        ("book.tsv:5", "missing", "train", "Bahnen"),
    ]
    assert found.places == 5  # the invoice within "sales invoice" is no place of its own
    summary = "5 places of 3 terms, 2 missing, 0 forbidden, 0 inconsistent; 0 terms rendered in several ways"
    assert (found.summary(), repr(found)) == (summary, f"TermCheck({summary})")
    assert tuple(found[0]) == (
        *("book.tsv:3", "missing", "invoice", ("Rechnung",), "Faktura"),
        *("An invoice was sent.", "Eine Faktura wurde gesendet."),
    )


def test_a_word_that_only_looks_like_an_inflection_is_no_term(mini):
    pairs = [("It lasted a year.", "Es dauerte ein Jahr."), ("It rained last year.", "Im letzten Jahr regnete es.")]
    pairs += [("He came second.", "Er wurde Zweiter."), ("It took seconds.", "Es brauchte Sekunden.")]
    found = checked(mini, pairs, [AgreedTerm("lasted", "dauerte"), AgreedTerm("seconds", "Sekunden")])
    assert (found.places, len(found)) == (2, 0)


def test_forbidden_and_inconsistent_translations(mini):
    terms = [AgreedTerm("invoice", "Rechnung"), AgreedTerm("invoice", "Faktura", False)]
    assert [one.problem for one in checked(mini, PAIRS, terms)] == ["forbidden"]
    terms = [AgreedTerm("invoice", "Rechnung"), AgreedTerm("invoice", "Faktura")]
    (one,) = checked(mini, PAIRS, terms)
    assert (one.problem, one.place, one.agreed, one.found) == ("inconsistent", "book.tsv:3", ("Rechnung",), "Faktura")
    assert not checked(mini, PAIRS, terms, consistency=False)
    assert checked(mini, PAIRS, terms).summary() == (
        "3 places of 1 terms, 0 missing, 0 forbidden, 1 inconsistent; 1 terms rendered in several ways"
    )
    forbidden = [AgreedTerm("invoice", "Faktura", False)]  # with nothing agreed instead
    assert [tuple(one)[:5] for one in checked(mini, PAIRS, forbidden)] == [
        ("book.tsv:3", "forbidden", "invoice", (), "Faktura")
    ]
    assert checked(mini, PAIRS, terms).renderings == {"invoice": {"Rechnung": 2, "Faktura": 1}}


@pytest.mark.parametrize(
    ("term", "target", "sentence", "holds"),
    [
        ("driver", "ドライバー", "ドライバを更新します", True),  # the long mark at the end of a word
        ("driver", "ドライバー", "運転手を更新します", False),
        ("post", "転記する", "注文を転記します", True),  # an inflection of a verb
        ("new", "新しい", "新しく作ります", True),
        ("data type", "データ型", "データ 型です", True),
    ],
)
def test_japanese_translations_in_other_forms(mini, term, target, sentence, holds):
    found = checked(mini, [(f"This is a {term}.", sentence)], [AgreedTerm(term, target)], ("en", "ja"))
    assert found.places == 1
    assert (len(found) == 0) == holds


@pytest.mark.parametrize(
    ("text", "term", "holds"),
    [
        ("Die Rechnungen", "Rechnung", True),
        ("die rechnung.", "Rechnung", True),
        ("Die Verkaufsrechnung", "Rechnung", True),
        ("Rechnungsdatum", "Rechnung", True),
        ("Vorrechnungsjahr", "Rechnung", False),  # neither at the beginning nor at the end
        ("Die E-Mail-Adresse", "E-Mail", True),
        ("Die Geschäfts-E-Mail", "E-Mail", True),
        ("Verkaufsrechnungs-Nummer", "Rechnung", False),
        ("Ihre Rechnung-Nummer", "Rechnung", True),
        ("Der Anzug", "Zug", False),  # too short to be found within a word
        ("Abfahrt", "Fahrt", True),
        ("Alter Krieg", "kalter Krieg", False),
        ("Ein kalter Krieg war", "kalter Krieg", True),
        ("Krieg kalter", "kalter Krieg", False),
        ("", "Rechnung", False),
        ("データ 型です", "データ型", True),
        ("転記します", "転記する", True),
        ("する", "する", True),
        ("しない", "する", False),
    ],
)
def test_a_translation_holds_a_term_in_any_form(text, term, holds):
    assert _Text(text).holds(term) == holds


def test_terms_are_found_longest_first_and_once():
    finder = _Finder(["sales invoice", "invoice", "train", "データ", "lasted"], "en")
    assert finder.find("Invoices and sales invoices, an invoice.") == [("invoice", (0, 8)), ("sales invoice", (13, 27))]
    assert finder.find("It lasts. Trains") == [("lasted", (3, 8)), ("train", (10, 16))]
    assert finder.find("The last train") == [("train", (9, 14))]  # "last" has a meaning of its own
    assert finder.find("データを、データベース") == [("データ", (0, 3))]
    assert finder.find("データベース") == []
    assert _Finder(["lasted"], "de").find("The last train") == [("lasted", (4, 8))]  # of other languages
    assert _Finder(["sales", "sales invoice"], "en").find("sales invoice, sales") == [
        ("sales invoice", (0, 13)),
        ("sales", (15, 20)),
    ]
    assert finder.find("sales") == finder.find("") == []


def test_japanese_sources_are_whole_words_of_katakana(mini):
    pairs = [("データベースを開く", "Open it."), ("データを開く", "Open the data.")]
    found = checked(mini, pairs, [AgreedTerm("データ", "data")], ("ja", "en"))
    assert (found.places, len(found)) == (1, 0)


def test_without_a_list_the_surest_translation_is_the_agreed_one(mini):
    pairs = [("Open the window now.", "Öffnen Sie jetzt das Fenster.")] * 3 + [
        ("Close the window.", "Schließen Sie die Maske.")
    ]
    found = checked(mini, pairs, None)
    assert ("book.tsv:4", "window", ("Fenster",)) in [(one.place, one.term, one.agreed) for one in found]


def test_lists_are_read_in_each_format(mini, tmp_path):
    links = xswe.align_words(mini, ["the train", "a train", "train"] * 2, ["der Zug", "ein Zug", "Zug"] * 2)
    terms = bilingual_terms(links, ("en", "de"))
    for suffix in (".tbx", ".tsv", ".csv", ".xlsx"):
        terms.write(tmp_path / f"t{suffix}")
        assert read_terms(tmp_path / f"t{suffix}", ("en", "de")) == [AgreedTerm("train", "Zug")], suffix
    (tmp_path / "plain.tsv").write_text("invoice\tRechnung\n", "utf-8")
    assert read_terms(tmp_path / "plain.tsv") == [AgreedTerm("invoice", "Rechnung")]
    (tmp_path / "s.csv").write_text("source,target,status\ninvoice,Rechnung,\ninvoice,Faktura,wrong\n", "utf-8")
    assert [term.allowed for term in read_terms(tmp_path / "s.csv")] == [True, False]
    (tmp_path / "new.tbx").write_text(
        '<tbx xmlns="urn:iso:std:iso:30042:ed-2" type="TBX-Basic" xml:lang="en"><text><body><conceptEntry id="1">'
        '<langSec xml:lang="en-GB"><termSec><term>invoice</term></termSec></langSec><langSec xml:lang="de">'
        '<termSec><term>Rechnung</term></termSec><termSec><term>Faktura</term><termNote type="administrativeStatus">'
        "deprecatedTerm-admn-sts</termNote></termSec></langSec></conceptEntry></body></text></tbx>",
        "utf-8",
    )
    assert read_terms(tmp_path / "new.tbx", ("en", "de")) == [
        AgreedTerm("invoice", "Rechnung"),
        AgreedTerm("invoice", "Faktura", False),
    ]
    with pytest.raises(InputError, match="no term"):
        read_terms(tmp_path / "new.tbx", ("en", "ja"))
    with pytest.raises(ConfigError, match="set languages"):
        read_terms(tmp_path / "new.tbx")
    with pytest.raises(ConfigError, match="terms are read from"):
        read_terms(tmp_path / "terms.txt")
    (tmp_path / "bad.tbx").write_text("<tbx>", "utf-8")
    with pytest.raises(InputError, match="not well-formed"):
        read_terms(tmp_path / "bad.tbx", ("en", "de"))


def test_the_verb_checks(tmp_path, capsys):
    (tmp_path / "book.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), "utf-8")
    (tmp_path / "agreed.tsv").write_text("invoice\tRechnung\ntrain\tZug\n", "utf-8")
    given = ["link", "model=mini", f"input={tmp_path / 'book.tsv'}", "languages=[en,de]", f"output={tmp_path / 'f.tsv'}"]
    assert main([*given, "what=check", f"terms={tmp_path / 'agreed.tsv'}"]) == 0
    assert "6 pairs, 5 places of 2 terms, 2 missing" in capsys.readouterr().out
    assert "book.tsv:3\tmissing\tinvoice" in (tmp_path / "f.tsv").read_text("utf-8")
    with pytest.raises(SystemExit):
        main([*given, f"terms={tmp_path / 'agreed.tsv'}"])
    assert "terms does nothing without what=check" in capsys.readouterr().err
