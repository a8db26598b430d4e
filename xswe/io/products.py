"""Inner products of float32 vectors, with the same bits on every processor and for blocks of any shape.

A matrix library sums a product in an order that depends on the processor, and on the shape and alignment of the blocks.
So the last bit of a score depends on them, and with it the order of near ties. Here a product is one chain of fused
multiply-adds along the dimensions, rounded to float32 after each: no processor, shape, alignment or number of threads
changes it. The tile below keeps a processor's multipliers as busy as a library does.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from xswe.errors import ConfigError
from xswe.io.compiler import LEAN, LINE, address_of, prefetch_row
from xswe.io.parallel import over_blocks
from xswe.io.ragged import read_only


def _features() -> str:
    """Return the features of the processor that numba compiles for, in LLVM's notation."""
    given = numba.config.CPU_FEATURES  # set to compile for another processor than this one
    return str(binding.get_host_cpu_features().flatten() if given is None else given)


# A tile is as many sums as fit into the registers: the products of ROWS vectors of one side with COLUMNS of the other.
_WIDTH = 16 if "+avx512f" in _features() else 8 if "+avx" in _features() else 4
ROWS, _VECTORS = (8, 2) if _WIDTH == 16 else (4, 3)
COLUMNS = _WIDTH * _VECTORS
_FOUR = 4  # rows packed at a time; ROWS and COLUMNS are multiples of it
_CHAINS = 16  # rows summed up in parallel, as each addition of a sum waits for the one before it
_LINE = LINE // 4  # numbers of a row processed at a time: a cache line
_CACHED = 1 << 18  # bytes of columns that stay in the cache while rows pass

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_LANES, _QUAD = ir.VectorType(_FLOAT, _WIDTH), ir.VectorType(_FLOAT, _FOUR)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _broadcast(builder: Any, number: Any, kind: Any) -> Any:
    """Broadcast a number to all lanes of a vector."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _INT(0))
    order = ir.Constant(ir.VectorType(_INT, kind.count), None)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), order)


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c of vectors, rounded once."""
    kind = a.type
    function = builder.module.declare_intrinsic(f"llvm.fma.v{kind.count}f32", (), ir.FunctionType(kind, [kind] * 3))
    return builder.call(function, [a, b, c])


