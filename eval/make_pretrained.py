"""Make the model that ships as ``xswe.load("mini")``: the static vectors of make_teacher.py, int8, with card and figures.

    python eval/experiments/make_teacher.py output=runs/mini-teacher
    python eval/make_pretrained.py runs/mini-teacher [xswe/pretrained/mini]
    python eval/make_pretrained.py counts [xswe/pretrained/mini]
    python eval/make_pretrained.py shape TARGET [xswe/pretrained/mini]

The second counts the units again in every 20th line of the bitexts in ``$XSWE_DATA/train``, which the model was trained on,
and writes nothing but ``counts.safetensors`` (a quarter of a megabyte: the counts fit 16 bits). The third writes the model
to TARGET with its norms tempered and its sentences centred (``SHAPE``, chosen on the development sets by
``eval/static_levers.py``), with card and figures; cosines shift, and what was measured with the model has to be measured
again before it takes its place.

Size and precision were chosen by the development columns of ``eval/mini_tradeoff.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from main_job import figures

import xswe
from xswe.corpus.formats import PairFile, read_pairs
from xswe.errors import ConfigError
from xswe.model.card import card, sources_of, write_card
from xswe.model.static import StaticModel, pool
from xswe.training.config import ShapeConfig, centred, temper
from xswe.training.stages import versions

_SHOWN = ("accuracy_both_ways", "accuracy", "spearman")


EVERY = 20  # lines
PAIRS = ("en-de", "en-zh", "en-ja")
SHAPE = ShapeConfig(norms=0.8, centre=5)


def texts(language: str) -> Iterator[str]:
    """Yield every 20th text of a language in the training bitexts, all of which have an English side."""
    data = Path(os.environ.get("XSWE_DATA", "../shared/data")) / "train"
    for path in sorted(data.glob("en-*/*.tsv.gz")):
        if language in path.parent.name.split("-"):
            for k, pair in enumerate(read_pairs(PairFile(path))):
                if k % EVERY == 0:
                    yield pair[path.parent.name.split("-").index(language)] or ""


def with_counts(model: StaticModel) -> StaticModel:
    """Return the model with the counts of its units in each language."""
    return model.counted({language: texts(language) for language in model.languages})


def count(target: Path) -> None:
    """Write the counts alone into a model folder."""
    with tempfile.TemporaryDirectory() as scratch:
        with_counts(StaticModel.load(target)).save(Path(scratch) / "model")
        shutil.copyfile(Path(scratch) / "model" / "counts.safetensors", target / "counts.safetensors")


def shaped(source: Path, target: Path) -> None:
    """Temper and centre a model, evaluate it, and describe it."""
    model = StaticModel.load(source)
    if "shaped" in model.description:
        raise ConfigError(f"{source}: its vectors were shaped already: {model.description['shaped']}")
    tempered = temper(np.asarray(model.vectors, np.float32), SHAPE.norms)
    bags = (model.units.bags(list(texts(code))) for code in model.languages)
    blocks = (pool(tempered, some, normalise=False, threads=1) for some in bags)
    matrix = centred(tempered, blocks, SHAPE.centre)
    description = {**model.description, "shaped": asdict(SHAPE)}
    replace(model, matrix=matrix, scales=None, description=description).save(target, dtype="int8")
    settings, data = model.description["settings"], Path(os.environ.get("XSWE_DATA", "../shared/data")) / "train"
    files = {pair: {"checksums": [path.name for path in sorted((data / pair).glob("*.tsv.gz"))]} for pair in PAIRS}
    describe(target, {**settings, "shaped": asdict(SHAPE)}, files, versions())


def main(run: Path, target: Path) -> None:
    """Convert, evaluate, describe."""
    made = json.loads((run / "results.json").read_text(encoding="utf-8"))
    settings = {key: value for key, value in made["settings"].items() if key not in ("output", "threads")}
    model = replace(
        StaticModel.load(run / "static"),
        description={"made_by": "eval/experiments/make_teacher.py", "settings": settings},
    )
    with_counts(model).save(target, dtype="int8")
    describe(target, settings, made["report"]["corpus"], made["versions"])


def describe(target: Path, settings: dict[str, Any], report: dict[str, Any], made_with: dict[str, str]) -> None:
    """Evaluate a model, and write its card."""
    model = StaticModel.load(target)
    with tempfile.TemporaryDirectory() as scratch:
        _, rows = figures(str(target), list(model.languages), 1, Path(scratch))
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
    text = card(
        xswe.load(target),
        name="mini",
        settings=settings,
        rows=shown,
        sources=sources_of(settings["corpus"], report),
        versions=made_with,
    )
    write_card(target, text)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    target = given[1] if len(given) > 1 else Path(xswe.__file__).parent / "pretrained" / "mini"
    if given[0].name == "counts":
        count(target)
    elif given[0].name == "shape":
        shaped(given[2] if len(given) > 2 else Path(xswe.__file__).parent / "pretrained" / "mini", given[1])
    else:
        main(given[0], target)
