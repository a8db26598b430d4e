"""Candidates for the nearest vectors, by one sign bit per dimension.

Of each vector the signs of its coordinates are kept, less their mean. The rows whose signs, as numbers 1 and -1, have the
largest inner products with a query are the candidates, which then are scored like any other rows. Nothing is trained, and
to add rows is to append blocks of them.

How much the signs of four dimensions take from the product is one of 16 small numbers, which a register holds: one
instruction looks up those of 16 or 32 rows, as in "Quicker ADC" (André, Kermarrec and Le Scouarnec, 2019). Only rows that
lose little by the first half of the dimensions are looked at further: half of the bits is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from xswe.io.compiler import LEAN, address_of, prefetch, trailing_zeros
from xswe.io.parallel import over_blocks

SIGNS = "first_signs", "second_signs"  # the arrays of an index
ROWS = 64  # rows of a block, of which a byte each is a line of memory
_GROUP = 32  # dimensions whose losses are added up in a byte
_BYTES, _TABLES = _GROUP // 8, _GROUP // 4  # of a group: bytes of a row, and tables of a query
_MOST = 255  # that a group can lose
_SAMPLED = 128  # blocks of a sample, at least
_SURE = 2.0  # deviations by which a sample's limit is meant to let in more rows than are wanted
_PASSING = 4096, 12  # rows that pass by the first half of their dimensions: a base, and as many per row that is wanted
_ROOM = 4096  # rows that are kept before the nearest of them are chosen, beside twice those that are wanted
_WAITING = 256  # rows that passed, and wait for memory
_TOGETHER = 8  # queries that share a pass over the blocks
_FEWEST = 1 << 10  # blocks of a thread: a tenth of a millisecond


class Signs(NamedTuple):
    """The sign bits of vectors."""

    first: np.ndarray  # uint8 (b, bytes, ROWS), of :func:`make_signs`
    second: np.ndarray  # uint8 (b * ROWS, bytes), as well
    centre: np.ndarray  # float32 (d,), what was taken off the vectors
    live: np.ndarray  # uint64, of :func:`live_bits`: which of all rows count


class _Found(NamedTuple):
    """Rows that lose little for queries, in rising order."""

    rows: np.ndarray  # int32 (q, room)
    losses: np.ndarray  # uint16 (q, room)
    counts: np.ndarray  # int64 (q,), how many there are of each query
    passed: np.ndarray  # int32 (q, _WAITING + ROWS), rows that passed by the first half
    passed_losses: np.ndarray  # uint16, of these
    passed_counts: np.ndarray  # int64 (q,)
    limits: np.ndarray  # int64 (q, 2), the largest losses, by the first half and in all, of a row that enters; -1 for none


def bytes_of(dim: int) -> int:
    """Return the bytes of each half of the dimensions of a row."""
    return -(-dim // (2 * _GROUP)) * _BYTES


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
    """Return a bit for each row that has a scale, uint64, zeros behind the last."""
    packed = np.packbits(scales == scales, bitorder="little")
    return np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)]).view("<u8").astype(np.uint64, copy=False)


def make_signs(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sign bits of what codes stand for, of whole blocks of rows.

    Returns of the first half of the dimensions, uint8 (b, bytes, ROWS): of each 32 rows the first 16 are at even places,
    the others at odd ones. Of the second half, uint8 (b * ROWS, bytes). The first of eight dimensions is the lowest bit.
    """
    size, blocks = bytes_of(codes.shape[1]), len(codes) // ROWS
    out = np.empty((blocks, size, ROWS), np.uint8), np.empty((blocks * ROWS, size), np.uint8)
    _sign(codes, scales, centre, *out)
    return out


