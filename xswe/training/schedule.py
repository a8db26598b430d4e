"""Which pairs make up which batch: a pure function of the seed and the step, so that a killed run goes on exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit


class PairTexts(NamedTuple):
    """Which texts of a bitext are equal: equal numbers mark equal texts.

    Attributes:
        source: int32 (n,), of each pair's source.
        target: int32 (n,), of its target.
        negatives: int32 (m,), of the negatives of all pairs, as the targets are numbered; -1 for one that does not count.
        bounds: int64 (n + 1,), pair ``i`` has the negatives ``bounds[i]`` to ``bounds[i + 1]``.
        alike: sources are numbered as the targets are: a text may be either.
    """

    source: np.ndarray
    target: np.ndarray
    negatives: np.ndarray
    bounds: np.ndarray
    alike: bool


@njit(nogil=True, cache=True)
def _free(
    row: int,
    batch: int,
    source: np.ndarray,
    target: np.ndarray,
    negatives: np.ndarray,
    bounds: np.ndarray,
    in_source: np.ndarray,
    in_target: np.ndarray,
) -> bool:
    """Tell whether no text of a pair is in the batch yet, and if so put them there."""
    if in_source[source[row]] == batch or in_target[target[row]] == batch:
        return False
    for t in range(bounds[row], bounds[row + 1]):
        if negatives[t] >= 0 and in_target[negatives[t]] == batch:
            return False
    in_source[source[row]] = batch
    in_target[target[row]] = batch
    for t in range(bounds[row], bounds[row + 1]):
        if negatives[t] >= 0:
            in_target[negatives[t]] = batch
    return True


@njit(nogil=True, cache=True)
def _fill(
    order: np.ndarray,
    size: int,
    source: np.ndarray,
    target: np.ndarray,
    negatives: np.ndarray,
    bounds: np.ndarray,
    in_source: np.ndarray,
    in_target: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
) -> None:
    """Fill batches with the pairs of ``order``; a pair whose text is in the batch already waits for the next.

    Where too few are left to fill a batch, pairs are drawn again from the start of ``order``. ``rows`` receives the batches
    one after the other, ``starts`` where each starts.
    """
    n, head, filled = len(order), 0, 0
    following = np.arange(1, n + 1)  # of the pairs not taken yet, as a list of places in order
    for batch in range(len(starts) - 1):
        starts[batch] = filled
        end, before, place = filled + size, -1, head
        while place < n and filled < end:
            after = following[place]
            if _free(order[place], batch, source, target, negatives, bounds, in_source, in_target):
                rows[filled] = order[place]
                filled += 1
                if before < 0:
                    head = after
                else:
                    following[before] = after
            else:
                before = place
            place = after
        place = 0
        while place < n and filled < end:
            if _free(order[place], batch, source, target, negatives, bounds, in_source, in_target):
                rows[filled] = order[place]
                filled += 1
            place += 1
    starts[-1] = filled


@dataclass
class Schedule:
    """Batches over several bitexts: each from one bitext, bitexts in proportion to their size, shuffled anew each epoch.

    Attributes:
        sizes: number of pairs of each bitext.
        batch: pairs a batch; a bitext smaller than that gives one batch of all its pairs.
        seed: decides every permutation.
        neighbours: pairs that :meth:`regroup` keeps together, 0 for none: then batches are drawn at random.
        groups: for each bitext, its rows ordered so that each run of ``neighbours`` rows stays together.
        groups_epoch: the epoch that they are for.
        texts: which texts of each bitext are equal: then no batch has one twice. A pair whose text is in the batch already
            is postponed to a later one, and another drawn instead; None takes pairs as they come.
    """

    sizes: tuple[int, ...]
    batch: int
    seed: int
    neighbours: int = 0
    groups: list[np.ndarray] | None = None
    groups_epoch: int = -1
    texts: list[PairTexts] | None = None
    _epoch: int = field(default=-1, init=False)
    _order: np.ndarray = field(init=False, repr=False)
    _batches: list[tuple[np.ndarray, np.ndarray]] = field(init=False, repr=False)  # of each bitext: rows, starts

    @property
    def per_epoch(self) -> int:
        """Batches an epoch; the remainder that does not fill a batch is left to a later epoch's shuffle."""
        return sum(max(1, size // self.batch) for size in self.sizes if size)

    def epoch_of(self, step: int) -> int:
        """The epoch that a step (from 0) is in."""
        return step // self.per_epoch

    def regroup(self, step: int, groups: list[np.ndarray]) -> None:
        """Set which rows stay together in the epoch of ``step``."""
        self.groups, self.groups_epoch, self._epoch = groups, self.epoch_of(step), -1

    def _permutation(self, epoch: int, k: int, size: int) -> np.ndarray:
        generator = np.random.default_rng([self.seed, epoch, k])
        if not self.neighbours or self.groups is None:
            return generator.permutation(size)
        # Whole neighbourhoods are shuffled; the last one, which may be shorter, stays at the end.
        whole = size // self.neighbours * self.neighbours
        together = self.groups[k][:whole].reshape(-1, self.neighbours)
        return np.concatenate([together[generator.permutation(len(together))].ravel(), self.groups[k][whole:]])

    def _cut(self, order: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Cut an epoch's pairs of a bitext into batches; returns the rows, and where each batch starts."""
        size, count = min(self.batch, len(order)), max(1, len(order) // self.batch)
        if self.texts is None or not len(order):
            return order, np.minimum(np.arange(count + 1) * self.batch, len(order))
        source, target, negatives, bounds, alike = self.texts[k]
        in_target = np.full(int(max(*(side.max(initial=0) for side in (source, target, negatives)), 0)) + 1, -1, np.int32)
        in_source = in_target if alike else np.full(len(in_target), -1, np.int32)
        rows, starts = np.empty(count * size, np.int64), np.zeros(count + 1, np.int64)
        _fill(order, size, source, target, negatives, bounds, in_source, in_target, rows, starts)
        return rows[: starts[-1]], starts

    def at(self, step: int) -> tuple[int, np.ndarray]:
        """Return the bitext and the rows of the batch of ``step`` (from 0)."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._batches = [self._cut(self._permutation(epoch, k, size), k) for k, size in enumerate(self.sizes)]
            slots = [(k, i) for k, size in enumerate(self.sizes) if size for i in range(max(1, size // self.batch))]
            self._order = np.random.default_rng([self.seed, epoch, len(self.sizes)]).permutation(np.array(slots))
        bitext, index = (int(x) for x in self._order[position])
        rows, starts = self._batches[bitext]
        return bitext, rows[starts[index] : starts[index + 1]]
