"""The k best of rows and of columns, kept while the score matrix passes by block by block.

One sweep over a block that is still in the cache serves both directions. A score is compared with the k-th best of its
row and of its column, 64 at a time without a branch, and only a stretch that holds a winner is looked at again: the sweep
costs a few per cent of the matrix product that fills the block. Lists are ordered by falling score, equal scores by
rising id, so that the result does not depend on the order in which blocks arrive.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN

_STRETCH = 64
NONE = -1  # the id of an empty place, whose score is -inf


def empty_lists(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, float32 (rows, k) all -inf, and ids, int32 (rows, k) all ``NONE``."""
    return np.full((rows, k), -np.inf, np.float32), np.full((rows, k), NONE, np.int32)


@njit(inline="always")
def push(scores: np.ndarray, ids: np.ndarray, score: np.float32, new: np.int64) -> None:
    """Insert into one list a score above its last; among equals the new one comes last."""
    place = scores.shape[0] - 1
    while place > 0 and scores[place - 1] < score:
        scores[place], ids[place] = scores[place - 1], ids[place - 1]
        place -= 1
    scores[place], ids[place] = score, new


@njit(**LEAN)
def sweep(
    block: np.ndarray,
    row_scores: np.ndarray,
    row_ids: np.ndarray,
    row_limits: np.ndarray,
    column_scores: np.ndarray,
    column_ids: np.ndarray,
    column_limits: np.ndarray,
    first_row: int,
    first_column: int,
) -> None:
    """Take one block of scores into the lists of its rows and of its columns.

    Blocks must come in rising order of rows and of columns for equal scores to be kept by rising id.

    Args:
        block: float32 (rows, columns).
        row_scores: float32 (rows, k), changed in place, as are the next five.
        row_ids: int32 (rows, k).
        row_limits: float32 (rows,), only scores above enter; never below the row's k-th best.
        column_scores: float32 (columns, k).
        column_ids: int32 (columns, k).
        column_limits: float32 (columns,).
        first_row: id of the block's first row.
        first_column: id of the block's first column.
    """
    columns = block.shape[1]
    last = row_scores.shape[1] - 1
    for i in range(block.shape[0]):
        limit, line = row_limits[i], block[i]
        for start in range(0, columns, _STRETCH):
            part, limits = line[start : start + _STRETCH], column_limits[start : start + _STRETCH]
            winners = np.int32(0)
            for j in range(len(part)):
                winners |= np.int32(part[j] > limit) | np.int32(part[j] > limits[j])
            if winners == 0:
                continue
            for j in range(len(part)):
                score = part[j]
                if score > limit:
                    push(row_scores[i], row_ids[i], score, first_column + start + j)
                    limit = max(limit, row_scores[i, last])
                if score > limits[j]:
                    push(column_scores[start + j], column_ids[start + j], score, first_row + i)
                    limits[j] = max(limits[j], column_scores[start + j, last])
        row_limits[i] = limit


@njit(inline="always")
def _before(score: np.float32, new: np.int64, other_score: np.float32, other: np.int64) -> bool:
    return bool(score > other_score or (score == other_score and (other < 0 or new < other)))


@njit(**LEAN)
def merge(
    scores: np.ndarray, ids: np.ndarray, rows: np.ndarray, more_scores: np.ndarray, more_ids: np.ndarray, names: np.ndarray
) -> None:
    """Take lists of candidates into lists of others, in any order; an id that is there already keeps its higher score.

    Args:
        scores: float32 (n, k), changed in place.
        ids: int32 (n, k), changed in place.
        rows: int64 (m,), the row of each list of candidates; empty for row i = list i.
        more_scores: float32 (m, k'), the candidates.
        more_ids: int32 (m, k'), their ids, ``NONE`` for no candidate.
        names: int64, what a candidate's id stands for; empty where it stands for itself.
    """
    last = scores.shape[1] - 1
    for m in range(more_scores.shape[0]):
        row = rows[m] if len(rows) else m
        own_scores, own_ids = scores[row], ids[row]
        for c in range(more_scores.shape[1]):
            if more_ids[m, c] < 0:
                continue
            new = names[more_ids[m, c]] if len(names) else np.int64(more_ids[m, c])
            score = more_scores[m, c]
            if not _before(score, new, own_scores[last], own_ids[last]):
                continue
            hole = last
            for place in range(last + 1):
                if own_ids[place] == new:
                    hole = place if score > own_scores[place] else -1
                    break
            if hole < 0:
                continue
            while hole > 0 and _before(score, new, own_scores[hole - 1], own_ids[hole - 1]):
                own_scores[hole], own_ids[hole] = own_scores[hole - 1], own_ids[hole - 1]
                hole -= 1
            own_scores[hole], own_ids[hole] = score, new


@njit(**LEAN)
def count_members(clusters: np.ndarray, bounds: np.ndarray) -> None:
    """Add how many lines each cluster has to ``bounds[cluster + 1]``, int64 (count + 1,).

    Args:
        clusters: int32 (n, p), the clusters of each line; negative for none.
        bounds: changed in place.
    """
    for cluster in clusters.flat:
        if cluster >= 0:
            bounds[cluster + 1] += 1


@njit(**LEAN)
def list_members(clusters: np.ndarray, free: np.ndarray, lines: np.ndarray) -> None:
    """Write the lines of every cluster, rising, from ``free[cluster]`` on, which moves behind them."""
    for line in range(clusters.shape[0]):
        for place in range(clusters.shape[1]):
            cluster = clusters[line, place]
            if cluster >= 0:
                lines[free[cluster]] = line
                free[cluster] += 1
