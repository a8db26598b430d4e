"""Whatever can be evaluated: anything that turns texts into unit vectors and knows its languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import yaml

from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError
from xswe.language.codes import LANGUAGES
from xswe.resources import resource


@dataclass(frozen=True)
class About:
    """What a result file says of an encoder beside its name; the words are mteb's.

    Attributes:
        library: who runs it; the first half of the name in mteb's result tree.
        framework: what it is made with.
        static: it is a table of vectors.
        max_tokens: what is beyond is cut off.
        license: of the weights, in mteb's spelling; None if unknown.
        adapted_from: the model that it was made from.
    """

    library: str = "xswe"
    framework: tuple[str, ...] = ("NumPy", "safetensors")
    static: bool = True
    max_tokens: float = float("inf")
    license: str | None = None
    adapted_from: str | None = None


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
    def size(self) -> int:
        """Bytes of the weights in memory."""

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""

    @property
    def about(self) -> About:
        """What else is known of it."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""


class StaticEncoder:
    """A static embedding under evaluation."""

    def __init__(self, model: StaticEmbedding, name: str, threads: int = 1, about: About | None = None) -> None:
        self.model, self.name, self._threads = model, name, threads
        self.languages, self.dim, self.parameters = model.languages, model.dim, model.matrix.size
        self.size = model.matrix.nbytes
        teacher = model.description.get("teacher")
        self.about = about or About(adapted_from=str(teacher) if teacher else None)

    @property
    def identity(self) -> str:
        """A fingerprint of units and matrix."""
        return self.model.identity

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self.model.encode(texts, threads=self._threads)


class TeacherEncoder:
    """A teacher under evaluation: its sentence vectors, in whatever languages it is asked.

    Args:
        model: a name in the configuration group ``teacher`` (``mini``, ``minilm``, ``mgte``), a folder, or a hub name.
        threads: torch's threads.
        languages: codes of the languages to evaluate it on.
    """

    def __init__(self, model: str, threads: int = 1, languages: Sequence[str] = tuple(LANGUAGES)) -> None:
        from xswe.teacher.transformer import TeacherConfig, load_teacher

        settings = teacher_settings(model)
        self._teacher = load_teacher(TeacherConfig(**{**settings, "threads": threads}))
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


def teacher_settings(name: str) -> dict[str, Any]:
    """Return a teacher's settings: those of the configuration group for a name in it, else a folder or hub name alone."""
    file = resource("conf") / "teacher" / f"{name}.yaml"
    if "/" in name or not file.is_file():
        return {"model": name}
    settings: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(settings.get("model"), str) or settings["model"] == "???":
        raise ConfigError(f"teacher:{name} names no encoder: give a folder, as in teacher:PATH")
    return settings
