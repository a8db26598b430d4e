"""The distinct words of a block, and the bound that rests on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from xswe.mining.phrases.bound import LANES, SEVERAL, STEPS, bound_tile, spell
from xswe.mining.phrases.distinct import distinct_words
from xswe.mining.phrases.norms import part_size


def random_words(seed, count=3000, pieces=40):
    """Words of no, one or more pieces, some of them often."""
    rng = np.random.default_rng(seed)
    words = np.zeros(count + 1, np.int64)
    np.cumsum(rng.choice(5, count, p=[0.02, 0.6, 0.2, 0.1, 0.08]), out=words[1:])
    return (rng.zipf(1.5, words[-1]) % pieces).astype(np.int32), words


@pytest.mark.parametrize("seed", range(3))
def test_distinct_words_are_told_by_their_pieces(seed):
    names, words = random_words(seed)
    found = distinct_words(names, words, 40)
    spelled = [tuple(found.pieces[found.ids[a:b]]) for a, b in pairwise(found.offsets)]
    given = [tuple(names[a:b]) for a, b in pairwise(words)]
    assert [spelled[row] for row in found.rows] == given
    assert len(spelled) == len(set(given))
    counts = np.bincount(found.rows)
    assert np.all(counts[:-1] >= counts[1:])
    assert sorted(found.pieces) == sorted(set(names.tolist()))


def test_of_no_words_there_are_none():
    found = distinct_words(np.zeros(0, np.int32), np.zeros(1, np.int64), 5)
    assert [len(part) for part in found] == [0, 0, 0, 1]


@pytest.mark.parametrize(("reach", "count"), [(1, 5), (5, 64), (20, 83), (20, 3), (40, 103)])
def test_no_span_of_a_tile_is_above_its_bound(reach, count):
    rng = np.random.default_rng(reach)
    queries = rng.normal(size=(LANES - 3, 6)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    matrix = (rng.normal(size=(40, 6)) * rng.uniform(0.1, 2, (40, 1))).astype(np.float32)
    names, words = random_words(7, count)
    found = distinct_words(names, words, 40)
    vectors = np.array([matrix[names[a:b]].sum(0) for a, b in pairwise(words)]).reshape(count, 6)
    lengths = np.linalg.norm(vectors, axis=1)
    inverse = np.zeros(len(found.offsets) - 1, np.float32)
    inverse[found.rows] = np.divide(1, lengths, out=np.zeros(count), where=lengths > 0)
    table, codes = np.empty((len(inverse), len(queries)), np.float32), np.empty((len(inverse), LANES), np.uint8)
    spell(matrix[found.pieces] @ queries.T, found.ids, found.offsets, inverse, table, codes, 0, len(inverse))
    np.testing.assert_allclose(table[found.rows], vectors @ queries.T, atol=1e-4)
    assert not codes[:, len(queries) :].any()
    step, starts = part_size(reach), min(64, count)
    spread, best = np.ones(-(-64 // step), np.float32), np.zeros(len(queries))
    for i in range(starts):
        for j in range(i + 1, min(i + reach, count) + 1):
            length = np.linalg.norm(vectors[i:j].sum(0))
            if length > 1e-3:
                spread[i // step] = max(spread[i // step], (lengths[i:j] ** 2).sum() / length**2 * 1.000001)
                best = np.maximum(best, queries @ vectors[i:j].sum(0) / length)
    out = np.empty(LANES, np.float32)
    sums = np.empty((-(-count // step) + SEVERAL, LANES), np.uint16)
    bound_tile(codes, found.rows, 0, count, reach, spread, sums, out)
    assert np.all(out[: len(queries)] >= STEPS * best**2 - 1e-2)
    assert np.any(best > 0.5)


def test_spans_too_long_for_the_sums_are_not_bounded():
    out = np.zeros(LANES, np.float32)
    room = np.zeros((3000, LANES), np.uint16)
    bound_tile(np.zeros((1, LANES), np.uint8), np.zeros(9, np.int32), 0, 9, 1000, np.ones(9, np.float32), room, out)
    assert np.all(out == np.inf)
