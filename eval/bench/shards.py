"""What shards cost, and what workers gain: shards that are joined, that hold nothing, one worker and two, whole commands.

    python -m eval.bench.shards data=$XSWE_DATA/train [parts=encode,nothing,workers,commands] [lines=300000] [rounds=7]
        [shards=10,100,1000,10000] [ray=true] [size=1.0] [verbs=encode,extract,mine] [commands=encode,filter,corpus,…]
        [turns=1] [output=eval/results/shards.json]

``encode``: a file into vectors as one stream; by shards that are joined; and into a file a shard (``parts``); in turns in
one process; processor seconds are compared, which a busy machine does not change much. ``nothing``: shards that hold
nothing: processor seconds a shard and this process's memory, here and on Ray, whose start is told apart. ``workers``:
encode, extract (with the teacher in the package) and mine (by clusters) in one process with one thread, and on a Ray of
this machine with one worker and with two, of one processor each. Of a run on Ray ``start`` is the time until a first shard
is begun, stage by stage (imports and a teacher to load), and ``work`` that from there to the end of the last shard; what
is left of ``seconds`` one process does. Processor seconds are those of the shards, and of the caller; those of the busier
of two workers tell, on a busy machine too, how evenly the shards were shared out. ``commands``: whole commands, from the
start of Python to its end, all on the same two processors, with two threads (``here``) and on a Ray that is there already,
each once on few lines before, then in ``turns``, of which the medians are printed. ``size`` scales both.

Seconds of the clock mean something only where nothing else runs; the load before is recorded. Parts that are not measured
stay in ``output`` as they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import xswe
from eval.bench.filter import pairs_in, write_pairs
from eval.bench.memory import memory
from eval.bench.mine import real_texts
from eval.bench.mine_large import make_vectors
from eval.settings import REQUIRED, ROOT, chosen, numbers, run_script
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.io.files import read_json, whole_file, write_json
from xswe.io.ragged import Texts
from xswe.mining.pipeline import MineConfig, mine_vectors
from xswe.model import encode_file
from xswe.search.lists import SearchConfig
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher
from xswe.text.subwords import SubwordUnits
from xswe.training.extract import ExtractConfig, LanguageSample, averaged, sums_by_shard
from xswe.work import run as work_run
from xswe.work.cluster import cluster
from xswe.work.config import ExecutionConfig
from xswe.work.run import run_shards
from xswe.work.stage import Stage

SETTINGS = {
    "data": REQUIRED,
    "model": "mini",
    "parts": "encode,nothing",
    "lines": 300_000,
    "rounds": 7,
    "shards": "10,100,1000,10000",
    "ray": "true",
    "size": 1.0,
    "verbs": "encode,extract,mine",
    "commands": "encode,filter,corpus,train,dedup,phrases,search,mine",
    "turns": 1,
    "output": "",
}


@dataclass(frozen=True)
class Nothing:
    """Write a file with nothing to speak of in it."""

    heavy: bool = False

    def open(self) -> None:
        """Load nothing."""

    def run(self, _: None, shard: int, output: Path) -> dict[str, Any]:
        """Write the shard's number."""
        with whole_file(output, crowded=True) as temporary:
            temporary.write_text(str(shard))
        return {"lines": 1}

    def files(self, output: Path) -> list[Path]:
        """Return the file."""
        return [output]


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Return seconds of the clock and of this process's processor, and the load before."""
    load, clock, processor = os.getloadavg()[0], time.monotonic(), time.process_time()
    work()
    taken = {"seconds": time.monotonic() - clock, "processor_seconds": time.process_time() - processor, "load": load}
    return {name: round(value, 3) for name, value in taken.items()}


def encoding(settings: dict[str, Any], place: Path, dtype: str) -> dict[str, Any]:
    """Encode by shards and without, in turns."""
    model, text = xswe.load(settings["model"]), place / "a.txt"
    write_pairs(Path(settings["data"]), settings["lines"], text)
    ways = {
        "stream": lambda: xswe.encode_file(model, text, place / "a.npy", dtype=dtype, threads=1),
        "shards": lambda: xswe.encode_file(model, [text, place / "none.txt"], place / "b.npy", dtype=dtype, threads=1),
        "parts": lambda: xswe.encode_file(model, text, place / "parts" / "*.npy", dtype=dtype, threads=1),
    }
    (place / "none.txt").write_bytes(b"")  # a second file makes shards of it, whoever does them
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for turn in range(settings["rounds"] + 1):
        for name, work in ways.items():
            shutil.rmtree(place / "parts", ignore_errors=True)
            row = timed(work)
            if turn:  # the first compiles
                rounds[name].append(row)
    if (place / "a.npy").read_bytes() != (place / "b.npy").read_bytes():
        raise AssertionError("the bytes differ")
    ratios = {
        name: median(
            row["processor_seconds"] / stream["processor_seconds"]
            for stream, row in zip(rounds["stream"], rounds[name], strict=True)
        )
        for name in ("shards", "parts")
    }
    return {"lines": settings["lines"], "rounds": rounds, "processor_ratios": ratios}


