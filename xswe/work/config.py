"""Settings of the executor, which many verbs share."""

from __future__ import annotations

import dataclasses
import os
import typing

from xswe.errors import ConfigError
from xswe.io.settings import check_choice, for_all, refuse_unused

Executor = typing.Literal["local", "array", "ray"]


class _Host(typing.NamedTuple):
    """What distinguishes an executor."""

    does: str  # who does the shards, for messages
    has_peers: bool
    has_workers: bool  # which a class of xswe.work.NAME knows, see xswe.work.cluster
    settings: tuple[str, ...]  # those of arrays or of workers that it looks at; executors may share them
    library: str = ""  # that a cluster needs; its extra has the same name


_OF_ARRAYS, _OF_CLUSTERS = ("index", "count", "wait"), ("address", "workers", "cpus", "gpus")
HOSTS = for_all(
    Executor,
    {
        "local": _Host("this process", has_peers=False, has_workers=False, settings=()),
        "array": _Host("the tasks of a batch queue", has_peers=True, has_workers=False, settings=_OF_ARRAYS),
        "ray": _Host("a Ray cluster", has_peers=False, has_workers=True, settings=_OF_CLUSTERS, library="ray"),
    },
)
for _host in HOSTS.values():
    if not {*_host.settings} <= {*_OF_ARRAYS * _host.has_peers, *_OF_CLUSTERS * _host.has_workers}:
        raise TypeError(f"nothing looks at some of the settings of {_host.does}: {', '.join(_host.settings)}")
    if _host.has_workers and not {"workers", "cpus"} <= {*_host.settings}:
        raise TypeError(f"{_host.does} must look at workers and cpus")


@dataclasses.dataclass(frozen=True)
class ExecutionConfig:
    """Where the work of a verb is done.

    Attributes:
        kind: ``local``, in this process; ``array``, this process does one slice of the shards, and others like it the rest;
            with any other its workers do the shards.
        index: with ``array``: which slice, from 0; null for SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX.
        count: with ``array``: of how many; null for SLURM_ARRAY_TASK_COUNT.
        wait: with ``array``: seconds to wait for the slices of others where the next step needs them; then the same
            command goes on another time.
        address: of a cluster: ``auto`` joins the one that runs, ``local`` starts one on this machine, any other is as its
            library takes it (``ray://HOST:PORT``); null joins one if there is one and else starts one.
        workers: how many shards at a time; null for as many as there is room for.
        cpus: processors a worker.
        gpus: graphics cards a worker of what runs on them; a search on ``device=cuda`` asks for one anyway.
        shard: bytes of text a shard.
    """

    kind: Executor = "local"
    index: int | None = None
    count: int | None = None
    wait: float = 0.0
    address: str | None = None
    workers: int | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    shard: int = 16_777_216

    def __post_init__(self) -> None:
        check_choice("execution", self.kind, Executor)
        known = ("kind", "shard", *HOSTS[self.kind].settings)
        unused = [field.name for field in dataclasses.fields(self) if field.name not in known]
        refuse_unused(self, {f"with execution={self.kind}": unused}, "execution")
        if self.kind == "array":
            index, count = self.slice
            if not 0 <= index < count:
                raise ConfigError(f"execution.index={index}: must be from 0 to execution.count - 1, which is {count - 1}")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"execution.workers={self.workers}: give at least 1, or null for as many as fit")
        for name in ("wait", "cpus", "gpus"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"execution.{name}={getattr(self, name)}: must be a number, at least 0")
        if self.shard < 1:
            raise ConfigError(f"execution.shard={self.shard}: give the bytes of text of a shard")

    @property
    def alone(self) -> bool:
        """Return True if this process does all the work."""
        return self.kind == "local"

    def check_names(self, *names: object) -> None:
        """Raise a ConfigError where others take part, and one of these is no name of a file that they can open."""
        if not self.alone and not all(isinstance(name, (str, os.PathLike)) and str(name) != "-" for name in names):
            raise ConfigError(
                f"execution={self.kind}: others read and write the same: give the names of files, output= among them, in "
                "folders that all machines share"
            )

    @property
    def has_peers(self) -> bool:
        """Return True if the rest of the work is done by processes like this one, which know nothing of each other."""
        return HOSTS[self.kind].has_peers

    @property
    def has_workers(self) -> bool:
        """Return True if the workers of a cluster do the shards, and this process only the rest."""
        return HOSTS[self.kind].has_workers

    @property
    def slice(self) -> tuple[int, int]:
        """Which slice this process does, and of how many.

        Raises:
            ConfigError: neither the settings nor the batch queue tell.
        """
        index, count = self.index, self.count
        if index is None and (task := os.environ.get("SLURM_ARRAY_TASK_ID")) is not None:
            step = max(1, int(os.environ.get("SLURM_ARRAY_TASK_STEP", "1")))
            index = (int(task) - int(os.environ.get("SLURM_ARRAY_TASK_MIN", "0"))) // step
        if index is None and (task := os.environ.get("JOB_COMPLETION_INDEX")) is not None:
            index = int(task)
        if count is None and (tasks := os.environ.get("SLURM_ARRAY_TASK_COUNT")) is not None:
            count = int(tasks)
        if index is None or count is None:
            missing = "execution.index" if index is None else "execution.count"
            raise ConfigError(f"{missing} is not set: give execution.index=… execution.count=…, or run it as a Slurm array")
        return index, count


LOCAL = ExecutionConfig()
