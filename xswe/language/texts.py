"""Many texts as two flat arrays: the form in which the library keeps, shares and memory-maps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import overload

import numpy as np

from xswe.mapped import release


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """An immutable sequence of strings, stored as one run of UTF-8 bytes.

    A Python string costs some 50 bytes beside its characters and a pointer to chase; a million sentences as ``Texts``
    are two arrays that can be memory-mapped and handed to compiled code as they are.

    Attributes:
        data: uint8 (bytes,), all texts one after the other.
        offsets: int64 (n + 1,), text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """

    data: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, strings: Iterable[str]) -> Texts:
        """Pack strings; a lone surrogate (which UTF-8 cannot carry) becomes ``?``."""
        if isinstance(strings, Texts):
            return strings
        strings = strings if isinstance(strings, Sequence) else list(strings)
        try:
            packed = list(map(str.encode, strings))
        except UnicodeEncodeError:
            packed = [string.encode("utf-8", "replace") for string in strings]
        offsets = np.zeros(len(packed) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, packed), np.int64, len(packed)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(packed), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            stop = max(start, stop)
            low, high = self.offsets[start], self.offsets[stop]
            return Texts(self.data[low:high], self.offsets[start : stop + 1] - low)
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        step = 4096
        for start in range(0, len(self), step):
            block = self[start : start + step]
            raw, bounds = block.data.tobytes(), block.offsets.tolist()
            for low, high in pairwise(bounds):
                yield raw[low:high].decode("utf-8")

    @property
    def frozen(self) -> tuple[np.ndarray, np.ndarray]:
        """Both arrays as views that cannot be written: compiled code then is compiled once, wherever texts come from."""
        views = self.data.view(np.ndarray), self.offsets.view(np.ndarray)
        for view in views:
            view.flags.writeable = False
        return views

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each text, int64 (n,)."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> Texts:
        """Return the texts of ``rows``, in that order, as a copy."""
        rows = np.asarray(rows, np.int64)
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        shifts = self.offsets[rows] - offsets[:-1]
        for start in range(0, len(rows), 1 << 16):  # the index takes eight times the bytes it picks
            block = slice(start, start + (1 << 16))
            low, high = offsets[start], offsets[min(block.stop, len(rows))]
            source = np.repeat(shifts[block], sizes[block])
            source += np.arange(low, high)
            data[low:high] = self.data[source]
        return Texts(data, offsets)

    def release(self) -> None:
        """Give the memory of mapped texts back until they are read again."""
        release(self.data, self.offsets)

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.bytes.npy`` and ``<name>.offsets.npy`` into ``folder``."""
        np.save(folder / f"{name}.bytes.npy", self.data)
        np.save(folder / f"{name}.offsets.npy", self.offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> Texts:
        """Memory-map what :meth:`save` wrote."""
        return cls(
            np.load(folder / f"{name}.bytes.npy", mmap_mode="r"),
            np.load(folder / f"{name}.offsets.npy", mmap_mode="r"),
        )


def concatenate(parts: Sequence[Texts]) -> Texts:
    """Join several ``Texts`` into one."""
    offsets = [np.zeros(1, np.int64)]
    base = 0
    for part in parts:
        offsets.append(part.offsets[1:] - part.offsets[0] + base)
        base = int(offsets[-1][-1]) if len(offsets[-1]) else base
    data = [part.data for part in parts] or [np.zeros(0, np.uint8)]
    return Texts(np.concatenate(data), np.concatenate(offsets))
