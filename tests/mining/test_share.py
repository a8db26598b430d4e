"""How many lines have a translation, and the threshold where few have one."""

from __future__ import annotations

import itertools
import math
import re
from typing import get_args

import numpy as np
import pytest

import xswe
from xswe.mining import share as share_module
from xswe.mining.margin import SCORINGS, Pairs, Score
from xswe.mining.share import Parallel, _distances, estimate_parallel
from xswe.mining.threshold import OFF
from xswe.mining.twins import Twins
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours

ONE = SearchConfig(threads=1)


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


def planted(sample, language, count, lines):
    """Lines of both sides, of which the first so many are translations of each other."""
    order = np.random.default_rng(count).permutation(len(sample["en"])).tolist()
    source = [sample["en"][row] for row in order[:lines]]
    return source, [sample[language][row] for row in [*order[:count], *order[lines : 2 * lines - count]]]


def f1(found, right, count):
    return 2 * right / (len(found) + count)


@pytest.mark.parametrize(("language", "count", "lines"), [("ja", 18, 900), ("de", 35, 700), ("de", 350, 700)])
def test_the_threshold_is_near_the_best_however_few_lines_have_a_translation(mini, sample, language, count, lines):
    source, target = planted(sample, language, count, lines)
    every = xswe.mine(mini, source, target, threshold=None, threads=1)
    right = np.cumsum((every.source_rows == every.target_rows) & (every.source_rows < count))
    best = max(2 * right / (np.arange(1, len(right) + 1) + count))
    found = xswe.mine(mini, source, target, threads=1)
    true = int(((found.source_rows == found.target_rows) & (found.source_rows < count)).sum())
    assert f1(found, true, count) > 0.85 * best
    part, low, high = found.threshold.share
    assert low < min(count / lines, part) < max(count / lines, part) < high
    told = re.search(r"([\d.]+) % of the lines seem to have a translation \(([\d.]+) to ([\d.]+) %\)", str(found.report))
    assert [*map(float, told.groups())] == pytest.approx([100 * part, 100 * low, 100 * high], abs=0.5)
    if count < 100:
        assert found.threshold.precision is found.threshold.recall is None
        assert "or use rerank=" in str(found.report)
    else:
        (low, high), precision = found.threshold.within, true / len(found)
        assert low < precision < high
        assert found.threshold.recall_within[0] < true / count < found.threshold.recall_within[1]
        assert found.threshold.recall <= 0.97  # some translations may be in no pair at all


def test_the_surest_pairs_are_kept_if_a_handful_of_lines_has_a_translation(mini, sample):
    """By the likeliest share and likelihood ratios alone, 0.76 of the best."""
    reached = []
    for language, count in itertools.product(("de", "ja", "zh"), (5, 8, 12)):
        source, target = planted(sample, language, count, 800)
        every, found = (xswe.mine(mini, source, target, threshold=choice, threads=1) for choice in (None, "auto"))
        right, kept = (
            np.cumsum((one.source_rows == one.target_rows) & (one.source_rows < count)) for one in (every, found)
        )
        best = max(2 * right / (np.arange(1, len(right) + 1) + count))
        reached.append(f1(found, kept[-1], count) / best)
    assert np.mean(reached) > 0.82


@pytest.mark.parametrize("pairs", [1, 40])
def test_the_expected_f1_is_the_mean_over_likelihood_ratios(pairs):
    draw = np.random.default_rng(pairs)
    odds, order = draw.normal(0, 3, pairs), draw.permutation(pairs)
    curves = []
    for slope, offset in itertools.product((0.7, 1.0, 1.3), range(-3, 3)):
        prior = 0.1
        for _ in range(2000):
            right = 1 / (1 + np.exp(-slope * odds - offset - math.log(prior / (1 - prior))))
            prior = min(0.999, max(0.1 / pairs, right.mean()))
        curves.append([2 * sum(right[order[: n + 1]]) / (n + 1 + sum(right)) for n in range(pairs)])
    found = Parallel(odds, right, 0.5, (0.0, 1.0), 0.0, np.zeros(0)).expected_f1(order)
    assert found == pytest.approx(np.mean(curves, axis=0), abs=1e-4)


