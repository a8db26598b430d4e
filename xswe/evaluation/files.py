"""Any aligned bitext, and any scored pairs, as an evaluation task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from xswe.corpus.pairs import PairFile, read_pairs
from xswe.corpus.streams import read_lines
from xswe.errors import InputError
from xswe.evaluation.retrieval import bitext_items
from xswe.evaluation.rows import Row
from xswe.evaluation.similarity import CORRELATIONS, cosines

Encode = Callable[[Sequence[str]], np.ndarray]


def evaluate_bitext(encode: Encode, file: PairFile, name: str) -> list[Row]:
    """Score translation retrieval on an aligned bitext: by cosine, and by ratio margin (k = 4).

    Args:
        encode: text to unit vectors.
        file: the bitext; pairs with an empty side are left out.
        name: what the rows call it.
    """
    pairs = [(a, b) for a, b in read_pairs(file) if a and b]
    if not pairs:
        raise InputError(file.source, "no pair in it", "give a file of source<TAB>target lines")
    return score_bitext(encode, [a for a, _ in pairs], [b for _, b in pairs], name, file.source.name)


def score_bitext(encode: Encode, source: Sequence[str], target: Sequence[str], task: str, subset: str) -> list[Row]:
    """Score translation retrieval between two aligned lists of texts."""
    return score_vectors(encode(source), encode(target), task, subset)


def score_vectors(source: np.ndarray, target: np.ndarray, task: str, subset: str) -> list[Row]:
    """Score translation retrieval between two aligned float32 (n, d) of unit vectors."""
    if not len(source):
        return []
    return [
        Row(task, subset, f"{prefix}{metric}", float(items.mean()), len(source), items=items)
        for prefix, margin in (("", False), ("margin_", True))
        for metric, items in bitext_items(source, target, margin).items()
    ]


def is_scored(path: Path) -> bool:
    """Tell whether a file's first line is ``score<TAB>a<TAB>b``."""
    for _, line in read_lines(path):
        fields = (line or "").split("\t")
        try:
            return len(fields) >= 3 and float(fields[0]) is not None
        except ValueError:
            return False
    return False


def evaluate_scored(encode: Encode, path: Path, name: str) -> list[Row]:
    """Correlate cosines with the scores of a ``score<TAB>a<TAB>b`` file.

    Raises:
        InputError: a line has no number or fewer than three columns, or there is no line.
    """
    scores, left, right = [], [], []
    for number, line in read_lines(path):
        fields = (line or "").split("\t")
        try:
            score, a, b = float(fields[0]), fields[1], fields[2]
        except (ValueError, IndexError):
            raise InputError(path, "not score<TAB>text<TAB>text", "mend or remove the line", number) from None
        if not math.isfinite(score):
            raise InputError(path, f"the score is {fields[0]}", "mend or remove the line", number)
        scores.append(score)
        left.append(a)
        right.append(b)
    if not scores:
        raise InputError(path, "no pair in it", "give a file of score<TAB>text<TAB>text lines")
    return score_similarity(encode(left), encode(right), np.array(scores), name, path.name)


def score_similarity(left: np.ndarray, right: np.ndarray, scores: np.ndarray, task: str, subset: str) -> list[Row]:
    """Correlate the cosines of two float32 (n, d) of unit vectors with scores, float (n,)."""
    items = np.stack([cosines(left, right).astype(np.float64), scores])
    rows = []
    for metric, correlate in CORRELATIONS.items():
        value = correlate(*items)
        if math.isfinite(value):
            rows.append(Row(task, subset, metric, value, len(scores), items=items))
        else:
            what = "all scores are equal" if np.ptp(scores) == 0 else "all cosines are equal"
            rows.append(Row(task, subset, metric, None, len(scores), note=f"no correlation: {what}"))
    return rows
