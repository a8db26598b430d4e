"""The model: units, one vector a unit, and ``encode``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xswe.embedding.pooling import pool
from xswe.errors import ConfigError, ModelError
from xswe.language.units import Units


@dataclass(frozen=True, eq=False)
class StaticEmbedding:
    """Static word vectors that encode sentences.

    Attributes:
        units: the function from text to unit ids.
        matrix: float32 (units, d), row ``i`` the vector of unit ``i``; zero for a unit without one.
        description: what else ``config.json`` says of the model (teacher, corpora, training), as plain JSON values.

    Example:
        model = xswe.load("runs/en-ja/model")
        vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])
        vectors[0] @ vectors[1]  # the cosine: rows have norm 1
    """

    units: Units
    matrix: np.ndarray
    description: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype != np.float32:
            raise ModelError(f"the matrix is {self.matrix.dtype} {self.matrix.shape}, expected float32 (units, d)")
        if len(self.matrix) != len(self.units.tokens):
            raise ModelError(f"{len(self.matrix)} vectors for {len(self.units.tokens)} units")

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the model's languages."""
        return self.units.languages

    def encode(self, texts: str | Sequence[str], *, threads: int = 1) -> np.ndarray:
        """Encode texts; their languages need not be told.

        Args:
            texts: one text, or any number of them.
            threads: how many threads share the work.

        Returns:
            float32 (n, d), or (d,) for one text; rows have Euclidean norm 1. A text with no known unit (an empty one,
            say) is the zero vector.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        return pool(self.matrix, self.units.bags(texts), normalise=True, threads=threads)

    def truncate(self, dim: int) -> StaticEmbedding:
        """Return the model with its first ``dim`` dimensions only; best where it was trained with ``objective.prefixes``.

        Raises:
            ConfigError: the model has fewer.
        """
        if not 0 < dim <= self.dim:
            raise ConfigError(f"dim={dim}: the model has {self.dim} dimensions; keep between 1 and as many")
        return replace(self, matrix=np.ascontiguousarray(self.matrix[:, :dim]))

    def save(self, folder: str | Path) -> None:
        """Write the model folder, whole or not at all; see :mod:`xswe.embedding.storage`."""
        from xswe.embedding.storage import save

        save(self, Path(folder))
