"""Executors of a stage's shards: this process, the tasks of a batch queue, or a cluster, with the same bytes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, Unfinished, XsweError
from xswe.io.files import remove_leftovers
from xswe.io.parallel import available_threads, in_order
from xswe.progress import bar, every
from xswe.work import kept
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.cluster import cluster, on_cluster
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.once import is_made, once
from xswe.work.plan import ranges
from xswe.work.records import read_if_there
from xswe.work.stage import NOWHERE, RETRIES, Advancing, Stage, attempt, patiently

logger = logging.getLogger(__name__)
OPENED = "inputs"  # folder beside the shards for what other workers open


def map_shards(
    stage: Stage,
    execution: ExecutionConfig = LOCAL,
    threads: int | None = None,
    opened: Any = None,
    progress: tuple[str, int] | None = None,
    costs: Sequence[float] | None = None,
    state: Mapping[str, np.ndarray] | None = None,
    **plan: Any,
) -> Iterator[Mapping[str, np.ndarray]]:
    """Return the arrays of all shards of a stage, in order, with any executor.

    In this process shards are yielded as they are made; after a few seconds of work they are also saved in the stage's
    folder, from which a later run resumes (shorter work leaves no folder). Other executors save all shards there. With
    ``array`` all shards are done when this returns, otherwise they are done on demand.

    Args:
        stage: the work; the name of its folder must distinguish it from other work.
        execution: who does the shards.
        threads: of this process, as in :func:`run_shards`; shards are made in order.
        opened: what the job opens, if this process has it already.
        progress: in this process, the unit of the progress bar (``pair``: each shard counts its ``pairs``) and its total;
            what the job opens may move the bar within a shard (:class:`xswe.work.stage.Advancing`).
        costs: as in :func:`run_shards`.
        state: in this process, arrays to which the caller adds each shard, in place. From time to time they are saved
            instead of these shards; a resumed run loads them.
        **plan: further entries of the stage's manifest.

    Raises:
        XsweError: a shard failed; saved shards are not lost.
        InputError: an input changed meanwhile.
        Unfinished: with an array, other slices are not done yet.
    """
    if execution.alone:
        return _map_here(stage, threads, opened, progress or ("shard", stage.count), _State(stage, state), plan)
    stage.begin(**plan)
    if execution.has_peers:
        run_shards(stage, execution, threads, opened, costs)
        return map(stage.load, range(stage.count))
    return _map_ahead(stage, execution, opened, costs)


def _map_ahead(
    stage: Stage, execution: ExecutionConfig, opened: Any, costs: Sequence[float] | None
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the arrays of all shards in order, while later ones are still being made."""
    with shards_ahead(stage, execution, opened=opened, costs=costs) as wait:
        for shard in range(stage.count):
            wait(shard)
            yield stage.load(shard)


