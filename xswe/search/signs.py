"""Candidates for the nearest vectors, by one sign bit per dimension.

Of each vector the signs of its coordinates are kept, less their mean. The rows whose signs, as numbers 1 and -1, have the
largest inner products with a query are the candidates, which then are scored like any other rows. Nothing is trained, and
to add rows is to append blocks of them.

How much the signs of four dimensions take from the product is one of 16 small numbers, which a register holds: one
instruction looks up those of 16 or 32 rows, as in "Quicker ADC" (André, Kermarrec and Le Scouarnec, 2019). Every four
dimensions of a block of rows have a page of memory of their own, so that for each query those are read that count most for
it: three eighths of the dimensions, that make up some six tenths of its square. Only of rows that lose little by these all
bits are looked at.
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
from xswe.io.ragged import read_only

SIGNS = "sign_pages", "sign_rows"  # the arrays of an index
_PAGE = 4096  # bytes
ROWS = 2 * _PAGE  # rows of a block, of which four dimensions are half a byte each
_WORD = 64  # rows that have their bits in one number
_GROUP = 32  # dimensions whose losses are added up in a byte
_BYTES = _GROUP // 8  # of a group
_MOST = 255  # that a group can lose, and all that is looked at first
_FIRST = 3 / 8  # of the dimensions are looked at first
_TABLES = 8  # that are looked up together
_SAMPLED = 128  # words of a sample, at least
_SURE = 2.0  # deviations by which a sample's limit is meant to let in more rows than are wanted
_PASSING = 1536, 6  # rows of which all bits are looked at: a base, and as many per row that is wanted
_ROOM = 4096  # rows that are kept before the nearest of them are chosen, beside twice those that are wanted
_WAITING = 256  # rows that passed, and wait for memory
_TOGETHER = 8  # queries that share a pass over the blocks
_FEWEST = 8  # blocks of a thread: a tenth of a millisecond


class Signs(NamedTuple):
    """The sign bits of vectors."""

    pages: np.ndarray  # uint8 (b, 2 * bytes, _PAGE), of :func:`pages_of`: the whole blocks of rows
    last: np.ndarray  # uint8 (0 or 1, 2 * bytes, _PAGE), the rows behind them
    rows: np.ndarray  # uint8 (n, bytes), of :func:`make_signs`
    live: np.ndarray  # uint64, of :func:`live_bits`: which of the rows count


class Tables(NamedTuple):
    """What signs of dimensions take from the products with queries, and which of them are looked at first.

    All that a row loses is the same multiple of what its product falls short of the largest possible, up to rounding.
    """

    first: np.ndarray  # int64 (q, fours), where in a block the pages are that are looked at first
    fours: np.ndarray  # uint8 (q, fours, 16), by the bits of these; up to ``_MOST``
    bits: np.ndarray  # uint8 (q, groups, 2, _GROUP), by all bits: of a group where they are 0, and 1


class _Found(NamedTuple):
    """Rows that lose little for queries, in rising order."""

    rows: np.ndarray  # int32 (q, room)
    losses: np.ndarray  # uint16 (q, room)
    counts: np.ndarray  # int64 (q,), how many there are of each query


def bytes_of(dim: int) -> int:
    """Return the bytes of a row."""
    return -(-dim // _GROUP) * _BYTES


def pages_shape(dim: int) -> tuple[int, int]:
    """Return the shape of the pages of a block."""
    return 2 * bytes_of(dim), _PAGE


def centre_of(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the mean of the vectors that codes stand for, float32 (d,); see :func:`xswe.search.kernels.make_codes`."""
    total = np.zeros(codes.shape[1], np.float64)
    count = _add_up(read_only(codes), read_only(scales), total)
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