@njit(**LEAN)
def _sign(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    """See :func:`make_signs`."""
    size = first.shape[1]
    for i in range(len(second)):
        place = i % ROWS // 32 * 32 + i % 32 // 16 + i % 16 * 2
        for byte in range(size + second.shape[1]):
            bits = np.int64(0)
            for j in range(8 * byte, min(8 * byte + 8, len(centre))):
                bits |= np.int64(np.float32(codes[i, j]) * scales[i] > centre[j]) << np.int64(j - 8 * byte)
            if byte < size:
                first[i // ROWS, byte, place] = np.uint8(bits)
            else:
                second[i, byte - size] = np.uint8(bits)


# Looking up a number for each of 32 rows: how depends on the processor.


_BYTE, _SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_TABLE, _PLACES, _SUMS = ir.VectorType(_BYTE, 16), ir.VectorType(_BYTE, 32), ir.VectorType(_SHORT, 16)
LookUp = Callable[[Any, Any, Any], Any]  # of a builder, a table and the places of 32 rows in it: their numbers


def _every(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def _order(builder: Any, vector: Any, other: Any, places: Iterable[int]) -> Any:
    order = [*places]
    return builder.shuffle_vector(vector, other, ir.Constant(ir.VectorType(_INT, len(order)), order))


def _look_up_by(name: str, rows: int) -> LookUp:
    """Return a look-up of the numbers of ``rows`` rows at a time by one instruction of the processor."""

    def look_up(builder: Any, table: Any, places: Any) -> Any:
        kind = ir.VectorType(_BYTE, rows)
        function = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind, kind]))
        own = _order(builder, table, table, [*range(16)] * (rows // 16))
        parts = [_order(builder, places, places, range(first, first + rows)) for first in range(0, 32, rows)]
        found = [builder.call(function, [own, part]) for part in parts]
        return found[0] if rows == 32 else _order(builder, found[0], found[1], range(32))

    return look_up


def _look_up_plainly(builder: Any, table: Any, places: Any) -> Any:
    found = ir.Constant(_PLACES, ir.Undefined)
    for row in range(32):
        number = builder.extract_element(table, builder.extract_element(places, _INT(row)))
        found = builder.insert_element(found, number, _INT(row))
    return found


LOOK_UPS: dict[str, LookUp] = {  # by the feature of a processor, the first that it has
    "avx2": _look_up_by("llvm.x86.avx2.pshuf.b", 32),
    "ssse3": _look_up_by("llvm.x86.ssse3.pshuf.b.128", 16),
    "neon": _look_up_by("llvm.aarch64.neon.tbl1.v16i8", 16),
    "": _look_up_plainly,
}


def look_up_of(context: Any) -> LookUp:
    """Return what looks up numbers on the processor that code is compiled for."""
    triple, _, features = context.codegen().magic_tuple()
    known = {"", *(feature[1:] for feature in features.split(",") if feature.startswith("+"))}
    if not triple.startswith(("aarch64", "arm64")):
        known.discard("neon")
    return next(look_up for feature, look_up in LOOK_UPS.items() if feature in known)


def emit_losses(builder: Any, arguments: Any, look_up: LookUp) -> Any:
    """Write what :func:`_lose` does."""
    rows, tables, groups, losses, limit = arguments

    def at(address: Any, place: Any, kind: Any) -> Any:
        return builder.inttoptr(builder.add(address, place), kind.as_pointer())

    parts = range(0, ROWS, 32)
    totals = [cgutils.alloca_once_value(builder, ir.Constant(_SUMS, None)) for _ in range(0, ROWS, 16)]
    with cgutils.for_range(builder, groups) as loop:
        line, table = (builder.mul(loop.index, _LONG(size)) for size in (_BYTES * ROWS, 16 * _TABLES))
        lost = [ir.Constant(_PLACES, None) for _ in parts]
        for byte in range(_BYTES):
            both = [builder.add(table, _LONG(16 * number)) for number in (2 * byte, 2 * byte + 1)]
            low, high = (builder.load(at(tables, place, _TABLE), align=1) for place in both)
            for part, start in enumerate(parts):
                own = builder.load(at(rows, builder.add(line, _LONG(byte * ROWS + start)), _PLACES), align=1)
                shifted = builder.bitcast(builder.lshr(builder.bitcast(own, _SUMS), _every(_SUMS, 4)), _PLACES)
                for numbers, four in ((low, own), (high, shifted)):
                    found = look_up(builder, numbers, builder.and_(four, _every(_PLACES, 15)))
                    lost[part] = builder.add(lost[part], found)
        for part, found in enumerate(lost):
            pairs = builder.bitcast(found, _SUMS)
            halves = builder.and_(pairs, _every(_SUMS, 255)), builder.lshr(pairs, _every(_SUMS, 8))
            for total, more in zip(totals[2 * part : 2 * part + 2], halves, strict=True):
                builder.store(builder.add(builder.load(total), more), total)
    sums, near = [builder.load(total) for total in totals], _LONG(0)
    for number, own in enumerate(sums):
        builder.store(own, at(losses, _LONG(32 * number), _SUMS), align=2)
    for part, start in enumerate(parts):
        own = _order(builder, sums[2 * part], sums[2 * part + 1], range(32))
        one = builder.insert_element(ir.Constant(own.type, ir.Undefined), limit, _INT(0))
        mask = builder.bitcast(builder.icmp_unsigned("<=", own, _order(builder, one, one, [0] * 32)), _INT)
        near = builder.or_(near, builder.shl(builder.zext(mask, _LONG), _LONG(start)))
    return near


@intrinsic
def _lose(_: Any, rows: Any, tables: Any, groups: Any, losses: Any, limit: Any) -> Any:
    """Write what the rows of a block lose by its groups of dimensions, uint16 (ROWS,), given addresses and a limit.

    Returns a bit for each row that does not lose more than the limit.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return emit_losses(builder, arguments, look_up_of(context))

    return types.uint64(types.uintp, types.uintp, types.intp, types.uintp, types.uint16), generate


@intrinsic
def _lose_one(_: Any, row: Any, bits: Any, groups: Any) -> Any:
    """Return what one row loses by groups of its bits, given addresses of these and of :attr:`Tables.bits`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, bits, groups = arguments

        def load(address: Any, step: int, kind: Any) -> Any:
            place = builder.add(address, builder.mul(loop.index, _LONG(step)))
            return builder.load(builder.inttoptr(place, kind.as_pointer()), align=1)

        total = cgutils.alloca_once_value(builder, ir.Constant(_SUMS, None))
        with cgutils.for_range(builder, groups) as loop:
            own = builder.bitcast(load(row, _BYTES, _INT), ir.VectorType(ir.IntType(1), _GROUP))
            zero, one = (load(builder.add(bits, _LONG(first)), 2 * _GROUP, _PLACES) for first in (0, _GROUP))
            pairs = builder.bitcast(builder.select(own, one, zero), _SUMS)
            halves = builder.and_(pairs, _every(_SUMS, 255)), builder.lshr(pairs, _every(_SUMS, 8))
            builder.store(builder.add(builder.load(total), builder.add(*halves)), total)
        add = builder.module.declare_intrinsic("llvm.vector.reduce.add.v16i16", (), ir.FunctionType(_SHORT, [_SUMS]))
        return builder.call(add, [builder.load(total)])

    return types.uint16(types.uintp, types.uintp, types.intp), generate


class Tables(NamedTuple):
    """Tables of what signs of dimensions take from the products with queries.

    All that a row loses is the same multiple of what its product falls short of the largest possible, up to rounding.
    """

    fours: np.ndarray  # uint8 (q, 2 * bytes, 16), by the low and by the high four bits of each byte of the first half
    bits: np.ndarray  # uint8 (q, groups, 2, _GROUP), by the bits of the second half: of a group where they are 0, and 1


def tables_of(queries: np.ndarray) -> Tables:
    """Return the tables of float32 (q, d) queries."""
    count, size = len(queries), bytes_of(queries.shape[1])
    tables = Tables(np.empty((count, 2 * size, 16), np.uint8), np.zeros((count, size // _BYTES, 2, _GROUP), np.uint8))
    _tabulate(np.ascontiguousarray(queries), tables)
    return tables


@njit(**LEAN)
def _tabulate(queries: np.ndarray, tables: Tables) -> None:
    """See :func:`tables_of`."""
    dim, half = queries.shape[1], _GROUP * tables.bits.shape[1]
    for q in range(len(queries)):
        most = np.float32(1e-30)
        for first in range(0, dim, _GROUP):
            total = np.float32(0.0)
            for j in range(first, min(first + _GROUP, dim)):
                total += abs(queries[q, j])
            most = max(most, total)
        step = np.float32(_MOST - _GROUP // 2) / most
        for table in range(half // 4):
            _add_bits(queries[q], 4 * table, step, tables.fours[q, table])
        for j in range(half, dim):
            number, group, place = queries[q, j], (j - half) // _GROUP, (j - half) % _GROUP
            tables.bits[q, group, 0 if number > 0 else 1, place] = np.uint8(np.rint(abs(number) * step))


@njit(**LEAN)
def _add_bits(query: np.ndarray, first: np.int64, step: np.float32, out: np.ndarray) -> None:
    """Fill ``out`` with what four dimensions take, by their signs; a step times what they are, rounded."""
    out[0] = 0
    for bit in range(4):
        number = query[first + bit] if first + bit < len(query) else np.float32(0.0)
        loss = np.int64(np.rint(abs(number) * step))
        for low in range(1 << bit):
            others = np.int64(out[low])
            out[low] = others + loss if number > 0 else others
            out[low + (1 << bit)] = others if number > 0 else others + loss


@njit(**LEAN)
def _keep_nearest(found: _Found, q: int, wanted: int, counts: np.ndarray) -> None:
    """Keep the ``wanted`` rows of a query with the least loss, of equal ones the first."""
    counts[:] = 0
    for i in range(found.counts[q]):
        counts[found.losses[q, i]] += 1
    nearer, border = np.int64(0), np.int64(0)
    while nearer + counts[border] < wanted:
        nearer += counts[border]
        border += 1
    at_border, kept = wanted - nearer, np.int64(0)
    for i in range(found.counts[q]):
        loss = found.losses[q, i]
        if loss > border or (loss == border and at_border == 0):
            continue
        if loss == border:
            at_border -= 1
        found.rows[q, kept], found.losses[q, kept] = found.rows[q, i], loss
        kept += 1
    found.counts[q], found.limits[q, 1] = kept, border - 1  # a later row at the border is behind those that are kept


@njit(**LEAN)
def _look_further(signs: Signs, tables: Tables, q: int, wanted: int, found: _Found, counts: np.ndarray) -> None:
    """Take of the rows that wait those within the limits by all dimensions."""
    if found.counts[q] + found.passed_counts[q] > found.rows.shape[1]:
        _keep_nearest(found, q, wanted, counts)
    limit, count, groups = found.limits[q, 1], found.counts[q], tables.bits.shape[1]
    for i in range(found.passed_counts[q]):
        row = np.int64(found.passed[q, i])
        places = address_of(signs.second, row * groups * _BYTES), address_of(tables.bits, q * groups * 2 * _GROUP)
        loss = np.int64(found.passed_losses[q, i]) + np.int64(_lose_one(places[0], places[1], groups))
        if loss <= limit:
            found.rows[q, count], found.losses[q, count] = row, loss
            count += 1
    found.counts[q], found.passed_counts[q] = count, 0


@njit(**LEAN)
def _scan(
    signs: Signs,
    live: np.ndarray,
    tables: Tables,
    bounds: tuple[int, int],
    wanted: int,
    found: _Found,
    losses: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Find the ``wanted`` rows between two blocks that lose least for each query, unless the limits leave out some."""
    first, size = signs.first, signs.first.shape[1]
    for block in range(bounds[0], bounds[1]):
        if live[block] == 0:
            continue
        for q in range(len(tables.fours)):
            places = address_of(first, block * size * ROWS), address_of(tables.fours, q * size * 32)
            limit = np.uint16(found.limits[q, 0])
            near = live[block] & _lose(places[0], places[1], size // _BYTES, address_of(losses, 0), limit)
            if near == 0:
                continue
            count = found.passed_counts[q]
            while near:
                place = np.int64(trailing_zeros(near))
                near &= near - np.uint64(1)
                row = block * ROWS + place
                prefetch(signs.second, row * signs.second.shape[1])
                found.passed[q, count], found.passed_losses[q, count] = row, losses[place]
                count += 1
            found.passed_counts[q] = count
            if count >= _WAITING:
                _look_further(signs, tables, q, wanted, found, counts)
    for q in range(len(tables.fours)):
        _look_further(signs, tables, q, wanted, found, counts)
        if found.counts[q] > wanted:
            _keep_nearest(found, q, wanted, counts)


@njit(**LEAN)
def _guess(
    signs: Signs,
    live: np.ndarray,
    tables: Tables,
    step: int,
    shares: tuple[float, float],
    limits: np.ndarray,
    losses: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Fill ``limits`` with losses, by the first half and in all, that at least so large shares of the rows do not exceed.

    They are of a sample, each ``step``-th block; where that is too small to tell, all rows are within.
    """
    first, size = signs.first, signs.first.shape[1]
    for q in range(len(tables.fours)):
        sampled = np.int64(0)
        for half in range(2):  # in all, only the rows that pass by the first half are looked at
            counts[:] = 0
            for block in range(0, len(first), step):
                places = address_of(first, block * size * ROWS), address_of(tables.fours, q * size * 32)
                limit = np.uint16(65_535 if half == 0 else limits[q, 0])
                near = live[block] & _lose(places[0], places[1], size // _BYTES, address_of(losses, 0), limit)
                while near:
                    place = np.int64(trailing_zeros(near))
                    near &= near - np.uint64(1)
                    loss = np.int64(losses[place])
                    if half == 1:
                        own, groups = (block * ROWS + place) * size, size // _BYTES
                        bits = address_of(tables.bits, q * groups * 2 * _GROUP)
                        loss += np.int64(_lose_one(address_of(signs.second, own), bits, groups))
                    counts[loss] += 1
                    sampled += 1 - half
            limits[q, half] = _quantile(counts, shares[half] * sampled)


@njit(**LEAN)
def _quantile(counts: np.ndarray, expected: float) -> int:
    """Return the least loss within which ``expected`` rows, with a margin, were counted."""
    nearer, rank = np.int64(0), expected + _SURE * np.sqrt(expected + 1.0)
    for border in range(len(counts)):
        nearer += counts[border]
        if nearer >= rank:
            return border
    return len(counts) - 1


@njit(**LEAN)
def _mark(rows: np.ndarray, live: np.ndarray, out: np.ndarray) -> None:
    """Set the bits of those of the rows that count."""
    for row in rows:
        out[row // ROWS] |= live[row // ROWS] & (np.uint64(1) << np.uint64(row % ROWS))


def candidates(
    queries: np.ndarray, count: int, signs: Signs, rows: np.ndarray | None = None, threads: int = 1
) -> list[np.ndarray]:
    """Return, for each query, the rows that may be among the nearest; neither threads nor other queries change which.

    Queries are float32 (q, d), and ``rows`` int32, rising, to look at some only. So many as ``count`` are returned of each,
    int32, rising, and those behind the last block; fewer where there are no more.
    """
    live, out = signs.live, list[np.ndarray]()
    if rows is not None:
        live = np.zeros_like(signs.live)
        _mark(rows, signs.live, live)
    blocks = len(signs.first)
    last = np.unpackbits(live[blocks:].astype("<u8").view(np.uint8), bitorder="little")
    rest = (blocks * ROWS + np.flatnonzero(last)).astype(np.int32)
    looked_at = max(1, blocks * ROWS if rows is None else len(rows))
    shares = (_PASSING[0] + _PASSING[1] * count) / looked_at, count / looked_at
    for start in range(0, len(queries), _TOGETHER):
        near = _nearest(tables_of(queries[start : start + _TOGETHER]), count, shares, signs, live, threads)
        out += [np.concatenate([one, rest]) for one in near]
    return out


def _nearest(
    tables: Tables, wanted: int, shares: tuple[float, float], signs: Signs, live: np.ndarray, threads: int
) -> list[np.ndarray]:
    """Return the rows of each query with the least loss, ascending; see :func:`_guess` for the shares."""
    blocks, (queries, groups, *_) = len(signs.first), tables.bits.shape
    most, wanted = 2 * groups * _MOST, min(wanted, blocks * ROWS)
    limits = np.empty((queries, 2), np.int64)
    room = np.empty(ROWS, np.uint16), np.empty(most + 1, np.int64)
    _guess(signs, live, tables, max(1, blocks // _SAMPLED), shares, limits, *room)

    def work(start: int, stop: int) -> _Found:
        lists = [(np.empty((queries, size), np.int32), np.empty((queries, size), np.uint16)) for size in _sizes(wanted)]
        counts = np.zeros((2, queries), np.int64)
        found = _Found(*lists[0], counts[0], *lists[1], counts[1], limits.copy())
        room = np.empty(ROWS, np.uint16), np.empty(most + 1, np.int64)
        _scan(signs, live, tables, (start, stop), wanted, found, *room)
        return found

    while True:
        parts = over_blocks(work, blocks, threads, _FEWEST)
        found = np.sum([part.counts for part in parts], axis=0)
        missing = (found < wanted) & (limits < most).any(axis=1)
        if not missing.any():
            break
        limits[missing] = most
    return [_joined(parts, q, wanted) for q in range(queries)]


def _sizes(wanted: int) -> tuple[int, int]:
    """Return how many rows there is room for, of those that are found and of those that wait."""
    return 2 * wanted + _ROOM, _WAITING + ROWS


def _joined(parts: list[_Found], q: int, wanted: int) -> np.ndarray:
    """Return the rows of all parts that lose least, rising."""
    near = np.concatenate([part.rows[q, : part.counts[q]] for part in parts])
    if len(parts) == 1 or len(near) <= wanted:
        return near
    losses = np.concatenate([part.losses[q, : part.counts[q]] for part in parts])
    return near[np.sort(np.argsort(losses, kind="stable")[:wanted])]
