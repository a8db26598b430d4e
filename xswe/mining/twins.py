"""Near-duplicates among the neighbours of a line, which count as one: a line that occurs twice has two translations.

A margin compares a candidate with the neighbours of its lines. If one of them is a near-duplicate of the candidate, the
candidate stands out less, the better a translation it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xswe.io.products import row_products
from xswe.search.lists import Neighbours

# Lines of one side with at least this cosine count as near-duplicates. From 0.8 to 0.95, lower values find more pairs where
# lines recur with a few words changed, higher values among everyday sentences, many of which are similar but not the same.
_MIN_COSINE = 0.85
# Encoders whose cosines are all high need a higher limit: this fraction of the way from the mean cosine of two lines to 1.
_MIN_FRACTION = 0.8
_SAMPLE_SIZE = 4_096  # sample size for the mean cosine
_BLOCK = 16_384


class Rows(Protocol):
    """A source of vectors."""

    def __len__(self) -> int:
        """Return the number of vectors."""

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the given rows, float32 (n, d)."""


@dataclass(frozen=True, eq=False)
class Twins:
    """For each neighbour in both directions, int8 (n, k), the rank of its first near-duplicate in the list, or its own."""

    forward: np.ndarray
    backward: np.ndarray

    @classmethod
    def of(cls, lists: Neighbours, source: Rows, target: Rows) -> Twins:
        """Compare each line's neighbours with the nearer ones in its list."""
        return cls(_groups(lists.forward_ids, target), _groups(lists.backward_ids, source))

    @classmethod
    def none(cls, lists: Neighbours) -> Twins:
        """Return twins without any near-duplicates."""
        ways = (lists.forward_ids, lists.backward_ids)
        return cls(*(np.broadcast_to(np.arange(ids.shape[1], dtype=np.int8), ids.shape) for ids in ways))

    def left_out(self, lists: Neighbours) -> Neighbours:
        """Return the lists with only the first of near-duplicate neighbours.

        The neighbours that would move up are unknown, but no nearer than the last one in the list, so its cosine fills
        their places, without an id.
        """
        out = []
        for scores, ids, groups in (
            (lists.forward, lists.forward_ids, self.forward),
            (lists.backward, lists.backward_ids, self.backward),
        ):
            again = groups != np.arange(groups.shape[1])
            order = np.argsort(again, axis=1, kind="stable")
            out += [np.where(again, np.asarray(scores)[:, -1:], scores), np.where(again, -1, ids)]
            out[-2:] = [np.take_along_axis(column, order, 1) for column in out[-2:]]
        return Neighbours(*out)


def _limit(vectors: Rows) -> float:
    """Return the cosine from which these vectors count as near-duplicates."""
    count = min(len(vectors), _SAMPLE_SIZE)
    if count < 2:
        return _MIN_COSINE
    total = vectors.take(np.linspace(0, len(vectors) - 1, count).astype(np.int64)).sum(0, dtype=np.float64)
    mean = float(total @ total - count) / (count * (count - 1))
    return max(_MIN_COSINE, mean + _MIN_FRACTION * (1 - mean))


def _groups(ids: np.ndarray, vectors: Rows) -> np.ndarray:
    limit = _limit(vectors)
    groups = np.tile(np.arange(ids.shape[1], dtype=np.int8), (len(ids), 1))
    for start in range(0, len(ids), _BLOCK):
        part = np.asarray(ids[start : start + _BLOCK])
        columns = [vectors.take(np.maximum(column, 0)) for column in part.T]
        for later in range(1, len(columns)):
            for earlier in range(later):
                group = groups[start : start + _BLOCK]
                free = (group[:, later] == later) & (group[:, earlier] == earlier) & (part[:, later] >= 0)
                same = np.flatnonzero(free)
                same = same[row_products(columns[earlier][same], columns[later][same]) >= limit]
                group[same, later] = earlier
    return groups
