"""Encoders under evaluation: texts to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from xswe.model.ensemble import AnyModel, Ensemble
from xswe.text.languages import LANGUAGES


@dataclass(frozen=True)
class About:
    """Metadata of an encoder in result files, in mteb's terms."""

    library: str = "xswe"  # the library that runs it; the first half of the name in mteb's result tree
    framework: tuple[str, ...] = ("NumPy", "safetensors")
    static: bool = True  # whether it is a table of vectors
    max_tokens: float = float("inf")  # longer texts are truncated
    license: str | None = None  # of the weights, in mteb's spelling; None if unknown
    adapted_from: str | None = None  # the model it was made from


class SentenceEncoder(Protocol):
    """An encoder under evaluation."""

    @property
    def name(self) -> str:
        """The name in tables."""

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
    def size(self) -> int:
        """Bytes of the weights in memory."""

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""

    @property
    def about(self) -> About:
        """Metadata for result files."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""


class StaticEncoder:
    """A static model, or an ensemble, under evaluation."""

    def __init__(self, model: AnyModel, name: str, threads: int = 1, about: About | None = None) -> None:
        self.model, self.name, self._threads = model, name, threads
        self.languages, self.dim = model.languages, model.dim
        parts = model.parts if isinstance(model, Ensemble) else (model,)
        self.parameters, self.size = sum(p.matrix.size for p in parts), sum(p.matrix.nbytes for p in parts)
        teacher = None if isinstance(model, Ensemble) else model.description.get("teacher")
        self.about = about or About(adapted_from=str(teacher) if teacher else None)

    @property
    def identity(self) -> str:
        """A fingerprint of weights, units and matrices."""
        return self.model.identity

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self.model.encode(texts, threads=self._threads)


class TeacherEncoder:
    """The sentence vectors of a teacher under evaluation, in any language.

    Args:
        model: one of ``conf/teacher`` (``mini``, ``minilm``, ``mgte``), a folder, or a hub name.
        threads: torch's threads.
        languages: codes of the languages to evaluate it on.
    """

    def __init__(self, model: str, threads: int = 1, languages: Sequence[str] = tuple(LANGUAGES)) -> None:
        from xswe.teacher.protocol import TeacherConfig
        from xswe.teacher.transformer import load_teacher

        self._teacher = load_teacher(TeacherConfig.named(model, threads))
        self.name, self.languages, self.dim = f"teacher:{Path(model).name}", tuple(languages), self._teacher.dim
        weights = list(self._teacher.model.parameters())
        self.parameters = sum(p.numel() for p in weights)
        self.size = sum(p.numel() * p.element_size() for p in weights)
        self.about = About(
            framework=("PyTorch", "Transformers"), static=False, max_tokens=float(self._teacher.config.max_tokens)
        )

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""
        return self._teacher.checksum()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self._teacher.vectors(texts)
