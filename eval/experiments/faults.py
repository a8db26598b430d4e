"""What becomes of work by shards when something breaks: killed workers and drivers, damaged and lost files, a full disk.

    python -m eval.experiments.faults times=20 [verb=encode] [by=ray]
        [faults=worker,twice,node,driver,damage,vanish,disk,objects,busy] [seed=0] output=eval/results/faults.json

Each time a verb (``encode``, ``mine``, ``mine-exact``, ``filter``, ``dedup``, ``search``, ``phrases``, ``corpus``,
``train``, or ``train-words``, which counts words and imitates vectors as well) runs with ``execution=ray`` on a Ray of
two nodes with a processor each, and at a random moment one thing breaks: a worker, a node or the driver is killed; a
file of a shard, or of what is made once for all shards, is damaged or lost; the disk is full (a small one in memory,
which only root can mount); Ray's store of objects is full; or the text is in a storage of this machine that answers every
third question with 503 (not for ``phrases``, ``corpus`` and ``train``, which read no such storage). Then the same command
runs until it ends well. With ``by=array`` three tasks of an array run at a time, of which one is killed and given again,
or all are, or one is given twice; there are no nodes and no store of objects. What is checked: the bytes are those of a
run in one process, shards that were done before are not done again (but for those that were damaged), whatever is said to
the user is one line, and nothing is left behind. What ``output`` holds of other verbs, ways and seeds stays.
"""

from __future__ import annotations

import glob
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, product
from pathlib import Path
from typing import Any

from eval.settings import chosen, run_script
from xswe.errors import ConfigError
from xswe.io.files import read_json, write_json
from xswe.io.resources import resource

FAULTS = ("worker", "twice", "node", "driver", "damage", "vanish", "disk", "objects", "busy")
SETTINGS = {"times": 20, "verb": "encode", "by": "ray", "faults": ",".join(FAULTS), "seed": 0, "output": ""}
SHARD = 200_000
OBJECTS = 100 << 20
NODE = {"num_cpus": 1, "object_store_memory": OBJECTS}
LOCAL = ("phrases", "corpus", "train", "train-words")
TASKS, PATIENCE = 3, 120  # of an array, and seconds for which they wait for each other
AMPLE = 1 << 30  # bytes of a disk that is not full
# The command, with a search, words and vectors to imitate cut into shards of a size that a job of seconds has many of.
MAIN = """import sys
from xswe.search import clusters, exact
exact._TILE_ROWS, clusters._ROWS, clusters._MAX_GROUP_PAIRS = 4096, 16384, 1 << 22
if "units=words" in sys.argv:
    from xswe.training import counting, teacher_vectors
    counting._TEXTS_PER_SHARD = teacher_vectors._SHARD = 1024
from xswe.__main__ import main
sys.exit(main())"""


Ways = list[list[str]]  # what is told of who does the work, a list a process