def handing_out(count: int, place: Path, execution: ExecutionConfig) -> dict[str, Any]:
    """Do so many shards that hold nothing."""
    stage = Stage(place / f"{execution.kind}-{count}", "nothing", count, ".txt", Nothing(), "nothing")
    stage.begin()
    row = timed(lambda: run_shards(stage, execution, 1))
    print(execution.kind, count, row, flush=True)
    again = timed(lambda: run_shards(stage, execution, 1))  # all are done: what a run costs that only looks
    return {
        "shards": count,
        **row,
        "processor_ms_a_shard": round(1000 * row["processor_seconds"] / count, 3),
        "look_ms_a_shard": round(1000 * again["processor_seconds"] / count, 3),
        "resident_mib": round(memory("VmRSS") / 2**20, 1),
    }


@dataclass(frozen=True)
class Timed:
    """A job that tells when it was at work on a shard, and what that took of the processor."""

    job: Any

    @property
    def heavy(self) -> bool:
        """Whether it loads a teacher."""
        return bool(self.job.heavy)

    def open(self) -> Any:
        """Load what the job needs."""
        return self.job.open()

    def share(self, opened: Any) -> None:
        """Write what others need to open it."""
        self.job.share(opened)

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Do a shard."""
        begun, processor = time.time(), time.process_time()
        counts = self.job.run(opened, shard, output)
        processor = time.process_time() - processor
        return {**counts, "begun": begun, "ended": time.time(), "processor": processor, "worker": os.getpid()}

    def files(self, output: Path) -> list[Path]:
        """Return the files of a shard."""
        return list(self.job.files(output))


@contextmanager
def watched(*modules: Any) -> Iterator[list[dict[str, float]]]:
    """Let the stages that some modules run be timed inside the block; yields a row a stage."""
    stages: list[dict[str, float]] = []

    def run(stage: Stage, execution: ExecutionConfig, *rest: Any, **more: Any) -> None:
        called = time.time()
        run_shards(replace(stage, job=Timed(stage.job)), execution, *rest, **more)
        told = [stage.counts(shard) or {} for shard in range(stage.count)]
        first = min(one["begun"] for one in told)
        took = {"start": first - called, "work": max(one["ended"] for one in told) - first}
        workers: Counter[int] = Counter()
        for one in told:
            workers[one["worker"]] += one["processor"]
        of_all = {"processor": sum(workers.values()), "busiest": max(workers.values()), "shards": stage.count}
        stages.append({**took, **of_all})

    for module in modules:
        module.run_shards = run
    try:
        yield stages
    finally:
        for module in modules:
            module.run_shards = run_shards


def a_run(work: Callable[[ExecutionConfig], Any], execution: ExecutionConfig) -> dict[str, float]:
    """Time a run, and what is by shards in it."""
    with watched(encode_file, work_run) as stages:
        row = timed(lambda: work(execution))
    found = {f"{name}_seconds": sum(stage[name] for stage in stages) for name in ("start", "work")}
    processor = row["processor_seconds"] + (sum(stage["processor"] for stage in stages) if execution.kind == "ray" else 0)
    found |= {"processor_seconds": processor, "shards": sum(stage["shards"] for stage in stages)}
    found["busiest_worker_seconds"] = sum(stage["busiest"] for stage in stages)  # of its processor
    return row | {name: round(value, 3) for name, value in found.items()}


Work = Callable[[ExecutionConfig], Any]


def encode(settings: dict[str, Any], place: Path, lines: int) -> Work:
    """Return what encodes lines of real text into int8, a file a shard."""
    model, text = xswe.load(settings["model"]), place / "lines.txt"
    write_pairs(Path(settings["data"]), lines, text)

    def work(execution: ExecutionConfig) -> Any:
        shutil.rmtree(place / "parts", ignore_errors=True)
        output = place / "parts" / "*.npy"
        return xswe.encode_file(model, text, output, dtype="int8", threads=1, execution=execution)

    return work


def extraction(settings: dict[str, Any], place: Path, lines: int) -> Work:
    """Return what extracts all pieces of real sentences of two languages."""
    teacher = load_teacher(TeacherConfig(threads=1))
    units, how = SubwordUnits(teacher.tokenizer, "teacher", ("en", "de")), ExtractConfig(isolated=False)
    every, samples = ContextConfig(lines, lines, "first"), []
    for code, sentences in zip(units.languages, real_texts(Path(settings["data"]).parent), strict=True):
        texts = list(islice(cycle(sentences), lines // 2))
        bags = units.bags(texts)
        contexts = choose_contexts(bags, len(units.tokens), every)
        kept = Texts.of(texts[row] for row in contexts.sentences)
        samples.append(LanguageSample(code, kept, contexts, bags.counts(len(units.tokens))))

    def work(execution: ExecutionConfig) -> Any:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            what = teacher, units, samples, how
            return averaged(*what, sums_by_shard(*what, Path(folder), execution))

    return work


def mine(settings: dict[str, Any], place: Path, lines: int) -> Work:
    """Return what mines the vectors of eval.bench.mine_large, by clusters."""
    make_vectors(lines, settings["model"], place / "vectors")
    sides = place / "vectors" / "a.npy", place / "vectors" / "b.npy"

    def work(execution: ExecutionConfig) -> Any:
        config = MineConfig(threshold=None, neighbours=SearchConfig(method="clusters", threads=1), execution=execution)
        if execution.kind == "local":
            return mine_vectors(*sides, config)
        with tempfile.TemporaryDirectory(dir=place) as folder:
            return mine_vectors(*sides, config, Path(folder))

    return work


# What two workers share, the lines of it (a side), and those that both are warmed up with.
VERBS = {"encode": (encode, 4_000_000, 20_000), "extract": (extraction, 65_536, 800), "mine": (mine, 300_000, 20_000)}


def workers(settings: dict[str, Any], place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Do the same by this process, by one worker and by two; yields what each verb took."""
    ways = {"here": ExecutionConfig(), **{str(n): ExecutionConfig("ray", workers=n) for n in (1, 2)}}
    for verb in chosen(settings["verbs"], "verbs", list(VERBS)):
        make, lines, few = VERBS[verb]
        small = make(settings, place, few)  # what is compiled, and what workers import, is told apart
        small(ways["here"])
        small(replace(ways["2"], shard=1 << 18))  # shards enough for both
        lines = round(settings["size"] * lines)
        work = make(settings, place, lines)
        rows = {}
        for way, execution in ways.items():
            rows[way] = a_run(work, execution)
            print(verb, way, rows[way], flush=True)
        one, two, here = rows["1"], rows["2"], rows["here"]
        found = {
            "lines": lines,
            "cores": len(os.sched_getaffinity(0)),
            "runs": rows,
            "speedup": round(one["work_seconds"] / two["work_seconds"], 3),
            "speedup_of_all": round((one["seconds"] - one["start_seconds"]) / (two["seconds"] - two["start_seconds"]), 3),
            "overhead": round((one["seconds"] - one["start_seconds"]) / here["seconds"], 3),
            "one_to_busier_of_two": round(one["busiest_worker_seconds"] / two["busiest_worker_seconds"], 3),
            "processor_two_to_one": round(two["processor_seconds"] / one["processor_seconds"], 3),
            "processor_one_to_here": round(one["processor_seconds"] / here["processor_seconds"], 3),
        }
        print(verb, {name: value for name, value in found.items() if name != "runs"}, flush=True)
        yield verb, found


