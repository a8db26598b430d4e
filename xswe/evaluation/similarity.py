"""Sentence similarity: rank correlation of cosines with human scores."""

from __future__ import annotations

import numpy as np


def similarity_correlation(left: np.ndarray, right: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Correlate cosines with scores.

    Args:
        left: float32 (n, d), unit vectors.
        right: float32 (n, d), unit vectors.
        scores: float (n,), what people said.

    Returns:
        ``spearman`` and ``pearson``, between -1 and 1.
    """
    from scipy.stats import pearsonr, spearmanr

    cosines = np.einsum("ij,ij->i", left, right)
    return {
        "spearman": float(spearmanr(cosines, scores).statistic),
        "pearson": float(pearsonr(cosines, scores).statistic),
    }
