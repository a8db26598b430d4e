"""Which passages hold a unit: what a phrase is looked up by before anything is measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN
from xswe.io.ragged import Bags


class Postings(NamedTuple):
    """For each unit the passages that hold it, each once.

    Attributes:
        rows: int32 (entries,), rising within a unit.
        bounds: int64 (units + 1,), unit ``i`` has the entries ``bounds[i]`` to ``bounds[i + 1]``.
    """

    rows: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of(cls, bags: Bags, units: int) -> Postings:
        """Turn the units of passages round."""
        counts, last = np.zeros(units + 1, np.int64), np.full(units, -1, np.int32)
        _count(bags.ids, bags.offsets, last, counts[1:])
        bounds = np.cumsum(counts)
        rows = np.empty(bounds[-1], np.int32)
        last[:] = -1
        _fill(bags.ids, bags.offsets, last, bounds[:-1].copy(), rows)
        return cls(rows, bounds)

    def weigh(self, units: np.ndarray, weights: np.ndarray, passages: int) -> np.ndarray:
        """Add up, for each passage, the weights of those of the units that it holds.

        Args:
            units: int (m,), which units.
            weights: float32 (m,).
            passages: how many there are.

        Returns:
            float32 (passages,).
        """
        out = np.zeros(passages, np.float32)
        rows, bounds = self.rows.view(), self.bounds.view()
        for view in (rows, bounds):
            view.flags.writeable = False  # as where they are mapped from a file, so that code is compiled for one kind
        _add(rows, bounds, units.astype(np.int64), weights.astype(np.float32), out)
        return out


@njit(**LEAN)
def _count(ids: np.ndarray, offsets: np.ndarray, last: np.ndarray, counts: np.ndarray) -> None:
    """Count the passages of each unit."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            unit = ids[place]
            if last[unit] != row:
                last[unit] = row
                counts[unit] += 1


@njit(**LEAN)
def _fill(ids: np.ndarray, offsets: np.ndarray, last: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> None:
    """Write the passages of each unit from ``ends`` on, which rise."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            unit = ids[place]
            if last[unit] != row:
                last[unit] = row
                rows[ends[unit]] = row
                ends[unit] += 1


@njit(**LEAN)
def _add(rows: np.ndarray, bounds: np.ndarray, units: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Add weights to the passages of units."""
    for k in range(len(units)):
        for place in range(bounds[units[k]], bounds[units[k] + 1]):
            out[rows[place]] += weights[k]
