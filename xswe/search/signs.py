"""Candidates for the nearest vectors, by one sign bit per dimension.

For each vector we keep the signs of its coordinates after subtracting the mean. The candidates are the rows whose signs,
read as 1 and -1, have the largest inner products with the query; they are then scored like any other rows. Nothing is
trained, and adding rows means appending blocks.

The loss of a row is what its wrong signs take from the largest possible product. For four dimensions it is one of 16 small
numbers, which fit a register: one instruction looks it up for 16 or 32 rows, as in "Quicker ADC" (André, Kermarrec and Le
Scouarnec, 2019). Every four dimensions of a block of rows have their own page of memory, so each query reads only the pages
that matter most to it: three eighths of the dimensions, which make up some six tenths of its squared norm. All bits are
read only for rows that lose little by these.
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

SIGNS = "sign_pages", "sign_rows"  # arrays of an index
_PAGE = 4096  # bytes
ROWS = 2 * _PAGE  # rows of a block; four dimensions of a row take half a byte
_WORD = 64  # rows per word, which holds a bit for each
_GROUP = 32  # dimensions whose total loss fits a byte
_GROUP_BYTES = _GROUP // 8  # bytes per group
_MAX_LOSS = 255  # maximum loss of a group, and of all dimensions that are read first
_FIRST_SHARE = 3 / 8  # share of the dimensions read first
_JOINT_TABLES = 8  # tables looked up together
_MIN_SAMPLE = 128  # minimum words of a sample
_SAFETY = 2.0  # standard deviations by which a limit from a sample admits more rows than are wanted
_PASSING = 1536, 6  # rows whose bits are all read: a constant, plus a number per row wanted
_BUFFERED_ROWS = 4096  # rows buffered before the nearest are selected, in addition to twice the rows wanted
_PREFETCHED_ROWS = 256  # rows that passed, waiting for prefetched memory
_PASS_QUERIES = 8  # queries per pass over the blocks
_MIN_THREAD_BLOCKS = 8  # minimum blocks per thread: a tenth of a millisecond


class Signs(NamedTuple):
    """The sign bits of vectors."""

    pages: np.ndarray  # uint8 (b, 2 * bytes, _PAGE), see :func:`pages_of`: the full blocks of rows
    last: np.ndarray  # uint8 (0 or 1, 2 * bytes, _PAGE), the rows after them
    rows: np.ndarray  # uint8 (n, bytes), see :func:`make_signs`
    live: np.ndarray  # uint64, see :func:`live_bits`: which rows count


class Tables(NamedTuple):
    """The losses that signs cause in the products with queries, and which dimensions are read first.

    A row's total loss is proportional to the shortfall of its product from the largest possible, up to rounding.
    """

    first: np.ndarray  # int64 (q, fours), offsets in a block of the pages read first
    fours: np.ndarray  # uint8 (q, fours, 16), their losses by the four bits, up to ``_MAX_LOSS``
    bits: np.ndarray  # uint8 (q, groups, 2, _GROUP), the losses of all bits: where they are 0, and where 1


class _Found(NamedTuple):
    """Rows with small losses for each query, in ascending order."""

    rows: np.ndarray  # int32 (q, room)
    losses: np.ndarray  # uint16 (q, room)
    counts: np.ndarray  # int64 (q,), number of rows for each query


def bytes_of(dim: int) -> int:
    """Return the number of bytes per row."""
    return -(-dim // _GROUP) * _GROUP_BYTES


def pages_shape(dim: int) -> tuple[int, int]:
    """Return the shape of the pages of a block."""
    return 2 * bytes_of(dim), _PAGE


def centre_of(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the mean of the vectors that codes represent, float32 (d,); see :func:`xswe.search.kernels.make_codes`."""
    total = np.zeros(codes.shape[1], np.float64)
    count = _add_up(read_only(codes), read_only(scales), total)
    return (total / max(count, 1)).astype(np.float32)


@njit(**LEAN)
def _add_up(codes: np.ndarray, scales: np.ndarray, total: np.ndarray) -> int:
    """Add the rows that have a scale to ``total``, in order, and return their number."""
    count = 0
    for i in range(len(codes)):
        if scales[i] == scales[i]:
            count += 1
            for j in range(len(total)):
                total[j] += np.float64(codes[i, j]) * np.float64(scales[i])
    return count


def live_bits(scales: np.ndarray) -> np.ndarray:
    """Return bits that are set for rows with a scale, uint64, padded with zeros."""
    packed = np.packbits(scales == scales, bitorder="little")
    return np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)]).view("<u8").astype(np.uint64, copy=False)


