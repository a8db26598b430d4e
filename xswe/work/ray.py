"""Workers on a Ray cluster: actors, each in a process of its own; vectors go through files only.

Not tasks: if one that is cancelled ends at the same moment, Ray ends the process that submitted it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from xswe.errors import ConfigError, brief
from xswe.io.parallel import available_threads
from xswe.work import cluster
from xswe.work.cluster import Worker
from xswe.work.config import ExecutionConfig
from xswe.work.stage import Stage

_OBJECTS = 200 << 20  # bytes of Ray's object store on one machine: nothing large goes through it


class Workers(cluster.Workers):
    """Actors, spread over the nodes."""

    def __init__(self, connection: Any, stage: Stage, cpus: float, gpus: float) -> None:
        super().__init__(connection, stage, cpus, gpus)
        self._ray, self._put = connection, connection.put(stage)
        share = {"num_cpus": cpus, **({"num_gpus": gpus} if gpus else {})}
        self._actor = connection.remote(**share, scheduling_strategy="SPREAD")(Worker)

    @staticmethod
    @contextmanager
    def join(execution: ExecutionConfig) -> Iterator[Any]:
        """Join the Ray cluster that the settings name, or start one on this machine."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
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

    def start(self) -> Any:
        """Start an actor."""
        return self._actor.remote(self._put)

    def call(self, worker: Any, shard: int) -> Any:
        """Call an actor, which does one thing at a time."""
        return worker.do.remote(shard)

    def stop(self, worker: Any) -> None:
        """Kill an actor."""
        self._ray.kill(worker)

    def wait(self, calls: Collection[Any]) -> tuple[Any, dict[str, Any] | str]:
        """Wait for the call of an actor."""
        (call,), _ = self._ray.wait(list(calls), num_returns=1)
        try:
            return call, self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError as error:
            return call, brief(error, 300)


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
