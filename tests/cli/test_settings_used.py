"""No verb ignores a setting that it takes: each is looked at, and ``on_error`` does what it says."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import xswe
from tests.cli.verbs import run_verb
from tests.conftest import eval_script
from xswe.cli import run
from xswe.cli.help import settings
from xswe.cli.settings import function
from xswe.cli.verbs import VERBS
from xswe.io.lines import MAX_LINE_BYTES
from xswe.io.signatures import config_class

script = eval_script("experiments.local_faults")
READ = {"input", "source", "target", "corpus.paths"}  # settings that name files of texts
FILES = {path: path.read_text("utf-8") for path in Path(xswe.__file__).parent.rglob("*.py")}
DAMAGED = {"not UTF-8", "line too long", "damaged"}  # the reasons under which the line is counted


@cache
def looked_at(path: Path) -> frozenset[str]:
    """The attributes, variables and texts of a module, but for docstrings and what its classes check of themselves."""

    def names(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Attribute | ast.Name) and isinstance(child.ctx, ast.Load):
                yield child.attr if isinstance(child, ast.Attribute) else child.id
            elif isinstance(child, ast.Constant):
                yield str(child.value)
            if not (isinstance(child, ast.FunctionDef) and child.name == "__post_init__"):
                yield from names(child)

    return frozenset(names(ast.parse(FILES[path])))


MODES = [(verb, mode) for verb, spec in VERBS.items() for mode in spec.calls]


@pytest.mark.parametrize(("verb", "mode"), MODES)
def test_two_aligned_files_are_the_input_where_a_function_says_so(verb, mode):
    (told,) = re.findall(r"\n        input: ((?:.|\n         )*)", function(VERBS[verb].calls[mode]).__doc__ or "") or [""]
    assert ("two line-aligned files" in told) == (mode in VERBS[verb].bitext)


@pytest.mark.parametrize(("verb", "mode"), MODES)
def test_a_verb_looks_at_all_of_its_settings(verb, mode):
    """Its function at its arguments, and what names the class of its settings at their fields."""
    call = function(VERBS[verb].calls[mode])
    code = call.__code__
    given, used = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], looked_at(Path(code.co_filename))
    ignored = {*given} - used
    for cls in (config_class(call) or object).__mro__:
        if dataclasses.is_dataclass(cls):
            used = frozenset().union(*(looked_at(path) for path, text in FILES.items() if cls.__name__ in text))
            ignored |= {name for name in vars(cls).get("__annotations__", ()) if name not in used}
    assert not ignored


def damaged() -> Iterator[tuple[str, str]]:
    """The first command of each verb and mode with on_error, and each file that it reads; ``train`` reads as ``corpus``."""
    seen = set()
    for name, case in script.CASES.items():
        verb, *words = case.words.split()
        key = verb, *(word for word in words if word.startswith("mode="))
        if key not in seen and verb != "train" and any(one.name.endswith("on_error") for one in settings(verb)):
            seen.add(key)
            read = [value for word, _, value in (word.partition("=") for word in words) if word in READ]
            yield from ((name, file) for value in read for file in value.strip("[]").split(","))


def counted(result: Any) -> int:
    """How many damaged lines a result counts by their reason, wherever it does so."""
    if isinstance(result, Mapping):
        return sum(result.get(reason, 0) for reason in DAMAGED)
    fields = [getattr(result, one.name) for one in dataclasses.fields(result)] if dataclasses.is_dataclass(result) else []
    return max(map(counted, [*fields, *filter(None, [getattr(result, "counts", None)])]), default=0)


@pytest.mark.parametrize(("name", "file"), [*damaged()])
def test_a_damaged_line_is_named_or_left_out_and_counted(name, file, tmp_path, monkeypatch):
    script.write_inputs(tmp_path)
    lines = (tmp_path / file).read_bytes().splitlines(keepends=True)
    (tmp_path / file).write_bytes(b"".join([*lines[:2], b"a \xff cat\tx\n", *lines[2:], b"a " * MAX_LINE_BYTES + b"\tx\n"]))
    words, results, summary = script.CASES[name].words.split(), [], run._summary
    monkeypatch.setattr(run, "_summary", lambda *given: results.append(given[2]) or summary(*given))
    (setting,) = (one.name for one in settings(words[0]) if one.name.endswith("on_error"))
    done = run_verb(*words, f"{setting}=raise", cwd=tmp_path)
    assert (done.returncode, results) == (2, [])
    assert re.search(rf"^xswe: (.*/)?{re.escape(file)}:3: not UTF-8", done.stderr, re.MULTILINE), done.stderr
    done = run_verb(*words, f"{setting}=skip", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if words[0] == "import":  # whose result is a model
        assert "; left out: 1 not UTF-8, 1 line too long" in done.stderr
        return
    assert counted(results[0]) == 2
    each = "|".join(DAMAGED)
    said = re.findall(rf"\b(\d+) (?:{each})|(?:{each}) +(\d+) ", done.stdout)
    assert sum(int(before or after) for before, after in said) == 2, done.stdout
