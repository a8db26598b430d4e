"""What becomes of an index that is killed while it changes, and of one whose files are damaged.

    python -m eval.experiments.index_faults [kills=200] [flips=500] [seed=0] [sentences=400]
        output=eval/results/index_faults.json

A kill: a process adds to an index, updates it, removes from it, compacts or builds it (exact or binary, with and without
metadata and its columns, in each storage, as it was built or updated and compacted since), and ends by SIGKILL at a random
moment, or at a random line of the code that it runs, so that each step is met as often. Then the index is opened: it must
be as before or as after the change, each of its sentences found by itself, and take another change. A flip: a byte of one
of its files is changed, a file is cut off, or a stretch of it is zeros. Then the index is opened, all its sentences are
read, and questions are asked: the answers must be those of the whole index, or one error of this library. Each runs in a
process of its own, so that a crash is seen.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import xswe
from eval.experiments.shared_models import shared_models
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import XsweError
from xswe.io.files import write_json
from xswe.search import compaction as compaction_module
from xswe.search import sentences as sentences_module
from xswe.search import writer as writer_module

SETTINGS = {"kills": 200, "flips": 500, "seed": 0, "sentences": 400, "output": ""}
TRACED = tuple(f"search/{name}.py" for name in ("index", "sentences", "snapshot", "compaction", "columns"))
TRACED += ("io/checksums.py", "io/ragged.py", "io/files.py")
CHANGES = ("add", "remove", "update", "compact", "build")
MORE = "Hovercrafts are full of eels."
EVERY = 10_000  # sentences, more than there are: all are scored


class Case(NamedTuple):
    """A kind of index."""

    method: Any
    storage: Any
    metadata: bool
    lived: bool = False  # updated, compacted and updated again since it was built


CASES = [
    Case("exact", "float32", False),
    Case("exact", "int8", True),
    Case("exact", "float32", True, lived=True),
    Case("binary", "float32", True),
    Case("binary", "float16", False, lived=True),
    Case("binary", "int8", True, lived=True),
]
Content = dict[int, tuple[str, Any]]  # of an index: text and metadata by row


class Change(NamedTuple):
    """A change of an index: what is done in its folder, and what it holds before and after; None where there is none."""

    name: str
    run: Callable[[Path], Any]
    before: Content | None
    after: Content
    prepare: Callable[[Path], Any] = lambda _: None  # what is done in the folder first, which nothing kills


class Bench:
    """Indexes of the sample's sentences to break.

    Args:
        place: a folder for them.
        size: sentences of each.
        chance: draws.
    """

    def __init__(self, place: Path, size: int, chance: random.Random) -> None:
        sample = sample_sentences()
        self.texts = list(dict.fromkeys([*sample["en"], *sample["ja"]]))[: 2 * size]
        self.place, self.size, self.chance = place, size, chance
        self.model = xswe.load("mini")
        self._taken: dict[tuple[Case, str, int, str], float] = {}
        for case in CASES:
            self.build(self.whole(case), case, size)
            xswe.load_index(self.whole(case)).search(self.texts[:2], rescored=EVERY)  # compiles, and loads the model

    def whole(self, case: Case) -> Path:
        """Return an index that nothing has broken."""
        return self.place / "-".join(map(str, case))

    def build(self, folder: Path, case: Case, size: int) -> Any:
        """Build an index of the first texts."""
        metadata = self.metadata(0, size) if case.metadata else None
        how = {"method": case.method, "storage": case.storage, "metadata": metadata, "threads": 1}
        how |= {"columns": {"line": "int", "file": "str"}} if case.metadata else {}
        index = xswe.index(self.model, self.texts[:size], folder=folder, **how)
        if case.lived:
            index.update([3, 5], [self.texts[3], self.texts[5]])
            index.compact()
            index.update([4, 1])
        return index

    def metadata(self, first: int, last: int) -> list[Any]:
        """Return what is kept of some rows."""
        return [{"line": row, "file": "a.txt"} for row in range(first, last)]

    def content(self, case: Case, size: int) -> Content:
        """Return what an index of the first texts holds."""
        kept = self.metadata(0, size) if case.metadata else [None] * size
        return dict(enumerate(zip(self.texts, kept, strict=False)))

    def change(self, case: Case, name: str) -> Change:
        """Return a change: of ``add`` of a few or of many, of ``remove`` for a few rows or many."""
        before, chance = self.content(case, self.size), self.chance
        if name == "add":
            size = self.size + chance.choice([1, self.size // 8, self.size // 2])
            more = self.metadata(self.size, size) if case.metadata else None
            texts = self.texts[self.size : size]
            after = self.content(case, size)
            return Change(name, lambda folder: xswe.load_index(folder).add(texts, more, threads=1), before, after)
        if name == "remove":
            rows = set(chance.sample(range(self.size), chance.choice([1, 20, self.size // 2])))
            after = {row: sentence for row, sentence in before.items() if row not in rows}
            return Change(name, lambda folder: xswe.load_index(folder).remove(rows), before, after)
        if name == "update":
            given = chance.sample(range(self.size), chance.choice([1, 20, self.size // 2]))
            texts = [self.texts[self.size + row] for row in given]
            after = before | {row: (text, before[row][1]) for row, text in zip(given, texts, strict=True)}
            return Change(name, lambda folder: xswe.load_index(folder).update(given, texts), before, after)
        if name == "compact":
            rows = set(chance.sample(range(self.size), chance.choice([1, 20, self.size // 2])))
            left = {row: sentence for row, sentence in before.items() if row not in rows}
            prepare = partial(_removed, rows)
            return Change(name, lambda folder: xswe.load_index(folder).compact(), left, left, prepare)
        return Change(name, lambda folder: self.build(folder, case, self.size), None, before)

    def takes(self, case: Case, change: Change, by: str) -> float:
        """Return how many lines of the traced code, or seconds, such a change takes that nothing stops."""
        key = (case, change.name, len(change.after), by)
        if key not in self._taken:
            with self.copy(case, change) as folder:
                started = time.monotonic()
                said = in_child(lambda: traced(lambda: change.run(folder)) if by == "line" else change.run(folder))[1]
                taken = float(said) if by == "line" else time.monotonic() - started
            self._taken[key] = taken
        return self._taken[key]

    @contextmanager
    def copy(self, case: Case, change: Change) -> Iterator[Path]:
        """Yield a copy of a whole index, or a place for one that is built; the model's files, which stay, are shared."""
        with tempfile.TemporaryDirectory(dir=self.place) as place:
            folder = Path(place) / "index"
            if change.before is not None:
                share = lambda a, b: os.link(a, b) if Path(a).parent.name == "model" else shutil.copy2(a, b)  # noqa: E731
                shutil.copytree(self.whole(case), folder, copy_function=share)
                change.prepare(folder)
            yield folder