@dataclass(frozen=True)
class Case:
    """A verb and what it is given.

    Attributes:
        words: of the command, but for where it is done.
        name: of the output.
        key: of the output.
        told: files of an output that is a folder by which two are compared.
    """

    words: tuple[str, ...]
    name: str
    key: str = "output"
    told: tuple[str, ...] = ("",)

    def begin(self, output: Path, how: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Give the command, which is given again and again."""
        words = [sys.executable, "-c", MAIN, *self.words, "threads=1", f"{self.key}={output}", *how]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def content(self, output: Path) -> str:
        """Return what tells an output from another; nothing where it is not whole."""
        paths = [output / name for name in self.told]
        if not all(path.is_file() for path in paths):
            return ""
        return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def cases(place: Path) -> dict[str, Case]:
    """Write what the verbs read, and return them."""
    rows = (resource("corpora") / "sample" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    sides = list(zip(*(row.split("\t") for row in rows), strict=True))[:2]
    pairs = [f"{source}\t{target}" for source, target in zip(*sides, strict=True)]
    written = (
        ("a.txt", sum(sides, ()), 8),
        ("en.txt", sides[0], 12),
        ("de.txt", sides[1], 12),
        ("few.txt", sides[1], 2),
        ("pairs.tsv", pairs, 30),
        ("short.tsv", sorted(pairs, key=len)[:400], 42),
        ("shorter.tsv", sorted(pairs, key=len)[:400], 12),
        ("queries", sides[0][:20], 1),
    )
    for name, texts, copies in written:
        lines = [f"{copy} {text} {copy}\n" if copies > 1 else f"{text}\n" for copy in range(copies) for text in texts]
        (place / name).write_text("".join(lines), encoding="utf-8")
    clusters = ("neighbours.method=clusters", "neighbours.clusters=40", "storage=int8")
    mine = ("mine", "model=mini", f"source={place / 'en.txt'}", "filters.duplicates=false")
    text, asked = place / "a.txt", f"queries={place / 'queries'}"
    short = ("pca.dim=16", "pca.drop=0", "refine.max_steps=2", "contexts.per_unit=2000")
    short += ("corpus.max_held_out=20", "corpus.max_development=20")
    train = ("train", "pair=en-de", f"teacher.model={place / 'teacher'}", *short)
    words = (*train, "units=words", "objective=joint", f"corpus.paths={place / 'shorter.tsv'}")
    table = ("model/model.safetensors", "model/tokenizer.json")
    index = tuple(f"{name}.npy" for name in ("codes", "scales", "vectors"))
    sides_of = tuple(f"en-de.{side}.{part}.npy" for side in ("source", "target") for part in ("bytes", "offsets"))
    return {
        "encode": Case(("encode", "model=mini", f"input={text}"), "a.npy"),
        "mine": Case((*mine, f"target={place / 'de.txt'}", *clusters), "a.tsv"),
        "mine-exact": Case((*mine, f"target={place / 'few.txt'}", "neighbours.method=exact"), "a.tsv"),
        "filter": Case(("filter", "model=mini", f"input={place / 'pairs.tsv'}"), "a.tsv"),
        "dedup": Case(("dedup", "model=mini", f"input={place / 'en.txt'}", "near=null", *clusters), "a.txt"),
        "search": Case(("search", "model=mini", f"input={text}", asked), "index", "index", index),
        "corpus": Case(("corpus", "pair=en-de", f"corpus.paths={place / 'pairs.tsv'}"), "corpus", told=sides_of),
        "phrases": Case(("phrases", "model=mini", f"input={text}", asked), "a.tsv"),
        "train": Case((*train, "units=teacher", f"corpus.paths={place / 'short.tsv'}"), "run", told=table),
        "train-words": Case(words, "run", told=table),
    }


def small_teacher(folder: Path) -> None:
    """Write an encoder of which all is small but its vocabulary, mini's."""
    import torch
    from transformers import BertConfig, BertModel

    from xswe.teacher.transformer import mini_folder

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=32_001, **sizes)).save_pretrained(folder)
    for path in mini_folder().glob("*token*"):
        shutil.copy(path, folder)


class Busy(BaseHTTPRequestHandler):
    """A storage that has too much to do: every third question is answered with 503."""

    protocol_version = "HTTP/1.1"
    asked = count(1)

    def __init__(self, folder: Path, *given: Any) -> None:
        self._folder = folder
        super().__init__(*given)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer as to a GET, without the text."""
        self.do_GET()

    def do_GET(self) -> None:
        """Give a file, or the span of it that is asked for."""
        data = (self._folder / Path(self.path).name).read_bytes()
        low, _, high = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        begin, end = int(low), min(int(high or len(data)), len(data) - 1)
        refused = next(self.asked) % 3 == 0
        body = b"" if refused else data[begin : end + 1]
        self.send_response(503 if refused else 206 if "Range" in self.headers else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if not refused and "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


class Store(ThreadingHTTPServer):
    """A storage whose clients may be killed."""

    def handle_error(self, *_: object) -> None:
        """Say nothing of them."""


def side_cars(output: Path) -> dict[str, float]:
    """Return when each shard that is done was begun."""
    found = {}
    for path in glob.glob(f"{glob.escape(str(output))}*/**/[0-9]*[0-9].json", recursive=True):  # folders may be going
        try:
            found[path] = read_json(path)["begun"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def workers(address: str) -> list[int]:
    """Return the processes of the workers that this cluster, and no other, has at work."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = {int(line.split()[0]): line.split(None, 2)[1:] for line in listed.splitlines()[1:]}
    ours = {pid for pid, (_, what) in found.items() if "raylet" in what and address in what}
    return [
        pid
        for pid, (parent, what) in found.items()
        if what.startswith(("ray::attempt", "ray::Worker")) and int(parent) in ours
    ]


