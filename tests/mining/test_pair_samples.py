"""The groups of pairs that a page shows."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from xswe.mining.samples import EACH, Group, Reservoir, Shown, draw_groups, shown_rows, with_texts


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 19, 20, 21, 100, 137])
def test_groups_are_ranges_of_the_known_scores(size):
    """The two sides of the cut, the top and random ones of what is kept, and a sample of each band."""
    draw = np.random.default_rng(size)
    scores = draw.integers(0, 30, size) / 10
    scores[draw.random(size) < 0.1] = np.nan
    falling = sorted((row for row in range(size) if not np.isnan(scores[row])), key=lambda row: (-scores[row], row))
    for threshold in (-1.0, 0.3, 1.5, 2.7, 5.0):
        kept, left = ([row for row in falling if bool(scores[row] >= threshold) is which] for which in (True, False))
        wanted = [("above", kept[-EACH:]), ("below", left[:EACH])] if kept and left else []
        wanted += [("top", kept[:EACH]), ("random", kept)]
        for part, bands in ((kept, 5), (left, 3)):
            each, more = divmod(len(part), bands)
            ends = np.cumsum([0] + [each + (band < more) for band in range(bands)]).tolist()
            wanted += [("band", part[a:b]) for a, b in pairwise(ends)] if each else []
        wanted = [(name, rows) for name, rows in wanted if rows]
        found = draw_groups(scores, threshold)
        assert [(group.name, group.size) for group in found] == [(name, len(rows)) for name, rows in wanted]
        for group, (name, rows) in zip(found, wanted, strict=True):
            assert (group.high, group.low) == (scores[rows[0]], scores[rows[-1]])
            if name in ("random", "band"):
                places = [rows.index(row) for row in group.rows]
                assert places == sorted(set(places))
                assert len(places) == min(EACH, len(rows))
            else:
                assert list(group.rows) == rows
        assert found == draw_groups(scores, threshold)
        assert shown_rows(found) == {row for group in found for row in group.rows}


def test_texts_are_those_of_the_rows_that_have_some():
    group = Group("top", 0.1, 0.9, 3, (4, 0, 2))
    texts = {row: Shown(row, 0.5, f"a{row}", f"b{row}") for row in (2, 4)}
    (found,) = with_texts([group], texts)
    assert found.pairs == (texts[4], texts[2])


def test_each_of_many_offers_has_the_same_chance_to_be_an_example():
    found = Reservoir()
    for value in range(6):
        found.offer("few", value)
    found.offer("few")
    found.offer("none")
    assert (found.kept, found.counts) == ({"few": list(range(6))}, {"few": 7, "none": 1})
    for value in range(4000):
        found.offer("many", value)
    assert (len(found.kept["many"]), len(set(found.kept["many"])), found.counts["many"]) == (8, 8, 4000)
    chosen = []
    for seed in range(150):
        some = Reservoir(_draw=random.Random(seed))
        for value in range(16):
            some.offer("reason", value)
        chosen += some.kept["reason"]
    assert np.abs(np.bincount(chosen, minlength=16) - 75).max() < 25  # a standard deviation is 6