def make_signs(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the sign bits of what codes stand for, uint8 (n, bytes); the first dimension is the lowest bit."""
    out = np.empty((len(codes), bytes_of(codes.shape[1])), np.uint8)
    _sign(read_only(codes), read_only(scales), read_only(centre), out)
    return out


@njit(**LEAN)
def _sign(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray, out: np.ndarray) -> None:
    """See :func:`make_signs`."""
    for i in range(len(out)):
        for byte in range(out.shape[1]):
            bits = np.int64(0)
            for j in range(8 * byte, min(8 * byte + 8, len(centre))):
                bits |= np.int64(np.float32(codes[i, j]) * scales[i] > centre[j]) << np.int64(j - 8 * byte)
            out[i, byte] = np.uint8(bits)


def pages_of(rows: np.ndarray) -> np.ndarray:
    """Return the bits of rows, uint8 (n, bytes), by four dimensions: uint8 (b, 2 * bytes, _PAGE).

    Of each 128 rows the first half are the low bits of 64 bytes, and the others the high ones; the last block is filled up
    with zeros.
    """
    out = np.zeros((-(-len(rows) // ROWS), 2 * rows.shape[1], _PAGE), np.uint8)
    _arrange(read_only(rows), out)
    return out


@njit(**LEAN)
def _arrange(rows: np.ndarray, out: np.ndarray) -> None:
    """See :func:`pages_of`; the rows of a block lie in a cache while its pages are written one after the other."""
    for block in range(len(out)):
        for byte in range(rows.shape[1]):
            for place in range(_PAGE):
                row = block * ROWS + place // _WORD * 2 * _WORD + place % _WORD
                if row - place % _WORD >= len(rows):
                    break
                low = rows[row, byte] if row < len(rows) else np.uint8(0)
                high = rows[row + _WORD, byte] if row + _WORD < len(rows) else np.uint8(0)
                out[block, 2 * byte, place] = np.uint8(low & 15) | np.uint8(high << 4)
                out[block, 2 * byte + 1, place] = np.uint8(low >> 4) | np.uint8(high & 240)


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


def emit_losses(builder: Any, arguments: Any, look_up: LookUp) -> None:
    """Write what :func:`_lose` does."""
    block, first, tables, losses = arguments

    def at(address: Any, place: Any, kind: Any) -> Any:
        return builder.inttoptr(builder.add(address, place), kind.as_pointer())

    add = builder.module.declare_intrinsic("llvm.uadd.sat.v32i8", (), ir.FunctionType(_PLACES, [_PLACES, _PLACES]))
    numbers = [_LONG(number) for number in range(_TABLES)]
    pages = [builder.add(block, builder.load(at(first, builder.mul(_LONG(8), one), _LONG), align=8)) for one in numbers]
    held = [builder.load(at(tables, builder.mul(_LONG(16), one), _TABLE), align=1) for one in numbers]
    with cgutils.for_range(builder, _LONG(_PAGE // 32)) as loop:
        line, part = builder.mul(loop.index, _LONG(32)), builder.and_(loop.index, _LONG(1))
        low = builder.sub(builder.mul(line, _LONG(2)), builder.mul(part, _LONG(32)))
        places = [at(losses, builder.add(low, _LONG(half * _WORD)), _PLACES) for half in range(2)]
        totals = [builder.load(place, align=1) for place in places]
        for page, table in zip(pages, held, strict=True):
            own = builder.load(at(page, line, _PLACES), align=1)
            shifted = builder.bitcast(builder.lshr(builder.bitcast(own, _SUMS), _every(_SUMS, 4)), _PLACES)
            for half, four in enumerate((own, shifted)):
                found = look_up(builder, table, builder.and_(four, _every(_PLACES, 15)))
                totals[half] = builder.call(add, [totals[half], found])
        for total, place in zip(totals, places, strict=True):
            builder.store(total, place, align=1)


@intrinsic
def _lose(_: Any, block: Any, first: Any, tables: Any, losses: Any) -> Any:
    """Add what the rows of a block lose by ``_TABLES`` tables to their losses, uint8 (ROWS,), up to ``_MOST``.

    Given are addresses; ``first`` is of the pages' places in the block.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit_losses(builder, arguments, look_up_of(context))
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), generate


