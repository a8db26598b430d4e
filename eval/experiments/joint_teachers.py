"""Teachers together: what several of them say of each unit, side by side before the sentence PCA.

    python -m eval.experiments.joint_teachers e5=FOLDER [seeds=0,1,2] [limit=10000] [steps=500] [runs=runs/joint-teachers]
                                 [threads=1] [output=eval/results/joint_teachers.json]

Of random English-Japanese pairs of up to 80 characters, ``recipe=paper`` extracts vectors of mini's pieces from two
contexts a piece by ``mini`` and by multilingual-e5-small (``eval/experiments/convert_e5.py`` makes the folder); of the
Universal Sentence Encoder, which has no states of tokens, a piece gets the mean of the vectors of the same sentences. Each
table is centred by its sentences, and divided by the root of their variance; tables side by side go through one sentence
PCA with ABTT to 256 dimensions, and are refined on the same pairs, once with each seed. Measured on WMT 2023 and STS-B.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from eval.experiments.baselines import open_encoder
from eval.report.lever_tables import joint
from eval.settings import DATA, REQUIRED, RESULTS, numbers, run_script
from xswe.corpus.contexts import Contexts
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks
from xswe.io.files import write_json
from xswe.io.parallel import single_threaded_blas
from xswe.io.ragged import Bags, concatenate_bags
from xswe.model.static import StaticModel, pool
from xswe.teacher.transformer import load_teacher
from xswe.text.units import Units
from xswe.training.components import Components
from xswe.training.config import Trained
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.pipeline import run_stages
from xswe.training.refine import RefineConfig, refine
from xswe.training.train import configure

PAIR = "en-ja"
TOGETHER = ("mini", "e5-small", "mini + e5-small + USE", "mini + e5-small", "mini + USE", "USE", "e5-small + USE")
METRICS = {"accuracy": "", "margin_accuracy": " margin", "spearman": ""}
DEFAULTS: dict[str, Any] = {"e5": REQUIRED, "seeds": "0,1,2", "limit": 10_000, "steps": 500, "threads": 1}
DEFAULTS |= {"runs": "runs/joint-teachers", "output": str(RESULTS / "joint_teachers.json")}


def extracted(teacher: str, settings: Mapping[str, Any]) -> tuple[Trained, Path]:
    """Run the recipe with one teacher, but for the refinement; returns what it made, and the folder."""
    further: dict[str, Any] = {
        **{"corpus.limit": settings["limit"], "corpus.max_characters": 80, "corpus.held_out": 0, "refine.max_steps": 0},
        **{"refine.sample_from": "corpus", "contexts.per_unit": 2, "contexts.length": "units", "seed": 0},
        **{"units.kind": "subwords", "units.vocabulary": "mini", "threads": settings["threads"]},
    }
    further |= {"teacher.model": settings["e5"]} if teacher == "e5-small" else {}
    config = configure({PAIR: [str(DATA / "train" / PAIR)]}, PAIR.split("-"), teacher, "paper", further)
    folder = Path(settings["runs"]) / teacher
    return run_stages(config, load_teacher(replace(config.teacher, threads=config.threads)), folder), folder


def of_sentences(result: Trained, folder: Path, units: Units) -> np.ndarray:
    """Return for each unit the mean of the Universal Sentence Encoder's vectors of its contexts, float32 (units, 512)."""
    encoder = open_encoder("use-multilingual", 1)
    total, count = np.zeros((len(units), encoder.dim), np.float32), np.zeros((len(units), 1), np.float32)
    for code in PAIR.split("-"):
        chosen = Contexts.open(next((folder / "stages").glob("contexts-*")), code)
        vectors = encoder.encode(list(result.training(code).take(chosen.sentences)))
        rows = np.repeat(np.arange(len(vectors)), np.diff(chosen.offsets))
        np.add.at(total, chosen.units, vectors[rows])
        np.add.at(count, chosen.units, 1)
    return total / np.maximum(count, 1)


def levelled(matrix: np.ndarray, bags: Bags) -> np.ndarray:
    """Centre a table by its sentences, and divide it by the root of their variance; what has no vector stays zero."""
    sentences = pool(matrix, bags, normalise=False)
    mean = sentences.mean(0)
    size = float(np.sqrt(((sentences - mean) ** 2).sum(1).mean()))
    return ((matrix - mean) / size * matrix.any(1, keepdims=True)).astype(np.float32)


def reduced(matrix: np.ndarray, bags: Bags) -> np.ndarray:
    """Apply the sentence PCA with ABTT."""
    found = Components("auto", 256).fit(iter([pool(matrix, bags, normalise=False)]))
    return (found.transform(matrix) * matrix.any(1, keepdims=True)).astype(np.float32)


def figures(units: Units, matrix: np.ndarray) -> dict[str, float]:
    """Return the figures of the development sets."""
    names = (f"wmt23.{PAIR}", f"stsb-xling.{PAIR}", *(f"stsb.{code}" for code in PAIR.split("-")))
    rows = run_tasks(
        StaticEncoder(StaticModel(units, matrix), "model"), [str(DATA / "dev" / f"{n}.tsv") for n in names], None
    )
    return {
        row.subset.removesuffix(".tsv") + METRICS[row.metric]: row.value
        for row in rows
        if row.metric in METRICS and row.value is not None
    }


def main(settings: dict[str, Any]) -> None:
    """Extract, put together, refine, measure, write and print; rows that are there are not made again."""
    output, given = Path(settings["output"]), {name: settings[name] for name in ("limit", "steps", "seeds")}
    report: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {"settings": given, "rows": {}}
    if report["settings"] != given:
        raise ConfigError(f"{output} is of other settings ({report['settings']}): name another output=")
    made = {name: extracted(name, settings) for name in ("mini", "e5-small")}
    result, folder = made["mini"]
    units = result.model.units
    matrices = {name: np.asarray(one.stages["extraction"].vectors, np.float32) for name, (one, _) in made.items()}
    if any(len(matrix) != len(units) for matrix in matrices.values()):
        raise ConfigError("the teachers' tables are not of the same units: remove the folder of runs=")
    matrices["USE"] = of_sentences(result, folder, units)
    sides = [units.bags(list(result.training(code))) for code in PAIR.split("-")]
    both = concatenate_bags(sides)
    print(f"extraction: {process_time():.0f} s of the processor", flush=True)
    levels = {name: levelled(matrix, both) for name, matrix in matrices.items()}
    for name in [name for name in TOGETHER if name not in report["rows"]]:
        start = reduced(np.concatenate([levels[one] for one in name.split(" + ")], axis=1), both)
        row: dict[str, Any] = {"PCA with ABTT": figures(units, start), "refinement": {}}
        for seed in numbers(settings["seeds"], "seeds", least=0):
            config = RefineConfig(max_steps=settings["steps"], batch_size=512, eval_steps=settings["steps"], seed=seed)
            with single_threaded_blas():
                matrix = refine(start, [ParallelBags(*sides)], [], config, Objective()).matrix
            row["refinement"][str(seed)] = figures(units, matrix)
        report["rows"][name] = row
        write_json(output, report)
    print(joint(report))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
