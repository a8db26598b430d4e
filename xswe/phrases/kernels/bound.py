"""Upper bounds of the scores in a tile: one byte a word and query, added up before any span is scored.

With c_t the cosine of a query and word t,

    cos(q, span) = sum_t (|w_t| / |span|) c_t  <=  sqrt(spread * sum_t max(c_t, 0)^2)

by the Cauchy-Schwarz inequality, where spread >= sum_t |w_t|^2 / |span|^2 for every span that begins in a part of a tile,
and the sum is over that part and all further parts that such a span can reach. The bound is nearly tight if words are
nearly orthogonal. The squares are stored in steps of 1 / 255, rounded up, and their sums saturate at 255, which no squared
score exceeds: each word then has one cache line for all queries of a block, and one instruction adds up dozens of queries.
The limit of a sum, the required squared score divided by the spread, is stored for some levels of spread, and a part uses
the next larger level.

The inner loops are vectorised: a byte for each query of a block, a number for each start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from xswe.io.compiler import LEAN, address_of, bare, trailing_zeros

LANES = 64  # queries a block: with a byte each they fill a cache line, with a bit each a uint64
STARTS = 16  # starts of spans scored together
# Starts processed at a time. Longer texts are cut into such tiles (spans may reach beyond their tile), so that all buffers
# stay in the cache and a bound covers few words, however long a passage is.
TILE = 64
_AHEAD = 16  # lines prefetched
_INT, _LONG = ir.IntType(32), ir.IntType(64)
_LINE = ir.VectorType(ir.IntType(8), LANES)
_NUMBERS, _BITS = ir.VectorType(ir.FloatType(), STARTS), ir.IntType(STARTS)
_ORDER = ir.VectorType(_INT, STARTS)


def _add(builder: Any, a: Any, b: Any) -> Any:
    """Add two lines, lane by lane, saturating at 255."""
    kind = ir.FunctionType(_LINE, [_LINE, _LINE])
    return builder.call(builder.module.declare_intrinsic(f"llvm.uadd.sat.v{LANES}i8", (), kind), [a, b])


@intrinsic
def sum_lines(_: Any, lines: Any, rows: Any, count: Any, known: Any, out: Any) -> Any:
    """Write the sum, uint8 (LANES,), of the first ``count`` of ``known`` lines of a table, saturating at 255.

    ``lines``, ``rows`` and ``out`` are addresses: of the table, uint8 (any, LANES), of the int32 line numbers, and of the
    sum. Lines after ``count`` are prefetched; ``known`` is at least 1.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over lines, which adds one and prefetches one further on."""
        table, rows, count, known, _ = arguments
        places, byte = builder.inttoptr(rows, _INT.as_pointer()), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        last = builder.sub(known, _LONG(1))

        def line(place: Any, kind: Any) -> Any:
            row = builder.zext(builder.load(builder.gep(places, [place])), _LONG)
            return builder.inttoptr(builder.add(table, builder.mul(row, _LONG(LANES))), kind)

        total = cgutils.alloca_once_value(builder, ir.Constant(_LINE, None))
        with cgutils.for_range(builder, count) as loop:
            ahead = builder.add(loop.index, _LONG(_AHEAD))
            ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
            builder.call(prefetch, [line(ahead, byte), _INT(0), _INT(3), _INT(1)])  # to read, to keep, data
            added = builder.load(line(loop.index, _LINE.as_pointer()), align=1)
            builder.store(_add(builder, builder.load(total), added), total)
        builder.store(builder.load(total), builder.inttoptr(arguments[4], _LINE.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.intp, types.uintp), generate


def lanes_that_reach(count: int) -> Any:
    """Return a compiled function for the mask of lanes in which ``count`` consecutive lines sum to at least the limit.

    It takes the addresses of the first line and of the limits (both uint8), and returns a bit for each lane; sums saturate
    at 255.
    """

    @intrinsic
    def reach(_: Any, lines: Any, limits: Any) -> Any:
        """See :func:`lanes_that_reach`."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first = builder.inttoptr(arguments[0], _LINE.as_pointer())
            total = builder.load(first, align=1)
            for i in range(1, count):
                total = _add(builder, total, builder.load(builder.gep(first, [_LONG(i)]), align=1))
            limit = builder.load(builder.inttoptr(arguments[1], _LINE.as_pointer()), align=1)
            return builder.bitcast(builder.icmp_unsigned(">=", total, limit), _LONG)

        return types.uint64(types.uintp, types.uintp), generate

    return reach


