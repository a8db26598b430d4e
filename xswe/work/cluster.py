"""Shards on a cluster of any kind: how many run at a time, how long it is joined, and what its workers open."""

from __future__ import annotations

import importlib
import pickle
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

from xswe.errors import ConfigError, needs
from xswe.progress import every
from xswe.work.config import HOSTS, ExecutionConfig
from xswe.work.stage import Stage, attempt

DEATHS = 10  # workers that a shard may kill: nodes come and go, but a shard that kills every worker must end
_GROWS = 5.0  # seconds between checks of the size of the cluster
_KEPT: list[ExitStack] = []  # blocks of :func:`one_cluster`, in which a connection outlives its stage
_JOINED: dict[str, Any] = {}  # connections of this process by executor


class Worker:
    """Does shards of a stage in a worker process; opens what the job needs before the first one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @cached_property
    def _opened(self) -> Any:
        self._stage.check_version()
        return self._stage.job.open()

    def do(self, shard: int) -> dict[str, Any]:
        """Do a shard; return the result of :func:`xswe.work.stage.attempt`.

        RuntimeError: another error, which cannot be sent to another process.
        """
        try:
            return attempt(self._stage, shard, lambda: self._opened)
        except Exception as error:
            try:
                pickle.loads(pickle.dumps(error))
            except Exception:
                raise RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from None
            raise


class Workers(ABC):
    """The workers of a cluster for one stage: each executor with workers has a class of this name in its module.

    A stage may be large: it is sent once to each worker process, which makes a :class:`Worker` of it. A worker is a process
    of its own, which uses ``cpus`` threads, and graphics cards if a heavy job needs them. It ends soon after the process
    that began the work, even if that is killed.
    """

    def __init__(self, connection: Any, stage: Stage, cpus: float, gpus: float) -> None:
        self._workers, self._owner = list[Any](), dict[Any, Any]()  # the living, and whose each call is

    @staticmethod
    @abstractmethod
    def join(execution: ExecutionConfig) -> AbstractContextManager[Any]:
        """Join a cluster, or start one for the time of the block; if this process is part of one already, use that.

        ConfigError: no cluster answers at the address.
        """

    @abstractmethod
    def room(self) -> tuple[float, float]:
        """Return the numbers of processors and graphics cards that the cluster has now."""

    @abstractmethod
    def start(self) -> Any:
        """Start a worker; return what stands for it and can be a key."""

    @abstractmethod
    def call(self, worker: Any, shard: int) -> Any:
        """Let a worker call :meth:`Worker.do` after its earlier calls; return the call, which fails if it has died."""

    @abstractmethod
    def wait(self, calls: Collection[Any]) -> tuple[Any, dict[str, Any] | str]:
        """Wait for a call; return it with its result or, if its worker died, the reason. Raise what it raised."""

    @abstractmethod
    def stop(self, worker: Any) -> None:
        """Stop a worker, which may be at work or dead, and cancel its calls."""

    def submit(self, shard: int, number: int) -> Any:
        """Submit a shard to the least busy of ``number`` workers, the newest of them; return the call."""
        if len(self._workers) < number:
            self._workers.append(self.start())
        busy = Counter(self._owner.values())
        worker = min(reversed(self._workers), key=busy.__getitem__)
        self._owner[call := self.call(worker, shard)] = worker
        return call

    def finished(self, calls: Collection[Any]) -> tuple[Any, dict[str, Any] | str]:
        """Wait for a call, as :meth:`wait`; forget a worker that died, so that another takes its place."""
        call, found = self.wait(calls)
        worker = self._owner.pop(call, None)
        if isinstance(found, str) and worker in self._workers:
            self._workers.remove(worker)
            self.stop(worker)
        return call, found

    def cancel(self, calls: Collection[Any]) -> None:
        """Cancel calls, also running ones if the library can, and stop the workers."""
        for worker in self._workers:
            self.stop(worker)


def workers_of(kind: str) -> type[Workers]:
    """Return the class of an executor's workers."""
    found: type[Workers] = importlib.import_module(f"xswe.work.{kind}").Workers
    return found


