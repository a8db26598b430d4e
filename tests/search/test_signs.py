"""Candidates by sign bits: the compiled functions against plain ones, and how many of the nearest they find."""

from __future__ import annotations

import numpy as np
import pytest

from tests.search.test_index import unit
from xswe.search import signs as module
from xswe.search.kernels import Coded, make_codes, nearest
from xswe.search.signs import Signs, candidates, centre_of, live_bits, make_signs
from xswe.search.types import Vectors


def signed(vectors):
    codes, scales, _ = make_codes(vectors)
    centre = centre_of(codes, scales)
    return Signs(make_signs(codes, scales, centre), centre, live_bits(scales))


def bits_of(vectors, signs):
    """The sign bits of vectors, a byte each."""
    return vectors > signs.centre


def plain_candidates(query, vectors, signs, count, rows):
    """The same by sorting all rows: by distance, and of the nearest by their sums."""
    live = rows[np.unpackbits(signs.live.view(np.uint8), bitorder="little")[rows].astype(bool)]
    bits = np.unpackbits(signs.bits.view(np.uint8), axis=1, bitorder="little")[:, : vectors.shape[1]].astype(bool)
    distances = (bits[live] != bits_of(query[None], signs)).sum(axis=1)
    near = np.sort(live[np.argsort(distances, kind="stable")[: module.NEAR * count]])
    numbers = np.rint(query * np.float32(module._LEVELS / np.abs(query).max())).astype(np.int64)
    return np.sort(near[np.argsort(-(bits[near] @ numbers), kind="stable")[:count]])


@pytest.mark.parametrize("dim", [3, 64, 256, 300, 1024])
def test_bits_are_the_signs_of_what_codes_stand_for(dim):
    vectors = unit(np.random.default_rng(dim), 50, dim)
    vectors[7] = 0
    codes, scales, _ = make_codes(vectors)
    signs = signed(vectors)
    restored = codes * scales[:, None]
    np.testing.assert_allclose(signs.centre, np.nanmean(restored.astype(np.float64), axis=0), atol=1e-6)
    bits = np.unpackbits(signs.bits.view(np.uint8), axis=1, bitorder="little")
    assert (bits[:, :dim] == (restored > signs.centre)).all()
    assert not bits[:, dim:].any()
    assert signs.bits.shape[1] % 4 == 0


@pytest.mark.parametrize("dim", [3, 64, 256, 300, 1024])
@pytest.mark.parametrize("size", [1, 37, 9000])
def test_candidates_are_those_of_a_plain_sort(monkeypatch, dim, size):
    monkeypatch.setattr(module, "NEAR", 3)
    rng = np.random.default_rng(dim + size)
    vectors = unit(rng, size, dim)
    signs = signed(vectors)
    signs = signs._replace(live=live_bits(np.where(rng.permutation(size) < size // 3, np.nan, 1)))
    some = np.sort(rng.permutation(size)[: size // 2 + 1]).astype(np.int32)
    queries = unit(rng, 11, dim)  # more than share a pass
    for count in (1, 50, 2000):
        for rows in (None, some):
            wanted = [
                plain_candidates(q, vectors, signs, count, np.arange(size) if rows is None else some) for q in queries
            ]
            for threads in (1, 3):
                found = candidates(queries, count, signs, rows, threads)
                assert [one.tolist() for one in found] == [one.tolist() for one in wanted]


def test_a_sample_that_misleads_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = unit(rng, 20_000, 64)
    query = vectors[5:6]
    near = np.arange(64, 20_000, 20_000 // (module._SAMPLE // module._GROUP))  # rows that no sample holds
    vectors[near] = query + 0.01 * unit(rng, len(near), 64)
    signs = signed(vectors)
    right = candidates(query, 400, signs)
    for generous in (0.01, 100.0):
        monkeypatch.setattr(module, "_GENEROUS", generous)
        assert candidates(query, 400, signs)[0].tolist() == right[0].tolist()


@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_nearly_all_of_the_nearest_are_candidates(offset):
    """Also of vectors that have much in common, whose plain signs would be nearly the same."""
    rng = np.random.default_rng(1)
    topics = rng.normal(size=(300, 256))
    vectors = (topics[rng.integers(0, 300, 30_000)] + rng.normal(size=(30_000, 256)) + offset).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries, vectors = vectors[:50], vectors[50:]
    codes, scales, error = make_codes(vectors)
    signs = signed(vectors)
    truth = nearest(queries, 10, Coded(codes, scales, Vectors(vectors), error))
    found = candidates(queries, 250, signs)
    shares = [np.isin(rows, own).mean() for (_, rows), own in zip(truth, found, strict=True)]
    assert np.mean(shares) >= 0.97
