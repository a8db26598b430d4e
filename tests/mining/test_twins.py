"""Near-duplicates among the neighbours of a line."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.mining import twins as twins_module
from xswe.mining.margin import SCORINGS, Pairs
from xswe.mining.pipeline import MineConfig, mine_vectors
from xswe.mining.share import _distances
from xswe.mining.twins import Twins
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Vectors

ONE = SearchConfig(threads=1)
LINES, PAIRS = 700, 200  # lines a side, of which the first so many are translations of each other


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def sides(sample):
    """Lines of both sides."""
    order = np.random.default_rng(5).permutation(len(sample["en"])).tolist()
    german = [*order[:PAIRS], *order[LINES : 2 * LINES - PAIRS]]
    return [sample["en"][row] for row in order[:LINES]], [sample["de"][row] for row in german]


def repeated(sides):
    """The lines, and all of them once more with something at the end."""
    return [[*side, *(line + tail for line in side)] for side, tail in zip(sides, (" Yes.", " Ja."), strict=True)]


def test_twins_are_found_among_the_neighbours_of_a_line():
    source = np.array([[1, 0, 0]], np.float32)
    target = np.array([[0.9, 0.43, 0], [0.8, 0, 0.6], [0.88, 0.47, 0], [0.7, 0.1, 0.7]], np.float32)
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    lists = find_neighbours(source, target, 4, ONE)
    twins = Twins.of(lists, Vectors(source), Vectors(target))
    assert lists.forward_ids.tolist() == [[0, 2, 1, 3]]
    assert twins.forward.tolist() == [[0, 0, 2, 2]]
    left = twins.left_out(lists)
    assert left.forward_ids.tolist() == [[0, 1, -1, -1]]
    assert left.forward[0, 2:].tolist() == [lists.forward[0, 3]] * 2  # what follows is no nearer
    pair = Pairs.of(np.ones(1), np.zeros(1), np.array([2]))
    near = lists.forward[0]
    np.testing.assert_allclose(_distances(pair, lists, twins, False)[0, 1], near[1] - near[2], atol=1e-6)


@pytest.mark.parametrize("block", [1, 3, 100])
def test_twins_and_what_is_left_without_them_of_any_lists(monkeypatch, block):
    monkeypatch.setattr(twins_module, "_BLOCK", block)
    rng = np.random.default_rng(block)
    for n, m in ((7, 9), (9, 3), (1, 1), (2, 1)):
        sides = [rng.normal(size=(size, 3)).astype(np.float32) for size in (n, m)]
        sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
        lists = find_neighbours(*sides, 4, ONE)
        found = Twins.of(lists, *map(Vectors, sides))
        left = found.left_out(lists)
        for way, others in (("forward", sides[1]), ("backward", sides[0])):
            cosines = others @ others.T
            limit = twins_module._MIN_COSINE
            if len(others) > 1:
                mean = float(cosines[~np.eye(len(others), dtype=bool)].mean())
                limit = max(limit, mean + 0.8 * (1 - mean))
            for row, (ids, scores) in enumerate(zip(getattr(lists, f"{way}_ids"), getattr(lists, way), strict=True)):
                groups = list(range(len(ids)))
                for later in range(len(ids)):
                    for earlier in range(later):
                        alone = groups[later] == later and groups[earlier] == earlier
                        if ids[later] >= 0 and alone and cosines[ids[earlier], ids[later]] >= limit:
                            groups[later] = earlier
                assert getattr(found, way)[row].tolist() == groups
                first = [place for place, group in enumerate(groups) if place == group]
                rest = len(ids) - len(first)
                assert getattr(left, f"{way}_ids")[row].tolist() == [*ids[first].tolist(), *[-1] * rest]
                assert getattr(left, way)[row].tolist() == [*scores[first].tolist(), *[float(scores[-1])] * rest]
        none = Twins.none(lists).left_out(lists)
        assert none.forward.tolist() == lists.forward.tolist()
        assert none.backward_ids.tolist() == lists.backward_ids.tolist()


def test_the_limit_of_many_vectors_is_that_of_a_sample_of_the_whole():
    vectors = np.ones((20_000, 2), np.float32)
    vectors[::2] = 1, 0
    vectors[1::2] = 0.6, 0.8
    mean = (1 + 0.6) / 2
    assert twins_module._limit(Vectors(vectors)) == pytest.approx(mean + 0.8 * (1 - mean), abs=1e-3)
    vectors[:10_000] = 1, 0
    vectors[10_000:] = 0, 1
    assert twins_module._limit(Vectors(vectors)) == pytest.approx(0.5 + 0.8 * 0.5, abs=1e-3)
    assert [twins_module._limit(Vectors(vectors[:n])) for n in (0, 1, 2)] == [0.85, 0.85, 1.0]


@pytest.mark.parametrize("score", [score for score, how in SCORINGS.items() if how.margin])
def test_a_translation_stands_out_although_lines_are_repeated(mini, sides, score):
    """Its near-duplicates would else be neighbours that it hardly exceeds."""
    once, twice = (xswe.mine(mini, *lines, score=score, threshold=None, threads=1) for lines in (sides, repeated(sides)))
    scores = []
    for found in (once, twice):
        right = (found.source_rows % LINES == found.target_rows % LINES) & (found.source_rows % LINES < PAIRS)
        scores.append(float(np.median(found.scores[right])))
    lost = (scores[0] - scores[1]) / (scores[0] - float(score == "ratio"))
    assert lost < 0.25


def test_gold_is_scored_as_the_lines_are(mini, sides, tmp_path):
    """Hidden among lines of which there are near-duplicates, as well as among the same lines when all are on the sides."""
    lines = repeated(sides)
    gold = tmp_path / "gold.tsv"
    gold.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*(side[:100] for side in lines), strict=True)), encoding="utf-8")
    whole = xswe.mine(mini, *lines, threads=1, gold=str(gold), min_score=0.0)
    hidden = xswe.mine(mini, *(side[100:] for side in lines), threads=1, gold=str(gold), min_score=0.0)
    assert hidden.threshold.recall == pytest.approx(whole.threshold.recall, abs=0.05)
    kept = set(zip(whole.source_rows.tolist(), whole.target_rows.tolist(), strict=True))
    assert whole.threshold.recall == pytest.approx(sum((i, i) in kept for i in range(100)) / 100, abs=0.011)


def test_lines_are_no_twins_because_all_cosines_of_an_encoder_are_high(mini, sides):
    """Cosines of e5 lie between 0.7 and 1, those of any two lines about 0.8."""
    narrow = []
    for side in sides:
        vectors = mini.encode(side) + np.float32(2 / 16)  # of 256 dimensions: twice the norm, the same for all
        narrow.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    assert np.median(narrow[0] @ narrow[0].T) > 0.78
    lists = find_neighbours(*narrow, 5, ONE)
    twins = Twins.of(lists, *map(Vectors, narrow))
    assert (twins.forward != np.arange(5)).mean() < 0.01
    found = mine_vectors(*narrow)
    right = int(((found.pairs.source == found.pairs.target) & (found.pairs.source < PAIRS)).sum())
    assert 2 * right / (len(found.pairs) + PAIRS) > 0.9


def test_of_long_lists_only_what_neighbourhoods_need_is_compared(vectors, monkeypatch):
    """All with each other would take far longer than the search."""
    compared, of = [], Twins.of
    monkeypatch.setattr(Twins, "of", lambda lists, *sides: compared.append(lists.k) or of(lists, *sides))
    a, b = vectors(60, 60, planted=30)
    assert len(mine_vectors(a, b, MineConfig(select="kbest", best=20, k=3, neighbours=ONE)).pairs) == 60 * 20
    assert compared == [3]
