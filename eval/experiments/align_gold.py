"""Gold for sentence alignment, made from real documents: bitext in document order, edited at known places; and scores."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.settings import pairs_of
from xswe.text.scripts import around_runs, has_cjk
from xswe.text.segmenters import Segmenter

Bead = tuple[tuple[int, ...], tuple[int, ...]]
JOINT = {"en": " ", "de": " ", "zh": "", "ja": ""}
_CUT = re.compile(r"(?<=[,;:.!?])\s+|(?<=[，。、；：！？])")
EDITS = {
    "plain": 0.66,
    **{"merge source": 0.06, "merge target": 0.06, "split source": 0.06, "split target": 0.06},
    **{"drop source": 0.03, "drop target": 0.03, "insert source": 0.02, "insert target": 0.02},
}


@dataclass(frozen=True)
class Document:
    """Two texts and what translates what.

    Attributes:
        source: lines.
        target: lines.
        beads: gold: lines of either side, from 0; those in none have no translation, or one that is out of order.
    """

    source: list[str]
    target: list[str]
    beads: list[Bead]


def read_bitext(path: Path) -> list[tuple[str, str]]:
    """Read the pairs of a packed, tab-separated bitext."""
    return [(a.strip(), b.strip()) for a, b in pairs_of(path) if a.strip() and b.strip()]


def cut_words(text: str, segmenter: Segmenter | None) -> str:
    """Cut a text into words, with blanks between them: runs of Han and Kana by a segmenter."""
    parts = [
        " ".join(part[a:b] for a, b in segmenter(part)) if segmenter and has_cjk(part) else part
        for part in around_runs(text)
    ]
    return " ".join(" ".join(re.findall(r"\w+|[^\w\s]", part)) for part in parts)


def halves(text: str) -> tuple[str, str] | None:
    """Cut a sentence at the mark nearest to its middle; None if there is none well inside."""
    cuts = [match.end() for match in _CUT.finditer(text) if 0.25 < match.end() / len(text) < 0.75]
    if not cuts:
        return None
    place = min(cuts, key=lambda cut: abs(cut - len(text) / 2))
    return text[:place].strip(), text[place:].strip()


def edited(
    pairs: Sequence[tuple[str, str]],
    foreign: Sequence[tuple[str, str]],
    languages: tuple[str, str],
    seed: int,
    edits: Mapping[str, float] = EDITS,
) -> Document:
    """Merge, split, drop and insert lines at random, known places.

    Args:
        pairs: lines in the order of a document.
        foreign: pairs of other documents, from which lines are inserted.
        languages: of both sides.
        seed: of the draw.
        edits: how often each is made.
    """
    draw, names, shares = np.random.default_rng(seed), list(edits), list(edits.values())
    sides: tuple[list[str], list[str]] = ([], [])
    beads: list[Bead] = []
    i = 0
    while i < len(pairs):
        edit = str(draw.choice(names, p=shares))
        what, _, which = edit.partition(" ")
        side = 1 if which == "target" else 0
        size = min(len(pairs) - i, int(draw.integers(2, 4))) if what == "merge" else 1
        texts = [[pair[k] for pair in pairs[i : i + size]] for k in (0, 1)]
        if what == "insert":
            for place in draw.integers(0, len(foreign), int(draw.integers(1, 5))).tolist():
                sides[side].append(foreign[place][side])
            continue
        if what == "merge":
            texts[side] = [JOINT[languages[side]].join(texts[side])]
        elif what == "split" and (cut := halves(texts[side][0])):
            texts[side] = list(cut)
        elif what == "drop":
            texts[side] = []
        starts = len(sides[0]), len(sides[1])
        for k in (0, 1):
            sides[k].extend(texts[k])
        if texts[0] and texts[1]:
            beads.append(tuple(tuple(range(starts[k], starts[k] + len(texts[k]))) for k in (0, 1)))  # type: ignore[arg-type]
        i += size
    return Document(*sides, beads)


def half_missing(document: Document, seed: int) -> Document:
    """Drop 40 % of one side's lines in one run."""
    draw = np.random.default_rng(seed)
    side = int(draw.integers(0, 2))
    lines = [document.source, document.target]
    size = int(0.4 * len(lines[side]))
    start = int(draw.integers(0, len(lines[side]) - size))
    kept = [k for k in range(len(lines[side])) if not start <= k < start + size]
    lines[side] = [lines[side][k] for k in kept]
    return Document(lines[0], lines[1], _renumbered(document.beads, side, kept))


