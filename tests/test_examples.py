"""Notebooks and scripts run from top to bottom, by the public API alone, and print what docs/tutorials/stories.md shows.

``python -m tests.test_examples`` puts what the scripts print into the page, and the outputs into the notebooks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import xswe

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
STORIES = ROOT / "docs" / "tutorials" / "stories.md"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
_DEEP = re.compile(r"from xswe|import xswe\.|xswe\.(?!types\.)[a-z]\w*\.")
_ROOMS = {f"from {module} import {name}" for module, name in xswe._ELSEWHERE.values()}  # where rarer names are


def is_deep(code: str) -> bool:
    """Return True if code imports what is neither at the top nor named as being in its room."""
    return _DEEP.search("\n".join(line for line in code.splitlines() if line not in _ROOMS)) is not None


def cells(notebook: Path) -> list[str]:
    """The code of a notebook."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


def executed(arguments: list[str], folder: Path, python: str | Path = sys.executable) -> str:
    """What a program prints; it works in a folder of its own."""
    env = {**os.environ, "MPLBACKEND": "agg", "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH", "")]))
    done = subprocess.run([python, *arguments], cwd=folder, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(script: Path) -> re.Pattern[str]:
    """What finds a script's output in the page."""
    return re.compile(rf"(<!-- {script.name} -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def alike(text: str) -> str:
    """A text without what differs between machines: figures and marks of what was trained, and the blanks around them."""
    return re.sub(r"[\s\-*=]+", " ", re.sub(r"\d[\d.,]*", "#", text))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are not forked here")
def test_a_warm_python_is_as_any_other(warm_python, tmp_path):
    program = "import os, sys; print(sys.argv, os.getcwd(), os.environ['A'], sys.stdin.read(), len(sys.modules) > 1000)"
    programs = {
        program: 0,
        "import sys; sys.exit(3)": 3,
        "import sys; sys.exit('no')": 1,
        "1 / 0": 1,
        "import os; os.abort()": 134,
    }
    for code, status in programs.items():
        command, env = [warm_python / "python", "-c", code, "a", "b"], {**os.environ, "A": "é"}
        done = subprocess.run(command, cwd=tmp_path, env=env, input="in", capture_output=True, encoding="utf-8")
        assert done.returncode == status
        assert done.stdout == ("" if status else f"['-c', 'a', 'b'] {tmp_path} é in True\n")
        assert ("no\n" in done.stderr) == ("'no'" in code)
        assert ("ZeroDivisionError" in done.stderr) == ("/" in code)


# What a notebook prints somewhere, and the files that it leaves.
NOTEBOOKS = {
    "tour": ("Katze", ("scores.md", "cosines.png")),
    "vectors": ("1.00  The dog bites the man.  The man bites the dog.", ()),
    "bitext": ("low similarity", ()),
    "papers": ("of the nearest neighbours that words had before", ("norms.png", "map.png")),
}


# Runs the code of a notebook, and prints the outputs of each cell as a notebook has them.
_RUN = """
import ast, base64, contextlib, io, json, sys

scope, results = {"__name__": "__main__"}, []
for number, cell in enumerate(json.loads(sys.argv[1]), 1):
    *first, last = ast.parse(cell).body
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(first, []), "cell", "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), scope)
    outputs = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    plt = sys.modules.get("matplotlib.pyplot")
    numbers = plt.get_fignums() if plt else []
    for figure in map(plt.figure, numbers) if plt else ():
        file = io.BytesIO()
        figure.savefig(file, dpi=50, bbox_inches="tight", metadata={"Software": None})
        data = {"image/png": base64.b64encode(file.getvalue()).decode()}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    if numbers:
        plt.close("all")
    elif value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        result = {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        outputs.append(result)
    results.append(outputs)
print(json.dumps(results))
"""


def outputs_of(notebook: Path, folder: Path, python: str | Path = sys.executable) -> list[list[dict]]:
    """The outputs of a notebook's cells, run in a folder."""
    return json.loads(executed(["-c", _RUN, json.dumps(cells(notebook))], folder, python))


def texts(outputs: list[list[dict]]) -> list[str]:
    """The text of each cell's outputs."""
    return [
        "".join(line for one in cell for line in one.get("text", one.get("data", {}).get("text/plain", [])))
        for cell in outputs
    ]


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ is not in this installation")
def test_no_example_is_long_or_imports_anything_deep():
    for notebook in NOTEBOOKS:
        assert not is_deep("\n".join(cells(EXAMPLES / f"{notebook}.ipynb"))), notebook
        assert (EXAMPLES / f"{notebook}.ipynb").stat().st_size < 80_000
    for script in SCRIPTS:
        code = script.read_text(encoding="utf-8")
        assert len(code.splitlines()) < 40, script.name
        assert not is_deep(code), script.name
        assert block(script).search(STORIES.read_text(encoding="utf-8")), f"{STORIES.name} has no block for {script.name}"


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_holds_its_outputs(notebook, tmp_path, warm_python):
    said, files = NOTEBOOKS[notebook.stem]
    for library in ("matplotlib", "scipy", "torch") if files else ():
        pytest.importorskip(library)
    kept = [cell["outputs"] for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    found = outputs_of(notebook, tmp_path, warm_python / "python")
    assert said in "\n".join(texts(found))
    assert list(map(alike, texts(found))) == list(map(alike, texts(kept))), "python -m tests.test_examples puts them there"
    assert all((tmp_path / name).stat().st_size > 50 for name in files)


@pytest.mark.slow
def test_the_papers_analyses_run_on_a_run_folder(tmp_path, monkeypatch, warm_python):
    for library in ("matplotlib", "sklearn"):
        pytest.importorskip(library)
    shutil.copytree(ROOT / "corpora" / "sample", tmp_path / "corpora" / "sample")
    shutil.copytree(ROOT / "xswe" / "pretrained" / "mini", tmp_path / "run" / "model")
    monkeypatch.setenv("XSWE_RUN", "run")
    some = cells(EXAMPLES / "papers.ipynb")[:4]  # what follows takes the steps as they come
    said = executed(["-c", "\n".join(some)], tmp_path, warm_python / "python")
    assert "['the model'] {'en': 400, 'de': 400, 'zh': 400, 'ja': 400}" in said
    assert re.search(r"the model +silhouette +-?0\.\d+ +nearest +9\d", said)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_what_the_page_shows(script, tmp_path, warm_python):
    code = script.read_text(encoding="utf-8")
    shown = block(script).search(STORIES.read_text(encoding="utf-8"))
    printed = executed([str(script)], tmp_path, warm_python / "python")
    if "xswe.train" in code:
        assert alike(printed) == alike(shown[2])
    else:
        assert printed == shown[2]


def fill() -> None:
    """Put what the scripts print into the page, and outputs into the notebooks."""
    page = STORIES.read_text(encoding="utf-8")
    for script in SCRIPTS:
        with tempfile.TemporaryDirectory() as folder:
            printed = executed([str(script)], Path(folder))
        page = block(script).sub(lambda found, text=printed: f"{found[1]}{text}{found[3]}", page)
    STORIES.write_text(page, encoding="utf-8")
    for path in EXAMPLES.glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with tempfile.TemporaryDirectory() as folder:
            outputs = outputs_of(path, Path(folder))
        for number, (cell, own) in enumerate(zip(code, outputs, strict=True), 1):
            cell |= {"execution_count": number, "outputs": own}
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    fill()
