"""The main job on real bitext, and its figures: three pairs, with the small teacher and from random vectors.

    python -m eval.experiments.main_job [pairs=en-ja,en-de] [sizes=0,10000] [teachers=mini,none,FOLDER]
        [runs=runs/main] [threads=2] [train="teacher.dtype=bfloat16 contexts.per_unit=2" label=short]
    python -m eval.experiments.main_job pairs=en        # one language: distillation
    python -m eval.experiments.main_job pairs=ja teachers=e5-small

Trains on ``XSWE_DATA/train``, evaluates every step on the Tatoeba test (through mteb), the WMT 2023 development bitext and
the STS-B development sets, and writes one file a run into ``eval/results/main/``; ``eval/report/tables.py`` makes the
tables of them. ``sizes`` are numbers of training pairs, drawn at random, 0 for all: what a teacher is worth with little
bitext. A run that is done is not repeated.

A teacher is a name of the group ``teacher`` or the folder of an encoder. One language alone is trained by distillation,
which needs a teacher (``none`` is left out), is evaluated on its STS-B, and goes into ``eval/results/mono/``. ``train``
holds further settings of ``python -m xswe train``, with blanks between them; ``label`` tells such runs from others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.settings import DATA, RESULTS, numbers, run_script
from xswe.errors import ConfigError
from xswe.evaluation.evaluate import run_tasks
from xswe.evaluation.metrics import primary_metrics
from xswe.evaluation.models import open_encoder
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"pairs": "en-de,en-ja,en-zh", "sizes": "0,10000,30000,100000", "teachers": "mini,none"}
DEFAULTS |= {"train": "", "label": "", "runs": "runs/main", "results": str(RESULTS), "threads": 2}
STEPS = ("extraction", "pca-without-abtt", "pca-with-abtt", "refinement")


def figures(model: str, languages: list[str], threads: int, scratch: Path) -> tuple[int, list[dict[str, Any]]]:
    """Evaluate one model on everything that has its languages; returns its dimensions, and the rows."""
    hub, *others = languages
    files = [f"dev/wmt23.{hub}-{other}.tsv" for other in others] + [f"dev/stsb-xling.{hub}-{other}.tsv" for other in others]
    files += [f"dev/stsb.{language}.tsv" for language in languages]
    found = [str(DATA / file) for file in files if (DATA / file).is_file()]
    tasks, encoder = ["tatoeba", *found] if others else found, open_encoder(model, threads)
    rows = run_tasks(encoder, tasks, DATA / "mteb-local", scratch)
    return encoder.dim, [row.as_dict() for row in rows]


def train(pair: str, teacher: str, size: int, folder: Path, threads: int, further: Sequence[str] = ()) -> float:
    """Run ``python -m xswe train`` into a folder and return how long it took."""
    start = time.monotonic()
    settings = [f"pair={pair}", "corpus=xswe_data", *teacher_words(teacher), f"corpus.limit={size}", f"output={folder}"]
    settings += [] if "-" in pair else ["objective=distillation"]
    # What is said of a teacher does not concern a run without one, which has no such settings.
    settings += [word for word in further if teacher != "none" or not word.startswith("teacher.")]
    command = [sys.executable, "-m", "xswe", "train", *settings, "keep_steps=true", f"threads={threads}"]
    subprocess.run(command, check=True)
    return time.monotonic() - start


def teacher_words(teacher: str) -> list[str]:
    """Return the settings of a teacher, which is a name of the configuration group or a folder."""
    return ["teacher=custom", f"teacher.model={teacher}"] if is_folder(teacher) else [f"teacher={teacher}"]


def is_folder(teacher: str) -> bool:
    """Tell a folder from a name.

    Raises:
        ConfigError: there is no such folder, or no encoder in it.
    """
    if "/" not in teacher:
        return False
    if not (Path(teacher) / "config.json").is_file():
        raise ConfigError(f"teachers={teacher}: no encoder there; give a folder with a config.json, or a name as mini")
    return True


def main(settings: dict[str, Any]) -> None:
    """Train, evaluate, write."""
    teachers, further = [name for name in settings["teachers"].split(",") if name], settings["train"].split()
    sizes, runs, threads = numbers(settings["sizes"], "sizes", 0), Path(settings["runs"]), settings["threads"]
    if further and not settings["label"]:
        raise ConfigError("train= makes other runs than the usual: give them a label=")
    names = {teacher: Path(teacher).name if is_folder(teacher) else teacher for teacher in teachers}
    for pair in settings["pairs"].split(","):
        results = Path(settings["results"]) / ("main" if "-" in pair else "mono")
        encoders = [teacher for teacher in teachers if teacher != "none"]
        for size in sizes:
            for teacher in teachers if "-" in pair else encoders:
                name = "-".join(filter(None, [pair, names[teacher], str(size or "all"), settings["label"]]))
                target = results / f"{name}.json"
                if target.exists():
                    continue
                folder = runs / name
                seconds = train(pair, teacher, size, folder, threads, further)
                record: dict[str, Any] = {"pair": pair, "teacher": names[teacher], "pairs": size}
                record |= {"label": settings["label"], "settings": further} if further else {}
                record |= {"seconds": round(seconds, 1), "train": _read(folder / "results.json")["rows"]}
                record["stages"] = _read(folder / "run.json")
                steps = [step for step in STEPS if (folder / "steps" / step).is_dir()]
                measured = {
                    step: figures(str(folder / "steps" / step), pair.split("-"), threads, runs / "mteb") for step in steps
                }
                record["dims"] = {step: dim for step, (dim, _) in measured.items()}
                record["rows"] = {step: rows for step, (_, rows) in measured.items()}
                write_json(target, record)
                print(f"{name}: {target}\n{stages(record['rows'])}\n", flush=True)
        for teacher in encoders:
            target = results / (f"{pair}-teacher.json" if teacher == "mini" else f"{pair}-teacher-{names[teacher]}.json")
            if not target.exists():
                dim, rows = figures(f"teacher:{teacher}", pair.split("-"), threads, runs / "mteb")
                record = {"pair": pair, "teacher": names[teacher], "dims": {"teacher": dim}, "rows": {"teacher": rows}}
                write_json(target, record)


def stages(rows: dict[str, list[dict[str, Any]]]) -> str:
    """Lay out the main figure of every step on every file and task."""
    lines = {}
    for step, found in rows.items():
        measured = [row for row in found if row["value"] is not None]
        chosen = primary_metrics(((row["task"], row["subset"]), row["metric"]) for row in measured)
        lines[step] = {
            row["subset"] if row["task"] == "file" else f"{row['task']} {row['subset']}": row["value"]
            for row in measured
            if chosen.get((row["task"], row["subset"])) == row["metric"]
        }
    columns = list(dict.fromkeys(column for line in lines.values() for column in line))
    return table(["after", *columns], [[step, *map(line.get, columns)] for step, line in lines.items()])


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