def _numbers(builder: Any, address: Any, place: Any) -> Any:
    """Load ``STARTS`` consecutive numbers of a float32 array."""
    address = builder.add(address, builder.shl(place, _LONG(2)))
    return builder.load(builder.inttoptr(address, _NUMBERS.as_pointer()), align=4)


def _everywhere(builder: Any, number: Any) -> Any:
    """Broadcast a number to ``STARTS`` lanes."""
    one = builder.insert_element(ir.Constant(_NUMBERS, ir.Undefined), number, _INT(0))
    return builder.shuffle_vector(one, ir.Constant(_NUMBERS, ir.Undefined), ir.Constant(_ORDER, None))


@intrinsic
def starts_above(_: Any, words: Any, inverse: Any, stride: Any, min_size: Any, max_size: Any, limit: Any) -> Any:
    """Return a mask, uint16, of the ``STARTS`` words where a span with a cosine above a limit begins; all if 0 is above it.

    ``words`` is the address of the words' inner products with a query, float32 (STARTS + max_size,), ``inverse`` the
    address of the inverse lengths, float32, of the spans of ``min_size`` words from each start; those of each next size, up
    to ``max_size``, are ``stride`` numbers further.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over sizes, which adds a word to each span and keeps the best score of each start."""
        first, lengths, stride, least, most, limit = arguments
        zero = ir.Constant(_NUMBERS, None)
        total, best = (cgutils.alloca_once_value(builder, zero) for _ in range(2))

        def add(size: Any) -> Any:
            summed = builder.fadd(builder.load(total), _numbers(builder, first, size))
            builder.store(summed, total)
            return summed

        shorter = builder.sub(least, _LONG(1))
        with cgutils.for_range(builder, shorter) as loop:
            add(loop.index)
        with cgutils.for_range(builder, builder.sub(most, shorter)) as loop:
            summed = add(builder.add(loop.index, shorter))
            score = builder.fmul(summed, _numbers(builder, lengths, builder.mul(stride, loop.index)))
            known = builder.load(best)
            builder.store(builder.select(builder.fcmp_ordered(">", score, known), score, known), best)
        above = builder.fcmp_ordered(">", builder.load(best), _everywhere(builder, limit))
        return builder.bitcast(above, _BITS)

    return types.uint16(types.uintp, types.uintp, types.intp, types.intp, types.intp, types.float32), generate


@intrinsic
def spans_above(_: Any, sums: Any, squares: Any, factor: Any, min_size: Any, max_size: Any) -> Any:
    """Return a mask, uint16, of the ``STARTS`` words where a span begins with (sum of numbers)^2 > factor x sum of squares.

    ``sums`` and ``squares`` are the addresses of the words' numbers and squares, float32 (STARTS + max_size,); spans have
    ``min_size`` to ``max_size`` words, and ``factor`` is float32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over sizes, which adds a word to each span and notes the starts of those above."""
        first, second, factor, least, most = arguments
        zero = ir.Constant(_NUMBERS, None)
        total, square = (cgutils.alloca_once_value(builder, zero) for _ in range(2))
        above = cgutils.alloca_once_value(builder, ir.Constant(_BITS, 0))
        factors = _everywhere(builder, factor)

        def add(size: Any) -> tuple[Any, Any]:
            both = []
            for sum_, address in ((total, first), (square, second)):
                both.append(builder.fadd(builder.load(sum_), _numbers(builder, address, size)))
                builder.store(both[-1], sum_)
            return both[0], both[1]

        shorter = builder.sub(least, _LONG(1))
        with cgutils.for_range(builder, shorter) as loop:
            add(loop.index)
        with cgutils.for_range(builder, builder.sub(most, shorter)) as loop:
            number, length = add(builder.add(loop.index, shorter))
            found = builder.fcmp_ordered(">", builder.fmul(number, number), builder.fmul(length, factors))
            builder.store(builder.or_(builder.load(above), builder.bitcast(found, _BITS)), above)
        return builder.load(above)

    return types.uint16(types.uintp, types.uintp, types.float32, types.intp, types.intp), generate