@contextmanager
def cluster(execution: ExecutionConfig) -> Iterator[Any]:
    """Join a cluster until the end of the block, or of a :func:`one_cluster` around it.

    DependencyError: the cluster's library is not installed. ConfigError: no cluster answers at the address.
    """
    with ExitStack() as own:
        if execution.kind not in _JOINED:
            if library := HOSTS[execution.kind].library:
                with needs(library, library, f"execution={execution.kind}"):
                    importlib.import_module(library)
            stack = _KEPT[0] if _KEPT else own
            _JOINED[execution.kind] = stack.enter_context(workers_of(execution.kind).join(execution))
            stack.callback(_JOINED.pop, execution.kind)
        yield _JOINED[execution.kind]


@contextmanager
def one_cluster() -> Iterator[None]:
    """Stay, until the end of the block, in the cluster that its first stage joins: workers keep what they have loaded."""
    with ExitStack() as stack:
        _KEPT.append(stack)
        try:
            yield
        finally:
            _KEPT.remove(stack)


def on_cluster(
    stage: Stage, todo: Iterator[int], execution: ExecutionConfig, opened: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Do shards on a cluster; yield their results as they arrive."""
    if (first := next(todo, None)) is None:
        return
    if opened is not None:
        stage.job.share(opened)
    gpus = (execution.gpus or float(stage.job.on_card)) if stage.job.heavy else 0.0
    with cluster(execution) as connection:
        workers = workers_of(execution.kind)(connection, stage, execution.cpus, gpus)
        running, number, due, deaths = dict[Any, int](), 0, every(_GROWS), Counter[int]()

        def submit(shard: int) -> None:
            most = min(execution.workers or number, number)  # one without a place would keep its shards for ever
            running[workers.submit(shard, most)] = shard

        def ended() -> tuple[int, dict[str, Any]]:
            """Wait for a shard; let another worker try one whose worker has died."""
            while True:
                shard, found = _finished(stage, workers, running)
                if not isinstance(found, str):
                    return shard, found
                deaths[shard] += 1
                if deaths[shard] > DEATHS:
                    why = f"{stage.name}, shard {shard}: its worker died again and again ({found})"
                    return shard, {"error": why, "fatal": False}
                submit(shard)

        try:
            for shard in chain([first], todo):
                if not number or due():  # nodes may have joined meanwhile
                    number = _fits(workers.room(), stage, execution.cpus, gpus)
                submit(shard)
                while len(running) >= (execution.workers or 2 * number):  # one that waits for each at work
                    yield ended()
            while running:
                yield ended()
        finally:
            workers.cancel(running)


def _fits(room: tuple[float, float], stage: Stage, cpus: float, gpus: float) -> int:
    """Return how many workers fit into a cluster, at least 1; ConfigError: too few graphics cards."""
    fits = max(1, int(room[0] / max(cpus, 0.01)))
    if gpus and not (fits := min(fits, int(room[1] / gpus))):
        hint = "set the device to cpu" if stage.job.on_card else "give 0 for none"
        raise ConfigError(f"execution.gpus={gpus:g}: the cluster has {room[1]:g}; {hint}")
    return fits


def _finished(stage: Stage, workers: Workers, running: dict[Any, int]) -> tuple[int, dict[str, Any] | str]:
    """Wait for one of the running shards; return it with its counts or, if its worker died, the reason."""
    call, found = workers.finished(running)
    shard = running.pop(call)
    for turn in range(8):
        if isinstance(found, str) or "error" in found or stage.side_car(shard).is_file():
            return shard, found
        time.sleep(0.1 * 2**turn)  # a shared file system may show a new file late
    raise ConfigError(
        f"{stage.side_car(shard)}: a worker wrote it, and it cannot be seen here; give an output in a folder that all "
        "machines share"
    )