def _map_here(
    stage: Stage, threads: int | None, opened: Any, progress: tuple[str, int], state: _State, plan: Mapping[str, Any]
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the arrays of all shards, made on the threads of this process or saved by an earlier one."""
    unit, total = progress
    left, begun, done = (stage.folder / "manifest.json").is_file(), time.monotonic(), count(1)
    one_at_a_time = threading.Lock()
    if opened is None:
        opened = stage.job.open()  # before any thread starts: each would load it
    if left:
        stage.begin(**plan)
        remove_leftovers(stage.folder)
        logger.info("going on from the shards in %s", stage.folder)

    def noted() -> None:
        kept.keep(stage.folder / "manifest.json", f"after {next(done):,} of {stage.count:,} shards of {stage.name}")

    def steps(counts: Mapping[str, Any]) -> int:
        return 1 if unit == "shard" else int(counts[f"{unit}s"])

    def made(shard: int) -> tuple[Mapping[str, np.ndarray], int, bool]:
        """Load a shard that is there, or compute it, and write it if the stage takes long."""
        if left and (counts := stage.counts(shard)) is not None:
            with suppress(XsweError):
                arrays = stage.load(shard)
                noted()
                return arrays, steps(counts), False
        found = patiently(f"{stage.name}, shard {shard}", lambda: stage.job.compute(opened, shard))
        if time.monotonic() - begun >= kept.BRIEF and not stage.folder.is_relative_to(NOWHERE):
            with one_at_a_time:
                stage.begin(**plan)
            stage.keep(shard, found)
            noted()
        return found[0], steps(found[1]), True

    with bar(stage.name, total, unit) as shown:
        if moving := isinstance(opened, Advancing):
            opened.advance = shown.update
        if state.size:
            shown.update(state.size)
        todo = range(state.shards, stage.count)
        for arrays, size, is_new in in_order(made, todo, 1 if stage.job.heavy else available_threads(threads)):
            shown.update(0 if moving and is_new else size)
            yield arrays
            state.added(size)
    stage.inputs.check_unchanged()


class _State:
    """The arrays to which the caller of :func:`map_shards` adds the shards, saved beside them."""

    def __init__(self, stage: Stage, arrays: Mapping[str, np.ndarray] | None) -> None:
        self._stage, self._arrays, self._due = stage, arrays, every()
        self._path = stage.folder / "state.safetensors"
        self.shards = self.size = 0
        if arrays and (found := load_checkpoint(self._path, stage.identity)):
            for name, array in found[0].items():
                arrays[name][...] = array
            self.shards, self.size = found[1]["shards"], found[1]["size"]
        self._forgotten = self.shards

    def added(self, size: int) -> None:
        """Record that the next shard was added, with ``size`` units of progress; save the state from time to time."""
        self.shards, self.size = self.shards + 1, self.size + size
        if self._arrays and (self._stage.folder / "manifest.json").is_file() and self._due():
            save_checkpoint(self._path, self._stage.identity, self._arrays, {"shards": self.shards, "size": self.size})
            for shard in range(self._forgotten, self.shards):
                self._stage.forget(shard)
            self._forgotten = self.shards


def arrays_once(
    folder: Path, identity: str, make: Callable[[], Mapping[str, np.ndarray]], execution: ExecutionConfig
) -> Mapping[str, np.ndarray]:
    """Return arrays that the first of several processes makes and saves in a folder.

    If this process is the only one, it saves them, for a later run, only if they took it a few seconds.
    """
    begun, found = time.monotonic(), dict[str, np.ndarray]()

    def write(place: Path) -> None:
        for name, array in (found or make()).items():
            np.save(place / f"{name}.npy", array)

    if execution.alone and not is_made(folder, identity):
        found.update(make())
        if time.monotonic() - begun < kept.BRIEF or folder.is_relative_to(NOWHERE):
            return found
    once(folder, identity, write)
    return found or read_arrays(folder)


def read_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Memory-map the arrays that :func:`arrays_once` saved in a folder."""
    return {path.stem: np.load(path, mmap_mode="r") for path in sorted(folder.glob("*.npy"))}


def run_shards(
    stage: Stage,
    execution: ExecutionConfig = LOCAL,
    threads: int | None = None,
    opened: Any = None,
    costs: Sequence[float] | None = None,
    stopped: threading.Event | None = None,
) -> None:
    """Do all unfinished shards of a stage, whose manifest must exist.

    ``threads`` is the number of shards at a time in this process; ``opened`` what the job opens, if it is open already.
    Shards with the largest ``costs``, in any unit, are begun first, so that workers end at about the same time; none is
    begun once ``stopped`` is set. XsweError: shards failed; finished ones are kept, the same command retries the others.
    Unfinished: with ``array``, other slices are not done yet.
    """
    mine: Sequence[int] = range(stage.count)
    if execution.has_peers:
        index, slices = execution.slice
        mine = range(index, stage.count, slices)
        _refuse_other_work(stage)
    if costs is not None:
        mine = sorted(mine, key=costs.__getitem__, reverse=True)
    remove_leftovers(stage.folder)
    for turn in range(RETRIES + 1):
        new = _go_through(stage, mine, execution, threads, opened, stopped)
        stage.inputs.check_unchanged()
        if stopped is not None and stopped.is_set():
            return
        # Check the finished shards again: a disk failure, or somebody, may have removed one since.
        mine = [shard for shard in mine if stage.counts(shard) is None] if new else []
        if not mine:
            break
        if turn == RETRIES:
            raise XsweError(f"{stage.path(mine[0])}: gone or damaged, again and again, after it was written")
        logger.warning("%s: %d shards are gone or damaged since they were done; once more", stage.name, len(mine))
    if execution.has_peers:
        _await_others(stage, execution)


def _go_through(
    stage: Stage,
    shards: Sequence[int],
    execution: ExecutionConfig,
    threads: int | None,
    opened: Any,
    stopped: threading.Event | None,
) -> int:
    """Do the unfinished ones of some shards; return how many there were. XsweError: some failed."""
    failed, sound, new, manifest = dict[int, str](), count(1), 0, stage.folder / "manifest.json"
    with bar(stage.name, len(shards), "shard") as progress:

        def counted() -> None:
            progress.update(1)
            kept.keep(manifest, f"after {next(sound):,} of {len(shards):,} shards of {stage.name}")

        def todo() -> Iterator[int]:
            """Yield the unfinished shards; count the others."""
            for shard in shards:
                if stopped is not None and stopped.is_set():
                    return
                if stage.counts(shard) is None:
                    yield shard
                else:
                    counted()

        work = (
            on_cluster(stage, todo(), execution, opened) if execution.has_workers else _here(stage, todo(), threads, opened)
        )
        with closing(work) as done:
            for shard, found in done:
                new += 1
                if "error" not in found:
                    counted()
                    continue
                failed[shard] = str(found["error"])
                if found["fatal"]:
                    break
    if failed:
        stage.inputs.check_unchanged()  # a change would explain the failure
        more = f" ({len(failed)} of {stage.count:,} shards failed)" if stage.count > 1 else ""
        raise XsweError(f"{failed[min(failed)]}{more}; what is done is kept, and the same command goes on from here")
    return new


def _refuse_other_work(stage: Stage) -> None:
    """Raise a ConfigError if another task of the array does different work: each would wait for the other's shards."""
    begin = stage.folder.name.removesuffix(stage.identity)
    if not begin or begin == stage.folder.name:
        return
    for manifest in stage.folder.parent.glob(f"{begin}*/manifest.json"):
        if (other := read_if_there(manifest)).get("identity", stage.identity) != stage.identity:
            version = f" (of xswe {other['version']})" if other.get("version") != stage.version else ""
            raise ConfigError(
                f"{manifest.parent}: a task with other settings, another input or version{version} works on the same "
                f"output; give all the same, or remove {stage.folder.parent} if none is at work"
            )


@contextmanager
def shards_ahead(
    stage: Stage,
    execution: ExecutionConfig,
    threads: int | None = None,
    opened: Any = None,
    costs: Sequence[float] | None = None,
) -> Iterator[Callable[[int], None]]:
    """Let a cluster do the shards of a stage while the block consumes the finished ones in order.

    With an array, and in this process, all shards are done first; if all are done already, no cluster is joined. The
    yielded function waits until a shard is done; it raises the errors of :func:`run_shards`.
    """
    if not execution.has_workers or all(stage.counts(shard) is not None for shard in range(stage.count)):
        run_shards(stage, execution, threads, opened, costs)
        yield lambda _: None
        return
    stopped, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            run_shards(stage, execution, threads, opened, costs, stopped)
        except BaseException as error:  # raised by `wait`
            errors.append(error)

    def wait(shard: int) -> None:
        """Wait until a shard is there. XsweError: the worker has ended without it."""
        while True:
            over = not worker.is_alive()
            if stage.counts(shard) is not None:
                return
            if over:
                raise errors[0] if errors else XsweError(f"{stage.path(shard)}: vanished; the same command makes it again")
            worker.join(0.02)

    with cluster(execution):  # joined by the thread of the block, which outlives the worker thread
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        try:
            yield wait
        finally:
            stopped.set()
            worker.join()


def _here(
    stage: Stage, todo: Iterator[int], threads: int | None, opened: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Do shards in this process."""
    if (first := next(todo, None)) is None:
        return
    if opened is None:
        opened = stage.job.open()  # before any thread starts: each would load it
    workers = 1 if stage.job.heavy else available_threads(threads)
    yield from in_order(lambda shard: (shard, attempt(stage, shard, lambda: opened)), chain([first], todo), workers)


def _await_others(stage: Stage, execution: ExecutionConfig) -> None:
    """Wait until the slices of other tasks are done; raise Unfinished after ``execution.wait`` seconds."""
    count, deadline, pause = execution.slice[1], time.monotonic() + execution.wait, 0.1
    missing = list(range(stage.count))
    while missing := [shard for shard in missing if stage.counts(shard) is None]:
        if time.monotonic() >= deadline:
            raise Unfinished(
                f"{stage.name}: this slice is done, {len(missing):,} of all {stage.count:,} shards are not, of the indices "
                f"{ranges({shard % count for shard in missing})}; when they are, the same command with any index goes on "
                "(execution.wait=SECONDS waits for them)"
            )
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(2 * pause, 10.0)
