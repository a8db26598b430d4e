"""Candidates by sign bits: the compiled functions against plain ones, and how many of the nearest they find."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from tests.search.test_index import unit
from xswe.io.compiler import address_of
from xswe.search import signs as module
from xswe.search.kernels import Coded, make_codes, nearest
from xswe.search.signs import ROWS, Signs, candidates, centre_of, live_bits, make_signs, pages_of
from xswe.search.snapshot import Snapshot
from xswe.search.vectors import Vectors


def signed(vectors):
    codes, scales, _ = make_codes(vectors)
    rows = make_signs(codes, scales, centre_of(codes, scales))
    whole = len(rows) // ROWS * ROWS
    return Signs(pages_of(rows[:whole]), pages_of(rows[whole:]), rows, live_bits(scales))


def bits_of(rows, dim):
    """The sign bits of rows, a byte each: bool (n, d)."""
    return np.unpackbits(rows, axis=1, bitorder="little")[:, :dim].astype(bool)


def plain_losses(query, bits):
    """How much rows lose for a query: the rounded numbers of those dimensions whose signs differ."""
    padded = np.zeros(-(-len(query) // 32) * 32, np.float32)
    padded[: len(query)] = np.abs(query)
    most = np.cumsum(padded.reshape(-1, 32), axis=1)[:, -1].max()  # added one after the other
    return ((bits != (query > 0)) * np.rint(np.abs(query) * (np.float32(239) / most))).sum(1)


def plain_candidates(losses, signs, count, rows):
    """The same by sorting all rows, given what they lose."""
    live = rows[np.unpackbits(signs.live.view(np.uint8), bitorder="little")[rows].astype(bool)]
    return np.sort(live[np.argsort(losses[live], kind="stable")[:count]]).tolist()


@pytest.mark.parametrize("dim", [3, 64, 256, 300, 1024])
def test_bits_are_the_signs_of_what_codes_stand_for(dim):
    vectors = unit(np.random.default_rng(dim), 135, dim)
    vectors[7] = 0
    codes, scales, _ = make_codes(vectors)
    centre, restored = centre_of(codes, scales), codes * scales[:, None]
    np.testing.assert_allclose(centre, np.nanmean(restored.astype(np.float64), axis=0), atol=1e-6)
    assert (bits_of(make_signs(codes, scales, centre), dim) == (restored > centre)).all()


def test_pages_hold_four_dimensions_of_each_row():
    rows = np.random.default_rng(0).integers(0, 256, (ROWS + 300, 8), np.uint8)
    pages = pages_of(rows)
    assert pages.shape == (2, 16, ROWS // 2)
    for row in (0, 63, 64, 127, 128, 8191, ROWS, ROWS + 299):
        low, high = rows[row] & 15, rows[row] >> 4
        own = pages[row // ROWS, :, row % ROWS // 128 * 64 + row % 64] >> (row // 64 % 2 * 4) & 15
        assert own.tolist() == np.stack([low, high], 1).reshape(-1).tolist()
    assert not pages[1, :, 192:].any()  # nothing is behind the last row


@pytest.mark.parametrize(
    ("size", "dim"), [(1, 64), (137, 3), (137, 1024), (2000, 256), (2000, 300), (ROWS + 70, 64), (ROWS + 70, 300)]
)
def test_candidates_are_those_of_a_plain_sort(monkeypatch, size, dim):
    monkeypatch.setattr(module, "_PASSING", (1e9, 0))
    monkeypatch.setattr(module, "_MIN_THREAD_BLOCKS", 1)
    rng = np.random.default_rng(dim + size)
    vectors = unit(rng, size, dim)
    signs = signed(vectors)
    signs = signs._replace(live=live_bits(np.where(rng.permutation(size) < size // 3, np.nan, 1)))
    some = np.sort(rng.permutation(size)[: size // 2 + 1]).astype(np.int32)
    queries = unit(rng, 11, dim)  # more than share a pass
    losses = [plain_losses(query, bits_of(signs.rows, dim)) for query in queries]
    for count in (1, 50, 2000):
        for rows in (None, some):
            every = np.arange(size) if rows is None else some
            wanted = [plain_candidates(own, signs, count, every) for own in losses]
            for threads in (1, 3):
                found = candidates(queries, count, signs, rows, threads)
                assert [one.tolist() for one in found] == wanted


@pytest.mark.parametrize(("dim", "first"), [(1, 8), (32, 8), (64, 8), (128, 16), (256, 24), (768, 72), (1024, 96)])
def test_three_eighths_of_the_dimensions_are_read_first(dim, first):
    """In fours, of which eight are looked up together."""
    found = module.tables_of(np.ones((2, dim), np.float32))
    assert found.first.shape == (2, first)
    assert found.fours.shape == (2, first, 16)


@pytest.mark.parametrize("feature", module.LOOK_UPS)
def test_every_processor_looks_up_the_same(feature):
    """The plain way, and those that this processor has as well."""
    known = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    if feature and f"+{feature}" not in known:
        pytest.skip(f"this processor has no {feature}")

    @intrinsic
    def lose(_, block, first, tables, losses):
        def generate(context, builder, signature, arguments):
            module.emit_losses(builder, arguments, module.LOOK_UPS[feature])
            return context.get_dummy_value()

        return types.void(types.uintp, types.uintp, types.uintp, types.uintp), generate

    @njit
    def add(block, first, tables, losses):
        lose(address_of(block, 0), address_of(first, 0), address_of(tables, 0), address_of(losses, 0))

    rng = np.random.default_rng(0)
    vectors, query = unit(rng, 300, 200), unit(rng, 1, 200)
    signs, tables = signed(vectors), module.tables_of(query)
    losses = np.full(ROWS, 100, np.uint8)
    add(signs.last, tables.first[0, :8].copy(), tables.fours[0, :8].copy(), losses)
    fours = bits_of(signs.rows, 224).reshape(300, 56, 4) @ [1, 2, 4, 8]
    chosen = tables.first[0, :8] // (ROWS // 2)
    own = np.square(np.append(query[0], np.zeros(24))).reshape(56, 4).sum(1)
    assert sorted(own[chosen], reverse=True) == sorted(own, reverse=True)[:8]
    wanted = [100 + sum(int(tables.fours[0, k, row[four]]) for k, four in enumerate(chosen)) for row in fours]
    assert max(wanted) > 255 > min(wanted)
    assert losses[:300].tolist() == np.minimum(wanted, 255).tolist()


@pytest.mark.parametrize(
    ("live", "rows", "k", "asked", "scored"),
    [
        (400, None, 10, None, 256),
        (256, None, 10, None, 0),  # no more than are scored in any case
        (257, None, 10, None, 256),
        (1_000_000, None, 10, None, 500),  # half the root
        (1_000_000, None, 700, None, 700),
        (400, None, 10, 40, 40),
        (400, None, 50, 40, 50),
        (40, None, 10, 40, 0),
        (1_000_000, 5121, 10, None, 256),
        (1_000_000, 5120, 10, None, 0),  # of chosen rows, up to twenty times as many are scored in full
        (1_000_000, 41, 10, 40, 40),
        (1_000_000, 40, 10, 40, 0),
    ],
)
def test_few_sentences_are_scored_in_full_and_of_many_the_best_by_their_signs(live, rows, k, asked, scored):
    slots = None if rows is None else np.arange(rows)
    assert Snapshot.rescored(SimpleNamespace(live=live, _signs=()), asked, k, slots) == scored
    assert Snapshot.rescored(SimpleNamespace(live=live, _signs=None), asked, k, slots) == 0


@pytest.mark.parametrize("word", [0, 1])
def test_a_sample_that_misleads_leaves_out_no_one_who_is_wanted(monkeypatch, word):
    """All that is near is in words that a sample holds, which seem to be all alike, or in none of them."""
    monkeypatch.setattr(module, "_MIN_SAMPLE", 156)
    rng = np.random.default_rng(0)
    vectors = unit(rng, 20_000, 64)
    query = vectors[5:6]
    near = np.flatnonzero(np.arange(20_000) // 64 % 2 == word)[::8]
    vectors[near] = query + 0.1 * unit(rng, len(near), 64)
    signs = signed(vectors)
    assert len(signs.live) // module._MIN_SAMPLE == 2
    losses = plain_losses(query[0], bits_of(signs.rows, 64))
    for count in (300, 3000):
        found = candidates(query, count, signs)[0]
        assert len(found) == count
        assert np.isin(near if count > len(near) else plain_candidates(losses, signs, count, near), found).mean() > 0.97


@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_nearly_all_of_the_nearest_are_candidates(monkeypatch, offset):
    """Also of vectors that have much in common, whose plain signs would be nearly the same."""
    monkeypatch.setattr(module, "_MIN_THREAD_BLOCKS", 1)
    rng = np.random.default_rng(1)
    topics = rng.normal(size=(300, 256))
    vectors = (topics[rng.integers(0, 300, 30_000)] + rng.normal(size=(30_000, 256)) + offset).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries, vectors = vectors[:50], vectors[50:]
    codes, scales, error = make_codes(vectors)
    signs = signed(vectors)
    truth = nearest(queries, 10, Coded(codes, scales, Vectors(vectors), error))
    found = candidates(queries, 250, signs)
    again = candidates(queries[:9], 250, signs, threads=3)
    assert [one.tolist() for one in again] == [one.tolist() for one in found[:9]]
    shares = [np.isin(rows, own).mean() for (_, rows), own in zip(truth, found, strict=True)]
    assert np.mean(shares) >= 0.97


def test_of_many_equal_rows_the_first_are_candidates():
    """Once so many rows lose nothing as are wanted, no later one is looked at."""
    vectors = np.repeat(unit(np.random.default_rng(0), 1, 64), 3 * module._BUFFERED_ROWS, axis=0)
    assert candidates(vectors[:1], 200, signed(vectors))[0].tolist() == list(range(200))
