"""Margins and selections of mining beside LASER's written out in loops over all cosines (Artetxe and Schwenk 2019)."""

from __future__ import annotations

from typing import get_args

import numpy as np

from eval.parity.figures import Figure, Figures, Inputs, figure, planted
from xswe.mining.margin import Pairs, Score, Selection, score_candidates, select
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours

NEEDS = ()
K = 4
Scored = list[tuple[float, int, int]]


def written_out(x: np.ndarray, y: np.ndarray, score: Score = "ratio", how: Selection = "max", k: int = K) -> Scored:
    """Return (score, source, target) of the chosen pairs, best first, from loops in float64."""
    cosines = x.astype(np.float64) @ y.astype(np.float64).T
    forward, backward = np.argsort(-cosines, 1)[:, :k], np.argsort(-cosines.T, 1)[:, :k]
    means_x = [np.mean([cosines[i, j] for j in forward[i]]) for i in range(len(x))]
    means_y = [np.mean([cosines[i, j] for i in backward[j]]) for j in range(len(y))]

    def scored(i: int, j: int) -> float:
        neighbourhood = (means_x[i] + means_y[j]) / 2
        by = {
            "ratio": lambda: cosines[i, j] / neighbourhood,
            "distance": lambda: cosines[i, j] - neighbourhood,
            "csls": lambda: 2 * cosines[i, j] - means_x[i] - means_y[j],
            "cosine": lambda: cosines[i, j],
        }
        return float(by[score]())

    best_x = [max(forward[i], key=lambda j: scored(i, j)) for i in range(len(x))]
    best_y = [max(backward[j], key=lambda i: scored(i, j)) for j in range(len(y))]
    of_x = [(scored(i, j), i, int(j)) for i, j in enumerate(best_x)]
    of_y = [(scored(i, j), int(i), j) for j, i in enumerate(best_y)]
    if how == "forward":
        return sorted(of_x, key=lambda pair: -pair[0])
    if how == "backward":
        return sorted(of_y, key=lambda pair: -pair[0])
    if how == "intersection":
        return sorted(set(of_x) & set(of_y), key=lambda pair: -pair[0])
    out, used_x, used_y = [], set(), set()
    for value, i, j in sorted([*of_x, *of_y], reverse=True):
        if i not in used_x and j not in used_y:
            used_x.add(i)
            used_y.add(j)
            out.append((value, i, j))
    return out


def mined(x: np.ndarray, y: np.ndarray, score: Score, how: Selection) -> Pairs:
    """Return our pairs."""
    return select(score_candidates(find_neighbours(x, y, K, SearchConfig(threads=1)), score, K), how)


def measure(inputs: Inputs) -> Figures:
    """Compare each score and each selection on directions, each with a noisy copy, and some without."""
    n = 60 if inputs.small else 500
    a, b = planted(n, 24)
    b = np.roll(b, 7, axis=0)[: n - n // 8]
    scores: tuple[Score, ...] = get_args(Score)
    selections = [how for how in get_args(Selection) if how != "kbest"]
    for score in scores:
        expected, found = written_out(a, b, score), mined(a, b, score, "max")
        where = {(i, j): value for value, i, j in expected}
        pairs = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
        values = [where.get(pair, 0.0) for pair in pairs]
        yield figure("scores of the pairs", "LASER's, written out", score, found.scores, values, 1e-5)
    for how in selections:
        pairs = {(i, j) for _, i, j in written_out(a, b, "ratio", how)}
        ours = mined(a, b, "ratio", how)
        differ = pairs ^ set(zip(ours.source.tolist(), ours.target.tolist(), strict=True))
        yield Figure("pairs chosen by one alone", "LASER's, written out", how, len(differ), 0.0, len(pairs), True)
