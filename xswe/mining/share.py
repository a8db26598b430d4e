"""Estimate of the share of lines with a translation, from how far pairs stand out among the neighbours of their lines.

Where few lines have one, mismatches say too little of the wrong pairs: the few best of them decide. What such pairs have in
common in all corpora does say something: a translation is near to its line, and nearer than the next best line is, both
ways, by more than is usual among mismatched pairs of the same search. A logistic regression over these distances, fitted on
planted sets of three pairs of languages (eval/experiments/sparse_mining.py, ``corpora=chosen``), gives the likelihood ratio
of each pair; how many of the pairs are right is then estimated by maximum likelihood, as the share of a class whose
likelihoods are known (Saerens, Latinne and Decaestecker, 2002). Near-duplicates of a line are no next best: a line that is
there twice has two translations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xswe.mining.margin import Pairs
from xswe.mining.twins import Twins
from xswe.search.lists import Neighbours

# In the logarithm of the likelihood ratio: of the cosine, of the lesser and of the greater distance from the next best,
# each in units of the distance from the median to the 95 % quantile of the mismatched pairs, and of the logarithm of the
# lines of the shorter side (of 10,000); and where all are 0.
_WEIGHTS = np.array([0.391, 1.119, 1.068, 0.151])
_START = -3.16
_UNUSUAL = 0.95
_UNIT_LINES = 10_000
# What the estimated share is off by, as the standard deviation of its logarithm over planted sets beside that of counting:
# a little in any case, and the more the fewer lines have a translation.
_SPREAD, _SPREAD_OF_FEW = 0.08, 0.04
_TOO_MANY = 1.3  # the exponent of the factor downwards: too many are seen more easily than too few
# Of short lines, or of a language that the model hardly knows, few translations stand out, and the others are not seen.
# Right and wrong pairs look alike then: the factor upwards grows with how doubtful those are that seem right.
_UNSEEN = 12.0
_NONE = 0.02  # such a share may be seen where no line has a translation
_LEAST, _MOST, _BEGIN = 0.1, 0.999, 0.1  # pairs at least, share at most, and the share to begin with
_STEPS, _SOME = 500, 500_000  # of the estimate, and pairs that are looked at in each


@dataclass(frozen=True, eq=False)
class Parallel:
    """What is known of pairs that were selected one to one.

    Attributes:
        right: float64 (n,), the probability that each pair is right.
        share: of the lines of the shorter side, those that are expected to be in a right pair.
        between: what the share lies between, with 95 % confidence.
        doubt: the probability that a pair is wrong, averaged over the right ones.
        alone: float64 (m,), the probability that neither line of each mismatched pair has a translation.
    """

    right: np.ndarray
    share: float
    between: tuple[float, float]
    doubt: float
    alone: np.ndarray


def estimate_parallel(pairs: Pairs, mismatched: Pairs, lists: Neighbours, twins: Twins, lines: int) -> Parallel | None:
    """Estimate which pairs are right, and how many lines have a translation; None without pairs or mismatched ones.

    Both were selected one to one among the same neighbours, ``mismatched`` once every line's best, and its twins, were
    left out; ``lines`` are those of the shorter side.
    """
    if not len(pairs) or not len(mismatched):
        return None
    odds = distances_in_units(pairs, mismatched, lists, twins, lines) @ _WEIGHTS + _START
    share, some = _BEGIN, odds[:: max(1, len(odds) // _SOME)]  # best first, so that what stands between is like these
    for _ in range(_STEPS):
        new = float(np.clip(_probabilities(some, share).mean(), _LEAST / len(pairs), _MOST))
        if abs(new - share) < 1e-9:
            break
        share = new
    right = _probabilities(odds, share)
    count = float(right.sum())
    part = min(1.0, count / lines)
    spread = np.exp(1.96 * np.hypot(_SPREAD + _SPREAD_OF_FEW / part**0.5, max(count, 1.0) ** -0.5))
    least = part / spread**_TOO_MANY if part > _NONE else 0.0
    doubt = float((right * (1 - right)).sum()) / max(count, 1e-9)
    most = min(1.0, float(part * spread * np.exp(_UNSEEN * doubt**2)))
    free = [np.ones(len(ids)) for ids in (lists.forward_ids, lists.backward_ids)]
    free[0][pairs.source] = free[1][pairs.target] = 1 - right
    alone = free[0][mismatched.source] * free[1][mismatched.target]
    return Parallel(right, part, (float(least), most), doubt, alone)


def _probabilities(odds: np.ndarray, share: float) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(odds + np.log(share / (1 - share)), -40, 40)))


def distances_in_units(pairs: Pairs, mismatched: Pairs, lists: Neighbours, twins: Twins, lines: int) -> np.ndarray:
    """Return the inputs of the likelihood ratios, float64 (n, 4); see :func:`estimate_parallel`."""
    found, usual = _distances(pairs, lists, twins, False), _distances(mismatched, lists, twins, True)
    middle, high = np.quantile(usual, (0.5, _UNUSUAL), axis=0)
    return np.c_[(found - middle) / np.maximum(high - middle, 1e-6), np.full(len(found), np.log(lines / _UNIT_LINES))]


def _distances(pairs: Pairs, lists: Neighbours, twins: Twins, without_best: bool) -> np.ndarray:
    """Return the cosine of each pair, and by how much each of its lines is nearer to the other than to the next best.

    The lesser of the latter two comes first; float64 (n, 3). Twins of a partner are no next best.
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
