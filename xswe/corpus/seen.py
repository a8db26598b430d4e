"""What a corpus has shown so far: sets of 64-bit hashes in one array, and counts beside them.

A set of twenty million Python strings takes gigabytes; their hashes take 256 MiB. Two different pairs of that many share a
hash with a probability of 1 in 100,000, and one of them is then lost.
"""

from __future__ import annotations

import numpy as np

from xswe.corpus.hashing import add_keys, admit, find_keys, move_keys, places_of


class KeySet:
    """A set of 64-bit keys, none of them 0.

    Attributes:
        table: uint64, a power of two in length, 0 where free; at most three quarters full.
        counts: uint8, beside the table, for whoever counts something; None without ``counted``.
        size: keys in it.

    Args:
        counted: keep counts.
    """

    def __init__(self, counted: bool = False) -> None:
        self.table = np.zeros(1 << 12, np.uint64)
        self.counts = np.zeros(1 << 12, np.uint8) if counted else None
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add keys in order; return which of them were new, bool (n,)."""
        self.make_room(len(keys))
        fresh = np.empty(len(keys), bool)
        self.size += add_keys(self.table, keys, fresh)
        return fresh

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Tell which keys are in the set, bool (n,)."""
        found = np.empty(len(keys), bool)
        find_keys(self.table, keys, found)
        return found

    def make_room(self, more: int) -> None:
        """Grow the table so that ``more`` keys can be added."""
        size = len(self.table)
        while 4 * (self.size + more) > 3 * size:
            size *= 2
        if size == len(self.table):
            return
        table = np.zeros(size, np.uint64)
        move_keys(self.table, table)
        if self.counts is not None:
            counts, held = np.zeros(size, np.uint8), np.flatnonzero(table)
            places = np.empty(len(held), np.int64)
            places_of(self.table, table[held], places)
            counts[held] = self.counts[places]
            self.counts = counts
        self.table = table


class Admission:
    """Decides, in file order, which pairs are kept: what was kept before, or much like it, is dropped.

    Args:
        hubs: most pairs that one text may be a side of; 0 for any.
        codes: the numbers of the reasons: a pair seen before, nearly seen before, a side in too many pairs.
    """

    def __init__(self, hubs: int, codes: tuple[int, int, int]) -> None:
        self._most, self._codes = hubs, codes
        self._pairs, self._bands, self._sides = KeySet(), KeySet(), KeySet(counted=True)

    def __call__(self, keys: np.ndarray, bands: np.ndarray, sides: np.ndarray, reason: np.ndarray) -> np.ndarray:
        """Return the reason to drop each pair, 0 for those kept, which are remembered.

        Args:
            keys: uint64 (n,), of the pairs.
            bands: uint64 (n, b), of their sketches; b is 0 where near-duplicates may stay.
            sides: uint64 (n, 2), of their sides, or (n, 0) where hubs may stay.
            reason: uint8 (n,), the reason found so far.
        """
        reason, added = reason.copy(), np.zeros(3, np.int64)
        tables = (self._pairs, self._bands, self._sides)
        for table, values in zip(tables, (keys, bands, sides), strict=True):
            table.make_room(values.size)
        seen = [table.table for table in tables]
        admit(keys, bands, sides, *seen, self._sides.counts, self._most, self._codes, reason, added)
        for table, more in zip(tables, added, strict=True):
            table.size += int(more)
        return reason
