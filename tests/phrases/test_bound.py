"""The distinct words of a block, and the bound that rests on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit

from xswe.phrases.kernels.bound import (
    LANES,
    LEVELS,
    SEVERAL,
    STARTS,
    bound_tile,
    lanes_that_reach,
    level_of,
    narrow,
    part_size,
    set_limit,
    spell,
)
from xswe.phrases.kernels.top import distinct_words


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
def test_no_part_that_holds_a_better_span_is_left_out(reach, count):
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
    parts = -(-starts // step)
    spread, best_from = np.ones(parts, np.float32), np.zeros((starts, len(queries)))
    for i in range(starts):
        for j in range(i + 1, min(i + reach, count) + 1):
            length = np.linalg.norm(vectors[i:j].sum(0))
            if length > 1e-3:
                spread[i // step] = max(spread[i // step], (lengths[i:j] ** 2).sum() / length**2 * 1.000001)
                best_from[i] = np.maximum(best_from[i], queries @ vectors[i:j].sum(0) / length)
    best = np.array([best_from[p * step : p * step + step].max(0) for p in range(parts)])
    levels = np.array([level_of(s) for s in spread], np.uint8)
    assert best.max() > 0.5
    sums, alive = np.empty((-(-count // step) + SEVERAL) * LANES, np.uint8), np.empty(parts, np.uint64)
    limits, bytes_of_rows = np.zeros(LEVELS * LANES, np.uint8), codes.ravel()
    row_lengths = np.zeros(len(inverse), np.float32)
    row_lengths[found.rows] = lengths
    room, passed, narrowed = np.empty(2 * (64 + reach + STARTS), np.float32), [], 0
    for score in (-0.2, 0.0, 0.1, 0.5, 0.8, 0.99):
        for lane in range(LANES):
            set_limit(limits, lane, np.float32(score))
        anywhere = bound_tile(bytes_of_rows, found.rows, count, 0, count, reach, levels, 0, limits, sums, alive)
        assert anywhere == np.bitwise_or.reduce(alive)
        found_alive = np.unpackbits(alive.view(np.uint8), bitorder="little").reshape(parts, LANES)[:, : len(queries)]
        assert np.all(found_alive[best > score])
        passed.append(found_alive.mean())
        for lane in range(len(queries)):
            words = bytes_of_rows, lane, found.rows, row_lengths, 0, count
            low, high = narrow(*words, 0, starts, levels, 0, parts, np.float32(score), 1, reach, room)
            inside = np.flatnonzero(best_from[:, lane] > score)
            assert 0 <= low <= high <= starts
            assert low <= inside.min(initial=starts)
            assert inside.max(initial=-1) < high or not len(inside)
            narrowed += high - low < starts
    assert passed[0] == passed[1] == 1  # everything is looked at
    assert passed[-1] < 1 or reach > 5  # so few dimensions leave no long span out
    assert narrowed > 20


def test_words_are_left_out_where_few_are_near():
    """In as many dimensions as there are words, the bound is tight."""
    codes = np.zeros((3, LANES), np.uint8)
    codes[1], codes[2, 5] = 60, 255
    rows = np.array([0, 0, 1, 1, 0, 0, 0, 0, 2, 0, 0, 0], np.int32)
    limits, sums, alive = np.zeros(LEVELS * LANES, np.uint8), np.empty(60 * LANES, np.uint8), np.empty(12, np.uint64)
    codes = codes.ravel()
    for lane in range(LANES):
        set_limit(limits, lane, np.float32(np.sqrt(121 / 255)))
    everyone, one = 2**LANES - 1, 1 << 5
    bound_tile(codes, rows, 12, 0, 12, 4, np.zeros(12, np.uint8), 0, limits, sums, alive)
    assert alive.tolist() == [0, 0, 0, 0, one, one, one, one, one, 0, 0, 0]
    bound_tile(codes, rows, 12, 0, 12, 4, np.full(12, level_of(np.float32(1.01)), np.uint8), 0, limits, sums, alive)
    assert alive.tolist() == [everyone, everyone, everyone, 0, one, one, one, one, one, 0, 0, 0]
    limits[5::LANES] = 0
    bound_tile(codes, rows, 12, 0, 12, 4, np.zeros(12, np.uint8), 0, limits, sums, alive)
    assert alive.tolist() == [one] * 12


def test_sums_that_are_full_do_not_overflow():
    codes, limits = np.full(LANES, 200, np.uint8), np.zeros(LEVELS * LANES, np.uint8)
    for lane in range(LANES):
        set_limit(limits, lane, np.float32(1.0))
    sums, alive = np.empty(3000 * LANES, np.uint8), np.empty(9, np.uint64)
    for reach in (1, 8, 1000):
        rows = np.zeros(9, np.int32)
        alive[:] = 0
        bound_tile(codes, rows, 9, 0, 9, reach, np.zeros(9, np.uint8), 0, limits, sums, alive)
        parts = -(-9 // part_size(reach))
        last = 0 if reach == 1 or reach == 8 else 2**LANES - 1  # the last part holds one word
        assert alive[:parts].tolist() == [2**LANES - 1] * (parts - 1) + [last]


@pytest.mark.parametrize("spread", [1.0, 1.0000001, 1.04, 1.5, 2.0, 7.3, 14.0, 1e6])
def test_a_level_stands_for_no_smaller_spread(spread):
    limits = np.full(LEVELS * LANES, 255, np.uint8)
    level = int(level_of(np.float32(spread)))
    for score in np.linspace(0.01, 1, 50, dtype=np.float32):
        set_limit(limits, 3, score)
        assert limits[(LEVELS - 1) * LANES + 3] == 0
        assert (np.delete(limits.reshape(LEVELS, LANES), 3, axis=1) == 255).all()  # of other lanes
        assert limits[level * LANES + 3] < 255 * np.float64(score) ** 2 / np.float32(spread) + 1
        assert limits[level * LANES + 3] >= np.floor(255 * 0.999 * np.float64(score) ** 2 / (spread * 1.045)) or spread > 14


def test_every_line_counts_towards_the_limit():
    reach = lanes_that_reach(4)
    told = njit(lambda lines, limits: reach(lines.ctypes.data, limits.ctypes.data))
    draw = np.random.default_rng(0)
    for most in (40, 200):  # sums below 255, and beyond it
        lines = draw.integers(0, most, (4, LANES), np.uint8)
        limits = draw.integers(0, 255, LANES, np.uint8, endpoint=True)
        wanted = np.minimum(lines.sum(axis=0, dtype=np.int64), 255) >= limits
        assert [int(told(lines, limits)) >> lane & 1 for lane in range(LANES)] == wanted.tolist()
