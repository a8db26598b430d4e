"""Beads: runs of up to five lines on either side that translate each other, found in order as the best path.

The method is that of vecalign (Thompson and Koehn, 2019) without its main cost: a dynamic programme over beads of n to m
lines, coarse to fine: first a path through groups of lines, then finer paths, each within a band around the last.
The vector of a run of lines is the sum of its lines' vectors (:mod:`xswe.alignment.kernels`), so no overlap is encoded.

Prices are learnt from the texts themselves. Mutual nearest neighbours show what a translation looks like, and the lines
near them, on the same topic but no translations, what noise looks like. The costs of a gap and of each bead shape come from
the path found with default prices, and are re-estimated twice; if nothing was left out of a text, gaps become expensive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xswe.alignment.kernels import best_in_band, best_path, run_properties, trace
from xswe.errors import ConfigError
from xswe.io.ragged import Bags, bounds_of
from xswe.io.settings import check_least
from xswe.mining.threshold import check_threshold
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel, pool
from xswe.progress import bar

_MAX_FULL_CELLS = 1 << 18  # most cells searched without a coarser path first
_MAX_COARSE_CELLS = 1 << 17  # most cells of the coarsest path, if there are coarser paths
_PRIOR_LINES = 16.0  # zero vectors added to the mean of a text, to shrink it
_MIN_PAIRS = 8  # fewest mutual nearest neighbours to learn from
_NOISE_SAMPLE = 2000  # of these, sample size for the cosines of nearby lines
_MAX_PAIRS = 20_000  # pairs after which estimation stops
_PRIOR_DECAY, _PRIOR_GAPS = 0.2, 0.05  # prior: probability ratio per further line of a bead, and share of gaps
_PRIOR_BEADS = 30.0  # weight of the prior, in beads
_TURNS = 3
_MISMATCH_REACH = 4  # beads away at which mismatches are sought
_BLOCK = 1 << 16  # lines processed at a time
_LINE_WEIGHT = 0.125  # additional weight of a bead for each line beyond one a side
_MANY_TO_MANY = 0.3  # beads with several lines a side: prior factor, and loss for each further bead they could make up

Cell = tuple[int, int]


@dataclass(frozen=True)
class AlignConfig:
    """How sentences are aligned.

    Attributes:
        most: maximum lines of a bead on either side, up to 5.
        gap: score, between 0 (unrelated) and 1 (a typical translation), above which a pair beats two gaps.
        merge: penalty for each line of a bead beyond one a side.
        length: weight of the length ratio of the two sides.
        prior: weight of the frequencies of gaps and bead shapes.
        search: half the width of the band around the coarser path, in lines.
        min_score: beads with a lower score become gaps; null for none.
        precision: choose the lowest ``min_score`` with at least this expected precision.
        evidence: keep the data for a report on how well beads score.
        threads: null for all processors.
        languages: of source and target, as in ``en`` or ``en-GB``; needed to split running text, and for TMX and XLIFF;
            known to a model of two languages.
        split: split both sides into sentences; null splits any document, and no other file.
        fixed: an output of ``align``, corrected by hand: any corrections; for folders, a folder of such files; in Python
            also a list of line numbers from 0, as in ``[((0,), (0, 1)), ((1,), ())]``. Its pairs and texts are kept, and
            lines without a counterpart in it stay without one; pairs with the status ``rejected`` or ``wrong`` are not
            found again.
        uncorrected: the same file before correction: pairs no longer in ``fixed`` are rejected.
        moved: find passages that stand elsewhere in the other text, such as swapped chapters.
        gaps: also write lines without a counterpart, beside an empty text.
        bom: begin ``.csv`` with a byte-order mark, by which Excel recognises UTF-8.
        date: of TMX and XLIFF units: ``now``, or as in 2026-01-31; null for none, for reproducible output.
    """

    most: int = 5
    gap: float = 0.1
    merge: float = 0.0
    length: float = 0.1
    prior: float = 2.0
    search: int = 8
    min_score: float | None = None
    precision: float | None = None
    evidence: bool = False
    threads: int | None = None
    languages: tuple[str, ...] = ()
    split: bool | None = None
    fixed: str | Path | Sequence[Any] | None = None
    uncorrected: str | Path | Sequence[Any] | None = None
    moved: bool = True
    gaps: bool = True
    bom: bool = False
    date: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 5:
            raise ConfigError(f"most={self.most}: a bead has between 1 and 5 lines a side")
        check_least(self, search=1, merge=0, length=0, prior=0, threads=0)
        check_threshold(self.min_score, self.precision)
        if not 0 <= self.gap < 1:
            raise ConfigError(f"gap={self.gap}: give a number from 0 to below 1")


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one side, as sums of vectors."""

    sums: np.ndarray  # float32 (n, d), a row a line; the sum of several is the vector of their joined text, up to its norm
    sizes: np.ndarray  # float32 (n,), characters of each line

    def __len__(self) -> int:
        return len(self.sums)

    def part(self, start: int, stop: int) -> Lines:
        """Return a range of lines, without copying."""
        return Lines(self.sums[start:stop], self.sizes[start:stop])

    def clear(self, rows: np.ndarray) -> None:
        """Empty lines in place, so that nothing is similar to them."""
        self.sums[rows], self.sizes[rows] = 0, 0

    def halved(self) -> Lines:
        """Merge every two lines into one."""
        half = (len(self) + 1) // 2
        sums, sizes = np.empty((half, self.sums.shape[1]), np.float32), np.empty(half, np.float32)
        for whole, out in ((self.sums, sums), (self.sizes, sizes)):
            out[:] = whole[::2]
            out[: len(self) // 2] += whole[1::2]
        return Lines(sums, sizes)

    def mean(self) -> np.ndarray:
        """Return the mean unit vector of all lines, float32 (d,), shrunk slightly towards zero."""
        total = np.zeros(self.sums.shape[1], np.float64)
        for start in range(0, len(self), _BLOCK):
            part = self.sums[start : start + _BLOCK]
            total += (part / _norms(part)[:, None]).sum(0)
        return (total / (len(self) + _PRIOR_LINES)).astype(np.float32)

    def centre(self, mean: np.ndarray | None = None) -> None:
        """Subtract the mean in place, so that unrelated lines have a cosine near zero."""
        mean = self.mean() if mean is None else mean
        for start in range(0, len(self), _BLOCK):
            part = self.sums[start : start + _BLOCK]
            part -= _norms(part)[:, None] * mean


def _norms(rows: np.ndarray) -> np.ndarray:
    return np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-6).astype(np.float32)


