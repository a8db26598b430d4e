"""Who does the shards of a stage: this process, one of the tasks of a batch queue, or a Ray cluster; the same bytes all."""

from __future__ import annotations

import errno
import logging
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from xswe.errors import ConfigError, InputError, Unfinished, XsweError, brief, needs, no_room
from xswe.io.files import held, read_json, remove_leftovers, whole_folder, write_json
from xswe.io.parallel import available_threads, in_order
from xswe.io.resume import keep
from xswe.io.settings import LOCAL, ON_RAY, ExecutionConfig
from xswe.io.shards import Stage, sound_record, write_record
from xswe.progress import bar

logger = logging.getLogger(__name__)
_RETRIES = 3
_PAUSE = 0.5  # seconds before a shard is tried again; each further time twice as long
_DEATHS = 10  # of workers that a shard may cost: nodes come and go, but what kills its worker every time must end
_HOPELESS = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENAMETOOLONG}
_GROWS = 5.0  # seconds between two looks at how large a cluster is
_OBJECTS = 200 << 20  # bytes of Ray's object store on one machine: nothing large goes through it


def attempt(stage: Stage, shard: int, opened: Callable[[], Any]) -> dict[str, Any]:
    """Do a shard with what the job has opened; try again where the system or a storage failed in passing.

    Returns:
        Its counts; or, for a failure, ``error`` (a sentence) and ``fatal`` (whether no other shard will fare better). A
        failure is noted in the stage's folder as well.
    """
    for turn in range(_RETRIES + 1):
        try:
            return stage.do(shard, opened())
        except (XsweError, OSError, MemoryError) as error:
            said = brief(error) or type(error).__name__
            if isinstance(error, OSError):
                if not (full := no_room(error)) and error.errno not in _HOPELESS and turn < _RETRIES:
                    logger.warning("%s, shard %d: %s; trying again", stage.name, shard, said)
                    time.sleep(_PAUSE * 2**turn)
                    continue
                why = error.strerror or (os.strerror(errno.ENOSPC) if full else said)
                said = f"{error.filename or stage.folder}: {why}"
            found = {"error": said, "fatal": not isinstance(error, InputError), "host": platform.node()}
            try:
                write_json(stage.failure(shard), found)
            except OSError:  # no space for this either
                logger.warning("%s, shard %d: %s", stage.name, shard, said)
            return found
    raise AssertionError


def run_shards(
    stage: Stage,
    execution: ExecutionConfig = LOCAL,
    threads: int | None = None,
    opened: Any = None,
    costs: Sequence[float] | None = None,
    stopped: threading.Event | None = None,
) -> None:
    """Do all shards of a stage that are not done yet.

    Args:
        stage: what is to be done; its manifest must be there, see :meth:`xswe.io.shards.Stage.begin`.
        execution: who does it.
        threads: with ``local`` and ``array``: how many shards at a time; None for all processors.
        opened: what the job opens, where this process has it already; workers of a cluster open their own.
        costs: of each shard, in any unit: the dearest are begun first, so that workers end at about the same time; None
            where all cost the same.
        stopped: no further shard is begun once it is set.

    Raises:
        XsweError: shards failed; what was done is kept, and the same command tries the others again.
        Unfinished: with ``array``: other slices are not done yet.
    """
    mine: Sequence[int] = range(stage.count)
    if execution.kind == "array":
        index, slices = execution.slice
        mine = range(index, stage.count, slices)
        _refuse_other_work(stage)
    if costs is not None:
        mine = sorted(mine, key=costs.__getitem__, reverse=True)
    remove_leftovers(stage.folder)
    for turn in range(_RETRIES + 1):
        _go_through(stage, mine, execution, threads, opened, stopped)
        stage.inputs.check_unchanged()
        if stopped is not None and stopped.is_set():
            return
        # Once more, for what became of those that were done: a disk, or somebody, may have taken one away since.
        mine = [shard for shard in mine if stage.counts(shard) is None]
        if not mine:
            break
        if turn == _RETRIES:
            raise XsweError(f"{stage.path(mine[0])}: gone or damaged, again and again, after it was written")
        logger.warning("%s: %d shards are gone or damaged since they were done; once more", stage.name, len(mine))
    if execution.kind == "array":
        _await_others(stage, execution)


