"""What each lever of the refinement is worth: one variation at a time, all from the same corpus, units and bags.

    python -m eval.experiments.levers [pair=en-de-zh-ja] [teacher=none] [distilled=minilm] [runs=runs/levers]
                          [only="base;batch 512"] [threads=2] [extra="refine.max_steps=1500 pca.dim=256"]
                          [output=eval/results/levers.json]

Trains on ``XSWE_DATA/train``, one run folder for all variations, so that only the refinement is done again; evaluates on
WMT 2023 (development), the STS-B development sets, cross-lingual and of each language, Tatoeba (through mteb), and between
the languages that no bitext joins, on the sample corpus. Writes one JSON, a row a variation, and prints the table. A
variation that is in the JSON already is not repeated.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import xswe
from eval.report.lever_tables import lay_out
from eval.settings import DATA, run_script
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"pair": "en-de-zh-ja", "teacher": "none", "distilled": "minilm", "runs": "runs/levers"}
DEFAULTS |= {"only": "", "threads": 2, "extra": "", "output": "eval/results/levers.json"}

# Each beside the base, which is the defaults (margin 0.3, temperature 0.05, batch 1,024, equal sentences masked).
VARIATIONS: dict[str, list[str]] = {
    "base": [],
    "seed 1": ["seed=1", "units.vocabulary={units}"],  # how much two runs differ anyway
    "margin 0 (paper)": ["objective.margin=0"],
    "margin 0.2": ["objective.margin=0.2"],
    "margin 0.4": ["objective.margin=0.4"],
    "temperature 0.03": ["objective.temperature=0.03"],
    "temperature 0.08": ["objective.temperature=0.08"],
    "batch 512": ["refine.batch_size=512"],
    "batch 2,048": ["refine.batch_size=2048"],
    "batch 8,192, a quarter of the steps": ["refine.batch_size=8192", "refine.max_steps=625", "refine.eval_steps=25"],
    "three times the steps": ["refine.max_steps=7500"],
    "constant rate": ["refine.decay_start=1.0"],
    "linear decay from the start": ["refine.decay_start=0.0"],
    "rate 0.004": ["refine.learning_rate=0.004"],
    "dense Adam (paper)": ["refine.optimiser=dense"],
    "equal sentences dropped": ["refine.duplicates=drop"],
    "neighbourhoods of 4": ["refine.neighbours=4"],
    "neighbourhoods of 16": ["refine.neighbours=16"],
    "prefixes 256, 128, 64": ["objective.prefixes=[256,128,64]"],
    "distillation on the source": ["{joint}", "objective.distillation_on=[source]"],
    "distillation on source and target": ["{joint}", "objective.distillation_on=[source,target]"],
    "distillation on the source, three times the steps": [
        *("{joint}", "objective.distillation_on=[source]", "refine.max_steps=7500")
    ],
    "distillation across": ["{joint}", "objective.distillation_on=[cross]"],
    "distillation on all three": ["{joint}", "objective.distillation_on=[source,target,cross]"],
    "distillation on all three, weight 0.5": [
        *("{joint}", "objective.distillation_on=[source,target,cross]", "objective.distillation=0.5")
    ],
    "separate vectors of a shared string": ["extract.merge=separate"],
    "average of a shared string's vectors": ["extract.merge=average"],
}
NEED_A_TEACHER = {"average of a shared string's vectors"}
TRUNCATED = {"prefixes 256, 128, 64": (128, 64), "base": (128, 64)}


def figures(folder: Path, languages: list[str], threads: int, scratch: Path, dims: int | None = None) -> dict[str, float]:
    """Evaluate a run's model on the development sets: accuracy by cosine, by margin, and Spearman's correlation.

    Returns:
        Each set's figures for each language or pair, and (under the set's bare name) their mean.
    """
    model = xswe.load(folder / "model")
    if dims is not None:
        model = model.truncate(dims)  # type: ignore[union-attr]
    hub, *others = languages
    files = [f"dev/wmt23.{hub}-{other}.tsv" for other in others] + [f"dev/stsb-xling.{hub}-{other}.tsv" for other in others]
    files += [f"dev/stsb.{language}.tsv" for language in languages]
    found = [str(DATA / file) for file in files if (DATA / file).is_file()]
    rows = run_tasks(StaticEncoder(model, folder.name, threads), ["tatoeba", *found], DATA / "mteb-local", scratch)
    groups: dict[str, list[float]] = {}
    for row in rows:
        name = row.subset if row.subset.endswith(".tsv") else row.task
        kind = name.split(".")[0] if name.startswith(("wmt23", "stsb")) else name
        which = name.split(".")[1] if "." in name else row.subset
        if kind == "stsb":
            kind = f"stsb {name.split('.')[1]}"
        ways = "_both_ways" if row.task == "tatoeba" else ""  # mteb itself looks one way only
        wanted = {f"accuracy{ways}": kind, f"margin_accuracy{ways}": f"{kind} margin", "spearman": kind}
        if row.metric in wanted and row.value is not None:
            groups.setdefault(wanted[row.metric], []).append(row.value)
            groups[f"{wanted[row.metric]} | {which}"] = [row.value]
    return {name: statistics.mean(values) for name, values in groups.items()}


def pivots(folder: Path) -> dict[str, float]:
    """Return a run's accuracy between languages that no bitext joins, as ``train`` measured it, and their mean."""
    rows = json.loads((folder / "results.json").read_text())["rows"]
    last = [row for row in rows if row["task"] == "without-bitext" and row["note"] == "refinement"]
    found = {f"without bitext | {row['subset']}": row["value"] for row in last if row["metric"] == "accuracy"}
    return {"without bitext": statistics.mean(found.values()), **found} if found else {}