@pytest.mark.parametrize(("language", "words"), [("de", 4), ("de", 6), ("ja", 6)])
def test_the_share_is_true_where_translations_hardly_stand_out(mini, sample, language, words):
    """Beginnings of sentences: the model tells few of them from noise."""
    source, target = (
        [" ".join(text.split()[:words]) if " " in text else text[: 2 * words] for text in side]
        for side in planted(sample, language, 400, 800)
    )
    found = xswe.mine(mini, source, target, threads=1)
    _, low, high = found.threshold.share
    assert low < 0.5 < high
    if found.threshold.recall is not None:
        true = int(((found.source_rows == found.target_rows) & (found.source_rows < 400)).sum()) / 400
        assert found.threshold.recall_within[0] < true < found.threshold.recall_within[1]


@pytest.mark.parametrize("score", get_args(Score))
def test_the_precision_of_every_score_is_as_expected(mini, sample, score):
    """Beginnings of sentences, of which some pairs are wrong: one that is wrongly a margin, or none, is further off."""
    source, target = ([" ".join(text.split()[:7]) for text in side] for side in planted(sample, "de", 700, 800))
    found = xswe.mine(mini, source, target, score=score, threshold=None, evidence=True, threads=1)
    right = (found.source_rows == found.target_rows) & (found.source_rows < 700)
    best = np.argsort(-found.scores, kind="stable")[:560]
    true, (told, _) = float(right[best].mean()), found.evidence.expected.between(found.scores[best[-1]], None)
    assert 0.96 < true < 0.99
    assert true - 0.035 < told < true + OFF[0]


@pytest.mark.parametrize("score", [score for score, how in SCORINGS.items() if how.margin])
def test_the_precision_of_every_margin_is_as_expected_where_half_the_lines_have_no_translation(mini, sample, score):
    """There decoys count more: one that is corrected by one unit and a half too much or too little is further off."""
    source, target = ([" ".join(text.split()[:7]) for text in side] for side in planted(sample, "de", 400, 800))
    found = xswe.mine(mini, source, target, score=score, threshold=None, evidence=True, threads=1)
    best = np.argsort(-found.scores, kind="stable")[:320]
    true = float(((found.source_rows == found.target_rows) & (found.source_rows < 400))[best].mean())
    assert found.evidence.expected.between(found.scores[best[-1]], None)[0] == pytest.approx(true, abs=0.022)


def test_a_handful_of_pairs_tells_no_share(mini, sample):
    found = xswe.mine(mini, sample["en"][:2], sample["de"][100:200], threads=1)
    assert found.threshold.share is None
    assert found.threshold.unsure == "2 pairs are too few"


def test_no_translation_at_all_may_be(mini, sample):
    found = xswe.mine(mini, *planted(sample, "ja", 0, 800), threads=1)
    assert found.threshold.share[1] == 0
    assert len(found) < 20


def test_near_duplicates_are_no_mismatches(mini, sample):
    source, target = planted(sample, "de", 300, 700)
    again = range(150)
    tails = (" Yes.", " Ja.")
    sides = [[*side, *(side[row] + tail for row in again)] for side, tail in zip((source, target), tails, strict=True)]
    found = xswe.mine(mini, *sides, threads=1)
    rows = [np.where(side >= 700, side - 700, side) for side in (found.source_rows, found.target_rows)]
    true = float(((rows[0] == rows[1]) & (rows[0] < 300)).mean())
    assert found.threshold.precision == pytest.approx(true, abs=0.05)
    assert found.threshold.share[1] < 450 / 850 < found.threshold.share[2]


