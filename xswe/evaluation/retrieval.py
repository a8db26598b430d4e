"""Retrieval of translations among aligned vectors: nearest-neighbour accuracy, MRR, mteb's F1, all also with a margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xswe.mining.margin import ratio_base

_BLOCK = 2048
_NEIGHBOURS = 4  # k of the margin, as in Artetxe & Schwenk 2019


class Found(NamedTuple):
    """The outcome of a search; row i of the candidates is the answer of query i.

    Attributes:
        nearest: int64 (n,), the candidate of the highest score; ties: the lowest row.
        rank: int64 (n,), the answer's place among the candidates, from 1.
    """

    nearest: np.ndarray
    rank: np.ndarray


def search(queries: np.ndarray, candidates: np.ndarray, base: tuple[np.ndarray, np.ndarray] | None = None) -> Found:
    """Rank the candidates of every query, in blocks: never more than 2,048 rows of scores are in memory.

    Args:
        queries: float32 (n, d), unit vectors.
        candidates: float32 (m, d), unit vectors, m >= n.
        base: each query's and each candidate's mean cosine with its neighbours, float32 (n,) and (m,); scores are then
            cosines divided by the mean of the two (ratio margin, as in mining), else plain cosines.
    """
    nearest, rank = np.empty(len(queries), np.int64), np.empty(len(queries), np.int64)
    columns = np.arange(len(candidates))
    for start in range(0, len(queries), _BLOCK):
        scores = queries[start : start + _BLOCK] @ candidates.T
        if base is not None:
            scores /= ratio_base(base[0][start : start + _BLOCK, None], base[1][None, :])
        rows = np.arange(start, start + len(scores))
        nearest[rows] = scores.argmax(1)
        answer = scores[rows - start, rows][:, None]
        # An equal score counts as better if it stands before, so that rank 1 and the nearest say the same.
        before = (scores > answer) | ((scores == answer) & (columns[None, :] < rows[:, None]))
        rank[rows] = 1 + before.sum(1)
    return Found(nearest, rank)


def neighbourhood(queries: np.ndarray, candidates: np.ndarray, k: int = _NEIGHBOURS) -> np.ndarray:
    """Return the mean inner product of each query with its k nearest candidates, float32 (n,)."""
    k = min(k, len(candidates))
    out = np.empty(len(queries), np.float32)
    for start in range(0, len(queries), _BLOCK):
        scores = queries[start : start + _BLOCK] @ candidates.T
        out[start : start + _BLOCK] = np.partition(scores, -k, axis=1)[:, -k:].mean(1)
    return out


def nearest(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the row of the candidate of highest inner product for each query, int64 (n,); ties: the lowest row."""
    return search(queries, candidates).nearest


def nearest_by_margin(queries: np.ndarray, candidates: np.ndarray, k: int = _NEIGHBOURS) -> np.ndarray:
    """Return the best candidate of each query by ratio margin (Artetxe & Schwenk 2019), int64 (n,).

    The score is the cosine divided by the mean of both sides' average cosine with their k nearest neighbours.
    """
    base = neighbourhood(queries, candidates, k), neighbourhood(candidates, queries, k)
    return search(queries, candidates, base).nearest


def weighted_f1(predicted: np.ndarray) -> float:
    """Mteb's bitext F1: scikit-learn's weighted F1 over the predicted rows, where row i is the answer of query i."""
    return float(_f1_items(predicted).mean()) if len(predicted) else 0.0


def _f1_items(predicted: np.ndarray) -> np.ndarray:
    """Return each row's own F1, float64 (n,); their mean is the weighted F1.

    Each row is a class that occurs once, so its F1 is 2 / (1 + number of times it was predicted) where it was found by
    its own query, else 0.
    """
    times = np.bincount(predicted, minlength=len(predicted))[: len(predicted)]
    return np.where(predicted == np.arange(len(predicted)), 2.0 / (1.0 + times), 0.0)


def bitext_items(source: np.ndarray, target: np.ndarray, margin: bool = False) -> dict[str, np.ndarray]:
    """Return what :func:`bitext_retrieval` averages: for each of its figures one value a pair, float64 (n,)."""
    base = (neighbourhood(source, target), neighbourhood(target, source)) if margin and len(source) else None
    ways = search(source, target, base), search(target, source, base and base[::-1])
    measured = {
        "accuracy": [(way.rank == 1).astype(np.float64) for way in ways],
        "f1": [_f1_items(way.nearest) for way in ways],
        "mrr": [1.0 / way.rank for way in ways],
    }
    out: dict[str, np.ndarray] = {}
    for name, (forward, backward) in measured.items():
        out |= {f"{name}_forward": forward, f"{name}_backward": backward, name: (forward + backward) / 2}
    return out


def bitext_retrieval(source: np.ndarray, target: np.ndarray, margin: bool = False) -> dict[str, float]:
    """Score the retrieval of translations, row i of one side being the translation of row i of the other.

    Args:
        source: float32 (n, d), unit vectors.
        target: float32 (n, d).
        margin: score neighbours by ratio margin (k = 4) instead of the cosine.

    Returns:
        ``accuracy_forward`` (source to target), ``accuracy_backward``, their mean ``accuracy``, and the same for ``f1``
        (mteb's) and ``mrr`` (mean reciprocal rank); all between 0 and 1. Empty without pairs.
    """
    if not len(source):
        return {}
    return {name: float(items.mean()) for name, items in bitext_items(source, target, margin).items()}
