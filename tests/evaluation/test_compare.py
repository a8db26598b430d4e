from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.cli.verbs import command, composed, run_verb
from xswe.errors import ConfigError, ModelError
from xswe.evaluation.evaluate import Comparison, Measured, PairedTest, Scores, _checked, figures_of, of_marks, title
from xswe.evaluation.metrics import LEVEL, Row
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits


@pytest.fixture
def setting(tokenizer, tmp_path, sample):
    """Two models, one blurred by noise, and a bitext that the first one knows by heart."""
    units = SubwordUnits(tokenizer, "subwords", ("en", "ja"))
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(len(units.tokens), 16)).astype(np.float32)
    for name, noise in (("good", 0.0), ("bad", 3.0)):
        blurred = (matrix + noise * rng.normal(size=matrix.shape)).astype(np.float32)
        StaticModel(units, blurred).save(tmp_path / name)
    # A "translation" is the same text without its last word: the good model is nearly always right
    pairs = [(text, text.rsplit(" ", 1)[0]) for text in sample["en"][:200]]
    (tmp_path / "own.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    scored = [(k % 6, a, a if k % 6 > 3 else b) for k, (a, b) in enumerate(zip(sample["en"], sample["ja"], strict=True))]
    (tmp_path / "scored.tsv").write_text("".join(f"{s}\t{a}\t{b}\n" for s, a, b in scored[:150]), encoding="utf-8")
    return tmp_path


def test_compare_marks_the_best_and_tests_the_others(setting, monkeypatch):
    monkeypatch.chdir(setting)
    (setting / "zero.vec").write_text("notaword 1 0\n")
    (setting / "run.json").write_text('{"seconds": {"pca": 1.26, "refine": 2}}')  # of the run whose folder this is
    values = composed(
        "compare",
        "models=[good,bad,{path: good, name: twin},zero.vec]",
        "tasks=[own.tsv,scored.tsv]",
        "seconds=0.02",
        "bootstrap.rounds=200",
        "threads=1",
    )
    table = command("compare", values)
    lines = {line.split()[0]: line for line in table.splitlines() if line}
    assert lines["model"].split()[:4] == ["model", "dims", "MB", "sentences/s"]
    assert lines["good"].count("*") == 2
    assert lines["twin"].count("=") == 2
    assert lines["bad"].count("*") == 0
    assert "no correlation: all cosines are equal (zero.vec)" in table
    found = json.loads((setting / "compare.json").read_text())
    assert [model["name"] for model in found["models"]] == ["good", "bad", "twin", "zero.vec"]
    assert all(model["sentences_per_second"] > 0 and model["bytes"] > 0 for model in found["models"])
    assert {model["training_seconds"] for model in found["models"]} == {3.3}
    assert {row["model"] for row in found["rows"]} == {"good", "bad", "twin", "zero.vec"}
    tests = {(t["subset"], t["metric"], t["other"]): t for t in found["tests"]}
    assert tests["own.tsv", "f1", "twin"]["p"] == 1.0
    assert tests["own.tsv", "f1", "zero.vec"]["p"] < 0.05
    assert {t["best"] for t in found["tests"]} == {"good"}
    row = next(row for row in found["rows"] if row["model"] == "good" and row["metric"] == "f1")
    assert row["low"] <= row["value"] <= row["high"]


def figures(name, f1, rate=None, **changes):
    rows = (
        Row("tatoeba", "en-ja", "f1", f1, 9, "xswe", None, "test"),
        Row("tatoeba", "en-ja", "accuracy", 0.1, 9, "xswe", None, "test"),
        Row("bucc", "-", "skipped", None, 0, note="there is nothing"),
    )
    return Measured(name, 8, 1_250_000, 2, ("en", "ja"), rate, rows, **changes)


def test_the_table_of_a_comparison():
    """Marked are the best, and what is not shown to be worse: p of 0.05 or more."""
    models = (figures("a", 0.5, 1234.5), figures("b", 0.25), figures("c", 0.4, training=7.16), figures("d", None))
    key = "tatoeba", "en-ja", "f1", "test"
    tests = (PairedTest(*key, "a", "b", 0.25, 0.1, 0.4, 0.001, 0.049), PairedTest(*key, "a", "c", 0.1, 0, 1, 0.04, LEVEL))
    found = Comparison(models, tests, 2)
    assert str(found) == (
        "model  dims   MB  sentences/s  tatoeba en-ja\n"
        "-----  ----  ---  -----------  -------------\n"
        "a         8  1.2        1,234          50.0*\n"
        "b         8  1.2            -          25.0\n"
        "c         8  1.2            -          40.0=\n"
        "d         8  1.2            -             -\n\n"
        "* best; = not shown to be worse (paired bootstrap, p >= 0.05 corrected for 2 tests (Holm))\n"
        "skipped bucc: there is nothing (a, b, c, d)"
    )
    header, lines = found.layout()
    assert header == ["model", "dims", "MB", "sentences/s", "tatoeba en-ja"]
    assert lines[0] == ["a", 8, "1.2", "1,234", "50.0*"]
    written = found.as_json()
    assert [model["training_seconds"] for model in written["models"]] == [None, None, 7.2, None]
    assert [model["sentences_per_second"] for model in written["models"]] == [1234, None, None, None]
    assert of_marks(1) == "* best; = not shown to be worse (paired bootstrap, p >= 0.05)"
    assert repr(found) == "Comparison(a, b, c, d)"
    found.check()
    with pytest.raises(ConfigError, match=r"nothing was measured: skipped bucc -: there is nothing \(all rows: x\.md\)$"):
        Comparison(tuple(replace(one, rows=one.rows[2:]) for one in models), (), 2).check("x.md")


def test_the_table_of_an_evaluation():
    rows = (
        Row("t", "en-ja", "f1", 0.5, 9, low=0.25, high=0.755),
        Row("t", "en-ja", "spearman", 0.1, 9, "mteb 2"),  # mteb's other name of cosine_spearman
        Row("own", "a.tsv", "spearman", 0.25, 7),
        Row("t", "en-ja", "recall", 0.5, 9),
        Row("u", "de", "skipped", None, 0, note="why"),
        Row("v", "de", "skipped", None, 0, note="why"),
        Row("w", "de", "f1", None, 0),
        Row("w", "de", "skipped", None, 0, note="another reason"),
    )
    found = Scores("m", "folder", rows, 0.9)
    assert str(found) == (
        "task  subset  metric    value        90%  n  source\n"
        "----  ------  --------  -----  ---------  -  ------\n"
        "t     en-ja   f1         50.0  25.0-75.5  9  xswe\n"
        "own   a.tsv   spearman   25.0          -  7  xswe\n\n"
        "skipped u de, v de: why\n"
        "skipped w de: another reason"
    )
    found.check()
    with pytest.raises(ConfigError) as raised:
        replace(found, rows=rows[4:]).check()
    assert str(raised.value) == "nothing was measured: skipped u de, v de: why; skipped w de: another reason"
    with pytest.raises(ConfigError, match=r"^nothing was measured: no task has any row \(all rows: a\.md\)$"):
        replace(found, rows=()).check("a.md")


def test_columns_are_named_by_what_tells_them_apart():
    keys = [("file", "a.tsv", "f1", None), ("t", "en", "f1", "dev"), ("t", "en", "f1", "test"), ("t", "de", "f1", "dev")]
    keys.append(("t", "de", "average_s2s", "dev"))
    assert [title(key, keys) for key in keys] == ["a.tsv", "t en dev", "t en test", "t de f1", "t de average_s2s"]
    rows = [Row(task, subset, metric, 0.5, 1, split=split) for task, subset, metric, split in keys]
    assert figures_of([*rows, Row("t", "de", "mrr", 0.5, 1, split="dev"), rows[0]]) == keys


def test_the_results_of_mteb_lie_beside_the_output(setting):
    file = str(setting / "own.tsv")
    assert _checked([file], None, setting / "d" / "all.json", None) == setting / "d" / "mteb"
    assert _checked([file], None, setting / "d" / "all.json", setting / "own") == setting / "own"
    assert _checked([file], None, None, None) is None
    with pytest.raises(ConfigError, match="data does nothing"):
        _checked([file], setting, None, None)


def test_mistakes_are_found_before_any_work(setting, monkeypatch):
    monkeypatch.chdir(setting)
    with pytest.raises(ModelError, match="nowhere"):
        command("compare", composed("compare", "models=[good,nowhere]", "tasks=[own.tsv]"))
    with pytest.raises(ConfigError, match="models is empty"):
        command("compare", composed("compare", "models=[]", "tasks=[own.tsv]"))
    monkeypatch.setattr("xswe.evaluation.tasks._registered", dict)  # mteb's tasks take seconds to import
    with pytest.raises(ConfigError, match="unknown task 'tatooba'"):
        command("compare", composed("compare", "models=[good]", "tasks=[tatooba]"))
    with pytest.raises(ConfigError, match="two models are called 'good'"):
        command("compare", composed("compare", "models=[good,good]", "tasks=[own.tsv]", "seconds=0", "bootstrap.rounds=0"))


def test_evaluate_gives_intervals_for_own_files(setting, monkeypatch):
    monkeypatch.chdir(setting)
    table = command("evaluate", composed("evaluate", "model=good", "tasks=[own.tsv,scored.tsv]", "threads=1"))
    assert "95%" in table.splitlines()[0]
    rows = {(row["subset"], row["metric"]): row for row in json.loads((setting / "eval.json").read_text())["rows"]}
    assert rows["own.tsv", "mrr"]["value"] >= rows["own.tsv", "accuracy"]["value"]
    assert rows["scored.tsv", "spearman"]["low"] < rows["scored.tsv", "spearman"]["high"]
    assert rows["own.tsv", "margin_mrr"]["n"] == 200


@pytest.mark.slow
def test_the_command_line(setting):
    done = run_verb("compare", "models=[good,wordllama]", "tasks=[own.tsv]", "seconds=0", cwd=setting)
    assert done.returncode == 0, done.stderr
    assert "WordLlama" in done.stdout
