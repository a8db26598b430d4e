"""The lines of a text file as blocks of flat ``Texts``, without a Python string a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xswe.corpus.archives import damage
from xswe.corpus.streams import MAX_LINE_BYTES, damaged_archive, open_binary
from xswe.errors import InputError
from xswe.language.texts import Texts, concatenate

BLOCK_LINES, BLOCK_BYTES = 4096, 1 << 22
_CHUNK = 1 << 20


def read_blocks(path: str | Path, lines: int = BLOCK_LINES) -> Iterator[Texts]:
    """Iterate over the lines of a UTF-8 file.

    Only LF (or CR LF) ends a line; a byte-order mark at the start is dropped. Where a block ends depends on the text
    alone, not on how it is compressed or comes through a pipe.

    Args:
        path: plain, .gz, .xz, .bz2 or .zst; ``-`` for standard input.
        lines: lines a block, fewer at the end and where they are over 4 MiB together.

    Raises:
        InputError: the file is missing or damaged, or a line is not UTF-8 or of over 1 MiB.
    """
    ready = Texts.of([])
    for texts in _texts_of_chunks(path):
        ready = concatenate([ready, texts]) if len(ready) else texts
        while len(ready) >= lines or ready.offsets[-1] > BLOCK_BYTES:
            size = _lines_of_a_block(ready, lines)
            yield ready[:size]
            ready = ready[size:]
    while len(ready):
        size = _lines_of_a_block(ready, lines)
        yield ready[:size]
        ready = ready[size:]


def _lines_of_a_block(texts: Texts, lines: int) -> int:
    """Return how many lines make the next block: at most ``lines``, and only the first may pass the bound of bytes."""
    return max(1, min(lines, int(np.searchsorted(texts.offsets, BLOCK_BYTES, side="right")) - 1))


def _texts_of_chunks(path: str | Path) -> Iterator[Texts]:
    """Read chunks of a file and cut them into lines."""
    rest, line = b"", 1
    with open_binary(path) as stream:
        while True:
            try:
                chunk = stream.read(_CHUNK)
            except damage() as error:
                raise damaged_archive(path, error, line + rest.count(b"\n"), "fetch it again") from None
            if not chunk and not rest:
                return
            whole, newline, part = (rest + chunk).rpartition(b"\n")
            if not chunk:
                whole, newline, part = rest, b"\n", b""  # the last line needs no end
            if newline:
                whole = whole.removeprefix(b"\xef\xbb\xbf") if line == 1 else whole
                texts = _cut(whole + newline, path, line)
                line += len(texts)
                yield texts
            if len(part) > MAX_LINE_BYTES:
                raise _too_long(path, line)
            rest = part
            if not chunk:
                return


def _cut(data: bytes, path: str | Path, first: int) -> Texts:
    """Cut bytes that end with a newline into lines, the first of which has the number ``first``."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            found = f"not UTF-8 (byte {data[error.start]:#04x} at column {error.start - start + 1})"
            line = first + data.count(b"\n", 0, error.start)
            raise InputError(path, found, "convert the file with iconv", line) from None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    numbers = np.frombuffer(data, np.uint8)
    is_text = numbers != ord("\n")
    ends = np.flatnonzero(~is_text)
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends - np.arange(len(ends))
    texts = Texts(numbers[is_text], offsets)
    if (long := np.flatnonzero(texts.sizes > MAX_LINE_BYTES)).size:
        raise _too_long(path, first + int(long[0]))
    return texts


def _too_long(path: str | Path, line: int) -> InputError:
    return InputError(path, f"a line of over {MAX_LINE_BYTES >> 20} MiB", "cut the file into lines", line)
