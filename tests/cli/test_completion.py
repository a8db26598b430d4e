"""Completion in the shells themselves, and what they are offered."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xswe.cli.complete import SCRIPTS, _split, completed
from xswe.cli.help import settings
from xswe.cli.main import main
from xswe.cli.verbs import VERBS
from xswe.text.languages import LANGUAGES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A function that runs a program of a shell where ``xswe`` is a command and files lie that may be offered."""
    command = tmp_path / "bin" / "xswe"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m xswe "$@"\n', "utf-8")
    command.chmod(0o755)
    folder = tmp_path / "work"
    (folder / "novels").mkdir(parents=True)
    for name in ("news.en.txt", "news.de.txt", "two words.txt"):
        (folder / name).write_text("a\n", "utf-8")
    env = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}

    def run(name: str, program: str) -> list[str]:
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
        plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
        done = subprocess.run(
            [name, *plain, "-c", program], cwd=folder, env=env, capture_output=True, text=True, timeout=120
        )
        return done.stdout.splitlines()

    monkeypatch.chdir(folder)
    return run


BASH = """eval "$(xswe completion bash)"
COMP_LINE='{line}' COMP_POINT={point}
_xswe xswe
printf '%s\\n' "${{COMPREPLY[@]}}" """


def test_bash_completes_a_line(shell):
    def typed(line: str) -> list[str]:
        return shell("bash", BASH.format(line=line, point=len(line)))

    assert typed("xswe min") == ["mine "]
    assert sorted(typed("xswe dedup thr")) == ["threads=", "threshold="]
    assert typed("xswe mine model=min") == ["mini "]  # bash puts it behind the equals sign
    assert sorted(typed("xswe mine source=news.")) == ["news.de.txt ", "news.en.txt "]
    assert typed("xswe mine source=two") == ["two\\ words.txt "]
    assert typed("xswe mine source=nov") == ["novels/"]
    assert typed('xswe mine source="two w') == ["two words.txt"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("xswe lexi", "xswe lexicon ", marks=pytest.mark.slow),
        pytest.param("xswe mine thres", "xswe mine threshold=", marks=pytest.mark.slow),
        ("xswe train recipe=st", "xswe train recipe=static "),
        ("xswe mine source=tw", "xswe mine source=two\\ words.txt "),
        pytest.param("xswe mine source=nov", "xswe mine source=novels/", marks=pytest.mark.slow),
    ],
)
def test_zsh_completes_a_line(shell, line, expected):
    assert shell("zsh", _zsh(line))[-1:] == [expected]


