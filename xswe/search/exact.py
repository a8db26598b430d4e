"""Exact nearest neighbours on the CPU or a GPU: tiles of sources and targets, both directions at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, get_ident
from typing import Any

import numpy as np

from xswe.errors import ConfigError, needs
from xswe.io.parallel import parallel_for
from xswe.io.products import COLUMNS, ROWS, aligned, pack
from xswe.search.kernels import Lists, merge, sweep
from xswe.search.lists import NONE, Neighbours, SearchConfig, empty_lists
from xswe.search.shard import Opened, Search, SearchJob, lists_of
from xswe.search.vectors import Vectors
from xswe.work.config import ExecutionConfig
from xswe.work.run import map_shards
from xswe.work.stage import Made

_TILE_ROWS = 1 << 17  # rows of a tile, about a minute on two processors; more if a side would have over 64 tiles
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TileJob(SearchJob):
    """Search a tile of sources and targets; within one side, only tiles of targets not after the sources."""

    edge: int = _TILE_ROWS

    def tiles(self) -> list[tuple[int, int]]:
        """Return the first source and the first target of every tile."""
        sources, targets = (range(0, length, self.edge) for length in self.search.lengths)
        return [(row, column) for row in sources for column in targets if not (self.search.within and column > row)]

    def compute(self, opened: Opened, shard: int) -> Made:
        """Return the lists of the tile's lines."""
        search, first = self.search, self.tiles()[shard]
        sides = opened.sides[0], opened.sides[-1]
        parts = [Vectors(side.array[row : row + self.edge]) for side, row in zip(sides, first, strict=True)]
        left, right = parts
        lines = np.arange(first[0], first[0] + len(left)), np.arange(first[1], first[1] + len(right))
        found = opened.lists(lines, search.k)
        find = _sweep_tile if search.config.device == "cpu" else _score_on_device
        find(left, right, first, found, search, opened)
        return lists_of(lines, found, len(left) * len(right))


