"""Workers on a Ray cluster: tasks for light jobs, actors for jobs that load a teacher; vectors go through files only."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from xswe.errors import ConfigError, brief, needs
from xswe.io.parallel import available_threads
from xswe.work import cluster
from xswe.work.cluster import Worker
from xswe.work.config import ExecutionConfig
from xswe.work.stage import Stage

_OBJECTS = 200 << 20  # bytes of Ray's object store on one machine: nothing large goes through it


@lru_cache(maxsize=1)
def _worker(put: Any) -> Worker:
    """Fetch a stage from the cluster's object store, once per process."""
    import ray

    return Worker(ray.get(put))


def attempt_put(put: list[Any], shard: int) -> dict[str, Any]:
    """Do a shard of a stage in the object store, whose reference is in a list so that Ray does not resolve it each time."""
    return _worker(put[0]).do(shard)


class Workers(cluster.Workers):
    """Tasks or, for heavy jobs, actors, which can be restarted on any node."""

    def __init__(self, connection: Any, stage: Stage, cpus: float, gpus: float) -> None:
        self._ray, self._put, self._heavy = connection, connection.put(stage), stage.job.heavy
        self._actors, self._owner = list[Any](), dict[Any, Any]()
        share = {"num_cpus": cpus, **({"num_gpus": gpus} if gpus else {})}
        if self._heavy:
            self._actor = connection.remote(**share, max_restarts=-1, max_task_retries=cluster.DEATHS)(Worker)
        else:
            how = {"max_retries": cluster.DEATHS, "retry_exceptions": False, "scheduling_strategy": "SPREAD"}
            self._task = connection.remote(**share, **how)(attempt_put)

    @staticmethod
    @contextmanager
    def join(execution: ExecutionConfig) -> Iterator[Any]:
        """Join the Ray cluster that the settings name, or start one on this machine."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        with needs("ray", "ray", "execution=ray"):
            import ray
        if ray.is_initialized():
            yield ray
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if not _join(ray, execution, quiet):
                cpus = max(available_threads(), execution.workers or 1)
                ray.init(address="local", num_cpus=cpus, include_dashboard=False, object_store_memory=_OBJECTS, **quiet)
            yield ray
        finally:
            ray.shutdown()

    def room(self) -> tuple[float, float]:
        """Return the processors and graphics cards of all nodes together."""
        there = self._ray.cluster_resources()
        return there.get("CPU", 1), there.get("GPU", 0)

    def submit(self, shard: int, number: int) -> Any:
        """Submit a shard: as a task, or to the actor with the shortest queue."""
        if not self._heavy:
            return self._task.remote([self._put], shard)
        if len(self._actors) < number:
            self._actors.append(self._actor.remote(self._put))
        busy = Counter(self._owner.values())
        owner = min(reversed(range(len(self._actors))), key=busy.__getitem__)  # the newest of the free ones
        self._owner[call := self._actors[owner].do.remote(shard)] = owner
        return call

    def finished(self, calls: Collection[Any]) -> tuple[Any, dict[str, Any] | str]:
        """Wait for a task, or for the call of an actor."""
        (call,), _ = self._ray.wait(list(calls), num_returns=1)
        self._owner.pop(call, None)
        try:
            return call, self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError as error:
            return call, brief(error, 300)

    def cancel(self, calls: Collection[Any]) -> None:
        """Cancel tasks, the newest first so that none begins in the place of another, or kill the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        for call in () if self._heavy else reversed([*calls]):
            self._ray.cancel(call, force=True)


def _join(ray: Any, execution: ExecutionConfig, quiet: dict[str, Any]) -> bool:
    """Join the cluster that the settings name; return False if there is none and none is required."""
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
