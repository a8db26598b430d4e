"""Alignment of hard documents, most lines of which were merged, split, left out or put in, and of running text.

    python -m eval.experiments.align_hard [model=mini] [output=FILE]

Documents are runs of 300 pairs of the second halves of XSWE_DATA's bitexts, as those of eval/experiments/align_quality.py,
with more edits: two in five merge or split lines, one in five leaves lines out or puts foreign ones in. Nothing was chosen
on them. Of the gold beads that are not found, ``wider`` are within a bead that was found, ``narrower`` hold one.

``running`` are documents with the usual edits whose lines end in a full stop, joined to paragraphs of six lines, and cut
into sentences again before they are aligned. A gold bead is found if all beads that touch it lie within it, on both sides,
and together have all of its characters: a line of two sentences may be two beads. ``other`` are those that are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import JOINT, Bead, Document, beads_of, counts, edited, read_bitext
from eval.experiments.align_quality import FILES, PAIRS, by_xswe
from eval.settings import DATA, RESULTS, run_script
from xswe.alignment.beads import AlignConfig
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"model": "mini", "output": str(RESULTS / "align_hard.json")}
DOCUMENTS = 4  # of a bitext
LINES = 6  # of a paragraph of running text
_ENDED = re.compile(r"[.!?。！？…][\"'”’»“)）」』]*$")
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


def paragraphs(lines: list[str], language: str) -> str:
    """Join lines to paragraphs of running text."""
    joint = JOINT[language]
    return "\n\n".join(joint.join(lines[start : start + LINES]) for start in range(0, len(lines), LINES))


def running(model: Any, document: Document, languages: tuple[str, str]) -> tuple[int, int, int, int]:
    """Cut running text into sentences and align these; return beads found, gold beads, and how many of both are right."""
    sentences, borders = [], []
    for lines, language in zip((document.source, document.target), languages, strict=True):
        sentences.append([one.text for one in xswe.split_text(paragraphs(lines, language), language)])
        borders.append([ends(sentences[-1]), ends(lines)])
        if borders[-1][0][-1] != borders[-1][1][-1]:
            raise ValueError("cutting a text into sentences lost characters of it")
    aligned = xswe.align(model, *sentences, languages=languages)
    beads = [(one.source_lines, one.target_lines) for one in aligned if one.source_lines and one.target_lines]

    def spans(bead: Any, which: int) -> list[tuple[int, int]]:
        return [(int(own[which][side[0]]), int(own[which][side[-1] + 1])) for side, own in zip(bead, borders, strict=True)]

    found, gold = [spans(bead, 0) for bead in beads], [spans(bead, 1) for bead in document.beads]
    right = complete = 0
    for wanted in gold:
        touching = [own for own in found if any(a < d and c < b for (a, b), (c, d) in zip(own, wanted, strict=True))]
        inside = [own for own in touching if all(c <= a and b <= d for (a, b), (c, d) in zip(own, wanted, strict=True))]
        sizes = [sum(own[k][1] - own[k][0] for own in inside) for k in (0, 1)]
        if len(inside) == len(touching) and sizes == [d - c for c, d in wanted]:
            right, complete = right + len(inside), complete + 1
    return len(found), len(gold), right, complete


def ends(lines: list[str]) -> np.ndarray:
    """Return before which character each line begins, blanks aside, and the number of all."""
    return np.concatenate([[0], np.cumsum([len("".join(line.split())) for line in lines])])


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
    model: Any = xswe.load(settings["model"])
    align = by_xswe(model, AlignConfig())
    totals: dict[str, np.ndarray] = {}
    for name in FILES:
        for document in documents(name):
            found = beads_of(align(document, (name[:2], name[3:5])))
            row = np.concatenate([counts(found, document.beads)[:3], missed(found, document.beads)])
            for key in (name[:5], name):
                totals[key] = totals.get(key, 0) + row
    rows = []
    for name in FILES:
        pairs = [pair for pair in read_bitext(DATA / "train" / f"{name}.tsv.gz") if all(map(_ENDED.search, pair))]
        languages, total = (name[:2], name[3:5]), np.zeros(4, np.int64)
        for seed in range(DOCUMENTS):
            start = len(pairs) // 2 + seed * PAIRS
            total += running(model, edited(pairs[start : start + PAIRS], pairs, languages, seed), languages)
        precision, recall = float(total[2] / total[0]), float(total[3] / total[1])
        f1 = 2 * precision * recall / (precision + recall)
        shares = {"precision": precision, "recall": recall, "f1": f1, "beads": int(total[1])}
        rows.append(
            {"documents": f"running {name}", **shares, "wider": 0, "narrower": 0, "other": int(total[1] - total[3])}
        )
    for name, (found, gold, right, wider, narrower, other) in sorted(totals.items()):
        shares = {"precision": float(right / found), "recall": float(right / gold), "f1": float(2 * right / (found + gold))}
        wrong = {"wider": int(wider), "narrower": int(narrower), "other": int(other)}
        rows.append({"documents": name, **shares, "beads": int(gold), **wrong})
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    write_json(Path(settings["output"]), {"model": settings["model"], "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
