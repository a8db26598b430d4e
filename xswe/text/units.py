"""Units: the choice of what gets a vector, as one function from text to ``Bags``.

Three choices, saved with the model: ``words`` (the papers'), ``teacher`` (the teacher's own pieces) and ``subwords`` (one
Unigram vocabulary over all languages of the model). Nothing after the look-up knows which it was.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from xswe.io.ragged import Bags, Texts

UnitKind = Literal["words", "teacher", "subwords"]
BLOCK = 8192  # texts handled at a time
FEW = 2000  # characters for which a compiled look-up does not pay (half a second to load its code, once)
_MANY = BLOCK  # texts for which it does, however short
_UNCOMPILED = 1_000_000  # characters, in small calls, for which it does not pay to compile it: a second or two's work


@dataclass(frozen=True, eq=False)
class LocatedBags:
    """Bags that remember where each unit stands."""

    bags: Bags  # the unit ids
    starts: np.ndarray  # int32 (units,), first character of each unit in its original text
    ends: np.ndarray  # int32 (units,), one past its last character; never blank at either end


class Units(Protocol):
    """What every choice of units offers."""

    kind: UnitKind
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """How many ids there are."""

    def __hash__(self) -> int:
        """Units are what they are: what is made of them is kept by their identity."""

    @property
    def tokens(self) -> list[str]:
        """The units' strings, by id; an empty string for an id that is no unit and has no vector."""

    @property
    def settings(self) -> dict[str, Any]:
        """What ``config.json`` says of the units: kind, languages, and what the kind needs to be loaded."""

    @property
    def identity(self) -> str:
        """A fingerprint of all that decides what :meth:`bags` returns; made anew at each call."""

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look the texts up; what is unknown is left out."""

    def locate(self, texts: Sequence[str]) -> LocatedBags:
        """Look the texts up and say where each unit stands in the original text."""

    def prune(self, keep: int, counts: np.ndarray | None = None) -> tuple[Units, np.ndarray]:
        """Return the ``keep`` most frequent units, and their old ids, int64 (keep,), rising.

        Args:
            keep: how many.
            counts: int (units,), how often each occurs; None for what the units know of it themselves.
        """

    def save(self, folder: Path) -> None:
        """Write the files from which :func:`xswe.model.folder.load_units` makes the same units again."""


class Worth:
    """Says whether texts are worth a compiled look-up: a matter of their size, once its code has been compiled.

    Where it has not, by no process before, that is put off until texts enough have come to be worth that, too. Once the
    code is loaded, whatever is not empty is worth it.
    """

    def __init__(self) -> None:
        self._compiled, self._loaded, self._waited = False, False, 0

    def __call__(self, texts: Sequence[str]) -> bool:
        """Say whether these texts are."""
        size = _UNCOMPILED if len(texts) >= _MANY else _characters(texts)
        if size < (1 if self._loaded else FEW):
            return False
        if not self._compiled:
            from xswe.io.compiler import is_compiled
            from xswe.text.compiled.scan import scan_all

            self._waited += size
            self._compiled = self._waited >= _UNCOMPILED or is_compiled(scan_all)
        self._loaded = self._compiled
        return self._compiled


def _characters(texts: Sequence[str]) -> int:
    """Count characters; of flat texts bytes, which cost nothing to count."""
    return int(texts.offsets[-1] - texts.offsets[0]) if isinstance(texts, Texts) else sum(map(len, texts))


def in_blocks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut texts into lists of a few thousand well-formed strings (a lone surrogate becomes ``?``)."""
    for start in range(0, len(texts), BLOCK):
        block = list(texts[start : start + BLOCK])
        yield [t if t.isascii() else t.encode("utf-8", "replace").decode("utf-8") for t in block]


def flat_blocks(texts: Sequence[str]) -> Iterator[Texts]:
    """Cut texts into as many, laid flat for compiled code."""
    return (Texts.of(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK))


def settle(text: str, start: int, end: int) -> tuple[int, int]:
    """Shrink a span so that it neither starts nor ends with a blank, and let it take in the marks that follow it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return start, end
