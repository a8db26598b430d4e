"""Samples of pairs for a report, drawn with a fixed seed: the same run shows the same pairs.

Bands are of about equal size, and the threshold is the border between two of them, so the precision of all kept pairs is
about the mean of the precisions that a reader finds in the bands above it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

EACH = 20  # pairs per group
_KEPT_BANDS, _OTHER_BANDS = 5, 3
_EXAMPLES = 8  # per reason


class Shown(NamedTuple):
    """A pair shown in a report."""

    row: int  # its row among all pairs
    score: float  # NaN without a score
    source: str  # text
    target: str  # text
    source_line: str = ""  # id of the source line, "" if lines have no ids
    target_line: str = ""  # id of the target line, likewise


@dataclass(frozen=True)
class Group:
    """A sample of the pairs in a range of scores."""

    name: str  # ``above`` and ``below`` the cut, ``top``, ``random`` (among those kept), ``band``
    low: float  # the lowest score of the pairs that were sampled from
    high: float  # the highest
    size: int  # number of pairs that were sampled from
    rows: tuple[int, ...]  # the sample's rows among all pairs, in the order in which they are shown
    pairs: tuple[Shown, ...] = ()  # the sample with its texts; empty until they are read


def draw_groups(scores: np.ndarray, threshold: float) -> tuple[Group, ...]:
    """Draw pairs at the cut, at the top, at random and from every band, leaving out pairs with a score of NaN."""
    known = np.flatnonzero(scores == scores)
    falling = known[np.argsort(-scores[known].astype(np.float64), kind="stable")]
    kept = int((scores[falling] >= threshold).sum())
    draw = np.random.default_rng(0)
    out: list[Group] = []

    def add(name: str, rows: np.ndarray, sampled: np.ndarray | None = None) -> None:
        if len(rows):
            shown = rows if sampled is None else sampled
            out.append(Group(name, float(scores[rows[-1]]), float(scores[rows[0]]), len(rows), tuple(shown.tolist())))

    def sample(rows: np.ndarray) -> np.ndarray:
        return rows[np.sort(draw.choice(len(rows), min(EACH, len(rows)), replace=False))]

    if 0 < kept < len(falling):
        add("above", falling[max(0, kept - EACH) : kept])
        add("below", falling[kept : kept + EACH])
    add("top", falling[: min(EACH, kept)])
    add("random", falling[:kept], sample(falling[:kept]))
    for part, bands in ((falling[:kept], _KEPT_BANDS), (falling[kept:], _OTHER_BANDS)):
        if len(part) >= bands:
            for band in np.array_split(part, bands):
                add("band", band, sample(band))
    return tuple(out)


def with_texts(groups: Iterable[Group], texts: dict[int, Shown]) -> tuple[Group, ...]:
    """Return the groups with the texts of their pairs, given by row, leaving out pairs without texts."""
    return tuple(replace(group, pairs=tuple(texts[row] for row in group.rows if row in texts)) for group in groups)


@dataclass
class Reservoir:
    """Uniformly random examples of each reason."""

    counts: dict[str, int] = field(default_factory=dict)  # number of offers by reason
    kept: dict[str, list[Any]] = field(default_factory=dict)  # the sample by reason
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def offer(self, reason: str, value: Any = None) -> None:
        """Count the reason and perhaps keep the example in place of another (Vitter's algorithm R); only count a None."""
        seen = self.counts[reason] = self.counts.get(reason, 0) + 1
        if value is None:
            return
        kept = self.kept.setdefault(reason, [])
        if len(kept) < _EXAMPLES:
            kept.append(value)
        elif (place := self._draw.randrange(seen)) < _EXAMPLES:
            kept[place] = value


def shown_rows(groups: Sequence[Group]) -> set[int]:
    """Return the rows whose texts are needed."""
    return {row for group in groups for row in group.rows}
