"""Shards of any size, computed and passed on in parts, with only a few parts in memory."""

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
Place = tuple[int, int]  # a shard, and a part of it, counted from 0
BEGINNING = 0, 0
Parts = Callable[[Place], Iterator[tuple[Place, Part]]]  # from a place on, each with the place after it
PARTS = ".parts"  # the suffix of such shards


class PartsJob(Job):
    """What a stage does to shards that are too large to be made at once."""

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
    """Write bytes and arrays, and behind them the checksum of all of the file before it."""
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
    """Let the block go through the parts of all shards, in their order, while others are being made.

    In this process they are made as they are asked for, on all threads, and not kept: the block keeps what it makes of
    them. Others leave the shards in the stage's folder. Of an array all are done first. What is yielded iterates over the
    parts from a place on, each with the place after it, and raises what :func:`xswe.work.run.run_shards` does.
    """
    if execution.alone:
        yield partial(_made, stage, threads or available_threads(), stage.job.open() if opened is None else opened)
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
    """Read the parts from a place on, as they are done; each is compared with its checksum before it is handed on."""
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
    """Raise ValueError unless the next checksum in the file is that of the bytes just read."""
    for piece in pieces:
        found.add(piece)
    if stream.read(4) != (end := found.finish().to_bytes(4, "little")):
        raise ValueError("damaged")
    found.add(end)
