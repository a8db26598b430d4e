"""The formats that beads are written in: those of bitext, and two that hold gaps and the numbers of lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from xswe.errors import ConfigError
from xswe.io.archives import open_output, without_packing
from xswe.mining.output import Row, output_format, write_rows
from xswe.text.sentences import Sentence

_OWN = {"ladder": ".ladder", "jsonl": ".jsonl"}
_BLOCK = 65_536


class Bead(NamedTuple):
    """Lines that translate each other; in a gap one side is empty.

    Attributes:
        score: 0 for what is unrelated in these texts, 1 for a typical translation; 0 for a gap.
        source: the lines' text; several are joined, with a blank but between Chinese or Japanese characters.
        target: likewise.
        source_lines: which lines, from 0.
        target_lines: likewise.
    """

    score: float
    source: str
    target: str
    source_lines: tuple[int, ...]
    target_lines: tuple[int, ...]


class Beads(Protocol):
    """Two texts and their beads."""

    @property
    def cells(self) -> np.ndarray:
        """How many lines of either side come before each bead, int64 (n + 1, 2)."""

    @property
    def scores(self) -> np.ndarray:
        """Scores of the beads, float32 (n,)."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Of source and target."""

    @property
    def places(self) -> tuple[Sequence[Sentence] | None, Sequence[Sentence] | None]:
        """Where the sentences of each side stand."""

    def __iter__(self) -> Iterator[Bead]:
        """Iterate over the beads."""


def bead_format(wanted: str, output: str, languages: tuple[str, ...]) -> str:
    """Return the format: the wanted one, or for ``auto`` that of the file's name.

    Raises:
        ConfigError: there is no such format, or it needs the languages.
        DependencyError: the library that writes it is not installed.
    """
    suffix = without_packing(Path(output)).suffix.lower()
    if wanted in _OWN or (wanted == "auto" and suffix in _OWN.values()):
        return wanted if wanted in _OWN else next(name for name, own in _OWN.items() if own == suffix)
    if wanted == "bucc":
        raise ConfigError("format=bucc holds pairs of ids, and beads have lines: use ladder")
    return output_format(wanted, output, languages)


def write_beads(path: str, kind: str, beads: Beads) -> None:
    """Write beads in a format of :func:`bead_format`, whole or not at all."""
    if kind not in _OWN:
        write_rows(path, kind, bead_rows(beads), beads.languages)
        return
    lines = ladder(beads) if kind == "ladder" else _objects(beads)
    with open_output(path) as stream:
        while block := "".join(islice(lines, _BLOCK)):
            stream.write(block.encode("utf-8"))


def bead_rows(beads: Beads, before: tuple[str, str] = ("", "")) -> Iterator[Row]:
    """Yield the beads that are no gaps as pairs; their ids are the lines' numbers, from 1, with something before each."""
    for bead in beads:
        if bead.source_lines and bead.target_lines:
            both = zip(before, (bead.source_lines, bead.target_lines), strict=True)
            a, b = (" ".join(f"{name}{line + 1}" for line in lines) for name, lines in both)
            yield Row(round(bead.score, 6), bead.source, bead.target, a, b, 1)


def ladder(beads: Beads) -> Iterator[str]:
    """Yield ``[0]:[0,1]:score``: the numbers of the lines, from 0; a gap has none on one side."""
    steps = zip(beads.cells[:-1].tolist(), beads.cells[1:].tolist(), beads.scores.tolist(), strict=True)
    for (a, b), (c, d), score in steps:
        sides = (",".join(map(str, range(low, high))) for low, high in ((a, c), (b, d)))
        yield ":".join(f"[{side}]" for side in sides) + f":{score:.6f}\n"


def _objects(beads: Beads) -> Iterator[str]:
    """Yield an object a bead; of running text with the characters where its sentences stand."""
    for bead in beads:
        value = {**bead._asdict(), "score": round(bead.score, 6)}
        for name, lines, places in zip(("source", "target"), _lines(bead), beads.places, strict=True):
            if places is not None:
                value[f"{name}_places"] = [[places[line].start, places[line].end] for line in lines]
        yield json.dumps(value, ensure_ascii=False) + "\n"


def _lines(bead: Bead) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return bead.source_lines, bead.target_lines
