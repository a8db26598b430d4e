"""How cutting a corpus in three, and telling its equal sentences, scale with the number of rows; no text takes part.

    python -m eval.bench.rows sizes=1,10,100,250 folder=/tmp/bench output=eval/results/rows.json

makes bags of two units a row on the disk for each size, in millions of rows, and measures each phase in a process of its
own: seconds, and how much its memory grew (all of it, and the part that is not mapped from files). ``draw`` finds the rows
held out, and ``limit`` a fifth of all rows at random, as the corpus stage does; ``distinct`` the rows of which no earlier
one has an equal bag; ``equal`` numbers the bags. ``plain`` is numpy's permutation and unique, which hold all in memory;
it is left out above ``plain`` million rows. ``admit`` shows a conversion's memory of the pairs kept so many keys.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench.memory import memory, watched
from eval.settings import chosen, run_script
from xswe.corpus.bitext import CorpusConfig, draw, make_admission
from xswe.io.files import write_json
from xswe.io.ragged import Bags, bag_writer
from xswe.training.pairs import distinct_rows, equal_bags

BLOCK = 1 << 20
ADMITTED = 8192  # pairs at a time
APART = 20_000  # rows of the development and held-out parts
_ODD = np.uint64(0x9E3779B97F4A7C15)


def generate(folder: Path, rows: int) -> None:
    """Write bags of two units each; a tenth of the rows repeats an earlier one."""
    with bag_writer(folder, "source", 1 << 20) as out:
        for start in range(0, rows, BLOCK):
            number = np.arange(start, min(start + BLOCK, rows))
            number[number % 10 == 9] //= 3
            ids = np.stack([number & 0xFFFF, number >> 16], axis=1).astype(np.int32)
            out.append(ids.ravel(), 2 * np.arange(len(number) + 1))


def _digest(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def phase_draw(bags: Bags) -> str:
    """The rows held out, in their order."""
    return _digest(draw([0, 7], len(bags), APART)[0])


def phase_limit(bags: Bags) -> str:
    """The rows held out, and a fifth of all rows."""
    first, some = draw([0, 7], len(bags), APART, len(bags) // 5)
    return _digest(first, some.bits)


def phase_distinct(bags: Bags) -> str:
    """The rows of distinct bags."""
    return _digest(distinct_rows(bags))


def phase_equal(bags: Bags) -> str:
    """Numbers of equal bags."""
    return _digest(equal_bags(bags))


def phase_plain(bags: Bags) -> str:
    """The rows held out and those of distinct bags, by numpy in memory."""
    first = np.random.default_rng([0, 7]).permutation(len(bags))[:APART]
    ids = np.asarray(bags.ids).reshape(-1, 2)
    keys = ids[:, 0].astype(np.int64) << 32 | ids[:, 1]
    numbers = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return _digest(first) + " " + _digest(np.sort(np.unique(numbers, return_index=True)[1]))


def _folder(bags: Bags) -> Path | None:
    return Path(str(bags.ids.filename)).parent if isinstance(bags.ids, np.memmap) else None


def phase_admit(bags: Bags) -> str:
    """A conversion's memory of the pairs it kept."""
    admission = make_admission(CorpusConfig(), _folder(bags))
    none, kept = np.zeros((ADMITTED, 0), np.uint64), 0
    for start in range(0, len(bags), ADMITTED):
        numbers = np.arange(start + 1, min(start + ADMITTED, len(bags)) + 1, dtype=np.uint64)
        numbers[::10] //= np.uint64(2)  # seen before
        sides = none[: len(numbers)]
        kept += int((admission(numbers * _ODD, sides, sides, np.zeros(len(numbers), np.uint8)) == 0).sum())
    return str(kept)


RUN: dict[str, Callable[[Bags], str]] = {
    "draw": phase_draw,
    "limit": phase_limit,
    "distinct": phase_distinct,
    "equal": phase_equal,
    "plain": phase_plain,
    "admit": phase_admit,
}
DEFAULTS: dict[str, Any] = {"sizes": "1,10,100,250", "phases": ",".join(RUN), "plain": 100.0, "folder": "bench-rows"}
DEFAULTS |= {"output": "rows.json", "phase": ""}


def measure(phase: str, folder: Path) -> dict[str, object]:
    """Run a phase in this process and measure it; its compiled code is loaded before."""
    small = Bags(np.zeros(200, np.int32), 2 * np.arange(101))
    RUN[phase](small)
    bags = Bags.open(folder, "source")
    before = memory("VmRSS")
    with watched() as own:
        begun = time.monotonic()
        found = RUN[phase](bags)
        seconds = time.monotonic() - begun
    return {
        "phase": phase,
        "rows": len(bags),
        "found": found,
        "seconds": round(seconds, 2),
        "grown_mib": (memory("VmHWM") - before) >> 20,
        "peak_anonymous_mib": own[0] >> 20,
    }


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write the figures."""
    if settings["phase"]:  # of a process that this script has started
        print(json.dumps(measure(settings["phase"], Path(settings["folder"]))))
        return
    phases = chosen(settings["phases"], "phases", list(RUN))
    rows: list[dict[str, object]] = []
    for size in map(float, settings["sizes"].split(",")):
        folder = Path(settings["folder"]) / f"{size:g}"
        folder.mkdir(parents=True, exist_ok=True)
        generate(folder, int(size * 1e6))
        for phase in phases:
            if phase == "plain" and size > settings["plain"]:
                continue
            command = [sys.executable, "-m", "eval.bench.rows", f"phase={phase}", f"folder={folder}"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(rows[-1]), flush=True)
            write_json(Path(settings["output"]), {"rows": rows})
        shutil.rmtree(folder)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
