"""Candidates of hand-made words: every score, count and rank is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.phrases.test_search import Digits
from xswe.phrases.find import Place
from xswe.phrases.search import StaticWords
from xswe.phrases.terms import FoundTerms, Term, _decoys, find_terms, same_term, spelling


class Named(Digits):
    """Words between blanks and commas with the vectors of a table; all others have none."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__(np.array(list(vectors.values()), np.float32))
        self.names = {name: chr(0x100 + row) for row, name in enumerate(vectors)}

    def coded(self, text: str) -> str:
        return " ".join(self.names.get(word, "-") for word in text.replace(",", " ").split())

    def cut(self, texts, threads=1):
        return super().cut([self.coded(text) for text in texts], threads)

    def places(self, texts):
        return super().places([text.replace(",", " ") for text in texts])

    def queries(self, texts):
        return super().queries([self.coded(text) for text in texts])


def plane(cosine):
    return [cosine, math.sqrt(1 - cosine * cosine), 0.0]


MODEL = Named(
    {
        "order": [1.0, 0.0, 0.0],
        "Auftrag": plane(0.82),
        "Aufträge": plane(0.75),
        "Reihenfolge": plane(0.9),
        "Folge": [0.9, -math.sqrt(1 - 0.81), 0.0],
        "Orders": plane(0.95),
        "weit": plane(0.3),
        "fern": plane(0.1),
    }
)
PASSAGES = [
    "Auftrag, Auftrag",
    "ein Auftrag",
    "Aufträge",
    "Aufträge da",
    "die Reihenfolge",
    "Orders",
    "weit",
    "Folge Folge",
]


def found(k=9, passages=PASSAGES, query="order", bitext=None, **settings):
    return list(find_terms(MODEL, [query], passages, k=k, max_size=1, min_score=0.5, bitext=bitext, **settings)[0])


def test_a_cosine_as_high_as_the_least_is_enough():
    """Also where float32 is a little less: in it, 0.7 is 0.69999999."""
    model = Named({"order": [1.0, 0.0, 0.0], "Auftrag": plane(0.7)})
    for least, wanted in ((0.7, ["Auftrag"]), (0.71, [])):
        assert [term.text for term in find_terms(model, ["order"], ["Auftrag"], min_score=least)[0]] == wanted


def evidence(score, passages, together=0.0):
    return score - 0.2 / math.sqrt(passages) + 0.5 * together


def test_candidates_have_the_counts_of_their_forms_and_come_by_evidence():
    terms = found()
    assert [(one.text, one.times, one.passages, one.variants) for one in terms] == [
        ("Auftrag", 5, 4, ("Aufträge",)),
        ("Folge", 2, 1, ()),
        ("Reihenfolge", 1, 1, ()),
        ("Orders", 1, 1, ()),  # a tenth less than its evidence, as it is the phrase itself
    ]
    for one, score in zip(terms, (0.82, 0.9, 0.9, 0.95), strict=True):
        assert one.score == pytest.approx(score, abs=1e-6)
        assert one.evidence == pytest.approx(evidence(score, one.passages), abs=1e-6)
    assert [(p.passage, p.start, p.end) for p in terms[0].places] == [(0, 0, 7), (0, 9, 16), (1, 4, 11)]
    assert [(p.passage, p.start, p.end) for p in terms[1].places] == [(7, 0, 5), (7, 6, 11)]
    assert found(k=2) == terms[:2]
    assert [len(one.places) for one in found(k=2, examples=5)] == [5, 2]
    assert [one.text for one in found(passages=PASSAGES[:4])] == ["Auftrag"]


@pytest.mark.parametrize(("sought", "orders"), [(1, 1), (4, 4), (6, 4)])
def test_a_candidate_counts_in_the_pairs_with_the_phrase(sought, orders):
    pairs = [("The order", "Auftrag"), ("orders", "ein, Aufträge!"), ("Order it", "Folge"), ("an ORDER", "nichts")]
    pairs = [*pairs, ("a border", "Reihenfolge"), ("disorder, ordeal", "Folge")][:sought]
    terms = {one.text: one for one in found(bitext=pairs)}
    counts = {"Auftrag": (min(sought, 2), 4), "Folge": (int(sought > 2), 1), "Reihenfolge": (0, 1), "Orders": (0, 1)}
    for name, (together, passages) in counts.items():
        dice = 2 * together / (orders + max(together, passages))
        assert terms[name].together == dice
        assert terms[name].evidence == pytest.approx(evidence(terms[name].score, passages, dice))
    values = [one.evidence - 0.1 * (one.text == "Orders") for one in terms.values()]
    assert values == sorted(values, reverse=True)


def test_a_phrase_in_no_pair_has_no_candidate_beside_it():
    assert {one.together for one in found(bitext=[("nothing", "Auftrag")])} == {0}
    (one,) = found(passages=["Auftrag"], bitext=[("order", "Auftrag und Auftrag, Auftrags"), ("order", "xAuftragx")])
    assert one.together == 2 * 1 / (2 + 1)


