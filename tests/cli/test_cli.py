"""The command line as a stranger uses it: exit codes, output, files, kills."""

from __future__ import annotations

import errno
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import xswe
from tests.cli.verbs import run_verb
from tests.conftest import Later
from tests.warm import kill_when
from xswe.cli.main import main, quoted

Later("torch")


@pytest.mark.parametrize("before", [None, "0"])
def test_a_verb_leaves_its_process_as_it_was(before, monkeypatch, capsys):
    thresholds = gc.get_threshold()
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    if before is not None:
        monkeypatch.setenv("HYDRA_FULL_ERROR", before)
    with pytest.raises(SystemExit, match="2"):
        main(["encode", "model=no-such-folder", "input=a.txt", "output=a.npy"])
    assert "no-such-folder" in capsys.readouterr().err
    assert os.environ.get("HYDRA_FULL_ERROR") == before
    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "xswe: x.npy: No space left on device; make room, and"),
        (OSError("Not enough free space to write 5 bytes"), "xswe: x.npy: Not enough free space to write 5 bytes; make"),
        (PermissionError(errno.EACCES, "Permission denied", "y"), "xswe: y: Permission denied (HYDRA_FULL_ERROR=1 shows"),
    ],
)
def test_a_full_disk_is_one_line_that_says_where_and_what_to_do(error, said, monkeypatch, capsys):
    monkeypatch.setattr("xswe.cli.run.run", Mock(side_effect=error))
    with pytest.raises(SystemExit, match="2"):
        main(["status", "output=x.npy"])
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "a.tsv"])
def test_what_is_said_of_a_result_on_standard_output_is_said_elsewhere(output, monkeypatch, capsys):
    monkeypatch.setattr("xswe.cli.run.run", lambda verb, values: "3 lines")
    main(["status", f"output={output}"])
    said, other = ("3 lines\n", "") if output == "a.tsv" else ("", "3 lines\n")
    assert capsys.readouterr() == (said, other)


@pytest.mark.parametrize(
    ("verb", "settings", "told"),
    [
        ("lexicon", ["source=en.txt", "target=de.txt"], "3 and 3 words, "),
        ("search", ["input=de.txt", "queries=en.txt"], "3 queries, 9 hits"),
        ("evaluate", ["tasks=[b.tsv]", "bootstrap.rounds=0"], "all rows: "),
    ],
)
def test_standard_output_has_what_a_file_would_have(verb, settings, told, tmp_path):
    english, german = ["bread", "train", "library"], ["Brot", "Zug", "Bibliothek"]
    both = ["\t".join(pair) for pair in zip(english, german, strict=True)]
    for name, lines in (("en.txt", english), ("de.txt", german), ("b.tsv", both)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    filed, piped = (run_verb(verb, "model=mini", *settings, f"output={out}", cwd=tmp_path) for out in ("a.tsv", "-"))
    assert (filed.returncode, piped.returncode) == (0, 0), filed.stderr + piped.stderr
    assert piped.stdout == (tmp_path / "a.tsv").read_text("utf-8")
    assert told in filed.stdout
    assert told in piped.stderr


@pytest.mark.parametrize(("verb", "output"), [("export", "-"), ("search", "no/a.tsv"), ("evaluate", "no/a.json")])
def test_an_output_that_cannot_be_written_is_refused_at_once(verb, output, tmp_path):
    (tmp_path / "no").write_text("a file")
    settings = {"export": (), "search": ["input=no", "queries=a"], "evaluate": ["tasks=[no]"]}[verb]
    done = run_verb(verb, f"model={'mini' if verb == 'export' else 'missing'}", *settings, f"output={output}", cwd=tmp_path)
    assert done.returncode == 2
    assert f"output={output}: " in done.stderr


def test_a_reader_that_has_enough_is_no_error(monkeypatch, capsys):
    monkeypatch.setattr("xswe.cli.run.run", Mock(side_effect=BrokenPipeError(errno.EPIPE, "Broken pipe")))
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["status", "output=x.npy"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["--version"], ["corpus", "list"]])
def test_what_nobody_reads_is_no_complaint_at_the_end(words):
    """Of Python itself, which writes at the end what it held back."""
    reading, writing = os.pipe()
    os.close(reading)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-m", "xswe", *words], stdout=writing, stderr=subprocess.PIPE, env=env)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture(scope="module")
def setting(tiny_teacher, tmp_path_factory):
    """Settings of a run small enough for a test, with the tiny random teacher's pieces as units."""
    folder = tmp_path_factory.mktemp("cli")
    return folder, [
        "teacher=custom",
        f"teacher.model={tiny_teacher}",
        "units=teacher",
        "corpus.limit=600",
        "pca.dim=16",
        "refine.max_steps=20",
        "refine.eval_steps=10",
        "refine.batch_size=64",
        "threads=1",
    ]


