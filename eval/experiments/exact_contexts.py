"""What it is worth that contexts contain their word: words found as they stand, beside words found with a back-off.

    python -m eval.experiments.exact_contexts e5=FOLDER [teachers=mini,e5-small] [pairs=en-de,en-ja] [seeds=0,1,2]
                                 [runs=runs/exact-contexts] [threads=1] [output=eval/results/exact_contexts.json]
                                 [refine.max_steps=…]

Trains with ``recipe=paper`` on a random part of ``$XSWE_DATA/train``, another one with each seed, once for each kind of
context: ``back-off`` takes a sentence for a context of what an unknown word of it backs off to ("attic" for "at"), ``lower
case`` for one of a word in lower case ("HAUS" for "haus"), and ``exact`` only for one of the words as they stand, as
``xswe.train`` does. Measures after the PCA and after the refinement, on WMT 2023 and STS-B, and tests each kind against
``exact`` by paired bootstrap: in each draw the means over the seeds are compared. Also counts the contexts that do not
contain their word. ``e5`` is what ``eval/experiments/convert_e5.py`` made. A run that is done is not repeated.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from eval.experiments.ablate import named_data, named_encoders
from eval.settings import DATA, REQUIRED, RESULTS, chosen, numbers, run_script, split_words
from xswe.corpus.contexts import Contexts
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks
from xswe.evaluation.metrics import CORRELATIONS, Bootstrap, Row, compare_draws, resample
from xswe.io.files import fingerprint, read_json, whole_file, write_json
from xswe.io.ragged import Bags, Texts, bounds_of
from xswe.io.results import table
from xswe.teacher.protocol import States
from xswe.teacher.transformer import TransformerTeacher, load_teacher
from xswe.text.words import WordUnits
from xswe.training.config import Trained
from xswe.training.pipeline import run_stages
from xswe.training.train import configure, recorded

DEFAULTS: dict[str, Any] = {"e5": REQUIRED, "teachers": "mini,e5-small", "pairs": "en-de,en-ja", "seeds": "0,1,2"}
DEFAULTS |= {"runs": "runs/exact-contexts", "threads": 1, "output": str(RESULTS / "exact_contexts.json")}
# What is not as in the recipe: a corpus of a size that a CPU's teacher reads, and pairs drawn from all of it.
SMALL: dict[str, Any] = {
    **{"corpus.limit": 100_000, "corpus.max_characters": 150, "corpus.held_out": 0},
    **{"refine.sample_from": "corpus", "refine.max_steps": 1000},
}
SIZES: dict[str, dict[str, Any]] = {
    "mini": {"words": 8_000, "contexts.per_unit": 4},
    "e5-small": {"words": 7_000, "contexts.per_unit": 2, "teacher.dtype": "bfloat16"},
}
STEPS = ("PCA with ABTT", "refinement")
METRICS = ("accuracy", "spearman")
DRAWS = Bootstrap(rounds=2000)


@cache
def lower_case(units: WordUnits) -> WordUnits:
    """Return units that find a word as it stands or in lower case."""
    return WordUnits(units.tokens, units.splitter, None)


KINDS: dict[str, Callable[[WordUnits], WordUnits]] = {
    "back-off": lambda units: units,
    "lower case": lower_case,
    "exact": WordUnits.exact.fget,  # type: ignore[attr-defined]
}
OURS = "exact"
TRIED = {"mini": ("back-off", "lower case", OURS), "e5-small": ("back-off", OURS)}


class Remembering:
    """A teacher that encodes each sentence once, however many extractions need its states."""

    def __init__(self, teacher: TransformerTeacher) -> None:
        self._teacher = teacher
        self._held: dict[str, tuple[np.ndarray, ...]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._teacher, name)

    def states(self, texts: Texts, batches: Sequence[np.ndarray]) -> Iterator[States]:
        """Yield the states of each batch, as the teacher does."""
        new = Texts.of(dict.fromkeys(text for rows in batches for text in texts.take(rows) if text not in self._held))
        for found in self._teacher.states(new, self._teacher.batches(new)):
            for k, row in enumerate(found.rows.tolist()):
                tokens = slice(found.offsets[k], found.offsets[k + 1])
                self._held[new[row]] = found.hidden[tokens].copy(), found.starts[tokens], found.ends[tokens]
        for rows in batches:
            hidden, starts, ends = zip(*(self._held[text] for text in texts.take(rows)), strict=True)
            flat = (np.concatenate(parts) for parts in (starts, ends))
            yield States(rows, np.concatenate(hidden), bounds_of(list(map(len, hidden))), *flat)


def trained(teacher: str, pair: str, seed: int, settings: Mapping[str, Any]) -> tuple[dict[str, Path], dict[str, Any]]:
    """Train models of all kinds and measure them, unless that is done; returns the folders of figures, and the settings."""
    further = {**SMALL, **SIZES[teacher], **settings["further"], "seed": seed, "threads": settings["threads"]}
    further |= {"teacher.model": settings["e5"]} if teacher == "e5-small" else {}
    codes = pair.split("-")
    further["units.most_frequent"] = dict.fromkeys(codes, further.pop("words"))
    config = configure({pair: [str(DATA / "train" / pair)]}, codes, teacher, "paper", further)
    known = {**named_encoders(named_data(recorded(config))), "seed": None}
    folders, encoder = {}, None
    for kind in TRIED[teacher]:
        name = f"{teacher}-{pair}-{seed}-{kind.replace(' ', '-')}"
        folder = folders[kind] = Path(settings["runs"]) / f"{name}-{fingerprint(known)[:8]}"
        if not (folder / "figures.npz").is_file():
            encoder = encoder or Remembering(load_teacher(replace(config.teacher, threads=config.threads)))
            with patch.object(WordUnits, "exact", property(KINDS[kind])):
                result = run_stages(config, encoder, folder)
            write_json(folder / "contexts.json", {code: counted(result, folder, code) for code in codes})
            found = measured(result, codes, config.threads)
            with whole_file(folder / "figures.npz") as temporary, temporary.open("wb") as stream:
                np.savez(stream, **found)
            shutil.rmtree(folder / "stages")
            print(f"{name}: {process_time():.0f} s of the processor so far", flush=True)
    return folders, known


def measured(result: Trained, codes: Sequence[str], threads: int) -> dict[str, np.ndarray]:
    """Measure a model after each step; returns what the figures are made of, and the vectors of the extraction."""
    pair, found = "-".join(codes), {"vectors": np.asarray(result.stages["extraction"].matrix, np.float16)}
    names = [f"wmt23.{pair}", f"stsb-xling.{pair}", *(f"stsb.{code}" for code in codes)]
    for step in STEPS:
        encoder = StaticEncoder(result.stages[step], step, threads)
        for row in run_tasks(encoder, [str(DATA / "dev" / f"{name}.tsv") for name in names], None):
            if row.metric in METRICS and row.items is not None:
                found["|".join((step, row.subset.removesuffix(".tsv"), row.metric))] = row.items
    return found


def counted(result: Trained, folder: Path, code: str) -> dict[str, int]:
    """Count a language's contexts, those that do not hold their word as it stands, and the words that have such."""
    chosen, units = Contexts.open(next((folder / "stages").glob("contexts-*")), code), result.model.units
    held = units.exact.bags(result.training(code).take(chosen.sentences))
    row_of = [np.repeat(np.arange(len(bags)), bags.lengths) for bags in (Bags(chosen.units, chosen.offsets), held)]
    pairs, there = (row * len(units) + ids for row, ids in zip(row_of, (chosen.units, held.ids), strict=True))
    without = ~np.isin(pairs, there)
    every, wrong = (np.bincount(ids, minlength=len(units)) for ids in (chosen.units, chosen.units[without]))
    return {
        "contexts": len(pairs),
        "contexts_without": int(without.sum()),
        "words": int((every > 0).sum()),
        "words_with_any": int((wrong > 0).sum()),
        "words_with_half": int(((wrong > 0) & (2 * wrong >= every)).sum()),
    }


