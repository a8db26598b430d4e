"""Compiled gathering and averaging of rows: the core of encoding, sentence PCA and training.

Each function walks the flat arrays of a ``Bags`` once, releases the GIL and writes into an array of the caller, so that
threads need no copies. Rows are added in the bag's order, whatever the number of threads: the same bag gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from xswe.io.compiler import INNER, LEAN, prefetch, prefetch_row

# Half precision is read by shifting its bits into a float32, which leaves the exponent too low by 112.
HALF_SCALE = np.float32(2.0**112)


def widen(x: Any, scale: Any) -> Any:
    """Return a stored number as float32: a float32, an int8 times its scale, or the bits of a float16."""
    raise NotImplementedError("compiled code only")


@overload(widen, inline="always", strict=False)  # strict also compares annotations
def _widen(x: Any, scale: Any) -> Callable[[Any, Any], Any] | None:
    if x == types.float32:
        return lambda x, scale: x
    if x == types.int8:
        return lambda x, scale: np.float32(x) * scale
    if x == types.uint16:

        def half(x: Any, scale: Any) -> Any:
            # Integer operations and one exact product, which vectorise on any processor (a conversion would not).
            sign = np.uint32(x & np.uint16(0x8000)) << np.uint32(16)
            return np.uint32(sign | (np.uint32(x & np.uint16(0x7FFF)) << np.uint32(13))).view(np.float32) * HALF_SCALE

        return half
    return None


@njit(**INNER)
def _norm(row: np.ndarray, squares: np.ndarray) -> Any:
    """Return a row's Euclidean norm; the squares are summed by folding in halves, which vectorises and numpy can repeat."""
    size = len(row)
    if size % 4 == 0:  # the first two folds at once
        size //= 4
        for j in range(size):
            a, b, c, d = row[j], row[j + size], row[j + 2 * size], row[j + 3 * size]
            squares[j] = (a * a + c * c) + (b * b + d * d)
    else:
        for j in range(size):
            squares[j] = row[j] * row[j]
    while size > 1:
        half = size // 2
        for j in range(half):
            squares[j] += squares[size - half + j]
        size -= half
    return np.sqrt(squares[0])


