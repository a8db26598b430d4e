"""Beads that are known beforehand: from a translation memory or a ladder that somebody corrected, or by their lines."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from xswe.corpus.documents import read_tmx
from xswe.errors import ConfigError, InputError
from xswe.io.archives import without_packing
from xswe.io.lines import Skipped, read_lines

logger = logging.getLogger(__name__)
Anchor = tuple[Sequence[int], Sequence[int]]
Lines = tuple[tuple[int, ...], tuple[int, ...]]
_RUNG = re.compile(r"\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\](?::.*)?")


def find_anchors(
    fixed: str | Path | Sequence[Anchor], source: Sequence[str], target: Sequence[str], languages: tuple[str, ...]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return known beads as the cells before and after each, in order.

    Args:
        fixed: a TMX file, whose units are sought in the texts; a ladder; or lines from 0.
        source: the source's lines.
        target: the target's lines.
        languages: of both, for TMX.

    Raises:
        ConfigError: a TMX file without languages, or lines that are not there, not in a run, or crossed.
        InputError: nothing of the TMX file is found in the texts, or a line of the ladder is none.
    """
    if not isinstance(fixed, (str, Path)):
        beads: list[Lines] = [(tuple(a), tuple(b)) for a, b in fixed]
        where = "fixed"
    else:
        where = str(fixed)
        if without_packing(Path(fixed)).suffix.lower() == ".tmx":
            beads = _from_memory(Path(fixed), source, target, languages)
        else:
            beads = list(_from_ladder(fixed))
    out, before = [], (0, 0)
    for lines in sorted(bead for bead in beads if bead[0] and bead[1]):
        start, end = (lines[0][0], lines[1][0]), (lines[0][-1] + 1, lines[1][-1] + 1)
        for side, (one, texts) in enumerate(zip(lines, (source, target), strict=True)):
            if list(one) != list(range(one[0], one[-1] + 1)) or one[0] < before[side] or end[side] > len(texts):
                name = ("source", "target")[side]
                cure = "a bead's lines follow each other, from 0, and beads do not cross"
                raise ConfigError(f"{where}: lines {list(one)} of the {name} cannot be a bead here: {cure}")
        out.append((start, end))
        before = end
    return out


def _from_ladder(path: str | Path) -> Iterator[Lines]:
    for number, text in read_lines(path):
        if not (text or "").strip():
            continue
        found = _RUNG.fullmatch((text or "").strip())
        if found is None:
            raise InputError(path, f"{(text or '')[:60]!r} is no rung", "write [0]:[0,1] or [0]:[0,1]:score", number)
        yield tuple(tuple(int(line) for line in side.split(",") if line.strip()) for side in found.groups())  # type: ignore[misc]


def _from_memory(path: Path, source: Sequence[str], target: Sequence[str], languages: tuple[str, ...]) -> list[Lines]:
    """Find the units of a translation memory in two texts, in order; those that are not there are left out."""
    if len(languages) != 2:
        raise ConfigError(f"{path}: which of its languages are source and target? set languages, as in languages=[en,ja]")
    sides = [_Places(source), _Places(target)]
    out: list[Lines] = []
    lost = 0
    for pair in read_tmx(path, (languages[0], languages[1]), on_error="raise", skipped=Skipped()):
        found = [side.find(text) for side, text in zip(sides, pair, strict=True)]
        if found[0] is None or found[1] is None:
            lost += 1
            continue
        for side, lines in zip(sides, found, strict=True):
            side.pass_over(lines)  # type: ignore[arg-type]
        out.append((found[0], found[1]))
    if not out:
        raise InputError(path, "none of its units is in the two texts", "give the memory that was made from these files")
    if lost:
        logger.warning("%s: %d units are not in the texts as whole lines, and fix nothing", path, lost)
    return out


class _Places:
    """Where runs of lines stand in a text without blanks, from a place that moves on."""

    def __init__(self, lines: Sequence[str]) -> None:
        bare = ["".join(line.split()) for line in lines]
        self._text = "".join(bare)
        self._ends = [0, *accumulate(map(len, bare))]
        self._from = 0

    def find(self, text: str) -> tuple[int, ...] | None:
        """Return the lines that are together this text; None if there are none further on."""
        wanted = "".join(text.split())
        place = self._text.find(wanted, self._from) if wanted else -1
        while place >= 0:
            first, last = bisect_left(self._ends, place), bisect_left(self._ends, place + len(wanted))
            if self._ends[first] == place and self._ends[last] == place + len(wanted):
                return tuple(range(first, last))
            place = self._text.find(wanted, place + 1)
        return None

    def pass_over(self, lines: Sequence[int]) -> None:
        """Look for what follows after these lines."""
        self._from = self._ends[lines[-1] + 1]
