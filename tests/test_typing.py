"""What the README, the pages and the examples write passes strict type checkers, and mistakes do not."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "xswe"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# What ``mypy --strict`` asks of a module, but for classes derived from those of libraries without types.
STRICT = """# mypy: disallow-any-generics, disallow-untyped-calls, disallow-untyped-defs, disallow-incomplete-defs,\
 disallow-untyped-decorators, warn-unused-ignores, warn-return-any, strict-equality, extra-checks
"""
# What a reader may write by mistake, and what mypy says of it.
MISTAKES = {
    "xswe.lod('mini')": "attr-defined",
    "xswe.MinedPairs": "attr-defined",
    "xswe.types.MindPairs": "attr-defined",
    "xswe.mine(model, ['a'], ['b'], thresold=1.0)": "call-arg",
    "xswe.mine(model, ['a'], ['b'], score='ration')": "arg-type",
    "xswe.mine(model, ['a'], ['b'], filters={'number': True})": "arg-type",
    "xswe.mine(['a'], ['b'])": "arg-type",
    "xswe.dedup(model, ['a'], nearr=None)": "call-arg",
    "xswe.train('sample', ['en', 'de'], refine={'max_step': 5})": "arg-type",
    "model.encode(5)": "arg-type",
    "model.neighbors('car')": "attr-defined",
    "xswe.filter(model, 'a.tsv', trheshold=0.5)": "call-arg",
    "def untyped(text): return text": "no-untyped-def",
}


def programs() -> Iterator[tuple[str, str]]:
    """Each program that a reader finds: what it is called, and its code."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, code in enumerate(_BLOCK.findall(page.read_text("utf-8")), 1):
            yield f"{page.stem}_{number}", code
    for script in sorted((ROOT / "examples").glob("*.py")):
        yield script.stem, script.read_text("utf-8")
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
        yield f"{notebook.stem}_notebook", "\n".join("".join(cell["source"]) for cell in cells)


def write_programs(folder: Path) -> None:
    """Write the programs as modules that mypy checks as strictly as it can."""
    for name, code in programs():
        (folder / f"{name.replace('-', '_')}.py").write_text(f"{STRICT}{code}", "utf-8")


def checked(command: list[str], folder: Path) -> list[str]:
    """The errors that a type checker finds, run in a folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if "error:" in line]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of all programs and of the mistakes.

    It has the settings and the cache of ``make lint``, which has checked the library: a minute of a processor less.
    """
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("programs")
    write_programs(folder)
    assert len(list(folder.iterdir())) > 30
    (folder / "mistakes.py").write_text(STRICT + "\n".join(["import xswe", 'model = xswe.load("mini")', *MISTAKES]))
    return checked([sys.executable, "-m", "mypy", "--no-error-summary", str(folder)], ROOT)


def test_the_generated_stubs_are_those_of_the_code(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    for name, text in importlib.import_module("stubs").stubs().items():
        assert (LIBRARY / name).read_text("utf-8") == text, "python tools/stubs.py writes it"


def test_the_library_says_that_it_is_typed():
    assert (LIBRARY / "py.typed").is_file()


@pytest.mark.slow
def test_programs_of_the_pages_pass_mypy(found):
    assert not [line for line in found if "/mistakes.py:" not in line]


@pytest.mark.slow
def test_programs_of_the_pages_pass_pyright(tmp_path):
    if not (shutil.which("pyright") and find_spec("pyright")):
        pytest.skip("pyright is not installed")
    write_programs(tmp_path)
    config = {"extraPaths": [str(ROOT)], "reportMissingImports": False, "reportMissingModuleSource": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    assert not checked(["pyright", "--pythonpath", sys.executable], tmp_path)


@pytest.mark.slow
def test_mypy_finds_mistakes(found):
    kinds: dict[int, str] = {}
    for line in found:
        if told := re.search(r"mistakes\.py:(\d+): error: .*\[([\w-]+)\]", line):
            kinds.setdefault(int(told[1]), told[2])
    assert {mistake: kinds.get(number, "") for number, mistake in enumerate(MISTAKES, 4)} == MISTAKES
