"""One table of vectors for all languages, or one for each: how units that languages share are treated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xswe.io.ragged import Bags
from xswe.model.static import StaticModel
from xswe.text.units import Units


@dataclass(frozen=True, eq=False)
class Tables:
    """Where each language's rows are.

    Attributes:
        languages: codes.
        units: what has a vector.
        separate: each language has a table of its own (they stand one under the other, in one space), so that a string
            that two languages share has two vectors; else all share one.
    """

    languages: tuple[str, ...]
    units: Units
    separate: bool

    @property
    def rows(self) -> int:
        """Rows of the whole."""
        return len(self.units.tokens) * (len(self.languages) if self.separate else 1)

    def place(self, bags: Bags, language: str) -> Bags:
        """Turn a language's unit ids into rows."""
        first = self.languages.index(language) * len(self.units.tokens) if self.separate else 0
        return Bags(np.asarray(bags.ids) + np.int32(first), bags.offsets) if first else bags

    def model(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> StaticModel:
        """Return a model that needs no language told.

        Args:
            matrix: float32 (rows, d).
            counts: how often each unit occurs in each language; tables are averaged by it.
        """
        return StaticModel(self.units, self._merged(matrix, counts) if self.separate else matrix)

    def models(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> dict[str, StaticModel]:
        """Return each language's own model; a unit that does not occur in the language is that of :meth:`model`."""
        if not self.separate:
            return dict.fromkeys(self.languages, StaticModel(self.units, matrix))
        merged, tables = self._merged(matrix, counts), matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return {
            language: StaticModel(self.units, np.where((count > 0)[:, None], table, merged))
            for language, table, count in zip(self.languages, tables, counts, strict=True)
        }

    def _merged(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> np.ndarray:
        weights = np.stack(counts).astype(np.float32)
        weights[:, weights.sum(0) == 0] = 1.0
        weights /= weights.sum(0)
        tables = matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return np.einsum("lu,lud->ud", weights, tables).astype(np.float32)
