"""An ensemble of static models under evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xswe.embedding.ensemble import Ensemble
from xswe.evaluation.encoders import About


class EnsembleEncoder:
    """An ensemble under evaluation; see :class:`xswe.evaluation.encoders.SentenceEncoder`."""

    def __init__(self, model: Ensemble, name: str, threads: int = 1) -> None:
        self.model, self.name, self._threads = model, name, threads
        self.languages, self.dim = model.languages, model.dim
        self.parameters = sum(part.matrix.size for part in model.parts)
        self.size = sum(part.matrix.nbytes for part in model.parts)
        self.about = About()

    @property
    def identity(self) -> str:
        """A fingerprint of weights, units and matrices."""
        return self.model.identity

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self.model.encode(texts, threads=self._threads)
