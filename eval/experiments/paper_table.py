"""The paper's tables beside ours: recipe=paper for each pair with several seeds, measured through mteb, with intervals.

    python -m eval.experiments.paper_table [pairs=en-de,en-zh,en-ja] [seeds=0,1,2] [output=runs/paper] [tasks=…]
        [bitext='{en-ja: [{card: ccmatrix}, {card: jparacrawl}]}'] [data=FOLDER] [rounds=1000] [threads=0]
        [teacher=mgte corpus.limit=…]

Needs the model hub, the corpora (fetched once, tens of gigabytes), and for the paper's teacher a GPU: see first what a run
takes with ``python -m xswe train pair=en-de recipe=paper corpus=ccmatrix dry=true``. Seeds draw other held-out pairs,
contexts, sentences and batches; what they share is done once, and a killed run goes on. ``table.json`` and ``table.md`` in
the output have the paper's figure, our mean over the seeds with its deviation, and the bootstrap interval of that mean over
the items of the test.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import xswe
from eval.settings import ROOT, bitext_of, chosen, numbers, run_script, split_words
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks
from xswe.evaluation.metrics import Bootstrap, Row, resample
from xswe.io.files import whole_file, write_json
from xswe.io.parallel import available_threads
from xswe.io.results import markdown

PAIRS = ("en-de", "en-zh", "en-ja")
CARDS = "{en-de: [{card: ccmatrix}], en-zh: [{card: ccmatrix}], en-ja: [{card: ccmatrix}, {card: jparacrawl}]}"
# Of the paper's Tables 4 and 5: the task, and its main figure.
TASKS = {"tatoeba": "f1", "bucc": "f1", "sts17": "cosine_spearman", "sts22": "cosine_spearman"}
DEFAULTS: dict[str, Any] = {
    **{"pairs": ",".join(PAIRS), "seeds": "0,1,2", "output": "runs/paper", "tasks": ",".join(TASKS), "data": ""},
    **{"bitext": CARDS, "rounds": 1000, "threads": 0, "teacher": "auto"},
}


def summary(rows: Sequence[Row], rounds: int) -> dict[str, Any]:
    """Return the mean of a figure over seeds, its deviation, and the interval of the mean on other items of the test."""
    values = [row.value for row in rows if row.value is not None]
    out = {"mean": float(np.mean(values)), "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else None}
    if rounds and all(row.items is not None for row in rows):
        draws = np.mean([resample(row, Bootstrap(rounds)) for row in rows], axis=0)  # the same items in each
        out["low"], out["high"] = (float(end) for end in np.nanpercentile(draws, [2.5, 97.5]))
    return out


def published(task: str, pair: str) -> float | None:
    """Return the paper's figure, times 100; None where it has none."""
    held = yaml.safe_load((ROOT / "eval" / "report" / "published.yaml").read_text(encoding="utf-8"))
    entries = [*held["retrieval"], *held["xling_sts"]]
    found = [one[task].get(pair) for one in entries if one["model"] == "SWE of the paper" and task in one]
    return found[0] if found else None


def measure(pair: str, settings: dict[str, Any], further: dict[str, Any]) -> list[list[Row]]:
    """Train a pair with each seed, and return the rows of each model."""
    out, folder = [], Path(settings["output"]) / pair
    threads = settings["threads"] or available_threads()
    bitext = bitext_of(settings["bitext"])
    bitext = bitext[pair] if isinstance(bitext, dict) and pair in bitext else bitext
    for seed in numbers(settings["seeds"], "seeds", 0):
        where = {"output": folder / f"seed-{seed}", "shared": folder, "teacher": settings["teacher"]}
        made = xswe.train(bitext, pair.split("-"), recipe="paper", **where, seed=seed, threads=threads, **further)
        encoder = StaticEncoder(made.model, f"{pair}-{seed}", threads)
        rows = run_tasks(encoder, [task for task in settings["tasks"].split(",") if task], settings["data"] or None)
        out.append(rows)
    return out


def main(settings: dict[str, Any], further: dict[str, Any]) -> None:
    """Train, measure, and write the table after each pair."""
    found: list[dict[str, Any]] = []
    for pair in chosen(settings["pairs"], "pairs", PAIRS):
        of_seeds = measure(pair, settings, further)
        for first in of_seeds[0]:
            task = first.task
            if first.metric != TASKS.get(task, "accuracy" if task == "file" else "") or first.value is None:
                continue
            same = [next(row for row in rows if row.key == first.key) for rows in of_seeds]
            about = {"pair": pair, "task": task, "subset": first.subset, "metric": first.metric, "n": first.n}
            known = published(task, pair) if first.subset == pair else None
            found.append({**about, "paper": known, **summary(same, settings["rounds"])})
        write_json(Path(settings["output"]) / "table.json", {"settings": settings | further, "rows": found})
        with whole_file(Path(settings["output"]) / "table.md") as temporary:
            temporary.write_text(laid_out(found) + "\n", encoding="utf-8")
    print(laid_out(found))


def laid_out(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table in Markdown, times 100."""
    lines = []
    for row in rows:
        ours = f"{100 * row['mean']:.1f}" + (f" ± {100 * row['deviation']:.1f}" if row["deviation"] is not None else "")
        interval = f"{100 * row['low']:.1f} to {100 * row['high']:.1f}" if "low" in row else None
        paper = None if row["paper"] is None else f"{row['paper']:.1f}"
        lines.append([row["pair"], row["task"], row["subset"], row["metric"], paper, ours, interval, f"{row['n']:,}"])
    return markdown(["model", "task", "of", "figure", "paper", "ours", "95 % interval", "items"], lines)


if __name__ == "__main__":
    words, changes = split_words(sys.argv[1:], DEFAULTS)
    run_script(lambda settings: main(settings, changes), DEFAULTS, __doc__, words)
