"""A tokenised corpus as the trainer sees it: translation pairs, or sentences of one language, and which are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xswe.corpus.hashing import hash_texts
from xswe.language.bags import Bags
from xswe.mapped import Spans
from xswe.training.features import RowVectors

_BLOCK = 1 << 18  # bags read at a time when all are
_STAYS = 1 << 30  # bytes of a mapped side that may stay in memory; a larger one is read bag by bag, half as fast


@njit(nogil=True, cache=True)
def _ends(offsets: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the offsets of the bags ``rows``, one after the other, after ``out[0]``."""
    for k in range(len(rows)):
        out[k + 1] = out[k] + offsets[rows[k] + 1] - offsets[rows[k]]


@njit(nogil=True, cache=True)
def _copy(ids: np.ndarray, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    """Copy ids from ``starts[k]`` on to ``out[places[k]:places[k + 1]]``."""
    for k in range(len(starts)):
        shift = starts[k] - places[k]
        for t in range(places[k], places[k + 1]):
            out[t] = ids[shift + t]


@dataclass(frozen=True, eq=False)
class ParallelBags:
    """A tokenised bitext: ``source`` and ``target`` are translations of each other, row by row.

    Attributes:
        source: n bags.
        target: n bags; None for sentences of one language.
        teacher: float (n, e), a teacher's unit vectors of the sentences, where distillation is wanted.
        near: count texts as equal that share most of their units.
    """

    source: Bags
    target: Bags | None = None
    teacher: np.ndarray | RowVectors | None = None
    near: bool = False
    same_source: np.ndarray = field(init=False, repr=False)
    same_target: np.ndarray = field(init=False, repr=False)
    readers: list[Spans | None] = field(init=False, repr=False)  # of sides too large to stay in memory

    def __post_init__(self) -> None:
        equal = near_bags if self.near else equal_bags
        object.__setattr__(self, "same_source", equal(self.source))
        object.__setattr__(self, "same_target", self.same_source if self.target is None else equal(self.target))

        readers = [Spans.of(side.ids) if side.ids.nbytes > _STAYS else None for side in self.sides]
        object.__setattr__(self, "readers", readers)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def sides(self) -> list[Bags]:
        """The source, and the target if there is one."""
        return [self.source] if self.target is None else [self.source, self.target]

    @property
    def lengths(self) -> np.ndarray:
        """Units of the longer side of each pair, int64 (n,)."""
        return self.source.lengths if self.target is None else np.maximum(self.source.lengths, self.target.lengths)

    def batch(self, rows: np.ndarray) -> Bags:
        """The bags of a batch: the sources of ``rows``, then their targets."""
        rows = np.asarray(rows, np.int64)
        offsets = np.zeros(len(self.sides) * len(rows) + 1, np.int64)
        for k, side in enumerate(self.sides):
            _ends(np.asarray(side.offsets), rows, offsets[k * len(rows) :])
        ids = np.empty(offsets[-1], np.int32)
        for k, (side, reader) in enumerate(zip(self.sides, self.readers, strict=True)):
            places = offsets[k * len(rows) : (k + 1) * len(rows) + 1]
            starts = np.asarray(side.offsets)[rows]
            if reader is None:
                _copy(np.asarray(side.ids), starts, places, ids)
            else:
                read = np.empty(places[-1] - places[0], side.ids.dtype)
                reader.read(starts, places - places[0], read)
                ids[places[0] : places[-1]] = read
        return Bags(ids, offsets)

    def same(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers that mark equal sources, and equal targets, of a batch."""
        return self.same_source[rows], self.same_target[rows]

    def distinct(self, rows: np.ndarray) -> np.ndarray:
        """Return those ``rows`` of which no earlier one has an equal source or target, in order."""
        for same in (self.same_source, self.same_target):
            rows = rows[np.sort(np.unique(same[rows], return_index=True)[1])]
        return rows

    def teacher_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The teacher's vectors of a batch, float32 (k, e), if there are any."""
        return None if self.teacher is None else np.ascontiguousarray(self.teacher[rows], np.float32)


def equal_bags(bags: Bags) -> np.ndarray:
    """Number the bags so that equal ones (the same ids in the same order) share a number, int32 (n,)."""

    def hashed(block: Bags, keys: np.ndarray) -> None:
        ids = np.ascontiguousarray(block.ids)
        hash_texts(ids.view(np.uint8), ids.itemsize * block.offsets, keys)

    return _numbered(bags, hashed)


def _numbered(bags: Bags, keys_of: Callable[[Bags, np.ndarray], None]) -> np.ndarray:
    """Number the bags by their keys, which ``keys_of`` writes for a block of them into a uint64 (n,)."""
    keys = np.empty(len(bags), np.uint64)
    for start in range(0, len(bags), _BLOCK):
        keys_of(bags.block(start, start + _BLOCK), keys[start : start + _BLOCK])
        bags.release()
    return np.unique(keys, return_inverse=True)[1].astype(np.int32)


@njit(nogil=True, cache=True)
def _signatures(ids: np.ndarray, offsets: np.ndarray, hashes: int, out: np.ndarray) -> None:
    """out[i] = the least hash of bag i's ids under each of ``hashes`` hash functions, mixed into one number."""
    for i in range(len(offsets) - 1):
        signature = np.uint64(0)
        for h in range(hashes):
            least = np.uint64(0xFFFFFFFFFFFFFFFF)
            for t in range(offsets[i], offsets[i + 1]):
                x = (np.uint64(ids[t]) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(h) * np.uint64(
                    0xBF58476D1CE4E5B9
                )
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
                least = min(least, x)
            signature = (signature ^ least) * np.uint64(0x9E3779B97F4A7C15) + (signature >> np.uint64(32))
        out[i] = signature


def near_bags(bags: Bags, hashes: int = 3) -> np.ndarray:
    """Number the bags so that nearly equal ones probably share a number, int32 (n,).

    Two bags share it with probability J ** ``hashes``, where J is the overlap of their sets of units (Jaccard's; Broder
    1997): always if they have the same units in any order, at J = 0.9 three times in four, at J = 0.3 three times in
    a hundred.
    """
    return _numbered(bags, lambda block, keys: _signatures(np.asarray(block.ids), block.offsets, hashes, keys))
