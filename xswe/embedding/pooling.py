"""Gathering and averaging rows: the compiled heart of encoding, of the sentence PCA and of training.

A text's vector is the mean of its units' rows (EN paper 3.1). Each function walks the flat arrays of a ``Bags`` once,
releases the interpreter lock and writes into an array that the caller gives, so that threads need no copies.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.language.bags import Bags
from xswe.parallel import over_blocks


@njit(nogil=True, cache=True)
def sum_rows(matrix: np.ndarray, ids: np.ndarray, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
    """out[i] = sum of matrix[ids[t]] for starts[i] <= t < stops[i]; float32 (bags, d)."""
    width = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(width):
            out[i, j] = 0.0
        for t in range(starts[i], stops[i]):
            row = ids[t]
            for j in range(width):
                out[i, j] += matrix[row, j]


@njit(nogil=True, cache=True)
def divide_rows(out: np.ndarray, divisors: np.ndarray) -> None:
    """Divide each row by its divisor; a row whose divisor is 0 stays as it is."""
    for i in range(out.shape[0]):
        if divisors[i] != 0:
            inverse = np.float32(1.0) / np.float32(divisors[i])
            for j in range(out.shape[1]):
                out[i, j] *= inverse


@njit(nogil=True, cache=True, fastmath=True)
def row_norms(matrix: np.ndarray, out: np.ndarray) -> None:
    """out[i] = Euclidean norm of row i."""
    for i in range(matrix.shape[0]):
        total = np.float32(0.0)
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * matrix[i, j]
        out[i] = np.sqrt(total)


def pool(matrix: np.ndarray, bags: Bags, *, normalise: bool, threads: int = 1, out: np.ndarray | None = None) -> np.ndarray:
    """Average the rows of each bag.

    Args:
        matrix: float32 (units, d), C-contiguous.
        bags: n bags of row numbers below ``units``.
        normalise: scale each result to Euclidean norm 1 (an empty bag, or one whose rows cancel, stays zero).
        threads: how many threads share the bags.
        out: float32 (n, d) to write into; made anew if not given.

    Returns:
        float32 (n, d).
    """
    out = np.empty((len(bags), matrix.shape[1]), np.float32) if out is None else out

    def work(start: int, stop: int) -> None:
        part, starts, stops = out[start:stop], bags.offsets[start:stop], bags.offsets[start + 1 : stop + 1]
        sum_rows(matrix, bags.ids, starts, stops, part)
        if normalise:
            norms = np.empty(len(part), np.float32)
            row_norms(part, norms)
            divide_rows(part, norms)
        else:
            divide_rows(part, stops - starts)

    over_blocks(work, len(bags), threads)
    return out
