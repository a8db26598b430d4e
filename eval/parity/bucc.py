"""The BUCC shared task's F1 and threshold beside LASER's pass over the sorted candidates, written out."""

from __future__ import annotations

import numpy as np

from eval.experiments.bucc import Extracted, score, tune
from eval.parity.figures import Figures, Inputs, figure

NEEDS = ()


def written_out(pairs: list[tuple[str, str]], scores: np.ndarray, gold: set[tuple[str, str]]) -> tuple[float, float]:
    """Return the threshold of the best F1, and that F1: one candidate more at a time, the best first.

    LASER's threshold lies half-way to the next candidate, as ours does.
    """
    order = np.argsort(-scores, kind="stable")
    right, best, threshold = 0, 0.0, 0.0
    for n, i in enumerate(order, 1):
        right += pairs[i] in gold
        precision, recall = right / n, right / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        if f1 > best:
            following = scores[order[n]] if n < len(order) else scores[i]
            best, threshold = f1, (float(scores[i]) + float(following)) / 2
    return threshold, best


def measure(inputs: Inputs) -> Figures:
    """Compare on candidates of which the better scored are more often right."""
    n = 200 if inputs.small else 20_000
    generator = np.random.default_rng(0)
    scores = np.sort(generator.normal(1.1, 0.1, n).astype(np.float32))[::-1]
    pairs = [(f"de-{i:09d}", f"en-{i:09d}") for i in range(n)]
    right = generator.random(n) < 1 / (1 + np.exp(-(scores - 1.1) * 30))
    gold = {pair for pair, true in zip(pairs, right, strict=True) if true} | {("de-x", f"en-{i}") for i in range(n // 20)}
    threshold, best = written_out(pairs, scores, gold)
    extracted = Extracted(pairs, scores)
    ours = tune(extracted, gold)
    yield figure("BUCC", "LASER's, written out", "best F1", score(extracted, gold, ours).f1, best, 1e-9)
    yield figure("BUCC", "LASER's, written out", "its threshold", ours, threshold, 1e-4)
