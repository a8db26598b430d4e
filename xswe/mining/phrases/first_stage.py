"""An approximate first stage: only passages that hold one of the rows nearest to a phrase are searched for it."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from xswe.language.cuts import Cut
from xswe.memory import LEAN
from xswe.mining.phrases.vectors import LANES
from xswe.parallel import over_blocks


def near_rows(matrix: np.ndarray, queries: np.ndarray, near: int) -> np.ndarray:
    """Return the rows of a table that are nearest to each query.

    Args:
        matrix: float32 (rows, d).
        queries: float32 (n, d).
        near: how many.

    Returns:
        int32 (n, near), in no order; (n, rows) where there are fewer.
    """
    norms = np.linalg.norm(matrix, axis=1)
    near = min(near, len(matrix))
    out = np.empty((len(queries), near), np.int32)
    for start in range(0, len(out), LANES):
        cosines = queries[start : start + LANES] @ matrix.T / np.where(norms > 0, norms, np.inf)
        out[start : start + LANES] = np.argpartition(-cosines, near - 1, axis=1)[:, :near]
    return out


def holding(near: np.ndarray, cut: Cut, rows: int, threads: int) -> np.ndarray:
    """Return which passages hold one of the near rows of each of up to ``LANES`` queries.

    Args:
        near: int32 (queries, any), of :func:`near_rows`.
        cut: the passages.
        rows: how many the table has.
        threads: how many threads share the passages.

    Returns:
        uint64 (passages,), a bit for each query.
    """
    bits, out = np.zeros(rows, np.uint64), np.empty(len(cut), np.uint64)
    for lane, own in enumerate(near):
        bits[own] |= np.uint64(1 << lane)
    over_blocks(partial(_gather_bits, bits, cut.ids, cut.words[cut.texts], out), len(cut), threads)
    return out


@njit(**LEAN)
def _gather_bits(bits: np.ndarray, ids: np.ndarray, ends: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    """out[i] = the bits of all ids of passage i, for i from ``start`` to ``stop``."""
    for i in range(start, stop):
        found = np.uint64(0)
        for p in range(ends[i], ends[i + 1]):
            found |= bits[ids[p]]
        out[i] = found