def moved(document: Document, seed: int) -> Document:
    """Move two runs of six lines of the target by 20 to 60 lines; as no path goes there, they lose their partners."""
    draw = np.random.default_rng(seed)
    order = list(range(len(document.target)))
    gone: set[int] = set()
    for _ in range(2):
        start = int(draw.integers(0, len(order) - 70))
        run = order[start : start + 6]
        order[start : start + 6] = []
        place = start + int(draw.integers(20, 60))
        order[place:place] = run
        gone |= set(run)
    beads = [bead for bead in document.beads if not gone & set(bead[1])]
    place_of = {old: new for new, old in enumerate(order)}
    beads = [(a, tuple(sorted(place_of[k] for k in b))) for a, b in beads]
    # A run that was put between the lines of a bead breaks it.
    beads = [(a, b) for a, b in beads if b[-1] - b[0] == len(b) - 1]
    return Document(document.source, [document.target[k] for k in order], beads)


def _renumbered(beads: Iterable[Bead], side: int, kept: Sequence[int]) -> list[Bead]:
    place = {old: new for new, old in enumerate(kept)}
    out = []
    for bead in beads:
        found = tuple(place[k] for k in bead[side] if k in place)
        if found:
            both = [bead[0], bead[1]]
            both[side] = found
            out.append((both[0], both[1]))
    return out


def beads_of(cells: np.ndarray) -> list[Bead]:
    """Return the beads of a path's cells, without gaps."""
    return [
        (tuple(range(a[0], b[0])), tuple(range(a[1], b[1])))
        for a, b in zip(cells[:-1].tolist(), cells[1:].tolist(), strict=True)
        if a[0] < b[0] and a[1] < b[1]
    ]


def counts(found: Sequence[Bead], gold: Sequence[Bead]) -> np.ndarray:
    """Count beads: found, gold, found that are gold, found that touch gold on both sides, gold that is touched."""
    pairs = {(a, b) for bead in gold for a in bead[0] for b in bead[1]}
    own = {(a, b) for bead in found for a in bead[0] for b in bead[1]}

    def touches(bead: Bead, cells: set[tuple[int, int]]) -> bool:
        return any((a, b) in cells for a in bead[0] for b in bead[1])

    strict = len(set(found) & set(gold))
    lax = sum(touches(bead, pairs) for bead in found), sum(touches(bead, own) for bead in gold)
    return np.array([len(found), len(gold), strict, *lax])


def f1(total: np.ndarray) -> tuple[float, float]:
    """Return the strict and the lax F1 of added counts."""
    found, gold, strict, right, reached = total.tolist()
    lax = right / max(1, found), reached / max(1, gold)
    return 2 * strict / max(1, found + gold), 2 * lax[0] * lax[1] / max(1e-9, sum(lax))


def reordered(document: Document, order: Sequence[int]) -> Document:
    """Put the lines of the target into another order; beads go with their lines, but for those that are broken by it."""
    place_of = {old: new for new, old in enumerate(order)}
    beads = [(a, tuple(sorted(place_of[k] for k in b))) for a, b in document.beads]
    beads = [(a, b) for a, b in beads if b[-1] - b[0] == len(b) - 1]
    return Document(document.source, [document.target[k] for k in order], beads)


def swapped_chapters(document: Document, seed: int) -> Document:
    """Swap two chapters of the target, of a fifth to a quarter of its lines each, wherever they are."""
    draw, count = np.random.default_rng(seed), len(document.target)
    sizes = [int(count * share) for share in draw.uniform(0.2, 0.25, 2)]
    first = int(draw.integers(0, count - sum(sizes)))
    second = int(draw.integers(first + sizes[0], count - sizes[1] + 1))
    ends = [0, first, first + sizes[0], second, second + sizes[1], count]
    parts = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    return reordered(document, [line for k in (0, 3, 2, 1, 4) for line in parts[k]])


def moved_paragraphs(document: Document, seed: int) -> Document:
    """Cut the target into 28 paragraphs, and let seven of them be anywhere between the others."""
    draw, count = np.random.default_rng(seed), len(document.target)
    cuts = [0, *sorted(draw.choice(np.arange(1, count), 27, replace=False).tolist()), count]
    parts = [list(range(a, b)) for a, b in itertools.pairwise(cuts)]
    gone = sorted(draw.choice(28, 7, replace=False).tolist())
    rest = [part for k, part in enumerate(parts) if k not in gone]
    for k in gone:
        rest.insert(int(draw.integers(0, len(rest) + 1)), parts[k])
    return reordered(document, [line for part in rest for line in part])
