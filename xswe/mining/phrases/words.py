"""Where words and their vectors come from: a static model here, other encoders in :mod:`xswe.mining.phrases.sources`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from xswe.embedding.ensemble import AnyModel, Ensemble
from xswe.embedding.pooling import pool
from xswe.embedding.static import StaticEmbedding
from xswe.errors import ModelError
from xswe.language.cuts import Cut, cut_texts, make_cutter


class WordSource(Protocol):
    """Turns texts into words with vectors."""

    @property
    def identity(self) -> list[object]:
        """What decides its results, as JSON values."""

    def cut(self, texts: Sequence[str], threads: int) -> tuple[np.ndarray, Cut]:
        """Cut texts; returns the float32 (rows, d) table that the cut's ids point into, and the cut."""

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand: int32 (words, 2), first character and one past the last."""

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d); zero where nothing is known."""


def open_words(model: AnyModel | WordSource) -> WordSource:
    """Return a model as a source of words.

    Raises:
        ModelError: it is an ensemble, whose parts cut texts each in its own way.
    """
    if isinstance(model, Ensemble):
        raise ModelError("an ensemble, where one table of vectors is needed; give one of its parts, as in model.parts[0]")
    return StaticWords(model) if isinstance(model, StaticEmbedding) else model


class StaticWords:
    """The words of a static embedding.

    Args:
        model: the embedding.
    """

    def __init__(self, model: StaticEmbedding) -> None:
        self.matrix = np.ascontiguousarray(model.vectors, np.float32)
        self._cutter = make_cutter(model.units)
        self._model = model

    @property
    def identity(self) -> list[object]:
        """The model's."""
        return [self._model.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Cut texts; the table is the model's."""
        return self.matrix, cut_texts(self._cutter, texts, threads)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        return self._cutter.places(texts)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d)."""
        return pool(self.matrix, self.cut(texts)[1].bags, normalise=True)
