"""The field's vector files: word2vec's text (fastText, MUSE and, without the first line, GloVe write it too) and binary."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xswe.errors import InputError
from xswe.io.files import whole_file
from xswe.io.lines import OnError, Skipped, read_lines

logger = logging.getLogger(__name__)
_ROWS = 4096  # written at a time


def write_text(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's text format: a line ``units dimensions``, then ``token value …``; values read back exactly.

    Args:
        path: the file, written whole or not at all.
        tokens: n strings without blanks or line ends.
        vectors: float32 (n, d).
    """
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n")
        for start in range(0, len(tokens), _ROWS):
            rows = vectors[start : start + _ROWS].astype(str)  # the shortest decimal that is the same float32
            lines = (f"{token} {' '.join(row)}\n" for token, row in zip(tokens[start : start + _ROWS], rows, strict=True))
            stream.writelines(lines)


def write_binary(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's binary format: the same first line, then token, blank, d little-endian float32, line end."""
    with whole_file(path) as temporary, open(temporary, "wb") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n".encode())
        for token, row in zip(tokens, vectors.astype("<f4"), strict=True):
            stream.write(token.encode() + b" " + row.tobytes() + b"\n")


def read_text(path: Path, limit: int = 0, on_error: OnError = "raise") -> tuple[list[str], np.ndarray]:
    """Read vectors as text, plain or compressed, with or without a first line of numbers.

    Args:
        path: of word2vec's, fastText's, MUSE's, GloVe's or the reference implementation's format.
        limit: read at most this many, 0 for all.
        on_error: ``raise`` at a line that is not UTF-8, or ``skip`` it (some of fastText's files have such).

    Returns:
        The tokens, each once (the first of several stays), and float32 (tokens, d).

    Raises:
        InputError: with the line that has too few values, or one that is no finite number, or after which others are
            missing that the first line promises.
    """
    tokens: dict[str, int] = {}
    rows: list[np.ndarray] = []
    width = promised = number = 0
    skipped = Skipped()
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None:
            continue
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            continue
        width = width or len(fields) - 1
        token = " ".join(fields[: len(fields) - width])  # GloVe's larger tables have tokens with blanks
        if len(fields) <= width or width == 0:
            raise InputError(path, f"{len(fields) - 1} values, expected {width}", "mend or remove the line", number)
        if not token or token in tokens:
            continue
        try:
            row = np.array(fields[-width:], np.float32)
        except ValueError:
            raise InputError(path, "a value is no number", "mend or remove the line", number) from None
        if not np.isfinite(row).all():
            raise InputError(path, "a value is not finite", "mend or remove the line", number)
        tokens[token] = len(rows)
        rows.append(row)
        if len(rows) == limit:
            break
    if not rows:
        raise InputError(path, "no vector in it", "give a file of lines  token value value …")
    if number <= promised and len(rows) != limit:
        found = f"ends after {number - 1:,} of the {promised:,} vectors that its first line promises"
        raise InputError(path, found, "fetch it again, or correct that line", number)
    return list(tokens), np.stack(rows)


def read_binary(path: Path, limit: int = 0) -> tuple[list[str], np.ndarray]:
    """Read word2vec's binary format; see :func:`read_text`.

    Raises:
        InputError: the file is missing, ends early, or is of another format.
    """
    if not path.is_file():
        raise InputError(path, "no such file", "check the path")
    cure = "give a binary file of word2vec's format, or format=text"
    with open(path, "rb") as stream:
        head = stream.readline(64).split()
        if len(head) != 2 or not all(field.isdigit() for field in head):
            raise InputError(path, "does not begin with two numbers", cure)
        count, width = int(head[0]), int(head[1])
        room = path.stat().st_size - stream.tell()
        if not 0 < width <= room // 4 or count * (4 * width + 2) > room + count:
            raise InputError(path, f"too short for {count} vectors of {width} dimensions", cure)
        tokens: dict[str, int] = {}
        rows: list[np.ndarray] = []
        for token, row in _binary_rows(stream, min(count, limit or count), width, path, cure):
            if token and token not in tokens:
                tokens[token] = len(rows)
                rows.append(row)
    if not rows or not all(np.isfinite(row).all() for row in rows):
        raise InputError(path, "no vector in it, or values that are not finite", cure)
    return list(tokens), np.stack(rows)


def _binary_rows(
    stream: io.BufferedReader, count: int, width: int, path: Path, cure: str
) -> Iterator[tuple[str, np.ndarray]]:
    for place in range(count):
        token = bytearray()
        while (byte := stream.read(1)) not in (b" ", b""):
            if byte != b"\n":  # some writers end a vector with one, some do not
                token += byte
        values = stream.read(4 * width)
        if len(values) < 4 * width:
            raise InputError(path, f"ends within vector {place + 1}", cure)
        yield token.decode("utf-8", "replace"), np.frombuffer(values, "<f4")
