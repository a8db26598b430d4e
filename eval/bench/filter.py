"""How fast a bitext is filtered: pairs a second of the clock and of processor, by threads.

    python -m eval.bench.filter data=$XSWE_DATA/train pairs=1000000 [learned=en-de,en-ja,en-zh] [rounds=3]
        output=eval/results/filter_speed.json

takes the pairs of all bitexts under ``data``, again from the first where they are not enough (then without the filter of
duplicates), and filters them from a file into another by the cosine, with 1 thread and with all. Rounds are taken in turns,
the fastest counts. ``busy`` is seconds of processor a second of the clock: how many processors the whole run kept at work,
reading and writing included.

For each of ``learned`` the bitexts in that folder are filtered by what is learnt, on one thread: 50,000 pairs, 200,000, and
150,000 encoded alone, in turns. What a pair costs is the difference of the first two, so that what is learnt from a sample
once a file is not in it but told beside; what it costs after its encoding is that without the third. Medians of the rounds.
To be run on a machine that does nothing else; the load before each run is kept with the figures.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.settings import REQUIRED, run_script
from xswe.io.files import write_json
from xswe.io.lines import read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import table

SETTINGS = {"data": REQUIRED, "model": "mini", "learned": "", "pairs": 1_000_000, "rounds": 3, "output": ""}
FEW, MANY = 50_000, 200_000


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


def by_cosine(model: Any, data: Path, settings: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    """Filter the pairs of all bitexts by their cosines, with 1 thread and with all."""
    bitext, few, output = place / "bitext.tsv", place / "few.tsv", place / "kept.tsv"
    available = write_pairs(data, settings["pairs"], bitext)
    write_pairs(data, 5000, few)
    measure(model, few, output, 1)  # compiles
    best: dict[int, dict[str, Any]] = {}
    for _ in range(settings["rounds"]):
        for threads in sorted({1, available_threads()}):
            row = measure(model, bitext, output, threads, duplicates=available >= settings["pairs"])
            if threads not in best or row["pairs_per_second"] > best[threads]["pairs_per_second"]:
                best[threads] = row
    return list(best.values())


def by_what_is_learnt(model: Any, data: Path, languages: str, rounds: int, place: Path) -> dict[str, Any]:
    """Filter a language pair's bitexts by what is learnt from them, on one thread, and encode what is added alone."""
    texts = {}
    for pairs in (FEW, MANY):
        texts[pairs] = place / f"{languages}.{pairs}.tsv"
        write_pairs(data / languages, pairs, texts[pairs])
    added = [line.split("\t") for _, line in islice(read_lines(texts[MANY]), FEW, None)]
    sides = [list(side) for side in zip(*added, strict=True)]
    seconds: dict[str, list[float]] = {"few": [], "many": [], "encoding": []}
    loads = []

    def clock(name: str, run: Callable[[], object]) -> None:
        loads.append(os.getloadavg()[0])
        start = time.monotonic()
        run()
        seconds[name].append(time.monotonic() - start)

    how: dict[str, Any] = {"languages": tuple(languages.split("-")), "threads": 1, "duplicates": False}
    xswe.filter(model, texts[FEW], place / "kept.tsv", **how)  # compiles
    for _ in range(rounds):
        clock("few", lambda: xswe.filter(model, texts[FEW], place / "kept.tsv", **how))
        clock("many", lambda: xswe.filter(model, texts[MANY], place / "kept.tsv", **how))
        clock("encoding", lambda: [model.encode(side, threads=1) for side in sides])
    few, many, encoding = (float(np.median(seconds[name])) for name in ("few", "many", "encoding"))
    return {
        "languages": languages,
        "pairs_per_second": round((MANY - FEW) / (many - few)),
        "pairs_per_second_encoded": round((MANY - FEW) / encoding),
        "pairs_per_second_after_encoding": round((MANY - FEW) / (many - few - encoding)),
        "seconds_once": round(few - (many - few) * FEW / (MANY - FEW), 2),
        "seconds": {name: [round(one, 2) for one in every] for name, every in seconds.items()},
        "load": round(max(loads), 2),
    }


def main(settings: dict[str, Any]) -> None:
    """Measure, and print and write the figures."""
    model, data = xswe.load(settings["model"]), Path(settings["data"])
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        learned = [
            by_what_is_learnt(model, data, languages, settings["rounds"], place)
            for languages in filter(None, str(settings["learned"]).split(","))
        ]
        rows = by_cosine(model, data, settings, place) if settings["pairs"] else []
    for shown in filter(None, (rows, learned)):
        print(table(list(shown[0]), [[str(value) for value in row.values()] for row in shown]))
    if settings["output"]:
        about = {key: settings[key] for key in ("pairs", "model", "rounds")}
        write_json(settings["output"], {**about, "rows": rows, "learned": learned})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
