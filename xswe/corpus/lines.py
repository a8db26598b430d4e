"""Blocks of lines from a byte stream, bounded in memory whatever the file holds."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from xswe.corpus.archives import damage
from xswe.corpus.streams import MAX_LINE_BYTES
from xswe.language.texts import Texts

BLOCK_LINES = 16_384
_BLOCK_BYTES = 16 << 20  # a block is never much larger, however long its lines are
_CHUNK = 1 << 20  # at most MAX_LINE_BYTES: a line inside of a chunk is then never over-long


class Lines:
    """The lines of a stream, many at a time and undecoded.

    Of a line above ``MAX_LINE_BYTES`` only that much and one byte more is kept, which is how its reader knows it.

    Args:
        stream: what to read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = np.zeros(0, np.uint8)
        self._ends = np.zeros(0, np.int64)  # one past the line feed of each whole line in the buffer
        self._run = 0  # bytes of the line that the next chunk goes on with
        self._begun = self._over = False
        self.damage: BaseException | None = None  # what ended the stream before its time

    def ready(self, most: int) -> int:
        """Read until ``most`` lines, or a block's worth of bytes, are there; return how many lines are."""
        if not self._over and len(self._ends) < most and len(self._buffer) < _BLOCK_BYTES:
            chunks, lines, size = [self._buffer.tobytes()], len(self._ends), len(self._buffer)
            while lines < most and size < _BLOCK_BYTES + (lines == 0) * MAX_LINE_BYTES:
                if not (chunk := self._read()):
                    break
                chunk = self._bounded(chunk)
                chunks.append(chunk)
                lines, size = lines + chunk.count(b"\n"), size + len(chunk)
            if self._over and self._run and self.damage is None:
                chunks.append(b"\n")
            self._buffer = np.frombuffer(b"".join(chunks), np.uint8)
            self._ends = np.flatnonzero(self._buffer == 0x0A) + 1
        return min(most, len(self._ends))

    def _read(self) -> bytes:
        """Read a chunk; the end, or damage, is remembered."""
        try:
            chunk = self._stream.read(_CHUNK)
        except damage() as error:
            self.damage, chunk = error, b""
        self._over = not chunk
        return chunk

    def take(self, lines: int) -> Texts:
        """Take the next lines, with their line feeds."""
        if not lines:
            return Texts(np.zeros(0, np.uint8), np.zeros(1, np.int64))
        end = int(self._ends[lines - 1])
        block = Texts(self._buffer[:end], np.concatenate([np.zeros(1, np.int64), self._ends[:lines]]))
        self._buffer, self._ends = self._buffer[end:], self._ends[lines:] - end
        return block

    def _bounded(self, chunk: bytes) -> bytes:
        """Cut off what is too much of the line that a chunk goes on with."""
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        feed = chunk.find(b"\n")
        head = len(chunk) if feed < 0 else feed
        room = max(0, MAX_LINE_BYTES + 1 - self._run)
        self._run = self._run + len(chunk) if feed < 0 else len(chunk) - chunk.rfind(b"\n") - 1
        return chunk if head <= room else chunk[:room] + chunk[head:]
