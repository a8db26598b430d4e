"""The help of the verbs: every setting, with what the code says of it, and fast."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.cli.verbs import command, composed, run_verb
from xswe.cli.help import SHORT, Setting, settings, verb_help
from xswe.cli.main import main
from xswe.cli.settings import composed_defaults
from xswe.cli.verbs import VERBS
from xswe.io.signatures import MISSING
from xswe.text.readers import READERS
from xswe.text.sentences import is_document

NOT_FLAT = ("most_frequent", "segmenters", "paths")  # mappings that are values themselves


def named(values, section=""):
    """The dotted names of composed settings with their values."""
    for name, value in values.items():
        if isinstance(value, dict) and name not in NOT_FLAT:
            yield from named(value, f"{section}{name}.")
        else:
            yield section + name, value


def in_yaml(value):
    """A default as it is written on the command line."""
    return json.dumps(value, separators=(",", ":")).replace('"', "") if value != "" else "''"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_has_every_setting_with_its_default_and_no_other(verb):
    """What the generated table says is what is composed of the dataclasses, by Hydra where there are recipes."""
    needed = {name: "x" for name, value in composed_defaults(verb).items() if value == MISSING}
    values = dict(named(composed(verb, *(f"{name}={value}" for name, value in needed.items()))))
    told = {setting.name: setting for setting in settings(verb)}
    apart = {*VERBS[verb].groups, "execution"} - {"recipe"}
    known = {name for name in values if not name.startswith(("pair.", "distilled.", "execution.kind"))}
    assert set(told) - apart == known
    chosen = ("corpus.", "teacher.", "units.", "objective.")  # which a choice may set
    for name in known:
        setting = told[name]
        assert setting.meaning, name
        if name in needed:
            assert setting.default == "", name
        elif not name.startswith(chosen):
            assert setting.default == in_yaml(values[name]), name


def test_help_says_what_choices_there_are():
    told = {setting.name: setting for setting in settings("train")}
    assert told["recipe"].kind == "quickstart, paper, static"
    assert told["contexts.pick"].kind == "shortest, random, first"
    assert told["contexts.per_unit"].default == "10"
    assert "ccmatrix" in told["corpus"].kind
    short, full = verb_help("train"), verb_help("train", full=True)
    assert "refine.warmup" in full
    assert "refine.warmup" not in short
    assert all(f"  {name}=" in short for name in SHORT)


@pytest.mark.parametrize(
    ("verb", "setting"),
    [*((verb, "split") for verb in ("align", "encode", "mine", "phrases", "search")), ("split", "input")],
)
def test_help_names_the_documents_that_are_cut_unasked(verb, setting):
    (found,) = (one for one in settings(verb) if one.name == setting)
    assert " ".join(READERS) in found.meaning
    assert re.findall(r"\.\w+", found.meaning) == list(READERS)
    assert all(is_document(f"a{suffix}") for suffix in READERS)


def test_help_is_there_at_once():
    program = "import sys; from xswe.__main__ import main; main(['train', '--help'])\n"
    program += "assert not {'hydra', 'numba', 'tokenizers', 'torch', 'yaml'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Hydra" not in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trian"], "did you mean train?"),
        (["train", "refine.lerning_rate=1"], "did you mean refine.learning_rate?"),
        (["train", "techer=mini"], "did you mean teacher?"),
        (["mine", "modl=mini"], "did you mean model?"),
        (["mine", "source=a"], "model, output are not set: give model=… output=…"),
        (["encode", "model=mini", "input=a"], "output is not set: give output="),
    ],
)
def test_mistyped_and_missing_settings_are_told_in_plain_words(words, said, tmp_path):
    done = run_verb(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("xswe: ")


def test_what_is_printed_is_utf8_whatever_the_code_page(tmp_path, monkeypatch):
    (tmp_path / "ja.txt").write_text("猫が寝ている。\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
    assert main(["search", "model=mini", "input=ja.txt", "queries=cat", "mark=false"]) == 0
    sys.stdout.flush()
    assert "猫が寝ている。" in sys.stdout.buffer.getvalue().decode("utf-8")


def test_help_says_where_it_leaves_settings_out():
    for verb in VERBS:
        every, short, full = settings(verb), verb_help(verb), verb_help(verb, True)
        left = [one.name for one in every if f"\n  {one.name}=" not in short]
        assert (f"--help-all   all {len(every)} settings" in short) == bool(left)
        assert bool(left) == (verb == "train")
        assert all(f"\n  {one.name}=" in full for one in every)
        assert "--help-all" not in full
        assert all(len(line) <= 100 or " " not in line.strip() for line in full.split("defaults:")[1].splitlines())


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_are_of_settings_that_the_verb_takes(verb, monkeypatch):
    """All that comes before the first file is opened."""
    given = []
    monkeypatch.setattr("xswe.cli.run.function", lambda call: lambda **arguments: given.append(call))
    monkeypatch.setattr("xswe.report.answers.answer", lambda arguments: given.append("answer"))
    monkeypatch.setattr("xswe.cli.run._summary", lambda *_: "")
    for example in VERBS[verb].examples:
        words = [word if "=" in word else f"action={word}" for word in shlex.split(example)]
        command(verb, composed(verb, *words))
    assert len(given) == len(VERBS[verb].examples) > 1


def test_a_setting_is_told_in_columns():
    meaning = "what it is, at some length, so that the line must be broken before its end"
    assert Setting("a", "int", "1", meaning).lines() == [
        "  a=1" + " " * 29 + "what it is, at some length, so that the line must be broken before",
        " " * 34 + "its end (int)",
    ]
    long = Setting("a" * 31, "", "", "what it is").lines()
    assert long == ["  " + "a" * 31 + "=", " " * 34 + "what it is [must be given]"]
    assert Setting("a" * 30, "", "", "x").lines() == ["  " + "a" * 30 + "= x [must be given]"]
    assert Setting("a", "", "1", "").lines() == ["  a=1".ljust(34)]
