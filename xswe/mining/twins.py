"""Near-duplicates among the neighbours of a line, which count as one: a line that is there twice has two translations.

A margin compares a candidate with the neighbours of its lines. Where one of these says the same as the candidate, the
better the translation, the less it would stand out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xswe.io.products import row_products
from xswe.search.lists import Neighbours

# Cosine from which on two lines of one side say nearly the same. Of 0.8 to 0.95 the lower ones find more where lines are
# repeated with a few words changed, the higher ones among everyday sentences, many of which are alike but not the same.
_SAME = 0.85
# Encoders whose cosines lie close together need more: so much of the way from the mean cosine of any two lines to 1.
_NEARER = 0.8
_SOME = 4_096  # lines of which the mean cosine is taken
_BLOCK = 16_384


class Rows(Protocol):
    """What vectors are taken from."""

    def __len__(self) -> int:
        """Return how many there are."""

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the given rows, float32 (n, d)."""


@dataclass(frozen=True, eq=False)
class Twins:
    """Near-duplicates among the neighbours of a line: int8 (n, k), the first such place in its list, both ways."""

    forward: np.ndarray
    backward: np.ndarray

    @classmethod
    def of(cls, lists: Neighbours, source: Rows, target: Rows) -> Twins:
        """Compare the neighbours of each line with those before them."""
        return cls(_groups(lists.forward_ids, target), _groups(lists.backward_ids, source))

    @classmethod
    def none(cls, lists: Neighbours) -> Twins:
        """Return twins without any near-duplicates."""
        ways = (lists.forward_ids, lists.backward_ids)
        return cls(*(np.broadcast_to(np.arange(ids.shape[1], dtype=np.int8), ids.shape) for ids in ways))

    def left_out(self, lists: Neighbours) -> Neighbours:
        """Return the lists with only the first of near-duplicate neighbours.

        What would come in the place of the others is not known, only that it is no nearer than the last neighbour, the
        cosine of which stands there without an id.
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
    """Return the cosine from which on two of these say nearly the same."""
    count = min(len(vectors), _SOME)
    if count < 2:
        return _SAME
    total = vectors.take(np.linspace(0, len(vectors) - 1, count).astype(np.int64)).sum(0, dtype=np.float64)
    mean = float(total @ total - count) / (count * (count - 1))
    return max(_SAME, mean + _NEARER * (1 - mean))


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
