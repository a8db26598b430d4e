"""The protocol of teachers, with their settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError
from xswe.io.choices import choice_names, choose
from xswe.io.settings import check_choice

Pooling = Literal["auto", "cls", "mean"]
TeacherType = Literal["float32", "bfloat16", "auto"]
Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, eq=False)
class States:
    """Token states of a batch of sentences, without padding and special tokens."""

    rows: np.ndarray  # int64 (b,), which of the given sentences these are
    hidden: np.ndarray  # float32 (tokens, d), last-layer states, sentence after sentence
    offsets: np.ndarray  # int64 (b + 1,), sentence ``rows[i]`` has ``hidden[offsets[i]:offsets[i + 1]]``
    starts: np.ndarray  # int32 (tokens,), first character of each token in its sentence
    ends: np.ndarray  # int32 (tokens,), one past its last character


class Teacher(Protocol):
    """A sentence encoder."""

    @property
    def name(self) -> str:
        """Its name in the model card."""

    @property
    def identity(self) -> str:
        """A fingerprint of its weights and the settings that determine its states; it identifies the results."""

    @property
    def dim(self) -> int:
        """Width d of its states and vectors."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Its fast tokenizer, for units and back-off; not the object that it encodes with."""

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Count the tokens of each text, without special tokens and prompt: int64 (n,)."""

    def batches(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Split the texts into batches of similar length: int64 rows each, in the order in which they are encoded."""

    def states(self, texts: Sequence[str], batches: Sequence[np.ndarray]) -> Iterator[States]:
        """Encode the given batches of ``texts``, in order."""

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts to unit vectors, float32 (n, d)."""


@dataclass(frozen=True)
class TeacherConfig:
    """Settings of a teacher.

    Attributes:
        model: ``mini`` (in this package), a folder, a name on the Hugging Face hub, or ``package:NAME/FOLDER`` for
            weights that an installed Python package carries.
        revision: of a hub model.
        prompt: put before each sentence, joined as it stands (write the blank if there is to be one); None for the
            default prompt of the folder's sentence-transformers settings, where it has one.
        pooling: how :meth:`Teacher.vectors` makes one vector; ``auto`` reads the folder's sentence-transformers
            settings and takes ``cls`` where there are none.
        max_tokens: longer sentences are cut there, with a warning.
        batch_tokens: padded tokens a batch; 0 for as many as suit the memory that is found. How texts are batched decides
            the last digits of their states: with 0 they are those of one machine.
        dtype: ``float32`` or ``bfloat16``; ``auto`` is the second where the processor or the card has instructions for it.
        device: ``auto`` (CUDA where there is one), ``cpu``, ``cuda``.
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

    @classmethod
    def named(cls, name: str, threads: int = 1) -> TeacherConfig:
        """Return the settings of one of ``conf/teacher``, or of a folder or name that transformers loads.

        A name of no encoder raises ConfigError.
        """
        if name in ("none", "custom", "same"):
            raise ConfigError(f"teacher:{name} names no encoder: give a folder, as in teacher:PATH")
        is_known = name in choice_names("teacher")
        settings = choose("teacher", name) if is_known else {**choose("teacher", "custom"), "model": name}
        return cls(**settings, threads=threads)
