"""The shape of vectors at the end of training: their norms and their mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from xswe.errors import ConfigError


@dataclass(frozen=True)
class ShapeConfig:
    """Settings of the shape of the vectors, which is folded into the table.

    Norms are the weights of units; training makes them as uneven as its own text rewards, but slightly more even ones serve
    other text better. Subtracting a constant from every unit subtracts it from every mean: subtracting the mean of
    all sentences once leaves them centred; subtracting it several times gives each sentence a common part, which is larger
    if its units agree less on a direction (as in long or vague sentences). Graded similarity rewards that, and retrieval
    hardly notices.

    Attributes:
        norms: the power that norms are raised to; 1 leaves them unchanged, 0 gives all units the same weight.
        centre: how many times the mean of sentence vectors is subtracted from each unit; 0 for never.
    """

    norms: float = 1.0
    centre: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.norms < math.inf or not math.isfinite(self.centre):
            raise ConfigError(f"shape.norms={self.norms}, shape.centre={self.centre}: give norms >= 0, and a finite centre")

    @property
    def on(self) -> bool:
        """Whether these settings change anything."""
        return self != ShapeConfig()


def temper(matrix: np.ndarray, power: float) -> np.ndarray:
    """Raise the norms of rows to a power, keeping the mean norm, float32 (n, d); zero rows stay zero."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    nonzero = norms > 0
    powers = np.power(norms, power, where=nonzero, out=np.zeros_like(norms))
    powers *= norms[nonzero].mean() / powers[nonzero].mean() if nonzero.any() else 1.0
    return np.asarray(matrix * np.divide(powers, norms, where=nonzero, out=np.zeros_like(norms)), np.float32)


def centred(matrix: np.ndarray, sentences: Iterable[np.ndarray], times: float) -> np.ndarray:
    """Subtract ``times`` times the mean of sentence vectors from each row, float32 (n, d); zero rows stay zero.

    ``sentences`` are blocks of means of the matrix's rows, float32 (k, d), not scaled to norm 1.
    """
    total, count = np.zeros(matrix.shape[1]), 0
    for block in sentences:
        total += block.sum(axis=0, dtype=np.float64)
        count += len(block)
    taken = np.asarray(times * total / max(1, count), np.float32)
    return np.where(matrix.any(axis=1, keepdims=True), matrix - taken, np.float32(0.0))
