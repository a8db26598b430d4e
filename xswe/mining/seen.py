"""Which lines were seen before, at 16 to 32 bytes a line: a set of 64-bit hashes that grows, in compiled code.

Two different lines out of fifty million are taken for the same with a probability below one in ten thousand.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.language.texts import Texts

_FIRST_SIZE = 1 << 16


@njit(nogil=True, cache=True)
def _hashes(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """out[i] = 64-bit hash of text i, never 0: FNV-1a, and Murmur's last mixing."""
    for i in range(len(out)):
        value = np.uint64(0xCBF29CE484222325)
        for t in range(offsets[i], offsets[i + 1]):
            value = (value ^ np.uint64(data[t])) * np.uint64(0x100000001B3)
        value ^= value >> np.uint64(33)
        value *= np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(33)
        value *= np.uint64(0xC4CEB9FE1A85EC53)
        value ^= value >> np.uint64(33)
        out[i] = value if value != np.uint64(0) else np.uint64(1)


@njit(nogil=True, cache=True)
def _add(table: np.ndarray, keys: np.ndarray, new: np.ndarray) -> int:
    """Add keys to an open-addressing table; new[i] tells whether key i was not there. Returns how many were new."""
    mask = np.uint64(len(table) - 1)
    count = 0
    for i in range(len(keys)):
        slot = keys[i] & mask
        while table[slot] != np.uint64(0) and table[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        new[i] = table[slot] == np.uint64(0)
        if new[i]:
            table[slot] = keys[i]
            count += 1
    return count


def text_hashes(texts: Texts) -> np.ndarray:
    """Return a 64-bit hash of each text, uint64 (n,), never 0."""
    out = np.empty(len(texts), np.uint64)
    _hashes(np.asarray(texts.data), np.asarray(texts.offsets), out)
    return out


class Seen:
    """A growing set of hashes."""

    def __init__(self) -> None:
        self._table, self._count = np.zeros(_FIRST_SIZE, np.uint64), 0

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Add hashes, uint64 (n,), none 0; returns which were new, bool (n,): of equal ones the first."""
        while 2 * (self._count + len(hashes)) > len(self._table):
            old = self._table[self._table != 0]
            self._table = np.zeros(2 * len(self._table), np.uint64)
            _add(self._table, old, np.empty(len(old), np.bool_))
        new = np.empty(len(hashes), np.bool_)
        self._count += _add(self._table, hashes, new)
        return new
