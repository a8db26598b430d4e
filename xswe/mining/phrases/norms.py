"""Lengths of all span vectors of a text, from the inner products of its words.

A span's vector is the sum of its words'. With g_tu the inner products of words t and u,

    |span i..j|^2 = |span i..j-1|^2 + g_jj + 2 C_ij,    C_ij = sum of g_tj for i <= t < j = C_i+1,j + g_ij,

so that all spans of up to s words cost s inner products a word, shared by all queries, and two additions each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

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
        spread: float32 (tiles,), the largest, over the spans of a tile, of the sum of its words' squared lengths divided
            by its own: 1 where words are orthogonal. The bound of the search rests on it.
    """

    ids: np.ndarray
    names: np.ndarray
    words: np.ndarray
    texts: np.ndarray
    tiles: np.ndarray
    inverse: np.ndarray
    word_inverse: np.ndarray
    spread: np.ndarray


@njit(nogil=True, cache=True)
def tiles_of(texts: np.ndarray) -> np.ndarray:
    """Number the tiles: text ``i`` has tiles ``out[i]`` to ``out[i + 1]``; int64 (n + 1,)."""
    out = np.zeros(len(texts), np.int64)
    for i in range(len(texts) - 1):
        out[i + 1] = out[i] + (texts[i + 1] - texts[i] + TILE - 1) // TILE
    return out


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True, fastmath=True)
def _gram_band(vectors: np.ndarray, count: int, reach: int, out: np.ndarray) -> None:
    """out[t, r] = inner product of vectors t and t + r, for r < reach; float32.

    Four at a time, so that a vector is read from the cache once for four products.
    """
    width = vectors.shape[1]
    for t in range(count):
        most = min(reach, count - t)
        r = 0
        while r + 4 <= most:
            a = b = c = d = np.float32(0.0)
            for k in range(width):
                x = vectors[t, k]
                a += x * vectors[t + r, k]
                b += x * vectors[t + r + 1, k]
                c += x * vectors[t + r + 2, k]
                d += x * vectors[t + r + 3, k]
            out[t, r], out[t, r + 1], out[t, r + 2], out[t, r + 3] = a, b, c, d
            r += 4
        while r < most:
            a = np.float32(0.0)
            for k in range(width):
                a += vectors[t, k] * vectors[t + r, k]
            out[t, r] = a
            r += 1


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
    texts, inverse, word_inverse = block.texts, block.inverse, block.word_inverse
    height = TILE + max_size
    vectors = np.empty((height, matrix.shape[1]), np.float32)
    gram = np.empty((height, max_size), np.float32)
    cross = np.empty(height, np.float64)
    for text in range(start, stop):
        tile = block.tiles[text]
        for first in range(texts[text], texts[text + 1], TILE):
            left = texts[text + 1] - first
            starts, count = min(TILE, left), min(TILE + max_size - 1, left)
            _sum_words(matrix, block.names, block.words, first, count, vectors)
            _gram_band(vectors, count, max_size, gram)
            widest = 1.0
            for i in range(count - 1, -1, -1):
                cross[i] = 0.0
                squared = apart = 0.0
                for r in range(min(max_size, count - i)):
                    j = i + r
                    if r:
                        cross[j] += gram[i, r]
                    squared += gram[j, 0] + 2.0 * cross[j]
                    apart += gram[j, 0]
                    whole = squared > VANISHED * apart
                    if i < starts and r + 1 >= min_size:
                        inverse[first + i, r + 1 - min_size] = 1.0 / np.sqrt(squared) if whole else 0.0
                        if whole:
                            widest = max(widest, apart / squared)
                if i < starts:
                    word_inverse[first + i] = 1.0 / np.sqrt(gram[i, 0]) if gram[i, 0] > 0 else 0.0
                    for size in range(max(min_size, count - i + 1), max_size + 1):
                        inverse[first + i, size - min_size] = 0.0
            block.spread[tile] = widest
            tile += 1
