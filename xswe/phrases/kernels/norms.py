"""Lengths of all span vectors of a text, from the inner products of its words.

A span's vector is the sum of its words' vectors. With g_tu the inner product of words t and u,

    |span i..j|^2 = |span i..j-1|^2 + g_jj + 2 C_ij,    C_ij = sum of g_tj for i <= t < j = C_i+1,j + g_ij,

so that all spans of up to s words cost s inner products a word, shared by all queries, and two additions each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from xswe.io.compiler import INNER, LEAN, LINE, address_of, bare, prefetch
from xswe.io.ragged import bounds_of
from xswe.phrases.kernels.bound import TILE, level_of, part_size

# A span whose squared length is below this fraction of the sum of its words' squared lengths has no direction: what remains
# of it is rounding error.
VANISHED = 1e-6
_AHEAD = 6  # rows prefetched
_LONG = ir.IntType(64)
_LANES, _ORDER = ir.VectorType(ir.FloatType(), 8), ir.VectorType(ir.IntType(32), 8)
_HALVES = (
    ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
    ([0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]),
    ([0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]),
)


class Block(NamedTuple):
    """A block of passages for compiled code."""

    names: np.ndarray  # int32 (pieces,), rows of the whole table
    words: np.ndarray  # int64 (w + 1,), word ``j`` has the pieces ``names[words[j]:words[j + 1]]``
    rows: np.ndarray  # int32 (w,), the distinct word of each word
    texts: np.ndarray  # int64 (n + 1,), passage ``i`` has the words ``texts[i]`` to ``texts[i + 1]``
    tiles: np.ndarray  # int64 (n + 1,), passage ``i`` has the tiles ``tiles[i]`` to ``tiles[i + 1]``
    # float32 (w x sizes + TILE,), by tile, size and start (see :func:`place_of`): 1 / |span|; 0 if the passage ends before
    # the span does, or the span has no direction, or begins or ends with a word without a vector: such a span is no hit
    inverse: np.ndarray
    row_inverse: np.ndarray  # float32 (rows,), 1 / |word| of each distinct word; 0 for one without a vector
    row_lengths: np.ndarray  # float32 (rows,), |word|
    # uint8 (tiles, parts), levels of the largest spread of the spans that begin in a part of a tile: the sum of the squared
    # lengths of a span's words, divided by its own squared length. See :mod:`xswe.phrases.kernels.bound`
    levels: np.ndarray


def tiles_of(texts: np.ndarray) -> np.ndarray:
    """Number the tiles: text ``i`` has tiles ``out[i]`` to ``out[i + 1]``; int64 (n + 1,)."""
    return bounds_of((np.diff(texts) + TILE - 1) // TILE)


@njit(inline="always")
def place_of(sizes: int, first: int, starts: int, r: int, i: int) -> int:
    """Return the index into ``Block.inverse`` of the span of the r-th size from the i-th start of a tile."""
    return first * sizes + r * starts + i


@intrinsic
def _multiply(_: Any, left: Any, right: Any, dim: Any, out: Any) -> Any:
    """Multiply two vectors with four, by address, over dimensions in multiples of eight; ``out`` is float32 (2, 4).

    Eight products keep a processor's multipliers busy, and need only six vectors to be read. Each product has eight partial
    sums, of every eighth dimension, which are then added by halves, in the same order on every processor.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over eight dimensions at a time, and the sums of the eight products."""
        left, right, dim, out = arguments
        function = ir.FunctionType(_LANES, [_LANES] * 3)
        fused = builder.module.declare_intrinsic(f"llvm.fma.v{_LANES.count}f32", (), function)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(_LANES, None)) for _ in range(8)]

        def vector(address: Any, row: int, k: Any) -> Any:
            place = builder.add(k, builder.mul(dim, _LONG(row)))
            first = builder.gep(builder.inttoptr(address, ir.FloatType().as_pointer()), [place])
            return builder.load(builder.bitcast(first, _LANES.as_pointer()), align=4)

        even = builder.and_(dim, _LONG(-_LANES.count))
        with cgutils.for_range_slice(builder, _LONG(0), even, _LONG(_LANES.count), _LONG) as (k, _):
            ours, theirs = [vector(left, i, k) for i in range(2)], [vector(right, j, k) for j in range(4)]
            for i, total in enumerate(totals):
                builder.store(builder.call(fused, [ours[i // 4], theirs[i % 4], builder.load(total)]), total)
        sums = [builder.load(total) for total in totals]
        for first, second in _HALVES:  # add the halves of two sums at a time
            sums = [
                builder.fadd(*(builder.shuffle_vector(a, b, ir.Constant(_ORDER, half)) for half in (first, second)))
                for a, b in zip(sums[::2], sums[1::2], strict=True)
            ]
        builder.store(sums[0], builder.inttoptr(out, _LANES.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.uintp), generate


@njit(**INNER)
def _gram_band(
    vectors: np.ndarray, dim: int, height: int, count: int, reach: int, out: np.ndarray, eight: np.ndarray
) -> None:
    """Set out[r, t] to the inner product of vectors t and t + r, for r < reach and t + r < count.

    ``vectors`` is float32 (height x dim,), with ``height`` at least ``count`` + 8; vectors after ``count`` are read without
    effect. ``out``, float32 ((reach + 8) x height,), has room for a few products outside the band; ``eight``, float32 (8,),
    is workspace.
    """
    even = dim // 8 * 8
    for t in range(0, count, 2):
        end = t + reach + 1 if t + reach + 1 < count else count
        for j in range(t, end, 4):
            _multiply(address_of(vectors, t * dim), address_of(vectors, j * dim), dim, address_of(eight, 0))
            for k in range(even, dim):
                for i in range(8):
                    eight[i] += vectors[(t + i // 4) * dim + k] * vectors[(j + i % 4) * dim + k]
            for i in range(8):
                # The second vector is one column further, and one row nearer to the others.
                if i < 4 or i > 4 or j > t:
                    out[(j - t + i % 4 - i // 4) * height + t + i // 4] = eight[i]


class Workspace(NamedTuple):
    """Workspace to measure a tile: the vectors of its words, their products, and a line for each quantity of the spans.

    For the spans of one size from each word, in float64: the product of the last word with the others (two lines, written
    alternately), the squared length, and the squared length if the words were orthogonal. In float32: the inverse length,
    and the largest spread.
    """

    height: int  # number of vectors, and length of a line
    vectors: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    apart: np.ndarray
    lengths: np.ndarray
    widest: np.ndarray
    eight: np.ndarray  # products


def _workspace(dim: int, max_size: int) -> Workspace:
    """Return the workspace of one tile."""
    height = TILE + max_size + 8
    return Workspace(
        height,
        np.zeros(height * dim, np.float32),
        np.empty((max_size + 8) * height, np.float32),
        np.empty(2 * height, np.float64),
        np.empty(height, np.float64),
        np.empty(height, np.float64),
        np.empty(height, np.float32),
        np.empty(height, np.float32),
        np.empty(8, np.float32),
    )


@njit(**LEAN, error_model="numpy")  # no checks for zero divisors, which would prevent vectorisation
def _measure(  # noqa: C901 (calling inner functions would take longer to compile than all they do)
    matrix: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    min_size: int,
    max_size: int,
    workspace: Workspace,
) -> None:
    """Measure spans, for :func:`measure_spans`. The inner loops are over starts, and vectorise.

    Each tile goes through these steps. A line of the workspace has a number for each start ``i``; a span ends at ``i + r``:

        pieces -> vectors -> gram          the words' vectors, and their inner products up to ``max_size`` words apart
        for each r, spans i..i+r:
          cross    C_i,i+r                 from the line of i + 1 before, which is why there are two lines
          squares  |span|^2                += g_jj + 2 C_ij with j = i + r
          apart    sum of |word|^2         += g_jj
          lengths  1 / |span|              -> ``block.inverse``; those of one word also to its row
          widest   largest apart / squares
        widest -> block.levels             the largest of each part
    """
    dim, pieces = matrix.shape[1], len(block.names)
    matrix, block, workspace = bare(matrix), bare(block), bare(workspace)
    height, vectors, gram, lengths, widest = (
        workspace.height,
        workspace.vectors,
        workspace.gram,
        workspace.lengths,
        workspace.widest,
    )
    cross, squares, apart = workspace.cross, workspace.squares, workspace.apart
    part, sizes, most = part_size(max_size), max_size + 1 - min_size, TILE + max_size - 1
    parts = (TILE + part - 1) // part
    for text in range(start, stop):
        tile, end = block.tiles[text], block.texts[text + 1]
        for first in range(block.texts[text], end, TILE):
            starts = end - first if end - first < TILE else TILE  # words where a span may begin
            count = end - first if end - first < most else most  # including further words that spans reach
            # A word's vector is the sum of its pieces' rows.
            for t in range(count):
                offset, begin, end_piece = t * dim, block.words[first + t], block.words[first + t + 1]
                if begin == end_piece:
                    for k in range(dim):
                        vectors[offset + k] = 0.0
                for p in range(begin, end_piece):
                    if p + _AHEAD < pieces:
                        coming = block.names[p + _AHEAD] * dim
                        for k in range(0, dim, LINE // 4):
                            prefetch(matrix, coming + k)
                    row = block.names[p] * dim
                    if p == begin:
                        for k in range(dim):
                            vectors[offset + k] = matrix[row + k]
                    else:
                        for k in range(dim):
                            vectors[offset + k] += matrix[row + k]
            _gram_band(vectors, dim, height, count, max_size, gram, workspace.eight)
            holes = False  # whether a word has no vector
            for i in range(count):
                holes |= gram[i] == 0
                cross[i] = squares[i] = apart[i] = 0.0
                widest[i] = 0.0
            for r in range(max_size):  # extend the spans of r words to r + 1
                this, before, available = r % 2 * height, (1 - r % 2) * height + 1, count - r
                if r:
                    for i in range(available):
                        cross[this + i] = cross[before + i] + gram[r * height + i]
                measured = starts if starts < available else available
                for i in range(measured):
                    product = np.float64(gram[r + i])
                    squares[i] += product + 2.0 * cross[this + i]
                    apart[i] += product
                for i in range(measured):  # in float32, without a branch
                    whole = squares[i] > VANISHED * apart[i]
                    length = np.float32(1.0) / np.sqrt(np.float32(squares[i] if whole else 1.0))
                    length = length if whole else np.float32(0.0)
                    spread = np.float32(apart[i]) * length * length
                    lengths[i] = length
                    widest[i] = spread if spread > widest[i] else widest[i]
                for i in range(measured if measured > 0 else 0, starts):
                    lengths[i] = 0.0
                if r == 0:
                    for i in range(starts):
                        row = block.rows[first + i]
                        block.row_inverse[row] = lengths[i]  # the same in all places
                        block.row_lengths[row] = np.sqrt(np.float32(squares[i]))
                if r + 1 < min_size:
                    continue
                line = place_of(sizes, first, starts, r + 1 - min_size, 0)
                for i in range(starts):
                    block.inverse[line + i] = lengths[i]
                if holes:  # a span that begins or ends with a word without a vector is no hit
                    for i in range(measured):
                        if gram[i] == 0 or gram[i + r] == 0:
                            block.inverse[line + i] = 0.0
            for p in range((starts + part - 1) // part):
                widest_here = np.float32(1.0)
                for i in range(p * part, p * part + part if p * part + part < starts else starts):
                    widest_here = widest[i] if widest[i] > widest_here else widest_here
                # Rounding must not make the bound too low.
                block.levels[tile * parts + p] = level_of(widest_here * np.float32(1.000001))
            tile += 1


def measure_spans(matrix: np.ndarray, block: Block, start: int, stop: int, min_size: int, max_size: int) -> None:
    """Fill ``inverse``, ``row_inverse``, ``row_lengths`` and ``levels`` of the passages ``start`` to ``stop``."""
    _measure(matrix, block, start, stop, min_size, max_size, _workspace(matrix.shape[1], max_size))
