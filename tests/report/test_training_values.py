"""What the page of a training says of a run, worked out by hand."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.evaluation.metrics import Row
from xswe.report.figures import proportion
from xswe.report.training import _bars, _counts, _curves, _interval, _overview, _steps, _worst


def run(rows=(), report=None, history=(), record=None, model=None):
    results = {"report": {"corpus": {}} | (report or {})}
    return SimpleNamespace(rows=list(rows), results=results, history=list(history), record=record or {}, model=model)


ROWS = (
    Row("held-out", "en-de", "f1", 0.5, 100, note="refinement", low=0.4, high=0.625),
    Row("held-out", "en-de", "accuracy", 0.75, 100, note="refinement"),
    Row("held-out", "en-de", "accuracy", 0.7, 100, note="PCA"),
    Row("sample", "en-de", "accuracy", None, 30, note="PCA"),
)


def test_a_share_has_its_own_interval_or_that_of_its_count():
    assert _interval(ROWS[0]) == (0.4, 0.625)
    assert _interval(ROWS[1]) == proportion(0.75, 100)
    assert _interval(ROWS[3]) == (None, None)
    assert _interval(Row("a", "b", "accuracy", 0.5, 0)) == (None, None)
    assert _interval(Row("a", "b", "f1", 0.5, 100)) == (None, None)  # no share of its items
    assert _interval(Row("a", "b", "f1", 0.5, 100, low=0.1)) == (None, None)


def test_each_step_has_its_figures_with_intervals():
    low, high = (f"{100 * bound:.1f}" for bound in proportion(0.75, 100))
    below, above = (f"{100 * bound:.1f}" for bound in proportion(0.7, 100))
    header, rows = _steps(run(ROWS))
    assert header == ["step", "languages", "accuracy", "F1", "held out"]
    assert rows == [
        ["refinement", "en-de", f"75.0 ({low} to {high})", "50.0 (40.0 to 62.5)", "100"],
        ["PCA", "en-de", f"70.0 ({below} to {above})", "–", "100"],
        ["PCA", "en-de *", "–", "–", "30"],
    ]
    assert _steps(run()) == (["step", "languages", "held out"], [])
    assert _bars(run()) == ""
    drawn = str(_bars(run(ROWS)))
    assert "accuracy, %" in drawn
    assert drawn.count("<rect") == 2  # of one figure alone, where it is known
    assert re.findall("<title>(.*?)</title>", drawn) == ["refinement, en-de: 75", "PCA, en-de: 70"]


def test_curves_are_drawn_from_two_looks_on():
    history = [{"step": 1.0, "training_loss": 3.0, "accuracy": 0.5}, {"step": 2.0, "development_loss": 2.0, "rate": 0.1}]
    report = {"refinement": {"best_step": 2}, "pca": {"explained_variance_ratio": [0.5, 0.25], "drop": 1}}
    found = _curves(run(report=report, history=history))
    assert [name for name, _ in found] == [
        "Loss",
        "Variance of the sentence components; those to the left of the line are removed",
    ]
    loss = str(found[0][1])
    assert "training" in loss
    assert "development pairs" in loss
    assert loss.count('class="cut"') == str(found[1][1]).count('class="cut"') == 1
    assert 'class="cut"' not in str(_curves(run(history=history))[0][1])
    more = [*history, {"step": 3.0, "accuracy": 0.6, "training_loss": 1.0}]
    assert [name for name, _ in _curves(run(history=more))] == ["Loss", "accuracy"]
    assert _curves(run(history=history[:1])) == []


def test_counts_of_the_corpus_and_the_steps():
    part = {"read": 1200, "kept": 1000, "held_out": 10, "dropped": {"empty": 150, "length": 50}}
    corpus = {"en-de": part | {"checksums": {"a/b.tsv": "f" * 40}}, "pairs": 7, "en-ja": {"train": 5}}
    report = {"corpus": corpus, "extraction": {"units_met": 12_345}, "pca": {"drop": 2, "x": 0.5}}
    assert _counts(run(report=report)) == [
        ("corpus en-de", "read 1,200, kept 1,000, held-out 10; dropped: 150 empty, 50 length"),
        ("checksum of b.tsv", "f" * 16),
        ("corpus en-ja", "train 5"),
        ("extraction: units met", "12,345"),
        ("pca: drop", "2"),
    ]


def test_the_overview_of_a_model_and_its_run():
    matrix = np.array([[1, 0], [0, 0], [0, 1], [0, 0], [1, 1], [0, 0]], np.float32)  # two bigrams behind four units

    class Units(list):
        kind = "words"

    model = SimpleNamespace(units=Units("abcd"), bigrams=[1, 2], dim=2, dtype="float32", matrix=matrix)
    corpus = {"en-de": {"train": 1500}, "en-ja": {"train": 500}, "x": 3}
    report = {"corpus": corpus, "refinement": {"steps": 2000, "best_step": 1500}}
    told = _overview(run(report=report, record={"seconds": {"a": 1000.4, "b": 500.0}, "threads": 2}, model=model))
    assert told == [
        ("units", "4", "words"),
        ("bigrams", "2", "pairs of neighbouring units"),
        ("dimensions", "2", "float32"),
        ("size", "0.0 MB", "of the table"),
        ("training pairs", "2,000", "or sentences"),
        ("steps", "2,000", "the best: 1,500"),
        ("seconds", "1,500", "threads: 2"),
        ("units without a vector", "2", told[-1][2]),
    ]
    assert told[-1][2].replace("\u202f", "").replace("\xa0", "").replace(" ", "") == "50.00%"
    model.bigrams = None
    assert [name for name, *_ in _overview(run(model=model))] == ["units", "dimensions", "size", "units without a vector"]


def test_the_worst_pairs_are_furthest_behind_the_best_other_sentence():
    vectors = {"a": [1, 0], "b": [0, 1], "c": [0.6, 0.8], "x": [0.8, 0.6], "y": [0.6, 0.8], "z": [1, 0]}
    model = SimpleNamespace(encode=lambda texts: np.array([vectors[text] for text in texts], np.float32))
    found = _worst(model, ("en", "de"), ["a", "b", "c"], ["x", "y", "z"])
    assert [(one["source"], one["target"], one["rival"], one["lost"]) for one in found] == [
        ("c", "z", "y", True),
        ("a", "x", "z", True),
        ("b", "y", "x", False),
    ]
    assert [(one["own"], one["best"]) for one in found] == [
        (pytest.approx(0.6), pytest.approx(1.0)),
        (pytest.approx(0.8), pytest.approx(1.0)),
        (pytest.approx(0.8), pytest.approx(0.6)),
    ]
    assert _worst(model, ("en", "de"), ["a"], ["x"]) == []
