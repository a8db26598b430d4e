"""Reading and writing files of word vectors: word2vec, fastText, MUSE and GloVe."""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numba import njit

from xswe.errors import InputError
from xswe.io.files import whole_file
from xswe.io.lines import OnError, Skipped, left_out_of, open_binary, read_lines
from xswe.io.sources import without_packing
from xswe.progress import bar

logger = logging.getLogger(__name__)
_HINT = "fetch the file again"
_BLOCK = 4096  # rows written at a time


def write_text(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's text format: a line ``units dimensions``, then ``token value …``; values read back exactly.

    Tokens are n strings without blanks or line ends, vectors float32 (n, d); the file appears whole or not at all.
    """
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n")
        for start in range(0, len(tokens), _BLOCK):
            rows = vectors[start : start + _BLOCK].astype(str)  # the shortest decimal that is the same float32
            lines = (f"{token} {' '.join(row)}\n" for token, row in zip(tokens[start : start + _BLOCK], rows, strict=True))
            stream.writelines(lines)


def write_binary(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's binary format: the same first line, then per token: it, a blank, d little-endian float32, LF."""
    with whole_file(path) as temporary, open(temporary, "wb") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n".encode())
        for token, row in zip(tokens, vectors.astype("<f4"), strict=True):
            stream.write(token.encode() + b" " + row.tobytes() + b"\n")


def read_vectors(
    path: Path, limit: int | None = None, on_error: OnError = "raise", binary: bool | None = None
) -> tuple[list[str], np.ndarray]:
    """Read word vectors: the words, each once (the first occurrence counts), and float32 (words, d).

    A ``binary`` file (None: if its name ends in ``.bin``) is a fastText model, or in word2vec's binary format; any other
    is text, in the format of word2vec, fastText, MUSE, GloVe or the reference implementation: an optional line ``words
    dimensions``, then one line per word. Files may be compressed (``.gz .xz .bz2 .zst``), except fastText models. Only the
    first ``limit`` words are read, usually the most frequent; None or 0 for all. Lines that are not UTF-8, which some of
    fastText's files have, may be skipped; such words of binary files are left out.

    InputError: the file is missing or cut short; or, with the line: it has another number of values, or one that is not a
    finite number, or the file ends there before the number of words in its first line.
    """
    if binary is None:
        binary = without_packing(path).suffix == ".bin"
    if binary and _is_fasttext(path):
        return _read_fasttext(path, limit or None)
    words: dict[str, None] = {}
    matrix, skipped = np.zeros((0, 0), np.float32), Skipped()
    with bar(f"read {path.name}", unit="word") as progress:
        for word, vector in _binary(path, skipped) if binary else _text(path, on_error, skipped):
            if not word or word in words:
                continue
            if len(words) == len(matrix):
                matrix = _grown(matrix, len(vector))
            matrix[len(words)] = vector
            words[word] = None
            progress.update()
            if len(words) == limit:
                break
    if skipped.counts:
        logger.warning("%s%s", path, left_out_of(skipped.counts))
    if not words:
        raise InputError(path, "no vector in it", "give a file of lines  word value value …")
    if not np.isfinite(matrix[: len(words)]).all():
        raise InputError(path, "holds values that are not finite", _HINT)
    return list(words), np.ascontiguousarray(matrix[: len(words)])


def _grown(matrix: np.ndarray, width: int) -> np.ndarray:
    """Return the matrix with half as many rows more."""
    out = np.empty((max(8192, len(matrix) * 3 // 2), width), np.float32)
    out[: len(matrix)] = matrix.reshape(-1, width)
    return out


def _text(path: Path, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, np.ndarray]]:
    """Yield word and vector of each line; the header gives the number of dimensions, or else the first line has it."""
    width = promised = number = 0
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None:
            continue
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            continue
        width = width or len(fields) - 1
        if len(fields) <= width or width == 0:
            raise InputError(path, f"{len(fields) - 1} values, expected {width}", "mend or remove the line", number)
        try:
            vector = np.array(fields[-width:], np.float32)
        except ValueError:
            raise InputError(path, "a value is no number", "mend or remove the line", number) from None
        if not np.isfinite(vector).all():
            raise InputError(path, "a value is not finite", "mend or remove the line", number)
        # A word may contain blanks (GloVe 840B has some), so the numbers are the last columns.
        yield " ".join(fields[:-width]), vector
    if 0 < number <= promised:
        found = f"ends after {number - 1:,} of the {promised:,} vectors that its first line promises"
        raise InputError(path, found, "fetch it again, or correct that line", number)


def _binary(path: Path, skipped: Skipped) -> Iterator[tuple[str, np.ndarray]]:
    """Yield word and vector of word2vec's binary form: ``words dimensions`` and then ``word␠float32…`` each."""
    hint = "give a binary file of word2vec's format, or format=text"
    with open_binary(path) as stream:
        buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
        header = buffered.readline(100)
        if header.startswith(_FASTTEXT):
            raise InputError(path, "a compressed fastText model", "unpack it: its rows are read in place")
        fields = header.split()
        if len(fields) != 2 or not all(field.isdigit() for field in fields) or not int(fields[1]):
            raise InputError(path, "does not begin with two numbers", hint)
        count, width = map(int, fields)
        pending, place = b"", 0
        for k in range(count):
            while (blank := pending.find(b" ", place)) < 0 or len(pending) < blank + 1 + 4 * width:
                more = buffered.read(1 << 22)
                if not more:
                    raise InputError(path, f"ends after {k:,} of {count:,} vectors", hint)
                pending, place = pending[place:] + more, 0
            start = blank + 1
            word, place = pending[place:blank].lstrip(b"\n"), start + 4 * width  # some writers end vectors with LF
            try:
                yield word.decode("utf-8"), np.frombuffer(pending, "<f4", width, start)
            except UnicodeDecodeError:
                skipped.add("not UTF-8")


_FASTTEXT = struct.pack("<i", 793_712_314)
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"


class _Header(NamedTuple):
    """The header of a fastText file: dimensions, buckets of n-grams, lengths of the shortest and longest n-gram."""

    dim: int
    buckets: int
    shortest: int
    longest: int


def _is_fasttext(path: Path) -> bool:
    """Return True if a file is a fastText model."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == _FASTTEXT


def _read_fasttext(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Read the words of an unpacked model, most frequent first, and their vectors as in fastText, float32 (words, d).

    Only the rows needed are read from the disk. Words that the model does not list, for which fastText would average their
    n-grams, are lost, and words that are not UTF-8 are left out. InputError: the file is cut short, or is a quantised
    model.
    """
    with path.open("rb") as stream:
        try:
            header = _read_settings(stream)
            words, pruned = _read_words(stream)
            (quantised,) = struct.unpack("<?", stream.read(1))
            if quantised:
                raise InputError(path, "a quantised fastText model", "give the model it was made from, or its .vec file")
            rows, width = struct.unpack("<qq", stream.read(16))
        except (struct.error, IndexError, MemoryError):
            raise InputError(path, "a fastText model that ends too early", _HINT) from None
        start = stream.tell()
    if width != header.dim or rows < len(words) or path.stat().st_size < start + 4 * rows * width:
        raise InputError(path, f"a fastText model without its {rows:,} rows of {header.dim} numbers", _HINT)
    matrix = np.memmap(path, "<f4", "r", start, (rows, width))
    shortest, longest = (1, 0) if pruned == 0 else (header.shortest, header.longest)
    kept: list[str] = []
    out = np.empty((min(limit or len(words), len(words)), width), np.float32)
    for k, word in enumerate(words):
        if len(kept) == len(out):
            break
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            continue
        ids = np.zeros(0, np.int64)
        if word != _END_OF_SENTENCE:
            marked = np.frombuffer(b"<" + word + b">", np.uint8)
            ids = _buckets(marked, shortest, longest, header.buckets) + len(words)
        out[len(kept)] = matrix[np.concatenate([[k], ids])].mean(0)
        kept.append(text)
    return kept, out[: len(kept)]


def _read_settings(stream: BinaryIO) -> _Header:
    """Read magic, version and arguments."""
    _, version = struct.unpack("<ii", stream.read(8))
    dim, _, _, _, _, _, _, kind, buckets, shortest, longest, _ = struct.unpack("<12i", stream.read(48))
    stream.read(8)  # the sampling threshold
    # The oldest files state n-grams for supervised models, which do not use them.
    return _Header(dim, buckets, shortest, 0 if version == 11 and kind == _SUPERVISED else longest)


def _read_words(stream: BinaryIO) -> tuple[list[bytes], int]:
    """Read the dictionary: its words (without the labels after them), and its number of pruned n-grams."""
    size, words, _ = struct.unpack("<iii", stream.read(12))
    _, pruned = struct.unpack("<qq", stream.read(16))
    found, pending, place = [], b"", 0
    for _ in range(size):
        while (end := pending.find(b"\0", place)) < 0 or len(pending) < end + 10:
            more = stream.read(1 << 16)
            if not more:
                raise IndexError
            pending, place = pending[place:] + more, 0
        if pending[end + 9] == 0:
            found.append(pending[place:end])
        place = end + 10
    stream.seek(place - len(pending), 1)
    if pruned > 0:
        stream.seek(8 * pruned, 1)
    return found[:words], pruned


@njit(cache=True)
def _buckets(word: np.ndarray, shortest: int, longest: int, buckets: int) -> np.ndarray:
    """Return the buckets of a marked word's character n-grams, int64, by fastText's hash (FNV-1a on signed bytes)."""
    out = np.empty(len(word) * max(1, longest), np.int64)
    count = 0
    for i in range(len(word)):
        if word[i] & 0xC0 == 0x80:
            continue
        h, j, n = np.uint32(2166136261), i, 1
        while j < len(word) and n <= longest:
            first = True
            while j < len(word) and (first or word[j] & 0xC0 == 0x80):
                byte = np.uint32(word[j])
                if byte >= 128:
                    byte |= np.uint32(0xFFFFFF00)
                h = np.uint32((h ^ byte) * np.uint32(16777619))
                first = False
                j += 1
            if n >= shortest and not (n == 1 and (i == 0 or j == len(word))):
                out[count] = np.int64(h) % buckets
                count += 1
            n += 1
    return out[:count]
