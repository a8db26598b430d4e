"""No verb writes to a file that it reads, or another format than the name of its output promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import xswe
from tests.conftest import eval_script
from xswe.__main__ import main

script = eval_script("experiments.local_faults")
WRITTEN = ("rejects", "report", "index", "work")  # what is written besides
SETTINGS = json.loads(Path(xswe.__file__).with_name("cli").joinpath("settings.json").read_text("utf-8"))
READ = {name: case for name, case in script.CASES.items() if case.changed and "output=" in case.words}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("read")
    script.write_inputs(place)
    return place


def status_of(words):
    try:
        return main(words.split())
    except SystemExit as end:
        return end.code


def with_output(case, output):
    return re.sub(r"output=\S+", f"output={output}", case.words)


@pytest.mark.parametrize("name", READ)
def test_an_output_that_is_the_input_is_refused(folder, monkeypatch, capsys, name):
    monkeypatch.chdir(folder)
    case = READ[name]
    before, files = (folder / case.changed).read_bytes(), sorted(folder.rglob("*"))
    status = status_of(with_output(case, case.changed))
    said = capsys.readouterr().err
    assert (status, (folder / case.changed).read_bytes() == before) == (2, True), said
    assert re.search("is also read|a folder is written there|a report is a page", said), said
    assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        (name, setting)
        for name, case in READ.items()
        for setting, *_ in SETTINGS[case.words.split()[0]]
        if setting in WRITTEN
    ],
)
def test_nothing_else_is_written_to_the_input(folder, monkeypatch, capsys, name, setting):
    monkeypatch.chdir(folder)
    case, before = READ[name], (folder / READ[name].changed).read_bytes()
    words = [word for word in case.words.split() if not word.startswith(f"{setting}=")]
    status = status_of(" ".join([*words, f"{setting}={case.changed}"]))
    assert (status, (folder / case.changed).read_bytes() == before) == (2, True)


@pytest.mark.parametrize("name", READ)
def test_an_output_in_the_format_of_another_verb_is_refused_at_once(tmp_path, monkeypatch, capsys, name):
    script.write_inputs(tmp_path)
    (tmp_path / READ[name].changed).write_bytes(b"a \xff cat\n")  # which is said where it is read first
    monkeypatch.chdir(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert status_of(with_output(READ[name], "o.onnx")) == 2
    assert "o.onnx" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == files
