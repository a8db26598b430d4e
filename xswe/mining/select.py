"""From scored candidates to pairs: forward, backward, intersection, greedy one-to-one, and k-best lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.mining.margin import Candidates

Selection = Literal["max", "intersection", "forward", "backward", "kbest"]
SELECTIONS = ("max", "intersection", "forward", "backward", "kbest")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Selected pairs.

    Attributes:
        scores: float32 (n,).
        source: int32 (n,), row of the source.
        target: int32 (n,), row of the target.
        rank: int32 (n,), place among the source's candidates from 1 (always 1 but for ``kbest``).
    """

    scores: np.ndarray
    source: np.ndarray
    target: np.ndarray
    rank: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, source: np.ndarray, target: np.ndarray, rank: np.ndarray | None = None) -> Pairs:
        """Make pairs with the types above; every rank is 1 unless given."""
        rank = np.ones(len(scores), np.int32) if rank is None else rank.astype(np.int32)
        return cls(scores.astype(np.float32), source.astype(np.int32), target.astype(np.int32), rank)

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, which: np.ndarray) -> Pairs:
        """Return some of the pairs: row numbers or a mask."""
        return Pairs(self.scores[which], self.source[which], self.target[which], self.rank[which])

    def best_first(self) -> Pairs:
        """Sort by falling score, then rising source and target row."""
        return self.take(np.lexsort((self.target, self.source, -self.scores)))

    def between(self, least: float | None, most: float | None) -> Pairs:
        """Keep scores from ``least`` to ``most``, both included; None for no bound."""
        kept = np.ones(len(self), bool)
        if least is not None:
            kept &= self.scores >= np.float32(least)
        if most is not None:
            kept &= self.scores <= np.float32(most)
        return self.take(kept)


def _best(scores: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (scores, rows, ids) of each row's best candidate; equal scores: the lowest id. Rows with none are left out."""
    top = scores.max(1, initial=-np.inf)
    rows = np.flatnonzero(np.isfinite(top))
    tied = np.where(scores[rows] == top[rows, None], ids[rows], np.iinfo(np.int32).max)
    return top[rows], rows.astype(np.int32), tied.min(1, initial=np.iinfo(np.int32).max).astype(np.int32)


@njit(nogil=True, cache=True)
def _greedy(source: np.ndarray, target: np.ndarray, sources: int, targets: int) -> np.ndarray:
    """Walk down sorted pairs and keep each whose two lines are both still free."""
    used_source, used_target = np.zeros(sources, np.bool_), np.zeros(targets, np.bool_)
    kept = np.zeros(len(source), np.bool_)
    for i in range(len(source)):
        if not used_source[source[i]] and not used_target[target[i]]:
            used_source[source[i]] = used_target[target[i]] = kept[i] = True
    return kept


def select(candidates: Candidates, how: Selection = "max", best: int = 1) -> Pairs:
    """Choose pairs.

    Args:
        candidates: scored both ways.
        how: ``forward`` each source's best target, ``backward`` each target's best source, ``intersection`` the pairs that
            are both, ``max`` the union of both, best first, no line used twice; ``kbest`` the ``best`` best targets of
            each source.
        best: length of the lists of ``kbest``.

    Returns:
        Pairs, best first; of ``kbest`` by source, then rank. Ties are broken by rising row numbers.

    Raises:
        ConfigError: there is no such selection.
    """
    if how not in SELECTIONS:
        raise ConfigError(f"select={how!r}: use one of {', '.join(SELECTIONS)}")
    if how == "kbest":
        return _lists(candidates, best)
    scores, source, target = _best(candidates.forward, candidates.forward_ids)
    if how == "forward":
        return Pairs.of(scores, source, target).best_first()
    back_scores, back_target, back_source = _best(candidates.backward, candidates.backward_ids)
    if how == "backward":
        return Pairs.of(back_scores, back_source, back_target).best_first()
    if how == "intersection":
        answer = np.full(len(candidates.backward), -1, np.int32)
        answer[back_target] = back_source
        mutual = answer[target] == source
        return Pairs.of(scores[mutual], source[mutual], target[mutual]).best_first()
    union = Pairs.of(
        np.concatenate([scores, back_scores]), np.concatenate([source, back_source]), np.concatenate([target, back_target])
    ).best_first()
    return union.take(_greedy(union.source, union.target, len(candidates.forward), len(candidates.backward)))


def _lists(candidates: Candidates, best: int) -> Pairs:
    """Return every source's list, in the order of the sources."""
    if best < 1:
        raise ConfigError(f"best={best}: give the length of the candidate lists, as in best=5")
    order = np.lexsort((candidates.forward_ids, -candidates.forward), axis=1)[:, :best]
    scores = np.take_along_axis(candidates.forward, order, 1)
    ids = np.take_along_axis(candidates.forward_ids, order, 1)
    row, place = np.nonzero(np.isfinite(scores))
    return Pairs.of(scores[row, place], row, ids[row, place], place + 1)
