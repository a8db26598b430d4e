"""fastText's own model files (``.bin``): the vectors of their words, each the mean of its own row and its n-grams'."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numba import njit

from xswe.errors import InputError

MAGIC = struct.pack("<i", 793_712_314)
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"
_CURE = "fetch the file again"


class _Header(NamedTuple):
    """What the file says of itself: dimensions, buckets of n-grams, shortest and longest n-gram."""

    dim: int
    buckets: int
    shortest: int
    longest: int


def is_fasttext(path: Path) -> bool:
    """Tell whether a file is a fastText model."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == MAGIC


def read_fasttext(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Read the vectors of a model's words, as fastText gives them.

    The rows stay on the disk but for those that are needed. Words that the model does not list, to which fastText would
    give the mean of their n-grams, are not known afterwards.

    Args:
        path: the model, not compressed.
        limit: words to read, most frequent first; None for all.

    Returns:
        The words, and float32 (words, d). A word that is no UTF-8 is left out.

    Raises:
        InputError: the file is cut short, or is a quantised model.
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
            raise InputError(path, "a fastText model that ends too early", _CURE) from None
        start = stream.tell()
    if width != header.dim or rows < len(words) or path.stat().st_size < start + 4 * rows * width:
        raise InputError(path, f"a fastText model without its {rows:,} rows of {header.dim} numbers", _CURE)
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
    # The oldest files say n-grams of supervised models, which those do not use.
    return _Header(dim, buckets, shortest, 0 if version == 11 and kind == _SUPERVISED else longest)


def _read_words(stream: BinaryIO) -> tuple[list[bytes], int]:
    """Read the dictionary: its words (labels come after them and are left out), and its number of pruned n-grams."""
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
    """Return the buckets of a marked word's n-grams of characters, int64, by fastText's hash (FNV-1a, signed bytes)."""
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
