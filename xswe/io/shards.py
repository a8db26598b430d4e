"""Large work as a manifest of shards: plain files that any number of machines fill, in any order, and that survive a kill.

A stage of work has a folder. Its ``manifest.json`` names what is to be done and how many shards it is cut into, by a plan
that knows nothing of who does the work. Shard 12 is done when ``000012.npy`` (of whatever kind the stage makes) and the
side-car ``000012.json`` are there: sizes and checksums of its files, counts, seconds, and the fingerprint of all that
decides the bytes. Both are renamed into place, the side-car last. What fails leaves ``000012.failed.json``.

The manifest is the truth, not whoever schedules the work: any executor (:mod:`xswe.io.execution`) goes on with what
another left, and a file that vanished or was damaged is noticed by its side-car and made again.
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.errors import ConfigError, InputError, XsweError
from xswe.io.files import file_stamp as stamp_of
from xswe.io.files import fingerprint, read_json, whole_file, write_json
from xswe.io.sources import is_remote, packing_of, remote_state
from xswe.version import __version__

_CHUNK = 1 << 20


class Job:
    """What a stage does to a shard: a frozen dataclass of paths and settings, small, for it travels to every worker."""

    heavy = False  # whether :meth:`open` is worth a process that stays (a teacher); else a process may be anyone's

    def open(self) -> Any:
        """Load what every shard needs (a model, say), once a process."""
        raise NotImplementedError

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Do a shard: write ``output``, whole or not at all, and return counts (``lines``, where there are lines)."""
        raise NotImplementedError

    def files(self, output: Path) -> Sequence[Path]:
        """Return the files that a shard consists of, given the first of them, which is the only one of most."""
        return [output]


class Inputs(NamedTuple):
    """Files that are read, and what tells each from another of its name: its size, and when it was written."""

    files: tuple[str, ...] = ()
    stamps: tuple[Any, ...] = ()

    def check_unchanged(self) -> None:
        """Raise an InputError if a file is no longer what it was."""
        for name, stamp in zip(self.files, self.stamps, strict=True):
            if _state(name)[1] != stamp:
                raise InputError(name, "changed while it was read", "start again, with a file that stays")


_NO_INPUTS = Inputs()


@dataclass(frozen=True)
class Stage:
    """A piece of work that is cut into shards."""

    folder: Path  # where its shards are; every worker must see it under this name
    name: str  # a word for progress and messages
    count: int  # how many shards there are
    suffix: str  # of their files
    job: Job  # what is done
    identity: str  # a fingerprint of everything that decides the shards' bytes
    inputs: Inputs = _NO_INPUTS  # the files that the shards are cut from
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
        """Write the manifest, unless it is there.

        Raises:
            ConfigError: the folder holds the shards of other work.
        """
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
        """Return the counts of a shard that is done, None if it is not, or its files are not what its side-car says."""
        told = sound_record(self.side_car(shard), self.identity)
        return None if told is None else dict(told["counts"])

    def sound(self, shard: int) -> Path:
        """Return the (first) file of a shard that is done, after its files were read and compared with their checksums.

        Raises:
            XsweError: a file is gone or damaged; the shard counts as not done then.
        """
        if sound_record(self.side_car(shard), self.identity, read=True) is None:
            raise self._damaged(shard)
        return self.path(shard)

    def check_read(self, shard: int, read: Mapping[Path, int]) -> None:
        """Compare the checksums of all files of a shard, as somebody read them, with those of when they were written.

        Raises:
            XsweError: they differ; the shard counts as not done then.
        """
        record = sound_record(self.side_car(shard), self.identity)
        if record is None or {self.folder / file[0]: file[3] for file in record["files"]} != read:
            raise self._damaged(shard)

    def _damaged(self, shard: int) -> XsweError:
        self.side_car(shard).unlink(missing_ok=True)
        return XsweError(f"{self.path(shard)}: gone or damaged since it was written; the same command makes it again")

    def check_version(self) -> None:
        """Raise a ConfigError if this process runs another version than whoever planned the work."""
        if self.version != __version__:
            raise ConfigError(
                f"{self.name}: planned by xswe {self.version}, and here is {__version__} ({platform.node()}); "
                "install the same version on all machines"
            )

    def do(self, shard: int, opened: Any) -> dict[str, Any]:
        """Do a shard and write its side-car; returns its counts."""
        output, begun, clock = self.path(shard), time.time(), time.monotonic()
        counts = self.job.run(opened, shard, output)
        files = self.job.files(output)
        told = {"counts": counts, "begun": begun, "seconds": time.monotonic() - clock, "host": platform.node()}
        write_record(self.side_car(shard), self.identity, files, **told)
        self.failure(shard).unlink(missing_ok=True)
        return counts


