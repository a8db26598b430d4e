"""Terms: what is trimmed, what is put together, and how candidates are ordered."""

from __future__ import annotations

import json

import pytest

import xswe
from xswe.alignment.phrases import search_phrases
from xswe.errors import ConfigError
from xswe.model.static import StaticModel
from xswe.phrases.find import Hit, Place
from xswe.phrases.search import SpanConfig, StaticWords
from xswe.phrases.terms import core, find_terms, in_usual_form, same_term
from xswe.text.languages import LANGUAGES, Language


@pytest.fixture(scope="module")
def model():
    return xswe.load("mini")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Rechnung", "Rechnungs"),
        ("Kontenplan", "Kontenplans"),
        ("Ausdruck", "Ausdrücke"),
        ("Storage-Konto", "Storage-Konten"),
        ("Data source", "data sources"),
        ("kalter Krieg", "kalten Krieges"),
        ("kalter Krieg", "kalte Krieg"),
        ("künstliche Intelligenz", "künstlicher Intelligenz"),
        ("hoher Druck", "hohem Druck"),
        ("neuronales Netz", "neuronaler Netze"),
        ("データ ソース", "データソース"),
        ("サーバー", "サーバ"),
    ],
)
def test_inflections_and_spellings_are_one_term(a, b):
    assert same_term(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Daten", "Datei"),
        ("serve", "server"),
        ("use case", "user case"),
        ("Wert", "Werte liste"),
        ("値", "型"),
        ("単価", "単位"),
    ],
)
def test_other_words_are_not(a, b):
    assert not same_term(a, b)


@pytest.mark.parametrize(
    ("query", "lines", "forms"),
    [
        ("train", ["Der Zug kommt.", "Zwei Züge kommen."], {"Zug", "Züge"}),
        ("writes", ["Er schreibt viel.", "Sie schreiben viel.", "Wir schreiben mehr."], {"schreibt", "schreiben"}),
        ("council", ["Der Rat tagt.", "Die Rate ist hoch."], {"Rat"}),  # another word, as their vectors say
    ],
)
def test_short_nouns_and_verbs_are_put_together_where_their_vectors_are_near(model, query, lines, forms):
    assert not any(same_term(one, other) for one in forms for other in forms - {one})
    best = find_terms(model, [query], lines, SpanConfig(min_score=0.0, max_size=1))[0][0]
    assert {best.text, *best.variants} == forms


def test_words_to_compare_with_are_sought_once(model, monkeypatch):
    StaticWords(model).words()
    monkeypatch.setattr(StaticModel, "_find_words", None)  # half a second each time, of a search that takes less
    assert find_terms(model, ["Zug"], ["The train is late."]).queries == ("Zug",)


@pytest.mark.parametrize(
    ("text", "context", "left"),
    [
        ("die Rechnung für", "Sie ist die Rechnung für alles", "Rechnung"),
        ("のデータ型は", "このデータ型は、文字です", "データ型"),
        ("型は、データ", "型は、データを持ちます", ""),
        ("动的数据类型", "动的数据类型", "动的数据类型"),
        ("的数据类型", "新的数据类型", "数据类型"),
        ("部分的", "部分的です", "部分的"),
        ("und die", "und die", ""),
        ("The war", "The war lasted ten years", "war"),  # German "war" is a stopword
        ("war der", "Am Ende war der Hut weg", ""),
        ("die Not", "Sie sahen die Not in der Stadt", "Not"),
    ],
)
def test_particles_and_function_words_at_the_rim_are_trimmed(model, text, context, left):
    start = context.index(text) if text in context else 0
    hit = Hit(0.9, 1, 1, (Place(0, start, start + len(text), context if text in context else text),))
    if text == "のデータ型は":
        hit = Hit(0.9, 1, 1, (Place(0, 1, 7, context),))
    assert core(StaticWords(model), [hit]) == [left]


def test_function_words_of_languages_that_the_model_does_not_know_are_kept(model, monkeypatch):
    other = Language("qx", "Another", "latin", "qxx", "qxx-Zyyy", boundary_stopwords=frozenset(("rechnung",)))
    monkeypatch.setitem(LANGUAGES, "qx", other)
    assert core(StaticWords(model), [hit_at("Rechnung", "Rechnung")]) == ["Rechnung"]


def hit_at(text, *contexts):
    """A hit at the first place of a text in each of some passages."""
    starts = [context.lower().index(text.lower()) for context in contexts]
    places = [Place(i, a, a + len(text), context) for i, (a, context) in enumerate(zip(starts, contexts, strict=True))]
    return Hit(0.9, len(places), len(places), tuple(places))


def test_a_span_is_shown_in_its_commonest_form():
    lines = ("Treiber starten.", "Der Treiber fehlt.", "DER TREIBER FEHLT", "treiber")
    usual = in_usual_form(hit_at("treiber", *lines))
    assert [place.text for place in usual.places] == ["Treiber", "Treiber", "TREIBER", "treiber"]
    within = in_usual_form(hit_at("open", "Open it.", "Open that.", "We open it."))  # a capital that is the sentence's own
    assert [place.text for place in within.places] == ["open", "Open", "Open"]


