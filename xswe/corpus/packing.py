"""Packed files: the suffixes that are known, and the bytes within. All parts that meet packed files ask here."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from xswe.errors import DependencyError

PACKED = (".gz", ".xz", ".bz2", ".zst", ".zstd")


def packing_of(path: str | Path) -> str:
    """Return the suffix that tells how a file is packed, in lower case, or "" for one that is not."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in PACKED else ""


def without_packing(path: str | Path) -> Path:
    """Return a file's path without the suffix that tells how it is packed."""
    path = Path(path)
    return path.with_suffix("") if packing_of(path) else path


def unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    """Return a stream of the bytes within a packed stream.

    Args:
        raw: the packed bytes; the caller closes it.
        packing: one of :data:`PACKED`, or "" for bytes that are not packed.

    Raises:
        DependencyError: for zstd, when its library is not installed.
    """
    if packing == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if packing == ".xz":
        return cast(BinaryIO, lzma.LZMAFile(raw))
    if packing == ".bz2":
        return cast(BinaryIO, bz2.BZ2File(raw))
    return _open_zstd(raw) if packing else raw


def _open_zstd(raw: BinaryIO) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise DependencyError("zstandard", "train", "reading .zst files") from None
    return io.BufferedReader(_Zstd(raw, zstandard.ZstdDecompressor().decompressobj), 1 << 17)


class _Zstd(io.RawIOBase):
    """Decompress zstd frames one after the other, and notice a file cut short (the library's own reader does not)."""

    def __init__(self, raw: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._raw, self._new_frame = raw, new_frame
        self._frame = new_frame()
        self._begun = False
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with unpacked bytes; returns how many, 0 at the end."""
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame, self._begun = self._new_frame(), False
            packed = packed or self._raw.read(1 << 17)
            if not packed:
                if self._begun:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            self._begun = True
            self._ready = self._frame.decompress(packed)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
