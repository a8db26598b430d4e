"""How many small mistakes the tests notice: places of the library changed at random, one at a time.

    python eval/experiments/mutate.py output=eval/results/mutations.json [places=100] [seed=0] [rooms=mining,corpus,…]
    python eval/experiments/mutate.py output=… again=1              # only those that survived, after tests were added

A mutation is a comparison, an operator, a constant or a connective changed in a copy of the tree (``work=``). The room's
own tests (``tests/ROOM``) are run against it, up to the first that fails, and only those that come by the changed function:
who calls what is noted once, test by test; of compiled code, who calls a function that calls it. A mutation is caught if a
test fails or takes several times its time. ``again`` keeps what was caught, and each survivor's ``why``: the reason,
written by hand, why it can make no difference.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ROOMS = ("io", "text", "corpus", "model", "teacher", "training", "search", "mining", "phrases", "evaluation")
DEFAULTS: dict[str, Any] = {
    "output": None,
    "places": 100,
    "seed": 0,
    "rooms": ",".join(ROOMS),
    "again": 0,
    "work": "runs/mutate",
}
COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not"}
COMPARED |= {ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
OPERATED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.BitAnd: "|"}
OPERATED |= {ast.BitOr: "&", ast.BitXor: "&", ast.LShift: ">>", ast.RShift: "<<", ast.Pow: "*"}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.In: "in"}
SIGNS |= {ast.IsNot: r"is\s+not", ast.NotIn: r"not\s+in", ast.Add: r"\+", ast.Sub: "-", ast.Mult: r"\*", ast.Div: "/"}
SIGNS |= {ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: r"\|", ast.BitXor: r"\^", ast.LShift: "<<"}
SIGNS |= {ast.RShift: ">>", ast.Pow: r"\*\*", ast.And: "and", ast.Or: "or"}
PAD = 120  # blanks at the end of each file of the copy, so that a changed file keeps its size: numba looks at size and time

MEMORY = 16 << 30  # bytes of address space that a changed allocation may take


@dataclass(frozen=True)
class Place:
    """A change of the library: characters ``start`` to ``end`` of a file become ``now``."""

    file: str
    line: int
    function: str
    start: int
    end: int
    was: str
    now: str
    code: str  # the line, before

    @property
    def room(self) -> str:
        """The room of the library that it lies in."""
        return Path(self.file).parts[1]


@dataclass(frozen=True)
class Function:
    """A function, or what stands outside of all (``first`` 0)."""

    file: str
    name: str
    first: int
    last: int
    compiled: bool
    uses: frozenset[str]


class _Finder(ast.NodeVisitor):
    """Collect the places of a file; annotations, imports, messages and decorators are left alone."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text, self.places, self.within = file, text, list[Place](), ["module"]
        self.starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.bytes = text.encode()

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def add(self, start: int, end: int, now: str) -> None:
        line = self.bytes.count(b"\n", 0, start) + 1
        code = self.text.splitlines()[line - 1].strip()
        was = self.bytes[start:end].decode()
        self.places.append(Place(self.file, line, self.within[-1], start, end, was, now, code))

    def sign(self, left: ast.expr, right: ast.expr, kind: type, now: str) -> None:
        """Find the operator between two operands, where comments and brackets may stand too."""
        start, end = self.at(left.end_lineno, left.end_col_offset), self.at(right.lineno, right.col_offset)
        between = re.sub(rb"#[^\n]*", lambda m: b" " * len(m.group()), self.bytes[start:end])
        found = re.search(SIGNS[kind].encode(), between)
        if found:
            self.add(start + found.start(), start + found.end(), now)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.within.append(node.name)
        for part in (*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body):
            self.visit(part)
        self.within.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages alone: their inner places are not told by this version of Python."""

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            self.sign(left, right, type(operator), COMPARED[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        union = isinstance(node.op, ast.BitOr) and self.within == ["module"]  # of types
        if (
            type(node.op) in OPERATED
            and not union
            and not any(isinstance(n, ast.JoinedStr) for n in (node.left, node.right))
        ):
            self.sign(node.left, node.right, type(node.op), OPERATED[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATED:
            self.sign(node.target, node.value, type(node.op), OPERATED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.sign(left, right, type(node.op), "or" if isinstance(node.op, ast.And) else "and")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self.at(node.lineno, node.col_offset)
            self.add(start, start + 3, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)
        if isinstance(node.value, bool):
            self.add(start, end, str(not node.value))
        elif isinstance(node.value, int):
            self.add(start, end, str(node.value + 1))
        elif isinstance(node.value, float):
            self.add(start, end, repr(node.value * 1.5 if node.value else 0.5))


def places_of(file: str, text: str) -> list[Place]:
    """Return all places of a file where a mutation can be made."""
    finder = _Finder(file, text)
    finder.visit(ast.parse(text))
    return finder.places


def functions_of(file: str, text: str) -> list[Function]:
    """Return the functions of a file with the names that each uses; last what stands outside of all."""
    tree, found = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(entry.lineno for entry in node.decorator_list)])
            compiled = any("njit" in ast.unparse(entry) for entry in node.decorator_list)
            found.append(Function(file, node.name, first, node.end_lineno, compiled, frozenset(_names(node))))
    return [*found, Function(file, "", 0, len(text.splitlines()), False, frozenset())]


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


class Tree:
    """A copy of the tree's tracked files, its functions, and which test comes by which."""

    def __init__(self, work: Path) -> None:
        self.work, self.copy = work.resolve(), work.resolve() / "tree"
        self.record = self.work / "calls.json"
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, tracked.split("\0")):
            self._take(name)
        self.texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in tracked.split("\0") if _is_library(file)}
        self.functions = {file: functions_of(file, text) for file, text in self.texts.items()}

    def _take(self, name: str) -> None:
        """Copy a file where it changed, a module with blanks at its end, and keep the copy's time otherwise."""
        source, target = ROOT / name, self.copy / name
        if not source.is_file():
            target.unlink(missing_ok=True)
            return
        data = source.read_bytes() + (b" " * PAD if _is_library(name) else b"")
        if target.is_file() and target.read_bytes() == data:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def innermost(self, file: str, line: int) -> Function:
        """Return the function that a line belongs to."""
        within = [one for one in self.functions[file] if one.first <= line <= one.last]
        return max(within, key=lambda one: one.first)

    def pytest(self, words: list[str], limit: float, **environment: str) -> subprocess.CompletedProcess:
        """Run pytest in the copy, on one thread."""
        ours = {
            "PYTHONPATH": f"{self.copy}{os.pathsep}{Path(__file__).parent}",
            "XSWE_PROGRESS": "0",
            "HF_HUB_OFFLINE": "1",
        }
        ours |= {"NUMBA_CACHE_DIR": str(self.work / "numba"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        ours |= {"XSWE_DATA": str(Path(os.environ.get("XSWE_DATA", ROOT.parent / "shared" / "data")).resolve())}
        call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", *words]
        return subprocess.run(
            call,
            cwd=self.copy,
            env=os.environ | ours | environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )

    def tests_of(self, room: str) -> dict[str, dict[str, Any]]:
        """Return the tests of a room that pass, each with its seconds and what it came by; noted once a file."""
        known = json.loads(self.record.read_text(encoding="utf-8")) if self.record.is_file() else {}
        files = sorted(str(path.relative_to(self.copy)) for path in (self.copy / "tests" / room).rglob("test_*.py"))
        changed = [file for file in files if known.get(file, {}).get("text") != (self.copy / file).read_text("utf-8")]
        if changed:
            print(f"{room}: noting what {len(changed)} test files call", flush=True)
            noted = self.work / "noted.json"
            noted.unlink(missing_ok=True)
            done = self.pytest(
                ["-p", "mutate", *changed], 3600, MUTATE_NOTED=str(noted), MUTATE_LIBRARY=str(self.copy / "xswe")
            )
            if not noted.is_file():
                raise SystemExit(f"{room}: its tests did not run\n{done.stdout}{done.stderr}")
            print(done.stdout.strip().splitlines()[-1], flush=True)
            for file in changed:
                known[file] = {"text": (self.copy / file).read_text("utf-8"), "tests": {}}
            for name, entry in json.loads(noted.read_text(encoding="utf-8")).items():
                known[name.partition("::")[0]]["tests"][name] = entry
            self.record.write_text(json.dumps(known), encoding="utf-8")
        return {name: entry for file in files for name, entry in known[file]["tests"].items()}

    def testers(self, place: Place) -> list[str]:
        """Return the room's tests that may notice a change, the quick ones first."""
        tests = self.tests_of(place.room)
        own = self.innermost(place.file, place.line)
        affected, names = {(own.file, own.first)}, {own.name} if own.compiled else set()
        everyone = [one for functions in self.functions.values() for one in functions]
        while names:  # the functions that call a compiled one, by their names
            new = [one for one in everyone if one.uses & names and (one.file, one.first) not in affected]
            affected |= {(one.file, one.first) for one in new}
            names = {one.name for one in new if one.compiled}
        chosen = {name for name, entry in tests.items() if entry["forks"] or self._came_by(entry["calls"], affected)}
        for name in tests:  # tests that call a compiled function themselves
            if own.compiled and re.search(rf"\b{own.name}\b", (self.copy / name.partition("::")[0]).read_text("utf-8")):
                chosen.add(name)
        return sorted(chosen if own.first and chosen else tests, key=lambda name: (tests[name]["seconds"], name))

    def _came_by(self, calls: list[list[Any]], affected: set[tuple[str, int]]) -> bool:
        inside = ((file, line) for file, line in calls if file in self.functions)
        return any((file, self.innermost(file, line).first) in affected for file, line in inside)

    def verdict(self, place: Place) -> str:
        """Return "caught by TEST", "hung" or "survived", with the change made and taken back."""
        testers = self.testers(place)
        if not testers:
            return "survived: no test comes by"
        seconds = sum(self.tests_of(place.room)[name]["seconds"] for name in testers)
        path, compiled = self.copy / place.file, self.innermost(place.file, place.line).compiled
        before, times = path.read_bytes(), path.stat()
        changed = before[: place.start] + place.now.encode() + before[place.end :]
        more = len(changed) - len(before)
        asked = self.work / "asked.txt"
        asked.write_text("\n".join(testers), encoding="utf-8")
        cache = self.work / "numba"
        try:
            path.write_bytes(changed[: len(changed) - more] if more > 0 else changed + b" " * -more)
            if compiled or not self.innermost(place.file, place.line).first:
                cache = self._fresh_cache(place)
            else:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            limit = 120 + 4 * seconds + (600 if compiled else 0)
            done = self.pytest(["-x", f"@{asked}"], limit, NUMBA_CACHE_DIR=str(cache))
        except subprocess.TimeoutExpired:
            return "caught: hung"
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if cache.name != "numba":
                shutil.rmtree(cache, ignore_errors=True)
        if done.returncode == 0:
            return "survived"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return f"caught: {failed.group(1) if failed else 'the tests did not start'}"

    def _fresh_cache(self, place: Place) -> Path:
        """Copy numba's cache without what was compiled from the changed module or from one that uses it."""
        stems, more = {Path(place.file).stem}, True
        while more:
            users = {
                Path(file).stem
                for file, text in self.texts.items()
                if any(re.search(rf"import.*\b{s}\b|\.{s} import", text) for s in stems)
            }
            more, stems = not users <= stems, stems | users
        cache = self.work / "numba-changed"
        shutil.rmtree(cache, ignore_errors=True)
        stale = re.compile(rf"^({'|'.join(map(re.escape, stems))})\.")
        ignore = lambda _, names: [name for name in names if name.endswith((".nbi", ".nbc")) and stale.match(name)]  # noqa: E731
        if (self.work / "numba").is_dir():
            shutil.copytree(self.work / "numba", cache, ignore=ignore)
        return cache


def _is_library(name: str) -> bool:
    return name.startswith("xswe/") and name.endswith(".py")


def main(settings: dict[str, Any]) -> None:
    """Change the places, run the tests, and write the report after each."""
    rooms, output, tree = settings["rooms"].split(","), Path(settings["output"]), Tree(Path(settings["work"]))
    places = [
        place
        for file, text in sorted(tree.texts.items())
        if Path(file).parts[1] in rooms and not file.endswith("__init__.py")
        for place in places_of(file, text)
    ]
    before = json.loads(output.read_text(encoding="utf-8"))["mutations"] if output.is_file() else []
    kept = {_key(entry): entry for entry in before}
    if settings["again"]:
        missed = {key for key, entry in kept.items() if entry["verdict"].startswith("survived")}
        chosen = [place for place in places if _key(asdict(place)) in missed]
        done = [entry for key, entry in kept.items() if key not in {_key(asdict(place)) for place in chosen}]
    else:
        chosen, done = random.Random(settings["seed"]).sample(places, min(settings["places"], len(places))), []
    for number, place in enumerate(chosen, 1):
        start = time.monotonic()
        verdict = tree.verdict(place)
        print(f"{number}/{len(chosen)} {place.file}:{place.line} {place.was!r} -> {place.now!r}: {verdict}", flush=True)
        entry = {key: value for key, value in asdict(place).items() if key not in ("start", "end")}
        entry |= {"verdict": verdict, "seconds": round(time.monotonic() - start, 1)}
        if verdict.startswith("survived") and kept.get(_key(entry), {}).get("why"):
            entry["why"] = kept[_key(entry)]["why"]
        done.append(entry)
        output.write_text(
            json.dumps(report(done, len(places), settings), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _key(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return what tells a place apart whatever lines stand above it."""
    return entry["file"], entry["function"], entry["code"], entry["was"], entry["now"]


def report(mutations: list[dict[str, Any]], places: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Count per room what was caught and what survived, with and without a reason."""
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: {"caught": 0, "equivalent": 0, "survived": 0})
    for entry in mutations:
        caught = "caught" if entry["verdict"].startswith("caught") else "equivalent" if entry.get("why") else "survived"
        rooms[Path(entry["file"]).parts[1]][caught] += 1
    total = {name: sum(room[name] for room in rooms.values()) for name in ("caught", "equivalent", "survived")}
    ordered = sorted(mutations, key=lambda entry: (entry["file"], entry["line"], entry["was"]))
    return {
        "seed": settings["seed"],
        "places": places,
        "all": total,
        "rooms": dict(sorted(rooms.items())),
        "mutations": ordered,
    }


# What follows is a plugin of pytest (``-p mutate``): it notes which functions of the library each test comes by.

if "MUTATE_NOTED" in os.environ:
    import pytest

    _library = os.environ["MUTATE_LIBRARY"]
    _now: list[set[tuple[str, int]]] = [set()]
    _by_fixture: dict[str, set[tuple[str, int]]] = {}
    _tests: dict[str, dict[str, Any]] = {}
    _passed: dict[str, bool] = {}
    _forks = [False]

    def _note(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(_library):
            _now[-1].add((code.co_filename, code.co_firstlineno))

    def _audit(event: str, arguments: Any) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            _forks[0] = True

    sys.addaudithook(_audit)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
        """Give what a shared fixture calls to all tests that use it, not to the first alone."""
        shared = fixturedef.scope != "function"
        if shared:
            _now.append(_by_fixture.setdefault(fixturedef.argname, set()))
        yield
        if shared:
            _now.pop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(item: Any, nextitem: Any) -> Iterator[None]:
        """Note what a test comes by."""
        _now[:], _forks[0] = [set()], False
        start = time.perf_counter()
        sys.settrace(_note)
        threading.settrace(_note)
        yield
        sys.settrace(None)
        threading.settrace(None)
        entry = {
            "seconds": time.perf_counter() - start,
            "calls": _now[0],
            "forks": _forks[0],
            "fixtures": item.fixturenames,
        }
        _tests[item.nodeid] = entry

    def pytest_runtest_logreport(report: Any) -> None:
        """Keep whether a test passed."""
        _passed[report.nodeid] = _passed.get(report.nodeid, True) and report.passed

    def pytest_sessionfinish(session: Any) -> None:
        """Write the tests that passed, with what each came by."""
        noted = {}
        for name, entry in _tests.items():
            if not _passed.get(name):
                continue
            calls = entry["calls"].union(*(_by_fixture.get(fixture, ()) for fixture in entry["fixtures"]))
            inside = sorted((str(Path("xswe") / Path(file).relative_to(_library)), line) for file, line in calls)
            noted[name] = {"seconds": round(entry["seconds"], 3), "forks": entry["forks"], "calls": inside}
        Path(os.environ["MUTATE_NOTED"]).write_text(json.dumps(noted), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "eval"))
    from settings import run_script

    run_script(main, DEFAULTS, __doc__)
