"""Blocks of pairs as they are read: both sides, scores, and hard negatives.

Hard negatives are texts that say something else than the source of their pair; a pair may have any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from xswe.bitext.kernels import copy_spans, strip_spans
from xswe.io.ragged import Bags, Texts, TextView, bounds_of, concatenate, read_only


@dataclass(frozen=True, eq=False)
class Negatives:
    """The negatives of some pairs."""

    texts: Texts | TextView  # m texts, pair by pair; none of them empty
    bounds: np.ndarray  # int64 (n + 1,), pair ``i`` has the texts ``bounds[i]`` to ``bounds[i + 1]``

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]]) -> Negatives:
        """Flatten one list of texts per pair, without empty texts."""
        kept = [[text for text in one if text] for one in lists]
        return cls(Texts.of([text for one in kept for text in one]), bounds_of([len(one) for one in kept]))

    @classmethod
    def of_columns(cls, columns: Sequence[Texts]) -> Negatives:
        """Take one text per pair from each column, without empty texts."""
        size, texts = len(columns[0]), concatenate(columns)
        places = np.arange(len(columns) * size).reshape(len(columns), size).T.ravel()
        is_filled = np.asarray(texts.sizes)[places] > 0
        counts = is_filled.reshape(size, len(columns)).sum(1)
        return cls(texts.take(places[is_filled]), bounds_of(counts))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def counts(self) -> np.ndarray:
        """Negatives of each pair, int64 (n,)."""
        return np.diff(self.bounds)

    def places(self, rows: np.ndarray) -> Bags:
        """Return the indices of the texts of the pairs ``rows``, as bags."""
        return Bags(np.arange(int(self.bounds[-1])), np.asarray(self.bounds)).take(rows)

    def take(self, rows: np.ndarray) -> Negatives:
        """Return the negatives of the pairs ``rows``, as a copy."""
        found = self.places(rows)
        return Negatives(self.texts.take(found.ids), found.offsets)

    def view(self, rows: np.ndarray) -> Negatives:
        """Return the negatives of ascending pairs ``rows``, without copying the texts."""
        assert isinstance(self.texts, Texts)
        found = self.places(rows)
        return Negatives(TextView([(self.texts, found.ids)]), found.offsets)

    def where(self, kept: np.ndarray) -> Negatives:
        """Return only the texts that are ``kept``, bool (m,)."""
        return Negatives(self.texts.take(np.flatnonzero(kept)), bounds_of(kept)[self.bounds])

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.negatives.*.npy`` into ``folder``."""
        self.texts[:].save(folder, f"{name}.negatives")
        np.save(folder / f"{name}.negatives.counts.npy", self.counts.astype(np.int32))

    @classmethod
    def open(cls, folder: Path, name: str) -> Negatives | None:
        """Memory-map what :meth:`save` wrote; None if there is nothing, or no pair has any."""
        file = folder / f"{name}.negatives.counts.npy"
        if not file.is_file():
            return None
        bounds = bounds_of(np.load(file, mmap_mode="r"))
        return cls(Texts.open(folder, f"{name}.negatives"), bounds) if bounds[-1] else None


# Blocks of translation pairs as flat arrays, which all readers of a corpus yield, and tools to make them.


BLOCK_PAIRS = 8192  # of readers that go pair by pair


@dataclass(frozen=True, eq=False)
class Rows:
    """Consecutive translation pairs of a file."""

    source: Texts  # n texts without blanks at their ends and without line feeds; empty for a missing side
    target: Texts  # n texts
    score: np.ndarray | None = None  # float32 (n,), the corpus's own score, NaN if a pair has none; or None
    skipped: dict[str, int] = field(default_factory=dict)  # number of lines left out instead of an error, by reason
    negatives: Negatives | None = None  # of each pair, if the file has any

    def __len__(self) -> int:
        return len(self.source)


def copied(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Texts:
    """Copy spans of a byte array to new texts."""
    offsets = bounds_of(ends - starts)
    out = np.empty(int(offsets[-1]), np.uint8)
    copy_spans(read_only(data), np.ascontiguousarray(starts, np.int64), offsets, out)
    return Texts(out, offsets)


def stripped(texts: Texts) -> Texts:
    """Return texts without the blanks at their ends."""
    starts, ends = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    strip_spans(*texts.frozen, starts, ends)
    return copied(texts.data, starts, ends)


def one_line(texts: Texts) -> Texts:
    """Return texts with each line feed, carriage return and tab replaced by a blank, and no blanks at the ends."""
    data = np.asarray(texts.data)
    breaks = (data == 0x0A) | (data == 0x0D) | (data == 0x09)
    if breaks.any():
        texts = Texts(np.where(breaks, np.uint8(0x20), data), texts.offsets)
    return stripped(texts)


def one_line_each(negatives: Negatives) -> Negatives:
    """Apply :func:`one_line` to negatives, and leave out those that are then empty."""
    texts = one_line(negatives.texts[:])
    return Negatives(texts, negatives.bounds).where(texts.sizes > 0)


def pack(pairs: Iterable[tuple[str, ...]], negatives: bool = False) -> Iterator[Rows]:
    """Pack pairs of strings, a block at a time; with ``negatives``, further strings of a pair are its negatives."""
    pairs = iter(pairs)
    while block := list(islice(pairs, BLOCK_PAIRS)):
        source, target = (one_line(Texts.of([pair[k] for pair in block])) for k in range(2))
        further = one_line_each(Negatives.of([pair[2:] for pair in block])) if negatives else None
        yield Rows(source, target, negatives=further)