def compared(ours: Sequence[Path], theirs: Sequence[Path], name: str) -> dict[str, Any]:
    """Compare one figure of models of two kinds, a folder a seed."""
    rows = [[row_of(folder, name) for folder in folders] for folders in (ours, theirs)]
    values = [[row.value or 0.0 for row in own] for own in rows]
    found = {"values": values[1], "mean": float(np.mean(values[1])), "n": rows[1][0].n}
    if list(ours) != list(theirs):
        draws = np.mean([resample(a, DRAWS) - resample(b, DRAWS) for a, b in zip(*rows, strict=True)], 0)
        test = compare_draws(float(np.mean(values[0]) - np.mean(values[1])), draws, DRAWS.level)
        found |= {"exact_minus_this": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return found


def row_of(folder: Path, name: str) -> Row:
    """Return one figure of a model."""
    with np.load(folder / "figures.npz") as figures:
        items = figures[name]
    _, subset, metric = name.split("|")
    value = float(items.mean()) if items.ndim == 1 else CORRELATIONS[metric](*items)
    return Row("file", subset, metric, value, items.shape[-1], items=items)


def vectors_changed(ours: Sequence[Path], theirs: Sequence[Path]) -> float:
    """Return the share of words whose vector is another one after the extraction, a mean over the seeds."""
    shares = []
    for folders in zip(ours, theirs, strict=True):
        one, other = (np.load(folder / "figures.npz")["vectors"].astype(np.float32) for folder in folders)
        apart = np.linalg.norm(one - other, axis=1) > 1e-2 * np.linalg.norm(other, axis=1)
        shares.append(apart.sum() / one.any(1).sum())
    return float(np.mean(shares))


def main(settings: dict[str, Any]) -> None:
    """Train and measure what is not there yet; write and print the figures."""
    teachers = chosen(settings["teachers"], "teachers", list(SIZES))
    pairs, seeds = settings["pairs"].split(","), numbers(settings["seeds"], "seeds", least=0)
    report: dict[str, Any] = {"seeds": seeds, "settings": {}, "rows": [], "contexts": []}
    runs: dict[tuple[str, str], list[dict[str, Path]]] = {}
    for seed, pair, teacher in product(seeds, pairs, teachers):
        folders, report["settings"][f"{teacher} {pair}"] = trained(teacher, pair, seed, settings)
        runs.setdefault((teacher, pair), []).append(folders)
    for (teacher, pair), of_seeds in runs.items():
        ours = [folders[OURS] for folders in of_seeds]
        for kind in TRIED[teacher]:
            theirs, about = [folders[kind] for folders in of_seeds], {"teacher": teacher, "pair": pair, "kind": kind}
            with np.load(theirs[0] / "figures.npz") as figures:
                names = [name for name in figures.files if name != "vectors"]
            for name in names:
                figure = dict(zip(("step", "subset", "metric"), name.split("|"), strict=True))
                report["rows"].append({**about, **figure, **compared(ours, theirs, name)})
            counts = [read_json(folder / "contexts.json") for folder in theirs]
            for code in pair.split("-"):
                means = {key: float(np.mean([one[code][key] for one in counts])) for key in counts[0][code]}
                report["contexts"].append({**about, "language": code, **means})
            report["contexts"][-1]["vectors_changed"] = vectors_changed(ours, theirs)
    write_json(Path(settings["output"]), report)
    header = ["teacher", "pair", "after", "set", "contexts", "mean", "exact beside it", "p"]
    keys = ("teacher", "pair", "step", "subset", "kind", "mean", "exact_minus_this")
    print(table(header, [[*map(row.get, keys), f"{row['p']:.3f}" if "p" in row else ""] for row in report["rows"]]))


if __name__ == "__main__":
    words, changes = split_words(sys.argv[1:], DEFAULTS)
    run_script(lambda settings: main({**settings, "further": changes}), DEFAULTS, __doc__, words)
