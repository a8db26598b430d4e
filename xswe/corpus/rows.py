"""Blocks of translation pairs as flat arrays: what every reader of a corpus hands on, and the tools to make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from xswe.corpus.hashing import hash_texts
from xswe.corpus.kernels import copy_spans, strip_spans
from xswe.corpus.negatives import Negatives
from xswe.language.texts import Texts

BLOCK_PAIRS = 8192  # of the readers that go pair by pair


@dataclass(frozen=True, eq=False)
class Rows:
    """Some translation pairs in the order of their file.

    Attributes:
        source: n texts without blanks at their ends and without line feeds; empty for a missing side.
        target: n texts.
        score: float32 (n,), the corpus's own score, NaN where it has none; or None.
        skipped: lines left out by reason, in place of an error.
        negatives: of each pair, where the file names any.
    """

    source: Texts
    target: Texts
    score: np.ndarray | None = None
    skipped: dict[str, int] = field(default_factory=dict)
    negatives: Negatives | None = None

    def __len__(self) -> int:
        return len(self.source)


def copied(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Texts:
    """Copy spans of a byte array to texts of their own."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    copy_spans(np.asarray(data), np.ascontiguousarray(starts), offsets, out)
    return Texts(out, offsets)


def stripped(texts: Texts) -> Texts:
    """Return texts without the blanks at their ends."""
    starts, ends = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    strip_spans(np.asarray(texts.data), np.asarray(texts.offsets), starts, ends)
    return copied(texts.data, starts, ends)


def one_line(texts: Texts) -> Texts:
    """Return texts with each line feed, carriage return and tab turned into a blank, and none at the ends."""
    data = np.asarray(texts.data)
    breaks = (data == 0x0A) | (data == 0x0D) | (data == 0x09)
    if breaks.any():
        texts = Texts(np.where(breaks, np.uint8(0x20), data), texts.offsets)
    return stripped(texts)


def text_hashes(texts: Texts) -> np.ndarray:
    """Hash each text to 64 bits, uint64 (n,); equal texts have equal hashes."""
    out = np.empty(len(texts), np.uint64)
    hash_texts(np.asarray(texts.data), np.asarray(texts.offsets), out)
    return out


def one_line_each(negatives: Negatives) -> Negatives:
    """Return negatives with each text in one line, as :func:`one_line` makes it, and without those that are then empty."""
    texts = one_line(negatives.texts[:])
    return Negatives(texts, negatives.bounds).where(texts.sizes > 0)


def pack(pairs: Iterable[tuple[str, ...]], negatives: bool = False) -> Iterator[Rows]:
    """Pack pairs of strings, a block at a time; with ``negatives``, what follows a pair are its negatives."""
    pairs = iter(pairs)
    while block := list(islice(pairs, BLOCK_PAIRS)):
        source, target = (one_line(Texts.of([pair[k] for pair in block])) for k in range(2))
        further = one_line_each(Negatives.of([pair[2:] for pair in block])) if negatives else None
        yield Rows(source, target, negatives=further)