def train(settings: list[str], folder: Path) -> tuple[float, float]:
    """Run ``python -m xswe train``; the seconds of the whole command, and those of the refinement's stage."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "xswe", "train", *settings, f"output={folder}"], check=True)
    return time.monotonic() - begun, json.loads((folder / "run.json").read_text())["seconds"].get("refine", 0.0)


def main(given: dict[str, Any]) -> None:
    """Train and evaluate what is not there yet; print the table."""
    pair, threads, folder, output = given["pair"], given["threads"], Path(given["runs"]), Path(given["output"])
    base = [f"pair={pair}", "corpus=xswe_data", f"teacher={given['teacher']}", f"threads={threads}"]
    base += shlex.split(given["extra"])
    joint = f"objective=joint distilled={given['distilled']}"
    report: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {"settings": base, "rows": {}}
    if report["settings"] != base:
        raise ConfigError(f"{output} is of other settings ({' '.join(report['settings'])}): name another output=")
    chosen = given["only"].split(";") if given["only"] else list(VARIATIONS)
    if unknown := [name for name in chosen if name not in VARIATIONS]:
        raise ConfigError(f"only={given['only']}: there is no {unknown[0]!r}; choose from {';'.join(VARIATIONS)}")
    if given["teacher"] == "none":
        chosen = [name for name in chosen if name not in NEED_A_TEACHER]
    languages = pair.split("-")
    for name in chosen:
        if name in report["rows"]:
            continue
        units = next(iter(sorted((folder / "stages").glob("units-*/tokenizer.json"))), None)
        words = [word.format(joint=joint, units=units or "auto") for word in VARIATIONS[name]]
        seconds, refining = train([*base, *shlex.split(" ".join(words))], folder)
        row: dict[str, Any] = {"seconds": round(seconds, 1), "refine_seconds": refining, "changes": words}
        row["figures"] = {**figures(folder, languages, threads, folder / "mteb"), **pivots(folder)}
        for dims in TRUNCATED.get(name, ()):
            row[f"figures at {dims}"] = figures(folder, languages, threads, folder / "mteb", dims)
        report["rows"][name] = row
        write_json(output, report)
    print(table(*lay_out(report)))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
