"""One phrase against one passage, by every method, with answers known in the head."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.conftest import eval_script
from xswe.model.static import StaticModel
from xswe.phrases.find import find_phrases
from xswe.phrases.search import SpanConfig, StaticWords
from xswe.text.subwords import SubwordUnits

scorers = eval_script("experiments.phrase_scorers")
BM25Scorer, NGramScorer, SpanScorer = scorers.BM25Scorer, scorers.NGramScorer, scorers.SpanScorer
bm25_terms = scorers.bm25_terms


@pytest.fixture(scope="module")
def source(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ("en", "de", "zh", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 24)).astype(np.float32)
    return StaticWords(StaticModel(units, matrix))


def test_a_span_scorer_and_one_encoding_an_n_gram_agree(source, sample):
    """With static vectors the two are the same; only the cost differs."""
    passages = [f"{a} {b}" for a, b in zip(sample["en"][:6], sample["de"][:6], strict=True)] + [""]
    phrases = [*sample["de"][2:8], "cat"]
    config = SpanConfig(min_size=2, max_size=5)
    spans = SpanScorer(source, config)(phrases, passages)
    each = NGramScorer(source.queries, source, config)(phrases, passages)
    np.testing.assert_allclose(spans.scores, each.scores, atol=1e-5)
    np.testing.assert_array_equal(spans.starts, each.starts)
    np.testing.assert_array_equal(spans.ends, each.ends)
    assert spans.scores[-1] == spans.ends[-1] == 0


def test_whole_texts_are_scored_by_their_sentence_vectors(source, sample):
    phrases, passages = sample["en"][:4], sample["ja"][:4]
    found = SpanScorer(scorers.WholeTexts(source.queries, "static"))(phrases, passages)
    expected = np.einsum("ij,ij->i", source.queries(phrases), source.queries(passages))
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)
    assert found.ends.tolist() == [len(passage) for passage in passages]


def test_bm25_is_its_formula():
    pytest.importorskip("bm25s")
    passages = ["the cat sleeps", "a dog", "the the dog runs far away"]
    found = BM25Scorer()(["cat unseen", "cat", "the dog"], passages)

    def term(times, documents, length):
        idf = np.log(1 + (3 - documents + 0.5) / (documents + 0.5))
        return idf * times / (times + 1.5 * (1 - 0.75 + 0.75 * length / (11 / 3)))

    expected = [term(1, 1, 3), 0.0, term(2, 2, 6) + term(1, 2, 6)]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-5)


def test_the_terms_of_bm25_in_both_kinds_of_script():
    assert bm25_terms("Die Katze, 3.5 Über東京タワー") == ["die", "katze", "3", "5", "über", *"東京タワー"]


def test_whole_texts_go_through_the_same_search():
    def encode(texts):
        return np.array([[len(t), 1.0] for t in texts], np.float32) / np.hypot([[len(t)] for t in texts], 1).astype("f4")

    (hits,) = find_phrases(scorers.WholeTexts(encode, "length"), ["abc"], ["a", "xyz", "abcdefgh"], SpanConfig(k=2))
    assert [hit.places[0].passage for hit in hits] == [1, 2]
    assert hits[0].places[0].text == "xyz"
