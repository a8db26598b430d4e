"""Bigrams: pairs of adjacent units with rows of their own, in addition to those of the units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from xswe.errors import ModelError
from xswe.io.ragged import Bags, bounds_of

_ROW_BITS = 24  # of a slot in the compiled look-up; the others hold the key
MOST = (1 << _ROW_BITS) - 1  # bigrams of a model
_MIN_COUNT = 5  # occurrences of a bigram in the training texts
_BLOCK = 1 << 18  # bags counted at a time


@dataclass(frozen=True, eq=False)
class Bigrams:
    """The pairs of adjacent units with rows of their own.

    Bigram ``k`` of ``pairs`` has the row ``units + k``. Its units are adjacent in one text, apart from anything unknown in
    between.

    Attributes:
        pairs: (bigrams, 2), the ids of both units, distinct and ascending.
        units: the number of units, at most 2^19.

    Raises:
        ModelError: the pairs are invalid, or there are none, or too many.
    """

    pairs: np.ndarray  # uint32
    units: int

    def __post_init__(self) -> None:
        if self.pairs.dtype != np.uint32 or self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise ModelError(f"the bigrams are {self.pairs.dtype} {self.pairs.shape}, expected uint32 (bigrams, 2)")
        if not 0 < len(self.pairs) <= MOST or self.units > 1 << (63 - _ROW_BITS) // 2:
            raise ModelError(f"{len(self.pairs)} bigrams of {self.units} units: 1 to {MOST} of 2^19 units can be found")
        if self.pairs.max() >= self.units or (np.diff(self.keys) <= 0).any():
            raise ModelError(f"the bigrams are not in rising order, or not of {self.units} units")

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def keys(self) -> np.ndarray:
        """One number per bigram, int64 (bigrams,), ascending."""
        return self.pairs[:, 0].astype(np.int64) * self.units + self.pairs[:, 1]

    @classmethod
    def of_keys(cls, keys: np.ndarray, units: int) -> Bigrams:
        """Return the bigrams with these keys."""
        return cls(np.stack(np.divmod(keys, units), axis=1).astype(np.uint32), units)

    def find(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the row of each pair of units, int64 (n,); -1 if it has none."""
        wanted = left.astype(np.int64) * self.units + right
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, self.units + places, -1)

    def widen(self, bags: Bags, compiled: bool = True) -> Bags:
        """Return bags of units with the rows of their bigrams appended, by compiled code or, equally, in numpy."""
        if not compiled:
            return self._widen_in_numpy(bags)
        from xswe.model.kernels import widen_bags

        shift, slots = self._slots
        bits = np.int64(_ROW_BITS)
        ids = np.ascontiguousarray(bags.ids, np.int32)
        rows, ends = np.empty(2 * len(ids), np.int32), np.zeros(len(bags.offsets), np.int64)
        widen_bags(ids, np.asarray(bags.offsets), np.int64(self.units), shift, bits, slots, rows, ends)
        return Bags(rows[: ends[-1]], ends)

    def _widen_in_numpy(self, bags: Bags) -> Bags:
        ids = bags.ids[bags.offsets[0] : bags.offsets[-1]]
        owners = np.repeat(np.arange(len(bags)), bags.lengths)
        inner = np.flatnonzero(owners[:-1] == owners[1:])  # followed by a unit of the same text
        rows = self.find(ids[inner], ids[inner + 1])
        every = np.concatenate([owners, owners[inner[rows >= 0]]])
        order = np.argsort(every, kind="stable")
        widened = np.concatenate([ids, rows[rows >= 0]]).astype(np.int32)[order]
        return Bags(widened, bounds_of(np.bincount(every, minlength=len(bags))))

    @cached_property
    def _slots(self) -> tuple[np.uint64, np.ndarray]:
        """The table of the compiled look-up: the shift of hashes, and the slots, at most half of them full."""
        from xswe.model.kernels import fill_slots

        bits = (2 * len(self) - 1).bit_length()
        shift, slots = np.uint64(64 - bits), np.full(1 << bits, -1, np.int64)
        fill_slots(self.keys, shift, np.int64(_ROW_BITS), slots)
        return shift, slots

    def prune(self, kept: np.ndarray) -> tuple[Bigrams | None, np.ndarray]:
        """Return the bigrams of the units ``kept`` (ascending old ids) alone, and their old places."""
        new = np.full(self.units, -1, np.int64)
        new[kept] = np.arange(len(kept))
        pairs = new[self.pairs]
        places = np.flatnonzero((pairs >= 0).all(axis=1))
        return Bigrams(pairs[places].astype(np.uint32), len(kept)) if len(places) else None, places


def frequent_bigrams(sides: Iterable[Bags], units: int, most: int) -> Bigrams | None:
    """Return the most frequent bigrams of texts, with ties by their ids; None if none is frequent.

    There are ``most`` at most, and each occurs at least ``_MIN_COUNT`` times.
    """
    found = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    waiting, size = [found], 0
    for side in sides:
        for start in range(0, len(side), _BLOCK):
            block = side.block(start, start + _BLOCK)
            ids = np.asarray(block.ids, np.int64)
            inner = np.ones(max(0, len(ids) - 1), bool)
            borders = np.asarray(block.offsets)[1:-1]
            inner[borders[(borders > 0) & (borders < len(ids))] - 1] = False
            waiting.append(np.unique((ids[:-1] * units + ids[1:])[inner], return_counts=True))
            size += len(waiting[-1][0])
            side.release()
            if size > len(found[0]):  # each time twice as many, so that all are sorted only a few times
                found, size = _added_up(waiting), 0
                waiting = [found]
    keys, counts = _added_up(waiting)
    frequent = np.flatnonzero(counts >= _MIN_COUNT)
    chosen = frequent[np.argsort(-counts[frequent], kind="stable")[:most]]
    return Bigrams.of_keys(np.sort(keys[chosen]), units) if len(chosen) else None


def _added_up(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys of several parts, ascending, and the sums of their counts."""
    keys, places = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([counts for _, counts in parts]), len(keys))  # exact below 2^53
    return keys, counts.astype(np.int64)
