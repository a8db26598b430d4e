"""Whatever can be evaluated: anything that turns texts into unit vectors and knows its languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from xswe.embedding.locate import locate
from xswe.embedding.static import StaticEmbedding
from xswe.embedding.storage import load
from xswe.files import fingerprint
from xswe.language.codes import LANGUAGES


class SentenceEncoder(Protocol):
    """An encoder under evaluation."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages it is evaluated on."""

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""

    @property
    def parameters(self) -> int:
        """Number of weights."""

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""


class StaticEncoder:
    """A static embedding under evaluation."""

    def __init__(self, model: StaticEmbedding, name: str, threads: int = 1) -> None:
        self.model, self.name, self._threads = model, name, threads
        self.languages, self.dim, self.parameters = model.languages, model.dim, model.matrix.size

    @property
    def identity(self) -> str:
        """A fingerprint of units and matrix."""
        return fingerprint(self.model.units.settings, float(np.abs(self.model.vectors).sum()), self.model.matrix.shape)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self.model.encode(texts, threads=self._threads)


class TeacherEncoder:
    """A teacher under evaluation: its sentence vectors, in whatever languages it is asked."""

    def __init__(self, model: str, threads: int = 1) -> None:
        from xswe.teacher.transformer import TeacherConfig, load_teacher

        self._teacher = load_teacher(TeacherConfig(model=model, threads=threads))
        self.name, self.languages, self.dim = f"teacher:{Path(model).name}", tuple(LANGUAGES), self._teacher.dim
        self.parameters = sum(p.numel() for p in self._teacher.model.parameters())

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""
        return self._teacher.checksum()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self._teacher.vectors(texts)


def open_encoder(which: str, threads: int) -> SentenceEncoder:
    """Open what ``model=`` names: a model, or ``teacher:`` and a teacher; each a folder, ``mini`` or a hub name."""
    if which.startswith("teacher:"):
        return TeacherEncoder(which.removeprefix("teacher:"), threads)
    folder = Path(which)
    parent = folder.resolve().parent.name if folder.name == "model" else ""
    return StaticEncoder(load(locate(which)), f"{parent}/{folder.name}".strip("/"), threads)
