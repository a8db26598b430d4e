"""Records of the sizes, times and checksums of written files, which reveal damage."""

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
    """Record the sizes, times and checksums of files in the record's folder or below, and the identity of their content.

    The record has a checksum of its own; ``checksum`` is that of the only file, if it is already known.
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
    """Return the record of :func:`write_record`; None if it is damaged, has another identity, or does not match the files.

    The checksum of a file is verified if its time differs from the record, or if ``read``.
    """
    try:  # os.read, because with 100,000 shards Python's file objects would take most of the time
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
    """Return the JSON object in a file that another process may be writing or removing; {} if there is none."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError):
        return {}


class Checksum:
    """A checksum that detects damaged and reordered bytes, many times faster than they can be read.

    The 64-bit numbers of each chunk of 1 MiB are multiplied by a factor that depends on their position and summed modulo
    2^64; the checksum is the CRC-32 of these sums. The factors are odd, so no change of a single number is missed.
    """

    def __init__(self) -> None:
        self._value = 0
        self._chunk, self._filled = np.zeros(_CHUNK, np.uint8), 0
        self._products = np.empty(_CHUNK // 8, np.uint64)

    def room(self) -> memoryview:
        """Return the buffer for the next bytes, up to the end of the chunk."""
        return self._chunk[self._filled :].data

    def added(self, size: int) -> None:
        """Record that ``size`` bytes were written to :meth:`room`."""
        self._filled += size
        if self._filled == _CHUNK:
            self._end_chunk()

    def add(self, data: Any) -> None:
        """Add an array, or bytes."""
        numbers = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        left = numbers.reshape(-1).view(np.uint8)
        while len(left):
            taken, left = np.split(left, [_CHUNK - self._filled])
            self._chunk[self._filled : self._filled + len(taken)] = taken
            self.added(len(taken))

    def finish(self) -> int:
        """Return the checksum of all bytes so far."""
        return self._updated() if self._filled else self._value

    def _end_chunk(self) -> None:
        self._value, self._filled = self._updated(), 0

    def _updated(self) -> int:
        used = -(-self._filled // 8)  # numbers in use; the last one is padded with zeros
        self._chunk[self._filled : 8 * used] = 0
        products = np.multiply(self._chunk[: 8 * used].view(np.uint64), _factors()[:used], out=self._products[:used])
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
