"""Lengths of all span vectors of a text, from the inner products of its words.

A span's vector is the sum of its words'. With g_tu the inner products of words t and u,

    |span i..j|^2 = |span i..j-1|^2 + g_jj + 2 C_ij,    C_ij = sum of g_tj for i <= t < j = C_i+1,j + g_ij,

so that all spans of up to s words cost s inner products a word, shared by all queries, and two additions each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, prefetch_row
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


@njit(**INNER)
def _sum_words(matrix: np.ndarray, ids: np.ndarray, words: np.ndarray, first: int, count: int, out: np.ndarray) -> None:
    """out[t] = sum of the rows of word first + t."""
    width = matrix.shape[1]
    for t in range(count):
        total, start, stop = out[t], words[first + t], words[first + t + 1]
        if start == stop:
            for k in range(width):
                total[k] = 0.0
        for p in range(start, stop):
            if p + _AHEAD < len(ids):
                prefetch_row(matrix, ids[p + _AHEAD])
            row = matrix[ids[p]]
            if p == start:
                for k in range(width):
                    total[k] = row[k]
            else:
                for k in range(width):
                    total[k] += row[k]


@njit(**INNER, fastmath=True)
def _gram_band(vectors: np.ndarray, count: int, reach: int, out: np.ndarray) -> None:
    """out[r, t] = inner product of vectors t and t + r, for r < reach and t + r < count; float32 (reach + 8, count + 8).

    Two vectors against four at a time: eight sums are enough to keep a processor's two multipliers busy, and six vectors
    are read from the cache for eight products. The few products that the band does not need go into the room beside it.

    Args:
        vectors: float32 (count + 8, d) at least; what follows ``count`` is read, but of no consequence.
        count: number of vectors.
        reach: width of the band.
        out: receives the products.
    """
    width = vectors.shape[1]
    for t in range(0, count, 2):
        for j in range(t, min(t + reach + 1, count), 4):
            a = b = c = d = e = f = g = h = np.float32(0.0)
            for k in range(width):
                x, y = vectors[t, k], vectors[t + 1, k]
                p, q, r, s = vectors[j, k], vectors[j + 1, k], vectors[j + 2, k], vectors[j + 3, k]
                a += x * p
                b += x * q
                c += x * r
                d += x * s
                e += y * p
                f += y * q
                g += y * r
                h += y * s
            z = j - t
            out[z, t], out[z + 1, t], out[z + 2, t], out[z + 3, t] = a, b, c, d
            if z:
                out[z - 1, t + 1] = e
            out[z, t + 1], out[z + 1, t + 1], out[z + 2, t + 1] = f, g, h


class Room(NamedTuple):
    """What a tile is measured in: the vectors of its words, their products, and a line for each thing known of the spans.

    For the spans of so many words from each word on, in float64: the last word's product with the others (two lines,
    written in turn), the squared length, and what it would be if the words were orthogonal. In float32: the inverse length,
    and the largest spread.
    """

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
        np.zeros((height, dim), np.float32),
        np.empty((max_size + 8, height), np.float32),
        np.empty((2, height), np.float64),
        *(np.empty(height, np.float64) for _ in range(2)),
        *(np.empty(height, np.float32) for _ in range(2)),
    )


@njit(**INNER, error_model="numpy")  # no look at whether a divisor is 0, which would keep it from vectorising
def _measure_size(r: int, count: int, starts: int, room: Room) -> None:
    """Go on from the spans of ``r`` words of a tile to those of ``r + 1``. Starts are the inner loops, and vectorise.

    Args:
        r: how many words before the last.
        count: words of the tile, with those that its spans reach beyond it.
        starts: words that a span may begin with.
        room: holds what is known of the spans of ``r`` words, and ``lengths`` then those of ``r + 1``.
    """
    gram, cross, squares, apart = room.gram, room.cross[r % 2], room.squares, room.apart
    lengths, widest = room.lengths, room.widest
    there = count - r  # starts from which so many words follow
    if r:
        products, before = gram[r], room.cross[1 - r % 2, 1:]
        for i in range(there):
            cross[i] = before[i] + products[i]
    else:
        for i in range(count):
            cross[i] = squares[i] = apart[i] = 0.0
            widest[i] = 0.0
    last = gram[0, r:]
    for i in range(min(starts, there)):
        own = np.float64(last[i])
        squares[i] += own + 2.0 * cross[i]
        apart[i] += own
    for i in range(min(starts, there)):  # in float32, without a branch
        whole = squares[i] > VANISHED * apart[i]
        length = np.float32(1.0) / np.sqrt(np.float32(squares[i] if whole else 1.0))
        lengths[i] = length if whole else np.float32(0.0)
        widest[i] = max(widest[i], np.float32(apart[i]) * lengths[i] * lengths[i])
    for i in range(max(0, there), starts):
        lengths[i] = 0.0


@njit(inline="always")
def _has_zero(numbers: np.ndarray, count: int) -> bool:
    """Tell whether one of the first ``count`` numbers is 0."""
    found = False
    for i in range(count):
        found |= numbers[i] == 0
    return found


@njit(**INNER)
def _leave_out(squares: np.ndarray, r: int, count: int, line: np.ndarray) -> None:
    """Set ``line`` to 0 for the spans of ``r + 1`` words that begin or end with a word whose square is 0."""
    for i in range(min(TILE, count - r)):
        if squares[i] == 0 or squares[i + r] == 0:
            line[i] = 0.0


@njit(**LEAN)
def _measure(
    matrix: np.ndarray,
    block: Block,
    wanted: np.ndarray,
    start: int,
    stop: int,
    min_size: int,
    max_size: int,
    room: Room,
) -> None:
    """See :func:`measure_spans`."""
    texts, inverse = block.texts, block.inverse
    part, sizes = part_size(max_size), max_size + 1 - min_size
    lengths, widest = room.lengths, room.widest
    for text in range(start, stop):
        if not wanted[text]:
            continue
        tile = block.tiles[text]
        for first in range(texts[text], texts[text + 1], TILE):
            left = texts[text + 1] - first
            starts, count = min(TILE, left), min(TILE + max_size - 1, left)
            _sum_words(matrix, block.names, block.words, first, count, room.vectors)
            _gram_band(room.vectors, count, max_size, room.gram)
            holes = _has_zero(room.gram[0], count)
            for r in range(max_size):
                _measure_size(r, count, starts, room)
                if r == 0:
                    for i in range(starts):
                        row = block.rows[first + i]
                        block.row_inverse[row] = lengths[i]  # the same in all places
                        block.row_lengths[row] = np.sqrt(np.float32(room.squares[i]))
                if r + 1 >= min_size:
                    line = inverse[place_of(sizes, first, starts, r + 1 - min_size, 0) :]
                    for i in range(starts):
                        line[i] = lengths[i]
                    if holes:
                        _leave_out(room.gram[0], r, count, line)
            for p in range((starts + part - 1) // part):
                spread = np.float32(1.0)
                for i in range(p * part, min(p * part + part, starts)):
                    spread = max(spread, widest[i])
                block.levels[tile, p] = level_of(spread * np.float32(1.000001))  # rounding must not make the bound too low
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