def _removed(rows: set[int], folder: Path) -> None:
    xswe.load_index(folder).remove(rows)


def in_child(work: Callable[[], Any], seconds: float | None = None) -> tuple[int, str]:
    """Call a function in a process of its own, killed after so many seconds; returns its status and what it returned."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writes, str(work()).encode("utf-8", "replace")[:60_000])
        except BaseException as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:60_000])
            os._exit(1)
        os._exit(0)
    os.close(writes)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with open(reads, encoding="utf-8", errors="replace") as stream:
        said = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def traced(work: Callable[[], Any], stop: int | None = None) -> int:
    """Call a function, and return how many lines of the traced code it ran; killed before the line number ``stop``."""
    count = 0

    def line(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count == stop:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    sys.settrace(lambda frame, event, _: line if frame.f_code.co_filename.endswith(TRACED) else None)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def content_of(index: Any, rows: int) -> Content:
    """Read all sentences of an index."""
    found = {}
    for row in range(rows):
        try:
            found[row] = (index[row].text, index[row].metadata)
        except IndexError:
            continue
    return found


def problem(folder: Path, change: Change) -> str:
    """Open an index after a kill; returns ``before`` or ``after``, or what is wrong with it."""
    if not folder.exists():
        return "before" if change.before is None else "wrong: the index is gone"
    try:
        index = xswe.load_index(folder)
        found = content_of(index, max(change.after, default=0) + max(change.before or {0: 0}) + 1)
        state = "before" if found == change.before else "after" if found == change.after else "wrong: other sentences"
        if len(index) != len(found):
            return f"wrong: it counts {len(index)} sentences and holds {len(found)}"
        for again in (False, True):  # once more after another change
            lists = index.search([text for text, _ in found.values()], k=3, rescored=EVERY, threads=1)
            hidden = [row for row, hits in zip(found, lists, strict=True) if row not in [hit.row for hit in hits]]
            if hidden or any(hit.row not in found for hits in lists for hit in hits):
                return f"wrong: {len(hidden)} sentences are not found, or others are"
            index.verify()
            if not again:
                found |= dict.fromkeys(index.add([MORE]), (MORE, None))
                index.remove([gone := next(iter(found))])
                del found[gone]
                index = xswe.load_index(folder)
        strays = [path.name for path in folder.iterdir() if path.name.startswith(".") or "journal" in path.name]
        strays += [path.name for path in sorted(folder.glob("arrays-*"))[1:]]
        strays += [path.name for path in (*folder.glob("*/progress.npz"), *folder.glob("arrays-1/../codes.npy"))]
    except XsweError as error:
        return f"wrong: {error}"
    return f"wrong: {strays} are left" if strays else state


def kill(bench: Bench, by: str) -> dict[str, Any]:
    """Kill a process that changes an index, and look what is left."""
    case, name = bench.chance.choice(CASES), bench.chance.choice(CHANGES)
    change = bench.change(case, name)
    with bench.copy(case, change) as folder:
        if by == "line":
            stop = bench.chance.randrange(int(bench.takes(case, change, by))) + 1
            status, said = in_child(lambda: traced(lambda: change.run(folder), stop))
        else:
            seconds = bench.chance.uniform(0, 1.1) * bench.takes(case, change, by)
            status, said = in_child(lambda: change.run(folder), seconds)
        journal = folder / "sentences.sqlite-journal"
        hot = journal.is_file() and journal.stat().st_size > 0
        if status not in (0, -signal.SIGKILL):
            return {"case": case, "change": name, "by": by, "hot": hot, "killed": False, "found": f"wrong: {said}"}
        code, found = in_child(lambda: problem(folder, change))
    return {
        "case": case,
        "change": name,
        "by": by,
        "hot": hot,
        "killed": status != 0,
        "found": found if not code else f"wrong: {found}",
    }


FAULTS = ("flip", "cut", "zeros")


def damaged(data: bytes, fault: str, chance: random.Random) -> bytes:
    """Return other bytes."""
    start = chance.randrange(len(data))
    if fault == "cut":
        return data[:start]
    if fault == "zeros":
        stop = min(len(data), start + 2 ** chance.randrange(17))
        return data[:start] + bytes(stop - start) + data[stop:]
    return data[:start] + bytes([data[start] ^ chance.randrange(1, 256)]) + data[start + 1 :]


def answers(folder: Path, queries: list[str], rows: int) -> str:
    """Open an index, and return all that it answers, or the error that it ends with."""
    try:
        index = xswe.load_index(folder)
        found = [
            index.search(queries, k=5, rescored=20, threads=1),
            index.search(queries[:1], k=rows, rescored=EVERY, threads=1),
        ]
        return repr([[list(hits) for hits in lists] for lists in found] + [[index[row] for row in range(rows)], len(index)])
    except XsweError as error:
        return f"error: {error}"


def verified(folder: Path) -> str:
    """Return what verification says of an index."""
    try:
        xswe.load_index(folder).verify()
    except XsweError as error:
        return f"error: {error}"
    return "whole"


def flip(bench: Bench, queries: list[str], right: dict[Case, str]) -> dict[str, Any]:
    """Damage a file of an index, ask, and bring the file back."""
    case, fault = bench.chance.choice(CASES), bench.chance.choice(FAULTS)
    folder = bench.whole(case)
    files = [
        path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size
    ]
    kind = bench.chance.choice(sorted({kind_of(name) for name in files}))
    while True:
        path = folder / bench.chance.choice([name for name in files if kind_of(name) == kind])
        data, state = path.read_bytes(), path.stat()
        if data and (other := damaged(data, fault, bench.chance)) != data:
            break
    row = {"case": case, "file": path.relative_to(folder).as_posix(), "fault": fault}
    try:
        path.write_bytes(other)
        status, said = in_child(lambda: answers(folder, queries, bench.size))
        noticed = (0, "") if said.startswith("error: ") else in_child(lambda: verified(folder))
    finally:
        path.write_bytes(data)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    named = path.name in said
    if status or not (said.startswith("error: ") or said == right[case]):
        return {**row, "found": f"wrong: status {status}, {said[:300]}", "named": named}
    if noticed[0]:
        return {**row, "found": f"wrong: {noticed[1][:300]}", "named": False}
    if said.startswith("error: "):
        return {**row, "found": "error", "named": named, "said": said}
    return {**row, "found": "right", "named": path.name in noticed[1]}


@contextmanager
def small_steps() -> Iterator[None]:
    """Make sign bits of few sentences, write a change to the database's file before it is whole, and load models once."""
    before = writer_module._MIN_SIGNED, sentences_module._WRITE_CACHE, compaction_module._PIECE
    writer_module._MIN_SIGNED, sentences_module._WRITE_CACHE, compaction_module._PIECE = 200, 16, 64
    try:
        with shared_models():
            yield
    finally:
        writer_module._MIN_SIGNED, sentences_module._WRITE_CACHE, compaction_module._PIECE = before