def _tile(builder: Any, rows: Any, columns: Any, dim: Any) -> list[Any]:
    """Emit the loop over the dimensions; return the sums, ``_VECTORS`` for each of ``ROWS`` rows."""
    before, loop, behind = builder.block, builder.append_basic_block("dimension"), builder.append_basic_block("sums")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, sums = builder.phi(_LONG), [builder.phi(_LANES) for _ in range(ROWS * _VECTORS)]
    first = builder.mul(k, _LONG(_VECTORS))
    right = [builder.load(builder.gep(columns, [builder.add(first, _LONG(v))]), align=4) for v in range(_VECTORS)]
    first, added = builder.mul(k, _LONG(ROWS)), []
    for i in range(ROWS):
        left = _broadcast(builder, builder.load(builder.gep(rows, [builder.add(first, _LONG(i))])), _LANES)
        added += [_fused(builder, left, right[v], sums[i * _VECTORS + v]) for v in range(_VECTORS)]
    following = builder.add(k, _LONG(1))
    starts = [_LONG(0), *(ir.Constant(_LANES, None) for _ in sums)]
    for phi, start, turn in zip((k, *sums), starts, (following, *added), strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(turn, loop)
    builder.cbranch(builder.icmp_signed("<", following, dim), loop, behind)
    builder.position_at_end(behind)
    return added


@intrinsic
def multiply_tile(_: Any, rows: Any, columns: Any, dim: Any, limits: Any, out: Any, above: Any) -> Any:
    """Multiply a tile, and return True if a product is above the limit of its row or column.

    All arguments but ``dim``, at least 1, are addresses. Inputs are float32: ``rows`` (dim, ROWS) and ``columns``
    (dim, COLUMNS) as :func:`pack` lays them out, and ``limits`` (ROWS + COLUMNS,). Results are ``out``, float32
    (ROWS, COLUMNS), and ``above``, uint32 (ROWS,) with a bit for each product above a limit.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the products of a tile, and the comparisons with the limits of rows and columns."""
        rows, columns, dim, limits, out, above = arguments
        products = _tile(builder, _pointer(builder, rows, _FLOAT), _pointer(builder, columns, _LANES), dim)
        of_rows = _pointer(builder, limits, _FLOAT)
        of_columns = _pointer(builder, builder.add(limits, _LONG(4 * ROWS)), _LANES)
        across = [builder.load(builder.gep(of_columns, [_LONG(v)]), align=4) for v in range(_VECTORS)]
        out, above, anywhere = _pointer(builder, out, _LANES), _pointer(builder, above, _INT), _INT(0)
        for i in range(ROWS):
            own, bits = _broadcast(builder, builder.load(builder.gep(of_rows, [_LONG(i)])), _LANES), _INT(0)
            for v in range(_VECTORS):
                product = products[i * _VECTORS + v]
                builder.store(product, builder.gep(out, [_LONG(i * _VECTORS + v)]), align=4)
                higher = (builder.fcmp_ordered(">", product, limit) for limit in (own, across[v]))
                mask = builder.zext(builder.bitcast(builder.or_(*higher), ir.IntType(_WIDTH)), _INT)
                bits = builder.or_(bits, builder.shl(mask, _INT(v * _WIDTH)))
            builder.store(bits, builder.gep(above, [_LONG(i)]))
            anywhere = builder.or_(anywhere, bits)
        return builder.icmp_unsigned("!=", anywhere, _INT(0))

    return types.boolean(types.uintp, types.uintp, types.intp, types.uintp, types.uintp, types.uintp), generate


def _transposed(builder: Any, address: Any, stride: Any, k: Any) -> list[Any]:
    """Return four numbers of four rows, starting at the k-th, transposed: the first number of each row, the second, ..."""

    def row(i: int) -> Any:
        place = builder.gep(_pointer(builder, address, _FLOAT), [builder.add(k, builder.mul(stride, _LONG(i)))])
        return builder.load(builder.bitcast(place, _QUAD.as_pointer()), align=4)

    def mixed(a: Any, b: Any, second: bool) -> Any:
        order = [2, 6, 3, 7] if second else [0, 4, 1, 5]
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, _FOUR), order))

    a, b, c, d = (row(i) for i in range(_FOUR))
    pairs = [(mixed(a, c, second), mixed(b, d, second)) for second in (False, True)]
    return [mixed(*pair, second) for pair in pairs for second in (False, True)]


