"""The inner loops of the phrase search, written in vectors: a byte for each query of a block, a number for each start."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64  # queries a block: a byte for each is a cache line, a bit for each a number
STARTS = 16  # of spans that are scored together
_AHEAD = 16  # lines that are asked for before they are read
_INT, _LONG = ir.IntType(32), ir.IntType(64)
_LINE = ir.VectorType(ir.IntType(8), LANES)
_NUMBERS, _BITS = ir.VectorType(ir.FloatType(), STARTS), ir.IntType(STARTS)
_ORDER = ir.VectorType(_INT, STARTS)


def _add(builder: Any, a: Any, b: Any) -> Any:
    """Add two lines, lane by lane; 255 where that would be more."""
    kind = ir.FunctionType(_LINE, [_LINE, _LINE])
    return builder.call(builder.module.declare_intrinsic(f"llvm.uadd.sat.v{LANES}i8", (), kind), [a, b])


@intrinsic
def sum_lines(_: Any, lines: Any, rows: Any, count: Any, known: Any, out: Any) -> Any:
    """Add up some lines of a table; a lane's sum ends at 255.

    Args:
        lines: address of the table, uint8 (any, LANES).
        rows: address of int32 numbers of lines.
        count: how many of these are added.
        known: how many there are, at least 1; what comes after ``count`` is asked for ahead.
        out: address of the sums, uint8 (LANES,).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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
    """Return the compiled function that tells in which lanes ``count`` lines that follow each other add up to a limit.

    It takes the address of the first line and that of the limits (uint8 both), and returns a bit for each lane; sums end at
    255.
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


@intrinsic
def count_lanes(_: Any, lanes: Any) -> Any:
    """Return how many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _numbers(builder: Any, address: Any, place: Any) -> Any:
    """Load ``STARTS`` numbers from a place of a float32 array on."""
    address = builder.add(address, builder.shl(place, _LONG(2)))
    return builder.load(builder.inttoptr(address, _NUMBERS.as_pointer()), align=4)


@intrinsic
def best_spans(_: Any, words: Any, inverse: Any, stride: Any, min_size: Any, max_size: Any, out: Any) -> Any:
    """Find the highest cosine of the spans from each of ``STARTS`` words on, at least 0.

    Args:
        words: address of the words' inner products with a query, float32 (STARTS + max_size,), the first start's first.
        inverse: address of the inverse lengths of the shortest spans, float32, a span from each start; the next size stands
            ``stride`` numbers on.
        stride: see there.
        min_size: words of the shortest span.
        max_size: words of the longest.
        out: address of the cosines, float32 (STARTS,).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, lengths, stride, least, most, place = arguments
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
        builder.store(builder.load(best), builder.inttoptr(place, _NUMBERS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.intp, types.intp, types.uintp), generate


@intrinsic
def spans_above(_: Any, sums: Any, squares: Any, factor: Any, min_size: Any, max_size: Any) -> Any:
    """Tell from which of ``STARTS`` words on a span has (sum of numbers)^2 > ``factor`` x (sum of squares).

    Args:
        sums: address of the numbers of words, float32 (STARTS + max_size,), the first start's first.
        squares: address of the squares, likewise.
        factor: float32.
        min_size: words of the shortest span.
        max_size: words of the longest.

    Returns:
        uint16, a bit for each start.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second, factor, least, most = arguments
        zero = ir.Constant(_NUMBERS, None)
        total, square = (cgutils.alloca_once_value(builder, zero) for _ in range(2))
        above = cgutils.alloca_once_value(builder, ir.Constant(_BITS, 0))
        one = builder.insert_element(ir.Constant(_NUMBERS, ir.Undefined), factor, _INT(0))
        factors = builder.shuffle_vector(one, ir.Constant(_NUMBERS, ir.Undefined), ir.Constant(_ORDER, None))

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
