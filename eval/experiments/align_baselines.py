"""Published methods of sentence alignment, to be measured beside the library's.

Gale-Church and vecalign are written here; hunalign and Bleualign are their authors' programs.

Both give the cells of a path, int64 (k, 2), as the library's own does: how many lines of either side come before each step.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numba import njit

_PRIORS = {(1, 1): 0.89, (1, 0): 0.0099, (0, 1): 0.0099, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
_VARIANCE = 6.8


def gale_church(source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Align by lengths alone (Gale and Church, 1993): characters, the ratio of the two sides' totals, beads up to 2:2."""
    sizes = [np.concatenate([[0], np.cumsum([len(text) for text in side])]).astype(np.float64) for side in (source, target)]
    shapes = np.array(list(_PRIORS), np.int64)
    prices = np.array([-math.log(prior) for prior in _PRIORS.values()])
    ratio = sizes[1][-1] / max(1.0, sizes[0][-1])
    return _cells(_lengths(*sizes, shapes, prices, ratio), len(source), len(target), shapes)


@njit(cache=True)
def _lengths(source: np.ndarray, target: np.ndarray, shapes: np.ndarray, prices: np.ndarray, ratio: float) -> np.ndarray:
    """Return the last step to each cell, as a row of shapes."""
    n, m = len(source) - 1, len(target) - 1
    costs, back = np.full((n + 1, m + 1), np.inf), np.full((n + 1, m + 1), -1, np.int8)
    costs[0, 0] = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            for s in range(len(shapes)):
                a, b = shapes[s, 0], shapes[s, 1]
                if a > i or b > j or costs[i - a, j - b] == np.inf:
                    continue
                x, y = ratio * (source[i] - source[i - a]), target[j] - target[j - b]
                mean = max(1.0, (x + y) / 2)
                off = abs(x - y) / math.sqrt(_VARIANCE * mean)
                tail = max(1e-12, math.erfc(off / math.sqrt(2.0)))
                cost = costs[i - a, j - b] + prices[s] - math.log(tail)
                if cost < costs[i, j]:
                    costs[i, j], back[i, j] = cost, s
    return back


def _cells(back: np.ndarray, i: int, j: int, shapes: np.ndarray) -> np.ndarray:
    cells = [(i, j)]
    while i or j:
        a, b = shapes[back[i, j]].tolist()
        i, j = i - a, j - b
        cells.append((i, j))
    return np.array(cells[::-1], np.int64)


# vecalign (Thompson and Koehn, 2019).

_DENSE = 300  # lines up to which all cells are looked at
_SAMPLES = 100
_SKIP = 0.2  # the quantile of the costs of random pairs that a gap costs


def overlaps(texts: Sequence[str], most: int, joint: str) -> list[list[str]]:
    """Return the texts of runs: of 1 to ``most`` lines, each run under its last line; "" where there is none."""
    return [[joint.join(texts[i - a : i + 1]) if i >= a else "" for i in range(len(texts))] for a in range(most)]


def vecalign(source: np.ndarray, target: np.ndarray, size: int = 8, search: int = 5, seed: int = 0) -> np.ndarray:
    """Align by the vectors of overlaps.

    Args:
        source: float32 (most, n, d), unit vectors of the runs that end with each line.
        target: float32 (most, m, d).
        size: lines of a bead, both sides together, at most.
        search: cells by which the path may depart from the coarser one.
        seed: of the samples that costs are normalised by.
    """
    draw = np.random.default_rng(seed)
    levels = [(source, target)]
    while min(levels[-1][0].shape[1], levels[-1][1].shape[1]) > _DENSE:
        levels.append(tuple(_halved(side[:1]) for side in levels[-1]))
    shapes = np.array([(a, b) for a in range(1, size) for b in range(1, size) if a + b <= size], np.int64)
    cells = None
    for level, (a, b) in reversed(list(enumerate(levels))):
        n, m = a.shape[1], b.shape[1]
        low, high = (
            (np.zeros(n + 1, np.int64), np.full(n + 1, m + 1, np.int64)) if cells is None else _band(cells, n, m, search)
        )
        norms = [_norms(x, y, draw) for x, y in ((a, b), (b, a))]
        rows, columns = draw.integers(0, n, 20_000), draw.integers(0, m, 20_000)
        cosines = np.einsum("ij,ij->i", a[0, rows], b[0, columns])
        random = (1 - cosines) / np.maximum(1e-6, norms[0][0, rows] + norms[1][0, columns])
        gap = float(np.quantile(random, _SKIP))
        chosen = shapes if level == 0 else shapes[:1]
        cells = _cells_in_band(*_banded(a, b, *norms, low, high, chosen, gap), low, n, m)
    return cells


def _halved(side: np.ndarray) -> np.ndarray:
    half = side.shape[1] // 2
    out = side[:, : 2 * half : 2] + side[:, 1 : 2 * half : 2]
    if side.shape[1] % 2:
        out = np.concatenate([out, side[:, -1:]], 1)
    out -= out.mean(1, keepdims=True)
    return np.ascontiguousarray(out / np.maximum(1e-9, np.linalg.norm(out, axis=2, keepdims=True)), np.float32)