def make_signs(codes: np.ndarray, scales: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the sign bits of the vectors that codes represent, uint8 (n, bytes), the first dimension as the lowest bit."""
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
    """Rearrange the bits of rows, uint8 (n, bytes), into pages of four dimensions: uint8 (b, 2 * bytes, _PAGE).

    Of every 128 rows the first 64 take the low halves of 64 bytes, and the others the high halves; the last block is padded
    with zeros.
    """
    out = np.zeros((-(-len(rows) // ROWS), 2 * rows.shape[1], _PAGE), np.uint8)
    _arrange(read_only(rows), out)
    return out


@njit(**LEAN)
def _arrange(rows: np.ndarray, out: np.ndarray) -> None:
    """See :func:`pages_of`; the rows of a block stay in the cache while its pages are written one by one."""
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


# Looking up a number for each of 32 rows, which depends on the processor.


_BYTE, _SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_TABLE, _PLACES, _SUMS = ir.VectorType(_BYTE, 16), ir.VectorType(_BYTE, 32), ir.VectorType(_SHORT, 16)
LookUp = Callable[[Any, Any, Any], Any]  # (builder, table, indices of 32 rows) to their numbers


def _splat(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def _shuffle(builder: Any, vector: Any, other: Any, places: Iterable[int]) -> Any:
    order = [*places]
    return builder.shuffle_vector(vector, other, ir.Constant(ir.VectorType(_INT, len(order)), order))


def _look_up_by(name: str, rows: int) -> LookUp:
    """Return a look-up by the named instruction of the processor, which handles ``rows`` rows at a time."""

    def look_up(builder: Any, table: Any, places: Any) -> Any:
        """Look up 32 places in a table of 16 bytes, as many at a time as the instruction takes."""
        kind = ir.VectorType(_BYTE, rows)
        function = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind, kind]))
        own = _shuffle(builder, table, table, [*range(16)] * (rows // 16))
        parts = [_shuffle(builder, places, places, range(first, first + rows)) for first in range(0, 32, rows)]
        found = [builder.call(function, [own, part]) for part in parts]
        return found[0] if rows == 32 else _shuffle(builder, found[0], found[1], range(32))

    return look_up


def _look_up_one_by_one(builder: Any, table: Any, places: Any) -> Any:
    found = ir.Constant(_PLACES, ir.Undefined)
    for row in range(32):
        number = builder.extract_element(table, builder.extract_element(places, _INT(row)))
        found = builder.insert_element(found, number, _INT(row))
    return found


LOOK_UPS: dict[str, LookUp] = {  # by processor feature, in order of preference
    "avx2": _look_up_by("llvm.x86.avx2.pshuf.b", 32),
    "ssse3": _look_up_by("llvm.x86.ssse3.pshuf.b.128", 16),
    "neon": _look_up_by("llvm.aarch64.neon.tbl1.v16i8", 16),
    "": _look_up_one_by_one,
}


def look_up_of(context: Any) -> LookUp:
    """Return the look-up for the processor that code is compiled for."""
    triple, _, features = context.codegen().magic_tuple()
    known = {"", *(feature[1:] for feature in features.split(",") if feature.startswith("+"))}
    if not triple.startswith(("aarch64", "arm64")):
        known.discard("neon")
    return next(look_up for feature, look_up in LOOK_UPS.items() if feature in known)


def emit_losses(builder: Any, arguments: Any, look_up: LookUp) -> None:
    """Emit the code of :func:`_lose`."""
    block, first, tables, losses = arguments

    def at(address: Any, place: Any, kind: Any) -> Any:
        return builder.inttoptr(builder.add(address, place), kind.as_pointer())

    add = builder.module.declare_intrinsic("llvm.uadd.sat.v32i8", (), ir.FunctionType(_PLACES, [_PLACES, _PLACES]))
    numbers = [_LONG(number) for number in range(_JOINT_TABLES)]
    pages = [builder.add(block, builder.load(at(first, builder.mul(_LONG(8), one), _LONG), align=8)) for one in numbers]
    held = [builder.load(at(tables, builder.mul(_LONG(16), one), _TABLE), align=1) for one in numbers]
    with cgutils.for_range(builder, _LONG(_PAGE // 32)) as loop:
        line, part = builder.mul(loop.index, _LONG(32)), builder.and_(loop.index, _LONG(1))
        low = builder.sub(builder.mul(line, _LONG(2)), builder.mul(part, _LONG(32)))
        places = [at(losses, builder.add(low, _LONG(half * _WORD)), _PLACES) for half in range(2)]
        totals = [builder.load(place, align=1) for place in places]
        for page, table in zip(pages, held, strict=True):
            own = builder.load(at(page, line, _PLACES), align=1)
            shifted = builder.bitcast(builder.lshr(builder.bitcast(own, _SUMS), _splat(_SUMS, 4)), _PLACES)
            for half, four in enumerate((own, shifted)):
                found = look_up(builder, table, builder.and_(four, _splat(_PLACES, 15)))
                totals[half] = builder.call(add, [totals[half], found])
        for total, place in zip(totals, places, strict=True):
            builder.store(total, place, align=1)


@intrinsic
def _lose(_: Any, block: Any, first: Any, tables: Any, losses: Any) -> Any:
    """Add the losses by ``_JOINT_TABLES`` tables to those of a block's rows, uint8 (ROWS,), up to ``_MAX_LOSS``.

    All arguments are addresses; ``first`` is that of the pages' offsets in the block.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit_losses(builder, arguments, look_up_of(context))
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp, types.uintp), generate


