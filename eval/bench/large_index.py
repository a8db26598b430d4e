"""An index of ten million sentences on one machine: what it takes to build, in which memory, and to ask.

    python -m eval.bench.large_index data=$XSWE_DATA/train questions=$XSWE_DATA/dev output=eval/results/large_index.json

Sentences are the distinct ones of the bitexts under ``data`` as often as it takes, from the second time on with a number
behind them: there are near-duplicates of each, which makes the nearest harder to tell apart than in other collections. A
process of its own streams them from a file into an index with ``method=binary``, and says how much memory it had at most.
Then sentences of the WMT 23 bitexts under ``questions`` are asked one by one, on one thread and on all processors, of the
index as it has just been opened, and after ``between`` others: the first ones compare with its checksums what they read,
and have the system map it. Told are milliseconds of processor and clock (the median, and the least), and the share of the
exact ten that are found. The folder ``work``, by default a temporary one, takes about 400 bytes a sentence in
``storage=int8``, 1,400 in ``float32``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.bench.search import sentences
from eval.settings import REQUIRED, run_script
from xswe.io.files import write_json
from xswe.io.parallel import available_threads
from xswe.io.results import table

SETTINGS = {
    "data": REQUIRED,
    "questions": REQUIRED,
    "model": "mini",
    "sentences": 10_000_000,
    "distinct": 1_000_000,
    "asked": 100,
    "between": 400,
    "storage": "int8",
    "work": "",
    "output": "",
}
_BUILD = "import sys; from eval.bench.large_index import build; build(*sys.argv[1:])"


def variants(file: Path, most: int) -> Iterator[str]:
    """Yield so many sentences: those of a file, again and again, with a number behind them from the second time on."""

    def every() -> Iterator[str]:
        for number in count():
            with open(file, encoding="utf-8") as lines:
                for line in lines:
                    yield f"{line.rstrip()} {number}" if number else line.rstrip("\n")

    return islice(every(), most)


def build(model: str, file: str, most: str, folder: str, storage: Any) -> None:
    """Build an index, and print the seconds of clock and processor that it took, and the most memory in megabytes."""
    clock, loaded = time.monotonic(), xswe.load(model)
    xswe.index(loaded, variants(Path(file), int(most)), folder=folder, method="binary", storage=storage)
    with open("/proc/self/status", encoding="ascii") as status:  # pages of mapped files count
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(time.monotonic() - clock, time.process_time(), peak / 1024)


def ask(index: Any, queries: np.ndarray, threads: int, **how: Any) -> tuple[list[set[int]], dict[str, float]]:
    """Ask for each vector alone; return the rows found, and milliseconds."""
    index.search(queries[:1], threads=threads, **how)
    found, clocks, processor = [], [], time.process_time()
    for query in queries:
        clock = time.monotonic()
        found.append({hit.row for hit in index.search(query[None], threads=threads, **how)[0]})
        clocks.append(1000 * (time.monotonic() - clock))
    used = 1000 * (time.process_time() - processor) / len(queries)
    return found, {"cpu_ms": used, "median_ms": float(np.median(clocks)), "least_ms": min(clocks)}


def main(settings: dict[str, Any]) -> None:
    """Measure, print, and write."""
    load, model, asked = os.getloadavg()[0], xswe.load(settings["model"]), settings["asked"]
    texts, rows = sentences(Path(settings["questions"]), 2 * asked + settings["between"], "wmt23.*"), list[dict[str, Any]]()
    first, between, later = np.split(model.encode(texts), [asked, asked + settings["between"]])
    with tempfile.TemporaryDirectory(dir=settings["work"] or None) as place:
        file, folder = Path(place) / "sentences.txt", Path(place) / "index"
        with open(file, "w", encoding="utf-8") as stream:
            stream.writelines(f"{text}\n" for text in sentences(Path(settings["data"]), settings["distinct"]))
        given = [settings["model"], str(file), str(settings["sentences"]), str(folder), settings["storage"]]
        done = subprocess.run([sys.executable, "-c", _BUILD, *given], check=True, capture_output=True, text=True)
        seconds, processor, peak = map(float, done.stdout.split())
        file.unlink()
        megabytes = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6
        exact = {"rescored": settings["sentences"]}
        with xswe.load_index(folder) as index:
            truth = {"first": ask(index, first[:20], available_threads(), **exact)[0]}
            truth["later"], figures = ask(index, later[:20], available_threads(), **exact)
        rows.append({"asked": "exact", "threads": available_threads(), **figures, "recall_at_10": 1.0})
        for threads in sorted({1, available_threads()}):
            with xswe.load_index(folder) as index:
                for when, queries in (("first", first), ("between", between), ("later", later)):
                    found, figures = ask(index, queries, threads)
                    if when in truth:
                        pairs = zip(truth[when], found, strict=False)
                        share = float(np.mean([len(a & b) / len(a) for a, b in pairs]))
                        rows.append({"asked": f"binary, {when}", "threads": threads, **figures, "recall_at_10": share})
    rows = [{name: round(one, 3) if isinstance(one, float) else one for name, one in row.items()} for row in rows]
    about = {name: settings[name] for name in ("model", "sentences", "distinct", "storage")}
    about |= {
        "build_s": round(seconds),
        "build_cpu_s": round(processor),
        "build_peak_mb": round(peak),
        "mb": round(megabytes),
    }
    about |= {"processors": available_threads(), "load": {"before": round(load, 1), "after": round(os.getloadavg()[0], 1)}}
    print(table(list(rows[0]), [[str(one) for one in row.values()] for row in rows]), about)
    if settings["output"]:
        write_json(settings["output"], {**about, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