def line_sums(model: AnyModel, texts: Sequence[str], threads: int = 1) -> Lines:
    """Encode lines as sums of their units' vectors.

    With a static model, the sum over several lines points in the direction of the vector of their joined text, except for
    bigrams across line breaks. The vectors of an ensemble are no sums of rows, so each line's vector is weighted by its
    number of characters.
    """
    sizes = np.fromiter(map(len, texts), np.float32, len(texts))
    if isinstance(model, StaticModel):
        return Lines(bag_sums(model, model.units.bags(texts), threads), sizes)
    return Lines(model.encode(texts, threads=threads) * sizes[:, None], sizes)


def bag_sums(model: StaticModel, bags: Bags, threads: int = 1) -> np.ndarray:
    """Return the sum of the unit and bigram vectors of each bag, float32 (n, d)."""
    bags = model.widen(bags)
    sums = pool(model.matrix, bags, normalise=False, threads=threads, scales=model.scales)
    sums *= bags.lengths.astype(np.float32)[:, None]
    return sums


@dataclass(frozen=True)
class Prices:
    """Statistics of translations in two texts, and the costs of a path's steps.

    Attributes:
        noise: mean cosine of a line and lines near its translation.
        signal: median cosine of translations.
        doubt: mean variance of the two, in units of the squared distance from noise to signal.
        shift: median log ratio of target size to source size.
        spread: robust standard deviation of that log ratio.
        gaps: share of gaps among beads and gaps, a run of gaps counted once.
        shapes: probabilities of bead shapes, float64 (most, most).
    """

    noise: float = 0.0
    signal: float = 0.5
    doubt: float = 0.05
    shift: float = 0.0
    spread: float = 0.5
    gaps: float = _PRIOR_GAPS
    shapes: np.ndarray | None = None

    def score(self, cosines: np.ndarray) -> np.ndarray:
        """Turn cosines into scores: 0 for unrelated lines, 1 for a typical translation in these texts."""
        return (cosines - self.noise) / (self.signal - self.noise)


