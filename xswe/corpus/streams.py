"""Lines of text files, plain or compressed, decoded strictly and blamed exactly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from xswe.corpus.archives import damage
from xswe.corpus.packing import packing_of, unpacked
from xswe.errors import InputError
from xswe.files import check_input

# Lines above this many bytes are no sentences; reading on regardless would let one bad file fill the memory.
MAX_LINE_BYTES = 1 << 20
OnError = Literal["raise", "skip"]
_SKIPPABLE = "or set corpus.on_error=skip to leave it out and count it"


@dataclass
class Skipped:
    """What ``on_error="skip"`` left out, counted by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str) -> None:
        """Count one more."""
        self.counts[reason] = self.counts.get(reason, 0) + 1


@contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressing ``.gz``, ``.xz``, ``.bz2`` and ``.zst`` by their suffix; ``-`` is stdin."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    path = Path(path)
    check_input(path)
    with path.open("rb") as raw:
        yield unpacked(raw, packing_of(path))


def read_lines(
    path: str | Path, *, on_error: OnError = "raise", skipped: Skipped | None = None
) -> Iterator[tuple[int, str | None]]:
    """Iterate over (line number from 1, text without its line end) of a UTF-8 file.

    Only LF (or CR LF) ends a line: U+2028 and its like stay inside. A byte-order mark is dropped.

    Args:
        path: plain, .gz, .xz, .bz2 or .zst; ``-`` for standard input.
        on_error: ``raise`` an InputError at a line that is not UTF-8 or too long, or ``skip`` it: the text is then
            None, so that line-aligned files stay aligned. A truncated archive ends the file after its last whole line.
        skipped: counts what was skipped.

    Raises:
        InputError: the file is missing, or (unless skipping) a line or the archive is damaged.
    """
    skipped = skipped if skipped is not None else Skipped()
    number = 0
    with open_binary(path) as stream:
        while True:
            try:
                raw = stream.readline(MAX_LINE_BYTES + 1)
                if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    _skip_rest_of_line(stream)
            except damage() as error:
                if on_error == "raise":
                    raise damaged_archive(path, error, number + 1) from None
                skipped.add("damaged archive")
                return
            if not raw:
                return
            number += 1
            yield number, decode_line(raw, path, number, on_error, skipped)


def damaged_archive(
    path: str | Path, error: BaseException, number: int, cure: str = f"fetch it again, {_SKIPPABLE}"
) -> InputError:
    """The error of a compressed file that ends, or breaks, before line ``number`` is whole."""
    found = f"the archive is truncated or damaged ({error})"
    return InputError(path, found, cure, number)


def too_few_columns(path: str | Path, found: int, columns: tuple[int, ...], number: int) -> InputError:
    """The error of a line without the columns asked for."""
    problem = f"{found} tab-separated columns where columns {columns} need {max(columns) + 1}"
    cure = "set corpus.columns (counted from 0), or corpus.on_error=skip to leave such lines out"
    return InputError(path, problem, cure, number)


def unequal_sides(short: str | Path, long: str | Path, number: int) -> InputError:
    """The error of two line-aligned files of which one ends before the other's line ``number``."""
    cure = "the two files must be aligned line by line: fetch both again, or set corpus.on_error=skip"
    return InputError(short, f"ends before line {number}, where {long} goes on", cure, number)


def decode_line(raw: bytes, path: str | Path, number: int, on_error: OnError, skipped: Skipped) -> str | None:
    """Decode one line with its line end, or complain of it."""
    if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
        if on_error == "raise":
            raise InputError(
                path, f"a line of over {MAX_LINE_BYTES >> 20} MiB", f"cut the file into lines, {_SKIPPABLE}", number
            )
        skipped.add("line too long")
        return None
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        if on_error == "raise":
            found = f"not UTF-8 (byte {raw[error.start]:#04x} at column {error.start + 1})"
            raise InputError(path, found, f"convert the file with iconv, {_SKIPPABLE}", number) from None
        skipped.add("not UTF-8")
        return None
    if "\0" in text:
        if on_error == "raise":
            found = "a NUL byte (UTF-16 text, or no text at all)"
            raise InputError(path, found, f"convert the file to UTF-8 with iconv, {_SKIPPABLE}", number)
        skipped.add("NUL byte")
        return None
    return text


def _skip_rest_of_line(stream: BinaryIO) -> None:
    while True:
        rest = stream.readline(MAX_LINE_BYTES)
        if not rest or rest.endswith(b"\n"):
            return
