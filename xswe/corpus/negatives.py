"""Hard negatives: texts that say something else than the source of their pair, any number of them a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.corpus.views import TextView
from xswe.language.bags import Bags
from xswe.language.texts import Texts, concatenate


@dataclass(frozen=True, eq=False)
class Negatives:
    """The negatives of some pairs.

    Attributes:
        texts: m texts, one pair's after the other's; none of them empty.
        bounds: int64 (n + 1,), pair ``i`` has the texts ``bounds[i]`` to ``bounds[i + 1]``.
    """

    texts: Texts | TextView
    bounds: np.ndarray

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]]) -> Negatives:
        """Flatten one list of texts a pair, without the empty ones."""
        kept = [[text for text in one if text] for one in lists]
        bounds = np.zeros(len(kept) + 1, np.int64)
        np.cumsum([len(one) for one in kept], out=bounds[1:])
        return cls(Texts.of([text for one in kept for text in one]), bounds)

    @classmethod
    def of_columns(cls, columns: Sequence[Texts]) -> Negatives:
        """Take one text a pair from each column; an empty one is none."""
        size, texts = len(columns[0]), concatenate(columns)
        places = np.arange(len(columns) * size).reshape(len(columns), size).T.ravel()
        there = np.asarray(texts.sizes)[places] > 0
        counts = there.reshape(size, len(columns)).sum(1)
        return cls(texts.take(places[there]), np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def counts(self) -> np.ndarray:
        """Negatives of each pair, int64 (n,)."""
        return np.diff(self.bounds)

    def places(self, rows: np.ndarray) -> Bags:
        """Return which texts the pairs ``rows`` have, as bags of their places."""
        return Bags(np.arange(int(self.bounds[-1])), np.asarray(self.bounds)).take(rows)

    def take(self, rows: np.ndarray) -> Negatives:
        """Return the negatives of the pairs ``rows``, as a copy."""
        found = self.places(rows)
        return Negatives(self.texts.take(found.ids), found.offsets)

    def view(self, rows: np.ndarray) -> Negatives:
        """Return the negatives of the pairs ``rows``, which ascend, without a copy of the texts."""
        assert isinstance(self.texts, Texts)
        found = self.places(rows)
        return Negatives(TextView([(self.texts, found.ids)]), found.offsets)

    def where(self, kept: np.ndarray) -> Negatives:
        """Return them without those texts that are not ``kept``, bool (m,)."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return Negatives(self.texts.take(np.flatnonzero(kept)), before[self.bounds])

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.negatives.*.npy`` into ``folder``."""
        self.texts[:].save(folder, f"{name}.negatives")
        np.save(folder / f"{name}.negatives.counts.npy", self.counts.astype(np.int32))

    @classmethod
    def open(cls, folder: Path, name: str) -> Negatives | None:
        """Memory-map what :meth:`save` wrote; None where there is nothing, or no pair has any."""
        file = folder / f"{name}.negatives.counts.npy"
        if not file.is_file():
            return None
        counts = np.load(file, mmap_mode="r")
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        return cls(Texts.open(folder, f"{name}.negatives"), bounds) if bounds[-1] else None


def join_negatives(parts: Sequence[Negatives | None], sizes: Sequence[int]) -> Negatives | None:
    """Put the negatives of several blocks of ``sizes`` pairs one after the other; None if none has any."""
    if all(part is None or not part.bounds[-1] for part in parts):
        return None
    counts = [np.zeros(size, np.int64) if one is None else one.counts for one, size in zip(parts, sizes, strict=True)]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
    return Negatives(concatenate([part.texts[:] for part in parts if part is not None]), bounds)
