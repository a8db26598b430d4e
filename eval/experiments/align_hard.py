"""Alignment of hard documents: most lines merged, split, left out or put in; by pair of languages, and what goes wrong.

    python -m eval.experiments.align_hard [model=mini] [output=FILE]

Documents are runs of 300 pairs of the second halves of XSWE_DATA's bitexts, as those of eval/experiments/align_quality.py,
with more edits: two in five merge or split lines, one in five leaves lines out or puts foreign ones in. Nothing was chosen
on them. Of the gold beads that are not found, ``wider`` are within a bead that was found, ``narrower`` hold one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import Bead, Document, beads_of, counts, edited, read_bitext
from eval.experiments.align_quality import FILES, PAIRS, by_xswe
from eval.settings import DATA, RESULTS, run_script
from xswe.alignment.beads import AlignConfig
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"model": "mini", "output": str(RESULTS / "align_hard.json")}
DOCUMENTS = 4  # of a bitext
EDITS = {
    "plain": 0.4,
    **{f"{what} {side}": 0.1 for what in ("merge", "split") for side in ("source", "target")},
    **{f"{what} {side}": 0.05 for what in ("drop", "insert") for side in ("source", "target")},
}


def documents(name: str) -> Iterator[Document]:
    """Yield the hard documents of a bitext."""
    pairs, draw = read_bitext(DATA / "train" / f"{name}.tsv.gz"), np.random.default_rng(7)
    pairs = pairs[len(pairs) // 2 :]
    for seed in range(DOCUMENTS):
        start = int(draw.integers(0, len(pairs) - PAIRS))
        yield edited(pairs[start : start + PAIRS], pairs, (name[:2], name[3:5]), seed, EDITS)


def holds(one: Bead, other: Bead) -> bool:
    """Return True if a bead has all lines of another one."""
    return set(other[0]) <= set(one[0]) and set(other[1]) <= set(one[1])


def missed(found: list[Bead], gold: list[Bead]) -> np.ndarray:
    """Count the gold beads that were not found: those within one that was, those that hold one, and others."""
    out = np.zeros(3, np.int64)
    for bead in set(gold) - set(found):
        wider, narrower = any(holds(one, bead) for one in found), any(holds(bead, one) for one in found)
        out[0 if wider else 1 if narrower else 2] += 1
    return out


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write."""
    align = by_xswe(xswe.load(settings["model"]), AlignConfig())
    totals: dict[str, np.ndarray] = {}
    for name in FILES:
        for document in documents(name):
            found = beads_of(align(document, (name[:2], name[3:5])))
            row = np.concatenate([counts(found, document.beads)[:3], missed(found, document.beads)])
            for key in (name[:5], name):
                totals[key] = totals.get(key, 0) + row
    rows = []
    for name, (found, gold, right, wider, narrower, other) in sorted(totals.items()):
        shares = {"precision": float(right / found), "recall": float(right / gold), "f1": float(2 * right / (found + gold))}
        wrong = {"wider": int(wider), "narrower": int(narrower), "other": int(other)}
        rows.append({"documents": name, **shares, "beads": int(gold), **wrong})
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    write_json(Path(settings["output"]), {"model": settings["model"], "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
