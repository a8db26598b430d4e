"""The groups of pairs that a page shows."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.mining.samples import EACH, draw_groups

SCORES = np.linspace(2.0, 1.0, 500)


@pytest.mark.parametrize(("threshold", "shown"), [(1.5, True), (2.5, False), (1.0, False)])
def test_the_two_sides_of_the_cut_are_shown_where_there_are_two(threshold, shown):
    groups = draw_groups(SCORES, threshold)
    found = {group.name: group for group in groups if group.name in ("above", "below")}
    assert set(found) == ({"above", "below"} if shown else set())
    if shown:
        kept = int((threshold <= SCORES).sum())
        assert found["above"].rows == tuple(range(kept - EACH, kept))
        assert found["below"].rows == tuple(range(kept, kept + EACH))


def test_the_top_and_the_random_ones_are_of_what_is_kept():
    groups = {group.name: group for group in draw_groups(SCORES, 1.9) if group.name in ("top", "random")}
    kept = int((SCORES >= 1.9).sum())
    assert groups["top"].rows == tuple(range(min(EACH, kept)))
    assert set(groups["random"].rows) <= set(range(kept))
    assert len(groups["random"].rows) == min(EACH, kept)


def test_unknown_scores_are_in_no_group():
    scores = np.where(np.arange(500) % 2, SCORES, np.nan)
    assert all(row % 2 for group in draw_groups(scores, 1.5) for row in group.rows)
