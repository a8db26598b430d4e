"""Sets of texts already seen, as 64-bit hashes in one array, and counts beside them.

A set of twenty million Python strings takes gigabytes; their hashes take 256 MiB, and above that they go to the disk. Two
different pairs of that many share a hash with a probability of 1 in 100,000, and one of them is then lost.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from xswe.bitext.kernels import (
    add_keys,
    add_to_filter,
    admit,
    find_keys,
    hash_pairs,
    hash_texts,
    may_hold,
    move_keys,
    places_of,
)
from xswe.io.ragged import Texts, read_only, release

_MOST_KEYS = 24_000_000  # in memory: just under what a table of 256 MiB holds
_FILTER_BITS = 8  # of a filter, at least, for each key on the disk
_KEYS_READ = 1 << 20  # at a time


def text_hashes(texts: Texts) -> np.ndarray:
    """Hash each text to 64 bits, uint64 (n,); equal texts have equal hashes."""
    out = np.empty(len(texts), np.uint64)
    hash_texts(*texts.frozen, out)
    return out


def pair_hashes(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Hash pairs of hashes, uint64 (n,) each, to one, uint64 (n,); the order within a pair matters."""
    out = np.empty(len(source), np.uint64)
    hash_pairs(read_only(source), read_only(target), out)
    return out


class KeySet:
    """A set of ``size`` 64-bit keys, none of them 0.

    ``table``, uint64, a power of two in length, is at most three quarters full, 0 where free. If ``counted``, ``counts``,
    uint8, has a count for each of its slots, else it is None.
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
        """Return which keys are in the set, bool (n,)."""
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
            counts, filled = np.zeros(size, np.uint8), np.flatnonzero(table)
            places = np.empty(len(filled), np.int64)
            places_of(self.table, table[filled], places)
            counts[filled] = self.counts[places]
            self.counts = counts
        self.table = table


class KeysOnDisk:
    """Keys for which memory has no room: sorted in files, behind a Bloom filter in memory (8 to 16 bits a key).

    The files are hidden in a folder; None is the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._runs = folder, list[np.ndarray]()
        self._filter = np.zeros(1 << 10, np.uint64)

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, keys: np.ndarray) -> None:
        """Add keys that are not there yet."""
        with tempfile.TemporaryFile(dir=self._folder) as stream:
            stream.write(np.sort(keys).data)
            stream.flush()
            run = np.memmap(stream, np.uint64, "r")
        self._runs.append(run)
        fresh: list[np.ndarray] = [run]
        if len(self) * _FILTER_BITS > 64 * len(self._filter):
            self._filter = np.zeros(1 << (len(self) * _FILTER_BITS // 64).bit_length(), np.uint64)
            fresh = self._runs
        for part in fresh:
            for start in range(0, len(part), _KEYS_READ):
                add_to_filter(self._filter, np.asarray(part[start : start + _KEYS_READ]))
            release(part)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Return which keys are there, bool (n,)."""
        found = np.zeros(len(keys), bool)
        if not self._runs:
            return found
        may_hold(self._filter, keys, found)
        rows = np.flatnonzero(found)
        rows = rows[np.argsort(keys[rows])]  # neighbours are in the same pages
        there = np.zeros(len(rows), bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, keys[rows]), len(run) - 1)
            there |= np.asarray(run)[places] == keys[rows]
            release(run)
        found[rows] = there
        return found


class Admission:
    """Decides, in file order, which pairs are kept: repetitions and near-repetitions of kept ones are dropped.

    A text may be a side of ``hubs`` pairs, 0 for any. ``codes`` are the numbers of the reasons: a pair seen before,
    nearly seen before, a side in too many pairs. Hashes for which memory has no room go to ``folder``, None for the
    system's folder of temporary files; the counts of sides stay in memory.
    """

    def __init__(self, hubs: int, codes: tuple[int, int, int], folder: Path | None = None) -> None:
        self._most, self._codes = hubs, codes
        self._old_pairs, self._old_bands = KeysOnDisk(folder), KeysOnDisk(folder)
        self._pairs, self._bands, self._sides = KeySet(), KeySet(), KeySet(counted=True)

    def __call__(self, keys: np.ndarray, bands: np.ndarray, sides: np.ndarray, reason: np.ndarray) -> np.ndarray:
        """Return the reason to drop each pair, 0 for those kept, which are added; ``reason``, uint8 (n,), is that so far.

        ``keys``, uint64 (n,), are of the pairs; ``bands`` (n, b) of their sketches, b being 0 where near-duplicates may
        stay; ``sides`` (n, 2) of their sides, or (n, 0) where hubs may stay.
        """
        self._pairs = _spilt(self._pairs, self._old_pairs)
        self._bands = _spilt(self._bands, self._old_bands)
        reason, added = reason.copy(), np.zeros(3, np.int64)
        before = self._old_pairs.has(keys).astype(np.uint8)
        if bands.size:
            before |= 2 * self._old_bands.has(bands.ravel()).reshape(bands.shape).any(axis=1).astype(np.uint8)
        tables = (self._pairs, self._bands, self._sides)
        for table, values in zip(tables, (keys, bands, sides), strict=True):
            table.make_room(values.size)
        seen = [table.table for table in tables]
        admit(keys, bands, sides, *seen, self._sides.counts, before, self._most, self._codes, reason, added)
        for table, more in zip(tables, added, strict=True):
            table.size += int(more)
        return reason


def _spilt(keys: KeySet, old: KeysOnDisk) -> KeySet:
    """Return the set to continue with: once it is large its keys go to the disk, and a new one begins."""
    if len(keys) < _MOST_KEYS:
        return keys
    old.add(keys.table[keys.table != 0])
    return KeySet()
