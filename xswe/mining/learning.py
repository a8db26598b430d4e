"""A classifier of right and wrong pairs, trained on the bitext that it filters.

First, trees fitted to examples that ship with the library (:mod:`xswe.mining.examples`) estimate for every pair how likely
it is right, or wrong in one of the :data:`~xswe.mining.wrong.KINDS`. From pairs that are likely right, wrong ones of every
kind are made; boosted trees are then trained on both, together with the examples. So the filter knows the lengths, words
and habits of its bitext. Features of habit (how sentences end, Latin letters) count only in the bitext's own pairs.

The share of each kind in the bitext is estimated by maximum likelihood from the trees' probabilities (Saerens, Latinne and
Decaestecker, 2002); the share of each kind that would be kept, on wrong pairs made from held-out records. Together they
give the share of wrong pairs as a monotone function of the probability (isotonic regression).

All sampling is by the content of records, so their order does not matter.
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
from xswe.mining.names import NameUsage
from xswe.mining.threshold import PrecisionEstimate
from xswe.mining.trees import Trees
from xswe.mining.wrong import KINDS, Pair, WrongPairs
from xswe.model.ensemble import AnyModel

CLASSES = ("right", *KINDS)
_FOUND_CLASSES = [CLASSES.index(kind) for kind in ("added text", "wrong language")]  # also learnt from real wrong pairs
SAMPLE = 4000  # records to learn from
LEAST_RECORDS = 500
_MIN_RIGHT = 150  # likely right pairs in the sample
_MADE_TO_TRAIN, _MADE_TO_TEST = 800, 400  # wrong pairs made of each kind
_EXAMPLE_WEIGHT = 0.3  # relative to a pair of the bitext
_MIN_RIGHT_PROBABILITY = 0.5  # probability from which a pair is learnt as right
_MAX_RENAMED = 3.0  # pairs from this likelihood ratio, of another name to right, are not learnt as right
_MAX_WRONG_PROBABILITY = 0.05  # of being right, for a pair to be learnt as one of _FOUND_CLASSES
_CAPPED_BELOW = 0.05  # probability below which calibration never raises what the trees say
_RIGHT_SHARE = 0.5  # of the training weight
_MIN_KIND_SHARE = 0.004  # lower limit of each kind's estimated share
_MAX_KEPT = 0.25  # the share of a kind that is kept more often cannot be estimated
_NAMES = "other names"  # of changes by another generator 3 to 86 % are kept, whatever is kept of those made here
_MIN_LOOKALIKES = 0.05  # share of pairs that look like a kind even if assumed rare; up to 4 % of right pairs did
_RARE_NAMES = 0.02  # of changed names, the share that is assumed to tell how many pairs look like them
# The more of them are kept then, the more right pairs look like them: of those with a name to change, of thirteen bitexts
# without changed names, 0 to 2 % where up to 18 % were kept, 7 to 10 where 21, 12 to 20 where 27, and 24 where 31.
_LOOKALIKES_FROM, _LOOKALIKES_SLOPE = 0.17, 2.0
_MIN_VISIBLE = 0.15  # minimum share of a kind that looks like it then, for the rest to be extrapolated
_MIN_RIGHT_SHARE = 0.12  # for the classifier to be trusted
_BASE_ERROR = 0.01  # error of a precision with hardly any noise: made wrong pairs differ a little from real ones
_MAX_ERROR = 0.03  # a precision that may be further off is given by its bounds alone
_INTERVAL_POINTS = 240  # probabilities at which the interval of a precision is computed
_SHOWN = 400  # wrong pairs that represent the commonest kind; the others in proportion
_BINS, _MIN_BIN_SIZE = 40, 50
_BATCH = 1 << 16
_NO_HABITS = [place for place in range(len(NAMES)) if place not in HABITS]


@dataclass(frozen=True)
class Noise:
    """The estimated noise of a bitext.

    Attributes:
        kinds: for each kind of wrong pairs: its name, its estimated share of the compared pairs, and the share of such
            pairs that is kept, measured on pairs made from held-out records; None if none could be made.
    """

    kinds: tuple[tuple[str, float, float | None], ...]

    @property
    def share(self) -> float:
        """The estimated share of noise among the compared pairs."""
        return sum(share for _, share, _ in self.kinds)

    @property
    def by_kind(self) -> str:
        """The kinds of noise with more than a minimal share, and their shares."""
        seen = sorted((one for one in self.kinds if one[1] > 2 * _MIN_KIND_SHARE), key=lambda one: -one[1])
        return ", ".join(f"{kind} {100 * share:.0f} %" for kind, share, _ in seen) or "hardly any"

    def __str__(self) -> str:
        unseen = [
            f"{kind} (of such pairs made here {100 * kept:.0f} % are kept)"
            for kind, _, kept in self.kinds
            if kept is not None and _is_unseen(kind, kept)
        ]
        return "\n".join([f"estimated noise: {self.by_kind}", f"not judged: {', '.join(['the order of words', *unseen])}"])


def _is_unseen(kind: str, kept: float) -> bool:
    return kind == _NAMES or kept > _MAX_KEPT


@dataclass(frozen=True, eq=False)
class Learnt:
    """The classifier's results for the pairs of a bitext.

    Attributes:
        probabilities: float32 (n,), calibrated probability that each pair is right.
        kinds: uint8 (n,), the likeliest kind of each pair if it is wrong, an index into :data:`CLASSES`.
        shares: the estimated share of each class among all pairs, float64 (classes,).
        aside: for each kind, the calibrated probabilities of wrong pairs made from held-out records.
        doubt: why the classifier is not trusted; empty if it is.
    """

    probabilities: np.ndarray
    kinds: np.ndarray
    shares: np.ndarray
    aside: tuple[np.ndarray, ...]
    doubt: str = ""

    def expected(self) -> PrecisionEstimate:
        """Return how many pairs down to every probability are right, with wrong pairs that represent all."""
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
        return PrecisionEstimate(*estimate, limits=self._limits(falling, right), close=_MAX_ERROR)

    def _limits(self, falling: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the lower and upper bound of the number of right pairs among the first i + 1, float64 (2, n)."""
        kept = np.arange(1, len(falling) + 1)
        places = np.unique(np.linspace(0, len(falling) - 1, _INTERVAL_POINTS).astype(np.int64)) if len(falling) else kept
        above = len(falling) - np.searchsorted(falling[::-1], falling[places])
        rows = zip(falling[places].tolist(), above.tolist(), (right[places] / kept[places]).tolist(), strict=True)
        intervals = [self._interval(*row) for row in rows]
        sides = [np.interp(kept - 1, places, side) * kept for side in zip(*intervals, strict=True)]
        return np.array([np.minimum(sides[0], right), np.maximum(sides[1], right)]) if sides else np.zeros((2, 0))

    def _pairs(self, counts: np.ndarray) -> list[tuple[np.ndarray, float]]:
        return list(zip(self.aside, counts.tolist(), strict=True))

    def _interval(self, threshold: float, above: int, precision: float) -> tuple[float, float]:
        """Return the bounds of the precision above a threshold, given how many pairs are.

        The kept share of each kind is uncertain, as only a few hundred pairs tell it; and made wrong pairs are nearer to
        right ones than most real wrong pairs, of which fewer, perhaps none, are kept.
        """
        kept = self.kept(threshold)
        counts = dict(zip(KINDS, self.shares[1:] * len(self.probabilities), strict=True))
        made = dict(zip(KINDS, map(len, self.aside), strict=True))
        variance = sum(
            (counts[kind] ** 2) * (part * (1 - part) + 1 / made[kind]) / made[kind] for kind, part in kept.items()
        )
        wide = (1.96 * variance**0.5) / above + _BASE_ERROR / max(float(self.shares[0]), 0.1)
        harder = sum(counts[kind] * part * (1 - part) for kind, part in kept.items()) / above
        return max(0.0, precision - wide), min(1.0, precision + wide + harder)

    def noise(self, threshold: float) -> Noise:
        """Return the estimated share of each kind of wrong pairs, and the share of it that is kept."""
        kept = self.kept(threshold)
        return Noise(
            tuple((kind, float(share), kept.get(kind)) for kind, share in zip(KINDS, self.shares[1:], strict=True))
        )

    def kept(self, threshold: float) -> dict[str, float]:
        """Return the share of each kind of wrong pairs that a threshold keeps, if pairs of that kind could be made."""
        found = zip(KINDS, self.aside, strict=True)
        return {kind: float((scores >= threshold).mean()) for kind, scores in found if len(scores)}

    def unseen(self, threshold: float) -> tuple[str, ...]:
        """Return the kinds of noise whose share cannot be estimated, as too many would be kept, and other names."""
        return tuple(kind for kind, share in self.kept(threshold).items() if _is_unseen(kind, share))


