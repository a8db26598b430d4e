"""Sentence-level principal components with the first ones removed (EN paper 3.2; ABTT of Mu & Viswanath 2018)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

import numpy as np

from xswe.errors import ConfigError


def components_removed(drop: int | Literal["auto"], dim: int, width: int) -> int:
    """Return how many components are removed from vectors of ``width`` dimensions before the next ``dim`` are kept.

    ``drop`` is the number, or ``"auto"`` for floor(width / 100), the papers' rule. ConfigError: both together exceed
    ``width``.
    """
    removed = width // 100 if drop == "auto" else int(drop)
    if removed < 0 or dim < 1 or removed + dim > width:
        raise ConfigError(
            f"drop={removed} and dim={dim} need vectors of {removed + dim} dimensions, the teacher's have {width}: "
            f"set dim={max(1, width - removed)} or less, or a smaller drop"
        )
    return removed


_DEFAULT_DIM = 256  # dimensions kept by default, as in the paper


class Components:
    """Principal components of sentence vectors: the part of ``SentencePCA`` that a run needs, without scikit-learn.

    Arguments and fitted attributes are described there.
    """

    def __init__(self, drop: int | Literal["auto"] = "auto", dim: int | Literal["auto"] = "auto") -> None:
        self.drop = drop
        self.dim = dim

    def fit(self, sentences: np.ndarray | Iterable[np.ndarray], y: object = None) -> Self:
        """Fit the components of float (n, d) sentence vectors, or of an iterator over such blocks; ``y`` is ignored.

        ConfigError: ``drop + dim`` exceeds the vectors' width, or there are fewer than two sentences.
        """
        blocks = [sentences] if isinstance(sentences, np.ndarray) else sentences
        seen, mean, scatter = 0, np.zeros(1), np.zeros((1, 1))
        for block in blocks:
            if not len(block):
                continue
            # Scatter around the block's own mean, then Chan's update: stable even if the mean is far from zero.
            block_mean = block.mean(0, dtype=np.float64)
            centred = block - block_mean
            shift = block_mean - mean
            scatter = scatter + centred.T @ centred + np.outer(shift, shift) * (seen * len(block) / (seen + len(block)))
            mean = mean + shift * (len(block) / (seen + len(block)))
            seen += len(block)
        width = len(mean)
        self.n_samples_seen_ = seen
        if seen < 2:
            raise ConfigError(f"the sentence PCA saw {seen} sentences: it needs more text")
        self.drop_ = components_removed(self.drop, 1 if self.dim == "auto" else self.dim, width)
        dim = min(_DEFAULT_DIM, width - self.drop_) if self.dim == "auto" else self.dim
        variance, vectors = np.linalg.eigh(scatter / (seen - 1))
        variance, components = variance[::-1].clip(min=0.0), vectors.T[::-1]
        largest = components[np.arange(width), np.abs(components).argmax(1)]
        components = components * np.where(largest < 0, -1.0, 1.0)[:, None]
        self.mean_ = mean
        self.components_ = components[self.drop_ : self.drop_ + dim]
        self.explained_variance_ = variance
        self.explained_variance_ratio_ = variance / max(variance.sum(), np.finfo(float).tiny)
        return self

    def transform(self, vectors: np.ndarray) -> np.ndarray:
        """Project float (n, d) vectors to float32 (n, dim)."""
        return ((np.asarray(vectors, np.float64) - self.mean_) @ self.components_.T).astype(np.float32)