def write_record(path: Path, identity: str, files: Iterable[Path], **more: Any) -> None:
    """Tell in a file what others, in its folder or below, are: their sizes, times and checksums, and what decides them."""
    told = []
    for file in files:
        state = file.stat()
        name = file.relative_to(path.parent).as_posix()
        told.append([name, state.st_size, state.st_mtime_ns, file_checksum(file)])
    with whole_file(path, crowded=True) as temporary:
        record = {"identity": identity, **more, "files": told}
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")


def sound_record(path: Path, identity: str, read: bool = False) -> dict[str, Any] | None:
    """Return what :func:`write_record` wrote; None if it is of another identity, or files are gone or not what it says.

    Files of the size and time that it says are trusted, unless all are to be read; others are read and compared with their
    checksum.
    """
    try:
        told = read_json(path)
        if told["identity"] != identity:
            return None
        for name, size, written, checksum in told["files"]:
            state = (path.parent / name).stat()
            if state.st_size != size:
                return None
            if (read or state.st_mtime_ns != written) and file_checksum(path.parent / name) != checksum:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(told)


class Checksum:
    """A checksum of bytes that notices damage, and parts that changed places, many times as fast as they are read.

    Of each stretch of 1 MiB the numbers, times a factor for each place, are added up modulo 2^64; the value is the CRC-32
    of these sums. The factors are odd, so that no change of a single number is missed.
    """

    def __init__(self) -> None:
        self._value = 0
        self._stretch, self._filled = np.zeros(_CHUNK, np.uint8), 0
        self._products = np.empty(_CHUNK // 8, np.uint64)

    def room(self) -> memoryview:
        """Return where the next bytes go, up to the end of a stretch."""
        return self._stretch[self._filled :].data

    def added(self, size: int) -> None:
        """Take note of ``size`` bytes that were put into the room."""
        self._filled += size
        if self._filled == _CHUNK:
            self._end_stretch()

    def finish(self) -> int:
        """Return the checksum of all bytes."""
        if self._filled:
            self._stretch[self._filled :] = 0
            self._end_stretch()
        return self._value

    def _end_stretch(self) -> None:
        np.multiply(self._stretch.view(np.uint64), _factors(), out=self._products)
        self._value = zlib.crc32(self._products.sum().tobytes(), self._value ^ self._filled)
        self._filled = 0


@cache
def _factors() -> np.ndarray:
    return np.arange(_CHUNK // 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)


def file_checksum(path: Path) -> int:
    """Return the checksum of a file, see :class:`Checksum`."""
    found = Checksum()
    with open(path, "rb", buffering=0) as stream:
        while size := stream.readinto(found.room()):
            found.added(size)
    return found.finish()


# Text, cut into shards.


@dataclass(frozen=True)
class TextPlan:
    """How the lines of files are cut into shards: by bytes, and each line to where its first byte is."""

    files: tuple[str, ...]  # names
    # bytes of each file; None where it is packed, or its storage cannot be sought in: a shard is then the file
    sizes: tuple[int | None, ...]
    shard_bytes: int  # of text, at most, but for the end of the last line
    align: int = 1  # shards begin at multiples of so many bytes

    @classmethod
    def of(cls, files: Sequence[str], shard_bytes: int, align: int = 1) -> tuple[TextPlan, Inputs]:
        """Plan; returns also the files as they are now.

        The plan's files are absolute, for workers have working directories of their own.

        Raises:
            ConfigError: standard input, which cannot be read by several.
            InputError: a file is missing.
        """
        sizes: list[int | None] = []
        stamps = []
        for name in files:
            if name == "-":
                raise ConfigError("standard input cannot be cut into shards: give a file, or leave execution=local")
            size, stamp = _state(name)
            sizes.append(None if packing_of(name) else size)
            stamps.append(stamp)
        found = tuple(name if is_remote(name) else str(Path(name).absolute()) for name in files)
        return cls(found, tuple(sizes), shard_bytes, align), Inputs(found, tuple(stamps))

    @classmethod
    def read(cls, folder: Path) -> TextPlan:
        """Read the plan of a stage from its manifest."""
        plan = read_json(folder / "manifest.json")["plan"]
        return cls(tuple(plan["files"]), tuple(plan["sizes"]), plan["shard_bytes"], plan["align"])

    @property
    def count(self) -> int:
        """How many shards there are."""
        return sum(map(self._shards, self.sizes))

    def _shards(self, size: int | None) -> int:
        return 1 if size is None else -(-size // self.shard_bytes)

    def shard(self, number: int) -> tuple[str, tuple[int, int] | None]:
        """Return a shard's file and span; the span is None for a whole file."""
        file, span = self.place(number)
        return self.files[file], span

    def place(self, number: int) -> tuple[int, tuple[int, int] | None]:
        """Return which file a shard is of, counted from 0, and its span; the span is None for a whole file."""
        for file, size in enumerate(self.sizes):
            shards = self._shards(size)
            if number < shards:
                if size is None:
                    return file, None
                begin, end = (size * place // shards // self.align * self.align for place in (number, number + 1))
                return file, (begin, size if number + 1 == shards else end)
            number -= shards
        raise IndexError(number)

    def shards_of(self, file: int) -> range:
        """Return the shards of a file, counted from 0."""
        first = sum(map(self._shards, self.sizes[:file]))
        return range(first, first + self._shards(self.sizes[file]))


def _state(name: str) -> tuple[int | None, list[Any]]:
    """Return the bytes of a file, if they are known, and what tells it from others of its name."""
    if is_remote(name):
        return remote_state(name)
    stamp = stamp_of(name)
    return stamp[1], stamp


def plan_identity(plan: TextPlan, inputs: Inputs) -> str:
    """Name what is read and how it is cut."""
    return fingerprint(inputs.stamps, plan.shard_bytes, plan.align)


# How far a stage is.


@dataclass(frozen=True)
class StageStatus:
    """How far a stage is.

    Attributes:
        name: of the stage.
        shards: how many there are.
        done: how many of them are done.
        running: shards that a process is at work on, as far as one can see.
        failed: shards that failed, and why.
        lines: of the shards that are done.
        rate: shards a second lately, 0 where it cannot be told.
        idle: seconds since one was done, where that is so long that nobody seems to be at work; else 0.
    """

    name: str
    shards: int
    done: int
    running: int
    failed: dict[int, str]
    lines: int
    rate: float
    idle: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None where that is not known, or nobody seems to be at work."""
        left = self.shards - self.done
        return 0.0 if not left else left / self.rate if self.rate and not self.idle else None

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.shards:,} shards done"]
        parts += [f"{self.running} running"] * bool(self.running) + [f"{len(self.failed)} failed"] * bool(self.failed)
        parts += [f"{self.lines:,} lines"] * bool(self.lines)
        if self.idle:
            parts.append(f"none for {_duration(self.idle)}: nobody seems to be at work, and the same command goes on")
        elif self.done < self.shards and self.rate:
            parts.append(f"{60 * self.rate:,.1f} shards a minute, {_duration(self.seconds_left or 0.0)} left")
        failed = [f"  shard {shard}: {why}" for shard, why in sorted(self.failed.items())[:3]]
        return "\n".join([f"{self.name}: {', '.join(parts)}", *failed])


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


_LATELY = 64  # shards that a rate is told from
_SILENT = 600.0  # seconds without a byte written after which a shard of another machine counts as given up
_PATIENCE = 60.0  # seconds, beside three times what the longest shard took, after which nobody seems to be at work


def _stages_of(output: str | Path) -> list[Path]:
    """Return the folders of the stages behind an output, in the order in which they began.

    Args:
        output: as given to the verb: a file, a pattern of files, or a folder of shards, or of unfinished work.
    """
    if "*" in Path(output).name:
        found = list(Path(output).parent.glob("manifest.json"))
    else:
        roots = [root for root in (Path(output), Path(f"{output}.work")) if root.is_dir()]
        found = [path for root in roots for path in root.rglob("manifest.json")]
    return [path.parent for path in sorted(set(found), key=lambda path: (path.stat().st_mtime_ns, path))]


def stage_status(folder: Path) -> StageStatus:
    """Tell how far a stage is, from its files."""
    manifest = read_json(folder / "manifest.json")
    done, failed, busy = [], {}, set()
    now = time.time()
    for entry in os.scandir(folder):
        name = entry.name
        if name.endswith(".failed.json"):
            failed[int(name.partition(".")[0])] = str(_read_or(folder / name, {}).get("error", "unknown"))
        elif name.endswith(".json") and name.partition(".")[0].isdecimal():
            told = _read_or(folder / name, {})
            if told.get("identity") == manifest["identity"]:
                done.append((told["begun"] + told["seconds"], told["begun"], int(told["counts"].get("lines", 0))))
        elif (unfinished := re.match(r"\.(\d{6,})\.", name)) and now - entry.stat().st_mtime < _SILENT:
            busy.add(int(unfinished[1]))
    latest = sorted(done)[-_LATELY:]
    spent = latest[-1][0] - min(begun for _, begun, _ in latest) if latest else 0.0
    lines = sum(count for _, _, count in done)
    since = now - max([folder.joinpath("manifest.json").stat().st_mtime, *(end for end, _, _ in done)])
    patience = _PATIENCE + 3 * max(end - begun for end, begun, _ in done) if done else _SILENT
    stopped = len(done) < int(manifest["shards"]) and not busy and since > patience
    return StageStatus(
        str(manifest["stage"]),
        int(manifest["shards"]),
        len(done),
        len(busy),
        failed,
        lines,
        len(latest) / spent if spent > 0 else 0.0,
        since if stopped else 0.0,
    )


def _read_or(path: Path, instead: dict[str, Any]) -> dict[str, Any]:
    """Read a JSON object that another process may be removing."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError):
        return instead


@dataclass(frozen=True)
class WorkStatus:
    """How far the stages behind an output are; iterates over them."""

    output: str
    stages: tuple[StageStatus, ...]

    def __iter__(self) -> Iterator[StageStatus]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __str__(self) -> str:
        there = f"{self.output} is {'' if Path(self.output).exists() else 'not '}there"
        if not Path(f"{self.output}.work").is_dir():  # of FOLDER/*.npy and of a run folder the shards tell all
            return "\n".join(map(str, self.stages)) or f"no unfinished work; {there}"
        begun = "" if self.stages or Path(self.output).exists() else ": its work has begun, and is not in shards yet"
        return "\n".join([*map(str, self.stages), there + begun])


def work_status(output: str | Path) -> WorkStatus:
    """Tell how far work is that is cut into shards, from any machine that sees its files.

    Args:
        output: as it was given to the verb, or a folder of unfinished work.
    """
    return WorkStatus(str(output), tuple(map(stage_status, _stages_of(output))))
