"""Shards of a stage of work: plain files that any number of machines write, in any order, and that survive a kill.

A stage of work has a folder. Its ``manifest.json`` names what is to be done and how many shards it is cut into, by a plan
that knows nothing of who does the work. Shard 12 is done when ``000012.npy`` (of whatever kind the stage makes) and the
side-car ``000012.json`` are there: sizes and checksums of its files, counts, seconds, and the fingerprint of all that
decides the bytes. Both are renamed into place, the side-car last. What fails leaves ``000012.failed.json``.

The manifest is the truth, not whoever schedules the work: any executor (:mod:`xswe.work.run`) goes on with what
another left, and a file that vanished or was damaged is noticed by its side-car and made again.
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
_PAUSE = 0.5  # seconds before a shard is tried again; each further time twice as long
_HOPELESS = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENAMETOOLONG}


Made = tuple[Mapping[str, np.ndarray], dict[str, Any]]  # the arrays of a shard, and its counts


CHECKSUM = "checksum"  # among the counts of a shard: of its file, by who has written it and so need not read it again
NOWHERE = Path(os.devnull)  # the folder of a stage of which nothing is kept


@dataclass
class Advancing:
    """What a job with long shards opens: ``advance`` moves the bar within a shard."""

    advance: Callable[[int], object] = field(default=lambda _: None, kw_only=True)


class Job:
    """What a stage does to a shard: a frozen dataclass of paths and settings, small, for it travels to every worker."""

    heavy = False  # whether :meth:`open` is worth a process that stays (a teacher); else a process may be anyone's
    on_card = False  # whether each worker, which must be heavy, needs a graphics card, however few are asked for

    def open(self) -> Any:
        """Load what every shard needs (such as a model), once per process."""
        raise NotImplementedError

    def share(self, opened: Any) -> None:
        """Write what others need to :meth:`open`, given what this process has opened."""

    def compute(self, opened: Any, shard: int) -> Made:
        """Do a shard: return its arrays, and counts (``lines``, where there are lines).

        A job whose shards are not arrays writes them itself, see :meth:`run`.
        """
        raise NotImplementedError

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Do a shard and write ``output``, whole or not at all; return the counts."""
        arrays, counts = self.compute(opened, shard)
        save_tensors(output, arrays, crowded=True)
        return counts

    def files(self, output: Path) -> Sequence[Path]:
        """Return the files that a shard consists of, given the first of them, which is the only one of most."""
        return [output]


@dataclass(frozen=True)
class Stage:
    """A piece of work that is cut into shards."""

    folder: Path  # where its shards are; every worker must see it under this name
    name: str  # a word for progress and messages
    count: int  # how many shards there are
    suffix: str  # of their files
    job: Job  # what is done
    identity: str  # a fingerprint of everything that decides the shards' bytes
    inputs: Inputs = NO_INPUTS  # the files that the shards are cut from
    version: str = __version__  # of whoever planned the work, which that of every worker must be

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
        """Return the path of a file of a shard; names sort as the shards do."""
        return self.folder / f"{shard:0{max(6, len(str(self.count - 1)))}d}{suffix}"

    def begin(self, **plan: Any) -> None:
        """Write the manifest unless it exists; ConfigError: it is that of other work."""
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
        """When the manifest was written, in nanoseconds."""
        return (self.folder / "manifest.json").stat().st_mtime_ns

    def counts(self, shard: int) -> dict[str, Any] | None:
        """Return the counts of a finished shard; None if it is unfinished or its files do not match its side-car."""
        record = sound_record(self.side_car(shard), self.identity)
        return None if record is None else dict(record["counts"])

    def sound(self, shard: int) -> Path:
        """Return the (first) file of a shard that is done, after its files were read and compared with their checksums.

        XsweError: a file is gone or damaged; the shard counts as not done then.
        """
        if sound_record(self.side_car(shard), self.identity, read=True) is None:
            raise self.damaged(shard)
        return self.path(shard)

    def checksum(self, shard: int) -> int | None:
        """Return the checksum of the (first) file of a shard as it was written; None if the shard is not done."""
        record = sound_record(self.side_car(shard), self.identity)
        return None if record is None else int(record["files"][0][3])

    def forget(self, shard: int) -> None:
        """Remove the files of a shard that nobody needs."""
        for path in (self.side_car(shard), *self.job.files(self.path(shard))):
            path.unlink(missing_ok=True)

    def damaged(self, shard: int) -> XsweError:
        """Return the error for a damaged shard, and mark it as unfinished."""
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
        """Return the arrays of a shard that is done; raises as :meth:`sound`."""
        from safetensors.numpy import load_file

        return load_file(self.sound(shard))

    def do(self, shard: int, opened: Any) -> dict[str, Any]:
        """Do a shard and write its side-car; returns its counts."""
        return self._written(shard, lambda output: self.job.run(opened, shard, output))

    def keep(self, shard: int, made: Made) -> None:
        """Write the results of a shard, and its side-car."""

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
    """Do a shard with what the job has opened; retry transient failures of the system or a storage.

    Returns its counts; of a failure, which is noted in the stage's folder as well, ``error`` (a sentence) and ``fatal``
    (whether no other shard will fare better).
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
        except OSError:  # no space for this either
            logger.warning("%s, shard %d: %s", stage.name, shard, said)
        return found


def patiently(name: str, work: Callable[[], T]) -> T:
    """Return the result of ``work``; retry transient failures of the system or a storage."""
    for turn in range(RETRIES):
        try:
            return work()
        except OSError as error:
            if no_room(error) or error.errno in _HOPELESS:
                raise
            logger.warning("%s: %s; trying again", name, brief(error) or type(error).__name__)
            time.sleep(_PAUSE * 2**turn)
    return work()
