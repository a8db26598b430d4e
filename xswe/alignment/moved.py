"""Blocks out of order: chapters that were swapped and paragraphs that moved.

A path through two texts goes forward in both, so lines out of order end up in gaps or in beads with a low score. Such lines
are compared across both sides, wherever they stand. Mutual nearest neighbours that follow each other on both sides form a
block; within a block, lines are aligned as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xswe.alignment.beads import AlignConfig, Constraints, Lines, Prices, bead_cosines, best_cells, line_sums, part_of
from xswe.io.ragged import Texts
from xswe.model.ensemble import AnyModel

_WEAK_SCORE = 0.6  # lines of beads that score less may belong elsewhere
_SEED_SCORE = 0.5  # minimum score of the pairs of lines that form a block
_MIN_BLOCK_SCORE = 1.6  # minimum sum of these scores in a block, less the costs of skipped lines
_SKIP_COST = 0.05  # of a line between two pairs of a block
_MAX_SKIPPED = 5  # lines between two pairs of a block, on either side
_MAX_AROUND = 12  # lines before and after a block that may belong to it
_MEAN_SAMPLE = 1 << 15  # lines sampled for the mean vector
_MAX_CELLS = 1 << 29  # pairs of lines to compare; with more, nothing is sought
_CHUNK_CELLS = 1 << 24  # pairs of lines in memory at a time


class Moved(NamedTuple):
    """Beads out of order."""

    spans: np.ndarray  # int64 (k, 4), begin and end in the source, begin and end in the target
    scores: np.ndarray  # float32 (k,)


NONE = Moved(np.zeros((0, 4), np.int64), np.zeros(0, np.float32))


def without(constraints: Constraints, spans: np.ndarray) -> Constraints:
    """Return the constraints with the lines of beads out of order added to the gaps."""
    gaps = []
    for side, known in enumerate((constraints.source_gaps, constraints.target_gaps)):
        lines = [np.arange(begin, end) for begin, end in spans[:, 2 * side : 2 * side + 2].tolist()]
        gaps.append(np.unique(np.concatenate([known, *lines])))
    return replace(constraints, source_gaps=gaps[0], target_gaps=gaps[1])


class _Side:
    """Lines of a text on demand, with the mean of the text subtracted."""

    def __init__(self, model: AnyModel, texts: Texts, threads: int) -> None:
        self._model, self._texts, self._threads = model, texts, threads
        rows = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _MEAN_SAMPLE)).astype(np.int64))
        self._mean = line_sums(model, texts.take(rows), threads).mean()

    def lines(self, rows: np.ndarray) -> Lines:
        """Return the centred lines of some rows."""
        out = line_sums(self._model, self._texts.take(rows), self._threads)
        out.centre(self._mean)
        return out


def score_spans(
    model: AnyModel, source: Texts, target: Texts, spans: np.ndarray, prices: Prices, threads: int
) -> np.ndarray:
    """Return the scores of beads anywhere in the texts, float32 (k,); 0 for those with lines of one side only."""
    out = np.zeros(len(spans), np.float32)
    both = np.flatnonzero((np.diff(spans)[:, ::2] > 0).all(1))
    if not len(both):
        return out
    sums = []
    for side, texts in enumerate((source, target)):
        lines = _Side(model, texts, threads)
        found = [np.arange(begin, end) for begin, end in spans[both, 2 * side : 2 * side + 2].tolist()]
        own = lines.lines(np.concatenate(found)).sums
        total = np.add.reduceat(own, np.cumsum([0, *map(len, found[:-1])]), axis=0)
        sums.append(total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-6))
    out[both] = prices.score(np.einsum("ij,ij->i", *sums))
    return out


def find_moved(
    model: AnyModel,
    texts: tuple[Texts, Texts],
    path: tuple[np.ndarray, np.ndarray],
    prices: Prices,
    config: AlignConfig,
    constraints: Constraints,
    threads: int,
) -> Moved:
    """Find beads out of order, given a path: its cells, int64 (k, 2), and the cosines of its beads, nan for gaps.

    Lines of known beads and gaps are skipped, and rejected pairs are never found.
    """
    pools = _pools(*path, prices, constraints)
    if not all(map(len, pools)) or len(pools[0]) * len(pools[1]) > _MAX_CELLS:
        return NONE
    sides = [_Side(model, side, threads) for side in texts]
    units = []
    for side, pool in zip(sides, pools, strict=True):
        sums = side.lines(pool).sums
        units.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6))
    rows, columns, cosines = _best_of_each_other(*units)
    scores = prices.score(cosines)
    rows, columns = pools[0][rows], pools[1][columns]
    sure = (scores >= _SEED_SCORE) & _is_off(path[0], rows, columns)
    blocks = _blocks(rows[sure], columns[sure], scores[sure])
    return _aligned(blocks, sides, pools, prices, config, constraints)


def _pools(
    cells: np.ndarray, cosines: np.ndarray, prices: Prices, constraints: Constraints
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lines of both sides in gaps or in beads with a low score."""
    known = set(constraints.anchors)
    weak = np.nan_to_num(prices.score(cosines), nan=-1.0) < _WEAK_SCORE
    ends = cells[np.flatnonzero(weak)[:, None] + [0, 1]].tolist()
    weak[weak] = [(tuple(begin), tuple(end)) not in known for begin, end in ends]
    out = []
    for side, gaps in enumerate((constraints.source_gaps, constraints.target_gaps)):
        lines = [np.arange(begin, end) for begin, end in zip(cells[:-1][weak, side], cells[1:][weak, side], strict=True)]
        found = np.concatenate([np.zeros(0, np.int64), *lines])
        out.append(found[~np.isin(found, gaps)])
    return out[0], out[1]


