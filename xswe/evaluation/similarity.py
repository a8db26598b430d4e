"""Sentence similarity: rank correlation of cosines with human scores."""

from __future__ import annotations

import numpy as np


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the inner products of two float32 (n, d) row by row, float32 (n,)."""
    return np.einsum("ij,ij->i", left, right)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Return Pearson's correlation of two (n,); NaN where one of them is constant."""
    x, y = x - x.mean(dtype=np.float64), y - y.mean(dtype=np.float64)
    size = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / size, -1.0, 1.0)) if size > 0 else float("nan")


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation of two (n,); equal values share their mean rank."""
    from scipy.stats import rankdata

    return pearson(rankdata(x), rankdata(y))


CORRELATIONS = {"spearman": spearman, "pearson": pearson}


def similarity_correlation(left: np.ndarray, right: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Correlate cosines with scores.

    Args:
        left: float32 (n, d), unit vectors.
        right: float32 (n, d), unit vectors.
        scores: float (n,), what people said.

    Returns:
        ``spearman`` and ``pearson``, between -1 and 1; NaN where all cosines, or all scores, are equal.
    """
    found = cosines(left, right)
    return {name: correlate(found, scores) for name, correlate in CORRELATIONS.items()}