# Whole commands, how many lines two processors work at for a minute or so, and how many before, to be warm.
COMMANDS = {
    "encode": ("model=mini input=a.txt output=out/*.npy dtype=int8", 40_000_000, 50_000),
    "filter": ("model=mini input=pairs.tsv output=out.tsv languages=[en,de]", 14_000_000, 50_000),
    "corpus": ("corpus.paths=[pairs.tsv] pair=en-de output=out", 40_000_000, 50_000),
    "train": ("corpus.paths=[pairs.tsv] pair=en-de refine.max_steps=200 output=out", 24_000, 2_000),
    "dedup": ("model=mini input=a.txt output=out.txt near=null neighbours.method=clusters", 1_000_000, 50_000),
    "phrases": ("model=mini queries=queries.txt input=a.txt output=out.tsv", 16_000_000, 50_000),
    "search": ("model=mini input=a.txt index=out storage=int8 queries=query.txt", 24_000_000, 50_000),
    "mine": ("model=mini source=a.txt target=b.txt output=out.tsv neighbours.method=clusters", 600_000, 50_000),
}


def write_lines(data: Path, lines: int, words: str, place: Path) -> None:
    """Write the files that a command names, of pairs of English and German; texts that come again have a number."""
    columns = {"pairs.tsv": "{0}\t{1}\n", "a.txt": "{0}\n", "b.txt": "{1}\n"}
    seen: Counter[str] = Counter()
    with ExitStack() as stack:
        opened = {
            stack.enter_context((place / name).open("w", encoding="utf-8")): line
            for name, line in columns.items()
            if name in words
        }
        phrases = []
        for line in islice(cycle(pairs_in(data / "en-de")), lines):
            turn = seen[line] = seen[line] + 1
            texts = [text if turn == 1 else f"{text} {turn}" for text in line.split("\t")]
            for stream, form in opened.items():
                stream.write(form.format(*texts))
            if len(phrases) < 100:
                phrases.append(" ".join(texts[1].split()[:3]))
    (place / "queries.txt").write_text("\n".join(phrases) + "\n", encoding="utf-8")
    (place / "query.txt").write_text(f"{phrases[0]}\n", encoding="utf-8")  # of an index, whose building is timed


