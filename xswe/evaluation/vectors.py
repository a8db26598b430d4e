"""Word vectors in the files that other projects publish: word2vec (text and binary), fastText, MUSE, GloVe."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from xswe.corpus.packing import without_packing
from xswe.corpus.streams import open_binary
from xswe.errors import InputError
from xswe.evaluation.fasttext import MAGIC, is_fasttext, read_fasttext
from xswe.progress import bar

logger = logging.getLogger(__name__)
_CURE = "fetch the file again"


def read_vectors(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Read word vectors.

    A file whose name ends in ``.bin`` is a fastText model or word2vec's binary form; any other is text: an optional line
    ``words dimensions``, then a line a word. Files may be compressed (``.gz .xz .bz2 .zst``), but for fastText models.

    Args:
        path: the file.
        limit: words to read, from the start, where such files have the frequent ones; None for all.

    Returns:
        The words, each once, and float32 (words, d). A word that is no UTF-8 is left out.

    Raises:
        InputError: the file is missing, cut short, or a line has another number of columns.
    """
    if is_fasttext(path):
        return read_fasttext(path, limit)
    bare = without_packing(path)
    words: list[str] = []
    matrix, index, unreadable = np.zeros((0, 0), np.float32), set(), 0
    with open_binary(path) as stream, bar(f"read {path.name}", unit="word") as progress:
        rows = _binary(stream, path) if bare.suffix == ".bin" else _text(stream, path)
        for raw, vector in rows:
            try:
                word = raw.decode("utf-8")
            except UnicodeDecodeError:
                unreadable += 1
                continue
            if word in index:
                continue
            if len(words) == len(matrix):
                matrix = _grown(matrix, len(vector))
            matrix[len(words)] = vector
            index.add(word)
            words.append(word)
            progress.update()
            if len(words) == limit:
                break
    if not words:
        raise InputError(path, "holds no word vector", _CURE)
    if unreadable:
        logger.warning("%s: %d words are no UTF-8 and were left out", path, unreadable)
    return words, np.ascontiguousarray(matrix[: len(words)])


def _grown(matrix: np.ndarray, width: int) -> np.ndarray:
    """Return the matrix with room for half as many rows again."""
    out = np.empty((max(8192, len(matrix) * 3 // 2), width), np.float32)
    out[: len(matrix)] = matrix.reshape(-1, width)
    return out


def _text(stream: BinaryIO, path: Path) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield word and vector of each line; the width is that of the header, or of the first line."""
    width = 0
    for number, line in enumerate(stream, 1):
        fields = line.rstrip().split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            width = int(fields[1])
            continue
        width = width or len(fields) - 1
        # A word may itself hold blanks (GloVe 840B has some): the numbers are the last columns.
        if width < 1 or len(fields) <= width:
            raise InputError(path, f"{len(fields) - 1} numbers where {max(1, width)} are expected", _CURE, number)
        try:
            vector = np.array(fields[-width:], np.float32)
        except ValueError:
            raise InputError(path, "a column is no number", _CURE, number) from None
        yield b" ".join(fields[:-width]), vector


def _binary(stream: BinaryIO, path: Path) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield word and vector of word2vec's binary form: ``words dimensions`` and then ``word␠float32…`` each."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    header = buffered.readline(100)
    if header.startswith(MAGIC):
        raise InputError(path, "a compressed fastText model", "unpack it: its rows are read from where they lie")
    fields = header.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise InputError(path, "does not start with the number of words and dimensions", _CURE)
    count, width = map(int, fields)
    pending, place = b"", 0
    for k in range(count):
        while (blank := pending.find(b" ", place)) < 0 or len(pending) < blank + 1 + 4 * width:
            more = buffered.read(1 << 22)
            if not more:
                raise InputError(path, f"ends after {k:,} of {count:,} words", _CURE)
            pending, place = pending[place:] + more, 0
        start = blank + 1
        yield pending[place:blank].lstrip(b"\n"), np.frombuffer(pending, "<f4", width, start)
        place = start + 4 * width
