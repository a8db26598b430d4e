"""Scores of candidate pairs, and the selection of pairs by score.

A cosine says little by itself: some sentences (hubs) are near everything. With a(x) the mean cosine of x with its k
nearest neighbours on the other side, margins compare cos(x, y) with b = (a(x) + a(y)) / 2 (Artetxe & Schwenk, 2019; mining
counts near-duplicate neighbours once, see :mod:`xswe.mining.twins`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.io.settings import check_choice, for_all
from xswe.search.lists import Neighbours

Score = Literal["cosine", "ratio", "distance", "csls"]
Selection = Literal["max", "intersection", "forward", "backward", "kbest"]
# Smallest divisor of a ratio. If the neighbours of a line are unrelated to it (among few lines), their mean cosine is near
# 0 or negative: the ratio would grow without bound, which ranks noise above translations, or change sign. A pair of cosine
# 0.4 raises its own neighbourhoods (k = 4) to this much, and the neighbourhoods of decoys among 50 lines lie above it.
_MIN_RATIO_BASE = np.float32(0.1)


def neighbourhood(cosines: np.ndarray, k: int, skip: int = 0) -> np.ndarray:
    """Return each row's mean of the ``k`` best after the first ``skip``, float32 (n,): of fewer if it has fewer, 0 if none.

    ``cosines`` are float32 (n, at least k + skip), in descending order, -inf for no neighbour.
    """
    part = cosines[:, skip : skip + k]
    there = np.isfinite(part)
    total = np.where(there, part, 0).sum(1, dtype=np.float64)
    return (total / np.maximum(there.sum(1), 1)).astype(np.float32)


def ratio_base(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the divisor of the ratio margin, float32: the mean of both sides' neighbourhoods, at least 0.1."""
    return np.maximum((here + there) / np.float32(2), _MIN_RATIO_BASE)


