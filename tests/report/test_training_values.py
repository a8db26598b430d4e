"""What the page of a training says of a run, worked out by hand."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.errors import InputError
from xswe.evaluation.metrics import Row
from xswe.report import figures
from xswe.report import training as module
from xswe.report.figures import proportion
from xswe.report.training import (
    Run,
    _bars,
    _counts,
    _curves,
    _interval,
    _overview,
    _steps,
    _title,
    _words,
    _worst,
    training_page,
)


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
    values = {
        note: (100 * share, *(100 * bound for bound in proportion(share, 100)))
        for note, share in (("refinement", 0.75), ("PCA", 0.7))
    }
    assert drawn == figures.bars(
        {"en-de": values}, "accuracy, %", "What each step is worth, by pair of languages", zero=False
    )
    half = Row("held-out", "en-de", "spearman_with_teacher", 0.5, 9, note="a", low=0.25)
    bare = figures.bars(
        {"en-de": {"a": (50.0, None, None)}},
        "Spearman with the teacher, %",
        "What each step is worth, by pair of languages",
        zero=False,
    )
    assert _bars(run([half])) == bare
    assert _steps(run([half]))[1] == [["a", "en-de", "50.0", "9"]]


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
    points = {"training": [(1.0, 3.0), (3.0, 1.0)], "development pairs": [(2.0, 2.0)]}
    assert _curves(run(report=report, history=more))[0][1] == figures.lines(
        points, "step", "loss", "Losses by step", zero=True, mark=2.0
    )
    assert _curves(run(history=more))[1][1] == figures.lines(
        {"accuracy": [(1.0, 0.5), (3.0, 0.6)]}, "step", "", "accuracy by step"
    )
    for drop, mark in ((1, 1.5), (0, 1.0)):
        shown = _curves(run(report={"pca": report["pca"] | {"drop": drop}}))[-1][1]
        shares = {"share of the variance": [(1.0, 50.0), (2.0, 25.0)]}
        assert shown == figures.lines(
            shares, "component", "%", "Variance of the components", log_x=True, zero=True, mark=mark
        )


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


@pytest.fixture
def folder(tmp_path):
    """The folder of a run, and what adds a stage to it."""
    settings = {"pair": "en-de", "recipe": "static", "seed": 3, "pca": {"drop": 1}}
    rows = [{"task": "held-out", "subset": "en-de", "metric": "accuracy", "value": 0.5, "n": 9, "note": "a"}]
    results = {"settings": settings, "report": {"corpus": {}, "pca": {"drop": 1}, "refinement": {"steps": 7}}, "rows": rows}

    def write(name="results.json", **more):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(results | more), "utf-8")

    def stage(name, identity, inputs=(), report=None, size=0, **more):
        (own := tmp_path / "stages" / f"{name}-{identity}").mkdir(parents=True)
        about = {"stage": name, "identity": identity, "inputs": inputs} | more
        (own / "stage.json").write_text(json.dumps(about), "utf-8")
        (own / "deep").mkdir()
        (own / "deep" / "data").write_bytes(bytes(size))
        if report is not None:
            (own / "report.json").write_text(json.dumps(report), "utf-8")
        return own

    write()
    return tmp_path, write, stage


def test_a_run_is_read_from_its_folder(folder):
    path, _, _ = folder
    made = Run(path)
    assert (made.record, made.history, made.results["settings"]["seed"]) == ({}, [], 3)
    assert made.rows == [Row("held-out", "en-de", "accuracy", 0.5, 9, note="a")]
    (path / "run.json").write_text('{"threads": 2}', "utf-8")
    (path / "history.csv").write_text("step,loss,rate\n1,0.5,\n2,,0.25\n", "utf-8")
    again = Run(path)
    assert again.record == {"threads": 2}
    assert again.history == [{"step": 1.0, "loss": 0.5}, {"step": 2.0, "rate": 0.25}]
    (path / "results.json").unlink()
    with pytest.raises(InputError, match=r"no results\.json in it; give the run folder of a finished training"):
        Run(path)


def test_the_stages_of_a_run_are_those_that_its_model_is_made_of(folder):
    path, write, stage = folder
    last = {"steps": 7}
    stage("refine", "r1", ["p1", {"bags": "b1"}], last, seconds=1.5, size=10)
    stage("refine", "r2", ["p2"], {"steps": 8})  # of other settings
    stage("pca", "p1", ["e1"], {"drop": 1})
    stage("pca", "p2", ["e1"], {"drop": 2})
    stage("pca", "p0", ["e1"], {"drop": 0})  # without ABTT: shown, too
    stage("extract", "e1", ["c1", "u1", "x"])
    stage("extract", "e2", ["c1", "u2", "x"])
    stage("contexts", "x1", ["c1", "u1", "y"])
    stage("contexts", "x2", ["c1", "u2", "y"])
    for name, identity in (("corpus", "c1"), ("units", "u1"), ("units", "u2"), ("bags", "b1"), ("other", "o1")):
        stage(name, identity)
    stage("spans", "s1", ["r1"])
    found = Run(path).stages
    assert [one.identity for one in found] == ["c1", "u1", "b1", "x1", "e1", "p0", "p1", "r1"]
    refined = found[-1]
    size = sum(file.stat().st_size for file in refined.folder.rglob("*") if file.is_file())
    assert (refined.name, refined.seconds, refined.size, found[0].seconds) == ("refine", 1.5, size, 0.0)
    assert [_title(one) for one in found if one.name in ("pca", "corpus")] == ["corpus", "pca, 0 removed", "pca, 1 removed"]
    write(settings={"pca": {"drop": 0}}, report={"corpus": {}, "pca": {"drop": 0}, "refinement": last})
    assert [one.identity for one in Run(path).stages if one.name == "pca"] == ["p1"]
    write(report={"corpus": {}, "pca": {"drop": 2}})
    assert [one.identity for one in Run(path).stages if one.name in ("pca", "refine")] == ["p2"]
    write(report={"corpus": {}})
    assert [one.identity for one in Run(path).stages] == ["b1"]


def test_tables_after_each_step_have_a_row_per_unit(folder):
    path, _, stage = folder
    for name, identity, inputs, report, rows in (
        ("refine", "r1", ["p1", "p2"], {"steps": 7}, 5),
        ("pca", "p1", ["e1"], {"drop": 1}, 3),
        ("pca", "p2", ["e1"], {"drop": 0}, 3),
        ("extract", "e1", [], None, 4),  # of another vocabulary
    ):
        save_file(
            {"embeddings": np.full((rows, 2), rows, np.float32)},
            stage(name, identity, inputs, report) / f"{name}.safetensors",
        )
    made = Run(path)
    made.__dict__["model"] = SimpleNamespace(units=[1, 2, 3], matrix=[1, 2, 3, 4, 5])
    assert [(name, len(matrix)) for name, matrix in made.matrices()] == [
        ("PCA with ABTT", 3),
        ("PCA without ABTT", 3),
        ("refinement", 5),
    ]


def test_the_page_of_a_run_has_what_there_is(folder, monkeypatch):
    path, _, _ = folder
    model = SimpleNamespace(identity="own")
    monkeypatch.setattr(module, "render", lambda template, **context: context)
    monkeypatch.setattr(Run, "model", model)
    shown = {
        "_words": [],
        "_clouds": [],
        "_worst": ["w"],
        "_overview": ["o"],
        "_steps": ([], []),
        "_bars": "",
        "_curves": [],
    }
    for name, value in shown.items():
        monkeypatch.setattr(module, name, lambda *given, value=value: value)
    told = training_page(path)
    assert (told["title"], told["about"].partition(":")[0]) == ("Training en-de", "Recipe static, seed 3")
    plain = {"pair": "en-de", "recipe": "static", "seed": 3}
    assert told["settings"] == {"of the run": plain, "pca": {"drop": 1}, "versions": {"model": "own"}}
    assert (told["starred"], told["worst"]) == (False, [])
    (path / "history.csv").write_text("step,loss\n1,0.5\n2,0.25\n", "utf-8")
    monkeypatch.setattr(Run, "held_out", lambda self: iter([(("en", "de"), ["a"], ["b"])]))
    for name in ("_words", "_clouds"):
        monkeypatch.setattr(module, name, lambda *given: ["x"])
    told = training_page(path)
    assert told["worst"] == [(("en", "de"), ["w"])]


def test_words_are_shown_with_their_nearest_of_the_training_text():
    rows = {"en": {"seas": 0, "sky": 1, "moon": 2, "stars": 3}, "zh": {"海": 4, "天空": 5, "月亮": 6, "星星": 7}}
    counts = np.ones((2, 8))
    counts[0, 2] = counts[1, 6] = 0  # of no text of the training

    def neighbours(word, language, k):
        assert k == 100
        found = [*rows[language], *(f"x{n}" for n in range(5))]
        return [SimpleNamespace(word=one, score=1 - n / 10) for n, one in enumerate(found)]

    model = SimpleNamespace(
        languages=("en", "zh"), units=range(8), counts=counts, words=lambda code: rows[code], neighbours=neighbours
    )
    found = _words(model)
    assert [(code, word) for code, word, _ in found] == [("en", "seas"), ("en", "stars"), ("zh", "天空"), ("zh", "星星")]
    assert found[0][2] == [("zh", [("海", 1.0), ("天空", 0.9), ("星星", 0.7)])]
    assert found[-1][2] == [("en", [("seas", 1.0), ("sky", 0.9), ("stars", 0.7)])]
    model.counts = None
    assert [(code, word) for code, word, _ in _words(model)] == [
        *(("en", word) for word in ("moon", "seas", "stars")),
        *(("zh", word) for word in sorted(("天空", "月亮", "星星"))),
    ]
    assert [one for one, _ in _words(model)[0][2][0][1]] == ["海", "天空", "月亮", "星星"]  # four at most
    model.languages = ("en",)
    assert _words(model) == []
