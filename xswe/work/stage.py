"""Shards of a stage of work: plain files that any number of machines write, in any order, and that survive a kill.

A stage has a folder. Its ``manifest.json`` says what to do and how many shards there are; the plan does not depend on who
does the work. Shard 12 is done when ``000012.npy`` (suffixes differ between stages) and the side-car ``000012.json`` exist.
The side-car holds the sizes and checksums of the shard's files, counts, seconds, and a fingerprint of everything that
determines the bytes. Both files are renamed into place, the side-car last. A failed shard leaves ``000012.failed.json``.

The manifest is the source of truth, not the scheduler: any executor (:mod:`xswe.work.run`) resumes what another one left,
and side-cars reveal files that are missing or damaged, which are then made again.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from xswe.errors import ConfigError, InputError, XsweError, brief, no_room
from xswe.io.files import read_json, save_tensors, write_json
from xswe.io.inputs import NO_INPUTS, Inputs
from xswe.version import __version__
from xswe.work.records import sound_record, write_record

logger = logging.getLogger(__name__)
T = TypeVar("T")
RETRIES = 3
_PAUSE = 0.5  # seconds before the first retry of a shard; doubles with each retry
_NO_RETRY = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENAMETOOLONG}


Made = tuple[Mapping[str, np.ndarray], dict[str, Any]]  # the arrays of a shard and its counts


CHECKSUM = "checksum"  # a count of a shard: the checksum of its file, if the writer has computed it already
NOWHERE = Path(os.devnull)  # the folder of a stage that keeps nothing


@dataclass
class Advancing:
    """Base of what a job with long shards opens: ``advance`` moves the progress bar within a shard."""

    advance: Callable[[int], object] = field(default=lambda _: None, kw_only=True)


class Job:
    """The work on one shard: a frozen dataclass of paths and settings, small because it is sent to every worker."""

    heavy = False  # whether :meth:`open` is so slow (a teacher) that it needs a worker process of its own
    on_card = False  # whether each worker of a heavy job needs a graphics card, even with ``gpus=0``

    def open(self) -> Any:
        """Load what every shard needs (such as a model); called once per process."""
        raise NotImplementedError

    def share(self, opened: Any) -> None:
        """Write what other processes need to :meth:`open`, given what this one has opened."""

    def compute(self, opened: Any, shard: int) -> Made:
        """Return the arrays of a shard and its counts (``lines``, if it has lines).

        A job whose shards are not arrays overrides :meth:`run` instead.
        """
        raise NotImplementedError

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Do a shard, write ``output`` atomically, and return the counts."""
        arrays, counts = self.compute(opened, shard)
        save_tensors(output, arrays, crowded=True)
        return counts

    def files(self, output: Path) -> Sequence[Path]:
        """Return the files of a shard, given the first one; most shards have only one."""
        return [output]


