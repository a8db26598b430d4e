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
    """How far a stage is.

    Attributes:
        name: of the stage.
        shards: how many there are.
        done: how many of them are done.
        running: shards that a process is at work on, as far as one can see.
        failed: shards that failed, and why.
        lines: of the shards that are done.
        rate: shards a second lately, 0 where it is not known.
        idle: seconds since one was done, where that is so long that nobody seems to be at work; else 0.
        missing: shards that are neither done nor under way, as batch queues take numbers: ``3,7-9``.
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
        """Seconds that the rest takes at this rate; None where that is not known, or nobody seems to be at work."""
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
    """Cut a long list off between two of its entries."""
    return listed if len(listed) <= _SHOWN else f"{listed[:_SHOWN].rpartition(',')[0]},…"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


_SHOWN = 60  # characters of the list of missing shards
_LATELY = 64  # shards that a rate is taken from
_SILENT = 600.0  # seconds without a byte written after which a shard of another machine counts as given up
_PATIENCE = 60.0  # seconds, beside three times what the longest shard took, after which nobody seems to be at work


def _stages_of(output: str | Path) -> list[Path]:
    """Return the folders of the stages behind an output, as given to the verb, in the order in which they began."""
    if "*" in Path(output).name:
        found = list(Path(output).parent.glob("manifest.json"))
    else:
        roots = [root for root in (Path(output), Path(f"{output}.work")) if root.is_dir()]
        found = [path for root in roots for path in root.rglob("manifest.json")]
    return [path.parent for path in sorted(set(found), key=lambda path: (path.stat().st_mtime_ns, path))]


def stage_status(folder: Path) -> StageStatus:
    """Return how far a stage is, from its files."""
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
        ranges(set(range(int(manifest["shards"]))) - there - busy),
    )


@dataclass(frozen=True)
class WorkStatus(Result[StageStatus], entries="stages", row=tuple(field.name for field in fields(StageStatus))):
    """How far the stages behind an output are; a sequence of :class:`StageStatus`."""

    output: str
    stages: tuple[StageStatus, ...]

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Return a row a stage."""
        for one in self.stages:
            yield tuple(str(value) if isinstance(value := getattr(one, name), dict) else value for name in self.columns())

    def __str__(self) -> str:
        there = f"{self.output} is {'' if Path(self.output).exists() else 'not '}there"
        if not Path(f"{self.output}.work").is_dir():  # of FOLDER/*.npy and of a run folder the shards tell all
            return "\n".join(map(str, self.stages)) or f"no unfinished work; {there}"
        begun = "" if self.stages or Path(self.output).exists() else ": its work has begun, and is not in shards yet"
        return "\n".join([*map(str, self.stages), there + begun])


def work_status(output: str | Path) -> WorkStatus:
    """Return the progress of sharded work, on any machine that shares its files.

    Args:
        output: as it was given to the verb, or a folder of unfinished work.
    """
    return WorkStatus(str(output), tuple(map(stage_status, _stages_of(output))))
