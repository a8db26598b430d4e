"""No verb writes to a file that it reads."""

from __future__ import annotations

import re

import pytest

from tests.conftest import eval_script
from xswe.__main__ import main

script = eval_script("experiments.local_faults")
READ = {name: case for name, case in script.CASES.items() if case.changed and "output=" in case.words}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("read")
    script.write_inputs(place)
    return place


@pytest.mark.parametrize("name", READ)
def test_an_output_that_is_the_input_is_refused(folder, monkeypatch, capsys, name):
    monkeypatch.chdir(folder)
    case = READ[name]
    before, files = (folder / case.changed).read_bytes(), sorted(folder.rglob("*"))
    try:
        status = main(re.sub(r"output=\S+", f"output={case.changed}", case.words).split())
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr().err
    assert (status, (folder / case.changed).read_bytes() == before) == (2, True), said
    assert case.changed.split("/")[0] in said
    assert sorted(folder.rglob("*")) == files