@intrinsic
def _within(_: Any, losses: Any, limit: Any) -> Any:
    """Return the bits of the rows of a word whose loss is within a limit, given the address of their losses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(_BYTE, _WORD)
        own = builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[1], _INT(0))
        return builder.bitcast(builder.icmp_unsigned("<=", own, _shuffle(builder, one, one, [0] * _WORD)), _LONG)

    return types.uint64(types.uintp, types.uint8), generate


@intrinsic
def _lose_one(_: Any, row: Any, bits: Any, groups: Any) -> Any:
    """Return the loss of one row, given the addresses of its bits and of :attr:`Tables.bits`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over groups of bits, which adds the losses that they choose."""
        row, bits, groups = arguments

        def load(address: Any, step: int, kind: Any) -> Any:
            place = builder.add(address, builder.mul(loop.index, _LONG(step)))
            return builder.load(builder.inttoptr(place, kind.as_pointer()), align=1)

        total = cgutils.alloca_once_value(builder, ir.Constant(_SUMS, None))
        with cgutils.for_range(builder, groups) as loop:
            own = builder.bitcast(load(row, _GROUP_BYTES, _INT), ir.VectorType(ir.IntType(1), _GROUP))
            zero, one = (load(builder.add(bits, _LONG(first)), 2 * _GROUP, _PLACES) for first in (0, _GROUP))
            pairs = builder.bitcast(builder.select(own, one, zero), _SUMS)
            halves = builder.and_(pairs, _splat(_SUMS, 255)), builder.lshr(pairs, _splat(_SUMS, 8))
            builder.store(builder.add(builder.load(total), builder.add(*halves)), total)
        add = builder.module.declare_intrinsic("llvm.vector.reduce.add.v16i16", (), ir.FunctionType(_SHORT, [_SUMS]))
        return builder.call(add, [builder.load(total)])

    return types.uint16(types.uintp, types.uintp, types.intp), generate


def tables_of(queries: np.ndarray) -> Tables:
    """Return the tables of losses for float32 (q, d) queries."""
    count, size = len(queries), bytes_of(queries.shape[1])
    fours = max(1, round(_FIRST_SHARE * 2 * size / _JOINT_TABLES)) * _JOINT_TABLES
    first, tables = np.empty((count, fours), np.int64), np.empty((count, fours, 16), np.uint8)
    bits, squares = np.zeros((count, size // _GROUP_BYTES, 2, _GROUP), np.uint8), np.empty(2 * size, np.float32)
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
        step = np.float32(_MAX_LOSS - _GROUP // 2) / most
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
        step = np.float32(2 * _MAX_LOSS) / most  # saturates for about half of the rows
        for place in range(first.shape[1]):
            _add_bits(query, 4 * (first[q, place] // _PAGE), step, tables[q, place])


@njit(**LEAN)
def _add_bits(query: np.ndarray, first: int, step: np.float32, out: np.ndarray) -> None:
    """Fill ``out`` with the losses of four dimensions by their signs, in units of 1 / ``step``, rounded."""
    for signs in range(16):
        total = np.float32(0.0)
        for j in range(first, min(first + 4, len(query))):
            if (query[j] > 0) != (signs >> (j - first) & 1 > 0):
                total += abs(query[j])
        out[signs] = np.uint8(min(np.rint(total * step), np.float32(_MAX_LOSS)))


@njit(**LEAN)
def _keep_nearest(kept: np.ndarray, losses: np.ndarray, count: int, wanted: int, room: np.ndarray) -> int:
    """Keep the ``wanted`` of ``count`` rows with the smallest loss, earlier rows on a tie; return the largest loss kept."""
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
    """Fill in the losses, by the dimensions read first, of the rows of some blocks, uint8 (q, b * ROWS)."""
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
            for four in range(q * fours, (q + 1) * fours, _JOINT_TABLES):
                _lose(place, address_of(first, four), address_of(tables, 16 * four), address_of(own, 0))


@njit(**LEAN)
def _guess(losses: np.ndarray, live: np.ndarray, step: int, share: float, limits: np.ndarray, room: np.ndarray) -> None:
    """Fill ``limits``, int64 (q,), with losses that at least a ``share`` of the rows should not exceed.

    They are estimated from a sample, every ``step``-th word of rows; if that is too small to tell, all rows are within.
    """
    for q in range(len(losses)):
        room[: _MAX_LOSS + 1] = 0
        sampled = np.int64(0)
        for word in range(0, len(live), step):
            left = live[word]
            while left:
                room[losses[q, word * _WORD + np.int64(trailing_zeros(left))]] += 1
                left &= left - np.uint64(1)
                sampled += 1
        nearer, border, expected = room[0], np.int64(0), share * sampled
        while border < _MAX_LOSS and nearer < expected + _SAFETY * np.sqrt(expected + 1.0):
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
    """Find each query's ``wanted`` rows with the smallest loss, of those whose first losses are within limits."""
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
            if passed < _PREFETCHED_ROWS and word + 1 < stop:
                continue
            if count + passed > len(own):  # a later row with the border's loss would rank after those kept
                limit, count = _keep_nearest(own, own_losses, count, wanted, room) - 1, np.int64(wanted)
            for i in range(passed):
                row = np.int64(waiting[i])
                places = address_of(rows, row * groups * _GROUP_BYTES), address_of(bits, q * groups * 2 * _GROUP)
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
    """Set the bits of the given rows that are live."""
    for row in rows:
        out[row // _WORD] |= live[row // _WORD] & (np.uint64(1) << np.uint64(row % _WORD))


def candidates(
    queries: np.ndarray, count: int, signs: Signs, rows: np.ndarray | None = None, threads: int = 1
) -> list[np.ndarray]:
    """Return, for each query, the ``count`` rows most likely to be among the nearest, int32, ascending.

    They depend on neither threads nor other queries, and are fewer if there are no more. Queries are float32 (q, d);
    ``rows``, int32, ascending, restricts the search.
    """
    if rows is not None:
        live = np.zeros_like(signs.live)
        _mark(rows, signs.live, live)
        signs = signs._replace(live=live)
    share = (_PASSING[0] + _PASSING[1] * count) / max(1, len(signs.rows) if rows is None else len(rows))
    out = list[np.ndarray]()
    for start in range(0, len(queries), _PASS_QUERIES):
        out += _nearest(tables_of(queries[start : start + _PASS_QUERIES]), count, share, signs, threads)
    return out


def _nearest(tables: Tables, wanted: int, share: float, signs: Signs, threads: int) -> list[np.ndarray]:
    """Return each query's rows with the smallest loss, ascending, of about a ``share`` with the smallest first losses."""
    pages, last, rows, live = read_only(signs.pages), signs.last, read_only(signs.rows), signs.live
    blocks, words, (queries, groups, *_) = len(pages) + len(last), ROWS // _WORD, tables.bits.shape
    losses, limits = np.empty((queries, blocks * ROWS), np.uint8), np.empty(queries, np.int64)
    most, wanted = groups * _MAX_LOSS, min(wanted, len(rows))

    def scan(start: int, stop: int) -> None:
        _scan(pages, last, live, tables.first, tables.fours, start, stop, losses)

    def select(start: int, stop: int) -> _Found:
        """Return the nearest live rows of each query among some blocks."""
        size, counts = (queries, 2 * wanted + _BUFFERED_ROWS), np.zeros(queries, np.int64)
        found = _Found(np.empty(size, np.int32), np.empty(size, np.uint16), counts)
        room = np.empty(_PREFETCHED_ROWS + _WORD, np.int32), np.empty(most + 1, np.int64)
        ends = start * words, min(stop * words, len(live))
        _select(losses, live, rows, tables.bits, *ends, wanted, limits, *found, *room)
        return found

    over_blocks(scan, blocks, threads, _MIN_THREAD_BLOCKS)
    _guess(losses, live, max(1, len(live) // _MIN_SAMPLE), share, limits, np.empty(_MAX_LOSS + 1, np.int64))
    while True:
        parts = over_blocks(select, blocks, threads, _MIN_THREAD_BLOCKS)
        missing = [
            q
            for q, most in enumerate(limits.tolist())
            if most < _MAX_LOSS and sum(part.counts[q] for part in parts) < wanted
        ]
        if not missing:
            return [_joined(parts, q, wanted) for q in range(queries)]
        limits[missing] = _MAX_LOSS


def _joined(parts: list[_Found], q: int, wanted: int) -> np.ndarray:
    """Return the rows with the smallest loss of all parts, ascending."""
    near = np.concatenate([part.rows[q, : part.counts[q]] for part in parts])
    if len(parts) == 1 or len(near) <= wanted:
        return near
    losses = np.concatenate([part.losses[q, : part.counts[q]] for part in parts])
    return near[np.sort(np.argsort(losses, kind="stable")[:wanted])]
