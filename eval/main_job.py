"""The main job on real bitext, and its figures: three pairs, with the small teacher and from random vectors.

    python eval/main_job.py [pairs=en-ja,en-de] [sizes=0,10000] [teachers=mini,none] [runs=runs/main] [threads=2]

Trains on ``XSWE_DATA/train``, evaluates every step on the Tatoeba test (through mteb), the WMT 2023 development bitext and
the STS-B development sets, and writes one file a run into ``eval/results/main/``; ``eval/tables.py`` makes the tables of
them. ``sizes`` are numbers of training pairs, drawn at random, 0 for all: what a teacher is worth with little bitext. A run
that is done is not repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from settings import numbers, run_script

from xswe.commands.evaluate import evaluate
from xswe.evaluation.models import open_encoder

DATA = Path(os.environ.get("XSWE_DATA", "../shared/data"))
RESULTS = Path(__file__).parent / "results" / "main"
DEFAULTS: dict[str, Any] = {"pairs": "en-de,en-ja,en-zh", "sizes": "0,10000,30000,100000", "teachers": "mini,none"}
DEFAULTS |= {"runs": "runs/main", "threads": 2}
STEPS = ("extraction", "pca-without-abtt", "pca-with-abtt", "refinement")


def figures(model: str, languages: list[str], threads: int, scratch: Path) -> list[dict[str, Any]]:
    """Evaluate one model on everything that has its languages."""
    hub, *others = languages
    files = [f"dev/wmt23.{hub}-{other}.tsv" for other in others] + [f"dev/stsb-xling.{hub}-{other}.tsv" for other in others]
    files += [f"dev/stsb.{language}.tsv" for language in languages]
    found = [str(DATA / file) for file in files if (DATA / file).is_file()]
    rows = evaluate(open_encoder(model, threads), ["tatoeba", *found], DATA / "mteb-local", scratch)
    return [row.as_dict() for row in rows]


def train(pair: str, teacher: str, size: int, runs: Path, threads: int) -> tuple[Path, float]:
    """Run ``python -m xswe train`` and return its folder and how long it took."""
    folder = runs / f"{pair}-{teacher}-{size or 'all'}"
    start = time.monotonic()
    settings = [f"pair={pair}", "corpus=xswe_data", f"teacher={teacher}", f"corpus.limit={size}", f"output={folder}"]
    command = [sys.executable, "-m", "xswe", "train", *settings, "keep_steps=true", f"threads={threads}"]
    subprocess.run(command, check=True)
    return folder, time.monotonic() - start


def main(settings: dict[str, Any]) -> None:
    """Train, evaluate, write."""
    pairs, teachers = settings["pairs"].split(","), settings["teachers"].split(",")
    sizes, runs, threads = numbers(settings["sizes"], "sizes", 0), Path(settings["runs"]), settings["threads"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for pair in pairs:
        for size in sizes:
            for teacher in teachers:
                target = RESULTS / f"{pair}-{teacher}-{size or 'all'}.json"
                if target.exists():
                    continue
                folder, seconds = train(pair, teacher, size, runs, threads)
                record: dict[str, Any] = {"pair": pair, "teacher": teacher, "pairs": size, "seconds": round(seconds, 1)}
                record["train"] = json.loads((folder / "results.json").read_text())["rows"]
                record["stages"] = json.loads((folder / "run.json").read_text())
                steps = [step for step in STEPS if (folder / "steps" / step).is_dir()]
                record["rows"] = {
                    step: figures(str(folder / "steps" / step), pair.split("-"), threads, runs / "mteb") for step in steps
                }
                target.write_text(json.dumps(record, indent=1) + "\n")
        target = RESULTS / f"{pair}-teacher.json"
        if "mini" in teachers and not target.exists():
            rows = {"teacher": figures("teacher:mini", pair.split("-"), threads, runs / "mteb")}
            target.write_text(json.dumps({"pair": pair, "teacher": "mini", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