@dataclass(frozen=True, eq=False)
class Sample:
    """Records of a bitext to learn from: their texts, their rows among the features, ordered by content; and its names."""

    pairs: list[Pair]
    rows: np.ndarray
    usage: NameUsage


def sample_rows(keys: np.ndarray) -> np.ndarray:
    """Return the rows of the records to learn from: those with the smallest keys, ascending."""
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


_example_trees: dict[tuple[str, tuple[str, ...]], Trees] = {}  # trees fitted to the examples alone


class Learner:
    """Trains a classifier on one bitext."""

    def __init__(self, model: AnyModel, languages: tuple[str, ...], features: np.ndarray, sample: Sample) -> None:
        self._model, self._languages, self._sample = model, languages, sample
        self._finder = Features(model, languages)
        self._given, self._given_classes, middles = examples_for(model, languages)
        # Length ratios and language scores are compared with the bitext's own medians.
        own = np.median(features[:, CENTRED].astype(np.float32), axis=0)
        self._shift = np.zeros(len(NAMES), np.float32)
        self._shift[list(CENTRED)] = np.rint(middles - own)
        self._features = features

    def _centred_bins(self, features: np.ndarray) -> np.ndarray:
        return _binned(features.astype(np.float32) + self._shift)

    def _predicted(self, trees: Trees, features: np.ndarray, habits: bool) -> np.ndarray:
        out = np.zeros((len(features), len(CLASSES)), np.float32)
        for start in range(0, len(out), _BATCH):
            part = self._centred_bins(features[start : start + _BATCH])
            if not habits:
                part = part[:, _NO_HABITS]
            trees.probabilities(part.astype(np.uint8, order="C"), out[start : start + _BATCH])
        return out

    def learn(self) -> Learnt:
        """Train the classifier, and classify every pair."""
        rows = self._sample.rows
        examples = _binned(self._given.astype(np.float32))
        examples[:, HABITS] = np.nan
        given = _Data(examples, self._given_classes, np.full(len(examples), _EXAMPLE_WEIGHT))
        key = self._model.identity, self._languages
        if key not in _example_trees:
            _example_trees[key] = _fitted(_Data(examples[:, _NO_HABITS], given.classes, given.weights))
        first = _example_trees[key]
        begun = self._predicted(first, self._features[rows], habits=False)
        likely = weighed(begun, priors_fitted(sorted_rows(begun)))
        # Where few pairs have names, changed ones are rare and pass for right; learnt as right, they would go unseen.
        alike = weighed(begun, np.ones(len(CLASSES)))
        right = (likely[:, 0] >= _MIN_RIGHT_PROBABILITY) & (alike[:, CLASSES.index(_NAMES)] < _MAX_RENAMED * alike[:, 0])
        aside = np.arange(len(rows)) % 3 == 0
        doubt = ""
        if int((right & ~aside).sum()) < _MIN_RIGHT:
            doubt = "too few pairs seem right to learn from"
            trees, habits = first, False
            scores: tuple[np.ndarray, ...] = tuple(np.zeros(0) for _ in KINDS)
        else:
            chosen, habits = np.flatnonzero(right & ~aside), True
            made, classes, _ = self._wrong(chosen, _MADE_TO_TRAIN, 1)
            likeliest = likely.argmax(1)
            other = np.flatnonzero((likely[:, 0] <= _MAX_WRONG_PROBABILITY) & np.isin(likeliest, _FOUND_CLASSES) & ~aside)
            own = np.concatenate([self._features[rows[np.append(chosen, other)]], made])
            classes = np.concatenate([np.zeros(len(chosen), np.int64), likeliest[other], classes])
            trees = _fitted(_Data.joined([given, _Data(self._centred_bins(own), classes, np.ones(len(own)))]))
            scores = ()
        probabilities = self._predicted(trees, self._features, habits)
        ordered = sorted_rows(probabilities)
        shares = priors_fitted(ordered)
        if not doubt:
            made, classes, possible = self._wrong(np.flatnonzero(right & aside), _MADE_TO_TEST, 2)
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
        if shares[0] < _MIN_RIGHT_SHARE:
            doubt = "too few pairs seem right to learn from"
        return Learnt(right_ones.astype(np.float32), kinds, shares, scores, doubt)

    def _wrong(self, places: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make wrong pairs; return their features and classes, and for each kind the share of pairs that allow it."""
        pairs = [self._sample.pairs[place] for place in places.tolist()]
        vectors = self._model.encode(Texts.of([target for _, target in pairs]))
        made = WrongPairs(pairs, vectors, foreign_texts(self._languages), seed, self._sample.usage)
        found = wrong_ones(self._finder, made, most)
        return *found, np.array([made.possible[kind] for kind in KINDS])


def _binned(features: np.ndarray) -> np.ndarray:
    """Return features with at most 255 values, so that each is a bin, and scikit-learn needs no slow quantiles."""
    out = np.clip(features, 0, 255)
    out[out == 253] = 254  # both mean nearly all
    return out


def _fitted(data: _Data) -> Trees:
    totals = np.bincount(data.classes, data.weights, len(CLASSES))
    weights = data.weights * (_learnt_shares() / np.maximum(totals, 1e-9))[data.classes] * len(data.classes)
    return Trees.fit(data.features, data.classes, weights)


@lru_cache(1)
def _learnt_shares() -> np.ndarray:
    """Return the share of each class in the training weight."""
    shares = np.full(len(CLASSES), (1 - _RIGHT_SHARE) / len(KINDS))
    shares[0] = _RIGHT_SHARE
    return shares


def weighed(probabilities: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return probabilities adjusted from the class shares of training to other ``shares``."""
    out = probabilities * (shares / _learnt_shares())
    return out / out.sum(axis=1, keepdims=True)


@njit(**LEAN)
def weighed_mean(rows: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Write the mean of rows, float64 (n, classes), each multiplied by ``factors`` and normalised to sum 1."""
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
    """Return the upper limit of each class's share, float64 (classes,): 1 except for kinds that are hard to see.

    A kind is hard to see if many of its pairs would be kept were it rare: what looks like it may as well be right. Its
    limit is the median share of the visible kinds, times the share of pairs in which it can occur; or, if many pairs look
    like it even when it is assumed rare, their share divided by the share of the kind that looks like it. Right pairs
    look like changed names the more often, the harder these are to see; as many are taken off.

    Args:
        seen: float32 (m, classes), probabilities of made wrong pairs.
        classes: int64 (m,), their classes.
        shares: float64 (classes,), the estimate without limits.
        possible: float64 (kinds,), the share of the pairs in which each kind can occur.
        probabilities: float32 (n, classes), of all pairs.
    """
    names, kept = CLASSES.index(_NAMES), np.zeros(len(shares))
    rare = np.full(len(shares), _MIN_KIND_SHARE)
    rare[names] = _RARE_NAMES
    for place in range(1, len(shares)):
        few = shares.copy()
        few[place] = rare[place]
        if len(own := seen[classes == place]):
            kept[place] = (weighed(own, few)[:, 0] >= 0.5).mean()
    unseen = kept > _MAX_KEPT
    known = shares[1:][~unseen[1:]]
    most = np.where(unseen, np.concatenate([np.ones(1), possible]) * (np.median(known) if len(known) else 1.0), 1.0)
    unseen[names] = kept[names] > _LOOKALIKES_FROM
    few = np.where(unseen, rare, shares)
    own, found = (weighed(each, few).argmax(axis=1) for each in (seen, probabilities))
    for place in np.flatnonzero(unseen).tolist():
        visible, there = (own[classes == place] == place).mean(), (found == place).mean()
        if visible < _MIN_VISIBLE:
            continue
        if place == names:
            right = _LOOKALIKES_SLOPE * (kept[place] - _LOOKALIKES_FROM) * possible[place - 1]
            most[place] = max(0.0, there / visible - right)
        elif there >= _MIN_LOOKALIKES:
            most[place] = max(most[place], there / visible)
    return most


def sorted_rows(probabilities: np.ndarray) -> np.ndarray:
    """Sort rows of probabilities, float32 (n, classes), to make sums independent of the order of records."""
    keys = np.ascontiguousarray(probabilities[:, :2]).view(np.uint32).astype(np.uint64)  # bits sort like the floats
    keys = keys[:, 0] << np.uint64(32) | keys[:, 1]
    order = np.argsort(keys)
    keys = keys[order]
    tied = np.flatnonzero(keys[1:] == keys[:-1])
    tied = np.union1d(tied, tied + 1)  # may differ in a later column
    order[tied] = order[tied][np.lexsort(probabilities[order[tied]].T[::-1])]
    return probabilities[order]


def priors_fitted(ordered: np.ndarray, limits: np.ndarray | None = None) -> np.ndarray:
    """Estimate the shares of all classes by expectation-maximisation over sorted rows of probabilities.

    ``limits`` are upper limits of the shares.
    """
    shares = _learnt_shares()
    rows = ordered[:: max(1, len(ordered) // 100_000)].astype(np.float64)
    new = np.empty(rows.shape[1])
    for _ in range(100):
        weighed_mean(rows, shares / _learnt_shares(), new)
        new[1:] = np.maximum(new[1:] if limits is None else np.minimum(new[1:], limits[1:]), _MIN_KIND_SHARE)
        new /= new.sum()
        if np.abs(new - shares).max() < 1e-6:
            break
        shares = new.copy()
    return shares


def _calibration(
    probabilities: np.ndarray, aside: tuple[np.ndarray, ...], shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending probabilities, and the estimated share of right pairs at each."""
    from sklearn.isotonic import IsotonicRegression

    ordered = np.sort(probabilities)
    bins = max(1, min(_BINS, len(ordered) // _MIN_BIN_SIZE))
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
    # At low probabilities, real wrong pairs are distributed unlike made ones; but there the trees are sure.
    return places, np.where(places < _CAPPED_BELOW, np.minimum(found, places), found)
