"""Shards on a Ray cluster: tasks for light jobs, actors for jobs that load a teacher; vectors go through files only."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from xswe.errors import ConfigError, brief, needs
from xswe.io.parallel import available_threads
from xswe.work.config import ExecutionConfig
from xswe.work.stage import Stage, attempt

_DEATHS = 10  # of workers that a shard may cost: nodes come and go, but what kills its worker every time must end
_GROWS = 5.0  # seconds between two looks at how large a cluster is
_OBJECTS = 200 << 20  # bytes of Ray's object store on one machine: nothing large goes through it
_KEPT: list[ExitStack] = []  # that a connection may outlive its stage in, see :func:`one_cluster`


class _Worker:
    """An actor, which loads what a heavy job needs from paths when it starts, so that it can be restarted on any node."""

    def __init__(self, stage: Stage) -> None:
        stage.check_version()
        self._stage, self._opened = stage, stage.job.open()

    def do(self, shard: int) -> dict[str, Any]:
        return attempt(self._stage, shard, lambda: self._opened)


@lru_cache(maxsize=1)
def _taken(put: Any) -> Stage:
    """Fetch a stage from the cluster's object store, once per process."""
    import ray

    stage: Stage = ray.get(put)
    return stage


@lru_cache(maxsize=1)
def _opened(put: Any) -> Any:
    """Open what the job of such a stage needs, once per process."""
    stage = _taken(put)
    stage.check_version()
    return stage.job.open()


def _attempt_put(put: list[Any], shard: int) -> dict[str, Any]:
    """Do a shard of a stage in the object store, whose reference is in a list so that Ray does not resolve it each time."""
    return attempt(_taken(put[0]), shard, partial(_opened, put[0]))


@contextmanager
def cluster(execution: ExecutionConfig) -> Iterator[Any]:
    """Join a Ray cluster, or start one for the time of the block; one that this process is part of already is taken.

    DependencyError: Ray is not installed. ConfigError: no cluster at the address lets this process in.
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
    """Stay in the cluster that the first stage of the block joins until its end: workers keep what they have loaded."""
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
    """Join the cluster that the settings name; returns False if there is none and none is required."""
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


def on_ray(
    stage: Stage, todo: Iterator[int], execution: ExecutionConfig, opened: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Do shards on a cluster; results as they come."""
    if (first := next(todo, None)) is None:
        return
    if opened is not None:
        stage.job.share(opened)
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
    """Shards under way on a cluster: ``running`` is the shard of each call, ``most`` how many there may be."""

    def __init__(self, ray: Any, stage: Stage, execution: ExecutionConfig) -> None:
        self._ray, self._stage = ray, stage
        self.running: dict[Any, int] = {}
        self._owner: dict[Any, int] = {}
        self._execution, self._needs = execution, {"num_cpus": execution.cpus}
        if stage.job.heavy and (gpus := execution.gpus or float(stage.job.on_card)):
            self._needs["num_gpus"] = gpus
            if not self._fits():
                found = f"{ray.cluster_resources().get('GPU', 0):g}"
                hint = "set the device to cpu" if stage.job.on_card else "give 0 for none"
                raise ConfigError(f"execution.gpus={gpus:g}: the cluster has {found}; {hint}")
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
        """Start as many workers as the cluster has room for; nodes may have joined meanwhile."""
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
        """Submit a shard: to the actor with the shortest queue, or as a task."""
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
        """Cancel the running shards."""
        for actor in self._actors:
            self._ray.kill(actor)
        for call in () if self._actors else self.running:
            self._ray.cancel(call, force=True)