def _is_off(cells: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return which pairs of lines are away from the path, bool (k,)."""
    low = cells[np.searchsorted(cells[:, 0], rows, "right") - 1, 1]  # where the path is before the line, and after it
    high = cells[np.searchsorted(cells[:, 0], rows + 1, "left"), 1]
    return np.asarray((columns < low - 1) | (columns > high))


def _best_of_each_other(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mutual nearest neighbours among unit vectors: rows, columns and cosines."""
    best, place = np.full(len(target), -2.0, np.float32), np.zeros(len(target), np.int64)
    forward, scores = np.zeros(len(source), np.int64), np.zeros(len(source), np.float32)
    size = max(1, _CHUNK_CELLS // len(target))
    for start in range(0, len(source), size):
        cosines = source[start : start + size] @ target.T
        forward[start : start + size], scores[start : start + size] = cosines.argmax(1), cosines.max(1)
        own = cosines.argmax(0)
        better = cosines[own, np.arange(len(target))] > best
        best[better], place[better] = cosines[own, np.arange(len(target))][better], start + own[better]
    rows = np.flatnonzero(place[forward] == np.arange(len(source)))
    return rows, forward[rows], scores[rows]


def _blocks(rows: np.ndarray, columns: np.ndarray, scores: np.ndarray) -> list[list[tuple[int, int]]]:
    """Chain pairs of lines that follow each other on both sides; return the chains, best first."""
    pairs = list(zip(rows.tolist(), columns.tolist(), scores.tolist(), strict=True))
    out, left = [], list(range(len(pairs)))
    while left:
        total, before = {}, {}
        for place, k in enumerate(left):
            a, b, score = pairs[k]
            total[k], before[k] = score, -1
            for j in reversed(left[max(0, place - _MAX_SKIPPED - 1) : place]):
                c, d, _ = pairs[j]
                apart = (a - c - 1, b - d - 1)
                if (
                    min(apart) >= 0
                    and max(apart) <= _MAX_SKIPPED
                    and (sum_ := total[j] + score - _SKIP_COST * sum(apart)) > total[k]
                ):
                    total[k], before[k] = sum_, j
        taken: set[int] = set()
        for k in sorted(left, key=lambda k: -total[k]):
            chain = []
            while k >= 0 and k not in taken:
                chain.append(k)
                k = before[k]
            if k < 0 and total[chain[0]] >= _MIN_BLOCK_SCORE:
                out.append([pairs[j][:2] for j in reversed(chain)])
                taken.update(chain)
        if not taken:
            break
        left = [k for k in left if k not in taken]
    return out


def _aligned(
    blocks: Sequence[Sequence[tuple[int, int]]],
    sides: Sequence[_Side],
    pools: tuple[np.ndarray, np.ndarray],
    prices: Prices,
    config: AlignConfig,
    constraints: Constraints,
) -> Moved:
    """Align the lines in and around each block that no better block has taken."""
    free = [set(pool.tolist()) for pool in pools]
    spans: list[tuple[int, int, int, int]] = []
    scores: list[float] = []
    core = [{pair[side] for block in blocks for pair in block} for side in (0, 1)]
    for block in blocks:
        ranges = [
            _around(block[0][side], block[-1][side], free[side], core[side] - {pair[side] for pair in block})
            for side in (0, 1)
        ]
        lines = [side.lines(np.arange(*own)) for side, own in zip(sides, ranges, strict=True)]
        gone = [
            np.array([line - own[0] for line in range(*own) if line not in free[side]], np.int64)
            for side, own in enumerate(ranges)
        ]
        for one, rows in zip(lines, gone, strict=True):
            one.clear(rows)
        part = part_of(lines[0], lines[1], config, Constraints((), *gone))
        cells = best_cells(part, prices, config, config.most)
        found = prices.score(bead_cosines(cells, lines[0], lines[1]))
        for begin, end, score in zip(cells[:-1].tolist(), cells[1:].tolist(), found.tolist(), strict=True):
            span = (begin[0] + ranges[0][0], end[0] + ranges[0][0], begin[1] + ranges[1][0], end[1] + ranges[1][0])
            if score > config.gap and not _is_rejected(span, constraints):
                spans.append(span)
                scores.append(score)
                for side in (0, 1):
                    free[side] -= set(range(*span[2 * side : 2 * side + 2]))
    return Moved(np.array(spans, np.int64).reshape(-1, 4), np.array(scores, np.float32))


def _around(first: int, last: int, free: set[int], other: set[int]) -> tuple[int, int]:
    """Extend a run by free lines on both sides, up to a maximum or the lines of another block."""
    begin, end = first, last + 1
    while begin - 1 in free and begin - 1 not in other and first - begin < _MAX_AROUND:
        begin -= 1
    while end in free and end not in other and end - last <= _MAX_AROUND:
        end += 1
    return begin, end


def _is_rejected(span: tuple[int, int, int, int], constraints: Constraints) -> bool:
    a, b, c, d = span
    boxes = constraints.rejected
    return bool(((boxes[:, 0] >= a) & (boxes[:, 1] <= b) & (boxes[:, 2] >= c) & (boxes[:, 3] <= d)).any())
