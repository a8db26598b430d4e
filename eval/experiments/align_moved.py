"""Texts whose chapters and paragraphs are out of order: what is found with, and without, looking for what moved.

    python -m eval.experiments.align_moved [model=mini] [output=FILE]

Documents are those of eval/experiments/align_quality.py, of the second halves of XSWE_DATA's bitexts; the settings of
xswe/alignment/moved.py were chosen on the first halves, reordered by another program. Gold has what moved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import Document, counts, moved_paragraphs, swapped_chapters
from eval.experiments.align_quality import documents
from eval.settings import DATA, RESULTS, run_script
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"model": "mini", "output": str(RESULTS / "align_moved.json")}
KINDS = {
    "in order": lambda document, seed: document,
    "two chapters swapped": swapped_chapters,
    "paragraphs moved": moved_paragraphs,
}


def measure(model: Any, found: list[Document], looked_for: bool) -> dict[str, dict[str, float]]:
    """Return strict precision and recall of each kind of document, and how many beads were found out of order."""
    out = {}
    for kind, reorder in KINDS.items():
        total, moved = np.zeros(5), 0
        for seed, document in enumerate(found):
            made = reorder(document, seed)
            beads = xswe.align(model, made.source, made.target, moved=looked_for)
            total += counts([bead[3:5] for bead in beads.pairs], made.beads)
            moved += int(beads.moved.sum())
        precision, recall = float(total[2] / total[0]), float(total[2] / total[1])
        out[kind] = {"precision": precision, "recall": recall, "beads": int(total[1]), "out of order": moved}
    return out


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write it."""
    model = xswe.load(settings["model"])
    found = [document for _, kind, _, document in documents(DATA) if kind == "edited"]
    result: dict[str, Any] = {"model": settings["model"], "documents": len(found)}
    for name, looked_for in (("moved=true", True), ("moved=false", False)):
        result[name] = measure(model, found, looked_for)
        rows = [[kind, *one.values()] for kind, one in result[name].items()]
        print(f"\n{name}\n{table(['documents', *result[name]['in order']], rows)}", flush=True)
    write_json(Path(settings["output"]), result)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
