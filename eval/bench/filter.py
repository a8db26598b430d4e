"""How fast a bitext is filtered: pairs a second of the clock and of processor, by threads.

    python -m eval.bench.filter data=$XSWE_DATA/train pairs=1000000 [languages=en,ja] [rounds=3]
        output=eval/results/filter_speed.json

takes the pairs of all bitexts under ``data``, again from the first where they are not enough (then without the filter of
duplicates), and filters them from a file into another, with 1 thread and with all. Rounds are taken in turns, the fastest
counts. ``busy`` is seconds of processor a second of the clock: how many processors the whole run kept at work, reading and
writing included. Without ``languages`` the cosine decides, with two of them what is learnt. To be run on a machine that
does nothing else; the load before each run is kept with the figures.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import xswe
from eval.settings import REQUIRED, run_script
from xswe.io.files import write_json
from xswe.io.lines import read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import table

SETTINGS = {"data": REQUIRED, "model": "mini", "languages": "", "pairs": 1_000_000, "rounds": 3, "output": ""}


def pairs_in(data: Path) -> list[str]:
    """Return the pairs of all files of a folder, a tab between."""
    return [
        "\t".join(line.split("\t")[:2])
        for path in sorted(data.rglob("*.tsv*"))
        for _, line in read_lines(path)
        if line and "\t" in line
    ]


def write_pairs(data: Path, most: int, output: Path) -> int:
    """Write so many pairs into one file; returns how many there are before the first is repeated."""
    pairs = pairs_in(data)
    with output.open("w", encoding="utf-8") as stream:
        stream.writelines(pair + "\n" for pair in islice(cycle(pairs), most))
    return len(pairs)


def measure(model: Any, bitext: Path, output: Path, threads: int, **settings: Any) -> dict[str, Any]:
    """Filter once."""
    load, clock, processor = os.getloadavg()[0], time.monotonic(), time.process_time()
    found = xswe.filter(model, bitext, output, threads=threads, **settings)
    seconds, used = time.monotonic() - clock, time.process_time() - processor
    return {
        "threads": threads,
        "pairs_per_second": round(len(found) / seconds),
        "pairs_per_processor_second": round(len(found) / used),
        "busy": round(used / seconds, 2),
        "kept": int(found.kept.sum()),
        "load": round(load, 2),
    }


def main(settings: dict[str, Any]) -> None:
    """Measure, and print and write the figures."""
    model = xswe.load(settings["model"])
    how: dict[str, Any] = {"languages": tuple(filter(None, str(settings["languages"]).split(",")))}
    with tempfile.TemporaryDirectory() as place:
        bitext, output = Path(place) / "bitext.tsv", Path(place) / "kept.tsv"
        available = write_pairs(Path(settings["data"]), settings["pairs"], bitext)
        few = Path(place) / "few.tsv"
        write_pairs(Path(settings["data"]), 5000, few)
        measure(model, few, output, 1, **how)  # compiles
        how["duplicates"] = available >= settings["pairs"]
        best: dict[int, dict[str, Any]] = {}
        for _ in range(settings["rounds"]):
            for threads in sorted({1, available_threads()}):
                row = measure(model, bitext, output, threads, **how)
                if threads not in best or row["pairs_per_second"] > best[threads]["pairs_per_second"]:
                    best[threads] = row
    rows = list(best.values())
    print(table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))
    if settings["output"]:
        about = {
            "pairs": settings["pairs"],
            "model": settings["model"],
            "languages": settings["languages"],
            "rounds": settings["rounds"],
        }
        write_json(settings["output"], {**about, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
