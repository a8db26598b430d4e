"""Alignment of hard documents, most lines of which were merged, split, left out or put in, and of running text.

    python -m eval.experiments.align_hard [model=mini] [output=FILE]

Documents are runs of 300 pairs of the second halves of XSWE_DATA's bitexts, as those of eval/experiments/align_quality.py,
with more edits: two in five merge or split lines, one in five leaves lines out or puts foreign ones in. Nothing was chosen
on them. Of the gold beads that are not found, ``wider`` are within a bead that was found, ``narrower`` hold one.

``running`` are documents with the usual edits whose lines end in a full stop, joined to paragraphs of six lines, and cut
into sentences again before they are aligned. A gold bead is found if all beads that touch it lie within it, on both sides,
and together have all of its characters: a line of two sentences may be two beads. ``strict`` counts those alone that are
one bead, and so counts against an aligner that a line has two sentences, each with its translation. Gold beads are
``doubtful`` whose source says more of what a bead before or behind says in the target, or the other way round; ``sound`` is
F1 without these, and without what was found in their place. The lectures (coursera) were aligned by a program, and many of
their lines stand beside another line's translation. The same model decides what is doubtful: read ``sound`` as a bound.
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


def running(model: Any, document: Document, languages: tuple[str, str]) -> np.ndarray:
    """Cut running text into sentences, and align these.

    Returns:
        int64 (9,): beads found, gold beads, found beads that are right, gold beads that were found; the same four of what
        touches no doubtful gold bead; and gold beads that were found as one bead.
    """
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
    out, in_doubt = np.zeros(9, np.int64), set[int]()
    for wanted, doubt in zip(gold, doubtful(model, document), strict=True):
        touching = [k for k, own in enumerate(found) if _overlap(own, wanted)]
        inside = [found[k] for k in touching if _within(found[k], wanted)]
        sizes = [sum(own[k][1] - own[k][0] for own in inside) for k in (0, 1)]
        right = len(inside) == len(touching) and sizes == [d - c for c, d in wanted]
        row = np.array([1, right * len(inside), right])
        out[1:4] += row
        out[5:8] += 0 if doubt else row
        out[8] += right and len(inside) == 1
        in_doubt.update(touching if doubt else ())
    out[[0, 4]] = len(found), len(found) - len(in_doubt)
    return out


def _overlap(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    """Return True if two beads share characters on both sides."""
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


def _within(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    """Return True if the other bead has all characters of the first one."""
    return all(c <= a and b <= d for (a, b), (c, d) in zip(one, other, strict=True))


def doubtful(model: Any, document: Document) -> np.ndarray:
    """Return of which gold beads a side is more similar to the other side of one of the four around it, bool (n,)."""
    source, target = (
        model.encode([" ".join(side[line] for line in bead[k]) for bead in document.beads])
        for k, side in enumerate((document.source, document.target))
    )
    own, best = (source * target).sum(1), np.full(len(source), -1.0)
    for away in (1, 2):
        after, before = (source[:-away] * target[away:]).sum(1), (source[away:] * target[:-away]).sum(1)
        for near in (after, before):
            best[:-away], best[away:] = np.maximum(best[:-away], near), np.maximum(best[away:], near)
    return best > own


def _f1(found: int, gold: int, right: int, complete: int) -> dict[str, float]:
    """Return precision, of what was found, and recall, of the gold beads, and F1."""
    precision, recall = right / found, complete / gold
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall)}


def ends(lines: list[str]) -> np.ndarray:
    """Return before which letter or digit each line begins, and the number of all: to whom marks belong says nothing."""
    return np.concatenate([[0], np.cumsum([sum(map(str.isalnum, line)) for line in lines])])


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


def hard_rows(model: Any) -> list[dict[str, Any]]:
    """Return what is found of the hard documents, by languages and by bitext."""
    align = by_xswe(model, AlignConfig())
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
    return rows


def running_row(model: Any, name: str) -> dict[str, Any]:
    """Return what is found of the running text of a bitext."""
    pairs = [pair for pair in read_bitext(DATA / "train" / f"{name}.tsv.gz") if all(map(_ENDED.search, pair))]
    languages, total = (name[:2], name[3:5]), np.zeros(9, np.int64)
    for seed in range(DOCUMENTS):
        start = len(pairs) // 2 + seed * PAIRS
        total += running(model, edited(pairs[start : start + PAIRS], pairs, languages, seed), languages)
    every, sound, whole = total[:4].tolist(), total[4:8].tolist(), int(total[8])
    further = {"strict": 2 * whole / (every[0] + every[1]), "sound": _f1(*sound)["f1"]}
    return {"documents": name, **_f1(*every), **further, "beads": every[1], "doubtful": every[1] - sound[1]}


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write."""
    model: Any = xswe.load(settings["model"])
    texts, rows = [running_row(model, name) for name in FILES], hard_rows(model)
    for title, found in (("running text", texts), ("hard", rows)):
        print(f"{title}\n{table(list(found[0]), [list(row.values()) for row in found])}")
    write_json(Path(settings["output"]), {"model": settings["model"], "running": texts, "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