def a_command(verb: str, words: str, place: Path, *how: str) -> dict[str, float]:
    """Run a command of the package in a folder, and return seconds of the clock and the load before; no output stays."""
    call, load, clock = [sys.executable, "-m", "xswe", verb, *words.split(), *how], os.getloadavg()[0], time.monotonic()
    done = subprocess.run(call, cwd=place, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - clock
    if done.returncode:
        raise SystemExit(f"{' '.join(call)}\n{done.stderr[-2000:]}")
    for path in place.glob("out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"seconds": round(seconds, 3), "load": round(load, 2)}


def commands(settings: dict[str, Any], place: Path, ray: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run whole commands here and on two workers; yields what each took."""
    address = f"execution.address={ray.get_runtime_context().gcs_address}"
    ways = {"here": ["threads=2"], "2": ["threads=2", "execution=ray", "execution.workers=2", address]}
    for verb in chosen(settings["commands"], "commands", list(COMMANDS)):
        words, most, few = COMMANDS[verb]
        found: dict[str, Any] = {"lines": round(settings["size"] * most), "cores": len(os.sched_getaffinity(0))}
        for lines, turns in ((few, 1), (found["lines"], settings["turns"])):
            write_lines(Path(settings["data"]), lines, words, place)
            rows = [{way: a_command(verb, words, place, *how) for way, how in ways.items()} for _ in range(turns)]
        found["runs"] = {way: [row[way] for row in rows] for way in ways}
        seconds = {way: median(row[way]["seconds"] for row in rows) for way in ways}
        found |= {"seconds": seconds, "overhead": round(seconds["2"] / seconds["here"], 3)}
        print(verb, found, flush=True)
        yield verb, found


PARTS = ("encode", "nothing", "workers", "commands")


def main(settings: dict[str, Any]) -> None:
    """Measure, and print and write the figures."""
    parts, output = chosen(settings["parts"], "parts", PARTS), settings["output"]
    found: dict[str, Any] = read_json(output) if output and Path(output).is_file() else {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        if "encode" in parts:
            found["encode"] = {dtype: encoding(settings, place, dtype) for dtype in ("float32", "int8")}
        counts = numbers(settings["shards"], "shards")
        if "nothing" in parts:
            found["local"] = [handing_out(count, place, ExecutionConfig()) for count in counts]
        if {"workers", "commands"} & set(parts) or ("nothing" in parts and settings["ray"] == "true"):
            os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            if "commands" in parts:  # of threads, workers, what hands out and what reads ahead
                os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
            clock = time.monotonic()
            ray = stack.enter_context(cluster(ExecutionConfig("ray", address="local")))
            found["ray_start_seconds"] = round(time.monotonic() - clock, 1)
        if "nothing" in parts and settings["ray"] == "true":
            found["ray"] = [handing_out(count, place, ExecutionConfig("ray")) for count in counts]
        for part in {"workers", "commands"} & set(parts):
            rows = workers(settings, place) if part == "workers" else commands(settings, place, ray)
            for verb, row in rows:
                found.setdefault(part, {})[verb] = row
                if output:
                    write_json(output, found)
    print(found)
    if output:
        write_json(output, found)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
