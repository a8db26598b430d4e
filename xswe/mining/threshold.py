"""Automatic thresholds, and the precision to expect above them.

Scores of different models are not comparable, so neither are thresholds. The estimate comes from **mismatched
neighbours**, the decoys of this search: the best neighbour of every line is left out, and pairs are selected one to one
among the rest, like the pairs of lines without a translation. The number of decoys above a score, scaled by the fraction of
lines without a translation (estimated below the median of the decoys, where hardly any right pair scores), is the number of
wrong pairs above it; one more is always counted, so that few pairs never look perfect.

Decoys score a little low, because a line without a translation also loses its best neighbour, which is wrong. For scores
whose best and second best wrong neighbours differ, the decoys are raised by its ``decoy_correction``
(:class:`xswe.mining.margin.Scoring`) times the difference between the second and the third best.

Decoys arise among all lines, wrong pairs only among lines not matched with their translations, and high scores are rare:
half the lines on both sides make a quarter of them. This scaling holds for a margin, where standing out from the
neighbourhood is chance; high cosines occur between the same few lines, whatever the rest are. But lines with a translation
have better decoys, because their translations have neighbours, too. So high decoys are weighted by the probability that
neither of their lines has a translation (:mod:`xswe.mining.share`), if that is less; low decoys by chance.

The estimate needs a fair share of lines with a translation. If few have one, the few wrong pairs at the very top decide,
and decoys tell too little about them: below the score's ``least_matched_share`` no precision is estimated, and the
threshold comes from the likelihood of each pair (:mod:`xswe.mining.share`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.settings import refuse_unused
from xswe.mining.share import Parallel

# An estimated precision was at most OFF too high or too low; and where right pairs stand out, lines lost at most UNFOUND of
# their translations to other lines, whatever the threshold (eval/experiments/sparse_mining.py).
OFF = (0.01, 0.06)
UNFOUND = 0.06
# Minimum share of the shorter side's lines expected in a right pair, minimum expected precision at the best threshold, and
# minimum number of pairs, for a threshold to mean something.
LEAST_SHARE = 0.05
LEAST_PRECISION = 0.6
LEAST_PAIRS = 50


@dataclass(frozen=True)
class Threshold:
    """A threshold and where it comes from.

    Attributes:
        value: minimum score of the kept pairs; -inf for all.
        origin: ``mismatched neighbours``, ``gold pairs``, ``given`` or ``none``.
        precision: the expected fraction of right pairs among the kept ones; None if it cannot be estimated.
        recall: the fraction of right pairs that is kept, expected or measured on gold; None if it cannot be estimated.
        unsure: why no precision is estimated; empty if one is, or none was wanted.
        missed: the precision that was wanted but cannot be reached; None otherwise.
        within: 95 % confidence interval of the precision; None if unknown.
        recall_within: the same for the recall, of all translations in the text.
        share: the estimated share of the shorter side's lines that have a translation, and its 95 % confidence interval;
            None if unknown.
        aside: kinds of wrong pairs that hardly differ from right ones, so that the precision does not cover them.
    """

    value: float
    origin: str
    precision: float | None = None
    recall: float | None = None
    unsure: str = ""
    missed: float | None = None
    within: tuple[float, float] | None = None
    recall_within: tuple[float, float] | None = None
    share: tuple[float, float, float] | None = None
    aside: tuple[str, ...] = ()

    def sentence(self) -> str:
        """One sentence for the report."""
        if self.value == -np.inf:  # also the threshold of an empty result
            return f"threshold: none, {'all pairs are kept' if self.origin in ('none', 'given') else 'no pairs are left'}"
        line = f"threshold: {self.value:.4f} ({self.origin})"
        said = [line]
        if self.precision is not None:
            between = "" if self.within is None else f" ({bounds(*self.within)})"
            aside = f" but for {' and '.join(self.aside)}, for which it cannot be estimated" if self.aside else ""
            said.append(f"expected precision {percent(self.precision)}{between}{aside}")
        elif self.unsure:
            aside = f", {' and '.join(self.aside)} aside" if self.aside else ""
            said.append(f"precision cannot be estimated: {self.unsure}{aside}")
        if self.recall is not None:
            measured = "on gold: " if self.origin == "gold pairs" else "expected "
            between = "" if self.recall_within is None else f" ({bounds(*self.recall_within)})"
            said.append(f"{measured}recall {percent(self.recall)}{between}")
        if self.missed is not None:
            said.append(f"precision={self.missed:g} is not reached at any threshold")
        if self.share is not None:
            part, low, high = (f"{100 * share:.{0 if share > 0.1 else 1}f}" for share in self.share)
            said.append(f"{part} % of the lines seem to have a translation ({low} to {high} %)")
        return ", ".join(said)


def percent(share: float) -> str:
    """Format a share in whole per cent; an estimate is never 0 or 100."""
    return "over 99 %" if share > 0.99 else "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def near_duplicate_note(share: float, what: str) -> str:
    """Return the note on near-duplicates that ends a line of a summary."""
    return f"; near-duplicates of earlier {what}: {percent(share) if share else 'none'}"


def bounds(low: float, high: float) -> str:
    """Format two bounds in whole per cent, rounded outwards."""
    return f"{np.floor(100 * low):.0f} to {np.ceil(100 * high):.0f} %"


def check_threshold(threshold: Any, precision: float | None) -> None:
    """Raise ConfigError for a threshold that is neither ``auto`` nor a number nor None, or an impossible precision."""
    number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
    if not (threshold is None or threshold == "auto" or number):
        raise ConfigError(f"threshold={threshold!r}: use auto, a number, or null for none")
    if threshold != threshold:
        raise ConfigError("threshold=nan: give a number, or null for none")
    if precision is not None and not 0 < precision < 1:
        raise ConfigError(f"precision={precision}: give a fraction of one, as in precision=0.9")


def check_found(config: Any) -> None:
    """Raise ConfigError for a threshold, precision or ``rerank_share`` that is impossible or ignored."""
    check_threshold(config.threshold, config.precision)
    refuse_unused(config, {"without threshold=auto": () if config.threshold == "auto" else ("precision",)})
    if not 0 < config.rerank_share <= 1:
        raise ConfigError(f"rerank_share={config.rerank_share}: give a share of the lines, as in rerank_share=0.05")


def wrong_fraction(scores: np.ndarray, mismatches: np.ndarray) -> float:
    """Estimate the number of wrong pairs without a threshold, as a fraction of the mismatches.

    Hardly any right pair scores below the median of the mismatches, so the ratio of the counts there, plus one each, is
    the ratio of all wrong pairs to all mismatches (as for false-discovery rates, Storey 2002); at most 1.
    """
    if not len(mismatches):
        return 0.0
    middle = np.median(mismatches)
    return min(1.0, (int((scores < middle).sum()) + 1) / (int((mismatches < middle).sum()) + 1))


def extrapolate_decoys(mismatches: np.ndarray, further: np.ndarray, weight: float) -> np.ndarray:
    """Raise the scores of decoys, quantile by quantile, by ``weight`` times the loss from leaving out one more."""
    if not weight or not len(mismatches) or not len(further):
        return mismatches
    points = np.linspace(0, 1, len(mismatches))
    ordered = np.sort(mismatches)
    return (ordered + weight * np.maximum(ordered - np.quantile(further, points), 0)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PrecisionEstimate:
    """The expected number of right pairs down to every score.

    Attributes:
        falling: scores of the pairs, float64 (n,), highest first.
        right: expected number of right pairs among the first i + 1, float64 (n,).
        lines: number of lines of the shorter side.
        mismatches: scores of the mismatched pairs, float32 (m,).
        weight: how many wrong pairs each mismatch stands for, at most.
        least_share: minimum share of lines expected to be in a right pair, for a precision estimate; infinite for none.
        limits: 95 % confidence interval of ``right``, float64 (2, n); None if unknown.
        unfound: upper limit of the share of translations that are in no pair.
        close: a precision that may be further off than this is given by its bounds alone.
        f1: the F1 to expect of the first i + 1 pairs, float64 (n,); None to derive it from ``right``.
    """

    falling: np.ndarray
    right: np.ndarray
    lines: int
    mismatches: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    weight: float = 0.0
    least_share: float = LEAST_SHARE
    limits: np.ndarray | None = None
    unfound: float = 0.0
    close: float = np.inf
    f1: np.ndarray | None = None

    @cached_property
    def unreliable(self) -> bool:
        """Whether so few pairs seem right that the threshold means little."""
        if len(self.falling) < LEAST_PAIRS or self.right[-1] < LEAST_SHARE * self.lines:
            return True
        best = int((self.falling >= self.choose()).sum())
        return bool(self.right[best - 1] < LEAST_PRECISION * best)

    @property
    def unsure(self) -> str:
        """Why a precision cannot be estimated; empty if it can."""
        if len(self.falling) < LEAST_PAIRS:
            return f"{len(self.falling)} pairs are too few"
        if self.unreliable or self.right[-1] < self.least_share * self.lines:
            return "too few of the lines seem to have a translation; look at the pairs round the threshold, or use rerank="
        return ""

    @property
    def translations(self) -> float:
        """The estimated number of translations, including those that are in no pair."""
        return float(self.right[-1]) / (1 - self.unfound / 2)

    def between(self, least: float, most: float | None) -> tuple[float | None, float | None]:
        """Return the expected precision and recall of the pairs with scores from ``least`` to ``most``; None if unsure."""
        low = int(np.searchsorted(-self.falling, -least, "right"))
        high = 0 if most is None else int(np.searchsorted(-self.falling, -most, "left"))
        if self.unsure or low <= high:
            return None, None
        right = float(self.right[low - 1] - (self.right[high - 1] if high else 0.0))
        return min(1.0, right / (low - high)), min(1.0, right / self.translations)

    def within(self, least: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return the bounds of the precision and recall of pairs with at least the score ``least``; None if unknown."""
        kept = int(np.searchsorted(-self.falling, -least, "right"))
        if self.limits is None or self.unsure or not kept:
            return None
        fewest, most = self.limits[:, kept - 1].tolist()
        missed = [max(0.0, float(whole) - part) for whole, part in zip(self.limits[:, -1], (fewest, most), strict=True)]
        low, high = fewest / max(fewest + missed[1], 1e-9), most / max(most + missed[0], 1e-9)
        return (fewest / kept, min(1.0, most / kept)), ((1 - self.unfound) * low, high)

    @property
    def share(self) -> tuple[float, float, float] | None:
        """The share of lines that have a translation, with its bounds; None if unsure."""
        if self.unsure or self.limits is None:
            return None
        least, most = self.limits[:, -1].tolist()
        found = float(self.right[-1]), least, most / (1 - self.unfound)
        part, low, high = (min(1.0, count / self.lines) for count in found)
        return part, low, high

    def weight_above(self, least: float) -> float:
        """Return how many wrong pairs each mismatch from a score up stands for, counting the one that is always added."""
        kept, mismatched = int((self.falling >= least).sum()), int((self.mismatches >= least).sum())
        return float(kept - self.right[kept - 1]) / (mismatched + 1) if kept else self.weight

    def threshold(
        self,
        origin: str,
        wanted: float | None,
        value: float | None = None,
        least: float = -np.inf,
        most: float | None = None,
    ) -> Threshold:
        """Return a threshold, by default the best, with the precision and recall expected of pairs above it and ``least``.

        It notes if the ``wanted`` precision cannot be reached or estimated.
        """
        value = self.choose(None, wanted) if value is None else value
        precision, recall = self.between(max(value, least), most)
        within = self.within(max(value, least)) if precision is not None and most is None else None
        unsure = self.unsure
        if within and precision is not None and max(precision - within[0][0], within[0][1] - precision) > self.close:
            precision, unsure = None, f"it lies between {bounds(*within[0]).replace(' to ', ' and ')}"
        aimed = f"; precision={wanted:g} is aimed at, not promised" if unsure and wanted is not None else ""
        missed = wanted if wanted is not None and precision is not None and precision < wanted else None
        return Threshold(value, origin, precision, recall, unsure + aimed, missed, *(within or (None, None)))

    def choose(self, recall: np.ndarray | None = None, precision: float | None = None) -> float:
        """Return the threshold of the best expected F1, or the lowest with a ``precision`` (if none, the most precise).

        ``recall``, float64 (n,), is the share of gold pairs among the first i + 1, to replace the expected recall.
        """
        if not len(self.falling):
            return float("-inf")
        if self.right[-1] <= 0:
            return float(np.nextafter(self.falling[0], np.inf))
        kept = np.arange(1, len(self.falling) + 1)
        found = self.right / self.right[-1] if recall is None else recall
        return _best_cut(self.falling, self.right / kept, found, precision, self.f1 if recall is None else None)