@intrinsic
def _transpose(_: Any, rows: Any, dim: Any, out: Any, width: Any) -> Any:
    """Write ``_LINE`` numbers of each of four rows transposed: the first number of each row, then the second, ...

    ``rows`` and ``out`` are addresses of float32; rows are ``dim`` numbers apart, the written groups ``width``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, dim, out, width = arguments
        for k in range(0, _LINE, _FOUR):
            for i, numbers in enumerate(_transposed(builder, rows, dim, _LONG(k))):
                place = builder.gep(_pointer(builder, out, _FLOAT), [builder.mul(width, _LONG(k + i))])
                builder.store(numbers, builder.bitcast(place, _QUAD.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.intp, types.uintp, types.intp), generate


@intrinsic
def _add_chains(_: Any, rows: Any, right: Any, step: Any, dim: Any, out: Any) -> Any:
    """Write the products of ``_CHAINS`` rows with a vector each, or one for all, over the whole cache lines of ``dim``.

    The addresses are of float32: ``rows`` (_CHAINS, dim), ``right``, whose vectors are ``step`` numbers apart (0 for
    one vector), and ``out`` (_CHAINS,).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over cache lines, which adds a line to each chain."""
        rows, right, step, dim, out = arguments
        groups, even = range(0, _CHAINS, _FOUR), builder.and_(dim, _LONG(-_LINE))
        totals = [cgutils.alloca_once_value(builder, ir.Constant(_QUAD, None)) for _ in groups]
        with cgutils.for_range_slice(builder, _LONG(0), even, _LONG(_LINE), _LONG) as (k, _):
            for first, total in zip(groups, totals, strict=True):
                sides = [
                    (builder.add(address, builder.mul(stride, _LONG(4 * first))), stride)
                    for address, stride in ((rows, dim), (right, step))
                ]
                added = builder.load(total)
                for more in range(0, _LINE, _FOUR):
                    place = builder.add(k, _LONG(more))
                    for a, b in zip(*(_transposed(builder, *side, place) for side in sides), strict=True):
                        added = _fused(builder, a, b, added)
                builder.store(added, total)
        target = _pointer(builder, out, _QUAD)
        for i, total in enumerate(totals):
            builder.store(builder.load(total), builder.gep(target, [_LONG(i)]), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.intp, types.uintp), generate


@intrinsic
def _scalar_fma(_: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def aligned(size: int) -> np.ndarray:
    """Return an uninitialised float32 array that begins at a cache line."""
    room = np.empty(size + LINE // 4, np.float32)
    first = -room.ctypes.data % LINE // 4
    return room[first : first + size]


def pack(rows: np.ndarray, width: int, out: np.ndarray | None = None) -> np.ndarray:
    """Pack float32 (n, d) for :func:`multiply_tile`: of each ``width`` rows the first dimension, then the second, ...

    ``width`` is ``ROWS`` or ``COLUMNS``; n is padded with zeros to a multiple of it. The flat result is written to
    ``out`` if given.
    """
    out = aligned(-(-len(rows) // width) * width * rows.shape[1]) if out is None else out
    _pack(read_only(np.ascontiguousarray(rows, np.float32)), width, out)
    return out


@njit(**LEAN)
def _pack(rows: np.ndarray, width: int, out: np.ndarray) -> None:
    """Pack as :func:`pack`, one cache line of each row and of the output at a time."""
    count, dim = rows.shape
    for tile in range(0, len(out) // dim, width):
        for k in range(0, dim, _LINE):
            for first in range(tile, tile + width, _FOUR):
                place = tile * dim + k * width + first - tile
                if first + _FOUR <= count and k + _LINE <= dim:
                    _transpose(address_of(rows, first * dim + k), dim, address_of(out, place), width)
                    continue
                for j in range(min(_LINE, dim - k)):
                    for i in range(_FOUR):
                        out[place + j * width + i] = rows[first + i, k + j] if first + i < count else np.float32(0.0)


class Room(NamedTuple):
    """The workspace of a thread that multiplies tiles."""

    products: np.ndarray  # float32 (ROWS x COLUMNS,)
    limits: np.ndarray  # float32 (ROWS + COLUMNS,), of the rows and of the columns; infinite for no limit
    above: np.ndarray  # uint32 (ROWS,), a bit for each product above one of its limits


def make_room() -> Room:
    """Return the workspace of one thread."""
    limits = aligned(ROWS + COLUMNS)
    limits[:] = np.inf
    return Room(aligned(ROWS * COLUMNS), limits, np.zeros(ROWS, np.uint32))


@njit(inline="always")
def columns_at_once(dim: int) -> int:
    """Return the number of columns, a multiple of ``COLUMNS``, that stay in the cache while rows pass."""
    return max(1, _CACHED // (4 * COLUMNS * dim)) * COLUMNS


@njit(**LEAN)
def _multiply(rows: np.ndarray, columns: np.ndarray, dim: int, room: Room, out: np.ndarray) -> None:
    """Fill ``out`` (n, m) with the products of packed rows and columns, one range of columns after the other."""
    limits, tile, above = address_of(room.limits, 0), address_of(room.products, 0), address_of(room.above, 0)
    step = columns_at_once(dim)
    for part in range(0, out.shape[1], step):
        for row in range(0, out.shape[0], ROWS):
            for column in range(part, min(part + step, out.shape[1]), COLUMNS):
                multiply_tile(address_of(rows, row * dim), address_of(columns, column * dim), dim, limits, tile, above)
                wide = min(COLUMNS, out.shape[1] - column)
                for i in range(min(ROWS, out.shape[0] - row)):
                    line = out[row + i]
                    for j in range(wide):
                        line[column + j] = room.products[i * COLUMNS + j]


def products(left: np.ndarray, right: np.ndarray, *, out: np.ndarray | None = None, threads: int = 1) -> np.ndarray:
    """Return the inner products, float32 (n, m), of all rows of ``left`` (n, d) with all rows of ``right`` (m, d)."""
    dim = _same_width(left, right)
    out = np.empty((len(left), len(right)), np.float32) if out is None else out
    if not out.size:
        return out
    if len(left) == 1 or len(right) == 1:
        one, rows = (left, right) if len(left) == 1 else (right, left)
        out[:] = row_products(rows, one[0], threads=threads).reshape(out.shape)
        return out
    columns, strip = pack(right, COLUMNS), 1024  # rows packed at a time

    def work(start: int, stop: int) -> None:
        room = make_room()
        for first in range(start, stop, strip):
            last = min(first + strip, stop)
            _multiply(pack(left[first:last], ROWS), columns, dim, room, out[first:last])

    over_blocks(work, len(left), threads)
    return out


def row_products(left: np.ndarray, right: np.ndarray, *, threads: int = 1) -> np.ndarray:
    """Return the products, float32 (n,), of the rows of ``left`` (n, d) with those of ``right`` (n, d) or with one (d,)."""
    dim = _same_width(left, right)
    out = np.empty(len(left), np.float32)
    sides = np.ascontiguousarray(left, np.float32), np.ascontiguousarray(right, np.float32).reshape(-1)
    over_blocks(partial(_chains, *sides, dim if right.ndim > 1 else 0, out), len(out), threads)
    return out


def norms(rows: np.ndarray) -> np.ndarray:
    """Return the Euclidean norms of float32 (n, d) rows, float32 (n,)."""
    return np.sqrt(row_products(rows, rows))


def largest(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest scores, ascending; of equal scores, the first are taken."""
    if k >= len(scores) or not k:
        return np.arange(min(k, len(scores)))
    border = np.partition(scores, -k)[-k]
    above = np.flatnonzero(scores > border)
    return np.sort(np.concatenate([above, np.flatnonzero(scores == border)[: k - len(above)]]))


@njit(**LEAN)
def _chains(rows: np.ndarray, right: np.ndarray, step: int, out: np.ndarray, start: int, stop: int) -> None:
    """Set ``out[i]`` to the product of row i and ``right[i * step:]``, for i from ``start`` to ``stop``."""
    dim, i = rows.shape[1], start
    while i < stop:
        size, begin = 1, 0
        if i + _CHAINS <= stop:
            for ahead in range(i + _CHAINS, min(i + 2 * _CHAINS, stop)):
                prefetch_row(rows, ahead)
            size, begin = _CHAINS, dim // _LINE * _LINE
            _add_chains(address_of(rows, i * dim), address_of(right, i * step), step, dim, address_of(out, i))
        for own in range(i, i + size):
            total = out[own] if size > 1 else np.float32(0.0)
            for k in range(begin, dim):
                total = _scalar_fma(rows[own, k], right[own * step + k], total)
            out[own] = total
        i += size


def _same_width(left: np.ndarray, right: np.ndarray) -> int:
    if left.shape[-1] != right.shape[-1]:
        raise ConfigError(
            f"vectors of {left.shape[-1]} dimensions with vectors of {right.shape[-1]}: use those of one model"
        )
    return int(left.shape[-1])
