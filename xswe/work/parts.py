"""Shards of any size, computed and passed on in parts, few of which are in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xswe.io.files import whole_file
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import forget
from xswe.work.config import ExecutionConfig
from xswe.work.records import Checksum
from xswe.work.run import shards_ahead
from xswe.work.stage import CHECKSUM, Job, Stage

Part = Mapping[str, np.ndarray]
Place = tuple[int, int]  # a shard and one of its parts, both from 0
BEGINNING = 0, 0
Parts = Callable[[Place], Iterator[tuple[Place, Part]]]  # the parts from a place on, each with the next place
PARTS = ".parts"  # suffix of these shards


class PartsJob(Job):
    """The work on shards that are too large to be made at once."""

    def parts(self, opened: Any, shard: int) -> Iterator[Callable[[], Part]]:
        """Yield functions that compute the parts of a shard in order, on any thread; the first array has a row per line."""
        raise NotImplementedError

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the parts of a shard, one after the other."""
        lines, found = 0, Checksum()
        with whole_file(output, crowded=True) as temporary, temporary.open("wb") as stream:
            for make in self.parts(opened, shard):
                part = {name: np.ascontiguousarray(array) for name, array in make().items()}
                _write(stream, found, [_header(part)])
                _write(stream, found, part.values())
                lines += len(next(iter(part.values())))
        return {"lines": lines, CHECKSUM: found.finish()}


def _header(part: Part) -> bytes:
    return json.dumps({name: [array.dtype.str, array.shape] for name, array in part.items()}).encode() + b"\n"


def _write(stream: BinaryIO, found: Checksum, pieces: Iterable[Any]) -> None:
    """Write bytes and arrays, followed by the checksum of the file up to there."""
    for piece in pieces:
        stream.write(piece)
        found.add(piece)
    end = found.finish().to_bytes(4, "little")
    stream.write(end)
    found.add(end)


@contextmanager
def parts_ahead(
    stage: Stage, execution: ExecutionConfig, threads: int | None = None, opened: Any = None, **plan: Any
) -> Iterator[Parts]:
    """Let the block consume the parts of all shards in order, while later ones are being made.

    In one process parts are made on demand, on all threads, and not saved: the block saves what it makes of them. Other
    executors save the shards in the stage's folder; with an array all are done first. The yielded function iterates over
    the parts from a place on, each with the next place; it raises the errors of :func:`xswe.work.run.run_shards`.
    """
    if execution.alone:
        yield partial(_made, stage, available_threads(threads), stage.job.open() if opened is None else opened)
        return
    stage.begin(**plan)
    with shards_ahead(stage, execution, threads, opened) as wait:
        yield partial(_read, stage, wait)


def _made(stage: Stage, threads: int, opened: Any, begin: Place) -> Iterator[tuple[Place, Part]]:
    """Make the parts from a place on."""
    job = stage.job
    assert isinstance(job, PartsJob)

    def todo() -> Iterator[tuple[Place, Callable[[], Part]]]:
        for shard in range(begin[0], stage.count):
            for number, make in enumerate(job.parts(opened, shard), 1):
                if (shard, number) > begin:
                    yield (shard, number), make

    yield from in_order(lambda part: (part[0], part[1]()), todo(), threads)
    stage.inputs.check_unchanged()


def _read(stage: Stage, wait: Callable[[int], None], begin: Place) -> Iterator[tuple[Place, Part]]:
    """Read the finished parts from a place on; the checksum of each is verified before it is yielded."""
    for shard in range(begin[0], stage.count):
        wait(shard)
        number, found = 0, Checksum()
        try:
            with stage.path(shard).open("rb") as stream:
                while line := stream.readline():
                    _check(stream, found, line)
                    part, number = {}, number + 1
                    for name, (kind, shape) in json.loads(line).items():
                        part[name] = np.empty(shape, kind)
                        stream.readinto(part[name].reshape(-1).view(np.uint8).data)
                    _check(stream, found, *part.values())
                    if (shard, number) > begin:
                        yield (shard, number), part
            if stage.checksum(shard) != found.finish():
                raise ValueError("parts are missing")
        except (OSError, ValueError) as error:
            raise stage.damaged(shard) from error
        forget(stage.path(shard))


def _check(stream: BinaryIO, found: Checksum, *pieces: Any) -> None:
    """Raise ValueError unless the next checksum in the file matches the bytes just read."""
    for piece in pieces:
        found.add(piece)
    if stream.read(4) != (end := found.finish().to_bytes(4, "little")):
        raise ValueError("damaged")
    found.add(end)
