from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.verbs import command, composed, run_verb
from xswe.errors import ConfigError, ModelError
from xswe.evaluation import mteb_bridge
from xswe.evaluation.evaluate import shown
from xswe.evaluation.metrics import Row
from xswe.evaluation.tasks import is_path
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits


@pytest.fixture
def model(tokenizer, tmp_path):
    units = SubwordUnits(tokenizer, "subwords", ("en", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32)
    StaticModel(units, matrix).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_what_is_missing_is_told_below_the_table(model, tmp_path, monkeypatch):
    pytest.importorskip("mteb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.tsv").write_text("a cat\t猫\na dog\t犬\n", encoding="utf-8")
    text = command(
        "evaluate", composed("evaluate", f"model={model}", "tasks=[own.tsv,tatoeba,bucc]", "data=sets", "threads=1")
    )
    assert "skipped tatoeba en-ja: sets/mteb/tatoeba-bitext-mining is missing; put the data set" in text
    assert "skipped bucc -: BUCC has nothing in en, ja" in text
    assert "own.tsv" in text.split("skipped")[0]
    record = json.loads((tmp_path / "eval.json").read_text())
    assert record["model"] == str(model)
    assert [row["value"] for row in record["rows"] if row["task"] == "tatoeba"] == [None]


@pytest.fixture
def no_hub(monkeypatch):
    """Every data set of the hub is out of reach."""
    pytest.importorskip("mteb")

    def fail(*_):
        raise ConnectionError("Couldn't reach 'mteb/tatoeba-bitext-mining' on the Hub")

    monkeypatch.setattr(mteb_bridge, "_evaluate", fail)


@pytest.mark.slow
def test_benchmarks_come_from_the_hub_and_without_it_the_folder_is_named(model, tmp_path, monkeypatch, no_hub):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.tsv").write_text("a cat\t猫\na dog\t犬\n", encoding="utf-8")
    values = composed("evaluate", f"model={model}", "tasks=[own.tsv,tatoeba]", "threads=1")
    assert values["data"] is None
    text = command("evaluate", values)
    assert "own.tsv" in text.split("skipped")[0]
    assert "skipped tatoeba en-ja: neither the hub nor its cache has it (ConnectionError: Couldn't reach" in text
    assert "put it into DIR/mteb/tatoeba-bitext-mining and set data=DIR" in text


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "named"), [("evaluate", "model={}"), ("compare", "models=[{}]")])
def test_a_run_that_measured_nothing_fails_and_says_why(model, tmp_path, monkeypatch, no_hub, verb, named):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"nothing was measured: skipped tatoeba en-ja: neither the hub.*data=DIR"):
        command(verb, composed(verb, named.format(model), "tasks=[tatoeba]", "threads=1"))
    record = json.loads((tmp_path / f"{'eval' if verb == 'evaluate' else verb}.json").read_text())
    assert [(row["task"], row["metric"], row["value"]) for row in record["rows"]] == [("tatoeba", "skipped", None)]


@pytest.mark.slow
def test_the_command_of_a_run_that_measured_nothing_exits_with_an_error(model, tmp_path, no_hub):
    done = run_verb("evaluate", f"model={model}", "tasks=[tatoeba]", "threads=1", cwd=tmp_path)
    assert done.returncode == 2
    assert "xswe: nothing was measured: skipped tatoeba en-ja" in done.stderr
    assert "data=DIR" in done.stderr


def test_moses_files_and_folders_are_tasks(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "news.en").write_text("a cat\na dog\n", encoding="utf-8")
    (tmp_path / "news.ja").write_text("猫\n犬\n", encoding="utf-8")
    command("evaluate", composed("evaluate", f"model={model}", "tasks=[news.en]", "bootstrap.rounds=0", "threads=1"))
    rows = json.loads((tmp_path / "eval.json").read_text())["rows"]
    assert {(row["subset"], row["n"], row["low"]) for row in rows} == {("news.en", 2, None)}


def test_the_table_shows_the_main_score_where_nothing_else_is_known():
    rows = [
        Row("sts12", "en", "main_score", 0.5, 9),
        Row("sts12", "en", "cosine_spearman", 0.5, 9),
        Row("banking77classification", "en", "main_score", 0.7, 9),
        Row("banking77classification", "en", "f1_weighted", 0.6, 9),
    ]
    assert [(row.task, row.metric) for row in shown(rows)] == [
        ("sts12", "cosine_spearman"),
        ("banking77classification", "main_score"),
    ]


@pytest.mark.parametrize(("task", "expected"), [("bucc.v2", False), ("X.V2", False), ("a.tsv", True), ("d/x", True)])
def test_names_of_tasks_are_no_paths(task, expected):
    assert is_path(task) is expected


def test_mistakes_are_named(model):
    with pytest.raises(ConfigError, match="tasks is empty"):
        command("evaluate", composed("evaluate", f"model={model}", "tasks=[]"))
    with pytest.raises(ModelError, match="nowhere"):
        command("evaluate", composed("evaluate", "model=nowhere", "tasks=[own.tsv]"))
    with pytest.raises(ConfigError, match=r"bootstrap\.round"):
        command("evaluate", composed("evaluate", f"model={model}", "tasks=[own.tsv]", "+bootstrap.round=3"))