def test_without_a_list_of_words_there_are_no_decoys_to_reach():
    assert [one.text for one in find_terms(MODEL, ["order"], ["fern"], max_size=1)[0]] == ["fern"]
    assert find_terms(MODEL, ["order", "nothing"], ["nothing"], max_size=1).found == ((), ())


def test_candidates_as_rows():
    place = Place(3, 0, 1, "a b")
    term = Term("a", 0.75, 4, 2, ("b", "c"), (place,), 0.5)
    terms = FoundTerms(("x", "y"), ((term,), ()))
    assert repr(terms) == "FoundTerms(2 phrases, 1 candidates)"
    assert list(terms.records()) == [("x", 0.75, "a", 4, 2, 0.5, "b, c")]


def test_decoys_are_random_words_of_the_model(monkeypatch):
    source = StaticWords.__new__(StaticWords)
    monkeypatch.setattr(StaticWords, "words", lambda _: ["a", "b", "c"])
    decoys = _decoys(source, [2, 4])
    assert [(n, len(text.split())) for n, text in decoys] == [(2, 2)] * 32 + [(4, 4)] * 32
    assert {word for _, text in decoys for word in text.split()} == {"a", "b", "c"}
    assert decoys == _decoys(source, [2, 4])
    assert _decoys(MODEL, [2]) == []


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Größe  ÄÖÜ", "grosse aou"),
        ("ＡＢＣ’s", "abc's"),
        ("サーバー", "サーバ"),
        ("キー", "キー"),  # too short to lose its mark
        ("スキー場", "スキ場"),
        ("キーボード", "キーボード"),  # the mark is within the word
        ("データ ・ ソース", "データソース"),
        ("a・b", "a・b"),
    ],
)
def test_spellings_are_folded(text, folded):
    assert spelling(text) == folded


@pytest.mark.parametrize(
    ("a", "b", "apart", "near"),
    [
        ("Plan", "Plane", True, True),
        ("Zug", "Zuge", False, True),  # three letters in common
        ("Ab", "Aber", False, False),
        ("body", "bodies", False, False),
        ("story", "stories", True, True),
        ("baby", "babies", False, False),
        ("macht", "machte", True, True),
        ("macht", "machende", False, True),  # a verb's ending
        ("mache", "machst", False, False),
        ("data type", "data types", True, True),
        ("data type", "datum type", False, True),
        ("type", "data type", False, False),
        ("データ型", "データ型s", False, False),
    ],
)
def test_two_forms_are_one_term_by_their_stem_and_endings(a, b, apart, near):
    for one, other in ((a, b), (b, a)):
        assert (same_term(one, other), same_term(one, other, near=True)) == (apart, near)
    assert same_term(a, a.upper())


def test_of_chinese_and_japanese_passages_candidates_without_their_characters_come_last():
    model = Named({"order": plane(1.0), "API": plane(0.95), "注文": plane(0.6)})
    terms = find_terms(model, ["order"], ["注文 API"], max_size=1, min_score=0.5)[0]
    assert [one.text for one in terms] == ["注文", "API"]


@pytest.mark.parametrize(("cosine", "merged"), [(0.61, True), (0.59, False)])
def test_short_words_are_forms_of_one_only_if_their_vectors_are_near(cosine, merged):
    model = Named({"train": plane(1.0), "Zug": plane(1.0), "Zuge": plane(cosine)})
    terms = find_terms(model, ["train"], ["der Zug", "Zuge Zug"], max_size=1, min_score=0.0)[0]
    assert [(one.text, one.variants) for one in terms] == ([("Zug", ("Zuge",))] if merged else [("Zug", ()), ("Zuge", ())])
    assert terms[0].times == 2 + merged


def test_as_many_candidates_as_are_asked_for_come_from_a_wider_pool():
    names = [f"{a}{b}x" for a in "bcdfghjklmnp" for b in "aeiouvwyz"]
    model = Named({"order": plane(1.0), **{name: plane(0.9 - n / 1000) for n, name in enumerate(names)}})
    passages = [name for n, name in enumerate(names) for _ in range(1 + (n >= 99) * 8)]
    best = find_terms(model, ["order"], passages, max_size=1, min_score=0.5, k=1)[0]
    assert best[0].text == names[99]  # the hundredth by its cosine, and by its evidence the first
    passages = [name for n, name in enumerate(names) for _ in range(1 + (n >= 100) * 8)]
    assert find_terms(model, ["order"], passages, max_size=1, min_score=0.5, k=1)[0][0].text == names[0]
    wider = find_terms(model, ["order"], passages, max_size=1, min_score=0.5, k=11)[0]
    assert wider[0].text == names[100]