def _go_through(
    stage: Stage,
    shards: Sequence[int],
    execution: ExecutionConfig,
    threads: int | None,
    opened: Any,
    stopped: threading.Event | None,
) -> None:
    """Do those of some shards that are not done.

    Raises:
        XsweError: some failed.
    """
    failed, sound = dict[int, str](), count(1)
    with bar(stage.name, len(shards), "shard") as progress:

        def counted() -> None:
            progress.update(1)
            keep(stage.folder / "manifest.json", f"after {next(sound):,} of {len(shards):,} shards of {stage.name}")

        def todo() -> Iterator[int]:
            """Yield what is to be done; the rest is counted."""
            for shard in shards:
                if stopped is not None and stopped.is_set():
                    return
                if stage.counts(shard) is None:
                    yield shard
                else:
                    counted()

        on_ray = ON_RAY[execution.kind]
        work = _on_ray(stage, todo(), execution) if on_ray else _here(stage, todo(), threads, opened)
        with closing(work) as done:
            for shard, found in done:
                if "error" not in found:
                    counted()
                    continue
                failed[shard] = str(found["error"])
                if found["fatal"]:
                    break
    if failed:
        stage.inputs.check_unchanged()  # which would explain it
        more = f" ({len(failed)} of {stage.count:,} shards failed)" if stage.count > 1 else ""
        raise XsweError(f"{failed[min(failed)]}{more}; what is done is kept, and the same command goes on from here")


def _refuse_other_work(stage: Stage) -> None:
    """Refuse to take part where tasks of the same array do other work: each would wait for the other's shards.

    Raises:
        ConfigError: the folder beside holds shards of the same step, of other settings, another input or version.
    """
    begin = stage.folder.name.removesuffix(stage.identity)
    if not begin or begin == stage.folder.name:
        return
    for manifest in stage.folder.parent.glob(f"{begin}*/manifest.json"):
        if (other := _read_manifest(manifest)).get("identity", stage.identity) != stage.identity:
            version = f" (of xswe {other['version']})" if other.get("version") != stage.version else ""
            raise ConfigError(
                f"{manifest.parent}: a task with other settings, another input or version{version} works on the same "
                f"output; give all the same, or remove {stage.folder.parent} if none is at work"
            )


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest that another process may be removing."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError):
        return {}


@contextmanager
def shards_ahead(
    stage: Stage, execution: ExecutionConfig, threads: int | None = None, opened: Any = None
) -> Iterator[Callable[[int], None]]:
    """Let a cluster do the shards of a stage while the block goes on with those that are done, in their order.

    Of an array, and in this process, all are done first; where all are, no cluster is asked.

    Yields:
        What waits until a shard is done; it raises what :func:`run_shards` does.
    """
    if execution.kind != "ray" or all(stage.counts(shard) is not None for shard in range(stage.count)):
        run_shards(stage, execution, threads, opened)
        yield lambda _: None
        return
    stopped, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            run_shards(stage, execution, threads, opened, stopped=stopped)
        except BaseException as error:  # raised where the block waits
            errors.append(error)

    def wait(shard: int) -> None:
        while True:
            over = not worker.is_alive()
            if stage.counts(shard) is not None:
                return
            if over:
                raise errors[0] if errors else XsweError(f"{stage.path(shard)}: vanished; the same command makes it again")
            worker.join(0.02)

    with cluster(execution):  # joined by the thread of the block, which outlives the other
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
        opened = stage.job.open()  # before there are threads, of which each would load it
    workers = 1 if stage.job.heavy else threads or available_threads()
    yield from in_order(lambda shard: (shard, attempt(stage, shard, lambda: opened)), chain([first], todo), workers)


