"""Which of many vectors may be among the nearest to one, found by a bit a dimension.

Of each vector the signs of its coordinates are kept, less their mean. The rows whose bits differ in the fewest places from
those of a query are found at the speed of memory. Of these the inner products of the query with the signs, as numbers 1 and
-1, choose the candidates, which then are scored like any other rows. Nothing is trained, and to add rows is to append bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from xswe.io.compiler import LEAN, address_of, prefetch_row, trailing_zeros
from xswe.io.parallel import over_blocks
from xswe.io.products import largest

NEAR = 5  # rows that are near by their bits, for each candidate
_STRIPE = 4  # words of a row that are compared at a time: rows of bits are padded to a multiple of 256 bits
_ROWS = 8  # rows that are compared at a time
_LANES = 32  # distances that are compared with a limit at a time
_CHUNK = 4096  # rows whose distances are kept at a time, in the cache; a multiple of _LANES
_GROUP, _SAMPLE = 64, 8192  # rows of a sample are neighbours, so many at a time
_GENEROUS = 1.3  # by how many more rows than are wanted the sample's limit is meant to let in
_TOGETHER = 8  # queries that share a pass over the bits
_LEVELS = 4095  # of the numbers of a query, so that 16 bits hold the sum of eight
_AHEAD = 16  # rows that memory is asked for in advance
_EVERY = np.zeros(0, np.int32)  # in the place of some rows: all of them


class Signs(NamedTuple):
    """The sign bits of vectors."""

    bits: np.ndarray  # uint64 (n, words), of :func:`make_signs`
    centre: np.ndarray  # float32 (d,), what was taken off the vectors
    live: np.ndarray  # uint32, of :func:`live_bits`: which rows count


class _Found(NamedTuple):
    """Rows that are near to queries, in rising order."""

    rows: np.ndarray  # int32 (q, room)
    distances: np.ndarray  # uint16 (q, room)
    counts: np.ndarray  # int64 (q,), how many there are of each query
    limits: np.ndarray  # int64 (q,), the largest distance of a row that still enters; -1 for none


def words_of(dim: int) -> int:
    """Return the words of a row of bits."""
    return -(-dim // (64 * _STRIPE)) * _STRIPE


def centre_of(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the mean of the vectors that codes stand for, float32 (d,); see :func:`xswe.search.kernels.make_codes`."""
    total = np.zeros(codes.shape[1], np.float64)
    count = _add_up(codes, scales, total)
    return (total / max(count, 1)).astype(np.float32)


@njit(**LEAN)
def _add_up(codes: np.ndarray, scales: np.ndarray, total: np.ndarray) -> int:
    """Add the rows that have a scale to ``total``, one after the other; returns how many these are."""
    count = 0
    for i in range(len(codes)):
        if scales[i] == scales[i]:
            count += 1
            for j in range(len(total)):
                total[j] += np.float64(codes[i, j]) * np.float64(scales[i])
    return count


def live_bits(scales: np.ndarray) -> np.ndarray:
    """Return a bit for each row that has a scale, uint32, zeros behind the last."""
    packed = np.packbits(scales == scales, bitorder="little")
    return np.concatenate([packed, np.zeros(-len(packed) % 4, np.uint8)]).view("<u4").astype(np.uint32, copy=False)


