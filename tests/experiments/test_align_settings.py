"""eval/experiments/align_settings.py: translations aligned by hand, and how sure a difference on them is."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import eval_script

settings = eval_script("experiments.align_settings")


def test_articles_are_read_with_their_beads(tmp_path):
    for code, lines in (
        ("de", "Eins.\nZwei.\nDrei.\n"),
        ("fr", "Un. Deux.\nTrois.\n"),
        ("gold", "[0, 1]:[0]\n[]:[]\n[2]:[1]\n"),
    ):
        (tmp_path / code).mkdir()
        (tmp_path / code / "001").write_text(lines)
    (found,) = settings.alpine(tmp_path)
    assert (found.source, found.target) == (["Eins.", "Zwei.", "Drei."], ["Un. Deux.", "Trois."])
    assert found.beads == [((0, 1), (0,)), ((2,), (1,))]


def test_the_interval_of_a_difference_holds_it_and_is_empty_between_equals():
    counts = [np.array([[9, 10, k, 9, 9] for k in (4, 6, 7, 5)]), np.array([[9, 10, k, 9, 9] for k in (8, 7)])]
    better = [total + np.array([0, 0, 1, 0, 0]) for total in counts]
    assert settings.interval(counts, counts, 50) == (0, 0)
    assert settings.interval(counts, better, 50) == pytest.approx((2 / 19, 2 / 19))  # one exact bead more a document
