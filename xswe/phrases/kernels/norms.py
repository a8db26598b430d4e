"""Lengths of all span vectors of a text, from the inner products of its words.

A span's vector is the sum of its words'. With g_tu the inner products of words t and u,

    |span i..j|^2 = |span i..j-1|^2 + g_jj + 2 C_ij,    C_ij = sum of g_tj for i <= t < j = C_i+1,j + g_ij,

so that all spans of up to s words cost s inner products a word, shared by all queries, and two additions each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, LINE, bare, prefetch
from xswe.phrases.kernels.bound import TILE, level_of, part_size

# A span shorter than this fraction of its words' lengths taken together (as if orthogonal) has no direction: what is left
# of it is rounding error.
VANISHED = 1e-6
_AHEAD = 6  # rows that are asked for before they are read


class Block(NamedTuple):
    """A block of passages as compiled code sees it."""

    names: np.ndarray  # int32 (pieces,), rows of the whole table
    words: np.ndarray  # int64 (w + 1,), word ``j`` has the pieces ``names[words[j]:words[j + 1]]``
    rows: np.ndarray  # int32 (w,), which of the block's distinct words each word is
    texts: np.ndarray  # int64 (n + 1,), passage ``i`` has the words ``texts[i]`` to ``texts[i + 1]``
    tiles: np.ndarray  # int64 (n + 1,), passage ``i`` has the tiles ``tiles[i]`` to ``tiles[i + 1]``
    # float32 (w x sizes + TILE,), tile after tile and in each size after size: 1 / |span| of the span of the r-th size
    # from each start of the tile on (see :func:`place_of`); 0 where the passage ends before, it has no direction, or it
    # begins or ends with a word without a vector: such a span is no hit
    inverse: np.ndarray
    row_inverse: np.ndarray  # float32 (rows,), 1 / |word| of each distinct word; 0 for one without a vector
    row_lengths: np.ndarray  # float32 (rows,), |word|
    # uint8 (tiles, parts), what stands for the spread of the spans that begin in a part of a tile: the largest sum of a
    # span's words' squared lengths, divided by its own. See :mod:`xswe.phrases.kernels.bound`
    levels: np.ndarray


def tiles_of(texts: np.ndarray) -> np.ndarray:
    """Number the tiles: text ``i`` has tiles ``out[i]`` to ``out[i + 1]``; int64 (n + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum((np.diff(texts) + TILE - 1) // TILE)])


@njit(inline="always")
def place_of(sizes: int, first: int, starts: int, r: int, i: int) -> int:
    """Return where ``Block.inverse`` has the span of the r-th size from the i-th start of a tile on.

    Args:
        sizes: how many sizes there are.
        first: the tile's first word.
        starts: how many starts it has.
        r: which size.
        i: which start.
    """
    return first * sizes + r * starts + i


@njit(**INNER, fastmath=True)
def _gram_band(vectors: np.ndarray, dim: int, height: int, count: int, reach: int, out: np.ndarray) -> None:
    """out[r, t] = inner product of vectors t and t + r, for r < reach and t + r < count.

    Two vectors against four at a time: eight sums are enough to keep a processor's two multipliers busy, and six vectors
    are read from the cache for eight products. The few products that the band does not need go into the room beside it.

    Args:
        vectors: float32 (height x dim,); what follows ``count`` is read, but of no consequence.
        dim: see there.
        height: ``count`` + 8 at least.
        count: number of vectors.
        reach: width of the band.
        out: float32 ((reach + 8) x height,), receives the products.
    """
    for t in range(0, count, 2):
        end = t + reach + 1 if t + reach + 1 < count else count
        for j in range(t, end, 4):
            a = b = c = d = e = f = g = h = np.float32(0.0)
            left, right = t * dim, j * dim
            for k in range(dim):
                x, y = vectors[left + k], vectors[left + dim + k]
                p, q = vectors[right + k], vectors[right + dim + k]
                r, s = vectors[right + 2 * dim + k], vectors[right + 3 * dim + k]
                a += x * p
                b += x * q
                c += x * r
                d += x * s
                e += y * p
                f += y * q
                g += y * r
                h += y * s
            z = (j - t) * height + t
            out[z], out[z + height], out[z + 2 * height], out[z + 3 * height] = a, b, c, d
            if j > t:
                out[z - height + 1] = e
            out[z + 1], out[z + height + 1], out[z + 2 * height + 1] = f, g, h


class Room(NamedTuple):
    """What a tile is measured in: the vectors of its words, their products, and a line for each thing known of the spans.

    For the spans of so many words from each word on, in float64: the last word's product with the others (two lines,
    written in turn), the squared length, and what it would be if the words were orthogonal. In float32: the inverse length,
    and the largest spread.
    """

    height: int  # of the vectors, and numbers of a line
    vectors: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    apart: np.ndarray
    lengths: np.ndarray
    widest: np.ndarray


def _room(dim: int, max_size: int) -> Room:
    """Return room for one tile."""
    height = TILE + max_size + 8
    return Room(
        height,
        np.zeros(height * dim, np.float32),
        np.empty((max_size + 8) * height, np.float32),
        np.empty(2 * height, np.float64),
        *(np.empty(height, np.float64) for _ in range(2)),
        *(np.empty(height, np.float32) for _ in range(2)),
    )


@njit(**LEAN, error_model="numpy")  # no look at whether a divisor is 0, which would keep loops from vectorising
def _measure(  # noqa: C901 (to call a function within takes longer to compile than what it does)
    matrix: np.ndarray,
    block: Block,
    wanted: np.ndarray,
    start: int,
    stop: int,
    min_size: int,
    max_size: int,
    room: Room,
) -> None:
    """See :func:`measure_spans`. Starts are the inner loops, and vectorise."""
    dim, pieces = matrix.shape[1], len(block.names)
    matrix, block, room = bare(matrix), bare(block), bare(room)
    height, vectors, gram, lengths, widest = room.height, room.vectors, room.gram, room.lengths, room.widest
    cross, squares, apart = room.cross, room.squares, room.apart
    part, sizes, most = part_size(max_size), max_size + 1 - min_size, TILE + max_size - 1
    parts = (TILE + part - 1) // part
    for text in range(start, stop):
        if not wanted[text]:
            continue
        tile, end = block.tiles[text], block.texts[text + 1]
        for first in range(block.texts[text], end, TILE):
            starts = end - first if end - first < TILE else TILE  # words that a span may begin with
            count = end - first if end - first < most else most  # with those that spans reach beyond them
            # A word's vector is the sum of its pieces' rows.
            for t in range(count):
                own, begin, behind = t * dim, block.words[first + t], block.words[first + t + 1]
                if begin == behind:
                    for k in range(dim):
                        vectors[own + k] = 0.0
                for p in range(begin, behind):
                    if p + _AHEAD < pieces:
                        coming = block.names[p + _AHEAD] * dim
                        for k in range(0, dim, LINE // 4):
                            prefetch(matrix, coming + k)
                    row = block.names[p] * dim
                    if p == begin:
                        for k in range(dim):
                            vectors[own + k] = matrix[row + k]
                    else:
                        for k in range(dim):
                            vectors[own + k] += matrix[row + k]
            _gram_band(vectors, dim, height, count, max_size, gram)
            holes = False  # whether a word has no vector
            for i in range(count):
                holes |= gram[i] == 0
                cross[i] = squares[i] = apart[i] = 0.0
                widest[i] = 0.0
            for r in range(max_size):  # from the spans of r words to those of r + 1
                this, before, there = r % 2 * height, (1 - r % 2) * height + 1, count - r
                if r:
                    for i in range(there):
                        cross[this + i] = cross[before + i] + gram[r * height + i]
                both = starts if starts < there else there
                for i in range(both):
                    product = np.float64(gram[r + i])
                    squares[i] += product + 2.0 * cross[this + i]
                    apart[i] += product
                for i in range(both):  # in float32, without a branch
                    whole = squares[i] > VANISHED * apart[i]
                    length = np.float32(1.0) / np.sqrt(np.float32(squares[i] if whole else 1.0))
                    length = length if whole else np.float32(0.0)
                    spread = np.float32(apart[i]) * length * length
                    lengths[i] = length
                    widest[i] = spread if spread > widest[i] else widest[i]
                for i in range(both if both > 0 else 0, starts):
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
                if holes:  # what begins or ends with a word without a vector is no hit
                    for i in range(both):
                        if gram[i] == 0 or gram[i + r] == 0:
                            block.inverse[line + i] = 0.0
            for p in range((starts + part - 1) // part):
                widest_here = np.float32(1.0)
                for i in range(p * part, p * part + part if p * part + part < starts else starts):
                    widest_here = widest[i] if widest[i] > widest_here else widest_here
                # Rounding must not make the bound too low.
                block.levels[tile * parts + p] = level_of(widest_here * np.float32(1.000001))
            tile += 1


def measure_spans(
    matrix: np.ndarray, block: Block, wanted: np.ndarray, start: int, stop: int, min_size: int, max_size: int
) -> None:
    """Fill ``inverse``, ``row_inverse``, ``row_lengths`` and ``levels`` of the passages ``start`` to ``stop``.

    Args:
        matrix: float32 (rows, d), the vectors of ``block.names``.
        block: the passages.
        wanted: bool (n,), of the others nothing is to be known.
        start: first passage.
        stop: one past the last.
        min_size: words of the shortest span.
        max_size: words of the longest.
    """
    _measure(matrix, block, wanted, start, stop, min_size, max_size, _room(matrix.shape[1], max_size))
