"""Checksums of file blocks, verified when a block is first read, and checksums of many texts at once.

The checksum of a block is the sum of its 32-bit words, each times its position counted from the end: it always changes
with a byte, with data overwritten by zeros, and with swapped words. It is computed at memory speed.
"""

from __future__ import annotations

import io
import math
import os
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.errors import ModelError
from xswe.io.compiler import LEAN, address_of, load_word, read_spans
from xswe.io.parallel import over_blocks
from xswe.io.ragged import HEADER, GrowingArray, Texts, bounds_of

BLOCK = 1 << 14  # bytes per checksum, roughly; small, as a search reads single rows of a large file
_BLOCKS_PER_READ = 64


class FileSums(NamedTuple):
    """The checksums of a file, or of the part after its header."""

    size: int  # bytes covered
    block: int  # bytes of a block, a multiple of 4; the last block may have fewer
    sums: np.ndarray  # uint64, one a block


def block_of(row: int) -> int:
    """Return the size of a block for rows of ``row`` bytes: whole rows, and a multiple of 4 bytes."""
    return 4 * row * max(1, BLOCK // (4 * row))


@njit(**LEAN)
def _sum_words(words: np.ndarray, size: int, out: np.ndarray) -> None:
    """Fill ``out`` with the checksum of each block of ``size`` words; the last block may have fewer."""
    for block in range(len(out)):
        part = words[block * size : (block + 1) * size]
        total = np.uint64(0)
        for i in range(len(part)):
            total += np.uint64(part[i]) * np.uint64(np.uint32(len(part) - i))
        out[block] = total


def block_sums(data: np.ndarray, block: int) -> np.ndarray:
    """Return the checksum of each ``block`` bytes (a multiple of 4) of uint8 (n,); the last word is padded with zeros."""
    out = np.empty(-(-len(data) // block), np.uint64)
    if len(data) % 4 or data.ctypes.data % 4:
        data, given = np.zeros(-(-len(data) // 4) * 4, np.uint8), data
        data[: len(given)] = given
    words = data.view(np.uint32)
    words.flags.writeable = False  # the function is compiled for read-only arrays only
    _sum_words(words, block // 4, out)
    return out


class BlockSummer:
    """Computes the block checksums of bytes that come in pieces.

    It continues from ``sums``, the checksums of the complete blocks of ``block`` bytes (a multiple of 4), and ``tail``,
    the uint8 bytes of the incomplete one.
    """

    def __init__(self, block: int, sums: np.ndarray | None = None, tail: np.ndarray | None = None) -> None:
        self._block = block
        self._sums = [np.zeros(0, np.uint64) if sums is None else sums]
        self._tail = np.zeros(0, np.uint8) if tail is None else tail

    def add(self, data: np.ndarray) -> None:
        """Add bytes, uint8 (n,)."""
        if len(self._tail):
            missing = self._block - len(self._tail)
            self._tail, data = np.concatenate([self._tail, data[:missing]]), data[missing:]
            if len(self._tail) < self._block:
                return
            self._sums.append(block_sums(self._tail, self._block))
        whole = len(data) - len(data) % self._block
        self._sums.append(block_sums(data[:whole], self._block))
        self._tail = data[whole:].copy()

    def sums(self) -> np.ndarray:
        """Return the checksums of all blocks so far, uint64."""
        return np.concatenate([*self._sums, block_sums(self._tail, self._block)])


def file_sums(path: Path, row: int = 1, first: int = 0, size: int | None = None) -> FileSums:
    """Return the checksums of ``size`` bytes (None: all) of a file, starting at ``first``, in blocks of whole rows."""
    size = path.stat().st_size - first if size is None else size
    summer = BlockSummer(block_of(row))
    with open(path, "rb", buffering=0) as stream:
        stream.seek(first)
        for start in range(0, size, _BLOCKS_PER_READ * BLOCK):
            data = np.zeros(min(_BLOCKS_PER_READ * BLOCK, size - start), np.uint8)
            _read_into(stream, data)
            summer.add(data)
    return FileSums(size, block_of(row), summer.sums())


class Blocks:
    """The blocks of a file, each verified against its checksum on first use; may be shared by threads.

    The first block begins at byte ``first``. ``advice`` tells the user in errors what to do about damage. Blocks that
    ``before``, of the same file when it was shorter, has verified are not verified again.
    """

    def __init__(self, path: Path, known: FileSums, first: int = 0, *, advice: str, before: Blocks | None = None) -> None:
        self.path, self.known = path, known
        self._first, self._advice = first, advice
        self._sound = np.zeros(len(known.sums), bool)
        if before is not None and before.known.block == known.block:
            common = min(len(self._sound), len(before._sound))
            self._sound[:common] = before._sound[:common] & (before.known.sums[:common] == known.sums[:common])
        self._pending = not self._sound.all()

    def check(self, blocks: np.ndarray | None = None, threads: int = 1) -> None:
        """Verify some blocks, or all, that were not verified before; a ModelError names the file and place of damage."""
        if not self._pending:
            return
        todo = np.flatnonzero(~self._sound) if blocks is None else blocks[~self._sound[blocks]]
        if not len(todo):
            return
        todo = np.unique(todo).astype(np.int64)
        damaged = over_blocks(lambda start, stop: self._compare(todo[start:stop]), len(todo), threads)
        for block in chain.from_iterable(damaged):
            raise ModelError(f"{self.path}: {self.place(block)} are not what was written; {self._advice}")
        self._pending = not self._sound.all()

    def check_rows(self, rows: np.ndarray | None, row: int, threads: int = 1) -> None:
        """Verify the blocks of some rows of ``row`` bytes, or of all; see :meth:`check`."""
        if self._pending:
            self.check(None if rows is None else rows // (self.known.block // row), threads)

    def damaged(self) -> list[int]:
        """Verify all blocks; return the damaged ones."""
        return self._compare(np.arange(len(self._sound)))

    def place(self, block: int) -> str:
        """Describe where in the file a block is."""
        start, stop = block * self.known.block, min((block + 1) * self.known.block, self.known.size)
        return f"bytes {self._first + start:,} to {self._first + stop - 1:,}"

    def _compare(self, blocks: np.ndarray) -> list[int]:
        """Verify blocks, given in ascending order; mark the sound ones, and return the damaged ones."""
        damaged: list[int] = []
        try:
            with open(self.path, "rb", buffering=0) as stream:
                for start in range(0, len(blocks), _BLOCKS_PER_READ):
                    batch = blocks[start : start + _BLOCKS_PER_READ]
                    same = self._read_sums(stream, batch) == self.known.sums[batch]
                    self._sound[batch] |= same
                    damaged += batch[~same].tolist()
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be read ({error.strerror}); {self._advice}") from None
        return damaged

    def _read_sums(self, stream: io.FileIO, blocks: np.ndarray) -> np.ndarray:
        """Read blocks and return their current checksums; bytes past the end of the file count as zeros."""
        size, starts = self.known.block, blocks * self.known.block
        places = bounds_of(np.minimum(size, self.known.size - starts))
        data = np.zeros(places[-1], np.uint8)
        if not (hasattr(os, "pread") and read_spans(stream.fileno(), starts + self._first, places, data)):
            for start, low, high in zip(starts.tolist(), places[:-1].tolist(), places[1:].tolist(), strict=True):
                stream.seek(self._first + start)
                _read_into(stream, data[low:high])
        return block_sums(data, size)  # only the last block may be shorter


def _read_into(stream: io.FileIO, data: np.ndarray) -> None:
    """Read until the array is full or the file ends."""
    done = 0
    while done < len(data) and (count := stream.readinto(data[done:])):  # type: ignore[arg-type]
        done += count


class SummedArray(GrowingArray):
    """A ``.npy`` file under construction, with the checksums of its blocks of rows.

    In addition to the arguments of :class:`GrowingArray`, ``known`` has the checksums of the kept rows, and ``advice``
    tells the user what to do if the last of them are damaged. The checksums of the first ``kept`` blocks do not change.
    """

    def __init__(
        self,
        path: Path,
        dtype: Any,
        size: int = 0,
        row: tuple[int, ...] = (),
        known: FileSums | None = None,
        *,
        advice: str = "",
    ) -> None:
        self._row_bytes = np.dtype(dtype).itemsize * math.prod(row)
        self._block = block_of(self._row_bytes) if known is None else known.block
        self._summer = BlockSummer(self._block)
        self.kept = 0
        if size and known is not None:
            self.kept = whole = size * self._row_bytes // self._block
            Blocks(path, known, HEADER, advice=advice).check(np.arange(whole, len(known.sums)))
            rest = size * self._row_bytes - whole * self._block
            tail = np.fromfile(path, np.uint8, rest, offset=HEADER + whole * self._block)
            self._summer = BlockSummer(self._block, known.sums[:whole], tail)
        super().__init__(path, dtype, size, row)

    def append(self, values: np.ndarray) -> None:
        """Add rows at the end."""
        values = np.ascontiguousarray(values, self._dtype)
        super().append(values)
        self._summer.add(values.reshape(-1).view(np.uint8))

    @property
    def known(self) -> FileSums:
        """The checksums of all rows so far."""
        return FileSums(self.size * self._row_bytes, self._block, self._summer.sums())


# Texts: CRC-32, eight bytes a step (Intel's "slicing by 8"); zlib would need a call per text.


def _tables() -> np.ndarray:
    out = np.zeros((8, 256), np.uint32)
    out[0] = np.arange(256)
    for _ in range(8):
        out[0] = (out[0] >> 1) ^ np.where(out[0] & 1, np.uint32(0xEDB88320), np.uint32(0))
    for k in range(1, 8):
        out[k] = (out[k - 1] >> 8) ^ out[0][out[k - 1] & 255]
    return out


_TABLES = _tables()


@njit(**LEAN)
def _crc32(data: np.ndarray, offsets: np.ndarray, tables: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(out)):
        place, end = offsets[row], offsets[row + 1]
        state = np.uint32(0xFFFFFFFF)
        while place + 8 <= end:
            word = load_word(address_of(data, place)) ^ np.uint64(state)
            state = np.uint32(0)
            for k in range(8):
                state ^= tables[7 - k, (word >> np.uint64(8 * k)) & np.uint64(255)]
            place += 8
        while place < end:
            state = (state >> np.uint32(8)) ^ tables[0, (state ^ np.uint32(data[place])) & np.uint32(255)]
            place += 1
        out[row] = ~state


def text_sums(texts: Texts) -> np.ndarray:
    """Return the CRC-32 of each text's UTF-8, uint32 (n,), as :func:`zlib.crc32` does."""
    out = np.empty(len(texts), np.uint32)
    _crc32(*texts.frozen, _TABLES, out)
    return out