@pytest.fixture(scope="module")
def trained(setting):
    folder, settings = setting
    done = run_verb("train", "pair=en-ja", *settings, "output=run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_train_prints_a_table_and_leaves_a_model(trained):
    folder, done = trained
    for step in ("extraction", "PCA without ABTT", "PCA with ABTT", "refinement"):
        assert step in done.stdout
    model = xswe.load(folder / "run" / "model")
    assert model.dim == 16
    assert model.languages == ("en", "ja")
    results = json.loads((folder / "run" / "results.json").read_text())
    row = next(r for r in results["rows"] if r["note"] == "refinement" and r["metric"] == "accuracy")
    assert (row["subset"], row["n"], row["task"]) == ("en-ja", 60, "held-out")
    passes = results["report"]["extraction"]
    assert passes["sentences_encoded"] * 5 < passes["sentences_encoded_by_reference"]


def test_the_same_command_does_nothing_twice(trained, setting):
    folder, settings = setting
    before = {p: p.stat().st_mtime_ns for p in (folder / "run" / "stages").rglob("*") if p.is_file()}
    begun = (folder / "run" / "results.json").read_bytes()
    done = run_verb("train", "pair=en-ja", *settings, "output=run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {p: p.stat().st_mtime_ns for p in (folder / "run" / "stages").rglob("*") if p.is_file()} == before
    assert (folder / "run" / "results.json").read_bytes() == begun


def test_other_settings_redo_only_what_they_change(trained, setting):
    folder, settings = setting
    names = {p.name for p in (folder / "run" / "stages").iterdir()}
    done = run_verb("train", "pair=en-ja", *settings, "output=run", "refine.batch_size=32", cwd=folder)
    assert done.returncode == 0, done.stderr
    new = {p.name for p in (folder / "run" / "stages").iterdir()} - names
    assert [n.split("-")[0] for n in new] == ["refine"]
    run_verb("train", "pair=en-ja", *settings, "output=run", cwd=folder)


@pytest.mark.slow
def test_a_run_killed_anywhere_ends_with_the_same_bytes(trained, setting, warm_python):
    folder, settings = setting
    stages = folder / "killed" / "stages"
    for name in ("contexts-*", "pca-*"):
        words = ["train", "pair=en-ja", *settings, "output=killed"]
        assert kill_when(warm_python, words, folder, lambda name=name: any(stages.glob(name)))
    done = run_verb("train", "pair=en-ja", *settings, "output=killed", cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in ("model/model.safetensors", "model/tokenizer.json", "results.json"):
        assert (folder / "killed" / name).read_bytes() == (folder / "run" / name).read_bytes(), name


def test_encode_streams_lines_to_npy(trained, tmp_path):
    folder, _ = trained
    lines = ["A cat sleeps.", "", "猫が寝ている。"] * 3
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run_verb("encode", f"model={folder}/run/model", "input=a.txt", "output=a.npy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    vectors = np.load(tmp_path / "a.npy")
    np.testing.assert_array_equal(vectors, xswe.load(folder / "run" / "model").encode(lines))
    assert "9 lines" in done.stdout


def test_evaluate_on_a_file(trained, tmp_path, sample):
    folder, _ = trained
    rows = zip(sample["en"][:50], sample["ja"][:50], strict=True)
    (tmp_path / "own.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    done = run_verb("evaluate", f"model={folder}/run/model", "tasks=[own.tsv]", "output=eval.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "eval.json").read_text())["rows"]
    assert {row["metric"] for row in found} >= {"accuracy", "f1", "margin_accuracy"}
    assert all(row["n"] == 50 for row in found)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], "usage"),
        (["trian"], "the verbs are train"),
        (["train", "pair=en-fr"], "en (English), de (German), zh (Chinese), ja (Japanese)"),
        (["train", "recipe=papr"], "paper"),
        (["train", "pair=en-ja,en-de"], "-m runs them one after the other"),
        (["encode", "model=nowhere", "input=[日本.txt", "output=b.npy"], "input=[日本.txt"),
        (["corpus", "corpus.paths=[日本(1).tsv,b]"], "日本(1).tsv: no such file"),
        (["train", "refine.bach=3"], "refine.bach"),
        (["train", "refine.batch_size=many", "teacher=none", "units.vocabulary=corpus"], "refine.batch_size"),
        (["train", "teacher=none", "corpus=local"], "corpus.paths"),
        (["train", "teacher=none", "corpus=local", "corpus.paths=[none.tsv]"], "none.tsv: no such file"),
        (["train", "teacher=custom", "teacher.model=nowhere"], "teacher nowhere"),
        (["encode", "input=a", "output=b.npy"], "model"),
        (["encode", "--model=mini", "input=a"], "--model=mini: write model=…, without dashes"),
        (["mine", "--min-score", "1"], "--min-score: write min_score=…, without dashes"),
        (["filter", "a.tsv", "model=mini"], "a.tsv: a setting is key=value, as in output=a.tsv; python -m xswe filter"),
        (
            ["evaluate", "model=mini", "tasks=[a[1].tsv]"],
            "cannot parse a setting (no viable alternative at input '[a['): quote names",
        ),
        (["encode", "model=mini", "input=null", "output=b.npy"], "input is not set: give input=…"),
        (["evaluate", "model=mini", "output=null"], "output is not set: give output=…"),
        (["align", "model=mini", "source=a", "output=b"], "target is not set: give target=…"),
        (["encode", "model=nowhere", "input=a", "output=b.npy"], "no such folder"),
        (["evaluate", "model=nowhere"], "no such folder"),
    ],
)
def test_mistakes_get_one_line_that_names_the_cure_and_exit_status_2(arguments, found, tmp_path):
    done = run_verb(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert found in done.stderr
    assert "Traceback" not in done.stderr
    if arguments:
        lines = [line for line in done.stderr.splitlines() if line.startswith("xswe: ")]
        assert len(lines) == len(done.stderr.splitlines()) == 1, done.stderr
    assert not [p for p in tmp_path.iterdir() if p.name not in ("runs",)]


@pytest.mark.parametrize(
    "name",
    ["日本.txt", "a=b.txt", "a,b.txt", "a(1).txt", "it's.txt", 'say "x".txt', "back\\',", "~x", "#1{2}", " a ", "a\\,"],
)
def test_any_name_of_a_file_can_be_given(name):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parse = OverridesParser.create().parse_override
    assert parse(*quoted([f"input={name}"], {"input"})).value() == name.strip() if name != "a\\," else "a,"
    if not set(name) & set("'\",{"):
        assert parse(*quoted([f"input=[{name},3]"], {"input"})).value() == [name.strip(), "3"]


def test_a_number_or_a_home_folder_is_a_name_where_one_is_asked_for(monkeypatch):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    monkeypatch.setenv("HOME", "/home/a b")
    parse = OverridesParser.create().parse_override
    values = [("queries", "1984", "1984"), ("output", "1.50", "1.50"), ("input", "true", "true"), ("k", "10", 10)]
    values += [("input", "null", None), ("output", "~/a.tsv", "/home/a b/a.tsv"), ("input", "~x/~/", "~x/~/")]
    values += [("tasks", "[~/a.tsv,b~/]", ["/home/a b/a.tsv", "b~/"]), ("tasks", "[a.tsv,1]", ["a.tsv", "1"])]
    values += [("columns", "[0,1]", [0, 1])]
    for key, given, value in values:
        assert parse(*quoted([f"{key}={given}"], {"queries", "output", "input", "tasks"})).value() == value


@pytest.mark.parametrize(
    "argument",
    [
        "a=1",
        "a=",
        "a=null",
        "日本",
        "-日=(",
        "a=[b,c]",
        "a={b:1}",
        "a='b,c'",
        "a=${b}",
        "a=${b},日",
        "+a=b c",
        "~a",
        "-m",
        "a=range(1,3)",
    ],
)
def test_what_hydra_understands_stays_as_it_is(argument):
    assert quoted([argument]) == [argument]


def test_a_comma_separates_runs_only_where_there_are_several():
    assert quoted(["a=1,2"]) == ["a='1,2'"]
    assert quoted(["-m", "a=1,2", "b=日"]) == ["-m", "a=1,2", "b='日'"]
    assert quoted(["hydra.mode=MULTIRUN", "a=1,2"]) == ["hydra.mode=MULTIRUN", "a=1,2"]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"], ["train", "--cfg", "job"]])
def test_help_and_version(arguments, tmp_path):
    done = run_verb(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_process_of_its_own_does_all_this(tmp_path):
    command = [sys.executable, "-m", "xswe", "train", "--cfg", "job"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "XSWE_PROGRESS": "0"})
    assert (done.returncode, done.stdout) == (0, run_verb("train", "--cfg", "job", cwd=tmp_path).stdout), done.stderr


def test_nothing_is_written_beside_the_output(trained):
    folder, _ = trained
    assert {p.name for p in Path(folder).iterdir()} <= {"run", "killed"}
