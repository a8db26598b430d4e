"""Candidates by sign bits: the compiled functions against plain ones, and how many of the nearest they find."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from tests.search.test_index import unit
from xswe.io.compiler import address_of
from xswe.search import signs as module
from xswe.search.kernels import Coded, make_codes, nearest
from xswe.search.signs import ROWS, Signs, candidates, centre_of, live_bits, make_signs
from xswe.search.vectors import Vectors


def signed(vectors):
    codes, scales, _ = make_codes(vectors)
    centre = centre_of(codes, scales)
    return Signs(*make_signs(codes, scales, centre), centre, live_bits(scales))


def bits_of(signs, count):
    """The sign bits of so many rows, a byte each: bool (count, d)."""
    rows = np.arange(count)
    places = rows % ROWS // 32 * 32 + rows % 32 // 16 + rows % 16 * 2
    packed = np.concatenate([signs.first[rows // ROWS, :, places], signs.second[rows]], axis=1)
    return np.unpackbits(packed, axis=1, bitorder="little")[:, : len(signs.centre)].astype(bool)


def plain_losses(query, bits):
    """How much rows lose for a query by groups of dimensions: the rounded numbers of those whose signs differ."""
    padded = np.zeros(-(-len(query) // 64) * 64, np.float32)
    padded[: len(query)] = np.abs(query)
    most = np.cumsum(padded.reshape(-1, 32), axis=1)[:, -1].max()  # added one after the other
    wrong = np.zeros((len(bits), len(padded)))
    wrong[:, : len(query)] = bits != (query > 0)
    return (wrong * np.rint(padded * (np.float32(239) / most))).reshape(len(bits), len(padded) // 32, 32).sum(2)


def plain_candidates(losses, signs, count, rows):
    """The same by sorting all rows, given what those of the blocks lose."""
    live = rows[np.unpackbits(signs.live.view(np.uint8), bitorder="little")[rows].astype(bool)]
    last = len(signs.first) * ROWS
    inside = live[live < last]
    near = inside[np.argsort(losses[inside], kind="stable")[:count]]
    return [*np.sort(near).tolist(), *live[live >= last].tolist()]


@pytest.mark.parametrize("dim", [3, 64, 256, 300, 1024])
def test_bits_are_the_signs_of_what_codes_stand_for(dim):
    vectors = unit(np.random.default_rng(dim), 135, dim)
    vectors[7] = 0
    codes, scales, _ = make_codes(vectors)
    signs = signed(vectors)
    restored = codes * scales[:, None]
    np.testing.assert_allclose(signs.centre, np.nanmean(restored.astype(np.float64), axis=0), atol=1e-6)
    assert len(signs.first) == 2  # the last 7 rows fill none
    assert (bits_of(signs, 128) == (restored > signs.centre)[:128]).all()


@pytest.mark.parametrize("dim", [3, 64, 256, 300, 1024])
@pytest.mark.parametrize("size", [1, 137, 2000])
def test_candidates_are_those_of_a_plain_sort(monkeypatch, dim, size):
    monkeypatch.setattr(module, "_PASSING", (1e9, 0))
    monkeypatch.setattr(module, "_FEWEST", 1)
    rng = np.random.default_rng(dim + size)
    vectors = unit(rng, size, dim)
    signs = signed(vectors)
    signs = signs._replace(live=live_bits(np.where(rng.permutation(size) < size // 3, np.nan, 1)))
    some = np.sort(rng.permutation(size)[: size // 2 + 1]).astype(np.int32)
    queries = unit(rng, 11, dim)  # more than share a pass
    losses = [plain_losses(query, bits_of(signs, len(signs.first) * ROWS)).sum(1) for query in queries]
    for count in (1, 50, 2000):
        for rows in (None, some):
            every = np.arange(size) if rows is None else some
            wanted = [plain_candidates(own, signs, count, every) for own in losses]
            for threads in (1, 3):
                found = candidates(queries, count, signs, rows, threads)
                assert [one.tolist() for one in found] == wanted


@pytest.mark.parametrize("feature", module.LOOK_UPS)
def test_every_processor_looks_up_the_same(feature):
    """The plain way, and those that this processor has as well."""
    known = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    if feature and f"+{feature}" not in known:
        pytest.skip(f"this processor has no {feature}")

    @intrinsic
    def lose(_, rows, tables, groups, losses, limit):
        def generate(context, builder, signature, arguments):
            return module.emit_losses(builder, arguments, module.LOOK_UPS[feature])

        return types.uint64(types.uintp, types.uintp, types.intp, types.uintp, types.uint16), generate

    @njit
    def within(rows, tables, groups, losses, limit):
        return lose(address_of(rows, 0), address_of(tables, 0), groups, address_of(losses, 0), np.uint16(limit))

    rng = np.random.default_rng(0)
    vectors, query = unit(rng, ROWS, 200), unit(rng, 1, 200)
    signs, losses = signed(vectors), np.zeros(ROWS, np.uint16)
    wanted = plain_losses(query[0], bits_of(signs, ROWS))[:, :4].sum(1)  # of eight groups
    near = within(signs.first, module.tables_of(query).fours, 4, losses, int(np.median(wanted)))
    assert losses.tolist() == wanted.tolist()
    assert near == sum(1 << row for row in np.flatnonzero(wanted <= int(np.median(wanted))).tolist())


@pytest.mark.parametrize("block", [0, 1])
def test_a_sample_that_misleads_changes_nothing(monkeypatch, block):
    """All that is near is in blocks that a sample holds, which seem to be all alike, or in none of them."""
    monkeypatch.setattr(module, "_PASSING", (1e9, 0))
    monkeypatch.setattr(module, "_SAMPLED", 156)
    rng = np.random.default_rng(0)
    vectors = unit(rng, 20_000, 64)
    query = vectors[5:6]
    near = np.flatnonzero(np.arange(20_000) // ROWS % 2 == block)[::8]
    vectors[near] = query + 0.1 * unit(rng, len(near), 64)
    signs = signed(vectors)
    assert len(signs.first) // module._SAMPLED == 2
    losses = plain_losses(query[0], bits_of(signs, len(signs.first) * ROWS)).sum(1)
    for count in (300, 3000):
        wanted = plain_candidates(losses, signs, count, np.arange(20_000))
        assert candidates(query, count, signs)[0].tolist() == wanted


@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_nearly_all_of_the_nearest_are_candidates(monkeypatch, offset):
    """Also of vectors that have much in common, whose plain signs would be nearly the same."""
    monkeypatch.setattr(module, "_FEWEST", 1)
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
    vectors = np.repeat(unit(np.random.default_rng(0), 1, 64), 3 * module._ROOM, axis=0)
    assert candidates(vectors[:1], 200, signed(vectors))[0].tolist() == list(range(200))
