"""Retrieval of translations among aligned vectors: nearest-neighbour accuracy, mteb's F1, and both with a margin."""

from __future__ import annotations

import numpy as np

_BLOCK = 2048


def nearest(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the row of the candidate of highest inner product for each query, int64 (n,); ties: the lowest row."""
    out = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), _BLOCK):
        out[start : start + _BLOCK] = (queries[start : start + _BLOCK] @ candidates.T).argmax(1)
    return out


def _neighbourhood(queries: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """Return the mean inner product of each query with its k nearest candidates, float32 (n,)."""
    k = min(k, len(candidates))
    out = np.empty(len(queries), np.float32)
    for start in range(0, len(queries), _BLOCK):
        scores = queries[start : start + _BLOCK] @ candidates.T
        out[start : start + _BLOCK] = np.partition(scores, -k, axis=1)[:, -k:].mean(1)
    return out


def nearest_by_margin(queries: np.ndarray, candidates: np.ndarray, k: int = 4) -> np.ndarray:
    """Return the best candidate of each query by ratio margin (Artetxe & Schwenk 2019), int64 (n,).

    The score is the cosine divided by the mean of both sides' average cosine with their k nearest neighbours.
    """
    forward, backward = _neighbourhood(queries, candidates, k), _neighbourhood(candidates, queries, k)
    out = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), _BLOCK):
        stop = start + _BLOCK
        base = np.maximum((forward[start:stop, None] + backward[None, :]) / 2, 1e-9)
        out[start:stop] = (queries[start:stop] @ candidates.T / base).argmax(1)
    return out


def weighted_f1(predicted: np.ndarray) -> float:
    """Mteb's bitext F1: scikit-learn's weighted F1 over the predicted rows, where row i is the answer of query i.

    Each row is a class that occurs once, so its F1 is 2 / (1 + number of times it was predicted) where it was found
    by its own query, else 0.
    """
    hits = predicted == np.arange(len(predicted))
    times = np.bincount(predicted, minlength=len(predicted))[: len(predicted)]
    return float((2.0 / (1.0 + times))[hits].sum() / max(1, len(predicted)))


def bitext_retrieval(source: np.ndarray, target: np.ndarray, margin: bool = False) -> dict[str, float]:
    """Score the retrieval of translations, row i of one side being the translation of row i of the other.

    Args:
        source: float32 (n, d), unit vectors.
        target: float32 (n, d).
        margin: score neighbours by ratio margin (k = 4) instead of the cosine.

    Returns:
        ``accuracy_forward`` (source to target), ``accuracy_backward``, their mean ``accuracy``, and the same for ``f1``
        (mteb's); all between 0 and 1.
    """
    find = nearest_by_margin if margin else nearest
    if not len(source):
        return {}
    forward, backward = find(source, target), find(target, source)
    truth = np.arange(len(source))
    accuracy = [float((found == truth).mean()) for found in (forward, backward)]
    f1 = [weighted_f1(found) for found in (forward, backward)]
    return {
        "accuracy_forward": accuracy[0],
        "accuracy_backward": accuracy[1],
        "accuracy": sum(accuracy) / 2,
        "f1_forward": f1[0],
        "f1_backward": f1[1],
        "f1": sum(f1) / 2,
    }