def full_objects(address: str, until: threading.Event) -> None:
    """Fill Ray's store of objects, until the run is over."""
    script = f"import ray,sys; ray.init(address={address!r}, log_to_driver=False); held=[]\n"
    script += f"for _ in range({OBJECTS >> 20}): held.append(ray.put(b'x' * (1 << 20)))\nprint('full', flush=True)\ninput()"
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as filler:
        until.wait()
        filler.kill()


def broken_file(stage_files: list[Path], fault: str, chance: random.Random) -> Path:
    """Damage one of some files, or remove it."""
    doomed = chance.choice(stage_files)
    if fault == "vanish":
        doomed.unlink()
    else:
        data = bytearray(doomed.read_bytes())
        data[chance.randrange(len(data))] ^= 0xFF
        doomed.write_bytes(data)
    return doomed


def prepared(output: Path) -> list[str]:
    """Return the records of what is made once for all shards."""
    return glob.glob(f"{glob.escape(str(output))}*/**/made.json", recursive=True)


def files_of(records: Iterable[str]) -> list[Path]:
    """Return the files that side-cars, and records of what is made once, tell of."""
    named = [(Path(record).parent, read_json(record)["files"]) for record in records]
    return sorted(folder / name for folder, files in named for name, size, *_ in files if size)


def belongs(path: Path, car: str) -> bool:
    """Tell whether a file is one of the shard that a side-car tells of."""
    return path.parent == Path(car).parent and path.name.startswith(f"{Path(car).stem}.")


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Callable[..., None]]:
    """Mount a small disk; yields what gives it another size, and other options."""

    def mount(size: int, *more: str) -> None:
        given = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *more]), "none", str(folder)]
        subprocess.run(given, check=True, stderr=subprocess.DEVNULL)

    try:
        mount(size)
    except (OSError, subprocess.CalledProcessError):
        raise ConfigError("faults=disk: this user may not mount a disk in memory; leave it out") from None
    try:
        yield lambda size, *more: mount(size, "remount", *more)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def used(folder: Path) -> int:
    """Return the bytes that a disk holds."""
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


@dataclass
class Whole:
    """What a run takes that nothing breaks.

    Attributes:
        content: of the output of one process.
        shards: how many there are.
        bytes: of the disk, at most.
    """

    content: str
    shards: int = 0
    bytes: int = 0

    def watch(self, case: Case, ways: Ways, folder: Path) -> None:
        """Run once by whoever takes part, and look on."""
        output, seen = folder / case.name, set[str]()
        with disk(folder, AMPLE):
            run = Run(case, output, ways)
            while run.at_work():
                self.bytes, seen = max(self.bytes, used(folder)), seen | set(side_cars(output))
                time.sleep(0.02)
            self.shards = len(seen)
            status, said = run.ended()
            if status or case.content(output) != self.content:
                raise AssertionError(f"without a fault the bytes are others; {said}")


