"""The help of the verbs: every setting, with what the code says of it, and fast."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import subprocess
import sys

import pytest

from tests.commands.test_configuration import composed
from tests.commands.verbs import run_verb
from xswe.__main__ import VERBS
from xswe.commands import help as help_module
from xswe.commands.config import is_cut
from xswe.commands.help import EXAMPLES, SHORT, settings, verb_help
from xswe.io.settings import build
from xswe.text.readers import READERS


def named(values, section=""):
    """The dotted names of a configuration; mappings that are values themselves count as one."""
    own = ("most_frequent", "segmenters", "paths")
    for name, value in values.items():
        if isinstance(value, dict) and name not in own:
            yield from named(value, f"{section}{name}.")
        else:
            yield section + name


@pytest.mark.parametrize("verb", ["train", "corpus", "mine", "encode", "evaluate", "search"])
def test_every_setting_is_in_the_help_and_no_other(verb):
    must = {"mine": ["model=m", "output=o"], "encode": ["model=m", "input=a", "output=b"], "evaluate": ["model=m"]}.get(
        verb, []
    )
    choices = ("pair.", "recipe.", "distilled.", "execution.kind")
    known = {name for name in named(composed(verb, *must)) if not name.startswith(choices)}
    told = {setting.name for setting in settings(verb)} - {*help_module._GROUPS.get(verb, {}), "execution"}
    assert told == known


@pytest.mark.parametrize("section", list(help_module._SECTIONS))
def test_what_the_help_says_is_what_the_code_says(section):
    module, _, name = help_module._SECTIONS[section].partition(":")
    cls = getattr(importlib.import_module(f"xswe.{module[:-3].replace('/', '.')}"), name)
    told = {setting.name.removeprefix(f"{section}."): setting for setting in help_module._of_class(section)}
    assert set(told) == {field.name for field in dataclasses.fields(cls)} - {"seed", "threads", "clean"}
    usual = {name: value for (own, name), value in help_module._usual().items() if own == section}
    for name, setting in told.items():
        value = getattr(build(cls, {}, section), name)
        plain = list(value) if isinstance(value, tuple) else value
        assert setting.default == usual.get(name, help_module._plain(plain)), name
        assert setting.meaning, name
        assert setting.kind in ("whole number", "number", "text", "list", "mapping", "") or ", " in setting.kind, setting


def test_help_says_what_choices_there_are():
    told = {setting.name: setting for setting in settings("train")}
    assert told["recipe"].kind == "quickstart, static, paper"
    assert told["contexts.pick"].kind == "shortest, random, first"
    assert told["contexts.per_unit"].default == "10"
    assert "ccmatrix" in told["corpus"].kind
    short, full = verb_help("train", "x"), verb_help("train", "x", full=True)
    assert "refine.warmup" in full
    assert "refine.warmup" not in short
    assert all(f"  {name}=" in short for name in SHORT)
    assert set(EXAMPLES) == set(VERBS)


@pytest.mark.parametrize(
    ("verb", "setting"),
    [*((verb, "split") for verb in ("align", "encode", "mine", "phrases", "search")), ("split", "input")],
)
def test_help_names_the_documents_that_are_cut_unasked(verb, setting):
    (found,) = (one for one in settings(verb) if one.name == setting)
    assert " ".join(READERS) in found.meaning
    assert re.findall(r"\.\w+", found.meaning) == list(READERS)
    assert all(is_cut(f"a{suffix}", None) for suffix in READERS)


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
        (["mine", "source=a"], "model is not set: give model="),
        (["encode", "model=mini", "input=a"], "output is not set: give output="),
    ],
)
def test_mistyped_and_missing_settings_are_told_in_plain_words(words, said, tmp_path):
    done = run_verb(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("xswe: ")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("xswe de", ["dedup"]),
        ("xswe ", list(VERBS)),
        ("xswe dedup thr", ["threads=", "threshold="]),
        ("xswe dedup near=0.5 dig", ["digits="]),
        ("xswe train recipe=st", ["recipe=static"]),
        ("xswe train refine.max_st", ["refine.max_steps="]),
        ("xswe nothing a", []),
    ],
)
def test_a_shell_completes_verbs_and_settings(line, offered, tmp_path):
    done = run_verb("-sc", "query=bash", cwd=tmp_path, COMP_LINE=line, COMP_POINT=str(len(line)))
    found = done.stdout.split()  # groups of a verb that ran in this process before are among them
    assert (done.returncode, done.stderr, bool(found)) == (0, "", bool(offered))
    assert set(offered) <= set(found)
    assert all(word.startswith(line.split(" ")[-1]) for word in found)


def test_a_shell_is_told_how_to_complete(tmp_path):
    done = run_verb("-sc", "install=bash", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("-F hydra_bash_completion xswe")


def test_what_is_printed_is_utf8_whatever_the_code_page(tmp_path):
    (tmp_path / "ja.txt").write_text("猫が寝ている。\n", encoding="utf-8")
    command = [sys.executable, "-m", "xswe", "search", "model=mini", "documents=ja.txt", "queries=cat", "mark=false"]
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "XSWE_PROGRESS": "0"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "猫が寝ている。" in done.stdout.decode("utf-8")
