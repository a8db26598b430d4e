"""Training rows for pairs of neighbouring units."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import xswe
from tests.clusters import slices
from tests.training.test_refine import killed_and_resumed, start, toy
from xswe.errors import ConfigError
from xswe.io.ragged import Bags
from xswe.model.bigrams import frequent_bigrams
from xswe.report.training import training_page
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer, refine

UNITS = len(start())
CONFIG = RefineConfig(max_steps=60, batch_size=32, learning_rate=0.01, eval_steps=20, patience=0)


def known(bitext):
    found = frequent_bigrams(bitext.sides, UNITS, 100)
    assert 10 < len(found) <= 100
    return found


def test_a_step_is_that_on_bags_with_the_rows_of_bigrams():
    bitext = toy(2000)
    bigrams = known(bitext)
    table = np.concatenate([start(), np.zeros((len(bigrams), 16), np.float32)])
    ours = Trainer(table.copy(), CONFIG, Objective(), bigrams=bigrams)
    plain = Trainer(table.copy(), CONFIG, Objective())
    wide = ParallelBags(*(bigrams.widen(side, compiled=False) for side in bitext.sides))
    for step in range(3):
        rows = np.arange(32 * step, 32 * (step + 1))
        assert ours.measure(bitext, rows) == plain.measure(wide, rows)
        assert ours.step(bitext, rows, 0.01) == plain.step(wide, rows, 0.01)
    assert ours.matrix.tobytes() == plain.matrix.tobytes()
    assert ours.matrix[UNITS:].any(axis=1).sum() > 5


def test_rows_of_bigrams_tell_orders_apart_that_units_alone_cannot():
    bitext = ParallelBags(*(side.take(np.repeat([0, 1], 5)) for side in orders().sides))
    settings = replace(CONFIG, max_steps=30, batch_size=10, learning_rate=0.05)
    bigrams = frequent_bigrams(bitext.sides, UNITS, 8)
    for chosen, apart in ((None, False), (bigrams, True)):
        table = refine(start(), [bitext], [], settings, Objective(), bigrams=chosen).matrix
        unit, _ = Trainer(table, settings, Objective(), bigrams=chosen).vectors(orders().source)
        assert (unit[0] @ unit[1] < 0.9) == apart


def orders():
    """Dog bites man, man bites dog; and the same in another language."""
    return ParallelBags(Bags.of([[0, 1, 2], [2, 1, 0]]), Bags.of([[30, 31, 32], [32, 31, 30]]))


@pytest.mark.parametrize("killed_at", [19, 47])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch, killed_at):
    bitext = toy(2000)
    arguments = (start(), [bitext], [toy(40, seed=1)], replace(CONFIG, neighbours=8), Objective())
    undisturbed = refine(*arguments, bigrams=known(bitext))
    resumed = killed_and_resumed(arguments, killed_at, tmp_path / "c", monkeypatch, bigrams=known(bitext))
    assert resumed.matrix.tobytes() == undisturbed.matrix.tobytes()
    assert len(resumed.matrix) > UNITS
    assert resumed.history == undisturbed.history


def test_threads_change_nothing_but_the_last_bits():
    bitext = toy(2000)
    one, two = (
        refine(start(), [bitext], [], replace(CONFIG, threads=n), Objective(), bigrams=known(bitext)).matrix for n in (1, 2)
    )
    np.testing.assert_allclose(one, two, atol=1e-5)


FEW = {"refine.max_steps": 4, "refine.batch_size": 32, "refine.bigrams": 300, "pca.dim": 8, "units.vocabulary": "mini"}
FEW |= {"threads": 1, "objective.prefixes": []}


@pytest.mark.slow
def test_a_run_has_bigrams_in_all_that_it_writes_and_goes_on_from_its_stages(tmp_path):
    def run(changes=None, **how):
        return xswe.train("sample", ["en", "de"], recipe="static", output=tmp_path, **FEW | (changes or {}), **how)

    made = run(keep_steps=True)
    assert len(made.model.bigrams) == made.report["bigrams"] == 300
    assert made.model.vectors[len(made.model.units) :].any()
    again = xswe.load(tmp_path / "model")
    assert again.identity == made.model.identity == xswe.load(tmp_path / "steps" / "refinement").identity
    assert again.description["settings"]["refine"]["bigrams"] == 300
    assert "300 pairs of neighbouring units" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "pairs of neighbouring units" in training_page(tmp_path)
    for task in slices(2):  # the tasks of an array train the same
        shutil.rmtree(next((tmp_path / "stages").glob("refine-*")))
        assert run(execution=task).model.identity == made.model.identity
    assert not (tmp_path / "steps").exists()
    assert run({"refine.bigrams": 0}).model.bigrams is None


def test_a_corpus_without_frequent_bigrams_is_refused():
    pairs = [(a, a) for a in "abcdefghijkl"]
    with pytest.raises(ConfigError, match=r"none is frequent; .* refine\.bigrams=0"):
        xswe.train(pairs, ["en", "de"], recipe="static", **FEW)