def _distance(cosines: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    return cosines - (here + there) / np.float32(2)


@dataclass(frozen=True)
class Scoring:
    """How a score is computed, and how its wrong pairs are estimated from decoys (:mod:`xswe.mining.threshold`)."""

    formula: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # of cos(x, y), a(x) and a(y)
    # The gap between the best and the second best of many wrong scores, in units of that between the second and the third
    # best: two for cosines (the largest of many draws from an exponential tail are spaced 1, 1/2, 1/3, ...). A margin's
    # neighbourhood falls with the scores and removes half of the gap (difference) or all of it (ratio), as measured on
    # corpora of 1 to 50 % pairs. One unit more lowers the estimate where one line in a hundred has a translation, but keeps
    # next to nothing of 100,000 lines (cosine) or finds translations where there are none (ratio).
    decoy_correction: float
    margin: bool = True  # whether the number of high wrong pairs is quadratic in the number of lines without a translation

    @property
    def least_matched_share(self) -> float:
        """Minimum share of the shorter side's lines in a right pair, for a precision to be estimated.

        On planted sets of 20,000 lines in five language pairs (eval/experiments/mining_quality.py) an estimate was at most
        4.8 points off if half or all lines had a translation (by cosine, with half, 5.4), up to 18 with 10 %, and up to 40
        with 1 %: for the decoys, a line with a translation loses it, too, and its next best scores higher than other noise.
        """
        return 0.25 if self.margin else 0.6


SCORINGS: dict[str, Scoring] = for_all(
    Score,
    {
        "cosine": Scoring(lambda cosines, _here, _there: cosines, 2.0, margin=False),
        "ratio": Scoring(lambda cosines, here, there: cosines / ratio_base(here, there), 0.0),
        "distance": Scoring(_distance, 1.0),
        # 2 cos(x, y) - a(x) - a(y) (Conneau et al., 2018)
        "csls": Scoring(lambda cosines, here, there: _distance(cosines, here, there) * np.float32(2), 1.0),
    },
)


def score_cosines(cosines: np.ndarray, here: np.ndarray, there: np.ndarray, score: Score) -> np.ndarray:
    """Turn cosines of any shape into scores by both sides' neighbourhoods, which are broadcast; -inf stays."""
    check_choice("score", score, Score)
    return SCORINGS[score].formula(cosines, here, there)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scored candidate pairs in both directions."""

    # scores of each source's candidates, float32 (sources, c), in the order of the cosines; -inf for none
    forward: np.ndarray
    forward_ids: np.ndarray  # int32 (sources, c)
    backward: np.ndarray  # scores of each target's candidates, float32 (targets, c)
    backward_ids: np.ndarray  # int32 (targets, c)


def score_candidates(lists: Neighbours, score: Score, k: int, skip: int = 0, among: Neighbours | None = None) -> Candidates:
    """Score neighbours in both directions against the neighbourhoods of both lines, of ``k`` lines each.

    Every line's best ``skip`` neighbours are left out of both candidates and neighbourhoods. Neighbourhoods are taken from
    ``among`` if given (such as lists without near-duplicates), otherwise from ``lists``.
    """
    among = among or lists
    if not len(lists.forward) or not len(lists.backward):
        return Candidates(lists.forward, lists.forward_ids, lists.backward, lists.backward_ids)
    a, b = neighbourhood(among.forward, k, skip), neighbourhood(among.backward, k, skip)
    forward_ids, backward_ids = lists.forward_ids[:, skip:], lists.backward_ids[:, skip:]
    forward = score_cosines(lists.forward[:, skip:], a[:, None], b[forward_ids], score)
    backward = score_cosines(lists.backward[:, skip:], b[:, None], a[backward_ids], score)
    return Candidates(
        np.where(forward_ids >= 0, forward, -np.inf).astype(np.float32),
        forward_ids,
        np.where(backward_ids >= 0, backward, -np.inf).astype(np.float32),
        backward_ids,
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Selected pairs."""

    scores: np.ndarray  # float32 (n,)
    source: np.ndarray  # int32 (n,), row of the source
    target: np.ndarray  # int32 (n,), row of the target
    rank: np.ndarray  # int32 (n,), rank among the source's candidates from 1 (always 1 except for ``kbest``)

    @classmethod
    def of(cls, scores: np.ndarray, source: np.ndarray, target: np.ndarray, rank: np.ndarray | None = None) -> Pairs:
        """Make pairs, converting the arrays to the types above; every rank is 1 unless given."""
        rank = np.ones(len(scores), np.int32) if rank is None else rank.astype(np.int32)
        return cls(scores.astype(np.float32), source.astype(np.int32), target.astype(np.int32), rank)

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, which: np.ndarray) -> Pairs:
        """Return the pairs chosen by row numbers or a mask."""
        return Pairs(self.scores[which], self.source[which], self.target[which], self.rank[which])

    def best_first(self) -> Pairs:
        """Sort by descending score, then ascending source and target row."""
        return self.take(np.lexsort((self.target, self.source, -self.scores)))

    def between(self, least: float | None, most: float | None) -> Pairs:
        """Keep scores from ``least`` to ``most`` inclusive; None for no bound."""
        kept = np.ones(len(self), bool)
        if least is not None:
            kept &= self.scores >= np.float32(least)
        if most is not None:
            kept &= self.scores <= np.float32(most)
        return self.take(kept)