@dataclass(frozen=True)
class Stage:
    """Work that is cut into shards."""

    folder: Path  # of the shards; every worker must see it under this name
    name: str  # for progress bars and messages
    count: int  # number of shards
    suffix: str  # of their files
    job: Job
    identity: str  # a fingerprint of everything that determines the shards' bytes
    inputs: Inputs = NO_INPUTS  # the files that the shards are cut from
    version: str = __version__  # of xswe when the work was planned; workers must have the same

    def path(self, shard: int) -> Path:
        """Return the (first) file of a shard."""
        return self._file(shard, self.suffix)

    def side_car(self, shard: int) -> Path:
        """Return the path of the record of a shard's files."""
        return self._file(shard, ".json")

    def failure(self, shard: int) -> Path:
        """Return the path of the failure record of a shard."""
        return self._file(shard, ".failed.json")

    def _file(self, shard: int, suffix: str) -> Path:
        """Return the path of a file of a shard; names sort in the order of the shards."""
        return self.folder / f"{shard:0{max(6, len(str(self.count - 1)))}d}{suffix}"

    def begin(self, **plan: Any) -> None:
        """Write the manifest unless it exists; ConfigError: the folder has a manifest of other work."""
        manifest = self.folder / "manifest.json"
        if manifest.is_file():
            if read_json(manifest)["identity"] == self.identity:
                return
            raise ConfigError(
                f"{self.folder}: holds the shards of other settings, inputs or another version; "
                "remove it, or choose another output"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        about = {"stage": self.name, "identity": self.identity, "version": self.version}
        write_json(manifest, {**about, "shards": self.count, "suffix": self.suffix, **plan})

    @property
    def begun(self) -> int:
        """Time at which the manifest was written, in nanoseconds."""
        return (self.folder / "manifest.json").stat().st_mtime_ns

    def counts(self, shard: int) -> dict[str, Any] | None:
        """Return the counts of a finished shard; None if it is unfinished or its files do not match its side-car."""
        record = sound_record(self.side_car(shard), self.identity)
        return None if record is None else dict(record["counts"])

    def sound(self, shard: int) -> Path:
        """Return the (first) file of a finished shard, after verifying the checksums of its files.

        XsweError: a file is missing or damaged; the shard then counts as unfinished.
        """
        if sound_record(self.side_car(shard), self.identity, read=True) is None:
            raise self.damaged(shard)
        return self.path(shard)

    def checksum(self, shard: int) -> int | None:
        """Return the recorded checksum of the (first) file of a shard; None if the shard is unfinished."""
        record = sound_record(self.side_car(shard), self.identity)
        return None if record is None else int(record["files"][0][3])

    def forget(self, shard: int) -> None:
        """Remove the files of a shard that is no longer needed."""
        for path in (self.side_car(shard), *self.job.files(self.path(shard))):
            path.unlink(missing_ok=True)

    def damaged(self, shard: int) -> XsweError:
        """Mark a damaged shard as unfinished and return the error to raise."""
        self.side_car(shard).unlink(missing_ok=True)
        return XsweError(f"{self.path(shard)}: gone or damaged since it was written; the same command makes it again")

    def check_version(self) -> None:
        """Raise a ConfigError if this process runs another version than the one that planned the work."""
        if self.version != __version__:
            raise ConfigError(
                f"{self.name}: planned by xswe {self.version}, and here is {__version__} ({platform.node()}); "
                "install the same version on all machines"
            )

    def load(self, shard: int) -> dict[str, np.ndarray]:
        """Return the arrays of a finished shard; raises the errors of :meth:`sound`."""
        from safetensors.numpy import load_file

        return load_file(self.sound(shard))

    def do(self, shard: int, opened: Any) -> dict[str, Any]:
        """Do a shard, write its side-car, and return its counts."""
        return self._written(shard, lambda output: self.job.run(opened, shard, output))

    def keep(self, shard: int, made: Made) -> None:
        """Write the results of a shard and its side-car."""

        def write(output: Path) -> dict[str, Any]:
            save_tensors(output, made[0], crowded=True)
            return made[1]

        self._written(shard, write)

    def _written(self, shard: int, write: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        output, begun, clock = self.path(shard), time.time(), time.monotonic()
        counts = write(output)
        known, files = counts.pop(CHECKSUM, None), self.job.files(output)
        record = {"counts": counts, "begun": begun, "seconds": time.monotonic() - clock, "host": platform.node()}
        write_record(self.side_car(shard), self.identity, files, known, **record)
        self.failure(shard).unlink(missing_ok=True)
        return counts


def attempt(stage: Stage, shard: int, opened: Callable[[], Any]) -> dict[str, Any]:
    """Do a shard with what the job has opened, retrying transient failures of the system or the storage.

    Return its counts; for a failure, also recorded in the stage's folder, ``error`` (a sentence) and ``fatal`` (whether all
    other shards would fail as well).
    """
    try:
        return patiently(f"{stage.name}, shard {shard}", lambda: stage.do(shard, opened()))
    except (XsweError, OSError, MemoryError) as error:
        said = brief(error) or type(error).__name__
        if isinstance(error, OSError):
            why = error.strerror or (os.strerror(errno.ENOSPC) if no_room(error) else said)
            said = f"{error.filename or stage.folder}: {why}"
        found = {"error": said, "fatal": not isinstance(error, InputError), "host": platform.node()}
        try:
            write_json(stage.failure(shard), found)
        except OSError:  # no space for the record either
            logger.warning("%s, shard %d: %s", stage.name, shard, said)
        return found


def patiently(name: str, work: Callable[[], T]) -> T:
    """Return the result of ``work``, retrying transient failures of the system or the storage."""
    for turn in range(RETRIES):
        try:
            return work()
        except OSError as error:
            if no_room(error) or error.errno in _NO_RETRY:
                raise
            logger.warning("%s: %s; trying again", name, brief(error) or type(error).__name__)
            time.sleep(_PAUSE * 2**turn)
    return work()