def _await_others(stage: Stage, execution: ExecutionConfig) -> None:
    """Wait until the slices of others are done.

    Raises:
        Unfinished: they are not, after the time that the settings allow.
    """
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


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers as batch queues take them.

    Example:
        >>> ranges([3, 9, 7, 8])
        '3,7-9'
    """
    listed: list[list[int]] = []
    for number in sorted(set(numbers)):
        if listed and listed[-1][1] == number - 1:
            listed[-1][1] = number
        else:
            listed.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in listed)


def once(folder: Path, identity: str, make: Callable[[Path], None], outputs: Sequence[str | Path] = ()) -> None:
    """Make a folder once, whichever of several processes comes first; the others wait for it.

    Args:
        folder: written whole or not at all.
        identity: of its content; a folder of another one is made again, and one of which a file is gone or damaged.
        make: writes into the folder that it is given.
        outputs: what it writes elsewhere; where some of that is gone all is made again.
    """
    with held(folder.with_name(f".{folder.name}.making")):
        if not is_made(folder, identity, outputs):
            try:
                with whole_folder(folder) as temporary:
                    make(temporary)
                    files = sorted(path for path in temporary.rglob("*") if path.is_file())
                    write_record(temporary / "made.json", identity, files)
            except OSError:
                # Where locks do nothing, another process may have put the same folder there meanwhile.
                if not is_made(folder, identity, outputs):
                    raise
        keep(folder / "made.json", f"after the step {folder.name.partition('-')[0]}")


def is_made(folder: Path, identity: str, outputs: Sequence[str | Path] = ()) -> bool:
    """Tell whether :func:`once` has made a folder of this content, sound as it is, and the outputs, which are there."""
    return sound_record(folder / "made.json", identity) is not None and all(Path(path).exists() for path in outputs)


# Ray: tasks for what is light to begin, actors for what loads a teacher. Names and counts travel, never vectors.

_KEPT: list[ExitStack] = []  # that a connection may outlive its stage in, see :func:`one_cluster`


class _Worker:
    """An actor: loads what a heavy job needs when it is made, from paths, so that it can be made again anywhere."""

    def __init__(self, stage: Stage) -> None:
        stage.check_version()
        self._stage, self._opened = stage, stage.job.open()

    def do(self, shard: int) -> dict[str, Any]:
        return attempt(self._stage, shard, lambda: self._opened)


@lru_cache(maxsize=1)
def _taken(put: Any) -> Stage:
    """Take a stage that was put to the cluster, once a process."""
    import ray

    stage: Stage = ray.get(put)
    return stage


@lru_cache(maxsize=1)
def _opened(put: Any) -> Any:
    """Open what the job of such a stage needs, once a process."""
    stage = _taken(put)
    stage.check_version()
    return stage.job.open()


def _attempt_put(put: list[Any], shard: int) -> dict[str, Any]:
    """Do a shard of a stage that was put to the cluster; it comes in a list, so that a call does not unpack it anew."""
    return attempt(_taken(put[0]), shard, partial(_opened, put[0]))


@contextmanager
def cluster(execution: ExecutionConfig) -> Iterator[Any]:
    """Join a Ray cluster, or start one for the time of the block; one that this process is part of already is taken.

    Raises:
        DependencyError: Ray is not installed.
        ConfigError: there is no cluster at the address, or it does not let this process in.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with needs("ray", "ray", "execution=ray"):
        import ray
    if ray.is_initialized():
        yield ray
    elif _KEPT:
        _KEPT[0].enter_context(_joined(ray, execution))
        yield ray
    else:
        with _joined(ray, execution):
            yield ray


@contextmanager
def one_cluster() -> Iterator[None]:
    """Keep what the first stage of the block joins, if any does, to its end: workers stay, with what they load."""
    with ExitStack() as stack:
        _KEPT.append(stack)
        try:
            yield
        finally:
            _KEPT.remove(stack)


@contextmanager
def _joined(ray: Any, execution: ExecutionConfig) -> Iterator[None]:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if not _join(ray, execution, quiet):
            cpus = max(available_threads(), execution.workers or 1)
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, object_store_memory=_OBJECTS, **quiet)
        yield
    finally:
        ray.shutdown()


