from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET

import pytest

from tests.conftest import eval_script
from xswe.errors import ConfigError, InputError

pareto_front = eval_script("report.figures").pareto_front
script = eval_script("experiments.sweep_table")
flat, run, varying_settings = script.flat, script.run, script.varying_settings

SVG = "{http://www.w3.org/2000/svg}"


def made(folder, batch, accuracy, size, seconds):
    """A run folder as train leaves it, without its content."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "model.safetensors").write_bytes(b"x" * size)
    row = {"task": "held-out", "metric": "accuracy", "note": "refinement"}
    rows = [row | {"subset": "en-de", "value": accuracy - 0.1}, row | {"subset": "en-ja", "value": accuracy + 0.1}]
    rows.append(row | {"subset": "de-ja", "task": "without-bitext", "value": 0.0})
    settings = {"refine": {"batch_size": batch, "learning_rate": 0.1}, "seed": 0}
    (folder / "results.json").write_text(json.dumps({"settings": settings, "rows": rows, "report": {}}))
    (folder / "run.json").write_text(json.dumps({"seconds": {"corpus": 1.0, "refine": seconds - 1.0}}))


@pytest.fixture
def runs(tmp_path):
    made(tmp_path / "runs" / "a", 128, 0.5, 1000, 10.0)
    made(tmp_path / "runs" / "b", 512, 0.7, 2000, 5.0)
    made(tmp_path / "runs" / "c", 64, 0.6, 3000, 20.0)
    (tmp_path / "runs" / "unfinished").mkdir()
    return tmp_path


def settings(folder, **changes):
    values = {"runs": str(folder / "runs"), "metric": "accuracy", "step": "refinement", "output": str(folder / "out")}
    return values | changes


def test_a_sweep_in_one_table_with_its_pareto_front(runs):
    out = run(settings(runs))
    assert "refine.batch_size" in out
    assert "refine.learning_rate" not in out
    with open(runs / "out" / "sweep.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["refine.batch_size"] for row in rows] == ["512", "64", "128"]
    assert [float(row["accuracy"]) for row in rows] == pytest.approx([0.7, 0.6, 0.5])
    assert [row["pareto"] for row in rows] == ["bytes, seconds", "", "bytes"]
    assert [float(row["seconds"]) for row in rows] == [5.0, 20.0, 10.0]
    for cost in ("bytes", "seconds"):
        texts = ["".join(text.itertext()) for text in ET.parse(runs / "out" / f"pareto-{cost}.svg").iter(f"{SVG}text")]
        assert {"batch_size=512"} <= set(texts)
        assert "batch_size=64" not in texts  # beaten, so it has a mark but no name
        assert cost in texts


def test_a_single_run_is_a_table_too(runs):
    assert "70.0" in run(settings(runs, runs=str(runs / "runs" / "b")))


def test_mistakes(runs, tmp_path):
    with pytest.raises(InputError, match="no run folder"):
        run(settings(runs, runs=str(tmp_path / "runs" / "unfinished")))
    with pytest.raises(ConfigError, match="it has accuracy"):
        run(settings(runs, metric="f1"))


@pytest.mark.parametrize("name", ["results.json", "run.json"])
@pytest.mark.parametrize("content", ["", '{"rows": [', "[]", "{}"])
def test_a_damaged_run_is_named(runs, name, content):
    (runs / "runs" / "b" / name).write_text(content)
    with pytest.raises(InputError, match=f"b/{name}: .*training command again"):
        run(settings(runs))


def test_settings_that_vary():
    one, two = flat({"a": {"b": 1, "c": [1, 2]}}), flat({"a": {"b": 1, "c": [1]}, "d": None})
    assert one == {"a.b": 1, "a.c": [1, 2]}
    assert varying_settings([one, two]) == ["a.c"]


def test_the_front_holds_what_nothing_beats():
    assert pareto_front([(1, 1), (2, 2), (2, 1.5), (1, 1), (0.5, 0.9)]) == {0, 1, 3, 4}
