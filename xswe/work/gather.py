"""Aggregation over the records of a text: in one stream, or by shards and then merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, Self

from xswe.progress import bar, every
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.run import run_shards
from xswe.work.stage import Job, Stage


class Gathered(Protocol):
    """An aggregate over records in order."""

    done: int  # number of records aggregated so far

    def read(self, records: Iterable[Any]) -> Iterator[int]:
        """Add the records after the first :attr:`done`; yield the number of new records after each block."""

    def merge(self, part: Self) -> None:
        """Add the aggregate of the following records."""

    def save(self, path: Path, identity: str) -> None:
        """Write the state atomically."""

    def restore(self, path: Path, identity: str) -> None:
        """Load the state from :meth:`save`, if it exists and has the same identity."""


class GatherJob(Job):
    """Aggregate the records of a shard."""

    def records(self, opened: Any, shard: int) -> Iterable[Any]:
        """Return the records of a shard."""
        raise NotImplementedError

    def empty(self, opened: Any) -> Gathered:
        """Return an empty aggregate."""
        raise NotImplementedError

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the aggregate of a shard."""
        found = self.empty(opened)
        for _ in found.read(self.records(opened, shard)):
            pass
        found.save(output, "")
        return {"lines": found.done}


def gather(
    stage: Stage,
    gathered: Gathered,
    execution: ExecutionConfig = LOCAL,
    threads: int | None = None,
    *,
    opened: Any,
    unit: str,
    **plan: Any,
) -> None:
    """Aggregate all shards of a stage, in order, into ``gathered``, which is empty at first.

    One process reads the records as one stream, saving the state in the stage's folder from time to time; several processes
    aggregate each shard, and the results are merged. XsweError: shards failed. Unfinished: with an array, other tasks are
    not done yet.
    """
    job = stage.job
    assert isinstance(job, GatherJob)
    if execution.alone:
        records = chain.from_iterable(job.records(opened, shard) for shard in range(stage.count))
        _read(stage, gathered, records, unit)
        return
    stage.begin(**plan)
    run_shards(stage, execution, threads, opened)
    for shard in range(stage.count):
        part = job.empty(opened)
        part.restore(stage.sound(shard), "")
        gathered.merge(part)


def _read(stage: Stage, gathered: Gathered, records: Iterable[Any], unit: str) -> None:
    """Aggregate records, resuming from the state of a killed run."""
    state, due = stage.folder / "state.safetensors", every()
    gathered.restore(state, stage.identity)
    with bar(stage.name, unit=unit, initial=gathered.done) as progress:
        for read in gathered.read(records):
            progress.update(read)
            if due():
                stage.folder.mkdir(parents=True, exist_ok=True)
                gathered.save(state, stage.identity)
    stage.inputs.check_unchanged()