def _zsh(line: str) -> str:
    """Return a program that types a line and TAB into an interactive zsh, and prints what the line then is."""
    return rf"""zmodload zsh/zpty
zpty z 'TERM=dumb zsh -f -i'
zpty -w z 'autoload -Uz compinit; compinit -D -u; eval "$(xswe completion zsh)"'
zpty -w z 'shown() {{ print -rn -- "<<$BUFFER>>" > "$PWD/shown"; zle kill-buffer; zle accept-line }}'
zpty -w z 'zle -N shown; bindkey "^X" shown'
zpty -w z 'print -r -- RE""ADY'
zpty -r -m z got '*READY*'
zpty -w -n z $'{line}\t\x18'
until [[ -s shown ]]; do sleep 0.05; done
print -r -- "${{${{"$(<shown)"#<<}}%>>}}"
zpty -d z"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("xswe lexi", ["lexicon"]),
        ("xswe dedup thr", ["threads=", "threshold="]),
        ("xswe train recipe=st", ["recipe=static"]),
        ("xswe mine source=news.", ["source=news.de.txt", "source=news.en.txt"]),
        ("xswe mine source=nov", ["source=novels/"]),
    ],
)
def test_fish_completes_a_line(shell, line, expected):
    found = shell("fish", f"xswe completion fish | source; complete -C '{line}'")
    assert sorted(one.partition("\t")[0] for one in found) == expected


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["de"], ["dedup "]),
        (["help", "li"], ["link "]),
        (["completion", ""], [f"{name} " for name in SCRIPTS]),
        (["dedup", "near=0.5", "dig"], ["digits="]),
        (["dedup", "digits=3", "dig"], []),
        (["train", "refine.max_st"], ["refine.max_steps="]),
        (["train", "refi"], ["refine."]),
        (["train", "pair=en-"], [f"pair=en-{code} " for code in LANGUAGES if code != "en"]),
        (["train", "corpus/clean="], ["corpus/clean=none ", "corpus/clean=web "]),
        (["train", "corpus=sam"], ["corpus=sample "]),
        (["encode", "execution=r"], ["execution=ray "]),
        (["mine", "mode=neg"], ["mode=negatives "]),
        (["mine", "neighbors.met"], ["neighbors.method="]),
        (["mine", "neighbors.method=cl"], ["neighbors.method=clusters "]),
        (["corpus", "li"], ["list "]),
        (["mine", "--help"], ["--help ", "--help-all "]),
        (["nothing", "a"], []),
    ],
)
def test_what_is_offered(words, offered):
    assert completed("zsh", words) == offered


@pytest.mark.parametrize(
    ("line", "words", "is_quoted"),
    [
        ("", [""], False),
        ("xswe mine ", ["xswe", "mine", ""], False),
        ("xswe  mine", ["xswe", "mine"], False),
        ("a 'b c", ["a", "b c"], True),
        ("a 'b c' d", ["a", "b c", "d"], False),
        ("a \"b'c", ["a", "b'c"], True),
        ("a b\\ c", ["a", "b c"], False),
        ("a b\\'c", ["a", "b'c"], False),
        ("a 'b\\c'", ["a", "b\\c"], False),
    ],
)
def test_a_line_is_split_as_bash_does(line, words, is_quoted):
    assert _split(line) == (words, is_quoted)


def test_each_shell_is_given_words_in_its_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("two words.txt", ".hidden", "tw(1).tsv"):
        (tmp_path / name).touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e.txt").touch()
    assert completed("bash", ["xswe mine source=tw"]) == ["tw\\(1\\).tsv ", "two\\ words.txt "]
    assert completed("bash", ["xswe mine source='tw"]) == ["tw(1).tsv", "two words.txt"]
    assert completed("bash", ["xswe mine source=d"]) == ["d/"]
    assert completed("bash", ["xswe mine source=d/"]) == ["d/e.txt "]
    assert completed("bash", ["xswe mine source=nowhere/x"]) == []
    assert completed("bash", ["xswe mine source=.h"]) == [".hidden "]
    assert completed("zsh", ["mine", "source="]) == ["source=d/", "source=tw(1).tsv ", "source=two words.txt "]
    assert completed("fish", ["ded"]) == [f"dedup\t{VERBS['dedup'].what}"]
    assert completed("fish", ["help", "ded"]) == ["dedup\t"]
    (told,) = completed("fish", ["dedup", "dig"])
    assert told == "digits=\t" + next(one.meaning for one in settings("dedup") if one.name == "digits")
    assert completed("fish", ["train", "refi"]) == ["refine.\tsettings of refine"]
    assert "list " not in completed("zsh", ["corpus", "list", "li"])
    assert completed("zsh", ["train", "-"]) == [
        *("--help ", "--help-all ", "--cfg ", "--multirun ", "--config-dir ", "--info ")
    ]
    assert completed("zsh", ["nothing", "-"]) == []
    assert completed("zsh", ["help", "mine", "de"]) == []
    assert completed("zsh", ["train", "pair=en-de-"]) == [
        f"pair=en-de-{code} " for code in LANGUAGES if code not in ("en", "de")
    ]


def test_lists_are_completed_within_their_brackets(tmp_path, monkeypatch):
    (tmp_path / "b.tsv").write_text("a\tb\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert completed("zsh", ["evaluate", "tasks=[a,b"]) == ["tasks=[a,b.tsv"]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_settings_offered(verb):
    assert all(re.fullmatch(r"[\w./]+[=.]|\w+ ", word) for word in completed("zsh", [verb, ""]))
    assert "output=" in completed("zsh", [verb, ""]) or verb in ("serve",)


def test_a_shell_that_is_not_known_is_told_which_are(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "choose one of bash, zsh, fish" in capsys.readouterr().err
    assert main(["completion", "bash"]) == 0
    assert "complete -o nospace -F _xswe xswe" in capsys.readouterr().out


def test_what_is_offered_is_there_at_once():
    """Nothing heavy is imported, and the time is of the order of starting Python."""
    program = "import sys; from xswe.cli.main import main; main(['--complete', 'zsh', 'train', 'refine.'])\n"
    program += "assert not {'hydra', 'numba', 'numpy', 'tokenizers', 'torch', 'yaml'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "refine.max_steps=" in done.stdout

    def seconds(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([sys.executable, "-c", code], capture_output=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    bare, asked = (min(seconds(code) for _ in range(3)) for code in ("pass", program))
    assert asked < 20 * max(bare, 0.01)  # some kernels count time in ticks, of which Python's start may take none
