"""``xswe.sweep``: runs share what is equal and overwrite nothing, and the table says what is more than chance."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.cli.verbs import run_verb
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import Bootstrap, Row
from xswe.training.sweep import Sweep, SweepPoint

SMALL = {"refine.max_steps": 4, "refine.batch_size": 32, "pca.dim": 8, "units.vocabulary": "mini", "threads": 1}
SMALL |= {"corpus.limit": 400, "corpus.held_out": 0.1}
STATIC = {**SMALL, "objective.prefixes": [], "recipe": "static"}


def point(name: str, *figures: np.ndarray) -> SweepPoint:
    """A choice whose runs got right what the figures say."""
    rows = [(Row("file", "set", "f1", float(items.mean()), len(items), items=items),) for items in figures]
    return SweepPoint({"a": name}, tuple(range(len(rows))), tuple(rows), tuple(Path(str(k)) for k in range(len(rows))))


def swept(*points: SweepPoint) -> Sweep:
    return Sweep(("a",), points, Bootstrap(200))


def drawn(share: float, seed: int, n: int = 400) -> np.ndarray:
    return (np.random.default_rng(seed).random(n) < share).astype(np.float64)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    grid = {"pca.dim": [8, 16]}
    given = {key: value for key, value in STATIC.items() if key not in grid}
    return folder, xswe.sweep("sample", ["en", "de"], grid, seeds=[0, 1], output=folder, **given)


def test_every_run_has_a_folder_of_its_own_and_equal_stages_are_done_once(made):
    folder, found = made
    places = [place for one in found for place in one.folders]
    assert len(set(places)) == 4
    assert [xswe.load(place / "model").dim for place in places] == [8, 8, 16, 16]
    assert not any((place / "stages").exists() for place in places)
    stages = [path.name.split("-")[0] for path in (folder / "stages").iterdir()]
    assert (stages.count("bags"), stages.count("corpus"), stages.count("refine")) == (2, 2, 4)  # two seeds, two splits


@pytest.mark.slow
def test_the_same_sweep_again_trains_nothing(made, tmp_path):
    folder, found = made
    before = {path: path.stat().st_mtime_ns for path in (folder / "stages").rglob("*.safetensors")}
    given = {key: value for key, value in STATIC.items() if key != "pca.dim"}
    again = xswe.sweep("sample", ["en", "de"], {"pca.dim": [8, 16]}, seeds=[0, 1], output=folder, **given)
    assert {path: path.stat().st_mtime_ns for path in (folder / "stages").rglob("*.safetensors")} == before
    assert list(again.records()) == list(found.records())


def test_it_is_written_as_a_table_for_people_and_for_programs(made, tmp_path):
    _, found = made
    for name in ("a.md", "a.tex", "a.csv", "a.json"):
        found.write(tmp_path / name)
    assert "± " in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert r"\toprule" in (tmp_path / "a.tex").read_text(encoding="utf-8")
    rows = list(csv.DictReader((tmp_path / "a.csv").open(encoding="utf-8")))
    assert {row["pca.dim"] for row in rows} == {"8", "16"}
    runs = json.loads((tmp_path / "a.json").read_text())["runs"]
    own = [next(row["value"] for row in run["rows"] if row["metric"] == "f1") for run in runs[:2]]
    said = next(row for row in rows if row["metric"] == "f1" and row["pca.dim"] == "8")
    assert float(said["mean"]) == pytest.approx(np.mean(own))
    assert float(said["deviation"]) == pytest.approx(abs(own[0] - own[1]) / 2**0.5)


def test_the_best_is_marked_and_what_is_not_worse():
    found = swept(point("x", drawn(0.8, 1), drawn(0.8, 2)), point("y", drawn(0.5, 3), drawn(0.5, 4)))
    near = drawn(0.8, 1)
    near[np.flatnonzero(near)[0]] = 0.0
    alike = swept(point("x", drawn(0.8, 1)), point("y", near), point("z", drawn(0.2, 3)))
    assert [line[1][-1] for line in found.layout()[1]] == ["*", " "]
    assert [line[1][-1] for line in alike.layout()[1]] == ["*", "=", " "]
    assert found.layout()[1][0][1].startswith("7") or found.layout()[1][0][1].startswith("8")
    assert not [note for note in found.notes() if "shows no significant" in note]


def test_a_set_that_tells_nothing_is_named():
    full, almost = np.ones(400), np.ones(400)
    almost[0] = 0.0
    assert "is saturated: 100.0 %" in swept(point("x", full), point("y", drawn(0.9, 1))).notes()[1]
    near = drawn(0.8, 1)
    near[np.flatnonzero(near)[0]] = 0.0
    assert "shows no significant difference" in swept(point("x", drawn(0.8, 1)), point("y", near)).notes()[1]
    assert len(swept(point("x", drawn(0.8, 1)), point("y", drawn(0.5, 2))).notes()) == 1


def test_seeds_are_averaged_before_they_are_compared():
    """One lucky seed does not make a choice the best."""
    lucky = point("lucky", drawn(0.9, 1), drawn(0.4, 2))
    steady = point("steady", drawn(0.75, 3), drawn(0.75, 4))
    found = swept(lucky, steady)
    (key,) = found.keys
    assert found.best(key) is steady
    test = found.tests[key, 0]
    assert test.difference == pytest.approx(steady.mean(key) - lucky.mean(key))
    assert test.low > 0


@pytest.mark.parametrize(
    ("grid", "further", "message"),
    [
        ({}, {}, "a list of values"),
        ({"pca.dim": [8]}, {"seeds": []}, "a list of values"),
        ({"pca.dim": 8}, {}, "a list of values"),
        ({"pca.dim": [8], "seed": []}, {}, "a list of values"),
        ({"pca.dims": [8]}, {}, "did you mean dim"),
        ({"pca.dim": [8]}, {"tasks": "absent"}, "absent"),
        ({"teacher": [object()]}, {}, "your own encoder"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(tmp_path, monkeypatch, grid, further, message):
    monkeypatch.setattr("xswe.evaluation.tasks._registered", dict)  # mteb's tasks take seconds to import
    monkeypatch.setattr("xswe.training.sweep.train_with", None)
    with pytest.raises(ConfigError, match=message):
        xswe.sweep("sample", ["en", "de"], grid, output=tmp_path / "s", **further)
    assert not (tmp_path / "s" / "stages").exists()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_runs_of_a_multirun_with_one_output_lie_side_by_side(launcher, tmp_path, capfd):
    """One after the other, or at the same time; what they have in common is done once, and one table compares them."""
    settings = ["pair=en-de", "recipe=static", "teacher=none", "units.vocabulary=mini", "refine.max_steps=2", "threads=1"]
    settings += ["corpus.limit=400", "refine.batch_size=32", "objective.prefixes=[]", "pca.dim=8,16", "output=all"]
    if launcher == "joblib":
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
        settings += ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    done = run_verb("train", "-m", *settings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (done.stderr + capfd.readouterr().err).count("1,717 pairs read") == 1
    models = sorted((tmp_path / "all").glob("*/model"))
    assert sorted(xswe.load(model).dim for model in models) == [8, 16]
    stages = [path.name.split("-")[0] for path in (tmp_path / "all" / "stages").iterdir()]
    assert (stages.count("bags"), stages.count("refine")) == (1, 2)
    (tmp_path / "judged.tsv").write_text("A cat sleeps.\tEine Katze schläft.\nHello.\tHallo.\n", encoding="utf-8")
    found = xswe.compare([str(tmp_path / "all" / "*" / "model")], str(tmp_path / "judged.tsv"), seconds=0)
    assert sorted(model.name for model in found.models) == ["pca.dim=16", "pca.dim=8"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "judged.tsv", "multirun"]
    assert [path.name for path in (tmp_path / "multirun").iterdir()] == ["multirun.yaml"]
    with pytest.raises(InputError, match="matches no folder"):
        xswe.compare([str(tmp_path / "nothing-*")], str(tmp_path / "judged.tsv"))


def right(count: int, n: int = 400) -> np.ndarray:
    """Of ``n`` items the last ``count`` are right."""
    return np.repeat([0.0, 1.0], [n - count, count])


def test_a_sweep_is_printed_with_its_best_and_what_the_marks_mean():
    found = swept(
        point("x", right(400), right(399)), point("y", right(200), right(200)), point("z", right(399), right(399))
    )
    assert str(found).splitlines() == [
        "a          set",
        "-  -----------",
        "x  99.9 ± 0.2*",
        "y  50.0 ± 0.0",
        "z  99.8 ± 0.0=",
        "",
        "mean ± deviation over seeds; * best; = not shown to be worse "
        "(paired bootstrap, p >= 0.05 corrected for 2 tests (Holm))",
        "set is saturated: 99.9 % leaves no room for differences; take a harder set",
    ]
    assert repr(found) == "Sweep(a: 3 choices, 2 seeds)"
    best, worse, near = (dict(zip(found.columns(), row, strict=True)) for row in found.records())
    assert best == {
        "a": "x", "task": "file", "subset": "set", "metric": "f1", "split": None, "n": 400, "seeds": 2, "mean": 0.99875,
        "deviation": pytest.approx(0.00125 * 2**0.5), "best": True, "p": None, "corrected": None,
    }  # fmt: skip
    assert worse["p"] < 0.01
    assert worse["corrected"] == pytest.approx(2 * worse["p"])
    assert (near["mean"], near["deviation"], near["best"]) == (0.9975, 0.0, False)
    assert near["p"] == near["corrected"] > 0.05


def test_a_figure_that_a_run_lacks_is_no_figure_of_its_choice():
    none = SweepPoint({"a": "none"}, (0, 1), ((), (Row("file", "set", "f1", 0.5, 9),)), (Path("0"), Path("1")))
    empty = SweepPoint({"a": "empty"}, (0,), ((Row("file", "set", "f1", None, 0, note="why"),),), (Path("2"),))
    found = swept(none, point("x", right(300)), empty)
    (key,) = found.keys
    assert [point.mean(key) for point in found] == [None, 0.75, None]
    assert [line[1] for line in found.layout()[1]] == ["- ", "75.0*", "- "]
    assert [row[0] for row in found.records()] == ["x"]
    assert found.tests == {}


def test_a_choice_without_items_is_not_tested_and_of_equals_the_first_is_best():
    rows = ((Row("file", "set", "f1", 0.5, 9),),)
    points = [SweepPoint({"a": name}, (0,), rows, (Path(name),)) for name in ("x", "y")]
    found = swept(*points)
    assert found.tests == {}
    assert found.best(found.keys[0]) is points[0]
    assert [line[1] for line in found.layout()[1]] == ["50.0*", "50.0 "]
    two = swept(point("x", right(300)), point("y", right(100)))
    assert Sweep(("a",), two.points, Bootstrap(0)).tests == {}
    assert len(two.tests) == 1


@pytest.mark.parametrize(("count", "saturated"), [(397, False), (398, True)])
def test_a_set_is_saturated_from_that_share_on(count, saturated):
    assert (
        any("is saturated" in note for note in swept(point("x", right(count)), point("y", right(9))).notes()) == saturated
    )


def test_a_sweep_in_json_has_its_runs():
    found = swept(point("x", right(300), right(100))).as_json()
    assert found["settings"] == ("a",)
    assert [(run["settings"], run["seed"], run["folder"], run["rows"][0]["value"]) for run in found["runs"]] == [
        ({"a": "x"}, 0, "0", 0.75),
        ({"a": "x"}, 1, "1", 0.25),
    ]
    assert [row["mean"] for row in found["rows"]] == [0.5]
    assert found["bootstrap"]["rounds"] == 200