def _best_cut(
    falling: np.ndarray, precisions: np.ndarray, recalls: np.ndarray, precision: float | None, f1: np.ndarray | None = None
) -> float:
    """Return the threshold of the best F1 (or the lowest with a precision), halfway to the next lower score."""
    last = np.append(falling[1:] < falling[:-1], True)  # equal scores are kept or dropped together
    if f1 is None:
        total = precisions + recalls
        f1 = 2 * precisions * recalls / np.where(total > 0, total, 1)
    place = int(np.where(last, f1, -1.0).argmax())
    if precision is not None:
        enough = np.flatnonzero(last & (precisions >= precision))
        place = int(enough[-1]) if len(enough) else int(np.where(last, precisions, -1.0).argmax())
    if place + 1 >= len(falling):
        return float(falling[-1])
    return (float(falling[place]) + float(falling[place + 1])) / 2


def estimate_from_decoys(
    scores: np.ndarray,
    mismatches: np.ndarray,
    lines: int,
    further: np.ndarray | None = None,
    rise: float = 0.0,
    margin: bool = False,
    least_share: float = LEAST_SHARE,
    alone: np.ndarray | None = None,
) -> PrecisionEstimate:
    """Estimate how many pairs are right from the scores of pairs, float32 (n,), and of mismatched pairs, float32 (m,).

    ``mismatches`` are selected like pairs, but without every line's best neighbour; ``further`` without its *two* best,
    needed if ``rise``, the score's ``decoy_correction``, is not 0. ``lines`` are those of the shorter side; ``margin``
    says whether the score is one. ``least_share`` of the lines must be in a right pair for a
    precision to be estimated, and for a margin's wrong pairs to be expected only among lines without a translation.
    ``alone``, float64 (m,), is the probability that neither line of a mismatched pair has a translation; None if unknown.
    """
    alone = None if alone is None else alone[np.argsort(mismatches, kind="stable")]
    if rise and further is not None:
        mismatches = extrapolate_decoys(mismatches, further, rise * wrong_fraction(scores, mismatches))
    falling = np.sort(scores.astype(np.float64))[::-1]
    wrong = np.sort(mismatches.astype(np.float64))
    above = len(wrong) - np.searchsorted(wrong, falling, "left")
    # One more than are seen, as in target-decoy searches (Levitsky et al., 2017): no decoys above do not prove perfection.
    weight = wrong_fraction(scores, mismatches)
    right = _right_counts(weight * (above + 1))
    if margin and len(right) and right[-1] >= least_share * lines:  # below, the weight is too uncertain to count twice
        # The chance that a line finds a wrong partner above a score among all lines; among a fraction of them, the weight,
        # it is one minus the chance to miss all of these.
        chance = (above + 1) / (len(wrong) + 1)
        false = weight * (len(wrong) + 1) * (1 - (1 - chance) ** weight)
        if alone is not None and len(alone):
            own = np.append(np.cumsum(alone[::-1])[::-1], 0.0)[len(wrong) - above] + alone.mean()
            false -= (1 - chance) * np.maximum(false - own, 0)
        right = _right_counts(false)
    return PrecisionEstimate(falling, right, lines, mismatches, weight, least_share)


