"""An expected precision, from figures that are worked out by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.mining.dedup import Deduplicated
from xswe.mining.pipeline import MineConfig
from xswe.mining.share import Parallel
from xswe.mining.threshold import (
    LEAST_PAIRS,
    OFF,
    UNFOUND,
    PrecisionEstimate,
    Threshold,
    _best_cut,
    estimate_from_decoys,
    estimate_from_likelihoods,
    extrapolate_decoys,
    near_duplicate_note,
    percent,
    with_limits,
    wrong_fraction,
)


def falling_estimate(**changed):
    """A hundred pairs with scores 0.99, 0.98, …, of which all but each tenth are right."""
    falling = np.arange(99, -1, -1) / 100.0
    right = np.cumsum(np.arange(100) % 10 != 9).astype(np.float64)
    return PrecisionEstimate(falling, right, **{"lines": 100} | changed)


def test_likelihoods_are_summed_from_the_highest_score_on():
    scores, right = np.array([0.2, 0.9, 0.5], np.float32), np.array([0.1, 0.9, 0.5])
    for mismatches, weight in ((3, 0.5), (1, 1.0), (0, 1.0), (6, 0.25)):
        parallel = Parallel(np.log(right / (1 - right)), right, 0.5, (0.0, 1.0), 0.0, np.zeros(0))
        found = estimate_from_likelihoods(scores, parallel, 7, np.zeros(mismatches, np.float32))
        assert found.falling.tolist() == pytest.approx([0.9, 0.5, 0.2])
        assert found.right.tolist() == pytest.approx([0.9, 1.4, 1.5])
        assert (found.lines, found.weight) == (7, pytest.approx(weight))
        assert "too few" in found.unsure
        assert found.f1.tolist() == parallel.expected_f1(np.array([1, 2, 0])).tolist()


def test_limits_are_from_counting_and_from_measured_errors():
    falling, mismatches = np.array([1.0, 0.75, 0.5, 0.25]), np.array([0.75, 0.4375, 0.625], np.float32)
    estimate = PrecisionEstimate(falling, np.array([1.0, 1.9, 2.5, 2.6]), 9, mismatches, weight=0.1)
    found = with_limits(estimate, doubt=0.2)
    for k, (above, right) in enumerate(zip((0, 1, 2, 3), estimate.right, strict=True), 1):
        counted = 0.196 * math.sqrt(above + 1)
        low, high = max(0.0, right - counted - OFF[0] * k), min(k, right + counted + OFF[1] * k)
        assert found.limits[:, k - 1].tolist() == pytest.approx([low, high])
    assert found.unfound == pytest.approx(1 - math.exp(-0.2))
    assert with_limits(estimate, doubt=0.01).unfound == UNFOUND


def test_precision_and_recall_between_two_scores():
    found = falling_estimate(unfound=0.5)
    assert found.translations == pytest.approx(90 / 0.75)
    for least, most, pairs, right in (
        (0.90, None, 10, 9),
        (0.5, None, 50, 45),
        (0.0, None, 100, 90),
        (0.8, 0.9, 11, 9),
        (0.905, None, 9, 9),
    ):
        assert found.between(least, most) == pytest.approx((right / pairs, right / 120))
    for least, most in ((1.0, None), (0.9, 0.8)):
        assert found.between(least, most) == (None, None)
    assert falling_estimate(unfound=0.0).between(0.0, None) == pytest.approx((0.9, 1.0))


def test_bounds_of_precision_recall_and_share():
    limits = np.array([np.arange(1, 101) * 0.8, np.arange(1, 101) * 0.95])
    found = falling_estimate(limits=limits, unfound=0.1, lines=200)
    precision, recall = found.within(0.5)
    assert precision == pytest.approx((0.8, 0.95))
    low, high = 40 / (40 + 95 - 47.5), 47.5 / (47.5 + 80 - 40)
    assert recall == pytest.approx((0.9 * low, high))
    assert found.within(0.0) == (pytest.approx((0.8, 0.95)), pytest.approx((0.9, 1.0)))
    assert found.share == pytest.approx((90 / 200, 80 / 200, 95 / 0.9 / 200))
    assert falling_estimate(limits=limits, unfound=0.1, lines=91).share[2] == 1.0
    assert found.within(1.0) is None
    assert (falling_estimate().within(0.5), falling_estimate().share) == (None, None)


def test_what_is_too_little_for_a_precision():
    assert falling_estimate().unsure == ""
    few = falling_estimate()
    few = PrecisionEstimate(few.falling[: LEAST_PAIRS - 1], few.right[: LEAST_PAIRS - 1], 100)
    assert few.unsure == "49 pairs are too few"
    fewer = PrecisionEstimate(falling_estimate().falling[:50], falling_estimate().right[:50], 50)
    assert (fewer.unsure, fewer.unreliable) == ("", False)
    fewer = PrecisionEstimate(fewer.falling[:49], fewer.right[:49], 49)
    assert (fewer.unsure, fewer.unreliable) == ("49 pairs are too few", True)
    assert falling_estimate(lines=1800).unsure == ""  # 90 of 1,800 are five per cent
    assert "too few of the lines" in falling_estimate(lines=1801).unsure
    assert "too few of the lines" in falling_estimate(least_share=0.91).unsure
    assert falling_estimate(least_share=0.9).unsure == ""
    wrong = PrecisionEstimate(np.arange(99, -1, -1) / 100.0, np.arange(1, 101) * 0.59, 100)
    assert "too few of the lines" in wrong.unsure
    assert PrecisionEstimate(wrong.falling, np.arange(1, 101) * 0.6 + 1e-9, 100).unsure == ""


def test_the_weight_of_a_mismatch_above_a_score():
    found = falling_estimate(mismatches=np.array([0.95, 0.9, 0.1], np.float32), weight=0.3)
    assert found.weight_above(0.9) == pytest.approx((10 - 9) / (2 + 1))
    assert found.weight_above(0.1) == pytest.approx((90 - 81) / (3 + 1))
    assert found.weight_above(2.0) == 0.3


@pytest.mark.parametrize(
    ("threshold", "sentence"),
    [
        (Threshold(-math.inf, "none"), "threshold: none, all pairs are kept"),
        (Threshold(-math.inf, "given"), "threshold: none, all pairs are kept"),
        (Threshold(-math.inf, "mismatched neighbours"), "threshold: none, no pairs are left"),
        (Threshold(1.23456, "given"), "threshold: 1.2346 (given)"),
        (
            Threshold(0.5, "gold pairs", 0.991, 0.009, share=(0.5, 0.101, 1.0)),
            "threshold: 0.5000 (gold pairs), expected precision over 99 %, on gold: recall under 1 %, "
            "50 % of the lines seem to have a translation (10 to 100 %)",
        ),
        (
            Threshold(0.5, "given", 0.954, 0.876, "", 0.98, (0.9511, 0.9599), (0.861, 0.899), (0.1, 0.0512, 0.25)),
            "threshold: 0.5000 (given), expected precision 95 % (95 to 96 %), expected recall 88 % (86 to 90 %), "
            "precision=0.98 is not reached at any threshold, 10.0 % of the lines seem to have a translation (5.1 to 25 %)",
        ),
        (
            Threshold(0.5, "given", 0.5, aside=("copies", "fragments")),
            "threshold: 0.5000 (given), expected precision 50 % but for copies and fragments, "
            "for which it cannot be estimated",
        ),
        (
            Threshold(0.5, "given", unsure="why", aside=("copies",)),
            "threshold: 0.5000 (given), precision cannot be estimated: why, copies aside",
        ),
        (Threshold(0.5, "given", unsure="why"), "threshold: 0.5000 (given), precision cannot be estimated: why"),
    ],
)
def test_what_a_threshold_says(threshold, sentence):
    assert threshold.sentence() == sentence


def test_a_share_is_never_said_to_be_none_or_all_unless_it_is_none():
    assert [percent(share) for share in (0.0, 0.0099, 0.01, 0.99, 0.9901, 1.0)] == [
        *("under 1 %", "under 1 %", "1 %", "99 %", "over 99 %", "over 99 %")
    ]
    assert near_duplicate_note(0.0, "lines") == "; near-duplicates of earlier lines: none"
    assert near_duplicate_note(0.25, "pairs") == "; near-duplicates of earlier pairs: 25 %"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": True}, "threshold=True: use auto, a number, or null for none"),
        ({"threshold": "high"}, "threshold='high': use auto, a number, or null for none"),
        ({"threshold": math.nan}, "threshold=nan: give a number, or null for none"),
        ({"precision": 0.0}, "precision=0.0: give a fraction of one, as in precision=0.9"),
        ({"precision": 1.0}, "precision=1.0: give a fraction of one, as in precision=0.9"),
        ({"rerank_share": 0.0}, "rerank_share=0.0: give a share of the lines, as in rerank_share=0.05"),
        ({"rerank_share": 1.1}, "rerank_share=1.1: give a share of the lines, as in rerank_share=0.05"),
    ],
)
def test_settings_of_a_threshold_that_cannot_be(settings, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        MineConfig(**settings)


def test_settings_of_a_threshold_that_go_together():
    for fine in ({"rerank_share": 1.0}, {"threshold": None}, {"threshold": 2}, {"precision": 0.999}):
        MineConfig(**fine)
    with pytest.raises(ConfigError, match=r"precision.* without threshold=auto"):
        MineConfig(threshold=1.0, precision=0.5)


def test_a_threshold_tells_what_is_expected_above_it():
    limits = np.array([np.arange(1, 101) * 0.8, np.arange(1, 101) * 0.95])
    found = falling_estimate(limits=limits)
    best = found.threshold("given", None)
    assert best.value == pytest.approx(0.005)  # of a hundred pairs the last is wrong
    assert (best.precision, best.recall) == pytest.approx((90 / 99, 1.0))
    assert best.within == pytest.approx((0.8, 0.95))
    given = found.threshold("given", 0.85, 0.5)
    assert (given.value, given.origin, given.unsure, given.missed) == (0.5, "given", "", None)
    assert (given.precision, given.recall) == (pytest.approx(0.9), pytest.approx(0.5))
    assert given.recall_within == found.within(0.5)[1]
    higher = found.threshold("given", None, 0.5, least=0.9)
    assert (higher.value, higher.recall) == (0.5, pytest.approx(0.1))
    between = found.threshold("given", None, 0.5, most=0.8)
    assert (between.within, between.recall_within) == (None, None)
    assert between.recall == pytest.approx(27 / 90)
    assert found.threshold("given", 0.95, 0.5).missed == 0.95
    assert found.threshold("given", given.precision, 0.5).missed is None
    close = replace(found, close=0.0999).threshold("given", 0.9, 0.5)
    assert (close.precision, close.missed) == (None, None)
    assert close.unsure == "it lies between 80 and 95 %; precision=0.9 is aimed at, not promised"
    assert replace(found, close=0.1001).threshold("given", None, 0.5).precision == given.precision
    few = replace(found, falling=found.falling[:9], right=found.right[:9]).threshold("given", 0.9)
    assert few.unsure == "9 pairs are too few; precision=0.9 is aimed at, not promised"
    assert few.within is None


def test_the_best_cut_is_where_f1_is_highest_or_a_precision_is_just_reached():
    falling = np.array([0.9, 0.8, 0.8, 0.5, 0.2])
    precisions, recalls = np.array([1.0, 1.0, 0.9, 0.8, 0.4]), np.array([0.2, 0.4, 0.6, 0.9, 1.0])
    assert _best_cut(falling, precisions, recalls, None) == pytest.approx((0.5 + 0.2) / 2)
    for wanted, cut in ((0.8, 0.35), (0.85, 0.65), (0.95, 0.85), (0.4, 0.2), (1.0, 0.85)):
        assert _best_cut(falling, precisions, recalls, wanted) == pytest.approx(cut)
    assert _best_cut(falling, precisions * 0.5, recalls, 0.9) == pytest.approx(0.85)  # the highest there is
    assert _best_cut(falling[:1], precisions[:1], recalls[:1], None) == 0.9
    given = np.array([0.3, 0.4, 0.2, 0.1, 0.1])
    assert _best_cut(falling, precisions, recalls, None, given) == pytest.approx(
        0.85
    )  # 0.8 twice: kept or dropped together
    assert _best_cut(falling, precisions, recalls, 0.8, given) == pytest.approx(0.35)


@pytest.mark.parametrize("precision", [None, 0.3, 0.6, 0.9])
def test_the_best_cut_is_that_of_all_cuts(precision):
    draw = np.random.default_rng(0)
    for _ in range(100):
        size = int(draw.integers(1, 12))
        falling = np.sort(draw.integers(0, 8, size) / 8)[::-1]
        precisions, recalls = draw.integers(0, 5, size) / 4, np.sort(draw.integers(0, 5, size) / 4)
        cuts = [place for place in range(size) if place + 1 == size or falling[place + 1] < falling[place]]

        def f1(place, p=precisions, r=recalls):
            return 2 * p[place] * r[place] / (p[place] + r[place]) if p[place] + r[place] else 0.0

        place = max(cuts, key=lambda one: (f1(one), -one))
        if precision is not None:
            enough = [one for one in cuts if precisions[one] >= precision]
            place = max(enough) if enough else max(cuts, key=lambda one: (precisions[one], -one))
        wanted = falling[-1] if place + 1 == size else (falling[place] + falling[place + 1]) / 2
        assert _best_cut(falling, precisions, recalls, precision) == wanted


def test_no_pair_and_no_right_pair():
    none = PrecisionEstimate(np.zeros(0), np.zeros(0), 9)
    assert none.choose() == -math.inf
    wrong = PrecisionEstimate(np.array([0.5, 0.4]), np.zeros(2), 9)
    assert wrong.choose() == np.nextafter(0.5, 1.0)


def test_which_duplicates_go_and_which_line_they_follow():
    kinds = np.array([0, 1, 2, 3, 3, 3, 4, 3], np.uint8)
    scores = np.array([np.nan, 1, 0.1, 0.8, 0.7999, np.nan, 0, 0.9], np.float32)
    nearest = np.array([-1, 0, 1, 0, 2, 3, 0, 3])
    found = Deduplicated(nearest, scores, kinds, 0.8, ["x"] * 8)
    assert found.reasons.tolist() == [0, 1, 2, 3, 0, 0, 4, 3]
    assert found.kept.tolist() == [True, False, False, False, True, True, False, False]
    assert found.duplicate_of.tolist() == [-1, 0, 1, 0, -1, -1, 0, 3]
    assert found.clusters.tolist() == [0, 0, 0, 0, 4, 5, 0, 0]
    assert found.counts == {"kept": 3, "exact": 1, "near": 1, "semantic": 2, "damaged": 1}
    assert str(found) == ("8 lines read, 3 kept; dropped: 1 exact, 1 near, 2 semantic, 1 damaged; largest cluster: 6 lines")
    assert found.rethreshold(None).reasons.tolist() == [0, 1, 2, 0, 0, 0, 4, 0]
    assert [tuple(line)[:2] for line in found][6:] == [(6, "damaged"), (7, "semantic")]
    assert repr(found) == "Deduplicated(3 of 8 lines kept, threshold 0.8)"
    assert "largest cluster: 0 lines" in str(Deduplicated(nearest[:0], scores[:0], kinds[:0], None, []))


@pytest.mark.parametrize(
    ("scores", "mismatches", "fraction"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1.0),  # two below the median of either, and one more
        ([3, 4, 5, 6], [1, 2, 3, 4], 1 / 3),
        ([0, 5, 5, 5], [1, 2, 3, 4], 2 / 3),
        ([0, 0, 0, 0], [1, 2, 3, 4], 1.0),
        ([0, 0], [], 0.0),
        ([], [1, 2], 1 / 2),
        ([2, 2], [2, 2], 1.0),  # none is below
    ],
)
def test_the_share_of_wrong_pairs_is_told_below_the_median_of_mismatches(scores, mismatches, fraction):
    assert wrong_fraction(np.array(scores, np.float32), np.array(mismatches, np.float32)) == pytest.approx(fraction)


def test_decoys_rise_by_what_leaving_one_more_out_cost():
    mismatches, further = np.array([0.6, 0.2, 0.4], np.float32), np.array([0.1, 0.5, 0.3, 0.2, 0.4], np.float32)
    assert extrapolate_decoys(mismatches, further, 0.5).tolist() == pytest.approx([0.25, 0.45, 0.65])
    assert extrapolate_decoys(mismatches, further + 0.1, 0.5).tolist() == pytest.approx([0.2, 0.4, 0.6])  # never lower
    assert extrapolate_decoys(mismatches, further, 0.0) is mismatches
    assert extrapolate_decoys(mismatches, further[:0], 0.5) is mismatches


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("least_share", [0.0, 0.9])
@pytest.mark.parametrize("rise", [0.0, 0.5])
@pytest.mark.parametrize("told", [False, True])
def test_right_pairs_are_those_beyond_the_mismatches_above_a_score(margin, least_share, rise, told):
    draw = np.random.default_rng(5)
    mismatches, further = draw.normal(0, 1, 300).astype(np.float32), draw.normal(-0.5, 1, 200).astype(np.float32)
    scores = np.concatenate([draw.normal(3, 1, 150), draw.normal(0, 1, 120)]).astype(np.float32)
    alone = draw.random(300) if told else None
    found = estimate_from_decoys(scores, mismatches, 300, further, rise, margin, least_share, alone)
    raised = mismatches
    if rise:
        raised = extrapolate_decoys(mismatches, further, rise * wrong_fraction(scores, mismatches))
    weight = wrong_fraction(scores, raised)
    assert found.weight == weight

    def rights(wrong_above):
        out = []
        for count, score in enumerate(sorted(scores.tolist(), reverse=True), 1):
            out.append(min(count, max([0.0, count - wrong_above(score), *out[-1:]])))
        return out

    def plain(score):
        return weight * (int((raised >= score).sum()) + 1)

    def among_some(score):
        """Wrong partners among the lines without a translation only."""
        above = int((raised >= score).sum())
        chance = (above + 1) / 301
        false = weight * 301 * (1 - (1 - chance) ** weight)
        if told:
            # alone goes with the mismatches, from the highest on
            own = sum(alone[np.argsort(mismatches, kind="stable")][300 - above :]) + alone.mean()
            false -= (1 - chance) * max(false - own, 0)
        return false

    wanted = rights(plain)
    if margin and wanted[-1] >= least_share * 300:
        wanted = rights(among_some)
    assert found.right == pytest.approx(wanted)
    assert found.falling.tolist() == sorted(scores.tolist(), reverse=True)
