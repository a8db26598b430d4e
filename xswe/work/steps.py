"""Work on the blocks of a text in two steps, with a fold over all blocks, in order, between them.

In one process the three run together, and the text is read once. Several processes do the first step of all shards; one of
them folds the results; then they do the second step of all shards, each with its part of the fold's result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import XsweError
from xswe.io.inputs import NO_INPUTS, Inputs
from xswe.io.parallel import in_order
from xswe.progress import bar, every
from xswe.work import kept
from xswe.work.cluster import one_cluster
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.once import once
from xswe.work.run import map_shards, shards_ahead
from xswe.work.stage import Job, Made, Stage

Arrays = Mapping[str, np.ndarray]
Fold = Callable[[Arrays], np.ndarray]  # from the first step's results of some blocks to one value per record


class TwoSteps:
    """The two steps and the fold of some work: a frozen dataclass of paths and settings, like a :class:`Job`."""

    names = ("first", "second", "work")  # of the steps, and of the whole
    unit = "record"

    def open(self) -> Any:
        """Load what both steps need; called once per process."""
        raise NotImplementedError

    def share(self, opened: Any) -> None:
        """Write what other processes need to :meth:`open`, given what this one has opened."""

    def blocks(self, shard: int | None) -> Iterable[Any]:
        """Return the blocks of a shard, or of the whole text for None; each has a length."""
        raise NotImplementedError

    def again(self, shard: int, found: Arrays) -> Iterable[Any]:
        """Return the blocks of a shard a second time, given the results of its first step."""
        return self.blocks(shard)

    def first(self, opened: Any, block: Any) -> Arrays:
        """Do the first step: return arrays with one or more values per record."""
        raise NotImplementedError

    def fold(self, opened: Any) -> Fold:
        """Return the fold: a function to be called with the first step's results of all blocks or shards, in order."""
        raise NotImplementedError

    def second(self, opened: Any, block: Any, folded: np.ndarray) -> Arrays:
        """Do the second step, given the fold's result for the block's records."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Step(Job):
    steps: TwoSteps

    def open(self) -> Any:
        return self.steps.open()

    def share(self, opened: Any) -> None:
        self.steps.share(opened)


@dataclass(frozen=True)
class _First(_Step):
    def compute(self, opened: Any, shard: int) -> Made:
        """Do the first step of a shard."""
        lengths, found = [], []
        for block in self.steps.blocks(shard):
            lengths.append(len(block))
            found.append(self.steps.first(opened, block))
        return _joined(found), {"lines": sum(lengths)}


@dataclass(frozen=True)
class _Second(_Step):
    found: Stage  # the first step
    folded: Path  # folder with the fold's result for all records, and the first record of each shard

    def compute(self, opened: Any, shard: int) -> Made:
        """Do the second step of a shard."""
        folded = np.load(self.folded / "folded.npy", mmap_mode="r")
        row, parts = int(np.load(self.folded / "starts.npy")[shard]), []
        for block in self.steps.again(shard, self.found.load(shard)):
            parts.append(self.steps.second(opened, block, np.array(folded[row : row + len(block)])))
            row += len(block)
        made = _joined(parts)
        return made, {"lines": len(next(iter(made.values()))) if made else 0}


def _joined(parts: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}


def two_steps(
    steps: TwoSteps,
    folder: Path | None,
    identity: str = "",
    inputs: Inputs = NO_INPUTS,
    shards: int = 1,
    *,
    execution: ExecutionConfig = LOCAL,
    threads: int,
    opened: Any,
) -> Iterator[Arrays]:
    """Yield the results of the second step for all records, in order, block by block.

    A killed run resumes from ``folder``; None saves nothing. ``shards`` is their number, for several processes; ``opened``
    what the steps open. InputError: the text changed meanwhile. XsweError: shards failed. Unfinished: with an array, other
    tasks are not done yet.
    """
    if execution.alone or folder is None:
        yield from _in_one_process(steps, _Parts(folder, identity), threads, opened)
        inputs.check_unchanged()
        return

    def stage(name: str, job: Job) -> Stage:
        return Stage(folder / f"{name}-{identity}", name, shards, ".safetensors", job, identity, inputs)

    folded, first = folder / f"folded-{identity}", stage(steps.names[0], _First(steps))
    second = stage(steps.names[1], _Second(steps, first, folded))
    first.begin()
    with one_cluster():
        with shards_ahead(first, execution, threads, opened) as wait:
            once(folded, identity, partial(_fold, steps.fold(opened), first, wait))
        yield from map_shards(second, execution, threads, opened)


def _fold(fold: Fold, first: Stage, wait: Callable[[int], None], place: Path) -> None:
    """Write the fold's result for all records."""
    parts, starts = [np.zeros(0, np.uint8)], [0]
    for shard in range(first.count):
        wait(shard)
        if found := first.load(shard):
            parts.append(fold(found))
        starts.append(starts[-1] + (len(parts[-1]) if found else 0))
    np.save(place / "folded.npy", np.concatenate(parts))
    np.save(place / "starts.npy", np.array(starts))


def _in_one_process(steps: TwoSteps, parts: _Parts, threads: int, opened: Any) -> Iterator[Arrays]:
    """Yield the second step's results block by block, computed on all threads while this one does the first and folds."""
    fold = steps.fold(opened)

    def folded() -> Iterator[tuple[Any, np.ndarray, bool]]:
        number = 0
        for block in steps.blocks(None):
            number += len(block)
            yield block, fold(steps.first(opened, block)), number > parts.done

    def made(item: tuple[Any, np.ndarray, bool]) -> tuple[int, Arrays]:
        block, of_block, new = item
        # Blocks that an earlier run saved are only folded, for the sake of later blocks.
        return len(block), steps.second(opened, block, of_block) if new else {}

    yield from parts.read()
    with bar(steps.names[2], unit=steps.unit) as progress:
        for size, arrays in in_order(made, folded(), threads):
            progress.update(size)
            if arrays:
                parts.add(arrays)
                yield arrays
    parts.write()


class _Parts:
    """Results of the second step so far, saved in a folder, part by part, once the work has taken a few seconds."""

    def __init__(self, folder: Path | None, identity: str) -> None:
        self._stage = folder and Stage(folder / f"parts-{identity}", "parts", 1, ".safetensors", Job(), identity)
        self._due, self._new, self._number, self.done = every(kept.BRIEF), list[Arrays](), 0, 0

    def read(self) -> Iterator[Arrays]:
        """Yield the parts that an earlier run saved, up to the first damaged or missing one."""
        while self._stage and (counts := self._stage.counts(self._number)) and counts["first"] == self.done:
            try:
                arrays = self._stage.load(self._number)
            except XsweError:
                return
            self._noted(self._stage, counts["lines"])
            yield arrays

    def add(self, made: Arrays) -> None:
        """Add the results of a block; save from time to time."""
        if self._stage:
            self._new.append(made)
            if self._due():
                self._write(self._stage)

    def write(self) -> None:
        """Save the rest, unless the work was too brief for anything to be saved."""
        if self._stage and self._new and self._number:
            self._write(self._stage)

    def _write(self, stage: Stage) -> None:
        arrays = _joined(self._new)
        lines = len(next(iter(arrays.values())))
        stage.folder.mkdir(parents=True, exist_ok=True)
        stage.keep(self._number, (arrays, {"first": self.done, "lines": lines}))
        self._noted(stage, lines)
        self._new.clear()

    def _noted(self, stage: Stage, lines: int) -> None:
        self.done += lines
        kept.keep(stage.side_car(self._number), f"after {self.done:,} records")
        self._number += 1
