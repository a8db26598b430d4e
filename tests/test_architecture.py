"""The rooms of the library and the direction of the arrows between them."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import xswe
from tests.conftest import ENCODERS, LONGEST, eval_script

# The rooms that each room may import from, itself aside; errors, face, progress and version are open to all.
BELOW = {
    "io": set(),
    "work": {"io"},
    "text": {"io"},
    "bitext": {"io", "work", "text"},
    "corpus": {"io", "work", "text", "bitext"},
    "model": {"io", "work", "text", "bitext", "corpus"},
    "teacher": {"io", "text"},
    "training": {"io", "work", "text", "bitext", "corpus", "model", "teacher", "evaluation"},
    "search": {"io", "work", "text", "bitext", "model"},
    "mining": {"io", "work", "text", "bitext", "corpus", "model", "search"},
    "phrases": {"io", "work", "text", "bitext", "corpus", "model", "teacher"},
    "alignment": {"io", "work", "text", "bitext", "corpus", "model", "search", "mining", "phrases"},
    "evaluation": {"io", "work", "text", "bitext", "corpus", "model", "teacher", "search", "mining", "phrases"},
}
BELOW["report"] = set(BELOW)
BELOW["serving"] = set(BELOW) - {"training", "teacher", "evaluation"}
BELOW["cli"] = set(BELOW)
LIBRARY = Path(xswe.__file__).parent
MODULES = sorted(path for path in LIBRARY.rglob("*.py"))


def room(module: str) -> str | None:
    """The room of a dotted module name of this library; None for the ground floor (errors, files, ...)."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "xswe" and parts[1] in BELOW else None


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imported(path: Path) -> set[str]:
    """What a module imports: modules, and each name of one, which may be a module (``from xswe import corpus``)."""
    return names_of(nodes_of(path))


def names_of(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_every_way_to_import_a_room_is_seen():
    for line in ("import xswe.mining.side", "from xswe import mining", "from xswe.mining import side"):
        assert "mining" in set(map(room, names_of(ast.walk(ast.parse(line))))), line


def test_a_room_imports_only_from_rooms_below_it():
    wrong = []
    for path in MODULES:
        own = room(".".join(("xswe", *path.relative_to(LIBRARY).parts)))
        for module in imported(path):
            other = room(module)
            if own and other and other != own and other not in BELOW[own]:
                wrong.append(f"{path.relative_to(LIBRARY)} imports {module}")
    assert not wrong


def test_every_folder_of_code_is_a_room():
    folders = {path.relative_to(LIBRARY).parts[0] for path in MODULES if path.parent != LIBRARY}
    assert folders - {"pretrained"} == set(BELOW)


def test_what_is_open_to_all_knows_no_room():
    ground = [
        path for path in LIBRARY.glob("*.py") if path.stem not in ("__main__", "__init__", "types")
    ]  # which name the rooms
    assert {path.stem for path in ground} == {"errors", "face", "progress", "version"}
    for path in ground:
        assert not [name for name in imported(path) if room(name)], path


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count as well: they only hide a circle."""
    house, statements = eval_script("report.house"), {}
    for path in MODULES:
        name = ".".join(("xswe", *path.relative_to(LIBRARY).with_suffix("").parts)).removesuffix(".__init__")
        imports = [node for node in nodes_of(path) if isinstance(node, ast.Import | ast.ImportFrom)]
        statements[name] = ast.Module(imports, [])
    edges = house.imports_of(statements)
    assert "xswe.errors" in edges["xswe.training.train"]
    assert not house.circles(edges)


def test_circles_are_found():
    house = eval_script("report.house")
    texts = {"a": "import b", "b": "def f():\n    from c import a", "c": "import a, d", "d": ""}
    found = house.imports_of({name: ast.parse(text) for name, text in texts.items()})
    assert found == {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert house.circles(found) == {frozenset("abc")}


def test_nothing_imports_the_command_line():
    others = [path for folder in ("eval", "examples") for path in sorted((LIBRARY.parent / folder).rglob("*.py"))]
    others = [path for path in others if "cli" in path.read_text(encoding="utf-8")]
    callers = [path for path in (*MODULES, *others) if path.parent.name != "cli" and path.name != "__main__.py"]
    assert not [path for path in callers if any(room(module) == "cli" for module in imported(path))]


def test_hydra_stays_at_the_rim():
    users = {path.relative_to(LIBRARY).parts[0] for path in MODULES if {"hydra", "omegaconf"} & imported(path)}
    assert users <= {"cli"}


def test_the_library_never_prints_nor_configures_logging():
    for path in MODULES:
        if path.parts[-2:] == ("cli", "main.py"):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                of = getattr(node.func, "value", None)
                called = node.func.id if of is None else f"{getattr(of, 'id', '')}.{node.func.attr}"
                assert called not in ("print", "logging.basicConfig", "pickle.load", "torch.load", "eval", "exec"), path


def test_importing_the_package_and_its_commands_is_light():
    program = (
        "import sys, xswe, xswe.__main__\n"
        "heavy = {'torch', 'transformers', 'datasets', 'mteb', 'sklearn', 'numba', 'hydra'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_modules_of_tests_have_names_of_their_own():
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))  # pytest imports them by their base names
    assert {*LONGEST, *ENCODERS} <= set(names)
