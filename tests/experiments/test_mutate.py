"""Mutations: which places are found, how a verdict is counted, and that the record names files that are there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import eval_script

script = eval_script("experiments.mutate")
ROOT = Path(__file__).parents[2]


def test_places_are_comparisons_operators_constants_and_connectives():
    text = "def f(a: int | None = 1) -> 'x':\n    return a <= 2 and (not a) or f'{a + 1}' or a - 0.5\n"
    found = [(place.was, place.now, place.function) for place in script.places_of("xswe/io/a.py", text)]
    assert sorted(found) == sorted(
        [
            ("1", "2", "f"),
            ("<=", "<", "f"),
            ("2", "3", "f"),
            ("and", "or", "f"),
            ("not", "", "f"),
            ("or", "and", "f"),
            ("or", "and", "f"),
            ("-", "+", "f"),
            ("0.5", "0.75", "f"),
        ]
    )


def test_modules_beside_the_rooms_are_a_room():
    assert [script.room_of(file) for file in ("xswe/text/compiled/scan.py", "xswe/io/a.py", "xswe/errors.py")] == [
        "text",
        "io",
        "xswe",
    ]


def test_only_what_a_test_notices_is_caught():
    def entry(verdict, **more):
        return {"file": "xswe/io/a.py", "line": 1, "was": "1", "verdict": verdict, **more}

    verdicts = [entry("caught: tests/x.py::y"), entry("survived"), entry("survived", why="it makes no difference")]
    verdicts += [entry("timeout"), entry("caught: z", why="an old one"), entry("timeout", why="it only waits longer")]
    found = script.report(verdicts, 9, {"seed": 0})
    assert found["all"] == found["rooms"]["io"] == {"caught": 2, "equivalent": 2, "timeout": 1, "survived": 1}


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        *((0, "survived"), (5, "survived"), (1, "caught: tests/x.py::y")),
        *((-9, "timeout"), (137, "timeout"), (-24, "timeout"), (152, "timeout")),
        *((-11, "caught: killed by signal 11"), (139, "caught: killed by signal 11")),
    ],
)
def test_tests_that_take_too_long_have_caught_nothing(monkeypatch, tmp_path, code, verdict):
    file = "xswe/io/a.py"
    text = "def f():\n    return 1\n"
    tree = object.__new__(script.Tree)
    tree.work, tree.copy, tree.near, tree.seconds = tmp_path, tmp_path / "tree", False, 60
    tree.texts, tree.functions = {file: text}, {file: script.functions_of(text)}
    (tree.copy / "xswe" / "io").mkdir(parents=True)
    (tree.copy / "tests" / "io").mkdir(parents=True)
    (tree.copy / "tests" / "io" / "test_a.py").touch()
    (tree.copy / file).write_text(text + " " * script.PAD)
    (place,) = script.places_of(file, text)

    def pytest_run(files, cache, seconds):
        assert files == ["tests/io/test_a.py"]
        assert (tree.copy / file).read_text().startswith("def f():\n    return 2\n")
        assert (tree.copy / file).stat().st_size == len(text) + script.PAD
        return subprocess.CompletedProcess([], code, "FAILED tests/x.py::y - why\n")

    monkeypatch.setattr(tree, "pytest", pytest_run)
    assert tree.verdict(place, "") == verdict
    assert (tree.copy / file).read_text() == text + " " * script.PAD


def test_the_record_names_files_that_are_there():
    record = json.loads((ROOT / "eval" / "results" / "mutations.json").read_text("utf-8"))
    assert sorted({entry["file"] for entry in record["mutations"] if not (ROOT / entry["file"]).is_file()}) == []
    assert sum(record["all"].values()) == len(record["mutations"])