STEPS = np.float32(255.0)  # quantisation steps of a squared cosine
SEVERAL = 4  # further parts that a span can reach beyond the one it begins in
LEVELS = 64  # levels of spread; at the last one nothing is ruled out
_OCTAVE = 16  # levels that double the spread
_SPREADS = (2.0 ** (np.arange(LEVELS) / _OCTAVE) * 1.00001).astype(np.float32)
_ROOTS = (np.sqrt(np.arange(256) / STEPS) * 1.0001).astype(np.float32)  # the highest cosine of each code
_reach = lanes_that_reach(SEVERAL + 1)


def words_of_part(max_size: int) -> int:
    """Return the size of a part in words, such that a span of up to ``max_size`` words lies within five parts."""
    return (max_size + 3) // 4


part_size = njit(inline="always")(words_of_part)


@njit(inline="always")
def level_of(spread: np.float32) -> np.uint8:
    """Return the lowest level that covers a spread (1 or more)."""
    level = np.ceil(_OCTAVE * np.log2(np.float64(spread)) - 1e-4)
    return np.uint8(level if level < LEVELS - 1.0 else LEVELS - 1.0)


@njit(**LEAN)
def set_limit(limits: np.ndarray, lane: int, score: np.float32) -> None:
    """Set the limits, uint8 (LEVELS x LANES,), of a lane's query to a score; 0 or less rules nothing out."""
    none = np.float32(0.0)
    squared = score if score > none else none
    squared *= squared * STEPS
    for level in range(LEVELS - 1):
        limit = np.ceil(squared / _SPREADS[level])  # sums are integers
        limits[level * LANES + lane] = np.uint8(limit if limit < STEPS else STEPS)
    limits[(LEVELS - 1) * LANES + lane] = 0


