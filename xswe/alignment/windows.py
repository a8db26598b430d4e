"""Alignment of long texts, window by window: memory holds only the texts, their ids and a few windows.

A coarse path through groups of lines cuts the texts into overlapping windows. Neighbouring windows both find a path through
the lines they share, and the paths are joined where they meet. Prices are learnt from some of the windows, evenly spread.

The plan (the windows and the learnt prices) is a file, and each window's path is a shard, so that a killed run can resume.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from xswe.alignment.beads import (
    AlignConfig,
    Cell,
    Constraints,
    Lines,
    Prices,
    align_lines,
    bag_sums,
    bead_cosines,
    best_cells,
    best_of_parts,
    between,
    coarse_cells,
    estimate,
    joined,
    line_sums,
    part_of,
    parts_between,
    path_through,
)
from xswe.io.files import arrays_digest, fingerprint, scratch
from xswe.io.parallel import in_order
from xswe.io.ragged import Bags, Texts, concatenate_bags, id_type
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.version import __version__
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.run import map_shards
from xswe.work.stage import Job, Made, Stage

# In lines of both sides together:
_WHOLE = 1 << 17  # texts up to this size are aligned as a whole
_WINDOW = 1 << 15  # a window
_COARSE = 1 << 17  # maximum groups of lines on the coarse path
_LEARN = 1 << 16  # all windows to learn prices from
_BORDER = 512  # minimum extent of a window beyond its cuts
_STEPS = 16  # the same in steps of the coarse path, if these are more lines
# In lines of one side:
_MEAN_SAMPLE = 1 << 15  # sample size for the mean vector
_ENCODING_BLOCK = 1 << 14  # lines encoded at a time


class Window(NamedTuple):
    """Part of two texts, from cell to cell; may contain known beads."""

    start: Cell  # cell where its path begins
    stop: Cell  # cell where it ends
    end: Cell  # end of the known bead that begins at ``stop``; ``stop`` if there is none
    cut: Cell  # cell near which its path should join the next window's

    @property
    def lines(self) -> int:
        """Number of lines of both sides."""
        return sum(self.stop) - sum(self.start)


class Side:
    """One side of two long texts; ``mean``, float32 (d,), is the mean of its lines' vectors.

    With a static model, the ids of all lines are kept, and pooled window by window; if the mean is known from the plan of
    an earlier run, lines are encoded window by window. ``gaps``, int64, rising, are lines known to have no counterpart;
    they are returned as empty.
    """

    def __init__(
        self, model: AnyModel, texts: Texts, threads: int, gaps: np.ndarray, mean: np.ndarray | None = None
    ) -> None:
        self._model, self._texts, self._gaps = model, texts, gaps
        self._bags: Bags | None = None
        if mean is not None:
            self.mean = mean
            return
        if isinstance(model, StaticModel):
            kind = id_type(len(model.units))
            read = (texts[start : start + _ENCODING_BLOCK] for start in range(0, len(texts), _ENCODING_BLOCK))
            found = in_order(model.units.bags, read, threads)
            self._bags = concatenate_bags([Bags(bags.ids.astype(kind), bags.offsets) for bags in found])
        rows = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _MEAN_SAMPLE)).astype(np.int64))
        self.mean = self._of(rows).mean()

    def __len__(self) -> int:
        return len(self._texts)

    def _of(self, rows: np.ndarray) -> Lines:
        if self._bags is None:
            return line_sums(self._model, self._texts.take(rows))
        return self._pooled(self._bags.take(rows), self._texts.take(rows))

    def _pooled(self, bags: Bags, texts: Texts) -> Lines:
        assert isinstance(self._model, StaticModel)
        return Lines(bag_sums(self._model, bags), np.fromiter(map(len, texts), np.float32, len(texts)))

    def lines(self, start: int, stop: int) -> Lines:
        """Return a range of lines, centred; known gaps are empty."""
        texts = self._texts[start:stop]
        if self._bags is None:
            out = line_sums(self._model, texts)
        else:
            bags = self._bags.block(start, stop)
            out = self._pooled(Bags(bags.ids.astype(np.int32), bags.offsets), texts)
        out.centre(self.mean)
        out.clear(self._gaps[np.searchsorted(self._gaps, start) : np.searchsorted(self._gaps, stop)] - start)
        return out

    def coarse(self, start: int, stop: int, level: int, threads: int) -> Lines:
        """Return a range of lines, centred and merged in groups of ``2 ** level``."""

        def one(begin: int) -> Lines:
            lines = self.lines(begin, min(stop, begin + size))
            for _ in range(level):
                lines = lines.halved()
            return lines

        size = max(_ENCODING_BLOCK, 1 << level)
        found = list(in_order(one, range(start, stop, size), threads))
        return Lines(np.concatenate([one.sums for one in found]), np.concatenate([one.sizes for one in found]))


def is_long(source: Texts, target: Texts) -> bool:
    """Return True if two texts are aligned window by window, which leaves files behind if the run is killed."""
    return len(source) + len(target) > _WHOLE


def align_texts(
    model: AnyModel,
    source: Texts,
    target: Texts,
    config: AlignConfig,
    constraints: Constraints | None = None,
    threads: int = 1,
    work: pathlib.Path | None = None,
) -> tuple[Path, Prices]:
    """Encode and align two texts of any length; return the path from (0, 0) to (n, m) and the learnt prices.

    With a work folder, the windows' paths are kept there for a later run.
    """
    constraints = constraints or Constraints()
    if not is_long(source, target):
        lines = line_sums(model, source, threads), line_sums(model, target, threads)
        cells, prices = align_lines(*lines, config, constraints)
        return _measured(cells, *lines, config), prices
    with nullcontext(work) if work else scratch() as place:
        texts = [arrays_digest(side.data, side.offsets) for side in (source, target)]
        how = asdict(replace(config, threads=None, fixed=None, uncorrected=None))
        known = constraints.anchors, arrays_digest(constraints.source_gaps, constraints.target_gaps, constraints.rejected)
        identity = fingerprint(__version__, model.identity, how, texts, known)
        folder = pathlib.Path(place) / identity
        pair, windows, prices = _planned(
            folder / "plan.safetensors", identity, (model, source, target, config), constraints, threads
        )
        stage = Stage(folder / "windows", "align", len(windows), ".safetensors", _Windows(), identity)

        def path(window: Window) -> Path:
            return pair.path(window, prices)

        made = map_shards(stage, threads=threads, opened=[partial(path, window) for window in windows])
        paths = (Path(**arrays) for arrays in made)
        found = list(_joined(zip(windows, paths, strict=True), path))
    cells = np.concatenate([*(path.cells[:-1] for path in found), [(len(source), len(target))]])
    cosines, mismatched = (np.concatenate(values) for values in zip(*(path[1:] for path in found), strict=True))
    return Path(cells, cosines, mismatched), prices


class Path(NamedTuple):
    """A path and the cosines of its beads."""

    cells: np.ndarray  # int64 (k, 2)
    cosines: np.ndarray  # float32 (k - 1,), nan for gaps
    # float32 (k - 1,), see :func:`xswe.alignment.beads.bead_cosines`; empty unless requested
    mismatched: np.ndarray

    def part(self, start: int, stop: int) -> Path:
        """Return its cells from ``start`` to ``stop``, both included."""
        return Path(self.cells[start : stop + 1], self.cosines[start:stop], self.mismatched[start:stop])


def _measured(cells: np.ndarray, source: Lines, target: Lines, config: AlignConfig, start: Cell = (0, 0)) -> Path:
    """Return a path shifted by ``start``, with the cosines of its beads."""
    wanted = config.evidence or config.precision is not None
    mismatched = bead_cosines(cells, source, target, True) if wanted else np.zeros(0, np.float32)
    return Path(cells + start, bead_cosines(cells, source, target), mismatched)


class Pair:
    """Two sides, window by window."""

    def __init__(self, source: Side, target: Side, config: AlignConfig, constraints: Constraints) -> None:
        self._sides, self._config, self._constraints = (source, target), config, constraints

    def windows(self, start: Cell, stop: Cell, end: Cell, threads: int) -> list[Window]:
        """Cut the rectangle between two cells into windows along a coarse path."""
        whole = Window(start, stop, end, end)
        count = -(-whole.lines // _WINDOW)
        if whole.lines <= 2 * _WINDOW:
            return [whole]
        level = 0
        while whole.lines >> level > _COARSE:
            level += 1
        coarse = [side.coarse(a, b, level, threads) for side, a, b in zip(self._sides, start, stop, strict=True)]
        path = coarse_cells(part_of(coarse[0], coarse[1], self._config), self._config)
        path = np.minimum(path << level, np.subtract(stop, start)) + start
        ways = path.sum(1)
        cuts = np.searchsorted(ways, np.linspace(ways[0], ways[-1], count + 1))
        beyond = max(_BORDER, 2 * _STEPS << level)
        first = np.searchsorted(ways, ways[cuts] - beyond)
        last = np.minimum(np.searchsorted(ways, ways[cuts] + beyond), len(path) - 1)
        cells: list[Cell] = [(int(a), int(b)) for a, b in path.tolist()]
        out = [Window(cells[first[k]], cells[last[k + 1]], cells[last[k + 1]], cells[cuts[k + 1]]) for k in range(count)]
        return [*out[:-1], Window(out[-1].start, stop, end, end)]

    def learn(self, windows: Sequence[Window]) -> Prices:
        """Learn prices from some windows, evenly spread."""
        some = windows[:: 1 + sum(window.lines for window in windows) // _LEARN]
        parts, wholes, beads = [], [], []
        for window in some:
            lines = self._lines(window.start, window.stop)
            known = self._constraints.within(window.start, window.stop)
            own = parts_between(*lines, known, self._config)
            wholes.append(joined(*lines, known.anchors, own, self._config.search))
            parts += [part for _, part in own]
            beads += [np.subtract(stop, start) for start, stop in known.anchors]
        return best_of_parts(parts, beads, estimate(wholes), self._config, lambda lines: None)[1]

    def path(self, window: Window, prices: Prices) -> Path:
        """Align a window."""
        source, target = self._lines(window.start, window.end)
        n, m = np.subtract(window.stop, window.start).tolist()
        known = self._constraints.within(window.start, window.stop)
        parts = parts_between(source.part(0, n), target.part(0, m), known, self._config)
        found = [best_cells(part, prices, self._config, self._config.most) for _, part in parts]
        cells = path_through(known.anchors, parts, found)
        if window.end != window.stop:
            cells = np.concatenate([cells, [np.subtract(window.end, window.start)]])
        return _measured(cells, source, target, self._config, window.start)

    def _lines(self, start: Cell, stop: Cell) -> tuple[Lines, Lines]:
        source, target = (side.lines(a, b) for side, a, b in zip(self._sides, start, stop, strict=True))
        return source, target


def _gathered(windows: Sequence[Window]) -> list[Window]:
    """Merge consecutive windows with a known bead between them, up to the size of a window."""
    out: list[Window] = []
    for window in windows:
        before = out[-1] if out else window
        if out and before.end != before.stop and before.lines + window.lines <= _WINDOW:
            out[-1] = window._replace(start=before.start)
        else:
            out.append(window)
    return out


class _Windows(Job):
    """Shards: the path of each window, aligned in this process with the opened model."""

    def compute(self, opened: Sequence[Callable[[], Path]], shard: int) -> Made:
        path = opened[shard]()
        return path._asdict(), {"lines": int((path.cells[-1] - path.cells[0]).sum())}


def _planned(
    file: pathlib.Path,
    identity: str,
    given: tuple[AnyModel, Texts, Texts, AlignConfig],
    constraints: Constraints,
    threads: int,
) -> tuple[Pair, list[Window], Prices]:
    """Cut two texts into windows and learn prices, or load the plan of an earlier run."""
    model, source, target, config = given
    known = (source, constraints.source_gaps), (target, constraints.target_gaps)
    if found := load_checkpoint(file, identity):
        arrays, values = found
        means = arrays["source"], arrays["target"]
        sides = [Side(model, texts, threads, gaps, mean) for (texts, gaps), mean in zip(known, means, strict=True)]
        windows = [Window(*map(tuple, cells)) for cells in arrays["windows"].tolist()]
        return Pair(sides[0], sides[1], config, constraints), windows, Prices(**values, shapes=arrays["shapes"])
    sides = [Side(model, texts, threads, gaps) for texts, gaps in known]
    pair = Pair(sides[0], sides[1], config, constraints)
    rooms = between(constraints.anchors, len(source), len(target))
    ends = [start for start, _ in rooms[1:]] + [rooms[-1][1]]
    windows = _gathered([one for room, end in zip(rooms, ends, strict=True) for one in pair.windows(*room, end, threads)])
    prices = pair.learn(windows)
    values = asdict(prices)
    arrays = {"source": sides[0].mean, "target": sides[1].mean, "windows": np.array(windows, np.int64)}
    save_checkpoint(file, identity, arrays | {"shapes": values.pop("shapes")}, values, "after the plan of the alignment")
    return pair, windows, prices


def _joined(found: Iterator[tuple[Window, Path]], again: Callable[[Window], Path]) -> Iterator[Path]:
    """Join each path to the next at the common cell nearest to the cut; yield the paths up to there.

    If two paths have no cell in common, their windows are aligned again as one.
    """
    window, path = next(found)
    for new, further in found:
        place = _meeting(path.cells, further.cells, window.cut)
        if place is None:
            first = (int(path.cells[0, 0]), int(path.cells[0, 1]))
            window = Window(first, *new[1:])
            path = again(window)
            continue
        yield path.part(0, place[0])
        window, path = new, further.part(place[1], len(further.cells) - 1)
    yield path


def _meeting(cells: np.ndarray, further: np.ndarray, cut: Cell) -> tuple[int, int] | None:
    """Return the indices, in either path, of their common cell nearest to the cut; None if there is none."""
    width = 1 + max(int(cells[-1, 1]), int(further[-1, 1]))
    _, own, other = np.intersect1d(cells @ (width, 1), further @ (width, 1), assume_unique=True, return_indices=True)
    if not len(own):
        return None
    best = np.abs(cells[own].sum(1) - sum(cut)).argmin()
    return int(own[best]), int(other[best])
