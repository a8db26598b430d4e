"""Exact nearest neighbours, on the CPU or a graphics card: units handed out to threads, the state saved now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from xswe.errors import ConfigError, needs
from xswe.io.files import fingerprint, whole_folder
from xswe.io.parallel import run
from xswe.io.products import COLUMNS, ROWS, aligned, pack
from xswe.progress import bar
from xswe.search.kernels import Lists, merge, sweep
from xswe.search.types import Neighbours, SearchConfig, Vectors, empty_lists
from xswe.work.kept import keep
from xswe.work.records import sound_record, write_record

logger = logging.getLogger(__name__)
_SECONDS_BETWEEN_SAVES = 60.0


class Checkpoint:
    """The state of an unfinished search in a folder; None for none at all.

    A state of other settings (all beside the vectors that decides the result) or of other vectors is not used: to know them
    takes one pass over their bytes. Nor is one whose files are damaged.
    """

    def __init__(self, folder: Path | None, settings: list[object], sides: tuple[Vectors, Vectors], units: int) -> None:
        self._units = units
        self.folder, self.seconds = folder, _SECONDS_BETWEEN_SAVES if folder else float("inf")
        self._identity = "" if folder is None else fingerprint(settings, [side.digest() for side in sides])

    def load(self) -> tuple[int, Neighbours] | None:
        """Return how many units were done, and the lists then."""
        told = None if self.folder is None else sound_record(self.folder / "state.json", self._identity)
        if self.folder is None or told is None:
            return None
        logger.info("going on after %d units of work", told["done"])
        self._keep(self.folder, told["done"])
        return int(told["done"]), Neighbours.open(self.folder)

    def save(self, done: int, lists: Neighbours) -> None:
        """Write the state, whole or not at all; the time it takes counts against the next save."""
        if self.folder is None:
            return
        started = time.monotonic()
        with whole_folder(self.folder) as temporary:
            lists.save(temporary)
            write_record(temporary / "state.json", self._identity, sorted(temporary.iterdir()), done=done)
        self._keep(self.folder, done)
        self.seconds = max(self.seconds, 20 * (time.monotonic() - started))

    def _keep(self, folder: Path, done: int) -> None:
        keep(folder / "state.json", f"after {done / self._units:.0%} of the search for neighbours")


def work_off(
    units: range,
    work: Callable[[int, int], int],
    pause: Callable[[int], None],
    threads: int,
    description: str,
    sizes: tuple[int, int],
    seconds: float = float("inf"),
) -> None:
    """Call ``work(thread, unit)`` for all units, each once, on ``threads`` threads.

    Args:
        units: the units; those before its first are done.
        work: does a unit and returns its size for the progress bar; runs at most once at a time for each thread number.
        pause: called with the number of units done so far, when no unit is at work: every ``seconds`` and at the end.
        threads: how many.
        description: for the progress bar.
        sizes: sum of the sizes of the units that are done, and of all.
        seconds: between pauses.
    """
    lock = threading.Lock()
    state = {"next": units.start}

    with bar(description, total=sizes[1], unit="pair", initial=sizes[0]) as progress:

        def worker(number: int, deadline: float) -> None:
            """Take one unit of work after the other until the deadline."""
            while time.monotonic() < deadline:
                with lock:
                    unit = state["next"]
                    if unit >= units.stop:
                        return
                    state["next"] += 1
                try:
                    size = work(number, unit)
                except BaseException:
                    state["next"] = units.stop  # an error or an interrupt of one thread ends the work of all
                    raise
                with lock:
                    progress.update(size)

        while state["next"] < units.stop:
            deadline = time.monotonic() + seconds
            run([partial(worker, n, deadline) for n in range(threads)], threads)
            pause(state["next"])


# Exact neighbours: one pass over the score matrix serves both directions.
#
# Targets are held in panels of as many rows as the memory allows, and sources go past them in strips. Strips are shared out
# among threads; a thread owns the lists of its strip's rows, and keeps lists of its own for the panel's columns, which are
# merged at the end.


_STRIP = 1024  # source rows of a unit of work
_LEAST = 512  # target rows of a panel
_READ = 64 * COLUMNS  # target rows that are read at a time
_NOTHING = np.zeros(0, np.int64)


def columns_of(merged: np.ndarray, first: int) -> Lists:
    """Return one thread's lists of a panel's columns: only what beats the merged lists enters."""
    return Lists(*empty_lists(*merged.shape), merged[:, -1].copy(), first)


def panel_rows(targets: int, dim: int, k: int, config: SearchConfig) -> int:
    """Return how many target rows a panel holds: their vectors and every thread's lists of them fit in the memory."""
    strips = (2 * config.workers * _STRIP + _READ) * dim * 4  # read, and packed
    row = dim * 4 + config.workers * (k * 8 + 4)
    rows = max(_LEAST, (config.bytes - strips) // row // _LEAST * _LEAST)
    return int(min(rows, -(-targets // _LEAST) * _LEAST))


def read_panel(target: Vectors, first: int, last: int) -> np.ndarray:
    """Read targets, packed as the columns of tiles."""
    panel = aligned(-(-(last - first) // COLUMNS) * COLUMNS * target.dim)
    for start in range(first, last, _READ):
        stop = min(start + _READ, last)
        rows = -(-(stop - start) // COLUMNS) * COLUMNS
        place = (start - first) * target.dim
        pack(target.read(start, stop), COLUMNS, panel[place : place + rows * target.dim])
    return panel


def _merge_and_save(panel: _Panel, saved: Checkpoint, lists: Neighbours, finished: int) -> None:
    panel.merge()
    saved.save(finished, lists)


class _Panel:
    """Targets that strips of sources go past, and what was found of both."""

    def __init__(
        self, sides: tuple[Vectors, Vectors], first: int, last: int, lists: Neighbours, threads: int, within: bool
    ) -> None:
        self._source, self._lists, self._within = sides[0], lists, within
        self._strips = -(-len(sides[0]) // _STRIP)
        self._targets = read_panel(sides[1], first, last)
        self._scores, self._ids = lists.backward[first:last], lists.backward_ids[first:last]
        self._columns = [columns_of(self._scores, first) for _ in range(threads)]  # each thread's own

    def search(self, thread: int, unit: int) -> int:
        """Search a strip, the unit of that number; returns how many pairs were scored."""
        row = (unit % self._strips) * _STRIP
        strip = self._source.read(row, row + _STRIP)
        here, columns = slice(row, row + len(strip)), self._columns[thread]
        found, names = self._lists.forward[here], self._lists.forward_ids[here]
        rows = Lists(found, names, found[:, -1].copy(), row)
        sweep(pack(strip, ROWS), self._targets, rows, columns, self._within)
        return len(strip) * len(columns.limits)

    def merge(self) -> None:
        """Take what each thread has found of the targets together."""
        for own in self._columns:
            merge(self._scores, self._ids, _NOTHING, own.scores, own.ids, _NOTHING)
            own.scores[:], own.ids[:] = -np.inf, -1
        for own in self._columns:
            own.limits[:] = self._scores[:, -1]


def search_exact(
    source: Vectors,
    target: Vectors,
    k: int,
    config: SearchConfig,
    checkpoint: Path | None = None,
    within: bool = False,
) -> Neighbours:
    """Find the neighbours with the largest inner products, all of them; ``within`` one side, see ``neighbours_within``.

    Memory beside the result (8 k bytes a line) is ``config.memory``: it decides the size of the panels, and the sources
    are read once a panel. The result does not depend on the number of threads, nor on interruptions.
    """
    threads, width = config.workers, panel_rows(len(target), source.dim, k, config)
    strips = -(-len(source) // _STRIP)
    panels = -(-len(target) // width)
    saved = Checkpoint(checkpoint, ["exact", k, width, *["within"] * within], (source, target), panels * strips)
    done, lists = saved.load() or (0, Neighbours.empty(len(source), len(target), k))
    for number in range(done // strips, panels):
        first, last = number * width, min((number + 1) * width, len(target))
        panel = _Panel((source, target), first, last, lists, threads, within)
        begun = max(done, number * strips)
        work_off(
            range(begun, (number + 1) * strips),
            panel.search,
            partial(_merge_and_save, panel, saved, lists),
            threads,
            f"neighbours {number + 1}/{panels}",
            ((begun - number * strips) * _STRIP * (last - first), len(source) * (last - first)),
            saved.seconds,
        )
    return lists


# Exact neighbours on a graphics card, through torch: the same blocks, a product and two ``topk`` calls each.


_SOURCES, _TARGETS = 8192, 65_536


def search_on_device(source: Vectors, target: Vectors, k: int, config: SearchConfig, within: bool = False) -> Neighbours:
    """Find all neighbours with the largest inner products, in full float32 precision; ``within`` as in the exact search.

    Raises:
        DependencyError: torch is not installed.
        ConfigError: there is no such device.
    """
    with needs("torch", "train", f"device={config.device}"):
        import torch
    try:
        device = torch.device(config.device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        problem = str(error).splitlines()[0]
        raise ConfigError(f"device={config.device}: {problem}; use cpu, or cuda where there is one") from None
    lists = Neighbours.empty(len(source), len(target), k)
    precise = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.inference_mode(), bar("neighbours", len(source) * len(target), "pair") as progress:
            for column in range(0, len(target), _TARGETS):
                panel = torch.from_numpy(target.read(column, column + _TARGETS)).to(device)
                columns = slice(column, column + len(panel))
                for row in range(0, len(source), _SOURCES):
                    strip = torch.from_numpy(source.read(row, row + _SOURCES)).to(device)
                    rows = slice(row, row + len(strip))
                    scores = strip @ panel.T
                    if within:
                        scores[torch.ones_like(scores, dtype=torch.bool).triu(row - column)] = -torch.inf
                    for block, into, ids, at in (
                        (scores, lists.forward[rows], lists.forward_ids[rows], column),
                        (scores.T, lists.backward[columns], lists.backward_ids[columns], row),
                    ):
                        best = torch.topk(block, min(k, block.shape[1]), dim=1)
                        names = (best.indices + at).masked_fill(best.values == -torch.inf, -1).to(torch.int32).cpu().numpy()
                        merge(into, ids, _NOTHING, best.values.cpu().numpy(), names, _NOTHING)
                    progress.update(len(strip) * len(panel))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = precise
    return lists
