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
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, InputError
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


@dataclass(frozen=True)
class Stage:
    """A piece of work that is cut into shards."""

    folder: Path  # where its shards are; every worker must see it under this name
    name: str  # a word for progress and messages
    count: int  # how many shards there are
    suffix: str  # of their files
    job: Job  # what is done
    identity: str  # a fingerprint of everything that decides the shards' bytes

    def path(self, shard: int) -> Path:
        """Return the (first) file of a shard."""
        return self.folder / f"{shard:06d}{self.suffix}"

    def side_car(self, shard: int) -> Path:
        """Return where it is told what a shard's files are."""
        return self.folder / f"{shard:06d}.json"

    def failure(self, shard: int) -> Path:
        """Return where it is told why a shard failed."""
        return self.folder / f"{shard:06d}.failed.json"

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
        about = {"stage": self.name, "identity": self.identity, "version": __version__}
        write_json(manifest, {**about, "shards": self.count, "suffix": self.suffix, **plan})

    @property
    def begun(self) -> int:
        """When the manifest was written, in nanoseconds."""
        return (self.folder / "manifest.json").stat().st_mtime_ns

    def counts(self, shard: int) -> dict[str, Any] | None:
        """Return the counts of a shard that is done, None if it is not, or its files are not what its side-car says."""
        told = sound_record(self.side_car(shard), self.identity)
        return None if told is None else dict(told["counts"])

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


def sound_record(path: Path, identity: str) -> dict[str, Any] | None:
    """Return what :func:`write_record` told, None if it is of another identity, or files are gone or not what it says.

    Files of the size and time that are told are trusted; others are read and compared with their checksum.
    """
    try:
        told = read_json(path)
        if told["identity"] != identity:
            return None
        for name, size, written, checksum in told["files"]:
            state = (path.parent / name).stat()
            if state.st_size != size:
                return None
            if state.st_mtime_ns != written and file_checksum(path.parent / name) != checksum:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(told)


def file_checksum(path: Path) -> int:
    """Return a checksum of a file that tells damage at the speed of reading: the CRC-32 of the sums of its stretches."""
    value, data = 0, np.zeros(_CHUNK, np.uint8)
    with open(path, "rb", buffering=0) as stream:
        while size := stream.readinto(data):  # type: ignore[arg-type]
            data[size:] = 0
            value = zlib.crc32(data.view(np.uint64).sum().tobytes(), value ^ size)
    return value


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
    def of(cls, files: Sequence[str], shard_bytes: int, align: int = 1) -> tuple[TextPlan, list[Any]]:
        """Plan; returns also what tells the files from others of their names.

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
        found = (name if is_remote(name) else str(Path(name).absolute()) for name in files)
        return cls(tuple(found), tuple(sizes), shard_bytes, align), stamps

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


def check_unchanged(files: Sequence[str], stamps: list[Any]) -> None:
    """Refuse files that are read a second time and are no longer what :meth:`TextPlan.of` saw.

    Raises:
        InputError: one was changed.
    """
    for name, stamp in zip(files, stamps, strict=True):
        if _state(name)[1] != stamp:
            raise InputError(name, "changed while it was read", "start again, with a file that stays")


def plan_identity(plan: TextPlan, stamps: list[Any]) -> str:
    """Name what is read and how it is cut."""
    return fingerprint(stamps, plan.shard_bytes, plan.align)


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
        elif name.startswith(".") and name[1:7].isdecimal() and now - entry.stat().st_mtime < _SILENT:
            busy.add(int(name[1:7]))
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
