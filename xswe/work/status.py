"""Progress of work in shards, read from its files on any machine that shares them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from xswe.io.files import read_json
from xswe.io.results import Result
from xswe.work.plan import ranges
from xswe.work.records import read_if_there


@dataclass(frozen=True)
class StageStatus:
    """Progress of a stage.

    Attributes:
        name: of the stage.
        shards: number of shards.
        done: number of finished shards.
        running: number of shards that processes seem to be working on.
        failed: numbers of failed shards, and why they failed.
        lines: number of lines of the finished shards.
        rate: recent shards per second, 0 if unknown.
        idle: seconds since the last shard was finished, if nobody seems to be at work; else 0.
        missing: shards that are neither finished nor running, in the notation of batch queues: ``3,7-9``.
    """

    name: str
    shards: int
    done: int
    running: int
    failed: dict[int, str]
    lines: int
    rate: float
    idle: float = 0.0
    missing: str = ""

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at this rate; None if it is unknown or nobody seems to be at work."""
        left = self.shards - self.done
        return 0.0 if not left else left / self.rate if self.rate and not self.idle else None

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.shards:,} shards done"]
        parts += [f"{self.running} running"] * bool(self.running) + [f"{len(self.failed)} failed"] * bool(self.failed)
        parts += [f"{self.lines:,} lines"] * bool(self.lines)
        if self.idle:
            parts.append(f"none for {_duration(self.idle)}: nobody seems to be at work, and the same command goes on")
            parts.append(f"missing: {_cut(self.missing)}")
        elif self.done < self.shards and self.rate:
            parts.append(f"{60 * self.rate:,.1f} shards a minute, {_duration(self.seconds_left or 0.0)} left")
        failed = [f"  shard {shard}: {why}" for shard, why in sorted(self.failed.items())[:3]]
        return "\n".join([f"{self.name}: {', '.join(parts)}", *failed])


def _cut(listed: str) -> str:
    """Shorten a long list between two entries."""
    return listed if len(listed) <= _MAX_LIST else f"{listed[:_MAX_LIST].rpartition(',')[0]},…"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


_MAX_LIST = 60  # characters of the list of missing shards
_RECENT = 64  # latest shards, from which the rate is estimated
_ABANDONED = 600.0  # seconds without a byte written after which a shard counts as abandoned
_PATIENCE = 60.0  # seconds, plus three times those of the slowest shard, after which nobody seems to be at work


def _stages_of(output: str | Path) -> list[Path]:
    """Return the folders of the stages of an output, as given to the verb, in the order in which they began."""
    if "*" in Path(output).name:
        found = list(Path(output).parent.glob("manifest.json"))
    else:
        roots = [root for root in (Path(output), Path(f"{output}.work")) if root.is_dir()]
        found = [path for root in roots for path in root.rglob("manifest.json")]
    return [path.parent for path in sorted(set(found), key=lambda path: (path.stat().st_mtime_ns, path))]


def stage_status(folder: Path) -> StageStatus:
    """Return the progress of a stage, read from its files."""
    manifest = read_json(folder / "manifest.json")
    done, failed, there, busy = [], {}, set[int](), set[int]()
    now = time.time()
    for entry in os.scandir(folder):
        name = entry.name
        if name.endswith(".failed.json"):
            failed[int(name.partition(".")[0])] = str(read_if_there(folder / name).get("error", "unknown"))
        elif name.endswith(".json") and name.partition(".")[0].isdecimal():
            record = read_if_there(folder / name)
            if record.get("identity") == manifest["identity"]:
                there.add(int(name.partition(".")[0]))
                done.append((record["begun"] + record["seconds"], record["begun"], int(record["counts"].get("lines", 0))))
        elif (unfinished := re.match(r"\.(\d{6,})\.", name)) and now - entry.stat().st_mtime < _ABANDONED:
            busy.add(int(unfinished[1]))
    latest = sorted(done)[-_RECENT:]
    spent = latest[-1][0] - min(begun for _, begun, _ in latest) if latest else 0.0
    lines = sum(count for _, _, count in done)
    since = now - max([folder.joinpath("manifest.json").stat().st_mtime, *(end for end, _, _ in done)])
    patience = _PATIENCE + 3 * max(end - begun for end, begun, _ in done) if done else _ABANDONED
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
        ranges(set(range(int(manifest["shards"]))) - there - busy),
    )


@dataclass(frozen=True)
class WorkStatus(Result[StageStatus], entries="stages", row=tuple(field.name for field in fields(StageStatus))):
    """Progress of the stages of an output; a sequence of :class:`StageStatus`."""

    output: str
    stages: tuple[StageStatus, ...]

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Yield one row per stage."""
        for one in self.stages:
            yield tuple(str(value) if isinstance(value := getattr(one, name), dict) else value for name in self.columns())

    def __str__(self) -> str:
        there = f"{self.output} is {'' if Path(self.output).exists() else 'not '}there"
        if not Path(
            f"{self.output}.work"
        ).is_dir():  # shards in FOLDER/*.npy or in a run folder: the output is not a single file
            return "\n".join(map(str, self.stages)) or f"no unfinished work; {there}"
        begun = "" if self.stages or Path(self.output).exists() else ": its work has begun, and is not in shards yet"
        return "\n".join([*map(str, self.stages), there + begun])


def work_status(output: str | Path) -> WorkStatus:
    """Return the progress of sharded work, on any machine that shares its files.

    Args:
        output: as given to the verb, or a folder of unfinished work.
    """
    return WorkStatus(str(output), tuple(map(stage_status, _stages_of(output))))
