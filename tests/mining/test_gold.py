"""Gold pairs among the lines, and among the records of a filtered bitext, against counting one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xswe.bitext.rows import Rows
from xswe.errors import InputError
from xswe.io.ragged import Texts
from xswe.mining.gold import GoldCheck, GoldSearch, _Joined, check_gold, gold_scores, on_gold, read_gold
from xswe.mining.margin import score_candidates, select
from xswe.mining.side import SideConfig, prepare_side
from xswe.mining.threshold import PrecisionEstimate
from xswe.mining.twins import Twins
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Vectors

GOLD = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("a", "B")]


def test_records_that_share_a_side_with_gold_are_right_if_they_are_gold():
    draw = np.random.default_rng(0)
    for size in (0, 1, 40):
        records = [("abcdxyz"[draw.integers(7)], "ABCDXYZ"[draw.integers(7)]) for _ in range(size)]
        kept = draw.random(size) < 0.6
        blocks = [records[start : start + 7] for start in range(0, size, 7)]
        rows = [Rows(*(Texts.of(side) for side in zip(*block, strict=True))) for block in blocks]
        found = check_gold(GOLD, rows, kept)
        sources, targets = ({pair[side] for pair in GOLD} for side in (0, 1))
        left = [record for record, stays in zip(records, kept, strict=True) if stays]
        checked = [record for record in left if record[0] in sources or record[1] in targets]
        pairs = set(records) & set(GOLD)
        assert (found.checked, found.pairs) == (len(checked), len(pairs))
        right = sum(record in GOLD for record in checked)
        assert found.precision == (pytest.approx(right / len(checked)) if checked else pytest.approx(math.nan, nan_ok=True))
        recall = len(pairs & set(left)) / len(pairs) if pairs else math.nan
        assert found.recall == pytest.approx(recall, nan_ok=True)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (GoldCheck(0, math.nan, 0, math.nan), "on gold: none of its texts is in the bitext"),
        (GoldCheck(1234, 0.9716, 0, math.nan), "on gold: precision 97.2 % of 1,234 kept pairs with a side in gold"),
        (GoldCheck(0, math.nan, 2000, 0.5), "on gold: recall 50.0 % of 2,000 gold pairs in the bitext"),
        (
            GoldCheck(1, 1.0, 1, 0.0),
            "on gold: precision 100.0 % of 1 kept pairs with a side in gold, recall 0.0 % of 1 gold pairs in the bitext",
        ),
    ],
)
def test_what_gold_says_of_a_filter(found, told):
    assert str(found) == told


def test_rows_after_those_of_a_side_are_of_what_is_hidden():
    side, more = np.eye(5, dtype=np.float32), -np.eye(5, dtype=np.float32)[:3]
    joined, rows = _Joined(Vectors(side), Vectors(more)), np.array([7, 0, 4, 5, 0, 6])
    assert len(joined) == 8
    np.testing.assert_array_equal(joined.take(rows), np.concatenate([side, more])[rows])
    assert joined.take(rows[:0]).shape == (0, 5)


@pytest.mark.parametrize("score", ["cosine", "ratio"])
def test_gold_is_scored_as_if_it_had_been_among_the_lines(tmp_path, score):
    """Of ten pairs two are hidden on both sides, and of another one side is there already."""
    draw = np.random.default_rng(3)
    known = {}

    def encode(texts):
        for text in texts:
            if text not in known:
                vector = np.random.default_rng(int(text[1:])).normal(size=16) + 0.3 * draw.normal(size=16)
                known[text] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return np.stack([known[text] for text in texts])

    sides = [[f"{side}{n}" for n in range(10)] for side in "ab"]
    encode([*sides[0], *sides[1]])
    left_out = ((8, 9), (8, 9, 7))
    kept = [[text for n, text in enumerate(side) if n not in gone] for side, gone in zip(sides, left_out, strict=True)]
    gold = [(sides[0][n], sides[1][n]) for n in (8, 9, 7, 0, 8)] + [("a1", "b2")]
    made = []
    for name, lines in zip("st", kept, strict=True):
        made.append(prepare_side(tmp_path / name, SideConfig("-"), encode, 16, "m", name, lines))
    how = GoldSearch(SearchConfig(threads=1), score, 3, "max")
    lists = find_neighbours(made[0].vectors, made[1].vectors, 3, how.search)
    found = gold_scores(gold, tuple(made), lists, encode, how)
    order = [own + [side[n] for n in gone] for own, side, gone in zip(kept, sides, left_out, strict=True)]
    whole = find_neighbours(*(encode(side) for side in order), 3, how.search)
    distinct = Twins.of(whole, *(Vectors(encode(side)) for side in order)).left_out(whole)
    pairs = select(score_candidates(whole, score, 3, among=distinct), "max")
    scores = {(order[0][a], order[1][b]): one for a, b, one in zip(pairs.source, pairs.target, pairs.scores, strict=True)}
    wanted = [scores.get(pair, -math.inf) for pair in dict.fromkeys(gold)]
    assert found.tolist() == pytest.approx(wanted)
    assert np.isfinite(found[:4]).all()
    assert found[4] == -math.inf


def test_gold_is_read_once_each_and_without_empty_sides(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text("a\tA\n\tB\nb\tB\na\tA\nc\t\n", encoding="utf-8")
    assert read_gold(path, ("en", "de")) == [("a", "A"), ("b", "B")]
    path.write_text("\tB\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"gold\.tsv: no pair in it"):
        read_gold(path, ("en", "de"))


def test_the_recall_of_gold_decides_on_the_threshold():
    """Of pairs all of which are right, the cut is where the last of the gold is found, halfway to the next."""
    expected = PrecisionEstimate(np.array([0.9, 0.7, 0.5, 0.3]), np.array([1.0, 2, 2.5, 2.5]), 4)
    assert on_gold(expected, np.array([-math.inf, 0.9, 0.7]), None) == pytest.approx(0.6)
    assert on_gold(expected, np.array([0.3, 0.3, 0.7]), None) == 0.3
    assert on_gold(expected, np.array([0.9, 0.9]), None) == pytest.approx(0.8)
    assert on_gold(expected, np.array([0.9, 0.9]), 0.8) == pytest.approx(0.4)
    assert on_gold(expected, np.zeros(0), None) == pytest.approx(0.8)