def kills(bench: Bench, count: int) -> list[dict[str, Any]]:
    """Kill so many processes, by turns at a random moment and at a random line; some that are begun end before."""
    rows: list[dict[str, Any]] = []
    while sum(row["killed"] for row in rows) < count:
        rows.append(kill(bench, ("line", "moment")[len(rows) % 2]))
    return rows


def flips(bench: Bench, count: int) -> list[dict[str, Any]]:
    """Damage so many files, one at a time."""
    queries = bench.texts[:: bench.size // 20][:20]
    right = {case: in_child(lambda case=case: answers(bench.whole(case), queries, bench.size))[1] for case in CASES}
    return [flip(bench, queries, right) for _ in range(count)]


def kind_of(file: str) -> str:
    """Return the kind of a file of an index."""
    return "model" if file.startswith("model/") else file


def summary(killed: list[dict[str, Any]], flipped: list[dict[str, Any]]) -> dict[str, Any]:
    """Count what came of kills and of flips."""
    changes = {}
    for name in CHANGES:
        rows = [row for row in killed if row["change"] == name]
        states = Counter(row["found"] if row["found"] in ("before", "after") else "wrong" for row in rows)
        hot = sum(row["hot"] for row in rows)
        stopped = sum(row["killed"] for row in rows)
        changes[name] = {
            "runs": len(rows),
            "killed": stopped,
            "hot_journals": hot,
            **{s: states[s] for s in ("before", "after", "wrong")},
        }
    files: dict[str, Any] = {}
    for row in flipped:
        found = "wrong" if row["found"].startswith("wrong") else row["found"]
        counts = files.setdefault(kind_of(row["file"]), {"runs": 0, "right": 0, "error": 0, "wrong": 0, "named": 0})
        counts["runs"] += 1
        counts[found] += 1
        counts["named"] += row["named"]
    return {"kills": changes, "flips": dict(sorted(files.items()))}


def main(settings: dict[str, Any]) -> None:
    """Break things, and print and write what came of it."""
    chance = random.Random(settings["seed"])
    with tempfile.TemporaryDirectory() as place, small_steps():
        bench = Bench(Path(place), settings["sentences"], chance)
        killed = kills(bench, settings["kills"])
        flipped = flips(bench, settings["flips"])
    wrong = [row for row in (*killed, *flipped) if row["found"].startswith("wrong")]
    for row in wrong:
        print(row, flush=True)
    about = {name: settings[name] for name in ("seed", "sentences")}
    result = {**about, **summary(killed, flipped), "wrong": [str(row) for row in wrong]}
    print(result["kills"], result["flips"], f"{len(wrong)} of {len(killed) + len(flipped)} wrong", sep="\n")
    if settings["output"]:
        write_json(settings["output"], result)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