def test_a_span_that_cuts_words_of_katakana_is_none():
    assert in_usual_form(hit_at("フィックス", "サフィックスを使います")) is None
    assert in_usual_form(hit_at("ライバー", "ドライバーの更新", "ドライバー", "ライバーの配信")) is None
    usual = in_usual_form(hit_at("ライバー", "ドライバーの更新", "ライバーの配信", "そのライバー"))
    assert [place.passage for place in usual.places] == [1, 2]  # where it is a word


def test_terms_are_written_as_in_the_passages(model):
    lines = [
        "Driver updates are here.",
        "Driver tests pass.",
        "Install the driver.",
        "He lives in Berlin.",
        "BERLIN",
        "Berlin",
    ]
    found = find_terms(model, ["Treiber", "Berlin"], lines, SpanConfig(min_score=0.3, max_size=1, k=1, examples=1))
    assert [terms[0].text for terms in found] == ["driver", "Berlin"]
    assert [place.text for place in found[0][0].places] == ["driver"]
    (terms,) = find_terms(model, ["時期"], ["期間は三日です。", "この期間に。"], SpanConfig(min_score=0.3, max_size=1, k=1))
    assert terms[0].text == "期間"


def test_what_is_frequent_stands_before_what_is_found_once(model):
    lines = ["Prüfen Sie die Rechnung.", "Die Rechnungen sind offen.", "Eine Rechnung wird gebucht."] * 5
    found = find_terms(model, ["invoice"], ["Rechnungs Nummer", *lines], SpanConfig(min_score=0.0))[0]
    assert found[0].text == "Rechnung"
    assert found[0].times == found[0].passages >= 15
    assert "Rechnungen" in found[0].variants
    assert found[0].places[0].text.startswith("Rechnung")


def test_nothing_is_found_for_what_is_not_there(model):
    lines = [f"Wählen Sie die Option {i} im Dialogfeld." for i in range(50)]
    found = find_terms(model, ["dialog box", "grandmother"], lines)
    assert found[0][0].text == "Dialogfeld"
    assert found[1] == ()


@pytest.mark.parametrize(("name", "header"), [("b.tsv", ""), ("b.csv", "en\tde\n")])
def test_bitext_as_passages_shows_what_probably_says_a_candidate(model, tmp_path, name, header):
    lines = ["The old station is closed.\tDer alte Bahnhof ist geschlossen.", "We eat bread.\tWir essen Brot."]
    (tmp_path / name).write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = "station", tmp_path / name, tmp_path / "o.jsonl"
    found = search_phrases(model, *names, mode="terms", languages=("en", "de"), k=1, min_score=0.0)
    row = json.loads((tmp_path / "o.jsonl").read_text("utf-8"))
    assert (row["candidate"], row["other_text"], row["other_side"]) == ("Bahnhof", "station", "The old station is closed.")
    assert list(found.marks.values()) == [(8, 15)]


ORDERS = [("The order was sent.", "Der Auftrag wurde gesendet."), ("Open orders", "Offene Aufträge")] * 3
SEQUENCES = [("Keep this sequence.", "Diese Reihenfolge bleibt."), ("A border", "Eine Reihenfolge")] * 3


def test_of_bitext_what_stands_beside_a_phrase_comes_first(model, tmp_path):
    pairs = [*ORDERS, *SEQUENCES]
    passages = [passage for _, passage in pairs]
    settings = SpanConfig(min_score=0.0, max_size=1)
    assert find_terms(model, ["order"], passages, settings)[0][0].text == "Reihenfolge"  # near, and called so elsewhere
    best, *rest = find_terms(model, ["order"], passages, settings, bitext=pairs)[0]
    assert {best.text, *best.variants} == {"Auftrag", "Aufträge"}
    assert best.together == 1.0
    assert {one.text: one.together for one in rest}["Reihenfolge"] == 0.0
    (tmp_path / "b.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    names = "order", tmp_path / "b.tsv", tmp_path / "o.jsonl"
    how = {"mode": "terms", "languages": ("en", "de"), "min_score": 0.0, "max_size": 1}
    assert search_phrases(model, *names, **how).found[0][0].text == best.text


@pytest.mark.parametrize(("query", "answer"), [("invoice", "发票"), ("发票", "invoice")])
def test_phrases_without_blanks_are_found_beside_their_candidates(model, query, answer):
    pairs = [
        ("Check the invoice.", "请检查发票。"),
        ("Two Invoices are open.", "两张 发票 已打开。"),
        ("A bill", "物料清单"),
    ]
    sides = pairs if query.isascii() else [(b, a) for a, b in pairs]
    found = find_terms(model, [query], [passage for _, passage in sides], min_score=0.0, bitext=sides)[0][0]
    assert (found.text.casefold(), found.together) == (answer, 1.0)


def test_settings_of_a_search_may_be_named_one_by_one():
    model = xswe.load("mini")
    passages = ["Der Zug kommt.", "Ein Haus."]
    one = xswe.find_phrases(model, ["train"], passages, k=1)
    assert [hit.places[0].text for hit in one[0]] == ["Zug"]
    assert xswe.find_terms(model, ["train"], passages, k=1, min_score=0.5)[0][0].text == "Zug"
    with pytest.raises(ConfigError, match="kk: there is no such setting; did you mean k"):
        xswe.find_phrases(model, ["train"], passages, kk=1)
