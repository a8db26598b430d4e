"""eval/experiments/paper_table.py: seeds, intervals and the paper's figures in one table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.evaluation.metrics import Row

Later("torch")
script = eval_script("experiments.paper_table")


def test_the_papers_figures_are_those_of_its_tables():
    assert script.published("tatoeba", "en-ja") == 79.0
    assert script.published("sts22", "en-zh") == 72.6
    assert script.published("bucc", "en-ja") is None


def test_intervals_are_of_the_mean_over_seeds():
    generator = np.random.default_rng(0)
    items = [(generator.random(400) < rate).astype(float) for rate in (0.7, 0.8)]
    rows = [Row("tatoeba", "en-ja", "f1", float(one.mean()), 400, items=one) for one in items]
    found = script.summary(rows, 500)
    assert found["mean"] == pytest.approx(np.mean([one.mean() for one in items]))
    assert found["deviation"] == pytest.approx(abs(rows[0].value - rows[1].value) / 2**0.5)
    both = np.mean(items, axis=0)
    half = 1.96 * both.std() / 20
    assert found["low"] == pytest.approx(found["mean"] - half, abs=0.01)
    assert found["high"] == pytest.approx(found["mean"] + half, abs=0.01)
    assert script.summary(rows[:1], 0)["deviation"] is None


@pytest.mark.slow
def test_one_command_trains_measures_and_lays_out(tiny_teacher, sample, tmp_path, capsys):
    test = tmp_path / "test.tsv"
    test.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sample["en"][:80], sample["ja"][:80], strict=True)), "utf-8")
    few = {"contexts.per_unit": 1, "pca.dim": 8, "refine.max_steps": 4, "corpus.limit": 300, "corpus.max_characters": 200}
    settings = {**script.DEFAULTS, "pairs": "en-ja", "seeds": "0,1", "tasks": str(test), "bitext": "sample", "threads": 1}
    script.main({**settings, "output": str(tmp_path / "out"), "teacher": str(tiny_teacher), "rounds": 50}, few)
    (row,) = json.loads((tmp_path / "out" / "table.json").read_text())["rows"]
    assert (row["pair"], row["task"], row["n"]) == ("en-ja", "file", 80)
    assert row["low"] <= row["mean"] <= row["high"]
    assert "±" in capsys.readouterr().out
    assert (tmp_path / "out" / "table.md").read_text().count("\n") == 3
