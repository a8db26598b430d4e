"""Which pairs make up which batch: a pure function of the seed and the step, so that a killed run goes on exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


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
    """

    sizes: tuple[int, ...]
    batch: int
    seed: int
    neighbours: int = 0
    groups: list[np.ndarray] | None = None
    groups_epoch: int = -1
    _epoch: int = field(default=-1, init=False)
    _order: np.ndarray = field(init=False, repr=False)
    _permutations: list[np.ndarray] = field(init=False, repr=False)

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

    def at(self, step: int) -> tuple[int, np.ndarray]:
        """Return the bitext and the rows of the batch of ``step`` (from 0)."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutations = [self._permutation(epoch, k, size) for k, size in enumerate(self.sizes)]
            slots = [(k, i) for k, size in enumerate(self.sizes) if size for i in range(max(1, size // self.batch))]
            self._order = np.random.default_rng([self.seed, epoch, len(self.sizes)]).permutation(np.array(slots))
        bitext, index = (int(x) for x in self._order[position])
        return bitext, self._permutations[bitext][index * self.batch : (index + 1) * self.batch]
