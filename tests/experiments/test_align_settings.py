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


def counts_of(*right: int) -> np.ndarray:
    """Ten beads found and ten of gold in each document, so many right."""
    return np.array([[10, 10, k, 9, 9] for k in right])


def test_draws_of_documents_tell_how_sure_a_difference_is_and_see_none_between_equals():
    ours, better = [counts_of(4, 6, 7, 5), counts_of(8, 7)], [counts_of(5, 7, 8, 6), counts_of(9, 8)]
    assert set(settings.added(ours, ours, 50)) == {0}
    assert settings.added(ours, better, 50) == pytest.approx(np.full(50, 0.1))  # one exact bead more a document
    assert settings.strict(better) == pytest.approx(0.75)


def test_the_settings_nearest_to_the_former_that_are_not_told_from_the_best_are_chosen():
    best, near, worse, former = (0.05, 0.25, 0.1, 2.0), (0.1, 0.25, 0.1, 2.0), (0.2, 0.25, 0.05, 2.0), (0.2, 0.2, 0.05, 2.0)
    found = {former: [counts_of(5, 5, 5, 5)], worse: [counts_of(7, 7, 7, 8)], best: [counts_of(8, 8, 8, 9)]}
    assert settings.choose({**found, near: [counts_of(9, 8, 8, 7)]}, 200) == near  # 0.025 below, error 0.055
    assert settings.choose({**found, near: [counts_of(7, 7, 7, 8)]}, 200) == best  # 0.1 below in every document
