"""Functions without a way in from Python are called by compiled code alone: a call from Python would end the process."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import xswe
from xswe.io.ragged import Bags
from xswe.model import static

ROOT = Path(xswe.__file__).parent


def is_compiled(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).startswith("njit") for one in function.decorator_list)


def names_outside(tree: ast.AST, compiled: bool = False) -> set[str]:
    """The names that code which is not compiled calls."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(tree):
        inside = compiled or (isinstance(child, ast.FunctionDef) and is_compiled(child))
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and not inside:
            found.add(child.func.id)
        found |= names_outside(child, inside)
    return found


def names_imported(tree: ast.AST) -> set[tuple[str | None, str]]:
    """The names that a module imports, each with where from."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {(node.module, name.name) for node in imports for name in node.names}


def inner_names(tree: ast.AST) -> set[str]:
    """The functions of a module that only compiled code calls."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {one.name for one in functions if "**INNER" in " ".join(map(ast.unparse, one.decorator_list))}


def test_nothing_calls_them_from_python():
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    inner = {path: inner_names(ast.parse(text)) for path, text in texts.items() if "**INNER" in text}
    every = frozenset().union(*inner.values())
    seen = 0
    for other, text in texts.items():
        if not any(f"{name}(" in text for name in every):
            continue
        tree = ast.parse(text)
        called, imported = names_outside(tree), names_imported(tree)
        for path, names in inner.items():
            module = "xswe." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
            known = names if other == path else {name for name in names if (module, name) in imported}
            assert not known & called, (path, other)
            seen += bool(known)
    assert len(every) > 15
    assert seen > len(inner) > 5  # each is known where it is, and some elsewhere


def test_a_few_texts_are_not_compiled_for(monkeypatch):
    rng = np.random.default_rng(0)
    matrix, bags = rng.normal(size=(50, 8)).astype(np.float32), Bags.of([rng.integers(0, 50, 10).tolist()] * 100)
    compiled = static.pool(matrix, bags, normalise=True)
    monkeypatch.setattr("xswe.io.compiler.is_compiled", lambda _: False)
    monkeypatch.setattr("xswe.model.kernels.pool_rows", None)  # calling it fails
    monkeypatch.setattr("xswe.model.static._worth_compiling", static._PoolingHeuristic())
    monkeypatch.setattr("xswe.model.static._MIN_ROWS_TO_COMPILE", 20_000)
    for _ in range(19):
        assert static.pool(matrix, bags, normalise=True).tobytes() == compiled.tobytes()
    with pytest.raises(TypeError):  # they are not a few any more
        static.pool(matrix, bags, normalise=True)
