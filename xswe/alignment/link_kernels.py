"""Compiled code of word links: similarities of the words of a pair, and the links that are chosen by them."""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN

FORWARD, BACKWARD, INTERSECTION, UNION, ITERMAX, TRANSPORT = 0, 1, 2, 3, 4, 5
_NONE = np.float32(-4.0)


@njit(**LEAN, fastmath=True)
def _similarities(source: np.ndarray, target: np.ndarray, prior: float, out: np.ndarray) -> None:
    """out[i, j] = cosine of two words, less ``prior`` times how far apart they stand in their sentences."""
    n, m = len(source), len(target)
    for i in range(n):
        for j in range(m):
            total = np.float32(0.0)
            for k in range(source.shape[1]):
                total += source[i, k] * target[j, k]
            apart = abs((i + 0.5) / n - (j + 0.5) / m)
            out[i, j] = total - np.float32(prior * apart)


@njit(**LEAN)
def _best(values: np.ndarray, n: int, m: int, rows: np.ndarray, columns: np.ndarray) -> None:
    """Find the best column of each row, and the best row of each column; the first of equal ones."""
    for j in range(m):
        columns[j] = 0
    for i in range(n):
        rows[i] = 0
        for j in range(m):
            if values[i, j] > values[i, rows[i]]:
                rows[i] = j
            if values[i, j] > values[columns[j], j]:
                columns[j] = i


@njit(**LEAN)
def _transport(values: np.ndarray, n: int, m: int, heat: float, turns: int, left: np.ndarray, right: np.ndarray) -> None:
    """Turn similarities into a plan that carries the words' equal shares from one side to the other (Sinkhorn)."""
    for i in range(n):
        left[i] = 1.0
        for j in range(m):
            values[i, j] = np.exp((values[i, j] - 1.0) / heat)
    for _ in range(turns):
        for j in range(m):
            total = 1e-30
            for i in range(n):
                total += left[i] * values[i, j]
            right[j] = 1.0 / (m * total)
        for i in range(n):
            total = 1e-30
            for j in range(m):
                total += right[j] * values[i, j]
            left[i] = 1.0 / (n * total)
    for i in range(n):
        for j in range(m):
            values[i, j] = np.float32(left[i] * right[j] * values[i, j] * min(n, m))


@njit(**LEAN)
def _copy(values: np.ndarray, n: int, m: int, work: np.ndarray, chosen: np.ndarray) -> None:
    """Begin with all similarities, and nothing chosen."""
    for i in range(n):
        for j in range(m):
            work[i, j], chosen[i, j] = values[i, j], False


@njit(**LEAN)
def _choose(method: int, n: int, m: int, rows: np.ndarray, columns: np.ndarray, chosen: np.ndarray) -> None:
    """Add the links of the best columns and rows."""
    for i in range(n):
        if method in (FORWARD, UNION) or (method != BACKWARD and columns[rows[i]] == i):
            chosen[i, rows[i]] = True
    if method in (BACKWARD, UNION):
        for j in range(m):
            chosen[columns[j], j] = True


@njit(**LEAN)
def link_words(
    source: np.ndarray,
    target: np.ndarray,
    bounds: tuple,
    how: tuple,
    room: tuple,
    links: np.ndarray,
    scores: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Link the words of pairs of sentences.

    Args:
        source: float32 (words, d), unit vectors of all source words; zero for a word without one.
        target: likewise.
        bounds: int64 (pairs + 1,) of either side, which words belong to which pair.
        how: the method; the weight of the positions; the least cosine of a link; for ITERMAX the further turns and the
            share of a similarity that a word linked before keeps; for TRANSPORT the heat, and the least share of a word.
        room: float32 (a, b) twice, int64 (a,), (b,), and bool (a, b), for the longest sentences.
        links: int32 (k, 2), receives the links; as many as there are words on both sides, times the turns, at most.
        scores: float32 (k,), receives their cosines.
        ends: int64 (pairs + 1,), receives where each pair's links begin.
    """
    method, prior, least, turns, keep, heat, share = how
    values, work, rows, columns, chosen, left, right = room
    count = 0
    for p in range(len(ends) - 1):
        a, b = source[bounds[0][p] : bounds[0][p + 1]], target[bounds[1][p] : bounds[1][p + 1]]
        n, m = len(a), len(b)
        if n == 0 or m == 0:
            ends[p + 1] = count
            continue
        _similarities(a, b, prior, values)
        if method == TRANSPORT:
            _copy(values, n, m, work, chosen)
            _transport(work, n, m, heat, 20, left, right)
            for i in range(n):
                for j in range(m):
                    chosen[i, j] = work[i, j] >= share
        else:
            _copy(values, n, m, work, chosen)
            for turn in range(1 + (turns if method == ITERMAX else 0)):
                if turn:
                    _discount(values, chosen, n, m, keep, rows, columns, work)
                _best(work, n, m, rows, columns)
                _choose(method, n, m, rows, columns, chosen)
        for i in range(n):
            for j in range(m):
                cosine = values[i, j] + np.float32(prior * abs((i + 0.5) / n - (j + 0.5) / m))
                if chosen[i, j] and cosine >= least and count < len(links):
                    links[count, 0], links[count, 1], scores[count] = i, j, cosine
                    count += 1
        ends[p + 1] = count


@njit(**LEAN)
def _discount(
    values: np.ndarray,
    chosen: np.ndarray,
    n: int,
    m: int,
    keep: float,
    rows: np.ndarray,
    columns: np.ndarray,
    work: np.ndarray,
) -> None:
    """Let words that have a link keep a share of their similarities; none where both have one (SimAlign's itermax)."""
    for i in range(n):
        rows[i] = 0
    for j in range(m):
        columns[j] = 0
    for i in range(n):
        for j in range(m):
            if chosen[i, j]:
                rows[i], columns[j] = 1, 1
    for i in range(n):
        for j in range(m):
            both = rows[i] + columns[j]
            work[i, j] = _NONE if both == 2 else values[i, j] * np.float32(keep) if both == 1 else values[i, j]