def make_signs(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the sign bits of what codes stand for, uint64 (n, words); the first dimension is the lowest bit."""
    out = np.zeros((len(codes), words_of(codes.shape[1])), np.uint64)
    _sign(codes, scales, centre, out)
    return out


@njit(**LEAN)
def _sign(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray, out: np.ndarray) -> None:
    """See :func:`make_signs`."""
    for i in range(len(codes)):
        for j in range(len(centre)):
            bit = np.uint64(np.float32(codes[i, j]) * scales[i] > centre[j])
            out[i, j >> 6] |= bit << np.uint64(j & 63)


def _counter(one_stripe: bool) -> Any:
    """Return what writes in how many bits ``_ROWS`` rows, of one stripe each or of any number, differ from a query."""
    long, short, index = ir.IntType(64), ir.IntType(16), ir.IntType(32)
    half, lanes = ir.VectorType(long, _STRIPE), 2 * _STRIPE
    both = ir.VectorType(long, lanes)  # a stripe of a row, and that of the next row

    def mixed(builder: Any, a: Any, b: Any, order: Iterable[int]) -> Any:
        places = [*order]
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(index, len(places)), places))

    def load(builder: Any, address: Any, word: Any, kind: Any) -> Any:
        place = builder.add(address, builder.mul(word, long(8)))
        return builder.load(builder.inttoptr(place, kind.as_pointer()), align=8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, query, words, out = arguments
        count = builder.module.declare_intrinsic(f"llvm.ctpop.v{lanes}i64", (), ir.FunctionType(both, [both]))

        def counts(word: Any) -> list[Any]:
            """Return the counts of the stripes at a word, of two rows each."""
            own, found = load(builder, query, word, half), []
            own = mixed(builder, own, own, [*range(_STRIPE)] * 2)
            for row in range(0, _ROWS, 2):
                first = builder.add(word, builder.mul(words, long(row)))
                if one_stripe:
                    other = load(builder, rows, first, both)
                else:
                    one, next_one = (load(builder, rows, place, half) for place in (first, builder.add(first, words)))
                    other = mixed(builder, one, next_one, range(lanes))
                found.append(builder.call(count, [builder.xor(own, other)]))
            return found

        if one_stripe:
            totals = counts(long(0))
        else:
            places = [cgutils.alloca_once_value(builder, ir.Constant(both, None)) for _ in range(_ROWS // 2)]
            with cgutils.for_range_slice(builder, long(0), words, long(_STRIPE), long) as (word, _):
                for place, more in zip(places, counts(word), strict=True):
                    builder.store(builder.add(builder.load(place), more), place)
            totals = [builder.load(place) for place in places]
        sums = totals[0]  # four counts share a lane, and are added up together
        for i, total in enumerate(totals[1:], 1):
            sums = builder.or_(sums, builder.shl(total, ir.Constant(both, [16 * i] * lanes)))
        for step in (2, 1):
            sums = builder.add(sums, mixed(builder, sums, sums, (lane ^ step for lane in range(lanes))))
        two = builder.bitcast(mixed(builder, sums, sums, (0, _STRIPE)), ir.VectorType(short, _ROWS))
        eight = mixed(builder, two, two, (row // 2 + row % 2 * (_ROWS // 2) for row in range(_ROWS)))
        builder.store(eight, builder.inttoptr(out, eight.type.as_pointer()), align=2)
        return context.get_dummy_value()

    @intrinsic
    def counter(_: Any, rows: Any, query: Any, words: Any, out: Any) -> Any:
        """Write the differences, uint16 (_ROWS,), of uint64 (_ROWS, words) from uint64 (words,), given their addresses."""
        return types.void(types.uintp, types.uintp, types.intp, types.uintp), generate

    return counter


_count_differences, _count_short_differences = _counter(False), _counter(True)


@intrinsic
def _reach(_: Any, distances: Any, limit: Any) -> Any:
    """Return a bit for each of ``_LANES`` distances, uint16 from an address on, that is not above a limit."""
    kind = ir.VectorType(ir.IntType(16), _LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=2)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[1], ir.IntType(32)(0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), None)
        limits = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), order)
        mask = builder.bitcast(builder.icmp_unsigned("<=", own, limits), ir.IntType(_LANES))
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(types.uintp, types.uint16), generate


@intrinsic
def _ones(_: Any, word: Any) -> Any:
    """Return how many bits of a uint64 are 1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(**LEAN)
def _difference(row: np.ndarray, query: np.ndarray) -> np.int64:
    total = np.int64(0)
    for word in range(len(query)):
        total += np.int64(_ones(row[word] ^ query[word]))
    return total


@njit(**LEAN)
def _measure(bits: np.ndarray, query: np.ndarray, rows: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """Write the distances of the rows from ``first`` to ``last``, or of those of some rows."""
    place, words = first, len(query)
    if not len(rows):
        while place + _ROWS <= last:
            there = address_of(bits, place * words), address_of(query, 0), address_of(out, place - first)
            if words == _STRIPE:
                _count_short_differences(there[0], there[1], words, there[2])
            else:
                _count_differences(there[0], there[1], words, there[2])
            place += _ROWS
    for i in range(place, last):
        out[i - first] = np.uint16(_difference(bits[rows[i] if len(rows) else i], query))


@njit(**LEAN)
def _keep_nearest(found: _Found, q: int, wanted: int, counts: np.ndarray) -> None:
    """Keep so many of the rows of a query, those at the smallest distances, and of equal ones the first."""
    counts[:] = 0
    for i in range(found.counts[q]):
        counts[found.distances[q, i]] += 1
    nearer, border = np.int64(0), np.int64(0)
    while nearer + counts[border] < wanted:
        nearer += counts[border]
        border += 1
    at_border, kept = wanted - nearer, np.int64(0)
    for i in range(found.counts[q]):
        distance = found.distances[q, i]
        if distance > border or (distance == border and at_border == 0):
            continue
        if distance == border:
            at_border -= 1
        found.rows[q, kept], found.distances[q, kept] = found.rows[q, i], distance
        kept += 1
    found.counts[q], found.limits[q] = kept, border - 1  # a later row at the border is behind those that are kept


@njit(**LEAN)
def _scan(
    signs: Signs,
    queries: np.ndarray,
    rows: np.ndarray,
    bounds: tuple[int, int],
    wanted: int,
    found: _Found,
    distances: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Find the ``wanted`` rows between bounds that differ least from each query, unless the limits leave out some."""
    room = found.rows.shape[1] - _CHUNK
    for first in range(bounds[0], bounds[1], _CHUNK):
        size = min(_CHUNK, bounds[1] - first)
        for q in range(len(queries)):
            _measure(signs.bits, queries[q], rows, first, first + size, distances)
            if found.counts[q] > room:
                _keep_nearest(found, q, wanted, counts)
            if found.limits[q] < 0:
                continue
            limit, count = np.uint16(found.limits[q]), found.counts[q]
            for start in range(0, size, _LANES):
                near = _reach(address_of(distances, start), limit)
                if not len(rows):
                    near &= np.uint64(signs.live[(first + start) // _LANES])
                while near:
                    place = start + np.int64(trailing_zeros(near))
                    near &= near - np.uint64(1)
                    if place >= size:
                        break
                    row = rows[first + place] if len(rows) else np.int32(first + place)
                    if signs.live[row // _LANES] >> np.uint32(row % _LANES) & np.uint32(1):
                        found.rows[q, count], found.distances[q, count] = row, distances[place]
                        count += 1
            found.counts[q] = count
    for q in range(len(queries)):
        if found.counts[q] > wanted:
            _keep_nearest(found, q, wanted, counts)


@njit(**LEAN)
def _guess(
    signs: Signs, query: np.ndarray, rows: np.ndarray, size: int, wanted: float, distances: np.ndarray, counts: np.ndarray
) -> np.int64:
    """Return at about which distance from a query so many of ``size`` rows are, by a sample."""
    counts[:] = 0
    sampled, step = np.int64(0), max(_GROUP, size // (_SAMPLE // _GROUP))
    for first in range(0, size, step):
        last = min(first + _GROUP, size)
        _measure(signs.bits, query, rows, first, last, distances)
        for i in range(last - first):
            counts[distances[i]] += 1
        sampled += last - first
    border, nearer = np.int64(0), np.float64(counts[0])
    while border + 1 < len(counts) and nearer * size < wanted * sampled:
        border += 1
        nearer += counts[border]
    return border


@njit(**LEAN)
def _weigh(bits: np.ndarray, rows: np.ndarray, sums: np.ndarray, out: np.ndarray) -> None:
    """Write the sums of the numbers of a query, int16 (bytes of a row, 256), that rows of bits choose."""
    for i in range(len(rows)):
        prefetch_row(bits, rows[min(i + _AHEAD, len(rows) - 1)])
        row, total = bits[rows[i]], np.int32(0)
        for word in range(len(row)):
            left = row[word]
            for byte in range(8):
                total = np.int32(total + np.int32(sums[8 * word + byte, left & np.uint64(255)]))
                left >>= np.uint64(8)
        out[i] = total


@njit(**LEAN)
def _sum_up(numbers: np.ndarray, sums: np.ndarray) -> None:
    """Fill ``sums``, int16 (bytes, 256): the sum of those of the eight numbers of each byte that its bits choose."""
    for byte in range(len(sums)):
        sums[byte, 0] = 0
        for bit in range(8):
            for low in range(1 << bit):
                place = 8 * byte + bit
                number = numbers[place] if place < len(numbers) else np.int16(0)
                sums[byte, (1 << bit) + low] = np.int16(sums[byte, low] + number)


def candidates(
    queries: np.ndarray, count: int, signs: Signs, rows: np.ndarray | None = None, threads: int = 1
) -> list[np.ndarray]:
    """Return, for each query, the rows that may be among the nearest; neither threads nor other queries change which.

    Queries are float32 (q, d), and ``rows`` int32, rising, to look at some only. So many as ``count`` are returned of each,
    int32, rising; fewer where there are no more.
    """
    words, out = signs.bits.shape[1], []
    centred = np.zeros((len(queries), 64 * words), bool)
    centred[:, : queries.shape[1]] = queries > signs.centre
    bits = np.packbits(centred, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
    sums = np.empty((8 * words, 256), np.int16)
    for start in range(0, len(queries), _TOGETHER):
        some = slice(start, start + _TOGETHER)
        for query, near in zip(queries[some], _nearest(bits[some], NEAR * count, signs, rows, threads), strict=True):
            if len(near) > count:
                largest_part = max(float(np.abs(query).max()), 1e-30)
                _sum_up(np.rint(query * np.float32(_LEVELS / largest_part)).astype(np.int16), sums)
                weights = np.empty(len(near), np.int32)
                _weigh(signs.bits, near, sums, weights)
                near = near[largest(weights, count)]
            out.append(near)
    return out


def _nearest(bits: np.ndarray, wanted: int, signs: Signs, rows: np.ndarray | None, threads: int) -> list[np.ndarray]:
    """Return, for each row of bits of a query, so many rows that differ least from it, rising."""
    some, size = _EVERY if rows is None else rows, len(signs.bits) if rows is None else len(rows)
    wanted, most = min(wanted, size), 64 * bits.shape[1]

    def work(start: int, stop: int, limits: list[int]) -> _Found:
        shape = len(bits), wanted + 2 * _CHUNK
        lists = np.empty(shape, np.int32), np.empty(shape, np.uint16)
        found = _Found(*lists, np.zeros(len(bits), np.int64), np.array(limits, np.int64))
        _scan(signs, bits, some, (start, stop), wanted, found, np.empty(_CHUNK, np.uint16), np.empty(most + 1, np.int64))
        return found

    room = np.empty(_GROUP, np.uint16), np.empty(most + 1, np.int64)
    limits = [int(_guess(signs, query, some, size, _GENEROUS * wanted, *room)) for query in bits]
    while True:
        parts = over_blocks(lambda a, b: work(a * _LANES, min(b * _LANES, size), limits), -(-size // _LANES), threads)  # noqa: B023
        missing = [q for q, limit in enumerate(limits) if limit < most and sum(part.counts[q] for part in parts) < wanted]
        if not missing:
            break
        limits = [most if q in missing else limit for q, limit in enumerate(limits)]
    return [_joined(parts, q, wanted) for q in range(len(bits))]


def _joined(parts: list[_Found], q: int, wanted: int) -> np.ndarray:
    """Return the nearest rows of all parts, rising."""
    near = np.concatenate([part.rows[q, : part.counts[q]] for part in parts])
    if len(parts) == 1 or len(near) <= wanted:
        return near
    distances = np.concatenate([part.distances[q, : part.counts[q]] for part in parts])
    return near[np.sort(np.argsort(distances, kind="stable")[:wanted])]
