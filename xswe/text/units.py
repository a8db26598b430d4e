"""The protocol of units, each of which has a vector: from text to ``Bags``.

There are three choices, saved with the model: ``words`` (the papers' choice, see :mod:`xswe.text.words`), ``teacher`` (the
teacher's own pieces) and ``subwords`` (one Unigram vocabulary for all languages of the model), see
:mod:`xswe.text.subwords`. Nothing after the look-up knows which it was.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from xswe.io.ragged import Bags, LocatedBags, Texts

UnitKind = Literal["words", "teacher", "subwords"]
AS_LOOKED_UP = "="  # among forms of units, which are letters: the form is the unit as looked up
BLOCK = 8192  # texts processed at a time
FEW = 2000  # characters below which a compiled look-up does not pay (half a second to load its code, once)
_MANY = BLOCK  # texts from which it does, however short
_UNCOMPILED = 1_000_000  # characters, in small calls, before it pays to compile it (a second or two)


class Units(Protocol):
    """The protocol of units."""

    kind: UnitKind
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """The number of ids."""

    def __hash__(self) -> int:
        """Hash by identity, which caches use as their key."""

    @property
    def tokens(self) -> list[str]:
        """The units' strings by id; an empty string for an id that is no unit and has no vector."""

    @property
    def settings(self) -> dict[str, Any]:
        """The units' entry in ``config.json``: kind, languages, and the settings needed for loading."""

    @property
    def identity(self) -> str:
        """A fingerprint of everything that determines :meth:`bags`; computed at each call."""

    @property
    def exact(self) -> Units:
        """The same units without a back-off for unknown words; these units themselves if they have none.

        They decide whether a sentence contains a unit when contexts are chosen, counted and harvested. With the back-off,
        "attic" would be a context of "at".
        """

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look texts up; unknown words are left out."""

    def locate(self, texts: Sequence[str]) -> LocatedBags:
        """Look texts up, with the place of each unit in the original text."""

    def prune(self, keep: int, counts: np.ndarray | None = None) -> tuple[Units, np.ndarray]:
        """Return the ``keep`` most frequent units, and their old ids, int64 (keep,), rising.

        Args:
            keep: number of units.
            counts: int (units,), frequency of each unit; None for the units' own estimates.
        """

    def save(self, folder: Path) -> None:
        """Write the files from which :func:`xswe.model.folder.load_units` restores the units."""


class CompileHeuristic:
    """Decision whether texts are worth a compiled look-up, by their size.

    Unless the code is cached on disk, compilation is deferred until enough text has been seen. Once the code is loaded,
    it is used for any non-empty text.
    """

    def __init__(self) -> None:
        self._compiled, self._loaded, self._waited = False, False, 0

    def __call__(self, texts: Sequence[str]) -> bool:
        """Return True if the compiled look-up is worth it for these texts."""
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
    """Count characters, or bytes of flat texts, whose number is known."""
    return int(texts.offsets[-1] - texts.offsets[0]) if isinstance(texts, Texts) else sum(map(len, texts))


def in_blocks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts into lists of a few thousand well-formed strings (a lone surrogate becomes ``?``)."""
    for start in range(0, len(texts), BLOCK):
        block = list(texts[start : start + BLOCK])
        yield [t if t.isascii() else t.encode("utf-8", "replace").decode("utf-8") for t in block]


def flat_blocks(texts: Sequence[str]) -> Iterator[Texts]:
    """Split texts into blocks of the same size as ``Texts``, for compiled code."""
    return (Texts.of(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK))


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Trim whitespace from a span, and extend it over the combining marks that follow."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return start, end
