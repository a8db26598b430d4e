"""Runs are named by the settings in which they differ."""

from __future__ import annotations

import json

from xswe.evaluation.run_names import names_of_runs


def runs(folder, *settings):
    for number, own in enumerate(settings):
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        (folder / str(number) / "config.json").write_text(json.dumps({"settings": own}))
    return names_of_runs([str(folder / str(number)) for number in range(len(settings))])


def test_only_what_differs_is_named(tmp_path):
    base = {"seed": 1, "pca": {"dim": 64, "drop": 2}, "refine": {}, "recipe": "paper"}
    assert runs(tmp_path, base, base | {"seed": 2}) == ["seed=1", "seed=2"]
    other = base | {"pca": {"dim": 32, "drop": 2}, "seed": None}
    assert runs(tmp_path, base, base | {"pca": {"dim": 32, "drop": 2}}, other) == [
        "seed=1, pca.dim=64",
        "seed=1, pca.dim=32",
        "seed=none, pca.dim=32",
    ]
    lists = [base | {"tasks": value} for value in ([1, 2], [], [True, None])]
    assert runs(tmp_path, *lists) == ["tasks=[1,2]", "tasks=[]", "tasks=[true,none]"]
    assert runs(tmp_path, base, base | {"more": False}) == ["more=none", "more=false"]


def test_a_teacher_or_a_kind_of_units_stands_for_its_section(tmp_path):
    first = {"teacher": {"model": "mini", "dtype": "a"}, "units": {"kind": "words", "size": 1}, "seed": 0}
    second = {"teacher": {"model": "labse", "dtype": "b"}, "units": {"kind": "words", "size": 2}, "seed": 0}
    assert runs(tmp_path, first, second) == ["teacher=mini, units.size=1", "teacher=labse, units.size=2"]
    second["units"]["kind"] = "subwords"
    assert runs(tmp_path, first, second) == ["teacher=mini, units=words", "teacher=labse, units=subwords"]


def test_runs_of_several_recipes_differ_by_what_others_of_their_recipe_have(tmp_path):
    paper, static = {"recipe": "paper", "x": 1, "seed": 0}, {"recipe": "static", "x": 2, "seed": 0}
    assert runs(tmp_path, paper, static) == ["recipe=paper", "recipe=static"]
    found = runs(tmp_path, paper, paper | {"seed": 1}, static)
    assert found == ["recipe=paper, seed=0", "recipe=paper, seed=1", "recipe=static"]


def test_what_has_no_names(tmp_path):
    run = {"seed": 1}
    assert runs(tmp_path, run) is None
    assert runs(tmp_path, run, run) is None
    assert runs(tmp_path, {"seed": 1}, {"seed": 2}, {"seed": 2}) is None
    assert names_of_runs([str(tmp_path / "0"), str(tmp_path / "none")]) is None
    (tmp_path / "0" / "config.json").write_text("{}")
    assert names_of_runs([str(tmp_path / "0"), str(tmp_path / "1")]) == ["seed=none", "seed=2"]
