"""Make the models of four languages: refined static vectors, int8, with card and figures; ``mini`` and ``base`` ship.

    python -m eval.experiments.make_teacher output=runs/mini-teacher
    python -m eval.experiments.make_pretrained model=mini start=runs/mini-teacher/static output=xswe/pretrained/mini
    python -m eval.experiments.make_pretrained model=base start=xswe/pretrained/mini output=models/base
    python -m eval.experiments.make_pretrained model=small start=xswe/pretrained/mini output=runs/small
        [runs=runs/static] [seed=0] [threads=1]
    python -m eval.experiments.make_pretrained model=forms start=models/base output=models/base

``mini`` is the start as it is. ``base`` has a vocabulary of its own, each piece of which starts as the sum of the vectors
of the start's pieces of it, and is refined; what each part of that is worth is in ``static_levers.py`` (``SHIPS``),
chosen on the development sets. ``small`` is the same with 64,000 pieces, to be exported with ``shared=3``. Size and
precision of ``mini`` were chosen by the development columns of ``mini_tradeoff.py``. A few minutes of one processor, once
the start is there. ``forms`` only counts anew how the training texts write the words of a model that is there.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eval.experiments.main_job import figures
from eval.experiments.static_levers import LANGUAGES, OBJECTIVE, SHIPS, Variation, varied
from eval.settings import DATA, REQUIRED, RESULTS, chosen, run_script
from xswe.bitext.source import Source, read_pairs
from xswe.io.files import write_json
from xswe.model.card import card, write_card
from xswe.model.licences import sources_of
from xswe.model.static import StaticModel
from xswe.text.forms import count_forms
from xswe.training.stages import versions

TRAIN = DATA / "train"
RECORDS = RESULTS / "main"
DEFAULTS: dict[str, Any] = {"model": REQUIRED, "start": REQUIRED, "output": REQUIRED}
DEFAULTS |= {"runs": "runs/static", "seed": 0, "threads": 1}
MADE = {"mini": Variation(), "base": SHIPS, "small": replace(SHIPS, pieces=64_000)}  # what is done to the start
EVERY = 20  # lines of which one is counted
_SHOWN = ("accuracy_both_ways", "accuracy", "spearman")


def texts(language: str, every: int) -> Iterator[str]:
    """Yield every so many-th text of a language in the training bitexts, all of which have an English side."""
    for path in sorted(TRAIN.glob("en-*/*.tsv.gz")):
        if language in (pair := path.parent.name.split("-")):
            for k, sides in enumerate(read_pairs(Source((path,)))):
                if k % every == 0:
                    yield sides[pair.index(language)] or ""


def counted(model: StaticModel) -> StaticModel:
    """Return a model with its units' counts in some of the training texts, and their forms in all."""
    model = model.counted({language: texts(language, EVERY) for language in LANGUAGES})
    return replace(model, forms=tuple(count_forms(model.units, list(texts(code, 1)), code) for code in LANGUAGES))


def settings_of(start: Path) -> dict[str, Any]:
    """Return how the start was made: what a model says of itself, else the run it lies in."""
    if own := StaticModel.load(start).description.get("settings"):
        return dict(own)
    made = json.loads((start.parent / "results.json").read_text(encoding="utf-8"))["settings"]
    return {key: value for key, value in made.items() if key not in ("output", "threads")}


def main(given: dict[str, Any]) -> None:
    """Refine, count, save, evaluate, describe."""
    name, start, target = chosen(given["model"], "model", [*MADE, "forms"])[0], Path(given["start"]), Path(given["output"])
    if name == "forms":
        with tempfile.TemporaryDirectory() as scratch:
            counted(StaticModel.load(start)).save(made := Path(scratch) / "model")
            shutil.copy(made / "counts.safetensors", target)
        return
    paths = {f"en-{code}": [f"$XSWE_DATA/train/en-{code}"] for code in LANGUAGES[1:]}
    variation = MADE[name]
    settings = {
        "pair": {"name": "-".join(LANGUAGES), "languages": list(LANGUAGES)},
        "corpus": {"paths": paths},
        "units": {"kind": "subwords", "size": variation.pieces or "as the start's"},
        "objective": {"margin": OBJECTIVE.margin, "temperature": OBJECTIVE.temperature},
        "refine": asdict(variation),
        "seed": given["seed"],
        "start": settings_of(start),
    }
    model, _ = varied(variation, given["seed"], {**given, "pieces": 0, "vocabulary": "mini"})
    model = replace(model, description={"made_by": "eval/experiments/make_pretrained.py", "settings": settings})
    counted(model).save(target, dtype="int8")
    describe(name, target, settings, given["threads"])


def describe(name: str, target: Path, settings: dict[str, Any], threads: int) -> None:
    """Evaluate a model, record its figures, and write its card."""
    model, pairs = StaticModel.load(target), [f"en-{code}" for code in LANGUAGES[1:]]
    with tempfile.TemporaryDirectory() as scratch:
        dims, rows = figures(str(target), list(LANGUAGES), threads, Path(scratch))
    write_json(
        RECORDS / f"ships-{name}.json", {"model": f"{name}, four languages in one", "dims": dims, "pairs": 0, "rows": rows}
    )
    shown = [
        {
            **row,
            "subset": row["subset"].removesuffix(".tsv"),
            "metric": row["metric"].removesuffix("_both_ways"),
            "note": None,
        }
        for row in rows
        if row["metric"] in _SHOWN and not (row["task"] == "tatoeba" and row["metric"] == "accuracy")
    ]
    files = {pair: {"checksums": [path.name for path in sorted((TRAIN / pair).glob("*.tsv.gz"))]} for pair in pairs}
    sources = sources_of(settings["corpus"], files)
    write_card(target, card(model, name=name, settings=settings, rows=shown, sources=sources, versions=versions()))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
