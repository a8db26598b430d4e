"""Sentence similarity: rank correlation of cosines with human scores."""

from __future__ import annotations

import math

import numpy as np

from xswe.evaluation.rows import Row


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


def correlation_rows(found: np.ndarray, scores: np.ndarray, task: str, subset: str, what: str = "all cosines") -> list[Row]:
    """Correlate what was found with scores; a correlation that is none has no value, and a note.

    Args:
        found: float (n,).
        scores: float (n,), what people said.
        task: what the rows call the set.
        subset: its language or language pair.
        what: what a note calls ``found``.
    """
    items = np.stack([found.astype(np.float64), scores])
    rows = []
    for metric, correlate in CORRELATIONS.items():
        value = correlate(*items) if np.isfinite(items).all() else math.nan
        if math.isfinite(value):
            rows.append(Row(task, subset, metric, value, len(scores), items=items))
        else:
            rows.append(Row(task, subset, metric, None, len(scores), note=f"no correlation: {_reason(items, what)}"))
    return rows


def _reason(items: np.ndarray, what: str) -> str:
    """Say why two rows of numbers have no correlation."""
    if not np.isfinite(items).all():
        return f"of {what}, or of the scores, some are not finite"
    if items.shape[1] < 2:
        return f"{items.shape[1]} pair is too few"
    return "all scores are equal" if np.ptp(items[1]) == 0 else f"{what} are equal"