class Run:
    """A command under way: one process, or each task of an array."""

    def __init__(self, case: Case, output: Path, ways: Ways) -> None:
        self._case, self._output, self._ways = case, output, ways
        self._tasks = [case.begin(output, how) for how in ways]

    def at_work(self) -> bool:
        """Tell whether it goes on; where a task of an array fails, the others are called off."""
        states = [task.poll() for task in self._tasks]
        if any(state not in (None, 0) for state in states):
            self.kill()
        return None in states

    def kill(self) -> None:
        """Kill all processes."""
        for task in self._tasks:
            task.kill()

    def kill_a_task(self, chance: random.Random) -> str:
        """Kill a task that is at work, if one is, and give it again; returns what the killed one had said."""
        alive = [number for number, task in enumerate(self._tasks) if task.poll() is None]
        if not alive:
            return ""
        number = chance.choice(alive)
        self._tasks[number].kill()
        said = self._tasks[number].communicate()[1]
        self._tasks[number] = self._case.begin(self._output, self._ways[number])
        return str(said).strip()

    def give_twice(self, chance: random.Random) -> None:
        """Begin a task a second time, while the first one goes on."""
        self._tasks.append(self._case.begin(self._output, chance.choice(self._ways)))

    def ended(self) -> tuple[int, str]:
        """Wait for the end; returns the status (of the first task that failed by itself, if any), and what was said."""
        while self.at_work():
            time.sleep(0.02)
        told = [(task.communicate()[1].strip(), task.returncode) for task in self._tasks]
        said = [(text, status) for text, status in told if status not in (0, -signal.SIGKILL)] or told
        return said[0][1], said[0][0]


def again(case: Case, ways: Ways, output: Path, kept: dict[str, float]) -> tuple[str, int]:
    """Run the command once more; returns what it says, and how many of the shards that were kept it does again."""
    redone, run = set(), Run(case, output, ways)
    while run.at_work():
        redone |= {car for car, begun in side_cars(output).items() if kept.get(car, begun) != begun}
        time.sleep(0.02)
    return run.ended()[1], len(redone)


def strike(fault: str, run: Run, nodes: Any, chance: random.Random) -> bool:
    """Kill what is to be killed; returns whether the work went on until then."""
    hit = run.at_work()
    if fault in ("driver", "damage", "vanish"):
        run.kill()
    elif fault == "worker" and nodes is None:
        run.kill_a_task(chance)
    elif fault == "twice":
        run.give_twice(chance)
    elif fault == "worker":
        while not (found := workers(nodes.address)) and run.at_work():  # none may be there yet
            time.sleep(0.05)
        hit = bool(found)
        if hit:
            os.kill(chance.choice(found), signal.SIGKILL)
    elif fault == "node":
        nodes.remove_node(sorted(nodes.worker_nodes, key=id)[0], allow_graceful=False)
        nodes.add_node(**NODE)
    return hit


def once(
    fault: str, case: Case, whole: Whole, nodes: Any, ways: Ways, chance: random.Random, folder: Path
) -> dict[str, Any]:
    """Run, break something, and go on; returns what was seen."""
    output, started, over = folder / case.name, time.monotonic(), threading.Event()
    filler = threading.Thread(target=full_objects, args=(nodes and nodes.address, over), daemon=True)
    if fault == "objects":
        filler.start()
    size = AMPLE if fault != "disk" else int(whole.bytes * chance.uniform(0.05, 0.95))
    with disk(folder, size) if fault == "disk" else nullcontext() as larger:
        first = Run(case, output, ways)
        wanted, pause = chance.randrange(whole.shards), chance.uniform(0, 0.3)
        seen = set(side_cars(output))
        while first.at_work() and len(seen) < wanted:
            time.sleep(0.02)
            seen |= set(side_cars(output))  # a step of several removes its shards when it is done
        time.sleep(pause)
        before, broken = side_cars(output), set()
        hit = strike(fault, first, nodes, chance)
        (after, said), redone = first.ended(), 0
        runs, kept = 1, side_cars(output)
        if larger is not None:
            hit = after != 0
            larger(AMPLE)
        if fault in ("damage", "vanish") and (files := files_of([*kept, *prepared(output)])):
            broken.add(broken_file(files, fault, chance))
        sound = {car: begun for car, begun in kept.items() if not any(belongs(path, car) for path in broken)}
        while runs < 4 and (not case.content(output) or (after and runs == 1)):  # whole or not, it is given again
            told, done_again = again(case, ways, output, sound)
            runs, said, redone = runs + 1, said or told, redone + done_again
        over.set()
        if fault == "objects":
            filler.join()
        left = [*folder.iterdir(), *output.glob("stages/*.shards")]
        return {
            "fault": fault,
            "hit_while_at_work": hit,
            "shards": whole.shards,
            "shards_done_when_it_broke": len(before),
            "broken": sorted(path.name for path in broken),
            "kept_for_the_next_run": len(sound),
            "of_them_done_again": redone,
            "first_exit": after,
            "runs": runs,
            "same_bytes": case.content(output) == whole.content,
            "lines_said": sum(not line.startswith("INFO ") for line in said.splitlines()) if after not in (0, -9) else 0,
            "said": said[-300:] if after not in (0, -9) else "",
            "left_behind": sorted(path.name for path in left if path != output),
            "seconds": round(time.monotonic() - started, 1),
        }


