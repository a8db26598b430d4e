"""The nearest of many stored vectors to one: an estimate from bytes, and then exactly what the estimate cannot rule out.

A question reads a byte a number, which costs memory a quarter of the vectors themselves. How far an estimate can be from
the truth is known, so that all rows that may be among the k nearest are found, and only those are scored in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN, prefetch_row
from xswe.io.parallel import over_blocks
from xswe.search.kernels import empty_lists, push
from xswe.search.vectors import Vectors

_AHEAD = 32  # rows that memory is asked for in advance
_ROUNDING = 1e-6  # of float32, in a score
_EVERY = np.zeros(0, np.int32)  # in the place of some rows: all of them


class Coded(NamedTuple):
    """Vectors beside their codes.

    Attributes:
        codes: int8 (n, d), of :func:`make_codes`.
        scales: float32 (n,); rows where it is NaN are left out.
        vectors: the n vectors.
        error: the largest distance of a row of the codes from its vector.
    """

    codes: np.ndarray
    scales: np.ndarray
    vectors: Vectors
    error: float


def make_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Round unit vectors to bytes.

    Args:
        vectors: float32 (n, d), rows of norm 1 or zero.

    Returns:
        The bytes, int8 (n, d); what a row of them is multiplied with to have norm 1, float32 (n,), NaN for a zero row; and
        the largest distance of a row from what stands for it.
    """
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    return codes, scales, float(_round(vectors, codes, scales)) ** 0.5


@njit(**LEAN)
def _round(vectors: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> np.float32:
    """Fill codes and scales; returns the largest squared distance."""
    worst = np.float32(0.0)
    for i in range(len(vectors)):
        largest = np.float32(0.0)
        for j in range(vectors.shape[1]):
            largest = max(largest, abs(vectors[i, j]))
        factor = np.float32(127.0) / largest if largest > 0 else np.float32(0.0)
        squares = np.int32(0)
        for j in range(vectors.shape[1]):
            codes[i, j] = np.int8(np.rint(vectors[i, j] * factor))
            squares += np.int32(codes[i, j]) * np.int32(codes[i, j])
        scales[i] = np.float32(1.0) / np.sqrt(np.float32(squares)) if squares > 0 else np.float32(np.nan)
        distance = np.float32(0.0)
        for j in range(vectors.shape[1]):
            difference = vectors[i, j] - np.float32(codes[i, j]) * scales[i]
            distance += difference * difference
        worst = max(worst, distance)  # a zero row has NaN, which max leaves out
    return worst


@njit(**LEAN)
def _estimate(
    codes: np.ndarray,
    scales: np.ndarray,
    query: np.ndarray,
    rows: np.ndarray,
    bounds: tuple[int, int],
    out: np.ndarray,
    best: np.ndarray,
    ids: np.ndarray,
) -> None:
    """Fill ``out`` from one bound to the other with inner products, and keep the best of them; NaN enters nowhere."""
    start, stop = bounds
    some, last = len(rows) > 0, len(best) - 1
    for i in range(start, stop):
        ahead = min(i + _AHEAD, stop - 1)
        prefetch_row(codes, rows[ahead] if some else ahead)
        row = rows[i] if some else i
        line, total = codes[row], np.int32(0)
        for j in range(len(query)):
            total = np.int32(total + np.int32(line[j]) * np.int32(query[j]))
        score = np.float32(total) * scales[row]
        out[i] = score
        if score > best[last]:
            push(best, ids, score, row)


def nearest(
    query: np.ndarray, k: int, coded: Coded, rows: np.ndarray | None = None, repeats: int = 1, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k vectors with the largest inner products.

    Args:
        query: float32 (d,), of norm 1.
        k: how many.
        coded: where to look.
        rows: int32, which rows to look at; None for all.
        repeats: how often at most one of them occurs.
        threads: how many share the rows.

    Returns:
        Their scores, float32 (k,), best first, and their rows, int64 (k,), of equal scores the lower first; fewer than k
        where there are no more.
    """
    codes, scales, vectors, error = coded
    levels = min(32_767, (2**31 - 1) // (127 * codes.shape[1]))  # the sum of a row fits 32 bits
    step = float(np.abs(query).max()) / levels
    rounded = np.rint(query / np.float32(step)).astype(np.int16)
    count = len(codes) if rows is None else len(rows)
    k = min(k, count)
    if not k:
        return np.zeros(0, np.float32), np.zeros(0, np.int64)
    out = np.empty(count, np.float32)

    def work(start: int, stop: int) -> np.ndarray:
        best, ids = empty_lists(1, k * repeats)
        _estimate(codes, scales, rounded, _EVERY if rows is None else rows, (start, stop), out, best[0], ids[0])
        return best[0]

    best = np.sort(np.concatenate(over_blocks(work, count, threads)))[-k * repeats]
    missed = float(np.linalg.norm(query - rounded * np.float32(step)))
    slack = 2 * (error * (1 + missed) + missed + _ROUNDING) / step
    wanted = np.flatnonzero(out >= best - slack) if best > -np.inf else np.flatnonzero(out == out)
    wanted = wanted if rows is None else np.unique(rows[wanted])
    scores = (vectors.take(wanted).astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
    order = np.lexsort((wanted, -scores))[:k]
    return scores[order], wanted[order].astype(np.int64)
