"""Hits that another encoder orders anew, against the formula written out."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from xswe.errors import XsweError
from xswe.search.hits import Hit, Hits
from xswe.search.rerank import combined, rerank_hits, reranker_vectors


class Angles:
    """An encoder of texts that end in degrees, as vectors in a plane; notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts):
        self.batches.append(list(texts))
        angles = np.radians([float(text.split()[-1]) if text else 0.0 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


def standard(values, of=None):
    first = values[:of]
    return [(value - statistics.fmean(first)) / statistics.pstdev(first) for value in values]


def test_both_opinions_count_by_their_deviations():
    own, other = np.array([0.9, 0.6, 0.3, 0.2], np.float32), np.array([0.1, 0.2, 0.6, 0.9], np.float32)
    for of in (None, 3):
        expected = [a + b for a, b in zip(standard(own.tolist(), of), standard(other.tolist(), of), strict=True)]
        assert combined(own, other, of).tolist() == pytest.approx(expected, rel=1e-5)
    assert combined(np.full(3, 0.5), np.array([0.0, 1.0, 2.0])).tolist() == pytest.approx(standard([0.0, 1.0, 2.0]))


def test_hits_are_ordered_by_both_models_and_cut():
    hits = Hits("q 0", (Hit(0.9, "a 90", 4, {"x": 1}), Hit(0.2, "b 30", 7), Hit(0.19, "c 0", 2)))
    nothing, by_vector = Hits("q 10", ()), Hits(None, (Hit(0.5, "a 90", 4), Hit(0.5, "c 0", 2)))
    encoder = Angles()
    first, empty, other = rerank_hits([hits, nothing, by_vector], encoder, 2)
    own, theirs = [0.9, 0.2, 0.19], [0.0, np.cos(np.radians(30)), 1.0]
    both = [a + b for a, b in zip(standard(own), standard(theirs), strict=True)]
    scores = [statistics.fmean(own) + statistics.pstdev(own) * value / 2 for value in both]
    order = sorted(range(3), key=lambda row: -scores[row])[:2]
    assert order == [2, 0]
    assert first.query == "q 0"
    assert [hit[1:] for hit in first] == [tuple(hits[row])[1:] for row in order]
    assert [hit.score for hit in first] == pytest.approx([scores[row] for row in order], rel=1e-5)
    assert empty is nothing
    assert [hit.text for hit in other] == ["a 90", "c 0"]  # the scores have no deviation, and the first stays
    asked = [text for batch in encoder.batches for text in batch]
    assert sorted(asked) == sorted({"q 0", "q 10", "", "a 90", "b 30", "c 0"})
    assert [len(found) for found in rerank_hits([hits], Angles(), 9)] == [3]
    assert rerank_hits([], Angles(), 2) == []


def test_texts_are_encoded_by_length_and_come_back_in_their_order():
    texts = [f"{'x' * (n * 7 % 60)} {n % 90}" for n in range(600)]
    encoder = Angles()
    found = reranker_vectors(encoder, texts)
    assert [len(batch) for batch in encoder.batches] == [256, 256, 88]
    lengths = [len(text) for batch in encoder.batches for text in batch]
    assert lengths == sorted(lengths)
    angles = np.radians([n % 90 for n in range(600)])
    np.testing.assert_allclose(found, np.stack([np.cos(angles), np.sin(angles)], 1), atol=1e-6)
    encoder.encode = lambda batch: np.zeros((len(batch) - 1, 2), np.float32)
    with pytest.raises(XsweError):
        reranker_vectors(encoder, texts[:5])
