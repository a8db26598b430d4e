"""Lengths of all span vectors of a text, from the inner products of its words.

A span's vector is the sum of its words'. With g_tu the inner products of words t and u,

    |span i..j|^2 = |span i..j-1|^2 + g_jj + 2 C_ij,    C_ij = sum of g_tj for i <= t < j = C_i+1,j + g_ij,

so that all spans of up to s words cost s inner products a word, shared by all queries, and two additions each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.memory import LEAN

# A span shorter than this fraction of its words' lengths taken together (as if orthogonal) has no direction: what is left
# of it is rounding error.
VANISHED = 1e-6
# Starts handled at a time. A longer text is cut into tiles of so many starts (a tile's spans may reach beyond them), which
# keeps every buffer in the cache and the bound below about few words, however long a passage is.
TILE = 64


class Block(NamedTuple):
    """A block of passages as compiled code sees it.

    Attributes:
        ids: int32 (pieces,), rows of the words in a table.
        names: int32 (pieces,), the same by a number that lasts from block to block.
        words: int64 (w + 1,), word ``j`` has the rows ``ids[words[j]:words[j + 1]]``.
        texts: int64 (n + 1,), passage ``i`` has the words ``texts[i]`` to ``texts[i + 1]``.
        tiles: int64 (n + 1,), passage ``i`` has the tiles ``tiles[i]`` to ``tiles[i + 1]``.
        inverse: float32 (w, sizes), 1 / |span| of the span of the r-th size from each word on; 0 where the passage ends
            before, or the span has no direction.
        word_inverse: float32 (w,), 1 / |word|; 0 for a word without a vector.
        spread: float32 (tiles, parts), the largest, over the spans that begin in a part of a tile (see :func:`part_size`),
            of the sum of its words' squared lengths divided by its own: 1 where words are orthogonal. The bound of the
            search rests on it.
    """

    ids: np.ndarray
    names: np.ndarray
    words: np.ndarray
    texts: np.ndarray
    tiles: np.ndarray
    inverse: np.ndarray
    word_inverse: np.ndarray
    spread: np.ndarray


@njit(inline="always")
def part_size(max_size: int) -> int:
    """Words of a part: a span of up to ``max_size`` words lies within five parts that follow each other."""
    return (max_size + 3) // 4


@njit(nogil=True, cache=True)
def tiles_of(texts: np.ndarray) -> np.ndarray:
    """Number the tiles: text ``i`` has tiles ``out[i]`` to ``out[i + 1]``; int64 (n + 1,)."""
    out = np.zeros(len(texts), np.int64)
    for i in range(len(texts) - 1):
        out[i + 1] = out[i] + (texts[i + 1] - texts[i] + TILE - 1) // TILE
    return out


@njit(**LEAN)
def _sum_words(matrix: np.ndarray, ids: np.ndarray, words: np.ndarray, first: int, count: int, out: np.ndarray) -> None:
    """out[t] = sum of the rows of word first + t."""
    width = matrix.shape[1]
    for t in range(count):
        for k in range(width):
            out[t, k] = 0.0
        for p in range(words[first + t], words[first + t + 1]):
            row = ids[p]
            for k in range(width):
                out[t, k] += matrix[row, k]


@njit(**LEAN, fastmath=True)
def _gram_band(vectors: np.ndarray, count: int, reach: int, out: np.ndarray) -> None:
    """out[t, r] = inner product of vectors t and t + r, for r < reach and t + r < count; float32 (count, reach + 8).

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
            out[t, z], out[t, z + 1], out[t, z + 2], out[t, z + 3] = a, b, c, d
            if z:
                out[t + 1, z - 1] = e
            out[t + 1, z], out[t + 1, z + 1], out[t + 1, z + 2] = f, g, h


@njit(**LEAN)
def _invert(own: np.ndarray, cross: np.ndarray, squares: np.ndarray, apart: np.ndarray, inverse: np.ndarray) -> np.float32:
    """inverse[r] = 1 / length of the span of r + 1 words, 0 where it has vanished; returns the largest spread.

    Args:
        own: float64 (n,), squared lengths of the words.
        cross: float64 (n,), each word's inner product with the words before it.
        squares: float64, room for the squared lengths of the spans.
        apart: float64, room for what these would be if the words were orthogonal.
        inverse: float32 (n,) at least.
    """
    square = alone = 0.0
    for r in range(len(own)):
        square += own[r] + 2.0 * cross[r]
        alone += own[r]
        squares[r], apart[r] = square, alone
    widest = np.float32(0.0)
    for r in range(len(own)):  # in float32, without a branch, so that it vectorises
        whole = squares[r] > VANISHED * apart[r]
        length = np.float32(1.0) / np.sqrt(np.float32(squares[r] if whole else 1.0))
        inverse[r] = length if whole else np.float32(0.0)
        widest = max(widest, np.float32(apart[r]) * inverse[r] * inverse[r])
    return widest * np.float32(1.000001)  # rounding must not make the bound too low


@njit(nogil=True, cache=True)
def measure_spans(matrix: np.ndarray, block: Block, start: int, stop: int, min_size: int, max_size: int) -> None:
    """Fill ``inverse``, ``word_inverse`` and ``spread`` of the passages ``start`` to ``stop``.

    Args:
        matrix: float32 (rows, d), the vectors of ``block.names``.
        block: the passages.
        start: first passage.
        stop: one past the last.
        min_size: words of the shortest span.
        max_size: words of the longest.
    """
    texts, inverse, word_inverse, spread = block.texts, block.inverse, block.word_inverse, block.spread
    part = part_size(max_size)
    height = TILE + max_size
    vectors = np.zeros((height + 8, matrix.shape[1]), np.float32)
    gram = np.empty((height + 8, max_size + 8), np.float32)
    own, cross = np.empty(height, np.float64), np.empty(height, np.float64)
    squares, apart = np.empty(max_size, np.float64), np.empty(max_size, np.float64)
    lengths = np.empty(max_size, np.float32)
    for text in range(start, stop):
        tile = block.tiles[text]
        for first in range(texts[text], texts[text + 1], TILE):
            left = texts[text + 1] - first
            starts, count = min(TILE, left), min(TILE + max_size - 1, left)
            _sum_words(matrix, block.names, block.words, first, count, vectors)
            _gram_band(vectors, count, max_size, gram)
            for t in range(count):
                own[t], cross[t] = gram[t, 0], 0.0
            spread[tile] = 1.0
            for i in range(count - 1, -1, -1):
                most = min(max_size, count - i)
                for r in range(1, most):
                    cross[i + r] += gram[i, r]
                if i < starts:
                    widest = _invert(own[i : i + most], cross[i : i + most], squares, apart, lengths)
                    spread[tile, i // part] = max(spread[tile, i // part], widest)
                    word_inverse[first + i] = lengths[0]
                    for r in range(min_size - 1, most):
                        inverse[first + i, r + 1 - min_size] = lengths[r]
                    for r in range(max(min_size - 1, most), max_size):
                        inverse[first + i, r + 1 - min_size] = 0.0
            tile += 1
