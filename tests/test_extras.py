"""What is said of a missing library must cure it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import xswe
from xswe.work.config import HOSTS

LIBRARY = Path(xswe.__file__).parent
EXTRAS = tomllib.loads((LIBRARY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def complaints():
    """The library and extra that each ``needs`` and each DependencyError of the code names."""
    for path in sorted(LIBRARY.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"\b(needs|DependencyError)\(", text) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("needs", "DependencyError"):
                values = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
                if len(values) == 2:
                    yield path.relative_to(LIBRARY), *values
    yield from (("work/config.py", host.library, host.library) for host in HOSTS.values() if host.library)


def test_the_extra_that_an_error_names_brings_the_library():
    found = list(complaints())
    assert len(found) > 10
    wrong = []
    for path, library, extra in found:
        brought = {re.split(r"[<>=\[]", requirement)[0] for requirement in EXTRAS.get(extra, ())}
        for one in re.findall(r"[\w-]+", re.sub(r"\b(with|and)\b", "", library.lower().replace("_", "-"))):
            if one not in brought:
                wrong.append(f"{path}: {one} is not in the extra {extra!r}")
    assert not wrong


def test_the_page_of_installation_names_all_extras():
    page = (LIBRARY.parent / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| ((?:`[\w-]+`(?:, )?)+) \|", page)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(EXTRAS) - {"all"}
