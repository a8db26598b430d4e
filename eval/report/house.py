"""What the library's structure amounts to, before and after: files, lines, circles, long functions, files on each way.

    python -m eval.report.house [before=CHECKOUT] [output=eval/results/house] [ways=1] [suite=0]

Writes ``house.json`` and ``house.md``. ``before`` is a checkout of an earlier version (``git worktree add FOLDER 4bcfff5``
for v0.1), measured by the same code, beside what was counted of v0.1 by hand; without it the figures of the last run stay.
``ways=1`` follows a text, a pair, a mined pair and a setting: the verbs run under a trace, and the files are counted in
which a function is called; what is called only as a module is imported does not count, nor is compiled code seen, in
either; nothing is compiled before. The way of a setting ends where the verb's function is called with it.
``suite=1`` runs the tests, too: seconds of a processor. Four minutes without it.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from eval.settings import ROOT, run_script
from xswe.io.results import markdown

DEFAULTS: dict[str, Any] = {"before": "", "output": "eval/results/house", "ways": 1, "suite": 0}
# Counted by hand when v0.1 was reviewed; what was not counted then is missing.
REVIEWED = {"files": 187, "lines": 24_978, "docstrings": 5_010, "imports": 2_058, "circles": 5, "internal imports": 891}
REVIEWED |= {"files of a text": 34, "files of a training pair": 40, "files of a mined pair": 25}
SAMPLE = "corpora/sample/sentences.tsv"
_IMPORT = "import time; t = time.process_time(); import xswe; print(time.process_time() - t)"
_WAY = """
import os, sys, threading
import numba, xswe.__main__
library = os.path.dirname(xswe.__file__)
end, seen, ended = sys.argv.pop(1), set(), []
def note(frame, event, argument):
    name, above = frame.f_code.co_filename, frame
    if frame.f_code.co_name == end:
        ended.append(name)
    if name.startswith(library) and name not in seen and not ended:
        while above and not (above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(library)):
            above = above.f_back
        if above is None:
            seen.add(name)
threading.settrace(note); sys.settrace(note)
status = xswe.__main__.main(sys.argv[1:])
sys.settrace(None)
print("\\n%d %d" % (status, len(seen)))
"""


def modules(checkout: Path) -> dict[str, ast.Module]:
    """Return the library's modules by their dotted names."""
    found = {}
    for path in sorted((checkout / "xswe").rglob("*.py")):
        name = ".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def _docstrings(tree: ast.Module) -> int:
    lines = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            lines += node.body[0].end_lineno - node.body[0].lineno + 1  # type: ignore[operator]
    return lines