@njit(**LEAN)
def spell(
    pieces: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    inverse: np.ndarray,
    table: np.ndarray,
    codes: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Fill the tables of words ``start`` to ``stop`` from the table of their pieces, for a block of queries.

    ``pieces``, float32 (pieces, queries), has inner products with unit queries; word ``r`` has the pieces
    ``ids[offsets[r]:offsets[r + 1]]`` and ``inverse``, float32 (rows,), its 1 / length, 0 for one without a vector.
    ``table``, float32 (rows, queries), receives the inner products of words, ``codes``, uint8 (rows, LANES), their
    squared cosines in ``STEPS``, with 0 for negative ones.
    """
    width, none, full = table.shape[1], np.float32(0.0), STEPS * np.float32(1.00001)  # rounding must not lower a square
    pieces, ids, offsets, inverse = bare(pieces), bare(ids), bare(offsets), bare(inverse)
    table, codes = bare(table), bare(codes)
    for row in range(start, stop):
        total, code, scale = row * width, row * LANES, inverse[row]
        for c in range(width):
            table[total + c] = none
        for p in range(offsets[row], offsets[row + 1]):
            piece = ids[p] * width
            for c in range(width):
                table[total + c] += pieces[piece + c]
        for c in range(width):
            cosine = table[total + c] * scale
            cosine = cosine if cosine > none else none
            square = np.ceil(cosine * cosine * full)
            codes[code + c] = np.uint8(square if square < STEPS else STEPS)
        for c in range(width, LANES):
            codes[code + c] = 0


@njit(**LEAN)
def bound_tile(
    codes: np.ndarray,
    rows: np.ndarray,
    known: int,
    first: int,
    count: int,
    reach: int,
    levels: np.ndarray,
    level: int,
    limits: np.ndarray,
    sums: np.ndarray,
    alive: np.ndarray,
) -> np.uint64:
    """Find the parts of a tile where a span might score above a query's limit, for all queries of a block at once.

    ``codes`` come from :func:`spell`, ``limits`` from :func:`set_limit`; ``rows``, int32 (known,), is the row of each word.
    The tile has ``count`` words from ``first``, including those beyond it that its spans, of up to ``reach`` words, extend
    to; its levels (:func:`level_of` the spread of the spans that begin in each part) start at ``levels[level]``. ``sums``,
    uint8 ((parts + SEVERAL) x LANES,), is workspace. ``alive``, uint64 (parts,), receives a bit for each query whose limit
    a span that begins in the part might exceed; the union over all parts is returned.
    """
    step = part_size(reach)
    parts, starts = (count + step - 1) // step, (TILE + step - 1) // step
    starts = parts if parts < starts else starts
    table, left = address_of(codes, 0), known - first
    for part in range(parts):
        place = part * step
        size = step if step < count - place else count - place
        sum_lines(table, address_of(rows, first + place), size, left - place, address_of(sums, part * LANES))
    for cell in range(parts * LANES, (parts + SEVERAL) * LANES):  # no words after the last part
        sums[cell] = 0
    anywhere = np.uint64(0)
    for part in range(starts):
        found = _reach(address_of(sums, part * LANES), address_of(limits, np.int64(levels[level + part]) * LANES))
        alive[part] = found
        anywhere |= found
    return anywhere


@njit(**LEAN)
def narrow(
    codes: np.ndarray,
    lane: int,
    rows: np.ndarray,
    lengths: np.ndarray,
    first: int,
    count: int,
    low: int,
    high: int,
    levels: np.ndarray,
    level: int,
    last_level: int,
    limit: np.float32,
    min_size: int,
    max_size: int,
    workspace: np.ndarray,
) -> tuple[int, int]:
    """Return the first start, and one past the last, from which a span might score above one query's limit.

    They are equal if there is none. The data that :func:`bound_tile` has brought to the cache also allow a tighter bound:
    with s the spread,

        cos(q, span)  <=  sqrt(s) sum_t |w_t| max(c_t, 0) / sqrt(sum_t |w_t|^2)

    which is exact except for s and signs.

    ``codes``, ``rows``, ``first``, ``count`` and ``levels`` are as in :func:`bound_tile`; ``lengths``, float32 (rows,), are
    the lengths of words, ``lane`` is the query, ``limit`` its score. The starts are ``low`` to ``high``, counted from
    ``first``, with the levels ``levels[level:last_level]``. Spans have ``min_size`` to ``max_size`` words. ``workspace`` is
    float32 (2 x (high - low + STARTS + max_size),).
    """
    highest: Any = np.int64(0)
    for part in range(level, last_level):
        found = np.int64(levels[part])
        highest = found if found > highest else highest
    if limit <= 0 or highest == LEVELS - 1:
        return low, high
    words, all_words = count - low, high - low + max_size - 1
    words = all_words if all_words < words else words
    second = high - low + STARTS + max_size
    for t in range(words):
        row = rows[first + low + t]
        length = lengths[row]
        workspace[t] = length * _ROOTS[codes[row * LANES + lane]]
        workspace[second + t] = length * length
    for t in range(words, second):
        workspace[t] = workspace[second + t] = 0.0
    factor = limit * limit / _SPREADS[highest]
    start: Any = high
    stop: Any = high
    for i in range(0, high - low, STARTS):
        above = spans_above(address_of(workspace, i), address_of(workspace, second + i), factor, min_size, max_size)
        while above:
            place: Any = low + i + np.int64(trailing_zeros(np.uint64(above)))
            above &= above - np.uint16(1)
            if place < high:
                start, stop = place if place < start else start, place + 1
    return start, stop