@njit(**LEAN)
def pool_rows(
    matrix: np.ndarray,
    scales: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    normalise: bool,
    out: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Set ``out[i]``, float32 (d,), to the mean of the rows ``ids[offsets[i]:offsets[i + 1]]``.

    ``matrix`` is (units, d) float32, int8 with ``scales``, float32 (units,), or the bits of float16 as uint16; except for
    int8, the scales are any array of one element. If ``normalise``, results are scaled to norm 1; those of an empty bag,
    or of one whose rows cancel, are zero. ``squares``, float32 (d,), is workspace.
    """
    width = out.shape[1]
    scaled = len(scales) == matrix.shape[0]
    for i in range(out.shape[0]):
        total = out[i]
        for j in range(width):
            total[j] = 0.0
        t, stop = offsets[i], offsets[i + 1]
        # Four rows at a time: their cache misses overlap, and the sums are loaded and stored a quarter as often.
        while t + 4 <= stop:
            if t + 8 <= len(ids):  # also rows of the next text
                for coming in range(t + 4, t + 8):
                    prefetch_row(matrix, ids[coming])
            m, n, o, p = ids[t], ids[t + 1], ids[t + 2], ids[t + 3]
            a, b, c, d = matrix[m], matrix[n], matrix[o], matrix[p]
            if scaled:
                e, f, g, h = scales[m], scales[n], scales[o], scales[p]
            else:
                e = f = g = h = np.float32(1.0)
            for j in range(width):
                total[j] = (((total[j] + widen(a[j], e)) + widen(b[j], f)) + widen(c[j], g)) + widen(d[j], h)
            t += 4
        while t < stop:
            a = matrix[ids[t]]
            e = scales[ids[t]] if scaled else np.float32(1.0)
            for j in range(width):
                total[j] += widen(a[j], e)
            t += 1
        divisor = _norm(total, squares) if normalise else np.float32(offsets[i + 1] - offsets[i])
        if divisor > 0:
            inverse = np.float32(1.0) / divisor
            for j in range(width):
                total[j] *= inverse


@njit(**LEAN)
def sum_rows(matrix: np.ndarray, ids: np.ndarray, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[i]`` to the sum of ``matrix[ids[t]]`` for ``starts[i] <= t < stops[i]``; float32 (bags, d)."""
    width = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(width):
            out[i, j] = 0.0
        t, stop = starts[i], stops[i]
        while t + 4 <= stop:  # as above
            if t + 8 <= len(ids):  # also rows of the next bag
                for coming in range(t + 4, t + 8):
                    prefetch_row(matrix, ids[coming])
            a, b, c, d = matrix[ids[t]], matrix[ids[t + 1]], matrix[ids[t + 2]], matrix[ids[t + 3]]
            for j in range(width):
                out[i, j] = (((out[i, j] + a[j]) + b[j]) + c[j]) + d[j]
            t += 4
        while t < stop:
            row = ids[t]
            for j in range(width):
                out[i, j] += matrix[row, j]
            t += 1


@njit(**LEAN)
def copy_rows(matrix: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[i]`` to ``matrix[rows[i]]``; both are C-contiguous."""
    for i in range(len(rows)):
        if i + 8 < len(rows):
            prefetch_row(matrix, rows[i + 8])
        for j in range(matrix.shape[1]):
            out[i, j] = matrix[rows[i], j]


@njit(**LEAN)
def divide_rows(out: np.ndarray, divisors: np.ndarray) -> None:
    """Divide each row by its divisor; a row with divisor 0 stays unchanged."""
    for i in range(out.shape[0]):
        if divisors[i] != 0:
            inverse = np.float32(1.0) / np.float32(divisors[i])
            for j in range(out.shape[1]):
                out[i, j] *= inverse


@njit(**LEAN, fastmath=True)
def row_norms(matrix: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[i]`` to the Euclidean norm of row i."""
    for i in range(matrix.shape[0]):
        total = np.float32(0.0)
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * matrix[i, j]
        out[i] = np.sqrt(total)


_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: multiplying by it spreads keys
_AHEAD = 8  # how many bigrams ahead slots are prefetched


@njit(**INNER)
def _slot_of(key: Any, shift: Any) -> Any:
    return np.int64((np.uint64(key) * _MIX) >> shift)


@njit(**LEAN)
def fill_slots(keys: np.ndarray, shift: np.uint64, bits: int, slots: np.ndarray) -> None:
    """Put keys into a hash table with open addressing, int64, initially all -1: ``key << bits | place of the key``."""
    for k in range(len(keys)):
        place = _slot_of(keys[k], shift)
        while slots[place] >= 0:
            place = (place + 1) & (len(slots) - 1)
        slots[place] = (keys[k] << bits) | k


@njit(**LEAN)
def widen_bags(
    ids: np.ndarray,
    offsets: np.ndarray,
    units: int,
    shift: np.uint64,
    bits: int,
    slots: np.ndarray,
    rows: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Copy the ids of each bag, and append the rows of its pairs of adjacent units that :func:`fill_slots` put in."""
    n = np.int64(0)
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            rows[n] = ids[t]
            n += 1
        for t in range(offsets[i], offsets[i + 1] - 1):
            coming = t + _AHEAD
            if coming + 1 < len(ids):  # also bigrams of the next text
                prefetch(slots, _slot_of(np.int64(ids[coming]) * units + ids[coming + 1], shift))
            key = np.int64(ids[t]) * units + ids[t + 1]
            place = _slot_of(key, shift)
            while slots[place] >= 0 and slots[place] >> bits != key:
                place = (place + 1) & (len(slots) - 1)
            if slots[place] >= 0:
                rows[n] = np.int32(units + (slots[place] & ((np.int64(1) << bits) - 1)))
                n += 1
        ends[i + 1] = n