def ways_of(nodes: Any) -> Ways:
    """Return what each process that is started is told of who does the work: on a Ray, or as the tasks of an array."""
    shard = f"execution.shard={SHARD}"
    if nodes is not None:
        return [["execution=ray", f"execution.address={nodes.address}", shard, "execution.workers=2"]]
    every = ["execution=array", f"execution.count={TASKS}", f"execution.wait={PATIENCE}", shard]
    return [[*every, f"execution.index={index}"] for index in range(TASKS)]


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Start a Ray of two nodes."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args=NODE)
    nodes.add_node(**NODE)
    try:
        yield nodes
    finally:
        nodes.shutdown()


def main(settings: dict[str, Any]) -> None:
    """Break things, and print and write what came of it."""
    faults, verb, seed = chosen(settings["faults"], "faults", FAULTS), settings["verb"], settings["seed"]
    (by,) = chosen(settings["by"], "by", ("ray", "array"))
    unknown = (*("busy",) * (verb in LOCAL), *(("node", "objects") if by == "array" else ("twice",)))
    chance, rows = random.Random(seed), []
    if settings["output"] and Path(settings["output"]).is_file():
        rows = read_json(settings["output"])["runs"]
        rows = [row for row in rows if (row["verb"], row["by"], row["seed"]) != (verb, by, seed)]
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", XSWE_PROGRESS="0")
    with tempfile.TemporaryDirectory() as given, two_nodes() if by == "ray" else nullcontext() as nodes:
        place, ways = Path(given), ways_of(nodes)
        known = cases(place)
        if verb not in known:
            raise ConfigError(f"verb={verb}: choose from {', '.join(known)}")
        if verb.startswith("train"):
            small_teacher(place / "teacher")
        case, local = known[verb], place / "local" / known[verb].name
        if Run(case, local, [[]]).ended()[0]:
            raise AssertionError("one process cannot do it")
        whole = Whole(case.content(local))
        with tempfile.TemporaryDirectory() as folder:
            whole.watch(case, ways, Path(folder))
        store = Store(("127.0.0.1", 0), partial(Busy, place))  # type: ignore[arg-type]
        threading.Thread(target=store.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{store.server_port}"
        told = [word if word.startswith("queries=") else word.replace(str(place), there) for word in case.words]
        busy = replace(case, words=tuple(told))
        for _, fault in product(range(settings["times"]), [fault for fault in faults if fault not in unknown]):
            with tempfile.TemporaryDirectory() as folder:
                row = once(fault, busy if fault == "busy" else case, whole, nodes, ways, chance, Path(folder))
            rows.append({"verb": verb, "by": by, **row, "seed": seed})
            print(rows[-1], flush=True)
            if settings["output"]:
                write_json(settings["output"], {"runs": rows})
        store.shutdown()
    good = sum(row["same_bytes"] for row in rows)
    print(f"{good} of {len(rows)} runs ended with the bytes of one process")


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