def _imported(tree: ast.Module, known: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the modules of the library that a module imports, within functions too, and how many lines it takes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                inside = [f"{node.module}.{name}" for name in names]
                names = [name if name in known else str(node.module) for name in inside]
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield from ((name, lines) for name in dict.fromkeys(names))


def imports_of(found: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return which others of some modules each of them imports, within functions too."""
    known = set(found)
    return {
        name: {other for other, _ in _imported(tree, known) if other in known} - {name, "xswe"}
        for name, tree in found.items()
    }


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the groups of modules that import each other."""

    def reached(start: str) -> frozenset[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            new = edges[todo.pop()] - seen
            seen |= new
            todo += new
        return frozenset(seen)

    every = {name: reached(name) for name in edges}
    return {frozenset(other for other in every[name] if name in every[other]) for name in every if name in every[name]}


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any("njit" in ast.unparse(entry) or "intrinsic" in ast.unparse(entry) for entry in node.decorator_list)


def counted(checkout: Path) -> dict[str, float]:
    """Count what can be read off the sources."""
    found = modules(checkout)
    texts = [path.read_text(encoding="utf-8") for path in (checkout / "xswe").rglob("*.py")]
    lines = [line for text in texts for line in text.splitlines()]
    internal = [other for tree in found.values() for other, _ in _imported(tree, set(found)) if other.startswith("xswe")]
    functions = [node for tree in found.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    parameters = {node: len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) for node in functions}
    lengths = {node: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    docstrings, blank = sum(map(_docstrings, found.values())), sum(not line.strip() for line in lines)
    importing = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in found.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    comments = sum(line.lstrip().startswith("#") for line in lines)
    cli = [path for room in ("cli", "commands") for path in (checkout / "xswe" / room).glob("*.py")]
    return {
        "files": len(texts),
        "lines": len(lines),
        "code": len(lines) - docstrings - importing - blank - comments,
        "docstrings": docstrings,
        "imports": importing,
        "longest file": max(len(text.splitlines()) for text in texts),
        "internal imports": len(internal),
        "circles": len(circles(imports_of(found))),
        "functions": len(functions),
        "functions of over 8 parameters": sum(parameters[f] > 8 for f in functions if not _is_compiled(f)),
        "functions of over 60 lines": sum(lengths[f] > 60 for f in functions if not _is_compiled(f)),
        "compiled functions of either kind": sum(
            _is_compiled(f) and (parameters[f] > 8 or lengths[f] > 60) for f in functions
        ),
        "lines of the command line": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in cli),
    }


def _python(checkout: Path, *words: str, folder: Path | None = None) -> str:
    ours = {"PYTHONPATH": str(checkout), "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if folder:  # what is compiled already is called by another way, in a few files more
        ours["NUMBA_CACHE_DIR"] = str(folder / "compiled")
    call = [sys.executable, *words]
    done = subprocess.run(call, cwd=folder or checkout, env=os.environ | ours, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout}: {' '.join(words[:2])}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def ways(checkout: Path) -> dict[str, float]:
    """Count the files that a text, a training pair and a mined pair come by."""
    rows = [line.split("\t") for line in (checkout / SAMPLE).read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for code, column in (("en", 0), ("de", 1)):
            (folder / code).write_text("".join(f"{row[column]}\n" for row in rows), encoding="utf-8")
        encode = ["encode", "model=mini", "input=en"]
        verbs = {  # after the function before which the way ends, if it does
            "a text": ["", *encode, "output=a.npy"],
            "a training pair": ["", "train", "output=run", "seed=0", f"{_steps(checkout)}=40"],
            "a mined pair": ["", "mine", "model=mini", "source=en", "target=de", "output=a.tsv"],
            "a setting": ["encode_file", *encode, "output=b.npy", "dtype=float16"],
        }
        found = {}
        for what, words in verbs.items():
            status, files = _python(checkout, "-c", _WAY, *words, "threads=1", folder=folder).split()[-2:]
            found[f"files of {what}"] = float(files) if status == "0" else float("nan")
    return found


def _steps(checkout: Path) -> str:
    """Return what the number of steps is called, of which few take the same way as many."""
    sources = (checkout / "xswe" / "training" / "refine.py").read_text(encoding="utf-8")
    return "refine.max_steps" if "max_steps" in sources else "refine.steps"


def measured(checkout: Path, settings: dict[str, Any]) -> dict[str, float]:
    """Measure one checkout."""
    found = counted(checkout)
    if settings["ways"]:
        found |= {f"{name}, traced": number for name, number in ways(checkout).items()}
    found["seconds of import xswe"] = round(median(float(_python(checkout, "-c", _IMPORT)) for _ in range(9)), 3)
    if settings["suite"]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _python(checkout, "-m", "pytest", "-q")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found["seconds of the tests"] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return found


def main(settings: dict[str, Any]) -> None:
    """Measure, and write the figures and the table."""
    output = Path(settings["output"]).with_suffix(".json")
    before = json.loads(output.read_text(encoding="utf-8"))["before"] if output.is_file() else {}
    if settings["before"]:
        before = measured(Path(settings["before"]).resolve(), settings)
    after = measured(ROOT, settings)
    names = list(dict.fromkeys([*REVIEWED, *before, *after]))
    names.sort(key=lambda name: list(after).index(name) if name in after else len(after))
    figures = {"reviewed": REVIEWED, "before": before, "after": after}
    output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    rows = [[name, *(_cell(column.get(name)) for column in (REVIEWED, before, after))] for name in names]
    text = markdown(["", "v0.1, by hand", "v0.1, measured", "now"], rows)
    output.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:g}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