def search_tiles(
    search: Search, sides: list[Vectors], known: Neighbours, execution: ExecutionConfig
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the lists of each tile; ``known`` holds the lists so far.

    Memory in addition to the result and the lists of a tile is ``config.memory``, which decides the size of the panels. The
    result does not depend on it, on the number of threads, or on interruptions.
    """
    edge = max(_TILE_ROWS, -(-max(search.lengths) // 64))
    job = TileJob(search, edge=edge)
    sizes = [[min(edge, length - row) for length, row in zip(search.lengths, first, strict=True)] for first in job.tiles()]
    pairs = sum(sources * targets for sources, targets in sizes)
    stage = search.stage("neighbours", len(sizes), job, edge)
    opened = Opened(sides, threads=search.config.workers, known=known)
    yield from map_shards(stage, execution, 1, opened, ("pair", pairs), state=vars(known))


# On the CPU. Targets are packed in panels of as many rows as memory allows, and sources are swept past them in strips,
# which the threads share. A thread owns the lists of its strip's rows, and keeps its own lists for the panel's columns,
# which are merged at the end.


_STRIP, _MIN_STRIP = 1024, 256  # source rows of a strip: maximum and minimum
_PANEL_STEP = 512  # target rows of a panel: minimum and step
_READ = 64 * COLUMNS  # target rows read at a time


def panel_rows(targets: int, dim: int, k: int, config: SearchConfig, threads: int) -> int:
    """Return how many target rows a panel holds, so that their vectors and every thread's lists fit in memory."""
    strips = threads * (2 * _STRIP + _READ) * dim * 4  # as read and as packed
    row = dim * 4 + threads * (k * 8 + 4)
    rows = max(_PANEL_STEP, (config.bytes - strips) // row // _PANEL_STEP * _PANEL_STEP)
    return int(min(rows, -(-targets // _PANEL_STEP) * _PANEL_STEP))


def _read_panel(target: Vectors, first: int, last: int, threads: int) -> np.ndarray:
    """Read targets and pack them as columns."""
    panel = aligned(-(-(last - first) // COLUMNS) * COLUMNS * target.dim)

    def read(start: int, stop: int) -> None:
        end = -(-stop // COLUMNS) * COLUMNS
        pack(target.read(first + start, first + stop), COLUMNS, panel[start * target.dim : end * target.dim])

    parallel_for(read, last - first, _READ, threads)
    return panel


def _sweep_tile(
    left: Vectors, right: Vectors, first: tuple[int, int], found: Neighbours, search: Search, opened: Opened
) -> None:
    """Fill the lists of a tile, given its first source and first target."""
    width = panel_rows(len(right), right.dim, search.k, search.config, opened.threads)
    for begin in range(0, len(right), width):
        end = min(begin + width, len(right))
        panel = _read_panel(right, begin, end, opened.threads)
        part = Neighbours(found.forward, found.forward_ids, found.backward[begin:end], found.backward_ids[begin:end])
        _sweep_panel(left, panel, (first[0], first[1] + begin), part, search.within, opened)


def _sweep_panel(
    left: Vectors, panel: np.ndarray, first: tuple[int, int], found: Neighbours, within: bool, opened: Opened
) -> None:
    columns, lock = dict[int, Lists](), Lock()  # of each thread, which takes its strips in order

    def work(start: int, stop: int) -> None:
        """Search a strip of rows: all columns, into the strip's own lists and those of this thread."""
        if (own := columns.get(get_ident())) is None:
            limits = found.backward[:, -1].copy()  # only scores that beat the lists so far enter
            own = columns[get_ident()] = Lists(*empty_lists(*found.backward.shape), limits, first[1])
        lists = found.forward[start:stop], found.forward_ids[start:stop]
        rows = Lists(*lists, lists[0][:, -1].copy(), first[0] + start)
        sweep(pack(left.read(start, stop), ROWS), panel, rows, own, within)
        with lock:
            opened.advance((stop - start) * len(found.backward))

    height = len(left) // (8 * opened.threads) // ROWS * ROWS  # several strips per thread
    parallel_for(work, len(left), min(_STRIP, max(_MIN_STRIP, height)), opened.threads)
    for own in columns.values():
        merge(found.backward, found.backward_ids, _NO_ROWS, own.scores, own.ids, _NO_ROWS)


# On a GPU, through torch: for each block a product and two ``topk`` calls.


_SOURCES, _TARGETS = 8192, 65_536


def _score_on_device(
    left: Vectors, right: Vectors, first: tuple[int, int], found: Neighbours, search: Search, opened: Opened
) -> None:
    """Fill the lists of a tile in full float32 precision.

    DependencyError: torch is not installed. ConfigError: the device does not exist, or has too little free memory.
    """
    with needs("torch", "train", f"device={search.config.device}"):
        import torch
    try:
        device = torch.device(search.config.device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        problem = str(error).splitlines()[0]
        raise ConfigError(f"device={search.config.device}: {problem}; use cpu, or cuda where there is one") from None

    def take(block: Any, scores: np.ndarray, ids: np.ndarray, at: int) -> None:
        best = torch.topk(block, min(search.k, block.shape[1]), dim=1)
        names = (best.indices + at).masked_fill(best.values == -torch.inf, NONE).to(torch.int32).cpu().numpy()
        merge(scores, ids, _NO_ROWS, best.values.cpu().numpy(), names, _NO_ROWS)

    try:
        with torch.inference_mode(), _full_precision(torch.backends.cuda.matmul):
            for column, panel in right.blocks(_TARGETS):
                panel, columns = torch.from_numpy(panel).to(device), slice(column, column + len(panel))
                for row, strip in left.blocks(_SOURCES):
                    rows, at = slice(row, row + len(strip)), (first[0] + row, first[1] + column)
                    scores = torch.from_numpy(strip).to(device) @ panel.T
                    if search.within:
                        scores[torch.ones_like(scores, dtype=torch.bool).triu(at[0] - at[1])] = -torch.inf
                    take(scores, found.forward[rows], found.forward_ids[rows], at[1])
                    take(scores.T, found.backward[columns], found.backward_ids[columns], at[0])
                    opened.advance(scores.numel())
    except torch.OutOfMemoryError:
        hint = "the card has too little free memory; a search takes up to 5 GiB: free some, or use cpu"
        raise ConfigError(f"device={search.config.device}: {hint}") from None


@contextmanager
def _full_precision(products: Any) -> Iterator[None]:
    """Compute torch's ``products`` in full float32 precision within the block.

    Since torch 2.9 the setting has a second name, and cannot be read by the first after somebody set it by the second.
    """
    name, full = ("fp32_precision", "ieee") if hasattr(products, "fp32_precision") else ("allow_tf32", False)
    before = getattr(products, name)
    setattr(products, name, full)
    try:
        yield
    finally:
        setattr(products, name, before)
