"""How many small mistakes the tests notice: places of the library changed at random, one at a time.

    python -m eval.experiments.mutate output=eval/results/mutations.json [places=100] [seed=0] [rooms=mining,corpus,…]
    python -m eval.experiments.mutate output=… again=1              # only survivors without a reason, after new tests
    python -m eval.experiments.mutate output=… near=1 workers=2     # a first look, in a third of the time

A mutation is a comparison, an operator, a constant or a connective changed in a copy of the tree (``work=``). The room's
own tests (``tests/ROOM``; those beside the folders for the modules beside the rooms) and all that import the changed
module are run against it: first the files that name the module or the function, then (but for ``near``) the others, up to
the first that fails. A mutation is caught if a test fails that passes without it, or crashes. If the tests take more than
``seconds`` of a processor (three times as many for what is compiled again) or five times as many by the clock, it is run
again at the end, alone, and if they still do, it is a timeout: nobody waits for it, so it does not count as caught. A run
that was stopped goes on. Where the code is another than the one recorded (``commit``), what no longer stands is dropped and
drawn anew, and what stands is tried again, beginning with the test that caught it. A survivor's ``why`` is the reason,
written by hand, why it can make no difference; where that was plain beforehand, no test was run (``seconds`` 0).
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

from eval.settings import DATA, ROOT, run_script

BESIDE = "xswe"  # the modules that lie in no room
ROOMS = (*sorted(path.name for path in (ROOT / "tests").iterdir() if (ROOT / "xswe" / path.name).is_dir()), BESIDE)
DEFAULTS: dict[str, Any] = {
    "output": None,
    "places": 100,
    "seed": 0,
    "rooms": ",".join(ROOMS),
    "again": 0,
    "near": 0,
    "seconds": 60,
    "workers": 1,
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

FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)
MEMORY = 16 << 30  # bytes of address space that the tests may take
TIMEOUTS = {sign * signal + shift for signal in (9, 24) for sign, shift in ((-1, 0), (1, 128))}  # SIGKILL, SIGXCPU


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
        return room_of(self.file)


@dataclass(frozen=True)
class Function:
    """A function, or what stands outside of all (``first`` 0)."""

    first: int
    last: int
    compiled: bool


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


def room_of(file: str) -> str:
    """Return the room of the library that a file lies in."""
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else BESIDE


def places_of(file: str, text: str) -> list[Place]:
    """Return all places of a file where a mutation can be made."""
    finder = _Finder(file, text)
    finder.visit(ast.parse(text))
    return finder.places


def functions_of(text: str) -> list[Function]:
    """Return the functions of a module; last what stands outside of all."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(entry.lineno for entry in node.decorator_list)])
            compiled = any("njit" in ast.unparse(entry) for entry in node.decorator_list)
            found.append(Function(first, node.end_lineno or first, compiled))
    return [*found, Function(0, len(text.splitlines()), False)]


class Tree:
    """A copy of the tree's tracked files, and the functions of its library."""

    unsound: ClassVar[set[str]] = set()  # tests that fail without a change, too

    def __init__(self, work: Path, near: bool, seconds: int) -> None:
        self.work, self.copy = work.resolve(), work.resolve() / "tree"
        self.near, self.seconds = near, seconds
        tracked = dict.fromkeys(filter(None, _git("ls-files", "-z").split("\0")))
        for path in self.copy.rglob("*.py"):  # of two tests of one name, one of which was moved, none would be collected
            if str(path.relative_to(self.copy)) not in tracked:
                path.unlink()
        for name in tracked:
            self._take(name)
        self.texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in tracked if _is_library(file)}
        self.functions = {file: functions_of(text) for file, text in self.texts.items()}

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

    def pytest(self, files: list[str], cache: Path, seconds: int = 0) -> subprocess.CompletedProcess:
        """Run test files in the copy, on one thread: all, or within a time and up to the first failure."""
        ours = {"PYTHONPATH": str(self.copy), "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        ours |= {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        ours |= {"XSWE_DATA": str(DATA)}
        call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", *(["-x"] if seconds else []), *files]
        call += [f"--deselect={test}" for test in self.unsound]
        if seconds and shutil.which("prlimit"):
            call = ["prlimit", f"--as={MEMORY}", f"--cpu={seconds}", *call]
            call = ["timeout", "-s", "KILL", str(5 * seconds), *call]  # what waits for ever takes no processor
        how: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "start_new_session": True}
        return subprocess.run(call, cwd=self.copy, env=os.environ | ours, **how)

    def tests_of(self, place: Place) -> list[str]:
        """Return the test files of a place: those that import its module or name it or its function; its room's others."""
        module, stem = ".".join(Path(place.file).with_suffix("").parts), Path(place.file).stem
        names = re.compile(rf"\b({re.escape(stem)}|{re.escape(place.function)})\b")
        near, others = {}, []
        for path in sorted((self.copy / "tests").rglob("test_*.py")):
            text, file = path.read_text("utf-8"), str(path.relative_to(self.copy))
            own = path.parent.name == ("tests" if place.room == BESIDE else place.room)
            if module in text or (own and names.search(text)):
                near[file] = (path.stem != f"test_{stem}", module not in text, -len(names.findall(text)))
            elif own:
                others.append(file)
        return [*sorted(near, key=near.__getitem__), *([] if self.near and near else others)]

    def compiles(self, place: Place) -> bool:
        """Tell whether a change of this place may be one of compiled code."""
        own = self.innermost(place.file, place.line)
        return own.compiled or not own.first

    def failing(self, tests: set[str]) -> set[str]:
        """Return which tests fail without a change."""
        if not tests:
            return set()
        done = self.pytest(sorted(tests), self.work / "numba")
        if done.returncode > 1:
            raise RuntimeError(f"the tests did not run: {done.stdout[-500:]}")
        return set(FAILED.findall(done.stdout))

    def verdict(self, place: Place, known: str) -> str:
        """Make the change, run the tests, and take it back; returns "caught: TEST", "timeout" or "survived".

        ``known`` is the test that caught the change before, if one did: it is run first.
        """
        path = self.copy / place.file
        before, times = path.read_bytes(), path.stat()
        changed = before[: place.start] + place.now.encode() + before[place.end :]
        more, cache, seconds = len(changed) - len(before), self.work / "numba", self.seconds
        try:
            path.write_bytes(changed[: len(changed) - more] if more > 0 else changed + b" " * -more)
            if self.compiles(place):
                cache, seconds = self._fresh_cache(place), 3 * seconds
            else:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for files in [*([[known]] if known else []), self.tests_of(place)]:
                if not files:
                    continue
                done = self.pytest(files, cache, seconds)
                if done.returncode in TIMEOUTS:
                    return "timeout"
                if done.returncode < 0 or done.returncode > 128:
                    return f"caught: killed by signal {abs(done.returncode) % 128}"
                if done.returncode not in (0, 4 if files == [known] else 0, 5):  # 4: there is no such test any more
                    failed = FAILED.search(done.stdout)
                    return f"caught: {failed.group(1) if failed else 'the tests did not start'}"
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if cache.name != "numba":
                shutil.rmtree(cache, ignore_errors=True)
        return "survived"

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


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _is_library(name: str) -> bool:
    return name.startswith("xswe/") and name.endswith(".py")


