"""A classifier of right and wrong pairs, trained on the bitext that it filters.

It begins with examples that ship with the library (:mod:`xswe.mining.examples`), which say of every pair how likely it is
right, or wrong in one of the :data:`~xswe.mining.wrong.KINDS`. Of the pairs that are likely right, wrong ones of every
kind are made; boosted trees learn to tell them apart, with the examples beside. So the filter knows the lengths, words and
habits of its bitext. Features of habit (how sentences end, Latin letters) count in a bitext's own pairs only.

How much of the bitext each kind is, is estimated by maximum likelihood from the trees' probabilities (Saerens, Latinne and
Decaestecker, 2002); what share of each kind would be kept, on wrong pairs made of records that were set aside. From both
comes the share of the kept pairs that is wrong, as a function of their probability that can only fall (isotonic
regression).

All is drawn by the content of records: their order decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN
from xswe.io.ragged import Texts
from xswe.mining.examples import examples_for, foreign_texts, wrong_ones
from xswe.mining.features import CENTRED, HABITS, NAMES, Features
from xswe.mining.threshold import PrecisionEstimate
from xswe.mining.trees import Trees
from xswe.mining.wrong import KINDS, Pair, WrongPairs
from xswe.model.ensemble import AnyModel

CLASSES = ("right", *KINDS)
_OF_ITS_OWN = [CLASSES.index(kind) for kind in ("added text", "wrong language")]
SAMPLE = 4000  # records that are learnt from
LEAST_RECORDS = 500  # that are needed
_LEAST_RIGHT = 150  # of the sample that seem right
_EACH, _ASIDE = 800, 400  # wrong pairs of each kind that are made to learn from, and to look at what is learnt
_EXAMPLE = 0.3  # weight of an example beside a pair of the bitext
_SURELY = 0.5  # probability from which a pair is learnt as right
_RENAMED = 3.0  # so many times as likely, by its features, to have another name as to be right: not learnt as right
_HARDLY = 0.05  # up to which one is learnt as of another language
_HOPELESS = 0.05  # probability up to which trees are believed, whatever wrong pairs that were made say
_RIGHT_SHARE = 0.5  # of the weight of all that is learnt
_FLOOR = 0.004  # least share of the records that each kind is taken for
_BLIND = 0.25  # of a kind that is kept more often, the share in the bitext cannot be estimated
_NAMES = "other names"  # measured on changes of another maker 3 to 86 % are kept, whatever is kept of those made here
_MANY = 0.05  # pairs that look like a kind even where it is taken for rare: of right pairs up to 4 % did
_MANY_NAMED = 0.3  # the same for names, of the pairs in which there is one to change: of right ones up to 17 % did
_VISIBLE = 0.15  # least share of a kind that looks like it then, for the rest to be estimated from it
_LEAST_SHARE = 0.12  # of pairs that are right, for what was learnt to be trusted
_OWN_ERROR = 0.01  # of a precision, if there were hardly any noise: wrong pairs that are made are not quite those there are
_CLOSE = 0.03  # a precision that may be further off is given by its bounds alone
_PLACES = 60  # at which the interval of a precision is computed
_SHOWN = 400  # wrong pairs of the commonest kind that stand for all
_BINS, _LEAST_BIN = 40, 50
_ROWS = 1 << 16
_NO_HABITS = [place for place in range(len(NAMES)) if place not in HABITS]


@dataclass(frozen=True)
class Noise:
    """What was learnt of the wrong pairs of a bitext.

    Attributes:
        kinds: of each kind: its name, the share of the compared pairs that it is estimated to be, and the share of such
            pairs that is kept, measured on pairs made of records set aside; None where none could be made.
    """

    kinds: tuple[tuple[str, float, float | None], ...]

    @property
    def share(self) -> float:
        """The share of the compared pairs that seems to be noise."""
        return sum(share for _, share, _ in self.kinds)

    @property
    def by_kind(self) -> str:
        """The kinds of noise with a share above a minimum, and their shares."""
        seen = sorted((one for one in self.kinds if one[1] > 2 * _FLOOR), key=lambda one: -one[1])
        return ", ".join(f"{kind} {100 * share:.0f} %" for kind, share, _ in seen) or "hardly any"

    def __str__(self) -> str:
        unseen = [
            f"{kind} (of such pairs made here {100 * kept:.0f} % are kept)"
            for kind, _, kept in self.kinds
            if kept is not None and _is_unseen(kind, kept)
        ]
        return "\n".join([f"estimated noise: {self.by_kind}", f"not judged: {', '.join(['the order of words', *unseen])}"])


def _is_unseen(kind: str, kept: float) -> bool:
    return kind == _NAMES or kept > _BLIND


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a classifier found of the pairs of a bitext.

    Attributes:
        probabilities: float32 (n,), that each pair is right; calibrated.
        kinds: uint8 (n,), the likeliest kind of each pair if it is wrong, a place in :data:`CLASSES`.
        shares: of all pairs that are of each class, float64 (classes,).
        aside: for each kind, the calibrated probabilities of wrong pairs that were made of records set aside.
        doubt: why no precision can be estimated; empty if one can.
    """

    probabilities: np.ndarray
    kinds: np.ndarray
    shares: np.ndarray
    aside: tuple[np.ndarray, ...]
    doubt: str = ""

    def expected(self) -> PrecisionEstimate:
        """Return how many of the pairs down to every probability are right, and wrong pairs that stand for all."""
        falling = np.sort(self.probabilities.astype(np.float64))[::-1]
        counts = self.shares[1:] * len(falling)
        each = [
            int(np.ceil(_SHOWN * count / max(counts.max(), 1e-9))) if len(own) else 0 for own, count in self._pairs(counts)
        ]
        stand = [
            np.quantile(own, (np.arange(n) + 0.5) / n) for (own, _), n in zip(self._pairs(counts), each, strict=True) if n
        ]
        wrong = np.concatenate([np.zeros(0), *stand]).astype(np.float32)
        weight, right = float(counts.sum()) / max(1, len(wrong)), np.cumsum(falling)
        estimate = falling, right, len(falling), wrong, weight
        return PrecisionEstimate(*estimate, limits=self._limits(falling, right), close=_CLOSE)

    def _limits(self, falling: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return how many of the first i + 1 pairs are right at least, and at most, float64 (2, n)."""
        kept = np.arange(1, len(falling) + 1)
        places = np.unique(np.linspace(0, len(falling) - 1, _PLACES).astype(np.int64)) if len(falling) else kept
        intervals = [self._interval(float(falling[place]), float(right[place] / kept[place])) for place in places.tolist()]
        sides = [np.interp(kept - 1, places, side) * kept for side in zip(*intervals, strict=True)]
        return np.array([np.minimum(sides[0], right), np.maximum(sides[1], right)]) if sides else np.zeros((2, 0))

    def _pairs(self, counts: np.ndarray) -> list[tuple[np.ndarray, float]]:
        return list(zip(self.aside, counts.tolist(), strict=True))

    def _interval(self, threshold: float, precision: float) -> tuple[float, float]:
        """Return the bounds of the precision above a threshold.

        Uncertain are the shares of each kind that are kept, which a few hundred pairs tell; and wrong pairs that are made
        are nearer to right ones than most that there are, of which fewer, and perhaps none, are kept.
        """
        kept = self.kept(threshold)
        all_kept = max(1, int((self.probabilities >= np.float32(threshold)).sum()))
        counts = dict(zip(KINDS, self.shares[1:] * len(self.probabilities), strict=True))
        made = dict(zip(KINDS, map(len, self.aside), strict=True))
        variance = sum(
            (counts[kind] ** 2) * (part * (1 - part) + 1 / made[kind]) / made[kind] for kind, part in kept.items()
        )
        wide = (1.96 * variance**0.5) / all_kept + _OWN_ERROR / max(float(self.shares[0]), 0.1)
        harder = sum(counts[kind] * part * (1 - part) for kind, part in kept.items()) / all_kept
        return max(0.0, precision - wide), min(1.0, precision + wide + harder)

    def noise(self, threshold: float) -> Noise:
        """Return the estimated share of each kind of wrong pairs, and how much of it is kept."""
        kept = self.kept(threshold)
        return Noise(
            tuple((kind, float(share), kept.get(kind)) for kind, share in zip(KINDS, self.shares[1:], strict=True))
        )

    def kept(self, threshold: float) -> dict[str, float]:
        """Return the share of each kind of wrong pairs that a threshold keeps, for kinds that could be made."""
        found = zip(KINDS, self.aside, strict=True)
        return {kind: float((scores >= threshold).mean()) for kind, scores in found if len(scores)}

    def unseen(self, threshold: float) -> tuple[str, ...]:
        """Return the kinds of noise whose share cannot be estimated, because too many would be kept, and names."""
        return tuple(kind for kind, share in self.kept(threshold).items() if _is_unseen(kind, share))


@dataclass(frozen=True, eq=False)
class Sample:
    """Records of a bitext to learn from: their texts, and their rows among the features, in an order of content."""

    pairs: list[Pair]
    rows: np.ndarray


def sample_rows(keys: np.ndarray) -> np.ndarray:
    """Return the rows of the records to learn from: those of the smallest keys, smallest first."""
    return np.argsort(keys, kind="stable")[:SAMPLE]


@dataclass(frozen=True, eq=False)
class _Data:
    """Pairs to learn from: features float32 (n, features), classes (n,), weights (n,)."""

    features: np.ndarray
    classes: np.ndarray
    weights: np.ndarray

    @classmethod
    def joined(cls, parts: list[_Data]) -> _Data:
        columns = ((part.features, part.classes, part.weights) for part in parts)
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


_first: dict[tuple[str, tuple[str, ...]], Trees] = {}  # trees that know the examples only, in this process


class Learner:
    """Learns from one bitext."""

    def __init__(self, model: AnyModel, languages: tuple[str, ...], features: np.ndarray, sample: Sample) -> None:
        self._model, self._languages, self._sample = model, languages, sample
        self._finder = Features(model, languages)
        self._given, self._given_classes, middles = examples_for(model, languages)
        # A bitext's own ratio of lengths, and how its languages look, are the middle of what is expected.
        own = np.median(features[:, CENTRED].astype(np.float32), axis=0)
        self._shift = np.zeros(len(NAMES), np.float32)
        self._shift[list(CENTRED)] = np.rint(middles - own)
        self._features = features

    def _centred(self, features: np.ndarray) -> np.ndarray:
        return _binned(features.astype(np.float32) + self._shift)

    def _predicted(self, trees: Trees, features: np.ndarray, habits: bool) -> np.ndarray:
        out = np.zeros((len(features), len(CLASSES)), np.float32)
        for start in range(0, len(out), _ROWS):
            part = self._centred(features[start : start + _ROWS])
            if not habits:
                part = part[:, _NO_HABITS]
            trees.probabilities(part.astype(np.uint8, order="C"), out[start : start + _ROWS])
        return out

    def learn(self) -> Learnt:
        """Train the classifier, and classify every pair."""
        rows = self._sample.rows
        examples = _binned(self._given.astype(np.float32))
        examples[:, HABITS] = np.nan
        given = _Data(examples, self._given_classes, np.full(len(examples), _EXAMPLE))
        key = self._model.identity, self._languages
        if key not in _first:
            _first[key] = _fitted(_Data(examples[:, _NO_HABITS], given.classes, given.weights))
        first = _first[key]
        begun = self._predicted(first, self._features[rows], habits=False)
        likely = weighed(begun, priors_fitted(sorted_rows(begun)))
        # Where few pairs have a name, changed ones are few of all, and taken for right: learnt so, few would be told.
        alike = weighed(begun, np.ones(len(CLASSES)))
        right = (likely[:, 0] >= _SURELY) & (alike[:, CLASSES.index(_NAMES)] < _RENAMED * alike[:, 0])
        aside = np.arange(len(rows)) % 3 == 0
        doubt = ""
        if int((right & ~aside).sum()) < _LEAST_RIGHT:
            doubt = "too few pairs seem right to learn from"
            trees, habits = first, False
            scores: tuple[np.ndarray, ...] = tuple(np.zeros(0) for _ in KINDS)
        else:
            chosen, habits = np.flatnonzero(right & ~aside), True
            made, classes, _ = self._wrong(chosen, _EACH, 1)
            likeliest = likely.argmax(1)
            other = np.flatnonzero((likely[:, 0] <= _HARDLY) & np.isin(likeliest, _OF_ITS_OWN) & ~aside)
            own = np.concatenate([self._features[rows[np.append(chosen, other)]], made])
            classes = np.concatenate([np.zeros(len(chosen), np.int64), likeliest[other], classes])
            trees = _fitted(_Data.joined([given, _Data(self._centred(own), classes, np.ones(len(own)))]))
            scores = ()
        probabilities = self._predicted(trees, self._features, habits)
        ordered = sorted_rows(probabilities)
        shares = priors_fitted(ordered)
        if not doubt:
            made, classes, possible = self._wrong(np.flatnonzero(right & aside), _ASIDE, 2)
            seen = self._predicted(trees, made, habits)
            limits = _limits(seen, classes, shares, possible, probabilities)
            shares = priors_fitted(ordered, limits)
        found = weighed(probabilities, shares)
        right_ones, kinds = found[:, 0].astype(np.float64), (1 + found[:, 1:].argmax(1)).astype(np.uint8)
        if not doubt:
            wrong = weighed(seen, shares)[:, 0].astype(np.float64)
            scores = tuple(wrong[classes == place] for place in range(1, len(CLASSES)))
            places, values = _calibration(right_ones, scores, shares)
            right_ones = np.interp(right_ones, places, values)
            scores = tuple(np.interp(own, places, values) for own in scores)
        if shares[0] < _LEAST_SHARE:
            doubt = "too few pairs seem right to learn from"
        return Learnt(right_ones.astype(np.float32), kinds, shares, scores, doubt)

    def _wrong(self, places: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make wrong pairs: their features and classes, and of each kind the share of pairs in which it can be made."""
        pairs = [self._sample.pairs[place] for place in places.tolist()]
        vectors = self._model.encode(Texts.of([target for _, target in pairs]))
        made = WrongPairs(pairs, vectors, foreign_texts(self._languages), seed)
        found = wrong_ones(self._finder, made, most)
        return *found, np.array([made.possible[kind] for kind in KINDS])


def _binned(features: np.ndarray) -> np.ndarray:
    """Return features with 255 values at most: each is a bin then, without a slow look for quantiles."""
    out = np.clip(features, 0, 255)
    out[out == 253] = 254  # both are next to all
    return out


def _fitted(data: _Data) -> Trees:
    totals = np.bincount(data.classes, data.weights, len(CLASSES))
    weights = data.weights * (_learnt_shares() / np.maximum(totals, 1e-9))[data.classes] * len(data.classes)
    return Trees.fit(data.features, data.classes, weights)


@lru_cache(1)
def _learnt_shares() -> np.ndarray:
    """Return the share of each class in the weight of all that is learnt."""
    shares = np.full(len(CLASSES), (1 - _RIGHT_SHARE) / len(KINDS))
    shares[0] = _RIGHT_SHARE
    return shares


def weighed(probabilities: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return probabilities as they are where classes occur in other shares than they were learnt in."""
    out = probabilities * (shares / _learnt_shares())
    return out / out.sum(axis=1, keepdims=True)


@njit(**LEAN)
def weighed_mean(rows: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Write the mean of rows, float64 (n, classes), each multiplied with ``factors`` and divided by its sum."""
    for k in range(len(out)):
        out[k] = 0.0
    for i in range(len(rows)):
        total = 0.0
        for k in range(len(out)):
            total += rows[i, k] * factors[k]
        for k in range(len(out)):
            out[k] += rows[i, k] * factors[k] / total
    for k in range(len(out)):
        out[k] /= len(rows)


def _limits(
    seen: np.ndarray, classes: np.ndarray, shares: np.ndarray, possible: np.ndarray, probabilities: np.ndarray
) -> np.ndarray:
    """Return the most that each class is taken for, float64 (classes,): 1 but for the kinds that can hardly be seen.

    A kind can hardly be seen if many of its pairs would be kept, were there next to none of it: what looks like it may as
    well be right. It is taken for a middling one of the others, as far as there are pairs in which it can occur; or, where
    many pairs are of this kind even so, for as many as that part of it tells which can be seen.

    Args:
        seen: float32 (m, classes), probabilities of wrong pairs that were made.
        classes: int64 (m,), what they are.
        shares: float64 (classes,), the estimate without limits.
        possible: float64 (kinds,), the share of the pairs in which each kind can occur.
        probabilities: float32 (n, classes), of all pairs.
    """
    kept = np.zeros(len(shares))
    for place in range(1, len(shares)):
        few = shares.copy()
        few[place] = _FLOOR
        if len(own := seen[classes == place]):
            kept[place] = (weighed(own, few)[:, 0] >= 0.5).mean()
    unseen = kept > _BLIND
    known = shares[1:][~unseen[1:]]
    most = np.where(unseen, np.concatenate([np.ones(1), possible]) * (np.median(known) if len(known) else 1.0), 1.0)
    few = np.where(unseen, _FLOOR, shares)
    own, found = (weighed(each, few).argmax(axis=1) for each in (seen, probabilities))
    for place in np.flatnonzero(unseen).tolist():
        visible, there = (own[classes == place] == place).mean(), (found == place).mean()
        many = _MANY_NAMED * possible[place - 1] if CLASSES[place] == _NAMES else _MANY
        if there >= many and visible >= _VISIBLE:
            most[place] = max(most[place], there / visible)
    return most


def sorted_rows(probabilities: np.ndarray) -> np.ndarray:
    """Sort rows of probabilities, float32 (n, classes), so that the order of records does not matter."""
    keys = np.ascontiguousarray(probabilities[:, :2]).view(np.uint32).astype(np.uint64)  # bits are in the order of numbers
    keys = keys[:, 0] << np.uint64(32) | keys[:, 1]
    order = np.argsort(keys)
    keys = keys[order]
    tied = np.flatnonzero(keys[1:] == keys[:-1])
    tied = np.union1d(tied, tied + 1)  # which differ, if at all, in a later column
    order[tied] = order[tied][np.lexsort(probabilities[order[tied]].T[::-1])]
    return probabilities[order]


def priors_fitted(ordered: np.ndarray, limits: np.ndarray | None = None) -> np.ndarray:
    """Estimate the shares of all classes, by expectation-maximisation over sorted rows of probabilities.

    ``limits`` are the most that each share can be.
    """
    shares = _learnt_shares()
    rows = ordered[:: max(1, len(ordered) // 100_000)].astype(np.float64)
    new = np.empty(rows.shape[1])
    for _ in range(100):
        weighed_mean(rows, shares / _learnt_shares(), new)
        new[1:] = np.maximum(new[1:] if limits is None else np.minimum(new[1:], limits[1:]), _FLOOR)
        new /= new.sum()
        if np.abs(new - shares).max() < 1e-6:
            break
        shares = new.copy()
    return shares


def _calibration(
    probabilities: np.ndarray, aside: tuple[np.ndarray, ...], shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending probabilities, and the share of right pairs at each."""
    from sklearn.isotonic import IsotonicRegression

    ordered = np.sort(probabilities)
    bins = max(1, min(_BINS, len(ordered) // _LEAST_BIN))
    edges = np.unique(np.quantile(ordered, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, ordered, "right")
    all_of_them = np.bincount(place, minlength=len(edges) + 1).astype(np.float64)
    middles = np.bincount(place, ordered, len(edges) + 1) / np.maximum(all_of_them, 1)
    wrong = np.zeros(len(edges) + 1)
    for scores, share in zip(aside, shares[1:], strict=True):
        if len(scores):
            counts = np.bincount(np.searchsorted(edges, scores, "right"), minlength=len(edges) + 1)
            wrong += share * len(probabilities) * counts / len(scores)
    there = all_of_them > 0
    values = np.clip(1 - wrong[there] / all_of_them[there], 0, 1)
    places = middles[there]
    found = IsotonicRegression(y_min=0, y_max=1).fit_transform(places, values, sample_weight=all_of_them[there])
    # Far below, real wrong pairs are not where those that were made are; but there the trees are sure.
    return places, np.where(places < _HOPELESS, np.minimum(found, places), found)
