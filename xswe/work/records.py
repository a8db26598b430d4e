"""Records of the sizes, times and checksums of written files, by which damage is noticed."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from xswe.io.files import read_json, whole_file

_CHUNK = 1 << 20


def write_record(path: Path, identity: str, files: Iterable[Path] = (), checksum: int | None = None, **more: Any) -> None:
    """Record the sizes, times and checksums of files in the same folder or below, and the identity of their content.

    The record has a checksum of its own; ``checksum`` is that of the only file, where it is known.
    """
    rows = []
    for file in files:
        state = file.stat()
        name = file.relative_to(path.parent).as_posix()
        rows.append([name, state.st_size, state.st_mtime_ns, file_checksum(file) if checksum is None else checksum])
    with whole_file(path, crowded=True) as temporary:
        record = json.dumps({"identity": identity, **more, "files": rows})
        temporary.write_text(f'{record[:-1]}, "checksum": {zlib.crc32(record.encode())}}}\n', encoding="utf-8")


def sound_record(path: str | Path, identity: str, read: bool = False) -> dict[str, Any] | None:
    """Return what :func:`write_record` wrote; None if it is damaged, of another identity, or does not match the files.

    Files of the size and time that it says are trusted, unless all are to be read; others are read and compared with their
    checksum.
    """
    try:  # of 100,000 shards: a file object of Python's takes longer than all else
        stream = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            record, _, own = os.read(stream, os.fstat(stream).st_size).rpartition(b', "checksum": ')
        finally:
            os.close(stream)
        record += b"}"
        if zlib.crc32(record) != int(own.rstrip(b"}\n")):
            return None
        found = json.loads(record)
        if found["identity"] != identity:
            return None
        folder = os.path.dirname(path)
        for name, size, written, checksum in found["files"]:
            file = os.path.join(folder, name)
            state = os.stat(file)
            if state.st_size != size:
                return None
            if (read or state.st_mtime_ns != written) and file_checksum(file) != checksum:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(found)


def read_if_there(path: Path) -> dict[str, Any]:
    """Read a JSON object that another process may be writing or removing; {} if there is none."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError):
        return {}


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

    def add(self, data: Any) -> None:
        """Take in an array, or bytes."""
        numbers = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        left = numbers.reshape(-1).view(np.uint8)
        while len(left):
            taken, left = np.split(left, [_CHUNK - self._filled])
            self._stretch[self._filled : self._filled + len(taken)] = taken
            self.added(len(taken))

    def finish(self) -> int:
        """Return the checksum of all bytes so far."""
        return self._after_stretch() if self._filled else self._value

    def _end_stretch(self) -> None:
        self._value, self._filled = self._after_stretch(), 0

    def _after_stretch(self) -> int:
        used = -(-self._filled // 8)  # numbers; those after them count as zeros
        self._stretch[self._filled : 8 * used] = 0
        products = np.multiply(self._stretch[: 8 * used].view(np.uint64), _factors()[:used], out=self._products[:used])
        return zlib.crc32(products.sum().tobytes(), self._value ^ self._filled)


@cache
def _factors() -> np.ndarray:
    return np.arange(_CHUNK // 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)


def file_checksum(path: str | Path) -> int:
    """Return the checksum of a file, see :class:`Checksum`."""
    found = Checksum()
    with open(path, "rb", buffering=0) as stream:
        while size := stream.readinto(found.room()):
            found.added(size)
    return found.finish()
