"""Samples of pairs that a report shows, drawn with a fixed seed: the same run shows the same ones.

Bands hold about equally many pairs each, and the threshold is a border of two: the precision that somebody finds in every
band can be averaged into one for all.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

EACH = 20  # pairs of a group
_KEPT_BANDS, _OTHER_BANDS = 5, 3
_EXAMPLES = 8  # of each reason


class Shown(NamedTuple):
    """A pair that is shown."""

    row: int  # which of all pairs it is
    score: float  # its score; NaN where it has none
    source: str  # text
    target: str  # text
    source_line: str = ""  # what its line is called, "" where lines have no names
    target_line: str = ""  # likewise


@dataclass(frozen=True)
class Group:
    """Pairs that stand for others."""

    name: str  # ``above`` and ``below`` the cut, ``top``, ``random`` (among those kept), ``band``
    low: float  # the least score of those that it stands for
    high: float  # the highest
    size: int  # how many it stands for
    rows: tuple[int, ...]  # places among all pairs, in the order in which they are shown
    pairs: tuple[Shown, ...] = ()  # the same with their texts; empty until they are read


def draw_groups(scores: np.ndarray, threshold: float, seed: int = 0) -> tuple[Group, ...]:
    """Draw pairs at the cut, at the top, at random and from every band; those whose score is NaN are in no group."""
    known = np.flatnonzero(scores == scores)
    falling = known[np.argsort(-scores[known].astype(np.float64), kind="stable")]
    kept = int((scores[falling] >= threshold).sum())
    draw = np.random.default_rng(seed)
    out: list[Group] = []

    def add(name: str, rows: np.ndarray, sampled: np.ndarray | None = None) -> None:
        if len(rows):
            shown = rows if sampled is None else sampled
            out.append(Group(name, float(scores[rows[-1]]), float(scores[rows[0]]), len(rows), tuple(shown.tolist())))

    def some(rows: np.ndarray) -> np.ndarray:
        return rows[np.sort(draw.choice(len(rows), min(EACH, len(rows)), replace=False))]

    if 0 < kept < len(falling):
        add("above", falling[max(0, kept - EACH) : kept])
        add("below", falling[kept : kept + EACH])
    add("top", falling[: min(EACH, kept)])
    add("random", falling[:kept], some(falling[:kept]))
    for part, bands in ((falling[:kept], _KEPT_BANDS), (falling[kept:], _OTHER_BANDS)):
        if len(part) >= bands:
            for band in np.array_split(part, bands):
                add("band", band, some(band))
    return tuple(out)


def with_texts(groups: Iterable[Group], texts: dict[int, Shown]) -> tuple[Group, ...]:
    """Return the groups with the texts of their pairs, given by row; pairs whose texts are not there are left out."""
    return tuple(replace(group, pairs=tuple(texts[row] for row in group.rows if row in texts)) for group in groups)


@dataclass
class Reservoir:
    """Examples of each reason, each as likely as any other."""

    counts: dict[str, int] = field(default_factory=dict)  # how many were offered, by reason
    kept: dict[str, list[Any]] = field(default_factory=dict)  # those that are kept
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def offer(self, reason: str, value: Any = None) -> None:
        """Count, and take an example up, perhaps in the place of another (Vitter's algorithm R); None is none."""
        seen = self.counts[reason] = self.counts.get(reason, 0) + 1
        if value is None:
            return
        kept = self.kept.setdefault(reason, [])
        if len(kept) < _EXAMPLES:
            kept.append(value)
        elif (place := self._draw.randrange(seen)) < _EXAMPLES:
            kept[place] = value


def shown_rows(groups: Sequence[Group]) -> set[int]:
    """Return the rows whose texts are to be read."""
    return {row for group in groups for row in group.rows}
