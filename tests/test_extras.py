"""What is said of a missing library must cure it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import xswe
from xswe.work.config import HOSTS

LIBRARY = Path(xswe.__file__).parent
EXTRAS = tomllib.loads((LIBRARY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


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


def libraries(extra: str) -> set[str]:
    """The libraries of an extra, and of those that it names."""
    found = set()
    for name, others in re.findall(r"(?m)^([\w-]+)(?:\[([\w,]+)\])?", "\n".join(EXTRAS[extra])):
        found |= set().union(*map(libraries, others.split(","))) if name == "xswe" else {name}
    return found


def test_the_extra_that_an_error_names_brings_the_library():
    found = list(complaints())
    assert len(found) > 10
    wrong = []
    for path, library, extra in found:
        brought = libraries(extra) if extra in EXTRAS else set()
        for one in re.findall(r"[\w-]+", re.sub(r"\b(with|and)\b", "", canonical(library))):
            if one not in brought:
                wrong.append(f"{path}: {one} is not in the extra {extra!r}")
    assert not wrong


def test_all_and_dev_bring_every_extra_and_versions_are_fixed():
    """Else tests of what is left out skip, and nobody knows which versions they passed with."""
    fixed = re.findall(r"(?m)^([\w.-]+)==", (LIBRARY.parent / "constraints.txt").read_text("utf-8"))
    together = libraries("all") | libraries("dev")
    for extra in EXTRAS:
        assert libraries(extra) <= together, f"pyproject.toml: neither all nor dev names {extra}"
    assert not together - {*map(canonical, fixed)}, "constraints.txt names no version of these"


def test_dev_brings_what_reads_formats_in_the_tests():
    """Else it is there for who wrote the format, and a fresh environment cannot collect the tests."""
    tree = ast.parse((LIBRARY.parent / "tests" / "foreign.py").read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {name.partition(".")[0] for name in imported} - {"xswe", *sys.stdlib_module_names}
    brought = {*map(canonical, libraries("all") | libraries("dev"))}
    given = packages_distributions()
    assert not {name for name in names if not brought & {*map(canonical, given[name])}}


def test_the_page_of_installation_names_all_extras():
    page = (LIBRARY.parent / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| ((?:`[\w-]+`(?:, )?)+) \|", page)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(EXTRAS) - {"all"}
