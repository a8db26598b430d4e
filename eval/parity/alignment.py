"""Strict and lax precision and recall of aligned sentences, beside vecalign's way to count them, written out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from eval.experiments.align_gold import Bead, counts, f1
from eval.parity.figures import Figures, Inputs, figure

NEEDS = ()


def matched(gold: Iterable[Bead], test: Iterable[Bead]) -> tuple[int, int, int]:
    """Count as vecalign does: beads of ``test``, those that are in ``gold``, and those that touch one on both sides."""
    gold, test = set(gold), set(test)
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target in gold:
        for i in source:
            targets[i] |= set(target)
    strict = sum(bead in gold for bead in test)
    lax = sum((a, b) in gold or bool(set(b) & set().union(*(targets[i] for i in a))) for a, b in test)
    return len(test), strict, lax


def written_out(found: list[Bead], gold: list[Bead]) -> tuple[float, float]:
    """Return the strict and the lax F1; recall is precision the other way round."""
    of_found, of_gold = matched(gold, found), matched(found, gold)
    out = []
    for k in (1, 2):
        precision, recall = of_found[k] / of_found[0], of_gold[k] / of_gold[0]
        out.append(2 * precision * recall / max(1e-9, precision + recall))
    return out[0], out[1]


def random_beads(generator: np.random.Generator, n: int) -> list[Bead]:
    """Draw a monotone alignment of n beads, of one to three lines a side."""
    places, out = [0, 0], []
    for _ in range(n):
        sides = []
        for side in range(2):
            places[side] += int(generator.random() < 0.05)  # a line without counterpart
            size = int(generator.choice([1, 2, 3], p=[0.85, 0.1, 0.05]))
            sides.append(tuple(range(places[side], places[side] + size)))
            places[side] += size
        out.append((sides[0], sides[1]))
    return out


def measure(inputs: Inputs) -> Figures:
    """Compare alignments of one text, part of which are the same."""
    n = 40 if inputs.small else 2000
    generator = np.random.default_rng(0)
    gold = random_beads(generator, n)
    found = [*gold[: n // 3], *random_beads(generator, n)[n // 3 :]]
    for name, ours, theirs in zip(("strict", "lax"), f1(counts(found, gold)), written_out(found, gold), strict=True):
        yield figure("alignment", "vecalign's, written out", f"{name} F1", ours, theirs, 1e-9)
