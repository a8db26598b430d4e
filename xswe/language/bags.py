"""Bags: the unit ids of many texts as two flat arrays, the form in which everything after the look-up works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.mapped import release

_COUNTED = 1 << 22  # ids counted at a time


def id_type(units: int) -> type[np.generic]:
    """Return the smallest type that holds the ids of so many units on the disk: uint16 or int32."""
    return np.uint16 if units <= 1 << 16 else np.int32


@dataclass(frozen=True, eq=False)
class Bags:
    """Unit ids of ``n`` texts, in text order.

    Attributes:
        ids: int32 (units,), the ids of all texts one after the other; or uint16, as few units are kept on the disk.
        offsets: int64 (n + 1,), text ``i`` has the units ``ids[offsets[i]:offsets[i + 1]]``.
    """

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Bags:
        """Flatten lists of ids."""
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(one) for one in lists], out=offsets[1:])
        ids = np.fromiter((i for one in lists for i in one), np.int32, count=int(offsets[-1]))
        return cls(ids, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Units of each text, int64 (n,)."""
        return np.diff(self.offsets)

    def block(self, start: int, stop: int) -> Bags:
        """Return texts ``start`` to ``stop`` as a view of the ids."""
        stop = min(stop, len(self))
        low, high = self.offsets[start], self.offsets[stop]
        return Bags(self.ids[low:high], self.offsets[start : stop + 1] - low)

    def take(self, rows: np.ndarray) -> Bags:
        """Return the bags of ``rows``, in that order, as a copy with ids of int32."""
        rows = np.asarray(rows, np.int64)
        starts = np.asarray(self.offsets)[rows]
        lengths = np.asarray(self.offsets)[rows + 1] - starts
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        source = np.repeat(starts - offsets[:-1], lengths)
        source += np.arange(offsets[-1])
        return Bags(self.ids[source].astype(np.int32, copy=False), offsets)

    def counts(self, size: int) -> np.ndarray:
        """Count the occurrences of each of ``size`` ids, int64 (size,)."""
        out = np.zeros(size, np.int64)
        for start in range(0, len(self.ids), _COUNTED):  # numpy counts a copy of eight bytes an id
            out += np.bincount(self.ids[start : start + _COUNTED], minlength=size)
            release(self.ids)
        return out

    def release(self) -> None:
        """Give the memory of mapped bags back until they are read again."""
        release(self.ids, self.offsets)

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.ids.npy`` and ``<name>.offsets.npy`` into ``folder``."""
        np.save(folder / f"{name}.ids.npy", self.ids)
        np.save(folder / f"{name}.offsets.npy", self.offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> Bags:
        """Memory-map what :meth:`save` wrote."""
        return cls(
            np.load(folder / f"{name}.ids.npy", mmap_mode="r"), np.load(folder / f"{name}.offsets.npy", mmap_mode="r")
        )


def concatenate(parts: Sequence[Bags]) -> Bags:
    """Join several ``Bags`` into one; a single one is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    base = 0
    for part in parts:
        offsets.append(part.offsets[1:] - part.offsets[0] + base)
        base += int(part.offsets[-1] - part.offsets[0])
    return Bags(np.concatenate([part.ids for part in parts] or [np.zeros(0, np.int32)]), np.concatenate(offsets))
