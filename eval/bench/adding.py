"""How long those wait who search an index while sentences are added to it.

    python -m eval.bench.adding data=$XSWE_DATA/train output=eval/results/adding.json [sentences=320000] [added=1280000]

puts distinct sentences of the bitexts under ``data`` into an index, and asks it for one sentence after the other: for
``seconds`` while nothing else happens; while another process adds ``added`` sentences at once, of ``data`` as well and with
a number behind them; and while a thread of the same process does. Whoever asks refreshes the index once a second, which is
measured apart, and so is the first search behind it. Told are, for each method, the searches, the median, the 99th
percentile and the longest wait in milliseconds, when the longest began as a share of the addition, and how many waits were
over 50 ms. Where there are no more processors than threads at work, what is measured is also the system's scheduler:
``threads`` of those who add leave one to those who ask.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.bench.search import sentences
from eval.settings import REQUIRED, run_script
from xswe.io.files import write_json
from xswe.io.results import table

SETTINGS = {
    "data": REQUIRED,
    "model": "mini",
    "sentences": 320_000,
    "added": 1_280_000,
    "seconds": 10.0,
    "threads": 1,
    "output": "",
}
_LONG = 50.0  # milliseconds that nobody should wait
_ADD = "import sys, xswe; xswe.load_index(sys.argv[1]).add(sys.argv[2], threads=int(sys.argv[3]))"
Waits = list[tuple[float, float]]  # when a call began, and the milliseconds that it took


def numbered(texts: list[str], count: int) -> Iterator[str]:
    """Yield so many sentences, each with a number behind it."""
    return (f"{texts[number % len(texts)]} {number}" for number in range(count))


def ask(index: Any, questions: list[str], goes_on: Callable[[], bool]) -> dict[str, Waits]:
    """Ask one question after the other; return the waits by kind."""
    waits: dict[str, Waits] = {"search": [], "refresh": [], "search after refresh": []}

    def timed(kind: str, call: Callable[[], Any]) -> None:
        began = time.perf_counter()
        call()
        waits[kind].append((began, 1000 * (time.perf_counter() - began)))

    number, refreshed, kind = 0, time.perf_counter(), "search"
    while goes_on():
        question = questions[number % len(questions)]
        timed(kind, lambda: index.search(question, threads=1))  # noqa: B023
        number, kind = number + 1, "search"
        if time.perf_counter() - refreshed > 1:
            timed("refresh", index.refresh)
            refreshed, kind = time.perf_counter(), "search after refresh"
    return waits


def summary(waits: dict[str, Waits]) -> list[dict[str, Any]]:
    """Return a row of figures for each kind of call."""
    first, last = min(when for own in waits.values() for when, _ in own), max(waits["search"])[0]
    rows = []
    for kind, own in waits.items():
        if own:
            took = np.array([wait for _, wait in own])
            median, most = np.quantile(took, [0.5, 0.99]).tolist()
            when = own[int(took.argmax())][0]
            rows.append({"call": kind, "calls": len(own), "p50_ms": round(median, 2), "p99_ms": round(most, 2)})
            rows[-1] |= {"longest_ms": round(float(took.max()), 1), "over_50_ms": int((took > _LONG).sum())}
            rows[-1]["longest_at"] = round((when - first) / max(last - first, 1e-9), 3)
    return rows


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Return what is True for so long."""
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end


def measure(index: Any, questions: list[str], file: Path, settings: dict[str, Any]) -> Iterable[tuple[str, Any, float]]:
    """Yield what happens meanwhile, the waits, and how many seconds it took."""
    index.search(questions[0])  # what is compiled is loaded
    yield "nothing", ask(index, questions, for_seconds(settings["seconds"])), settings["seconds"]
    began = time.perf_counter()
    command = [sys.executable, "-c", _ADD, str(index.folder), str(file), str(settings["threads"])]
    with subprocess.Popen(command) as process:
        waits = ask(index, questions, lambda: process.poll() is None)
        if process.returncode:
            raise SystemExit("the addition failed")
    yield "a process adds", waits, time.perf_counter() - began
    began = time.perf_counter()
    thread = threading.Thread(target=index.add, args=(file,), kwargs={"threads": settings["threads"]})
    thread.start()
    waits = ask(index, questions, thread.is_alive)
    thread.join()
    yield "a thread adds", waits, time.perf_counter() - began


def main(settings: dict[str, Any]) -> None:
    """Measure, print, and write."""
    model, load = xswe.load(settings["model"]), os.getloadavg()[0]
    texts = sentences(Path(settings["data"]), settings["sentences"] + 100)
    questions, texts, rows = texts[:100], texts[100:], []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "added.txt"
        with open(file, "w", encoding="utf-8") as stream:
            stream.writelines(f"{text}\n" for text in numbered(texts, settings["added"]))
        for method in ("exact", "binary"):
            index: Any = xswe.index(model, texts, folder=Path(place) / method, method=method)
            for meanwhile, waits, seconds in measure(index, questions, file, settings):
                for row in summary(waits):
                    rows.append({"method": method, "meanwhile": meanwhile, "seconds": round(seconds, 1), **row})
                    print(table(list(rows[-1]), [[str(one) for one in rows[-1].values()]]), flush=True)
            index.close()
    about = {name: settings[name] for name in ("model", "sentences", "added", "threads")}
    about |= {"processors": len(os.sched_getaffinity(0)), "load": {"before": round(load, 1)}}
    if settings["output"]:
        write_json(settings["output"], {**about, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
