"""Margins, selection and thresholds: known answers, and the field's own loop written out."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import eval_script
from xswe.errors import ConfigError
from xswe.mining.gold import on_gold
from xswe.mining.margin import (
    Candidates,
    Pairs,
    Score,
    Selection,
    neighbourhood,
    score_candidates,
    score_cosines,
    select,
)
from xswe.mining.pipeline import MineConfig, choose_pairs, mine_vectors
from xswe.mining.threshold import PrecisionEstimate, estimate_from_decoys, extrapolate_decoys, wrong_fraction
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours

ONE = SearchConfig(threads=1)
# Two sources, three targets: cosines [[.9, .6, .3], [.8, .5, .1]].
KNOWN = Neighbours(
    np.array([[0.9, 0.6], [0.8, 0.5]], np.float32),
    np.array([[0, 1], [0, 1]], np.int32),
    np.array([[0.9, 0.8], [0.6, 0.5], [0.3, 0.1]], np.float32),
    np.array([[0, 1], [0, 1], [0, 1]], np.int32),
)


def rows(pairs):
    return list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


def test_margins_by_hand():
    a, b = neighbourhood(KNOWN.forward, 2), neighbourhood(KNOWN.backward, 2)
    np.testing.assert_allclose(a, [0.75, 0.65])
    np.testing.assert_allclose(b, [0.85, 0.55, 0.2])
    ratio = score_candidates(KNOWN, "ratio", 2)
    np.testing.assert_allclose(ratio.forward, [[0.9 / 0.8, 0.6 / 0.65], [0.8 / 0.75, 0.5 / 0.6]], rtol=1e-6)
    np.testing.assert_allclose(ratio.backward[2], [0.3 / 0.475, 0.1 / 0.425], rtol=1e-6)
    distance = score_candidates(KNOWN, "distance", 2)
    np.testing.assert_allclose(distance.forward[0], [0.1, -0.05], atol=1e-6)
    csls = score_candidates(KNOWN, "csls", 2)
    np.testing.assert_allclose(csls.forward, 2 * distance.forward, atol=1e-6)
    np.testing.assert_array_equal(score_candidates(KNOWN, "cosine", 2).forward, KNOWN.forward)
    with pytest.raises(ConfigError, match="ratio"):
        score_cosines(a, a, a, "margin")


def test_lists_may_be_wider_than_the_neighbourhoods():
    """Candidates are scored by the mean of the k nearest, not of all that were found."""
    np.testing.assert_allclose(neighbourhood(KNOWN.forward, 1), KNOWN.forward[:, 0])
    np.testing.assert_allclose(neighbourhood(KNOWN.backward, 1, skip=1), KNOWN.backward[:, 1])
    distance = score_candidates(KNOWN, "distance", 1)
    nearest = KNOWN.backward[:, 0][KNOWN.forward_ids]
    np.testing.assert_allclose(distance.forward, KNOWN.forward - (KNOWN.forward[:, :1] + nearest) / 2, atol=1e-6)


@pytest.mark.parametrize("score", get_args(Score))
def test_no_score_grows_without_bound(score):
    cosines, near = (np.float32(grid.ravel()) for grid in np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-0.5, 1, 61)))
    made = score_cosines(cosines, near, near, score)
    assert np.abs(made).max() <= 10
    assert (np.sign(made) == np.sign(cosines))[(cosines > near) & (near >= 0)].all()


def test_no_ratio_comes_from_a_division_by_next_to_nothing():
    cosines = np.array([0.9, 0.02, 0.02, -0.02, 0.3], np.float32)
    neighbourhoods = np.array([0.3, 1e-6, -0.5, -0.5, 0.05], np.float32)
    np.testing.assert_allclose(score_cosines(cosines, neighbourhoods, neighbourhoods, "ratio"), [3, 0.2, 0.2, -0.2, 3])
    # A translation among noise, and a line that is near nothing.
    source, target = np.eye(8, dtype=np.float32)[:2], np.eye(8, dtype=np.float32)[[0, 4, 5, 6]]
    source[1, 4] = 0.01
    found = mine_vectors(source, target, MineConfig(threshold=None, neighbours=ONE)).pairs
    assert rows(found)[0] == (0, 0)
    assert found.scores[1] < 0.2


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_vectors_of_no_number_are_refused(kind, tmp_path):
    source, target = np.eye(8, dtype=np.float32), np.eye(8, dtype=kind)
    target[5, 3] = np.inf
    np.save(tmp_path / "b.npy", target)
    for side in (target, tmp_path / "b.npy"):
        with pytest.raises(ConfigError, match=r"target: vector 5 .*infinite"):
            mine_vectors(source, side, MineConfig(neighbours=ONE))


def test_a_line_with_fewer_neighbours_than_k():
    part = np.array([[0.5, 0.3, -np.inf], [-np.inf] * 3], np.float32)
    np.testing.assert_allclose(neighbourhood(part, 3), [0.4, 0.0])
    np.testing.assert_allclose(neighbourhood(part, 2, skip=1), [0.3, 0.0])
    lonely = Neighbours(
        part, np.array([[0, 1, -1], [-1, -1, -1]], np.int32), part[:2], np.array([[0, -1, -1]] * 2, np.int32)
    )
    assert np.isneginf(score_candidates(lonely, "ratio", 3).forward[1]).all()
    assert len(select(score_candidates(lonely, "ratio", 3), "forward")) == 1


def test_selections_by_hand():
    cosine = score_candidates(KNOWN, "cosine", 2)
    assert rows(select(cosine, "forward")) == [(0, 0), (1, 0)]
    assert rows(select(cosine, "backward")) == [(0, 0), (0, 1), (0, 2)]
    assert rows(select(cosine, "intersection")) == [(0, 0)]
    assert rows(select(cosine, "max")) == [(0, 0)]  # source 1 wants target 0, which is taken
    lists = select(cosine, "kbest", 2)
    assert rows(lists) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert lists.rank.tolist() == [1, 2, 1, 2]
    with pytest.raises(ConfigError, match="intersection"):
        select(cosine, "union")


def test_ties_fall_to_the_lower_rows():
    flat = Candidates(
        np.ones((3, 2), np.float32),
        np.array([[2, 1], [1, 0], [0, 2]], np.int32),
        np.ones((3, 2), np.float32),
        np.array([[2, 1], [1, 0], [0, 2]], np.int32),
    )
    assert rows(select(flat, "forward")) == [(0, 1), (1, 0), (2, 0)]
    assert rows(select(flat, "max")) == [(0, 1), (1, 0)]
    assert rows(select(flat, "kbest", 1)) == [(0, 1), (1, 0), (2, 0)]


def test_pairs_are_those_of_the_written_out_loop(vectors):
    a, b = vectors(250, 300, planted=120)
    wanted = eval_script("parity.margins").written_out(a, b)
    found = mine_vectors(a, b, MineConfig(threshold=None, neighbours=ONE)).pairs
    assert rows(found) == [(i, j) for _, i, j in wanted]
    np.testing.assert_allclose(found.scores, [score for score, _, _ in wanted], rtol=1e-5)


def plain_select(candidates, how, best):
    """Rows of source, target, rank and score, in order."""

    def ways(scores, ids, length):
        for row, own in enumerate(zip(scores.tolist(), ids.tolist(), strict=True)):
            there = sorted(((-score, place) for score, place in zip(*own, strict=True) if score > -np.inf))
            yield from ((row, place, rank, -score) for rank, (score, place) in enumerate(there[:length], 1))

    forward = list(ways(candidates.forward, candidates.forward_ids, best if how == "kbest" else 1))
    if how == "kbest":
        return forward
    backward = [(b, a, 1, score) for a, b, _, score in ways(candidates.backward, candidates.backward_ids, 1)]
    if how == "intersection":
        forward = [pair for pair in forward if pair[:2] in {other[:2] for other in backward}]
    chosen = {"backward": backward, "max": forward + backward}.get(how, forward)
    out, used = [], (set(), set())
    for pair in sorted(chosen, key=lambda pair: (-pair[3], *pair[:2])):
        if how != "max" or (pair[0] not in used[0] and pair[1] not in used[1]):
            out.append(pair)
            for side, row in zip(used, pair, strict=False):
                side.add(row)
    return out


def plain_within(candidates, how, best):
    once = {}
    for a, b, rank, score in plain_select(candidates, "forward" if how == "max" else how, best):
        known = once.get((min(a, b), max(a, b)))
        if known is None or (-score, rank) < known:
            once[min(a, b), max(a, b)] = -score, rank
    pairs = [(*key, rank, -score) for key, (score, rank) in once.items()]
    if how == "kbest":
        return sorted(pairs, key=lambda pair: (pair[0], pair[2], pair[1]))
    out, used = [], set()
    for pair in sorted(pairs, key=lambda pair: (-pair[3], *pair[:2])):
        if how != "max" or not used & set(pair[:2]):
            out.append(pair)
            used |= set(pair[:2])
    return out


def listed(pairs):
    return list(zip(*(getattr(pairs, name).tolist() for name in ("source", "target", "rank", "scores")), strict=True))


@pytest.mark.parametrize("how", get_args(Selection))
def test_every_selection_is_the_plain_one_with_ties_and_short_lists(how):
    draw = np.random.default_rng(0)
    for _ in range(40):
        n, m, width = draw.integers(1, 7, 3).tolist()
        lists = []
        for rows, others in ((n, m), (m, n)):
            width_here = min(width, others)
            ids = np.stack([draw.permutation(others)[:width_here] for _ in range(rows)]).astype(np.int32)
            scores = draw.integers(0, 4, ids.shape).astype(np.float32) / 4
            scores[(draw.random(ids.shape) < 0.2) & (np.arange(width_here) > 0)] = -np.inf
            scores[draw.random(rows) < 0.1] = -np.inf
            lists += [scores, np.where(np.isfinite(scores), ids, -1).astype(np.int32)]
        candidates = Candidates(*lists)
        for best in (1, 2, 9):
            found = select(candidates, how, best)
            assert listed(found) == plain_select(candidates, how, best)
        order = np.argsort(draw.random((n + 1, n)), axis=1).astype(np.int32)  # of one side: its own lines but for itself
        order += order >= np.arange(n + 1)[:, None]
        scores = draw.integers(0, 4, order.shape).astype(np.float32)
        own = Candidates(scores, order, scores, order)
        for best in (1, 2, 9):
            found = select(own, how, best, within=True)
            assert listed(found) == plain_within(own, how, best)
    with pytest.raises(ConfigError, match=r"best=0: give the length of the candidate lists, as in best=5$"):
        select(candidates, "kbest", 0)


@settings(max_examples=15)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 1000), st.sampled_from(get_args(Score)))
def test_what_every_selection_promises(n, m, seed, score):
    generator = np.random.default_rng(seed)
    a, b = (generator.standard_normal((size, 6)).astype(np.float32) for size in (n, m))
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    candidates = score_candidates(find_neighbours(a, b, 3, ONE), score, 3)
    made = {how: select(candidates, how) for how in ("forward", "backward", "intersection", "max")}
    both = set(rows(made["forward"])) & set(rows(made["backward"]))
    assert set(rows(made["intersection"])) == both
    assert score != "cosine" or both <= set(rows(made["max"]))
    for pairs in made.values():
        assert (np.diff(pairs.scores) <= 0).all()
    assert len(set(made["max"].source.tolist())) == len(set(made["max"].target.tolist())) == len(made["max"])


def test_both_ends_can_be_cut():
    pairs = Pairs.of(np.array([3.0, 2.0, 1.0]), np.arange(3), np.arange(3))
    assert pairs.between(1.0, 2.0).source.tolist() == [1, 2]
    assert pairs.between(None, None).source.tolist() == [0, 1, 2]


def test_gold_threshold_is_the_best_of_all_by_brute_force():
    generator = np.random.default_rng(3)
    scores = generator.integers(0, 12, 60).astype(np.float32)
    correct = generator.random(60) < scores / 12
    total = int(correct.sum()) + 5
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(correct[order])
    found = PrecisionEstimate(scores[order].astype(np.float64), right, 60).choose(right / total)

    def f1(threshold):
        kept = scores >= threshold
        return 2 * (kept & correct).sum() / (kept.sum() + total)

    assert f1(found) == pytest.approx(max(f1(t) for t in np.arange(-1, 13, 0.25)))
    assert PrecisionEstimate(np.zeros(0), np.zeros(0), 60).choose(np.zeros(0)) == -np.inf


@pytest.mark.parametrize(("planted", "within"), [(2700, 0.02), (1500, 0.03), (300, None)])
def test_threshold_from_mismatches_without_any_gold(vectors, planted, within):
    a, b = vectors(3000, 3000, 32, planted=planted, seed=5)
    noise = np.random.default_rng(1).standard_normal(b.shape).astype(np.float32)
    b[:planted] += 0.16 * noise[:planted]
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    mined = mine_vectors(a, b, MineConfig(neighbours=ONE))
    everything = mine_vectors(a, b, MineConfig(threshold=None, neighbours=ONE)).pairs
    right = (everything.source == everything.target) & (everything.source < planted)
    best_f1 = max(2 * right[:n].sum() / (n + planted) for n in range(1, len(right) + 1))  # pairs are best first
    correct = ((mined.pairs.source == mined.pairs.target) & (mined.pairs.source < planted)).sum()
    precision, f1 = correct / len(mined.pairs), 2 * correct / (len(mined.pairs) + planted)
    assert f1 > best_f1 - 0.05
    if within is None:  # a tenth of the lines: the threshold is good, what is expected of it is not
        assert mined.threshold.precision is None
        assert "precision cannot be estimated: too few of the lines" in mined.threshold.sentence()
        asked = mine_vectors(a, b, MineConfig(precision=0.9, neighbours=ONE)).threshold.sentence()
        assert "precision=0.9 is aimed at, not promised" in asked
    else:
        assert mined.threshold.precision == pytest.approx(precision, abs=within)
        assert "expected precision" in mined.threshold.sentence()


@pytest.mark.parametrize("score", ["cosine", "distance", "csls"])
def test_threshold_of_scores_that_keep_the_gap(vectors, score):
    a, b = vectors(3000, 3000, 32, planted=300, seed=6)
    mined = mine_vectors(a, b, MineConfig(score=score, neighbours=ONE))
    every = mine_vectors(a, b, MineConfig(score=score, threshold=None, neighbours=ONE)).pairs
    best = max(2 * np.cumsum((every.source == every.target) & (every.source < 300)) / (np.arange(1, len(every) + 1) + 300))
    right = (mined.pairs.source == mined.pairs.target) & (mined.pairs.source < 300)
    assert 2 * right.sum() / (len(right) + 300) > 0.9 * best


def test_decoys_are_extrapolated_quantile_by_quantile():
    found = extrapolate_decoys(np.array([3.0, 1.0, 2.0]), np.array([2.5, 0.5, 1.5]), 2.0)
    np.testing.assert_allclose(found, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(extrapolate_decoys(found, np.zeros(0), 2.0), found)


def test_no_translation_at_all_is_noticed(vectors):
    a, b = vectors(2000, 2000, 32)
    mined = mine_vectors(a, b, MineConfig(neighbours=ONE))
    assert len(mined.pairs) < 0.2 * len(mined.selected)
    assert mined.threshold.precision is None
    assert "precision cannot be estimated: too few of the lines" in mined.threshold.sentence()
    assert wrong_fraction(np.zeros(0), np.zeros(0)) == 0
    nothing = np.zeros(0, np.float32)
    assert estimate_from_decoys(nothing, nothing, 0).choose() == -np.inf


def test_few_pairs_are_never_called_perfect(vectors):
    a, b = vectors(3, 3, 24, planted=3)
    few = mine_vectors(a, b, MineConfig(neighbours=ONE)).threshold
    assert few.precision is None
    assert "pairs are too few" in few.sentence()
    a, b = vectors(400, 400, 64, planted=400)
    many = mine_vectors(a, b, MineConfig(neighbours=ONE)).threshold
    assert many.precision < 1
    assert "expected precision over 99 % (" in many.sentence()


def test_precision_is_that_of_what_min_score_and_max_score_leave(vectors):
    a, b = vectors(3000, 3000, 32, planted=1500, seed=5)
    told = [
        mine_vectors(a, b, MineConfig(neighbours=ONE, min_score=low, max_score=high)).threshold
        for low, high in ((None, None), (1.3, None), (None, 1.3))
    ]
    assert len({threshold.value for threshold in told}) == 1
    assert told[1].precision > told[0].precision > told[2].precision
    assert told[1].recall < told[0].recall


def test_gold_tells_the_recall_and_not_the_precision():
    scores, wrong = np.arange(400, dtype=np.float32), np.arange(200, dtype=np.float32)
    expected = estimate_from_decoys(scores, wrong, 400)
    assert expected.between(300, None)[0] < 1
    everywhere, on_top = np.arange(0, 400, 4, dtype=np.float64), np.array([399.0] * 9 + [-np.inf])
    assert on_gold(expected, on_top, None) > 190 > on_gold(expected, everywhere, None)
    assert on_gold(expected, everywhere, 0.99) > 190


def test_wrong_pairs_come_about_among_lines_that_no_translation_wins():
    # Half of the pairs score as all mismatches do, the others higher.
    scores, wrong = np.arange(1000, dtype=np.float32), np.arange(1000, dtype=np.float32) / 2
    plain, contested = (estimate_from_decoys(scores, wrong, 1000, margin=margin) for margin in (False, True))
    assert plain.weight == pytest.approx(0.5, abs=0.01)
    above = 100  # of the mismatches; half the lines on both sides leave a quarter of them, nearly
    for expected, false in ((plain, 50), (contested, 500 * (1 - 0.9**0.5))):
        kept = int((scores >= wrong[-above]).sum())
        assert kept - expected.right[kept - 1] == pytest.approx(false, rel=0.03)
    for alone, few in ((0.0, 0.1 * false), (0.25, 0.9 * 25 + 0.1 * false)):  # high mismatches count by their lines
        both = np.where(wrong >= wrong[-above], alone, 0.0)
        expected = estimate_from_decoys(scores, wrong[::-1], 1000, margin=True, alone=both[::-1])
        assert kept - expected.right[kept - 1] == pytest.approx(few, rel=0.03)
    few = [estimate_from_decoys(scores, wrong, 3000, margin=margin, least_share=0.25).right for margin in (False, True)]
    np.testing.assert_array_equal(*few)


def test_one_line_against_one_line():
    one = np.array([[1.0, 0.0]], np.float32)
    mined = mine_vectors(one, one)
    assert len(mined.pairs) == 1
    assert choose_pairs(Neighbours.empty(0, 0, 5), MineConfig()).quantiles == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"threshold": "high"}, "auto"),
        ({"k": 0}, "k and best"),
        ({"languages": ("en",)}, "source's"),
        ({"score": "dot"}, "dot"),
        ({"gold": "g", "select": "kbest"}, "kbest"),
        ({"precision": 90.0}, "fraction"),
    ],
)
def test_mistakes_name_the_setting(settings, found):
    with pytest.raises(ConfigError, match=found):
        MineConfig(**settings)
