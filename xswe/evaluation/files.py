"""Any aligned bitext, and any scored pairs, as an evaluation task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from xswe.corpus.pairs import PairFile, read_pairs
from xswe.corpus.streams import read_lines
from xswe.errors import InputError
from xswe.evaluation.retrieval import bitext_retrieval
from xswe.evaluation.rows import Row
from xswe.evaluation.similarity import similarity_correlation

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
    a, b = encode(source), encode(target)
    rows = [Row(task, subset, name, value, len(a)) for name, value in bitext_retrieval(a, b).items()]
    by_margin = bitext_retrieval(a, b, margin=True)
    return rows + [Row(task, subset, f"margin_{name}", value, len(a)) for name, value in by_margin.items()]


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
        InputError: a line has no number or fewer than three columns.
    """
    scores, left, right = [], [], []
    for number, line in read_lines(path):
        fields = (line or "").split("\t")
        try:
            scores.append(float(fields[0]))
            left.append(fields[1])
            right.append(fields[2])
        except (ValueError, IndexError):
            raise InputError(path, "not score<TAB>text<TAB>text", "mend or remove the line", number) from None
    found = similarity_correlation(encode(left), encode(right), np.array(scores))
    return [Row(name, path.name, metric, value, len(scores)) for metric, value in found.items()]
