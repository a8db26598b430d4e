"""Make the model that ships as ``xswe.load("mini")``: the static vectors of make_teacher.py, int8, with card and figures.

    python eval/experiments/make_teacher.py output=runs/mini-teacher
    python eval/make_pretrained.py runs/mini-teacher [xswe/pretrained/mini]

Size and precision were chosen by the development columns of ``eval/mini_tradeoff.py``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from main_job import figures

import xswe
from xswe.model.card import card, sources_of, write_card
from xswe.model.static import StaticModel

_SHOWN = ("accuracy_both_ways", "accuracy", "spearman")


def main(run: Path, target: Path) -> None:
    """Convert, evaluate, describe."""
    made = json.loads((run / "results.json").read_text(encoding="utf-8"))
    settings = {key: value for key, value in made["settings"].items() if key not in ("output", "threads")}
    model = replace(
        StaticModel.load(run / "static"),
        description={"made_by": "eval/experiments/make_teacher.py", "settings": settings},
    )
    model.save(target, dtype="int8")
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
    main(given[0], given[1] if len(given) > 1 else Path(xswe.__file__).parent / "pretrained" / "mini")
