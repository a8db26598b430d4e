"""What may be a term, which part of speech it is, and which terms say no more than others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from xswe.alignment.terms import (
    BilingualTerm,
    _base_first,
    _class_at,
    _core,
    _folded,
    _is_clause,
    _is_cut,
    _is_numbered,
    _is_verb_stem,
    _linked_spans,
    _part_of_speech,
    _pieces,
    _Side,
    _stems,
    _well_formed,
    _wider,
    _with_nearest_links,
    _without_parts,
    bilingual_terms,
)
from xswe.alignment.words import LinkedPair
from xswe.bitext.termbases import Candidate
from xswe.errors import ConfigError

TERMS = {
    "en": [
        "oil",
        "heat pump",
        "Bank of England",
        "New York",
        "USB",
        "X-ray",
        "rate of interest for loans",
    ],
    "de": ["Tee", "Uhr", "Wärmepumpe", "Bank von England", "kalter Krieg", "warten", "USB", "Tag der Arbeit"],
    "zh": ["水泵", "银行", "A股"],
    "ja": ["銀行", "ポンプ", "水", "熱", "取り消し", "暗号化"],
}
NO_TERMS = {
    "en": [
        "of",
        "ox",
        "the bank",
        "bank of",
        "12",
        "a, b",
        "heat (pump)",
        "heat - pump",
        "pump-",
        "new bank",
        "my pump",
        "two pumps",
    ],
    "de": ["die Bank", "Bank der", "enthält Details", "zeigt das Ergebnis", "kalter krieg", "wir warten", "war"],
    "zh": ["水", "银行，", "12"],
    "ja": ["ある", "の銀行", "銀行の", "銀行を見る", "銀行または", "食べている", "12月", "3月号", "ア"],
}
NO_TERMS["en"] += ["bank and pump", "next bank", "several", "something", "heat is pump"]


@pytest.mark.parametrize(
    ("language", "text", "holds"),
    [
        *((code, text, True) for code, texts in TERMS.items() for text in texts),
        *((code, text, False) for code, texts in NO_TERMS.items() for text in texts),
    ],
)
def test_what_may_be_a_term(language, text, holds):
    assert _well_formed(text, language) == holds


CLASSES = [
    ("en", "We can *print* it", "verb"),
    ("en", "to *print*", "verb"),
    ("en", "to *Print*", ""),
    ("en", "not *really*", ""),
    ("en", "to *apply* it", "verb"),
    ("en", "a *pump* is", "noun"),
    ("en", "the *pump*", "noun"),
    ("en", "the *heat* pump", ""),
    ("en", "a very *cold* day", "adjective"),
    ("en", "red *pump*", ""),
    ("de", "Die *Pumpe* läuft", "noun"),
    ("de", "*Pumpe* läuft", ""),
    ("de", "Wir wollen *warten*", "verb"),
    ("de", "einen *alten* Baum", ""),
    ("de", "es ist *gestern* so", ""),
    ("de", "zu *wechseln*, sagt", "verb"),
    ("de", "sehr *kalt* heute", ""),
    ("ja", "とても*高い*", "adjective"),
    ("ja", "*食べる*と", "verb"),
    ("ja", "*ポンプ*を", "noun"),
    ("ja", "*銀行*を", ""),
    ("ja", "*ァ*", "noun"),
    ("ja", "*ー*", "noun"),
    ("zh", "我的*银行*", ""),
]


@pytest.mark.parametrize(("language", "marked", "found"), CLASSES)
def test_neighbours_and_endings_show_the_part_of_speech(language, marked, found):
    before, term, _ = marked.split("*")
    assert _class_at(marked.replace("*", ""), len(before), len(before) + len(term), language) == found


@pytest.mark.parametrize(
    ("marked", "holds"),
    [
        ("暗*号*を", True),
        ("*許*す", True),
        ("この*水*を", False),
        ("*水*", False),
        ("この*水*中", True),
        ("暗*号化*", False),
        ("は暗*号*を", True),
        ("ぁ*水*を", False),
        ("ゖ*水*を", False),
        ("ア*水*を", True),
    ],
)
def test_a_character_of_a_longer_word_is_no_word(marked, holds):
    before, term, _ = marked.split("*")
    assert _is_cut(marked.replace("*", ""), len(before), len(before) + len(term)) == holds


def test_a_span_that_ends_within_an_inflection_is_no_word():
    assert _is_verb_stem("欠けている", 2, "ja")
    assert not _is_verb_stem("欠けている", 1, "ja")
    assert not _is_verb_stem("欠けている", 5, "ja")
    assert not _is_verb_stem("欠けている", 2, "zh")


def test_numbers_beside_small_letters_count_places():
    assert _is_numbered("step 4")
    assert not _is_numbered("Windows 10")
    assert not _is_numbered("heat pump")


@pytest.mark.parametrize(
    ("language", "marked", "whole"),
    [
        ("en", "a multi-*part* name", "multi-part"),
        ("en", "a *multi*-part name", "multi-part"),
        ("en", "use *NET* now", "NET"),
        ("en", "use .*NET* now", ".NET"),
        ("en", "use a.*NET* now", "NET"),
        ("en", "a *part*-", "part-"),
        ("en", "a *part* -b", "part"),
        ("ja", "*明治維新後*は", "明治維新"),
        ("ja", "*直後*は", "直後"),
        ("ja", "この*先生は*", "先生"),
        ("zh", "*明治維新後*は", "明治維新後"),
    ],
)
def test_a_span_becomes_whole_words_without_particles(language, marked, whole):
    before, inside, _ = marked.split("*")
    text = marked.replace("*", "")
    start, end = _core(text, len(before), len(before) + len(inside), language)
    assert text[start:end] == whole


def test_inflections_share_a_key_and_acronyms_stand_alone():
    assert [_stems(text) for text in ("USB", "Heat pumps", "HEAT pump", "Hea", "取り消し")] == [
        *("USB", "heat pump", "heat pump", "hea", "取り消し")
    ]
    assert [_folded(text) for text in ("USB", "Heat Pump", "ＵＳＢ", "Straße")] == ["USB", "heat pump", "USB", "strasse"]


def test_the_base_form_is_the_shortest_that_is_not_rare():
    assert _base_first(Counter({"Häuser": 100, "Haus": 3, "Hau": 2})) == ["Haus", "Häuser", "Hau"]
    assert _base_first(Counter({"b": 3, "a": 3, "c": 4})) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("links", "scores", "kept"),
    [
        ([(0, 0), (0, 3)], [0.5, 0.6], [(0, 3)]),  # the best
        ([(0, 0), (0, 3)], [0.5, 0.5], [(0, 0)]),  # or else the nearest
        ([(3, 0), (3, 3)], [0.5, 0.5], [(3, 3)]),
        ([(0, 1), (0, 2), (0, 3)], [0.1, 0.9, 0.1], [(0, 1), (0, 2), (0, 3)]),  # with those beside it
        ([(0, 0), (0, 2), (0, 3)], [0.1, 0.9, 0.1], [(0, 2), (0, 3)]),
        ([(0, 3), (2, 3), (3, 3)], [0.1, 0.1, 0.9], [(2, 3), (3, 3)]),  # on either side
        ([(0, 0), (1, 1)], [0.1, 0.9], [(0, 0), (1, 1)]),
    ],
)
def test_of_several_links_of_a_word_those_around_its_best_one_stay(links, scores, kept):
    words = tuple((k, k + 1) for k in range(4))
    found = _with_nearest_links(LinkedPair("abcd", "wxyz", words, words, tuple(links), tuple(scores)))
    assert found.links == tuple(kept)
    assert found.scores == tuple(score for link, score in zip(links, scores, strict=True) if link in kept)


def linked(source, target, score):
    """Two texts of which the last words are linked."""
    places = []
    for text in (source, target):
        last = text.rindex(" ") + 1 if " " in text else 0
        places.append(((last, len(text)),))
    return LinkedPair(source, target, *places, ((0, 0),), (score,))


def test_a_term_has_its_forms_its_places_and_how_surely_they_belong_together(tmp_path):
    texts = [("the invoice", "die Rechnung"), ("An invoice", "Eine Rechnung"), ("all invoices", "alle Rechnungen")] * 2
    pairs = [linked(*both, 0.1 * (k + 1)) for k, both in enumerate([*texts, *[("invoice", "Faktura")] * 2])]
    found = bilingual_terms(pairs, ("en", "de"), min_count=2, min_score=0)
    # Of 8 places of invoice(s) and 6 of Rechnung(en) 6 are linked, and of 6 of invoice and 2 of Faktura 2.
    scores = round(12 / 14 * 0.35**0.5, 6), round(4 / 8 * 0.75**0.5, 6)
    assert list(found) == [
        BilingualTerm(
            *("invoice", "Rechnung", 6, scores[0], "noun", ("invoices",), ("Rechnungen",), (1, 2, 3, 4, 5)),
            *("the invoice", "die Rechnung"),
        ),
        BilingualTerm("invoice", "Faktura", 2, scores[1], "noun", (), (), (7, 8), "invoice", "Faktura"),
    ]
    assert repr(found) == "BilingualTerms(2 terms, en-de)"
    for least, count in ((scores[1], 2), (scores[1] + 1e-6, 1), (scores[0], 1), (scores[0] + 1e-6, 0)):
        assert len(bilingual_terms(pairs, ("en", "de"), min_count=2, min_score=least)) == count
    assert len(bilingual_terms(pairs, ("en", "de"), min_count=6, min_score=0)) == 1
    assert len(bilingual_terms(pairs, ("en", "de"), min_count=7, min_score=0)) == 0
    found.write(tmp_path / "a.tbx")
    assert [(one.text, one.note) for one in found_in(tmp_path / "a.tbx")] == [
        ("invoice", "forms: invoices"),
        ("Rechnung", f"score {scores[0]:.4f}, 6 times, first in 1, 2, 3, 4, 5; forms: Rechnungen"),
        ("Faktura", f"score {scores[1]:.4f}, 2 times, first in 7, 8"),
    ]
    for wrong in ({"most": 0}, {"min_count": 0}, {"languages": ("en",)}):
        with pytest.raises(ConfigError, match=r"languages=\[.*\], most=\d, min_count=\d: two languages, and at least 1"):
            bilingual_terms(pairs, **{"languages": ("en", "de"), **wrong})


def found_in(path):
    """The terms of a TBX file, in order, with their notes."""
    tigs = ET.parse(path).getroot().iter("tig")
    return [Candidate(tig.findtext("term"), note=tig.findtext("note") or "") for tig in tigs]


@pytest.mark.parametrize(
    ("text", "links", "most", "runs"),
    [
        (
            "red big *cat* hat now",
            [],
            4,
            "cat|big cat|red big cat|cat hat|big cat hat|red big cat hat|cat hat now|big cat hat now",
        ),
        ("red big *cat* hat now", [], 2, "cat|cat hat|big cat"),
        ("one red big *cat*", [], 9, "cat|big cat|red big cat"),  # two words without a link, and no more
        ("*cat* hat now here", [], 9, "cat|cat hat|cat hat now"),
        ("red, *cat* (hat", [], 9, "cat"),
        ("red-*cat* - hat", [], 9, "cat|red-cat"),
        ("of red the *cat* and hat", [], 9, "cat|the cat|red the cat"),
        ("Bank of *cat*", [], 9, "cat|of cat|Bank of cat"),
        ("red big *cat* hat", [(1, 1)], 9, "cat|cat hat"),  # linked beside the translation
        ("red big *cat* hat", [(1, 9)], 9, "cat|cat hat|big cat|big cat hat|red big cat|red big cat hat"),  # and far away
    ],
)
def test_words_without_a_link_may_be_part_of_a_term(text, links, most, runs):
    bare = text.replace("*", "")
    places = tuple(match.span() for match in re.finditer(r"\w+", bare))
    at = [bare[a:b] for a, b in places].index("cat")
    pair = LinkedPair(bare, "x", places, (), (*links, (at, 0)), ())
    found = [bare[places[a][0] : places[b - 1][1]] for a, b in _wider(pair, 0, (at, at + 1), (0, 1), most, "en")]
    assert sorted(found) == sorted(runs.split("|"))


def test_terms_have_as_many_words_as_are_asked_for():
    def found(source, target, languages, most):
        words = [tuple(m.span() for m in re.finditer(r"\w", text)) for text in (source, target)]
        pair = LinkedPair(source, target, *words, tuple((k, k) for k in range(len(words[0]))), (1.0,) * len(words[0]))
        return {term[:2] for term in bilingual_terms([pair], languages, most=most, min_count=1)}

    assert found("X Y Z", "Ä Ö Ü", ("en", "de"), 1) == set()  # letters are no terms
    assert found("X Y Z", "Ä Ö Ü", ("en", "de"), 2) == {("X Y", "Ä Ö"), ("Y Z", "Ö Ü")}
    assert found("X Y Z", "Ä Ö Ü", ("en", "de"), 3) == {("X Y Z", "Ä Ö Ü")}
    assert found("X Y Z", "水泵机", ("en", "zh"), 1) == {("X Y", "水泵"), ("Y Z", "泵机")}


def test_a_run_has_the_mean_score_of_its_own_links():
    words = tuple((k, k + 1) for k in range(3))
    pair = LinkedPair("abc", "xyz", words, words, ((0, 0), (0, 1), (1, 1), (2, 2)), (0.1, 0.3, 0.8, 0.6))
    assert list(_linked_spans(pair, 3)) == [
        ((0, 2), (0, 2), pytest.approx(0.4)),
        ((0, 3), (0, 3), pytest.approx(0.45)),
        ((2, 3), (2, 3), 0.6),
    ]


def test_a_verb_with_its_object_is_a_clause():
    def verb(source, kind):
        return term(source, "x", 1)._replace(part_of_speech=kind)

    assert _is_clause(verb("print pages", "verb"))
    assert not any(map(_is_clause, (verb("print", "verb"), verb("print pages", "noun"), verb("Print pages", "verb"))))


def test_terms_are_compared_by_their_words_or_pairs_of_characters():
    assert _pieces("heat pump") == {"heat", "pump"}
    assert [_pieces(text) for text in ("京都駅", "京都", "駅")] == [{"京都", "都駅"}, {"京都"}, {"駅"}]


def term(source, target, times):
    return BilingualTerm(source, target, *[times if name == "times" else 0.0 for name in BilingualTerm._fields[2:]])


def left(*given):
    return [(one.source, one.target, one.times) for one in _without_parts([term(*one) for one in given])]


def test_terms_that_say_no_more_than_others_are_left_out():
    whole, part = ("heat pump", "Wärmepumpe", 9), ("pump", "pumpe", 10)
    assert left(whole, part) == [whole]
    assert left(whole, ("pump", "pumpe", 90)) == [whole, ("pump", "pumpe", 90)]  # found elsewhere as well
    apps = ("new web apps", "neue Web-Apps", 9)  # they share a single whole word
    assert left(apps, ("web app", "Web-App", 9)) == [apps]
    assert left(whole, ("pump", "Rad", 9)) == [whole, ("pump", "Rad", 9)]
    usual, compound = ("insurance", "Versicherung", 10), ("insurance", "Krankenversicherung", 3)
    assert left(usual, compound) == [usual]
    assert len(left(("insurance", "Versicherung", 3), compound)) == 2  # not more usual
    assert left(("Insurance", "Versicherung", 2), compound)[-1] == compound  # not usual
    assert left(("insurance", "Kranken", 10), ("insurance", "Krankenversicherung", 3)) == [("insurance", "Kranken", 10)]
    assert len(left(("policy", "Versicherung", 10), compound)) == 2


def test_what_is_told_of_terms_does_not_depend_on_the_hash_seed():
    """Each part is in a longer term that has its first word alone, and each form is of another part of speech."""
    assert left(*((f"a{n} b{n}{end}", f"c{n}{end}", 9) for n in range(20) for end in ("s", ""))) == [
        (f"a{n} b{n}s", f"c{n}s", 9) for n in range(20)
    ]
    side, other = _Side("en"), _Side("de")
    for n in range(20):
        side.classes[f"x{n}"][f"kind {n}"] += 1
    assert _part_of_speech([(f"x{n}", "y") for n in range(20)], (side, other)) == "kind 0"