def test_distances_are_from_the_next_best_both_ways():
    source, target = (np.array(rows, np.float32) for rows in ([[1, 0], [0.6, 0.8]], [[0.8, 0.6], [0, 1], [-1, 0]]))
    lists = find_neighbours(source, target, 3, ONE)
    best, without_best = (
        Pairs.of(np.ones(1), np.array([1]), np.array([0])),
        Pairs.of(np.ones(1), np.array([0]), np.array([1])),
    )
    np.testing.assert_allclose(_distances(best, lists, Twins.none(lists), False), [[0.96, 0.16, 0.16]], atol=1e-6)
    np.testing.assert_allclose(
        _distances(without_best, lists, Twins.none(lists), True), [[0, 0, 1]], atol=1e-6
    )  # of the target there is no next best


@pytest.mark.parametrize(("pairs", "lines", "few"), [(60, 61, False), (200, 230, False), (3, 9000, True)])
def test_the_share_is_the_likeliest_of_a_class_with_known_likelihoods(monkeypatch, pairs, lines, few):
    """The mean probability is the share that the probabilities presume; the bounds are those of the header."""
    draw = np.random.default_rng(pairs)
    odds = draw.normal(0, 3, pairs)
    monkeypatch.setattr(share_module, "distances_in_units", lambda *_: np.c_[(odds + 3.16) / 0.391, np.zeros((pairs, 3))])
    ids = np.tile(np.arange(4, dtype=np.int32), (lines, 1))
    lists = Neighbours(ids.astype(np.float32), ids, ids.astype(np.float32), ids)
    own = Pairs.of(np.zeros(pairs), np.arange(pairs), np.arange(pairs)[::-1])
    wrong = Pairs.of(np.zeros(3), np.array([0, 1, pairs]), np.array([0, pairs, 2]))
    found = estimate_parallel(own, wrong, lists, Twins.none(lists), lines)
    prior = 0.1
    for _ in range(2000):
        right = 1 / (1 + np.exp(-odds - math.log(prior / (1 - prior))))
        prior = min(0.999, right.mean())
    assert found.right == pytest.approx(right, abs=1e-4)
    count, part = sum(right), sum(right) / lines
    assert found.share == pytest.approx(part, rel=1e-3)
    spread = math.exp(1.96 * math.hypot(0.08 + 0.04 / math.sqrt(part), 1 / math.sqrt(max(count, 1))))
    doubt = sum(one * (1 - one) for one in right) / count
    assert found.doubt == pytest.approx(doubt, rel=1e-3)
    assert few == (part <= 0.02)
    bounds = 0.0 if few else part / spread**1.3, min(1.0, part * spread * math.exp(12 * doubt**2))
    assert found.between == pytest.approx(bounds, rel=1e-3)
    free = [1.0] * lines, [1.0] * lines
    for row, one in enumerate(right):
        free[0][row], free[1][pairs - 1 - row] = 1 - one, 1 - one
    both = [free[0][a] * free[1][b] for a, b in ((0, 0), (1, pairs), (pairs, 2))]
    assert found.alone == pytest.approx(both, abs=1e-4)


def test_distances_are_told_in_units_of_those_of_mismatches(monkeypatch):
    usual = np.array([[0.1, 1.0, 5.0], [0.3, 2.0, 5.0], [0.2, 4.0, 5.0]])
    monkeypatch.setattr(share_module, "_distances", lambda pairs, lists, twins, without: usual if without else pairs)
    found = np.array([[0.2, 2.0, 5.0], [0.4, 1.0, 6.0]])
    high = [0.2 + 0.9 * 0.1, 2.0 + 0.9 * 2.0]  # of three values, the 95th percentile lies nine tenths of the way up
    scaled = share_module.distances_in_units(found, usual, None, None, 20_000)
    assert scaled[0].tolist() == pytest.approx([0, 0, 0, math.log(2)])
    assert scaled[1].tolist() == pytest.approx([0.2 / (high[0] - 0.2), -1 / (high[1] - 2), 1e6, math.log(2)])


def test_without_pairs_nothing_is_estimated():
    nothing = Pairs.of(np.zeros(0), np.zeros(0), np.zeros(0))
    lists = find_neighbours(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), 2, ONE)
    assert estimate_parallel(nothing, nothing, lists, Twins.none(lists), 3) is None
