"""Estimate of the share of lines with a translation, from how far pairs stand out among the neighbours of their lines.

If few lines have a translation, mismatches say too little about wrong pairs: the few best of them decide. But right pairs
have something in common in all corpora: a translation is near its line, and in both directions nearer than the runner-up by
more than is usual among mismatched pairs of the same search. A logistic regression over these distances, fitted on planted
sets of three language pairs (eval/experiments/sparse_mining.py, ``corpora=chosen``), gives the likelihood ratio of each
pair; the number of right pairs is then the maximum likelihood estimate of a class prior with known likelihoods (Saerens,
Latinne and Decaestecker, 2002). Near-duplicates of a line are not runners-up: a line that occurs twice has two
translations.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from xswe.mining.margin import Pairs
from xswe.mining.twins import Twins
from xswe.search.lists import Neighbours

# The log likelihood ratio is linear: weights of the cosine, and of the smaller and the larger lead over the runner-up (each
# measured from the median of the mismatched pairs, in units of the distance to their 95 % quantile), then of the logarithm
# of the lines of the shorter side, in units of 10,000; and the intercept.
_WEIGHTS = np.array([0.391, 1.119, 1.068, 0.151])
_INTERCEPT = -3.16
_HIGH_QUANTILE = 0.95
_UNIT_LINES = 10_000
# Error of the estimated share: the standard deviation of its logarithm over planted sets, in addition to counting error. It
# has a constant part, and a part that grows as fewer lines have a translation.
_SPREAD, _SPREAD_OF_FEW = 0.08, 0.04
_DOWNWARDS_EXPONENT = 1.3  # exponent of the factor downwards: the estimate is more often too high than too low
# Among short lines, or in a language that the model hardly knows, few translations stand out and the rest go unseen. Right
# and wrong pairs then look alike, so the factor upwards grows with the doubt about the pairs that seem right.
_DOUBT_WEIGHT = 12.0
_MIN_CREDIBLE_SHARE = 0.02  # up to this share may be estimated if no line has a translation
_MIN_COUNT, _MAX_SHARE, _INITIAL_SHARE = 0.1, 0.999, 0.1  # minimum number of pairs, maximum share, and initial share
_STEPS, _MAX_PAIRS = 500, 500_000  # maximum iterations of the estimate, and pairs that it uses
# Right pairs stand out more in some corpora than in others, so the F1 to expect is averaged over log likelihood ratios of
# several slopes and intercepts, each with its own share (chosen on planted sets, corpora=chosen): if few lines have a
# translation, the surest pairs are kept.
_SLOPES, _OFFSETS = (0.7, 1.0, 1.3), (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Parallel:
    """Estimates about pairs that were selected one to one.

    Attributes:
        odds: float64 (n,), the log likelihood ratio of each pair.
        right: float64 (n,), the probability that each pair is right.
        share: the expected share of the shorter side's lines that are in a right pair.
        between: the 95 % confidence interval of the share.
        doubt: the probability that a pair is wrong, averaged over the right ones.
        alone: float64 (m,), the probability that neither line of each mismatched pair has a translation.
    """

    odds: np.ndarray
    right: np.ndarray
    share: float
    between: tuple[float, float]
    doubt: float
    alone: np.ndarray

    def expected_f1(self, order: np.ndarray) -> np.ndarray:
        """Return the F1 to expect of the first i + 1 pairs in an order, int64 (n,), as float64 (n,)."""
        own, kept, total = self.odds[order], np.arange(1, len(order) + 1), np.zeros(len(order))
        for slope, offset in product(_SLOPES, _OFFSETS):
            odds = slope * own + offset
            right = np.cumsum(_probabilities(odds, _share_right(odds)))
            total += 2 * right / (kept + right[-1])
        return total / (len(_SLOPES) * len(_OFFSETS))


def estimate_parallel(pairs: Pairs, mismatched: Pairs, lists: Neighbours, twins: Twins, lines: int) -> Parallel | None:
    """Estimate which pairs are right, and how many lines have a translation; None without pairs or mismatched pairs.

    Both were selected one to one among the same neighbours, ``mismatched`` without every line's best neighbour and its
    near-duplicates; ``lines`` is the number of lines of the shorter side.
    """
    if not len(pairs) or not len(mismatched):
        return None
    odds = distances_in_units(pairs, mismatched, lists, twins, lines) @ _WEIGHTS + _INTERCEPT
    right = _probabilities(odds, _share_right(odds))
    count = float(right.sum())
    part = min(1.0, count / lines)
    spread = np.exp(1.96 * np.hypot(_SPREAD + _SPREAD_OF_FEW / part**0.5, max(count, 1.0) ** -0.5))
    least = part / spread**_DOWNWARDS_EXPONENT if part > _MIN_CREDIBLE_SHARE else 0.0
    doubt = float((right * (1 - right)).sum()) / max(count, 1e-9)
    most = min(1.0, float(part * spread * np.exp(_DOUBT_WEIGHT * doubt**2)))
    free = [np.ones(len(ids)) for ids in (lists.forward_ids, lists.backward_ids)]
    free[0][pairs.source] = free[1][pairs.target] = 1 - right
    alone = free[0][mismatched.source] * free[1][mismatched.target]
    return Parallel(odds, right, part, (float(least), most), doubt, alone)


def _share_right(odds: np.ndarray) -> float:
    """Estimate the share of right pairs from their log likelihood ratios, in the order of a score."""
    share, sample = _INITIAL_SHARE, odds[:: max(1, len(odds) // _MAX_PAIRS)]
    for _ in range(_STEPS):
        new = float(np.clip(_probabilities(sample, share).mean(), _MIN_COUNT / len(odds), _MAX_SHARE))
        if abs(new - share) < 1e-9:
            break
        share = new
    return share


def _probabilities(odds: np.ndarray, share: float) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(odds + np.log(share / (1 - share)), -40, 40)))


def distances_in_units(pairs: Pairs, mismatched: Pairs, lists: Neighbours, twins: Twins, lines: int) -> np.ndarray:
    """Return the features of the likelihood ratio, float64 (n, 4), in the order of the weights."""
    found, usual = _distances(pairs, lists, twins, False), _distances(mismatched, lists, twins, True)
    middle, high = np.quantile(usual, (0.5, _HIGH_QUANTILE), axis=0)
    return np.c_[(found - middle) / np.maximum(high - middle, 1e-6), np.full(len(found), np.log(lines / _UNIT_LINES))]


def _distances(pairs: Pairs, lists: Neighbours, twins: Twins, without_best: bool) -> np.ndarray:
    """Return each pair's cosine, and the smaller and the larger lead of its lines over their runners-up, float64 (n, 3).

    Near-duplicates of a partner are not runners-up.
    """
    cosines, others = [], []
    for scores, ids, groups, rows, partners in (
        (lists.forward, lists.forward_ids, twins.forward, pairs.source, pairs.target),
        (lists.backward, lists.backward_ids, twins.backward, pairs.target, pairs.source),
    ):
        near, group = scores[rows].astype(np.float64), groups[rows]
        own = ids[rows] == partners[:, None]
        alike = np.where(own, group, -1).max(axis=1, keepdims=True, initial=-1)
        out = (ids[rows] < 0) | (group == alike) | (without_best & (group == 0))
        cosines.append(np.where(own, near, -np.inf).max(axis=1, initial=-np.inf))
        others.append(np.where(out, -np.inf, near).max(axis=1, initial=-np.inf))
    cosine = np.maximum(*cosines)
    gaps = [np.where(np.isfinite(other), cosine - other, cosine) for other in others]
    return np.stack([cosine, np.minimum(*gaps), np.maximum(*gaps)], axis=1)
