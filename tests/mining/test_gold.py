"""Gold pairs among the lines, and among the records of a filtered bitext, against counting one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xswe.bitext.rows import Rows
from xswe.errors import InputError
from xswe.io.ragged import Texts
from xswe.mining.gold import GoldCheck, check_gold, on_gold, read_gold
from xswe.mining.threshold import PrecisionEstimate

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


def test_gold_is_read_once_each_and_without_empty_sides(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text("a\tA\n\tB\nb\tB\na\tA\nc\t\n", encoding="utf-8")
    assert read_gold(path) == [("a", "A"), ("b", "B")]
    path.write_text("\tB\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"gold\.tsv: no pair in it"):
        read_gold(path)


def test_the_recall_of_gold_decides_on_the_threshold():
    """Of pairs all of which are right, the cut is where the last of the gold is found, halfway to the next."""
    expected = PrecisionEstimate(np.array([0.9, 0.7, 0.5, 0.3]), np.array([1.0, 2, 2.5, 2.5]), 4)
    assert on_gold(expected, np.array([-math.inf, 0.9, 0.7]), None) == pytest.approx(0.6)
    assert on_gold(expected, np.array([0.3, 0.3, 0.7]), None) == 0.3
    assert on_gold(expected, np.array([0.9, 0.9]), None) == pytest.approx(0.8)
    assert on_gold(expected, np.array([0.9, 0.9]), 0.8) == pytest.approx(0.4)
    assert on_gold(expected, np.zeros(0), None) == pytest.approx(0.8)
