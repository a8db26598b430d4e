"""Evidence for the report of a mining run: all scores, and samples of pairs and lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from xswe.mining.hard_rules import FilterConfig, allowed
from xswe.mining.margin import Pairs
from xswe.mining.samples import Group, Reservoir, Shown, draw_groups, with_texts
from xswe.mining.side import Side
from xswe.mining.threshold import PrecisionEstimate
from xswe.search.lists import Neighbours

_HUBS = 12
_SAMPLED_LINES = 50_000  # source lines whose candidates are checked for filtered examples


@dataclass(frozen=True)
class Removed:
    """What one filter left out."""

    reason: str  # name of the filter
    side: str  # ``source`` or ``target`` for single lines left out, ``pairs``, or ``candidates``
    count: int  # how many
    examples: tuple[tuple[str, ...], ...] = ()  # some of them, each with one text or two


@dataclass(frozen=True)
class Hubs:
    """Hubs of one side: lines that are among the nearest of many lines of the other side."""

    side: str  # ``source`` or ``target``
    # number of lines that are among the nearest of 0, 1, 2, … lines of the other side; the last entry counts the rest
    chosen: tuple[int, ...]
    skewness: float  # of the numbers of lines; 0 without hubs, over 1 with many (Radovanović et al., 2010)
    lines: tuple[tuple[int, str], ...]  # count and text of the lines chosen most often


@dataclass(frozen=True, eq=False)
class Evidence:
    """How a run decided."""

    scores: np.ndarray  # of all pairs before any threshold, float64 (n,), highest first
    expected: PrecisionEstimate | None  # how many of them are expected to be right; None if unknown
    groups: tuple[Group, ...] = ()  # samples of pairs
    removed: tuple[Removed, ...] = ()  # what the filters left out
    hubs: tuple[Hubs, ...] = ()  # of each side; empty without neighbours
    # share of source lines that are the nearest of their own nearest target; None without neighbours
    reciprocity: float | None = None


def evidence_of(
    pairs: Pairs,
    threshold: float,
    expected: PrecisionEstimate | None,
    lists: Neighbours,
    filters: FilterConfig,
    sides: tuple[Side, Side] | None = None,
) -> Evidence:
    """Gather the evidence on all selected pairs; ``sides`` is None if vectors were mined."""
    groups = draw_groups(pairs.scores, threshold)
    within = sides is not None and sides[0] is sides[1]
    texts = {row: _shown(pairs, row, sides) for group in groups for row in group.rows}
    ways = [("target", lists.forward_ids, len(lists.backward), 1), ("source", lists.backward_ids, len(lists.forward), 0)]
    hubs = [_hubs(side, ids, n, None if sides is None else sides[k]) for side, ids, n, k in ways[: 1 if within else 2]]
    return Evidence(
        np.sort(pairs.scores.astype(np.float64))[::-1],
        expected,
        with_texts(groups, texts),
        tuple(_removed(sides, lists, filters)) if sides is not None else (),
        tuple(hubs),
        _reciprocity(lists),
    )


def _shown(pairs: Pairs, row: int, sides: tuple[Side, Side] | None) -> Shown:
    a, b, score = int(pairs.source[row]), int(pairs.target[row]), float(pairs.scores[row])
    if sides is None:
        return Shown(row, score, "", "", str(a), str(b))
    names = (name for side, line in zip(sides, (a, b), strict=True) for name in side.names(np.array([line])))
    return Shown(row, score, sides[0].texts[a], sides[1].texts[b], *names)


def _hubs(side: str, ids: np.ndarray, lines: int, texts: Side | None) -> Hubs:
    times = np.bincount(ids[ids >= 0].ravel(), minlength=lines)
    spread = float(times.std()) if lines else 0.0
    skewness = float(((times - times.mean()) ** 3).mean()) / spread**3 if spread else 0.0
    most = 4 * max(1, ids.shape[1])
    chosen = np.bincount(np.minimum(times, most), minlength=most + 1)
    top = np.argsort(-times, kind="stable")[:_HUBS].tolist()
    shown = tuple((int(times[row]), "" if texts is None else texts.texts[row]) for row in top if times[row])
    return Hubs(side, tuple(chosen.tolist()), skewness, shown)


def _reciprocity(lists: Neighbours) -> float | None:
    if not lists.k or not len(lists.forward) or not len(lists.backward):
        return None
    nearest, back = lists.forward_ids[:, 0], lists.backward_ids[:, 0]
    has_nearest = nearest >= 0
    return float((back[nearest[has_nearest]] == np.flatnonzero(has_nearest)).mean()) if has_nearest.any() else None


def _removed(sides: tuple[Side, Side], lists: Neighbours, filters: FilterConfig) -> Iterable[Removed]:
    names = ("lines",) if sides[0] is sides[1] else ("source", "target")
    for name, side in zip(names, sides, strict=False):
        for reason, count in sorted(side.dropped.items()):
            yield Removed(reason, name, count, tuple((text,) for text in side.examples.get(reason, ())))
    yield from _ruled_out(sides, lists.forward_ids, filters)


def _ruled_out(sides: tuple[Side, Side], ids: np.ndarray, filters: FilterConfig) -> Iterable[Removed]:
    """Yield what each pair filter rules out among the candidates of some source lines."""
    rows = np.sort(np.random.default_rng(0).permutation(len(ids))[:_SAMPLED_LINES])
    row, place = np.nonzero(ids[rows] >= 0)
    row, column = rows[row], ids[rows[row], place]
    found = Reservoir()
    for name, passes in allowed(filters, sides[0].traits, sides[1].traits, row, column).items():
        for i in np.flatnonzero(~passes).tolist():
            found.offer(name, (sides[0].texts[int(row[i])], sides[1].texts[int(column[i])]))
    for name, count in sorted(found.counts.items()):
        yield Removed(name, "candidates", count, tuple(found.kept[name]))