def _best(scores: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (scores, rows, ids) of each row's best candidate, the lowest id of ties, leaving out rows without any."""
    top = scores.max(1, initial=-np.inf)
    rows = np.flatnonzero(np.isfinite(top))
    tied = np.where(scores[rows] == top[rows, None], ids[rows], np.iinfo(np.int32).max)
    return top[rows], rows.astype(np.int32), tied.min(1, initial=np.iinfo(np.int32).max).astype(np.int32)


@njit(nogil=True, cache=True)
def _greedy(source: np.ndarray, target: np.ndarray, first_target: int, lines: int) -> np.ndarray:
    """Keep each of the sorted pairs whose lines are both still free; target lines are numbered from ``first_target``."""
    used, kept = np.zeros(lines, np.bool_), np.zeros(len(source), np.bool_)
    for i in range(len(source)):
        if not used[source[i]] and not used[first_target + target[i]]:
            used[source[i]] = used[first_target + target[i]] = kept[i] = True
    return kept


def select(candidates: Candidates, how: Selection = "max", best: int = 1, within: bool = False) -> Pairs:
    """Choose pairs, best first (``kbest``: by source, then rank). Ties are broken by ascending row numbers.

    ``forward`` takes each source's best target, ``backward`` each target's best source, ``intersection`` the pairs that are
    both, ``max`` goes through the union of both, best first, using no line twice, and ``kbest`` takes the ``best`` best
    targets of each source. ``within``: both sides are the same lines and both directions the same candidates, so each pair
    is given once, its source before its target, and with ``max`` no line is in two pairs.
    """
    check_choice("select", how, Selection)
    return _within(candidates, how, best) if within else _SELECTORS[how](candidates, best)


def _forward(candidates: Candidates, _length: int) -> Pairs:
    return Pairs.of(*_best(candidates.forward, candidates.forward_ids)).best_first()


def _backward(candidates: Candidates, _length: int) -> Pairs:
    scores, target, source = _best(candidates.backward, candidates.backward_ids)
    return Pairs.of(scores, source, target).best_first()


def _intersection(candidates: Candidates, _length: int) -> Pairs:
    scores, source, target = _best(candidates.forward, candidates.forward_ids)
    _, back_target, back_source = _best(candidates.backward, candidates.backward_ids)
    answer = np.full(len(candidates.backward), -1, np.int32)
    answer[back_target] = back_source
    mutual = answer[target] == source
    return Pairs.of(scores[mutual], source[mutual], target[mutual]).best_first()


def _max(candidates: Candidates, _length: int) -> Pairs:
    scores, source, target = _best(candidates.forward, candidates.forward_ids)
    back_scores, back_target, back_source = _best(candidates.backward, candidates.backward_ids)
    union = Pairs.of(
        np.concatenate([scores, back_scores]), np.concatenate([source, back_source]), np.concatenate([target, back_target])
    ).best_first()
    sources, targets = len(candidates.forward), len(candidates.backward)
    return union.take(_greedy(union.source, union.target, sources, sources + targets))


def _within(candidates: Candidates, how: Selection, best: int) -> Pairs:
    """Choose pairs of lines of one side as if it were two; give each pair once, its lower row as the source."""
    pairs = _kbest(candidates, best) if how == "kbest" else select(candidates, "forward" if how == "max" else how)
    low, high = np.minimum(pairs.source, pairs.target), np.maximum(pairs.source, pairs.target)
    order = np.lexsort((pairs.rank, -pairs.scores, high, low))
    new = np.ones(len(order), bool)
    new[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    once = order[new]
    out = Pairs(pairs.scores[once], low[once], high[once], pairs.rank[once])
    if how == "kbest":
        return out.take(np.lexsort((out.rank, out.source)))
    out = out.best_first()
    return out.take(_greedy(out.source, out.target, 0, len(candidates.forward))) if how == "max" else out


def _kbest(candidates: Candidates, best: int) -> Pairs:
    """Return the ``best`` best candidates of every source, in the order of the sources."""
    if best < 1:
        raise ConfigError(f"best={best}: give the length of the candidate lists, as in best=5")
    order = np.lexsort((candidates.forward_ids, -candidates.forward), axis=1)[:, :best]
    scores = np.take_along_axis(candidates.forward, order, 1)
    ids = np.take_along_axis(candidates.forward_ids, order, 1)
    row, place = np.nonzero(np.isfinite(scores))
    return Pairs.of(scores[row, place], row, ids[row, place], place + 1)


_SELECTORS: dict[str, Callable[[Candidates, int], Pairs]] = for_all(
    Selection,
    {"max": _max, "intersection": _intersection, "forward": _forward, "backward": _backward, "kbest": _kbest},
)