def with_limits(expected: PrecisionEstimate, doubt: float = 0.0) -> PrecisionEstimate:
    """Return an estimate with bounds, from counting statistics and from the measured errors of such estimates.

    ``doubt`` is the probability of being wrong, averaged over the right pairs: the higher it is, the more translations are
    lost to other lines.
    """
    wrong = np.sort(expected.mismatches.astype(np.float64))
    above = len(wrong) - np.searchsorted(wrong, expected.falling, "left")
    kept, counted = np.arange(1, len(above) + 1), 1.96 * expected.weight * np.sqrt(above + 1)
    least = np.maximum(expected.right - counted - OFF[0] * kept, 0)
    most = np.minimum(expected.right + counted + OFF[1] * kept, kept)
    return replace(expected, limits=np.array([least, most]), unfound=max(UNFOUND, 1 - float(np.exp(-doubt))))


def estimate_from_likelihoods(
    scores: np.ndarray, parallel: Parallel, lines: int, mismatches: np.ndarray
) -> PrecisionEstimate:
    """Return an estimate from the likelihood of each pair with a score, float32 (n,); it has no precision."""
    order = np.argsort(-scores, kind="stable")
    total, f1 = np.cumsum(parallel.right[order]), parallel.expected_f1(order)
    weight = min(1.0, float(len(order) - total[-1]) / max(1, len(mismatches)))
    return PrecisionEstimate(scores[order].astype(np.float64), total, lines, mismatches, weight, np.inf, f1=f1)


def _right_counts(false: np.ndarray) -> np.ndarray:
    """Return the number of right pairs among the first i + 1, given the wrong ones, made monotone."""
    kept = np.arange(1, len(false) + 1)
    return np.minimum(np.maximum.accumulate(np.maximum(kept - false, 0)), kept)
