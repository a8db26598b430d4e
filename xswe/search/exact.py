"""Exact nearest neighbours, on the CPU or a graphics card: tiles of sources and targets, both directions at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock, get_ident
from typing import Any

import numpy as np

from xswe.errors import ConfigError, needs
from xswe.io.parallel import parallel_for
from xswe.io.products import COLUMNS, ROWS, aligned, pack
from xswe.search.kernels import Lists, merge, sweep
from xswe.search.lists import Neighbours, SearchConfig, empty_lists
from xswe.search.shard import Opened, Search, SearchJob, lists_of
from xswe.search.vectors import Vectors
from xswe.work.config import ExecutionConfig
from xswe.work.run import map_shards
from xswe.work.stage import Made

_EDGE = 1 << 17  # rows of a tile, about a minute of two processors; of many rows there are at most 64 x 64 tiles
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TileJob(SearchJob):
    """Search a tile of sources and targets; within one side, of those not after the sources."""

    edge: int = _EDGE

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
    """Yield the lists of each tile; ``known`` has those of earlier tiles.

    Memory beside the result and the lists of a tile is ``config.memory``: it decides the size of the panels. The result
    depends neither on it, nor on the number of threads, nor on interruptions.
    """
    edge = max(_EDGE, -(-max(search.lengths) // 64))
    job = TileJob(search, edge=edge)
    sizes = [[min(edge, length - row) for length, row in zip(search.lengths, first, strict=True)] for first in job.tiles()]
    pairs = sum(sources * targets for sources, targets in sizes)
    stage = search.stage("neighbours", len(sizes), job, edge)
    opened = Opened(sides, threads=search.config.workers, known=known)
    yield from map_shards(stage, execution, 1, opened, ("pair", pairs), state=vars(known))


# On the CPU. Targets are packed in panels of as many rows as the memory allows, and sources go past them in strips. Strips
# are shared out among threads; a thread owns the lists of its strip's rows, and keeps lists of its own for the panel's
# columns, which are merged at the end.


_STRIP, _LEAST_STRIP = 1024, 256  # source rows of a strip
_LEAST = 512  # target rows of a panel
_READ = 64 * COLUMNS  # target rows that are read at a time


def panel_rows(targets: int, dim: int, k: int, config: SearchConfig, threads: int) -> int:
    """Return how many target rows a panel holds: their vectors and every thread's lists of them fit in the memory."""
    strips = threads * (2 * _STRIP + _READ) * dim * 4  # read, and packed
    row = dim * 4 + threads * (k * 8 + 4)
    rows = max(_LEAST, (config.bytes - strips) // row // _LEAST * _LEAST)
    return int(min(rows, -(-targets // _LEAST) * _LEAST))


def _read_panel(target: Vectors, first: int, last: int, threads: int) -> np.ndarray:
    """Read targets, packed as the columns of tiles."""
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
    columns, lock = dict[int, Lists](), Lock()  # of each thread, which has its strips in their order

    def work(start: int, stop: int) -> None:
        if (own := columns.get(get_ident())) is None:
            limits = found.backward[:, -1].copy()  # only what beats the lists so far enters
            own = columns[get_ident()] = Lists(*empty_lists(*found.backward.shape), limits, first[1])
        lists = found.forward[start:stop], found.forward_ids[start:stop]
        rows = Lists(*lists, lists[0][:, -1].copy(), first[0] + start)
        sweep(pack(left.read(start, stop), ROWS), panel, rows, own, within)
        with lock:
            opened.advance((stop - start) * len(found.backward))

    height = len(left) // (8 * opened.threads) // ROWS * ROWS  # each thread has several
    parallel_for(work, len(left), min(_STRIP, max(_LEAST_STRIP, height)), opened.threads)
    for own in columns.values():
        merge(found.backward, found.backward_ids, _NOTHING, own.scores, own.ids, _NOTHING)


# On a graphics card, through torch: the same blocks, a product and two ``topk`` calls each.


_SOURCES, _TARGETS = 8192, 65_536


def _score_on_device(
    left: Vectors, right: Vectors, first: tuple[int, int], found: Neighbours, search: Search, opened: Opened
) -> None:
    """Fill the lists of a tile, in full float32 precision.

    DependencyError: torch is not installed. ConfigError: there is no such device.
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
        names = (best.indices + at).masked_fill(best.values == -torch.inf, -1).to(torch.int32).cpu().numpy()
        merge(scores, ids, _NOTHING, best.values.cpu().numpy(), names, _NOTHING)

    precise = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.inference_mode():
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
    finally:
        torch.backends.cuda.matmul.allow_tf32 = precise
