"""What an index of sentences costs: to build, to open, to ask.

    python -m eval.bench.search data=$XSWE_DATA/train sentences=1000000 output=eval/results/search.json

takes the distinct sentences of all bitexts under ``data``, all but ``questions`` of them into the index, and measures for
each method and storage: seconds of processor and clock to build, milliseconds to open, milliseconds of processor a question
and of clock (median and least, on all processors), questions a second that eight threads ask at the same time, megabytes on
the disk, and the share of the ten nearest of the exact search over float32 that are found. Seconds of processor count all
threads: on an idle machine with two processors a question takes about half of them.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.settings import REQUIRED, run_script
from xswe.io.files import write_json
from xswe.io.lines import read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import table

SETTINGS = {"data": REQUIRED, "model": "mini", "sentences": 1_000_000, "questions": 100, "output": ""}
_SIDE_BY_SIDE = 8  # threads that ask at the same time
KINDS = [("exact", "float32"), ("exact", "float16"), ("exact", "int8"), ("binary", "float32"), ("binary", "int8")]


def sentences(folder: Path, most: int, names: str = "*.tsv*") -> list[str]:
    """Return the distinct sentences of the bitexts of a folder, of all or of some names, in a fixed random order."""
    found: dict[str, None] = {}
    for path in sorted(folder.rglob(names)):
        for _, line in read_lines(path):
            found.update(dict.fromkeys((line or "").split("\t")))
    texts = list(found)
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))[:most].tolist()]


def measure(
    model: Any, texts: list[str], questions: list[str], method: Any, storage: Any
) -> tuple[dict[str, Any], list[set]]:
    """Build an index, open it anew, and ask; returns figures and the rows found."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "index"
        clock, processor = time.monotonic(), time.process_time()
        xswe.index(model, texts, folder=folder, method=method, storage=storage)
        built = time.monotonic() - clock, time.process_time() - processor
        clock = time.monotonic()
        index = xswe.load_index(folder)
        opened = time.monotonic() - clock
        index.search(questions[:3])  # pages of the files come from the system's cache from now on
        processor, waits, found = time.process_time(), [], []
        for question in questions:
            clock = time.monotonic()
            hits = index.search(question)
            waits.append(1000 * (time.monotonic() - clock))
            found.append({hit.row for hit in hits})
        used = 1000 * (time.process_time() - processor) / len(questions)
        clock = time.monotonic()
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            asked = len(list(pool.map(partial(index.search, threads=1), questions * 2)))
        together = asked / (time.monotonic() - clock)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    figures = {"method": method, "storage": storage, "build_s": round(built[0], 1), "build_cpu_s": round(built[1], 1)}
    figures |= {"open_ms": round(1000 * opened, 1), "question_cpu_ms": round(used, 2)}
    return figures | {
        "median_ms": round(float(np.median(waits)), 2),
        "least_ms": round(min(waits), 2),
        "side_by_side_per_s": round(together, 1),
        "mb": round(size),
    }, found


def main(settings: dict[str, Any]) -> None:
    """Measure all kinds, and print and write the figures."""
    model = xswe.load(settings["model"])
    texts = sentences(Path(settings["data"]), settings["sentences"] + settings["questions"])
    questions, texts = texts[: settings["questions"]], texts[settings["questions"] :]
    xswe.index(model, texts[:20_000]).search(questions[:1])  # compiles
    rows, truth = [], None
    for method, storage in KINDS:
        figures, found = measure(model, texts, questions, method, storage)
        truth = truth or found
        figures["recall_at_10"] = float(np.mean([len(a & b) / len(a) for a, b in zip(truth, found, strict=True)]))
        rows.append(figures)
        print(table(list(figures), [[v if k == "recall_at_10" else str(v) for k, v in figures.items()]]), flush=True)
    about = {
        "sentences": len(texts),
        "model": settings["model"],
        "threads": available_threads(),
        "load": os.getloadavg()[0],
    }
    if settings["output"]:
        write_json(settings["output"], {**about, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
