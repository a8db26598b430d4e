"""The protocol of teachers, and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError
from xswe.io.choices import choice_names, choose
from xswe.io.settings import check_choice, check_least

Pooling = Literal["auto", "cls", "mean"]
TeacherType = Literal["float32", "bfloat16", "auto"]
Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, eq=False)
class States:
    """Token states of a batch of sentences, without padding and special tokens."""

    rows: np.ndarray  # int64 (b,), the sentences' rows in the input
    hidden: np.ndarray  # float32 (tokens, d), last-layer states, sentence after sentence
    offsets: np.ndarray  # int64 (b + 1,), sentence ``rows[i]`` has ``hidden[offsets[i]:offsets[i + 1]]``
    starts: np.ndarray  # int32 (tokens,), first character of each token in its sentence
    ends: np.ndarray  # int32 (tokens,), one past its last character


class Teacher(Protocol):
    """A sentence encoder."""

    @property
    def name(self) -> str:
        """The name in the model card."""

    @property
    def identity(self) -> str:
        """A fingerprint of the weights and the settings that determine the states, to identify results."""

    @property
    def dim(self) -> int:
        """Width d of the states and vectors."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The fast tokenizer, for units and back-off; a copy of the one used for encoding."""

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Count the tokens of each text, without special tokens and prompt: int64 (n,)."""

    def batches(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Split texts into batches of similar length, int64 rows each, in the order of encoding."""

    def states(self, texts: Sequence[str], batches: Sequence[np.ndarray]) -> Iterator[States]:
        """Encode the given batches of ``texts``, in order."""

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts to unit vectors, float32 (n, d)."""


@dataclass(frozen=True)
class TeacherConfig:
    """Settings of a teacher.

    Attributes:
        model: ``mini`` (in this package), a folder, a name on the Hugging Face hub, or ``package:NAME/FOLDER`` for weights
            within an installed Python package.
        revision: of a hub model.
        prompt: text put before each sentence as it is (include a trailing space if needed); None for the default prompt of
            the folder's sentence-transformers settings, if any.
        pooling: how :meth:`Teacher.vectors` pools states; ``auto`` follows the folder's sentence-transformers settings, or
            is ``cls`` without them.
        max_tokens: truncate longer sentences to this, with a warning.
        batch_tokens: padded tokens a batch; 0 for as many as fit the available memory. Batching affects the last digits of
            the states, so with 0 they depend on the machine.
        dtype: ``float32`` or ``bfloat16``; ``auto`` is ``bfloat16`` if the processor or GPU has instructions for it.
        device: ``auto`` (CUDA if available), ``cpu``, ``cuda``.
        threads: torch's threads on the CPU.
    """

    model: str = "mini"
    revision: str | None = None
    prompt: str | None = None
    pooling: Pooling = "auto"
    max_tokens: int = 512
    batch_tokens: int = 2048
    dtype: TeacherType = "float32"
    device: Device = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, choices in (("pooling", Pooling), ("dtype", TeacherType), ("device", Device)):
            check_choice(f"teacher.{name}", getattr(self, name), choices)
        check_least(self, "teacher", max_tokens=3, batch_tokens=0, threads=1)

    @classmethod
    def named(cls, name: str, threads: int = 1) -> TeacherConfig:
        """Return the settings of a teacher in ``conf/teacher``, or of a folder or name for transformers.

        ConfigError: the name is not that of an encoder.
        """
        if name in ("none", "custom", "same"):
            raise ConfigError(f"teacher:{name} names no encoder: give a folder, as in teacher:PATH")
        is_known = name in choice_names("teacher")
        settings = choose("teacher", name) if is_known else {**choose("teacher", "custom"), "model": name}
        return cls(**settings, threads=threads)