def usual_shapes(most: int) -> np.ndarray:
    """Return the prior probabilities of bead shapes, float64 (most, most)."""
    lines = np.add.outer(np.arange(most), np.arange(most))
    shapes = _PRIOR_DECAY**lines * np.where(_is_many_to_many(most), _MANY_TO_MANY, 1.0)
    return shapes / shapes.sum()


def _is_many_to_many(most: int) -> np.ndarray:
    """Return which shapes have more than one line on both sides, bool (most, most)."""
    return np.logical_and.outer(np.arange(most) > 0, np.arange(most) > 0)


@dataclass(frozen=True, eq=False)
class Band:
    """The cells to search, a range of columns a row; see :mod:`xswe.alignment.kernels`."""

    low: np.ndarray  # int64 (n + 1,), first column of each row, rising
    high: np.ndarray  # int64 (n + 1,), one past the last column of each row, rising

    @classmethod
    def full(cls, n: int, m: int) -> Band:
        """Return all cells."""
        return cls(np.zeros(n + 1, np.int64), np.full(n + 1, m + 1, np.int64))

    @classmethod
    def around(cls, coarse: np.ndarray, n: int, m: int, search: int) -> Band:
        """Return the band around the path, int64 (k, 2), of texts with half as many lines."""
        first, last = np.full(n // 2 + 3, m + 1, np.int64), np.zeros(n // 2 + 3, np.int64)
        # A step of several lines passes through the cells between its ends.
        middle = (coarse[:-1] + coarse[1:]) // 2
        for cells in (coarse, middle):
            np.minimum.at(first, cells[:, 0], 2 * cells[:, 1])
            np.maximum.at(last, cells[:, 0], 2 * cells[:, 1])
        first, last = np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)
        rows = np.arange(n + 1)
        low = np.maximum(first[np.maximum(0, (rows - search) // 2)] - search, 0)
        high = last[np.minimum(len(last) - 1, (rows + search + 1) // 2)] + search + 1
        return cls.rising(np.minimum(low, m), np.minimum(high, m + 1), m)

    @classmethod
    def near(cls, cells: np.ndarray, n: int, m: int, columns: int) -> Band:
        """Return the cells within ``columns`` columns of a path."""
        low, high = np.full(n + 1, m, np.int64), np.zeros(n + 1, np.int64)
        np.minimum.at(low, cells[:, 0], cells[:, 1])
        np.maximum.at(high, cells[:, 0], cells[:, 1])
        low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
        return cls.rising(np.maximum(low - columns, 0), np.minimum(high + columns, m) + 1, m)

    @classmethod
    def rising(cls, low: np.ndarray, high: np.ndarray, m: int) -> Band:
        """Return a band with rising bounds that contains both corners."""
        low[0], high[-1] = 0, m + 1
        return cls(np.maximum.accumulate(low), np.ascontiguousarray(np.minimum.accumulate(high[::-1])[::-1]))

    def starts(self) -> np.ndarray:
        """Return where the cells of each row begin in a flat array, int64 (n + 2,)."""
        return bounds_of(self.high - self.low)


def _no_lines() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Known facts about two texts before they are aligned.

    Attributes:
        anchors: known beads, from cell to cell, in order.
        source_gaps: int64 (a,), lines of the source without a counterpart, rising.
        target_gaps: int64 (b,), likewise of the target.
        rejected: int64 (k, 4), pairs of runs that no bead may contain: begin and end in the source, begin and end in the
            target; sorted by their ends in the source.
    """

    anchors: Sequence[tuple[Cell, Cell]] = ()
    source_gaps: np.ndarray = field(default_factory=_no_lines)
    target_gaps: np.ndarray = field(default_factory=_no_lines)
    rejected: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int64))

    def within(self, start: Cell, stop: Cell) -> Constraints:
        """Return the constraints on the lines between two cells, counted from the first cell."""
        (a, b), (c, d) = start, stop
        first, last = (bisect_left(self.anchors, (cell,)) for cell in (start, stop))
        anchors = [((p - a, q - b), (r - a, s - b)) for (p, q), (r, s) in self.anchors[first:last] if r <= c and s <= d]
        source, target = (
            lines[np.searchsorted(lines, begin) : np.searchsorted(lines, end)] - begin
            for lines, begin, end in ((self.source_gaps, a, c), (self.target_gaps, b, d))
        )
        ends = self.rejected[:, 1]  # rising
        near = self.rejected[np.searchsorted(ends, a, "right") : np.searchsorted(ends, c, "right")]
        inside = (near[:, 0] >= a) & (near[:, 2] >= b) & (near[:, 3] <= d)
        return Constraints(anchors, source, target, near[inside] - np.repeat(start, 2))


@dataclass(frozen=True, eq=False)
class Part:
    """Two runs of lines to be aligned with each other: all lines, or those between two anchors."""

    source: Lines
    target: Lines
    band: Band  # where the path is sought
    constraints: Constraints = field(default_factory=Constraints)  # known gaps are empty lines


def best_of_each_other(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mutual nearest neighbours within the band: rows, columns and cosines."""
    source, target, band = part.source, part.target, part.band
    padded = [np.concatenate([np.zeros(1, np.float32), 1 / _norms(side.sums)]) for side in (source, target)]
    rows_best, columns_best = np.empty((2, len(source)), np.float32), np.empty((2, len(target)), np.float32)
    width = int((band.high[1:] - band.low[:-1]).max(initial=1))
    best_in_band(
        source.sums, target.sums, *padded, band.low, band.high, rows_best, columns_best, np.empty(width, np.float32)
    )
    places = rows_best[1].astype(np.int64)
    rows = np.flatnonzero(places >= 0)
    rows = rows[columns_best[1, places[rows]].astype(np.int64) == rows]
    rows = rows[(source.sizes[rows] > 0) & (target.sizes[places[rows]] > 0)]
    return rows, places[rows], rows_best[0, rows]


def estimate(parts: Sequence[Part]) -> Prices:
    """Estimate the statistics of translations in two texts; return defaults if there are too few lines."""
    found, noise, ratios = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
    for part in parts:
        if not len(part.source) or not len(part.target):
            continue
        rows, columns, cosines = best_of_each_other(part)
        found.append(cosines)
        ratios.append(np.log((part.target.sizes[columns] + 1) / (part.source.sizes[rows] + 1)))
        sample = slice(None, None, 1 + len(rows) // _NOISE_SAMPLE)
        for away in (-4, -3, -2, 2, 3, 4):
            in_range = (columns[sample] + away >= 0) & (columns[sample] + away < len(part.target))
            a, b = part.source.sums[rows[sample][in_range]], part.target.sums[columns[sample][in_range] + away]
            noise.append(np.einsum("ij,ij->i", a, b) / (_norms(a) * _norms(b)))
        if sum(map(len, found)) > _MAX_PAIRS:
            break
    best, other, sizes = np.concatenate(found), np.concatenate(noise), np.concatenate(ratios)
    if len(best) < _MIN_PAIRS or len(other) < _MIN_PAIRS:
        return Prices(signal=max(0.3, float(best.mean())) if len(best) else 0.5)
    good = best > np.quantile(other, 0.9)
    good = good if good.sum() >= _MIN_PAIRS else np.ones(len(best), bool)
    low, shift = float(other.mean()), float(np.median(sizes[good]))
    high = max(float(np.median(best[good])), low + 0.1)
    doubt = float(np.clip((other.var() + best[good].var()) / 2 / (high - low) ** 2, 0.02, 0.3))
    spread = float(np.clip(1.4826 * np.median(np.abs(sizes[good] - shift)), 0.1, 1.0))
    return Prices(low, high, doubt, shift, spread)


def best_cells(part: Part, prices: Prices, config: AlignConfig, most: int) -> np.ndarray:
    """Return the best path through the band: int64 (k, 2), its cells from (0, 0) to (n, m)."""
    source, target, band = part.source, part.target, part.band
    n, m = len(source), len(target)
    properties = []
    for side in (source, target):
        inverse, logs = np.empty((most, len(side) + 1), np.float32), np.empty((most, len(side) + 1), np.float32)
        run_properties(side.sums, side.sizes, inverse, logs, np.empty(side.sums.shape[1], np.float32))
        properties.append((inverse, logs))
    known = part.constraints
    for size, inverse in enumerate(properties[0][0], 1):
        for end in range(1, size + 1):  # runs of this size that contain a known gap end 1 to ``size`` cells after it starts
            inverse[np.minimum(known.source_gaps + end, n)] = 0.0
    shapes = usual_shapes(most) if prices.shapes is None else prices.shapes
    further = np.add.outer(np.arange(most), np.arange(most)).astype(np.float32)
    doubt = config.prior * prices.doubt
    losses = config.merge * further - doubt * np.log(np.maximum(shapes * (1 - prices.gaps), 1e-9))
    losses += _MANY_TO_MANY * np.minimum.outer(np.arange(most), np.arange(most))
    scale = 1 / (prices.signal - prices.noise)
    half = config.length / (2 * prices.spread**2)
    zero = prices.noise + config.gap / scale
    numbers = np.array([zero, scale, prices.shift, half, 1.0, -doubt * np.log(prices.gaps)], np.float32)
    width = int((band.high[np.minimum(np.arange(n + 1) + most, n)] - band.low).max()) + 2 * most + 2
    rows = np.empty((most, width), np.float32), np.empty((most, width), np.float32)
    room = np.empty((most + 1, width)), np.empty((2, width)), *rows, np.empty(width, np.float32), np.zeros(most, np.int64)
    boxes = np.empty((len(known.target_gaps) + len(known.rejected), 3), np.int64)
    starts = band.starts()
    back, steps = np.empty(starts[-1], np.uint8), np.empty(n + m, np.uint8)
    table = (1 + _LINE_WEIGHT * further, losses.astype(np.float32), numbers)
    cells, work = (band.low, band.high, starts), (*room, np.empty(width), boxes)
    best_path(source.sums, target.sums, *properties, cells, table, _forbidden(known, n, m), work, back)
    count = trace(band.low, starts, back, m, steps)
    assert count >= 0
    sizes = np.stack([steps[:count] // 16, steps[:count] % 16], 1).astype(np.int64)[::-1]
    return np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, 0)])


def _forbidden(known: Constraints, n: int, m: int) -> tuple[np.ndarray, ...]:
    """Return what no bead may contain; see :func:`xswe.alignment.kernels.best_path`."""
    gaps_before = np.searchsorted(known.target_gaps, np.arange(m + 1))
    rejected_before = np.searchsorted(known.rejected[:, 1], np.arange(n + 1), "right")
    return known.target_gaps, gaps_before, known.rejected, rejected_before


def band_of(source: Lines, target: Lines, config: AlignConfig) -> Band:
    """Find the band of cells for the path through two texts, coarse to fine; all cells for short texts."""
    levels = [(source, target)]
    while len(levels[-1][0]) * len(levels[-1][1]) > (_MAX_FULL_CELLS if len(levels) == 1 else _MAX_COARSE_CELLS):
        levels.append((levels[-1][0].halved(), levels[-1][1].halved()))
    band = Band.full(len(levels[-1][0]), len(levels[-1][1]))
    for finer, (a, b) in zip(levels[-2::-1], levels[:0:-1], strict=True):
        cells = coarse_cells(Part(a, b, band), config)
        band = Band.around(cells, len(finer[0]), len(finer[1]), config.search)
    return band


def coarse_cells(part: Part, config: AlignConfig) -> np.ndarray:
    """Return the path through groups of lines, int64 (k, 2), regardless of bead shapes and line lengths."""
    loose = AlignConfig(gap=config.gap, merge=0.0, length=0.0, prior=config.prior)
    return best_cells(part, estimate([part]), loose, min(2, config.most))


def align_lines(
    source: Lines, target: Lines, config: AlignConfig, constraints: Constraints | None = None
) -> tuple[np.ndarray, Prices]:
    """Align two texts; centres their sums and empties known gaps, in place.

    Returns int64 (k, 2), the path's cells from (0, 0) to (n, m), each the number of lines before it; and the learnt prices.
    """
    constraints = constraints or Constraints()
    for side, gaps in ((source, constraints.source_gaps), (target, constraints.target_gaps)):
        side.centre()
        side.clear(gaps)
    parts = parts_between(source, target, constraints, config)
    beads = [np.subtract(stop, start) for start, stop in constraints.anchors]
    whole = joined(source, target, constraints.anchors, parts, config.search)
    with bar("align", total=_TURNS * (len(source) + len(target)), unit="line") as progress:
        found, prices = best_of_parts([part for _, part in parts], beads, estimate([whole]), config, progress.update)
    return path_through(constraints.anchors, parts, found), prices


def between(anchors: Sequence[tuple[Cell, Cell]], n: int, m: int) -> list[tuple[Cell, Cell]]:
    """Return the rectangles before, between and after anchors, from cell to cell; a single one without anchors."""
    ends = [(0, 0), *(cell for bead in anchors for cell in bead), (n, m)]
    return list(zip(ends[::2], ends[1::2], strict=True))


def parts_between(source: Lines, target: Lines, constraints: Constraints, config: AlignConfig) -> list[tuple[Cell, Part]]:
    """Return the non-empty parts before, between and after known beads (at least one part), and where each begins."""
    rooms = between(constraints.anchors, len(source), len(target))
    return [
        ((a, b), part_of(source.part(a, c), target.part(b, d), config, constraints.within((a, b), (c, d))))
        for (a, b), (c, d) in [room for room in rooms if room[0] != room[1]] or rooms[:1]
    ]


def path_through(
    anchors: Sequence[tuple[Cell, Cell]], parts: Sequence[tuple[Cell, Part]], found: Sequence[np.ndarray]
) -> np.ndarray:
    """Join known beads and the paths of the parts between them into one path, int64 (k, 2)."""
    cells = np.concatenate(
        [
            np.array(anchors, np.int64).reshape(-1, 2),
            *(own + np.array(corner) for (corner, _), own in zip(parts, found, strict=True)),
        ]
    )
    return cells[np.unique(cells.sum(1), return_index=True)[1]]  # each cell has more lines before it than the last


def joined(
    source: Lines, target: Lines, anchors: Sequence[tuple[Cell, Cell]], parts: Sequence[tuple[Cell, Part]], search: int
) -> Part:
    """Join parts to learn from: the band contains the bands of the parts and the known beads between them."""
    if not anchors:
        return parts[0][1]
    n, m = len(source), len(target)
    low, high = np.full(n + 1, m, np.int64), np.zeros(n + 1, np.int64)
    rows, columns = np.array(anchors, np.int64).reshape(-1, 2).T
    np.minimum.at(low, rows, columns)
    np.maximum.at(high, rows, columns + 1)
    for (a, b), part in parts:
        own = slice(a, a + len(part.source) + 1)
        low[own] = np.minimum(low[own], part.band.low + b)
        high[own] = np.maximum(high[own], part.band.high + b)
    low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
    return Part(source, target, Band.rising(np.maximum(low - search, 0), np.minimum(high + search, m + 1), m))


def part_of(source: Lines, target: Lines, config: AlignConfig, constraints: Constraints | None = None) -> Part:
    """Make a part of two runs of centred lines, with its band; known gaps are empty lines."""
    return Part(source, target, band_of(source, target, config), constraints or Constraints())


def best_of_parts(
    parts: Sequence[Part],
    beads: Sequence[np.ndarray],
    prices: Prices,
    config: AlignConfig,
    tell: Callable[[int], object],
) -> tuple[list[np.ndarray], Prices]:
    """Align parts of two texts, with bead and gap statistics learnt from all of them.

    ``beads`` are the shapes of the known beads between the parts, int64 (2,) each; ``tell`` is called with each part's
    number of lines in each turn. Returns the cells of each part's path, int64 (k, 2), and the learnt prices.
    """
    known = [bead[None] for bead in beads if max(bead) <= config.most]
    for _ in range(_TURNS):
        found, narrowed = [], []
        for part in parts:
            cells = best_cells(part, prices, config, config.most)
            found.append(cells)
            narrowed.append(replace(part, band=Band.near(cells, len(part.source), len(part.target), config.search)))
            tell(len(part.source) + len(part.target))
        parts = narrowed
        prices = _learnt([np.diff(cells, axis=0) for cells in found], known, prices, config.most)
    return found, prices


def _learnt(paths: Sequence[np.ndarray], known: Sequence[np.ndarray], prices: Prices, most: int) -> Prices:
    """Return the prices with the shapes and gaps of the paths; many-to-many beads never exceed their prior probability."""
    steps = np.concatenate([*paths, *known])
    usual, counts = usual_shapes(most), np.zeros((most, most))
    bead = np.asarray((steps > 0).all(1))
    np.add.at(counts, (steps[bead, 0] - 1, steps[bead, 1] - 1), 1)
    shapes = (counts + _PRIOR_BEADS * usual) / (bead.sum() + _PRIOR_BEADS)
    shapes = np.where(_is_many_to_many(most), np.minimum(shapes, usual), shapes)
    begun = sum(map(_gaps_begun, paths))
    gaps = (begun + _PRIOR_BEADS * _PRIOR_GAPS) / (bead.sum() + begun + _PRIOR_BEADS)
    return replace(prices, gaps=float(gaps), shapes=shapes / shapes.sum())


def _gaps_begun(steps: np.ndarray) -> int:
    """Return the number of runs of gaps in a path."""
    gap = np.any(steps <= 0, axis=1)
    return int(gap[:1].sum() + (gap[1:] > gap[:-1]).sum())


def bead_cosines(cells: np.ndarray, source: Lines, target: Lines, mismatched: bool = False) -> np.ndarray:
    """Return the cosine of each bead of a path through centred lines, float32 (k - 1,); nan for gaps.

    ``mismatched``: instead return the highest cosine of the bead's source with the target of a nearby bead, which is what
    a wrong bead scores.
    """
    steps = np.diff(cells, axis=0)
    bead = (steps > 0).all(1)
    out = np.full(len(steps), np.nan, np.float32)
    if not bead.any():
        return out
    sums = []
    for k, side in enumerate((source, target)):
        starts, sizes = cells[:-1][bead, k], steps[bead, k]
        total = side.sums[starts]
        for line in range(1, int(sizes.max())):
            longer = sizes > line
            total[longer] += side.sums[starts[longer] + line]
        sums.append(total)
    left, right = (one / _norms(one)[:, None] for one in sums)
    found = np.full(len(left), -1.0 if mismatched else np.nan, np.float32)
    if not mismatched:
        found = np.einsum("ij,ij->i", left, right)
    for away in range(1, min(_MISMATCH_REACH, len(left) - 1) + 1) if mismatched else ():
        before, after = found[away:], found[:-away]
        np.maximum(before, np.einsum("ij,ij->i", left[away:], right[:-away]), out=before)
        np.maximum(after, np.einsum("ij,ij->i", left[:-away], right[away:]), out=after)
    out[bead] = found
    return out
