"""Any aligned bitext, and any scored pairs, as an evaluation task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from xswe.corpus.pairs import PairFile, read_pairs
from xswe.corpus.streams import read_lines
from xswe.errors import InputError
from xswe.evaluation.retrieval import bitext_items
from xswe.evaluation.rows import Row
from xswe.evaluation.similarity import correlation_rows, cosines

Encode = Callable[[Sequence[str]], np.ndarray]
_FIRST_LINES = 20  # tell a scored file from a bitext: a header line or a damaged one must not decide


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
    """Tell whether at least half of a file's first lines are ``score<TAB>a<TAB>b``; blank ones do not count."""
    lines = (line for _, line in read_lines(path) if line and line.strip())
    first = [line.split("\t") for line in islice(lines, _FIRST_LINES)]
    return bool(first) and 2 * sum(len(fields) >= 3 and _number(fields[0]) is not None for fields in first) >= len(first)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_scored(path: Path) -> tuple[np.ndarray, list[str], list[str]]:
    """Read a ``score<TAB>a<TAB>b`` file, which has no header line.

    Returns:
        The scores, float64 (n,), and both columns of n texts.

    Raises:
        InputError: a line has no finite number or fewer than three columns, or there is no line.
    """
    scores, left, right = [], [], []
    for number, line in read_lines(path):
        fields = (line or "").split("\t")
        if len(fields) < 3 or (score := _number(fields[0])) is None:
            raise InputError(path, "not score<TAB>text<TAB>text", "mend or remove the line", number)
        if not math.isfinite(score):
            raise InputError(path, f"the score is {fields[0]}", "mend or remove the line", number)
        scores.append(score)
        left.append(fields[1])
        right.append(fields[2])
    if not scores:
        raise InputError(path, "no pair in it", "give a file of score<TAB>text<TAB>text lines")
    return np.array(scores), left, right


def evaluate_scored(encode: Encode, path: Path, name: str) -> list[Row]:
    """Correlate cosines with the scores of a ``score<TAB>a<TAB>b`` file; see :func:`read_scored`."""
    scores, left, right = read_scored(path)
    return score_similarity(encode(left), encode(right), scores, name, path.name)


def score_similarity(left: np.ndarray, right: np.ndarray, scores: np.ndarray, task: str, subset: str) -> list[Row]:
    """Correlate the cosines of two float32 (n, d) of unit vectors with scores, float (n,)."""
    return correlation_rows(cosines(left, right), scores, task, subset)