def _norms(side: np.ndarray, other: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Return the mean of 1 - cosine with random runs of the other side, for each run."""
    rows = draw.integers(0, other.shape[1], _SAMPLES)
    sizes = np.minimum(rows, np.arange(_SAMPLES) % len(other))  # runs of all sizes
    return 1 - side @ other[sizes, rows].mean(0)


def _band(cells: np.ndarray, n: int, m: int, search: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.full(n + 1, m, np.int64), np.zeros(n + 1, np.int64)
    for i, j in (2 * cells).tolist():
        for row in range(max(0, i - 1), min(n, i + 2) + 1):
            first[row], last[row] = min(first[row], j), max(last[row], j)
    first, last = np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)
    low, high = np.maximum(0, first - search), np.minimum(m, last + search) + 1
    low[0], high[n] = 0, m + 1
    return low, high


@njit(cache=True, fastmath=True)
def _banded(
    source: np.ndarray,
    target: np.ndarray,
    source_norms: np.ndarray,
    target_norms: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    shapes: np.ndarray,
    gap: float,
) -> tuple[np.ndarray, np.ndarray]:
    n = source.shape[1]
    width = (high - low).max()
    costs, back = np.full((n + 1, width), np.inf), np.zeros((n + 1, width), np.int64)
    costs[0, 0] = 0.0
    for i in range(n + 1):
        for j in range(low[i], high[i]):
            best, step = costs[i, j - low[i]], 0
            if i and low[i - 1] <= j < high[i - 1] and costs[i - 1, j - low[i - 1]] + gap < best:
                best, step = costs[i - 1, j - low[i - 1]] + gap, 100
            if j > low[i] and costs[i, j - 1 - low[i]] + gap < best:
                best, step = costs[i, j - 1 - low[i]] + gap, 1
            for s in range(len(shapes)):
                a, b = shapes[s]
                if a > i or not low[i - a] <= j - b < high[i - a]:
                    continue
                before = costs[i - a, j - b - low[i - a]]
                if before == np.inf:
                    continue
                x, y, cosine = source[a - 1, i - 1], target[b - 1, j - 1], np.float32(0.0)
                for k in range(len(x)):
                    cosine += x[k] * y[k]
                norm = max(1e-6, source_norms[a - 1, i - 1] + target_norms[b - 1, j - 1])
                cost = before + (1 - cosine) * a * b / norm
                if cost < best:
                    best, step = cost, 100 * a + b
            costs[i, j - low[i]], back[i, j - low[i]] = best, step
    return costs, back


def _cells_in_band(costs: np.ndarray, back: np.ndarray, low: np.ndarray, i: int, j: int) -> np.ndarray:
    cells = [(i, j)]
    while i or j:
        step = int(back[i, j - low[i]])
        i, j = i - step // 100, j - step % 100
        cells.append((i, j))
    return np.array(cells[::-1], np.int64)


def hunalign(program: str, source: Sequence[str], target: Sequence[str], words: Mapping[str, str]) -> np.ndarray:
    """Align by lengths and a dictionary, which learns from the texts (Varga et al., 2005), by the authors' program.

    Args:
        program: the compiled program.
        source: lines, cut into words.
        target: likewise.
        words: translations of words of the source.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder) / name) for name in ("words", "source", "target")]
        entries = [f"{there} @ {here}" for here, there in words.items()]
        for name, lines in zip(names, (entries, source, target), strict=True):
            Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        done = subprocess.run(
            [str(Path(program).absolute()), "-utf", "-realign", *names],
            cwd=folder,
            capture_output=True,
            check=True,
            text=True,
        )
    rungs = [line.split("\t")[:2] for line in done.stdout.splitlines() if line.count("\t") == 2]
    return np.array([(int(a), int(b)) for a, b in rungs], np.int64)


def bleualign(folder: str, source: Sequence[str], target: Sequence[str], words: Mapping[str, str]) -> np.ndarray:
    """Align by how like the target a translation of the source is (Sennrich and Volk, 2010), by the authors' code.

    Args:
        folder: with the authors' package.
        source: lines, cut into words.
        target: likewise.
        words: translations of words of the source: in the place of a machine, the text is translated word by word.
    """
    if folder not in sys.path:
        sys.path.append(folder)
    from bleualign.align import Aligner

    translated = [" ".join(words.get(word.lower(), word) for word in line.split(" ")) for line in source]
    program = Aligner({"srcfile": list(source), "targetfile": list(target), "srctotarget": [translated], "verbosity": 0})
    found = program.process(list(source), list(target), [translated], [])
    cells = [(0, 0)]
    for (a, b), _ in sorted(found):
        if a and b and a[0] >= cells[-1][0] and b[0] >= cells[-1][1]:
            while cells[-1] != (a[0], b[0]):  # gaps, a line at a time
                i, j = cells[-1]
                cells.append((i + 1, j) if i < a[0] else (i, j + 1))
            cells.append((a[-1] + 1, b[-1] + 1))
    return np.array(cells, np.int64)