def _join(ray: Any, execution: ExecutionConfig, quiet: dict[str, Any]) -> bool:
    """Join the cluster that the settings name; returns whether there is one, where they leave that open."""
    if execution.address == "local":
        return False
    try:
        ray.init(address=execution.address or "auto", **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if execution.address is None and isinstance(error, ConnectionError) and "RAY_ADDRESS" not in os.environ:
            return False
        found = brief(error, 300)
        raise ConfigError(
            f"execution.address={execution.address or 'auto'}: no cluster answers ({found}); start one with "
            "ray start --head, or give execution.address=local"
        ) from None
    return True


def _on_ray(
    stage: Stage, todo: Iterator[int], execution: ExecutionConfig
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Do shards on a cluster; results as they come."""
    if (first := next(todo, None)) is None:
        return
    with cluster(execution) as ray:
        pool = _Pool(ray, stage, execution)
        try:
            for shard in chain([first], todo):
                pool.submit(shard)
                while len(pool.running) >= pool.most:
                    yield pool.finished()
            while pool.running:
                yield pool.finished()
        finally:
            pool.close()


class _Pool:
    """Shards under way on a cluster.

    Attributes:
        running: the shard of each call under way.
        most: how many may be.
    """

    def __init__(self, ray: Any, stage: Stage, execution: ExecutionConfig) -> None:
        self._ray, self._stage = ray, stage
        self.running: dict[Any, int] = {}
        self._owner: dict[Any, int] = {}
        self._execution, self._needs = execution, {"num_cpus": execution.cpus}
        if execution.gpus and stage.job.heavy:
            self._needs["num_gpus"] = execution.gpus
            if not self._fits():
                found = f"{ray.cluster_resources().get('GPU', 0):g}"
                raise ConfigError(f"execution.gpus={execution.gpus}: the cluster has {found}; give 0 for none")
        self._put = ray.put(stage)  # once, whatever it holds; a call takes no more than where it is
        self._actors: list[Any] = []
        if stage.job.heavy:
            self._actor = ray.remote(**self._needs, max_restarts=-1, max_task_retries=_DEATHS)(_Worker)
        else:
            how = {"max_retries": _DEATHS, "retry_exceptions": False, "scheduling_strategy": "SPREAD"}
            self._task = ray.remote(**self._needs, **how)(_attempt_put)
        self._grown = -_GROWS
        self.grow()

    def _fits(self) -> int:
        """Return how many workers the cluster has room for now."""
        there = self._ray.cluster_resources()
        fits = int(there.get("CPU", 1) / max(self._needs["num_cpus"], 0.01))
        return min(fits, int(there.get("GPU", 0) / self._needs["num_gpus"])) if "num_gpus" in self._needs else fits

    def grow(self) -> None:
        """Take as many workers as there is room for; nodes may have come since this was last looked at."""
        if time.monotonic() - self._grown < _GROWS:
            return
        self._grown = time.monotonic()
        workers = self._execution.workers or max(1, self._fits())
        if self._stage.job.heavy:
            more = min(workers, self._stage.count) - len(self._actors)
            self._actors += [self._actor.remote(self._put) for _ in range(more)]
            self.most = 2 * len(self._actors)  # one that waits for each at work
        else:
            self.most = self._execution.workers or 2 * workers

    def submit(self, shard: int) -> None:
        """Hand a shard over: to the actor with the least to do, or to whoever Ray takes."""
        self.grow()
        if self._actors:
            busy = Counter(self._owner.values())
            owner = min(range(len(self._actors)), key=lambda number: busy[number])
            call = self._actors[owner].do.remote(shard)
            self._owner[call] = owner
        else:
            call = self._task.remote([self._put], shard)
        self.running[call] = shard

    def finished(self) -> tuple[int, dict[str, Any]]:
        """Wait for one of the shards under way."""
        ready, _ = self._ray.wait(list(self.running), num_returns=1)
        shard = self.running.pop(ready[0])
        self._owner.pop(ready[0], None)
        stage, errors = self._stage, self._ray.exceptions
        try:
            found = self._ray.get(ready[0])
        except errors.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except errors.RayError as error:  # the worker died, again and again
            why = brief(error, 300)
            return shard, {"error": f"{stage.name}, shard {shard}: its worker died again and again ({why})", "fatal": False}
        for turn in range(8):
            if "error" in found or stage.side_car(shard).is_file():
                return shard, found
            time.sleep(0.1 * 2**turn)  # a file system of several machines may show a new file late
        raise ConfigError(
            f"{stage.side_car(shard)}: a worker wrote it, and it cannot be seen here; give an output in a folder that all "
            "machines share"
        )

    def close(self) -> None:
        """Call off what is under way."""
        for actor in self._actors:
            self._ray.kill(actor)
        for call in () if self._actors else self.running:
            self._ray.cancel(call, force=True)
