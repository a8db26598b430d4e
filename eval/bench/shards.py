"""What shards cost: processor seconds of a run by shards beside the same run without, and the memory of who hands them out.

    python -m eval.bench.shards data=$XSWE_DATA/train lines=200000 [shards=10,100,1000,10000] [ray=true]
        output=eval/results/shards.json

Encoding: a file into vectors as one stream; by shards that are joined; and into a file a shard (``parts``); in turns in one
process; processor seconds are compared, which a busy machine does not change much. Handing out: shards that hold
nothing: processor seconds a shard and this process's memory, here and on Ray, whose start is told apart. Seconds of the
clock are given as well, with the load, and mean something only where nothing else runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import xswe
from eval.bench.filter import write_pairs
from eval.bench.memory import memory
from eval.settings import REQUIRED, ROOT, numbers, run_script
from xswe.io.execution import ExecutionConfig, cluster, run_shards
from xswe.io.files import whole_file, write_json
from xswe.io.shards import Stage

SETTINGS = {
    "data": REQUIRED,
    "model": "mini",
    "lines": 200_000,
    "rounds": 3,
    "shards": "10,100,1000,10000",
    "ray": "true",
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


def encoding(settings: dict[str, Any], place: Path) -> dict[str, Any]:
    """Encode by shards and without, in turns."""
    model, text = xswe.load(settings["model"]), place / "a.txt"
    write_pairs(Path(settings["data"]), settings["lines"], text)
    ways = {
        "stream": lambda: xswe.encode_file(model, text, place / "a.npy", threads=1),
        "shards": lambda: xswe.encode_file(model, [text, place / "none.txt"], place / "b.npy", threads=1),
        "parts": lambda: xswe.encode_file(model, text, place / "parts" / "*.npy", threads=1),
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


def main(settings: dict[str, Any]) -> None:
    """Measure, and print and write the figures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found: dict[str, Any] = {"encode": encoding(settings, place)}
        counts = numbers(settings["shards"], "shards")
        found["local"] = [handing_out(count, place, ExecutionConfig()) for count in counts]
        if settings["ray"] == "true":
            os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            clock = time.monotonic()
            with cluster(ExecutionConfig("ray", address="local")):
                found["ray_start_seconds"] = round(time.monotonic() - clock, 1)
                found["ray"] = [handing_out(count, place, ExecutionConfig("ray")) for count in counts]
    print(found)
    if settings["output"]:
        write_json(settings["output"], found)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
