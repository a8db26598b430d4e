"""No verb writes to a file that it reads, or another format than the name of its output promises."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

import xswe
from tests.conftest import eval_script
from xswe.__main__ import main
from xswe.errors import ConfigError

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


def files_of(case):
    """The files that a command names, but its output."""
    return dict.fromkeys([case.changed, *re.findall(r"\w+\.(?:tsv|txt|en|de)\b", re.sub(r"output=\S+", "", case.words))])


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, case in READ.items() for file in files_of(case)])
def test_an_output_that_is_an_input_is_refused(folder, monkeypatch, capsys, name, file):
    monkeypatch.chdir(folder)
    before, files = (folder / file).read_bytes(), sorted(folder.rglob("*"))
    status = status_of(with_output(READ[name], file))
    said = capsys.readouterr().err
    assert (status, (folder / file).read_bytes() == before) == (2, True), said
    assert re.search("is also read|a folder is written there|a report is a page", said), said
    assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("filter model=mini input=pairs.tsv output=o.tsv gold=more.html report=more.html", "more.html"),
        ("compare models=[mini] tasks=[pairs.tsv,more.html] output=o.csv report=more.html", "more.html"),
        ("align model=mini source=english target=german languages=[en,de] manifest=more.tsv output=more.tsv", "more.tsv"),
        ("dedup input=pairs.tsv column=0 output=o.tsv work=o rejects=pairs.tsv", "pairs.tsv"),
    ],
)
def test_a_file_that_any_setting_names_is_kept(folder, tmp_path, monkeypatch, capsys, words, file):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / file).write_text("0.txt\t0.txt\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert status_of(words) == 2
    assert f"{file}: is also read" in capsys.readouterr().err
    assert (tmp_path / file).read_text("utf-8") == "0.txt\t0.txt\n"
    assert sorted(tmp_path.rglob("*")) == files


def test_documents_are_not_written_to_the_list_that_names_them(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("list.tsv").write_text("0.txt\t0.txt\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"list\.tsv: is also read"):
        xswe.align_files("mini", "english", "german", "list.tsv", manifest="list.tsv", languages=("en", "de"))


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


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        (name, one, other)
        for name, case in READ.items()
        for one, other in combinations(("output", *WRITTEN), 2)
        if {one, other} <= {setting for setting, *_ in SETTINGS[case.words.split()[0]]}
    ],
)
def test_nothing_is_written_twice_to_one_file(tmp_path, monkeypatch, capsys, name, one, other):
    script.write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = [word for word in READ[name].words.split() if word.partition("=")[0] not in (one, other)]
    same, files = "both.html" if "report" in (one, other) else "both.tsv", sorted(tmp_path.rglob("*"))
    given = [f"{setting}={same}" for setting in (one, other)]
    assert status_of(" ".join([*words, *given, *(["output=o.tsv"] if "output" not in (one, other) else [])])) == 2
    assert same in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("name", READ)
def test_an_output_in_the_format_of_another_verb_is_refused_at_once(tmp_path, monkeypatch, capsys, name):
    script.write_inputs(tmp_path)
    (tmp_path / READ[name].changed).write_bytes(b"a \xff cat\n")  # which is said where it is read first
    monkeypatch.chdir(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert status_of(with_output(READ[name], "o.onnx")) == 2
    assert "o.onnx" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("name", READ)
def test_an_output_that_names_languages_is_refused_at_once_if_none_are_given(tmp_path, monkeypatch, capsys, name):
    script.write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    words, files = re.sub(r" languages=\S+", "", with_output(READ[name], "o.tmx")), sorted(tmp_path.rglob("*"))
    if status_of(words) == 0:  # it knows them without
        return
    (tmp_path / READ[name].changed).write_bytes(b"a \xff cat\n")  # which is said where it is read first
    capsys.readouterr()
    assert status_of(words) == 2
    assert re.search("o.tmx|set languages|languages=", capsys.readouterr().err)
    assert sorted(tmp_path.rglob("*")) == files


def test_an_output_of_another_kind_is_refused_before_torch_is_imported(folder):
    """Which takes seconds; in a process of its own, as others here have imported it."""
    words = [with_output(case, "o.onnx") for case in READ.values()]
    words += [f"{script.CASES['train'].words.replace('output=o', 'output=o.tsv')} {also}" for also in ("", "dry=true")]
    program = """if True:
        import sys
        from xswe.__main__ import main
        for words in sys.argv[1:]:
            try:
                status = main(words.split())
            except SystemExit as end:
                status = end.code
            print(status, *{"torch", "transformers", "sklearn"} & set(sys.modules), words)
    """
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"2 {one}" for one in words], done.stderr
