"""Sets of texts already seen, as 64-bit hashes in one array, with counts if needed.

A set of twenty million Python strings takes gigabytes; their hashes take 256 MiB, and beyond that they go to the disk.
Among so many pairs, two different ones share a hash with a probability of 1 in 100,000, and one of them is then lost.
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

_MAX_KEYS = 24_000_000  # in memory: just under the capacity of a 256 MiB table
_FILTER_BITS = 8  # bits of the Bloom filter per key on the disk, at least
_KEYS_PER_READ = 1 << 20


def text_hashes(texts: Texts) -> np.ndarray:
    """Hash each text to 64 bits, uint64 (n,); equal texts have equal hashes."""
    out = np.empty(len(texts), np.uint64)
    hash_texts(*texts.frozen, out)
    return out


def pair_hashes(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Hash pairs of hashes, uint64 (n,) each, to one each, uint64 (n,); the order within a pair matters."""
    out = np.empty(len(source), np.uint64)
    hash_pairs(read_only(source), read_only(target), out)
    return out


class KeySet:
    """A set of ``size`` 64-bit keys, none of them 0.

    ``table``, uint64, a power of two in length, is at most three quarters full, with 0 in free slots. ``counts`` has a
    uint8 per slot if ``counted``, else it is None.
    """

    def __init__(self, counted: bool = False) -> None:
        self.table = np.zeros(1 << 12, np.uint64)
        self.counts = np.zeros(1 << 12, np.uint8) if counted else None
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add keys in order; return which were new, bool (n,)."""
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
    """Keys that do not fit into memory: sorted in files, behind a Bloom filter in memory (8 to 16 bits a key).

    The files are temporary and nameless, in ``folder``, or for None in the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._runs = folder, list[np.ndarray]()
        self._filter = np.zeros(1 << 10, np.uint64)

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, keys: np.ndarray) -> None:
        """Add keys that are not stored yet."""
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
            for start in range(0, len(part), _KEYS_PER_READ):
                add_to_filter(self._filter, np.asarray(part[start : start + _KEYS_PER_READ]))
            release(part)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Return which keys are stored, bool (n,)."""
        found = np.zeros(len(keys), bool)
        if not self._runs:
            return found
        may_hold(self._filter, keys, found)
        rows = np.flatnonzero(found)
        rows = rows[np.argsort(keys[rows])]  # so that consecutive look-ups hit the same pages
        is_stored = np.zeros(len(rows), bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, keys[rows]), len(run) - 1)
            is_stored |= np.asarray(run)[places] == keys[rows]
            release(run)
        found[rows] = is_stored
        return found


class Admission:
    """Decides, in file order, which pairs are kept: duplicates and near-duplicates of kept ones are left out.

    A text may be a side of ``hubs`` pairs, 0 for any number. ``codes`` are the numbers of the reasons: a duplicate, a
    near-duplicate, a side in too many pairs. Hashes that do not fit into memory go to ``folder``, None for the system's
    folder of temporary files; the counts of sides stay in memory.
    """

    def __init__(self, hubs: int, codes: tuple[int, int, int], folder: Path | None = None) -> None:
        self._most, self._codes = hubs, codes
        self._old_pairs, self._old_bands = KeysOnDisk(folder), KeysOnDisk(folder)
        self._pairs, self._bands, self._sides = KeySet(), KeySet(), KeySet(counted=True)

    def __call__(self, keys: np.ndarray, bands: np.ndarray, sides: np.ndarray, reason: np.ndarray) -> np.ndarray:
        """Return the reason to leave out each pair, 0 for those kept, which are added; ``reason``, uint8 (n,), is so far.

        ``keys``, uint64 (n,), are hashes of the pairs; ``bands`` (n, b) of their sketches, with b = 0 to keep
        near-duplicates; ``sides`` (n, 2) of their sides, or (n, 0) to keep hubs.
        """
        self._pairs = _spill(self._pairs, self._old_pairs)
        self._bands = _spill(self._bands, self._old_bands)
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


def _spill(keys: KeySet, old: KeysOnDisk) -> KeySet:
    """Return the set to continue with: move the keys of a large one to the disk, and begin a new one."""
    if len(keys) < _MAX_KEYS:
        return keys
    old.add(keys.table[keys.table != 0])
    return KeySet()
