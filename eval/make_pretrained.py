"""Make the model that ships as ``xswe.load("mini")``: the static vectors of make_teacher.py, int8, with card and figures.

    python eval/experiments/make_teacher.py output=runs/mini-teacher
    python eval/make_pretrained.py runs/mini-teacher [xswe/pretrained/mini]
    python eval/make_pretrained.py counts [xswe/pretrained/mini]

The second counts the units again in every 20th line of the bitexts in ``$XSWE_DATA/train``, which the model was trained on,
and writes nothing but ``counts.safetensors`` (a quarter of a megabyte: the counts fit 16 bits).

Size and precision were chosen by the development columns of ``eval/mini_tradeoff.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from main_job import figures

import xswe
from xswe.corpus.formats import PairFile, read_pairs
from xswe.model.card import card, sources_of, write_card
from xswe.model.static import StaticModel

_SHOWN = ("accuracy_both_ways", "accuracy", "spearman")


EVERY = 20  # lines


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


def main(run: Path, target: Path) -> None:
    """Convert, evaluate, describe."""
    made = json.loads((run / "results.json").read_text(encoding="utf-8"))
    settings = {key: value for key, value in made["settings"].items() if key not in ("output", "threads")}
    model = replace(
        StaticModel.load(run / "static"),
        description={"made_by": "eval/experiments/make_teacher.py", "settings": settings},
    )
    with_counts(model).save(target, dtype="int8")
    with tempfile.TemporaryDirectory() as scratch:
        rows = figures(str(target), list(model.languages), 1, Path(scratch))
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
        sources=sources_of(settings["corpus"], made["report"]["corpus"]),
        versions=made["versions"],
    )
    write_card(target, text)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    target = given[1] if len(given) > 1 else Path(xswe.__file__).parent / "pretrained" / "mini"
    if given[0].name == "counts":
        count(target)
    else:
        main(given[0], target)
