"""Some rows of several memory-mapped texts as one sequence, without a copy of the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from xswe.language.texts import Texts, concatenate
from xswe.mapped import release

_BLOCK = 8192


class TextView(Sequence[str]):
    """Rows of one or several ``Texts``, one after the other.

    It reads like ``Texts``: a slice is a ``Texts`` (a copy of its rows), an index a string.

    Args:
        parts: each texts, and the rows of them that count in ascending order, or None for all.
    """

    def __init__(self, parts: Sequence[tuple[Texts, np.ndarray | None]]) -> None:
        self._parts = list(parts)
        sizes = [len(texts) if rows is None else len(rows) for texts, rows in self._parts]
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._range(start, max(start, stop)) if step == 1 else self.take(np.arange(start, stop, step))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        part = int(np.searchsorted(self._starts, index, "right")) - 1
        texts, rows = self._parts[part]
        place = index - int(self._starts[part])
        return texts[place if rows is None else int(rows[place])]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    def _range(self, start: int, stop: int) -> Texts:
        pieces = []
        for (texts, rows), first, last in zip(self._parts, self._starts[:-1], self._starts[1:], strict=True):
            low, high = max(start, int(first)) - int(first), min(stop, int(last)) - int(first)
            if low < high:
                pieces.append(texts[low:high] if rows is None else _rows_of(texts, rows[low:high]))
        return pieces[0] if len(pieces) == 1 else concatenate(pieces)

    def release(self) -> None:
        """Give the memory of mapped texts back until they are read again."""
        for texts, rows in self._parts:
            texts.release()
            if rows is not None:
                release(rows)

    def take(self, rows: np.ndarray) -> Texts:
        """Return the texts of ``rows``, in that order, as a copy."""
        rows = np.asarray(rows, np.int64)
        part = np.searchsorted(self._starts, rows, "right") - 1
        pieces, order = [], []
        for number, (texts, chosen) in enumerate(self._parts):
            here = np.flatnonzero(part == number)
            places = rows[here] - self._starts[number]
            pieces.append(texts.take(places if chosen is None else np.asarray(chosen)[places]))
            order.append(here)
        if len(pieces) == 1:
            return pieces[0]
        inverse = np.empty(len(rows), np.int64)
        inverse[np.concatenate(order)] = np.arange(len(rows))
        return concatenate(pieces).take(inverse)


def _rows_of(texts: Texts, rows: np.ndarray) -> Texts:
    """Return ascending rows; those without gaps as a view."""
    if int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return texts[int(rows[0]) : int(rows[-1]) + 1]
    return texts.take(rows)


def joined(sides: Sequence[Texts | TextView]) -> Texts | TextView:
    """Return several sides one after the other, without a copy."""
    if len(sides) == 1:
        return sides[0]
    return TextView([part for side in sides for part in (side._parts if isinstance(side, TextView) else [(side, None)])])
