"""Figures of a run: retrieval between the held-out sides after each step, or agreement with a distilled teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from xswe.evaluation.metrics import Row, similarity_correlation
from xswe.evaluation.tasks import score_bitext
from xswe.io.files import resource
from xswe.io.results import table
from xswe.training.config import Trained
from xswe.training.recipes import SAMPLE_COLUMNS


def measure(result: Trained, languages: Sequence[str], threads: int) -> list[Row]:
    """Score every step of a run; the rows' ``note`` is the step."""
    rows = [replace(row, note=step) for step in result.stages for row in score_held_out(result, step, threads)]
    return rows + score_pivots(result, languages, threads)


def score_held_out(result: Trained, step: str, threads: int) -> list[Row]:
    """Score a step on the held-out pairs, or (a single language) against the teacher's cosines."""
    rows, models = [], result.by_language[step]
    for name, texts in result.held_out.items():
        codes = name.split("-")
        unit = [models[c].encode(t, threads=threads) for c, t in zip(codes, texts, strict=True)]
        if len(codes) == 1:
            rows += score_imitation(unit[0], result.teacher, "held-out", name)
        else:
            rows += _retrieval(unit[0], unit[1], "held-out", name)
    return rows


def _retrieval(source: np.ndarray, target: np.ndarray, task: str, subset: str) -> list[Row]:
    """Score retrieval between vectors that are there already."""
    if not len(source):
        return []
    sides = iter((source, target))
    return score_bitext(lambda _: next(sides), [], [], task, subset)


def score_imitation(vectors: np.ndarray, teacher: np.ndarray | None, task: str, subset: str) -> list[Row]:
    """Correlate the cosines of all pairs of some sentences with those of a teacher's vectors of them.

    Args:
        vectors: float32 (n, d), unit vectors.
        teacher: float32 (n, e), the teacher's.
        task: what the rows call it.
        subset: the language.
    """
    if teacher is None or len(vectors) < 3:
        return []
    above = np.triu_indices(len(vectors), 1)
    ours, theirs = (vectors @ vectors.T)[above], (teacher @ teacher.T)[above]
    cosines = similarity_correlation(ours[:, None], np.ones_like(ours)[:, None], theirs)
    return [Row(task, subset, f"{name}_with_teacher", value, len(vectors)) for name, value in cosines.items()]


def score_pivots(result: Trained, languages: Sequence[str], threads: int) -> list[Row]:
    """Score retrieval between languages that no bitext joins, on the embedded sample corpus, which has all four.

    A sentence that stands in the training texts of its language is left out.
    """
    direct = {frozenset(name.split("-")) for name in result.held_out}
    pairs = [pair for pair in combinations(languages, 2) if frozenset(pair) not in direct]
    if not pairs:
        return []
    lines = (resource("corpora") / "sample" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    table = [line.split("\t") for line in lines]
    codes = sorted({code for pair in pairs for code in pair})
    texts = {code: [row[SAMPLE_COLUMNS.index(code)] for row in table] for code in codes}
    known = {code: set(texts[code]).intersection(result.training(code)) for code in codes}
    rows = [i for i in range(len(table)) if not any(texts[code][i] in known[code] for code in codes)]
    found = []
    for step, models in result.by_language.items():
        unit = {code: models[code].encode([texts[code][i] for i in rows], threads=threads) for code in codes}
        for a, b in pairs:
            found += [replace(row, note=step) for row in _retrieval(unit[a], unit[b], "without-bitext", f"{a}-{b}")]
    return found


def summary(rows: Sequence[Row], dims: Mapping[str, int]) -> str:
    """Lay the figures out, one line a step and pair; ``dims`` are the dimensions after each step."""
    subsets = list(dict.fromkeys((row.task, row.subset) for row in rows))
    alone = any(row.metric == "spearman_with_teacher" for row in rows)
    wanted = ("spearman_with_teacher", "pearson_with_teacher") if alone else ("accuracy", "margin_accuracy", "f1")
    lines = []
    for step, dim in dims.items():
        for task, subset in subsets:
            own = [row for row in rows if (row.note, row.task, row.subset) == (step, task, subset)]
            values = {row.metric: row.value for row in own}
            name = subset if task == "held-out" else f"{subset} *"
            lines.append([step, name, dim, *(values.get(metric) for metric in wanted), own[0].n if own else 0])
    names = ["Spearman with the teacher", "Pearson"] if alone else ["accuracy", "by margin", "F1"]
    out = table(["step", "language" if alone else "pair", "dims", *names, "held out"], lines)
    if any(task != "held-out" for task, _ in subsets):
        out += "\n* no bitext joins the two: sentences of the sample corpus that were not trained on"
    return out