def main(settings: dict[str, Any]) -> None:
    """Change the places, run the tests, and write the report after each."""
    rooms, output, commit = settings["rooms"].split(","), Path(settings["output"]), _git("rev-parse", "HEAD").strip()
    trees = SimpleQueue[Tree]()
    for worker in range(settings["workers"]):
        tree = Tree(Path(settings["work"]) / str(worker), bool(settings["near"]), settings["seconds"])
        trees.put(tree)
    places = [
        place
        for file, text in sorted(tree.texts.items())
        if room_of(file) in rooms and not file.endswith("__init__.py")
        for place in places_of(file, text)
    ]
    before = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {"mutations": []}
    sample = random.Random(settings["seed"]).sample(places, min(settings["places"], len(places)))
    standing = {_key(asdict(place)): place for place in [*places, *sample]}
    kept = {_key(entry): entry for entry in before["mutations"] if _key(entry) in standing}
    if settings["again"]:
        keys = [key for key, entry in kept.items() if not (entry["verdict"].startswith("caught") or entry.get("why"))]
    else:
        drawn = [key for key in dict.fromkeys(_key(asdict(place)) for place in sample) if key not in kept]
        keys = drawn[: max(0, settings["places"] - len(kept))]
        keys += [key for key, entry in kept.items() if entry.get("commit") != commit]
    chosen = sorted((standing[key] for key in keys), key=tree.compiles)  # what is compiled again takes longest
    lock = threading.Lock()

    def attempt(place: Place) -> None:
        start, key, own = time.monotonic(), _key(asdict(place)), trees.get()
        old = kept.get(key, {"verdict": ""})
        verdict = own.verdict(place, (re.findall(r"^caught: (tests/.*)", old["verdict"]) or [""])[0])
        trees.put(own)
        print(f"{place.file}:{place.line} {place.was!r} -> {place.now!r}: {verdict}", flush=True)
        entry = {name: value for name, value in asdict(place).items() if name not in ("start", "end")}
        entry |= {"verdict": verdict, "seconds": round(time.monotonic() - start, 1), "commit": commit}
        entry |= {"why": old["why"]} if "why" in old and not verdict.startswith("caught") else {}
        with lock:
            kept[key] = entry
            found = report(list(kept.values()), len(places), settings)
            output.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    with ThreadPoolExecutor(settings["workers"]) as pool:
        while chosen:
            list(pool.map(attempt, chosen))
            for place in chosen:
                if kept[_key(asdict(place))]["verdict"] == "timeout":
                    attempt(place)  # alone
            by = {place: kept[_key(asdict(place))]["verdict"].removeprefix("caught: ") for place in chosen}
            Tree.unsound |= (failed := tree.failing({test for test in by.values() if test.startswith("tests/")}))
            print(f"fail without a change: {', '.join(sorted(failed)) or 'none'}", flush=True)
            chosen = [place for place, test in by.items() if test in failed]


def _key(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return what tells a place apart whatever lines stand above it."""
    return entry["file"], entry["function"], entry["code"], entry["was"], entry["now"]


def report(mutations: list[dict[str, Any]], places: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Count per room what was caught, what took too long, and what survived, with and without a reason."""
    kinds = ("caught", "equivalent", "timeout", "survived")
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(kinds, 0))
    for entry in mutations:
        verdict = entry["verdict"].partition(":")[0]
        rooms[room_of(entry["file"])]["equivalent" if entry.get("why") and verdict != "caught" else verdict] += 1
    total = {name: sum(room[name] for room in rooms.values()) for name in kinds}
    ordered = sorted(mutations, key=lambda entry: (entry["file"], entry["line"], entry["was"]))
    return {
        "seed": settings["seed"],
        "places": places,
        "all": total,
        "rooms": dict(sorted(rooms.items())),
        "mutations": ordered,
    }


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