@intrinsic
def _within(_: Any, losses: Any, limit: Any) -> Any:
    """Return a bit for each row of a word that does not lose more than a limit, given the address of their losses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(_BYTE, _WORD)
        own = builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[1], _INT(0))
        return builder.bitcast(builder.icmp_unsigned("<=", own, _order(builder, one, one, [0] * _WORD)), _LONG)

    return types.uint64(types.uintp, types.uint8), generate


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


def tables_of(queries: np.ndarray) -> Tables:
    """Return the tables of float32 (q, d) queries."""
    count, size = len(queries), bytes_of(queries.shape[1])
    fours = max(1, round(_FIRST * 2 * size / _TABLES)) * _TABLES
    first, tables = np.empty((count, fours), np.int64), np.empty((count, fours, 16), np.uint8)
    bits, squares = np.zeros((count, size // _BYTES, 2, _GROUP), np.uint8), np.empty(2 * size, np.float32)
    _tabulate(np.ascontiguousarray(queries), first, tables, bits, squares)
    return Tables(first, tables, bits)


@njit(**LEAN)
def _tabulate(queries: np.ndarray, first: np.ndarray, tables: np.ndarray, bits: np.ndarray, squares: np.ndarray) -> None:
    """See :func:`tables_of`."""
    dim = queries.shape[1]
    for q in range(len(queries)):
        query, most = queries[q], np.float32(1e-30)
        for start in range(0, dim, _GROUP):
            total = np.float32(0.0)
            for j in range(start, min(start + _GROUP, dim)):
                total += abs(query[j])
            most = max(most, total)
        step = np.float32(_MOST - _GROUP // 2) / most
        for j in range(dim):
            bits[q, j // _GROUP, 0 if query[j] > 0 else 1, j % _GROUP] = np.uint8(np.rint(abs(query[j]) * step))
        squares[:] = np.float32(0.0)
        for j in range(dim):
            squares[j // 4] += query[j] * query[j]
        most = np.float32(1e-30)
        for place in range(first.shape[1]):
            largest = 0
            for four in range(len(squares)):
                if squares[four] > squares[largest]:
                    largest = four
            squares[largest], first[q, place] = np.float32(-1.0), largest * _PAGE
            for j in range(4 * largest, min(4 * largest + 4, dim)):
                most += abs(query[j])
        step = np.float32(2 * _MOST) / most  # half of the rows lose more than can be told
        for place in range(first.shape[1]):
            _add_bits(query, 4 * (first[q, place] // _PAGE), step, tables[q, place])


@njit(**LEAN)
def _add_bits(query: np.ndarray, first: int, step: np.float32, out: np.ndarray) -> None:
    """Fill ``out`` with what four dimensions take, by their signs; a step times what they are, rounded."""
    for signs in range(16):
        total = np.float32(0.0)
        for j in range(first, min(first + 4, len(query))):
            if (query[j] > 0) != (signs >> (j - first) & 1 > 0):
                total += abs(query[j])
        out[signs] = np.uint8(min(np.rint(total * step), np.float32(_MOST)))


@njit(**LEAN)
def _keep_nearest(kept: np.ndarray, losses: np.ndarray, count: int, wanted: int, room: np.ndarray) -> int:
    """Keep the ``wanted`` of so many rows with the least loss, of equal ones the first; returns the largest."""
    room[:] = 0
    for i in range(count):
        room[losses[i]] += 1
    nearer, border = np.int64(0), 0
    while nearer + room[border] < wanted:
        nearer += room[border]
        border += 1
    at_border, place = wanted - nearer, np.int64(0)
    for i in range(count):
        loss = losses[i]
        if loss > border or (loss == border and at_border == 0):
            continue
        if loss == border:
            at_border -= 1
        kept[place], losses[place] = kept[i], loss
        place += 1
    return border


@njit(**LEAN)
def _scan(
    pages: np.ndarray,
    last: np.ndarray,
    live: np.ndarray,
    first: np.ndarray,
    tables: np.ndarray,
    start: int,
    stop: int,
    losses: np.ndarray,
) -> None:
    """Fill in what the rows between two blocks lose by the dimensions that are looked at first, uint8 (q, b * ROWS)."""
    size, fours, words = pages.shape[1] * _PAGE, first.shape[1], ROWS // _WORD
    for block in range(start, stop):
        any_live = np.uint64(0)
        for word in range(block * words, min((block + 1) * words, len(live))):
            any_live |= live[word]
        if any_live == 0:
            continue
        place = address_of(pages, block * size) if block < len(pages) else address_of(last, 0)
        for q in range(len(first)):
            own = losses[q, block * ROWS : (block + 1) * ROWS]
            for i in range(ROWS):
                own[i] = 0
            for four in range(q * fours, (q + 1) * fours, _TABLES):
                _lose(place, address_of(first, four), address_of(tables, 16 * four), address_of(own, 0))


@njit(**LEAN)
def _guess(losses: np.ndarray, live: np.ndarray, step: int, share: float, limits: np.ndarray, room: np.ndarray) -> None:
    """Fill ``limits``, int64 (q,), with losses that at least such a share of the rows does not exceed.

    They are of a sample, each ``step``-th word of rows; where that is too small to tell, all rows are within.
    """
    for q in range(len(losses)):
        room[: _MOST + 1] = 0
        sampled = np.int64(0)
        for word in range(0, len(live), step):
            left = live[word]
            while left:
                room[losses[q, word * _WORD + np.int64(trailing_zeros(left))]] += 1
                left &= left - np.uint64(1)
                sampled += 1
        nearer, border, expected = room[0], np.int64(0), share * sampled
        while border < _MOST and nearer < expected + _SURE * np.sqrt(expected + 1.0):
            border += 1
            nearer += room[border]
        limits[q] = border


@njit(**LEAN)
def _select(
    losses: np.ndarray,
    live: np.ndarray,
    rows: np.ndarray,
    bits: np.ndarray,
    start: int,
    stop: int,
    wanted: int,
    limits: np.ndarray,
    kept: np.ndarray,
    kept_losses: np.ndarray,
    counts: np.ndarray,
    waiting: np.ndarray,
    room: np.ndarray,
) -> None:
    """Find the ``wanted`` rows between two words that lose least for each query, of those within the limits at first."""
    groups = bits.shape[1]
    for q in range(len(losses)):
        own, own_losses, count, passed, limit = kept[q], kept_losses[q], np.int64(0), 0, len(room)
        for word in range(start, stop):
            left = live[word] & _within(address_of(losses, q * losses.shape[1] + word * _WORD), np.uint8(limits[q]))
            while left:
                row = word * _WORD + np.int64(trailing_zeros(left))
                left &= left - np.uint64(1)
                prefetch(rows, row * rows.shape[1])
                waiting[passed] = row
                passed += 1
            if passed < _WAITING and word + 1 < stop:
                continue
            if count + passed > len(own):  # a later row at the border is behind those that are kept
                limit, count = _keep_nearest(own, own_losses, count, wanted, room) - 1, np.int64(wanted)
            for i in range(passed):
                row = np.int64(waiting[i])
                places = address_of(rows, row * groups * _BYTES), address_of(bits, q * groups * 2 * _GROUP)
                loss = np.int64(_lose_one(places[0], places[1], groups))
                if loss <= limit:
                    own[count], own_losses[count] = row, loss
                    count += 1
            passed = 0
        if count > wanted:
            _keep_nearest(own, own_losses, count, wanted, room)
        counts[q] = min(count, wanted)


@njit(**LEAN)
def _mark(rows: np.ndarray, live: np.ndarray, out: np.ndarray) -> None:
    """Set the bits of those of the rows that count."""
    for row in rows:
        out[row // _WORD] |= live[row // _WORD] & (np.uint64(1) << np.uint64(row % _WORD))


def candidates(
    queries: np.ndarray, count: int, signs: Signs, rows: np.ndarray | None = None, threads: int = 1
) -> list[np.ndarray]:
    """Return, for each query, the rows that may be among the nearest; neither threads nor other queries change which.

    Queries are float32 (q, d), and ``rows`` int32, rising, to look at some only. So many as ``count`` are returned of each,
    int32, rising; fewer where there are no more.
    """
    if rows is not None:
        live = np.zeros_like(signs.live)
        _mark(rows, signs.live, live)
        signs = signs._replace(live=live)
    share = (_PASSING[0] + _PASSING[1] * count) / max(1, len(signs.rows) if rows is None else len(rows))
    out = list[np.ndarray]()
    for start in range(0, len(queries), _TOGETHER):
        out += _nearest(tables_of(queries[start : start + _TOGETHER]), count, share, signs, threads)
    return out


def _nearest(tables: Tables, wanted: int, share: float, signs: Signs, threads: int) -> list[np.ndarray]:
    """Return the rows of each query with the least loss, ascending, of about such a share that lose least at first."""
    pages, last, rows, live = read_only(signs.pages), signs.last, read_only(signs.rows), signs.live
    blocks, words, (queries, groups, *_) = len(pages) + len(last), ROWS // _WORD, tables.bits.shape
    losses, limits = np.empty((queries, blocks * ROWS), np.uint8), np.empty(queries, np.int64)
    most, wanted = groups * _MOST, min(wanted, len(rows))

    def scan(start: int, stop: int) -> None:
        _scan(pages, last, live, tables.first, tables.fours, start, stop, losses)

    def select(start: int, stop: int) -> _Found:
        size, counts = (queries, 2 * wanted + _ROOM), np.zeros(queries, np.int64)
        found = _Found(np.empty(size, np.int32), np.empty(size, np.uint16), counts)
        room = np.empty(_WAITING + _WORD, np.int32), np.empty(most + 1, np.int64)
        ends = start * words, min(stop * words, len(live))
        _select(losses, live, rows, tables.bits, *ends, wanted, limits, *found, *room)
        return found

    over_blocks(scan, blocks, threads, _FEWEST)
    _guess(losses, live, max(1, len(live) // _SAMPLED), share, limits, np.empty(_MOST + 1, np.int64))
    while True:
        parts = over_blocks(select, blocks, threads, _FEWEST)
        missing = [
            q for q, most in enumerate(limits.tolist()) if most < _MOST and sum(part.counts[q] for part in parts) < wanted
        ]
        if not missing:
            return [_joined(parts, q, wanted) for q in range(queries)]
        limits[missing] = _MOST


def _joined(parts: list[_Found], q: int, wanted: int) -> np.ndarray:
    """Return the rows of all parts that lose least, rising."""
    near = np.concatenate([part.rows[q, : part.counts[q]] for part in parts])
    if len(parts) == 1 or len(near) <= wanted:
        return near
    losses = np.concatenate([part.losses[q, : part.counts[q]] for part in parts])
    return near[np.sort(np.argsort(losses, kind="stable")[:wanted])]
