"""Ensembles whose weights are fitted to development files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import spearman, weighted_f1
from xswe.evaluation.tasks import is_scored, read_scored
from xswe.io.arguments import several
from xswe.io.files import check_folder
from xswe.io.parallel import available_threads
from xswe.io.products import products, row_products
from xswe.io.results import Result, table
from xswe.model.ensemble import Ensemble, fit_weights, locate
from xswe.model.interchange import WORDLLAMA, is_model2vec, read_static
from xswe.model.static import StaticModel
from xswe.text.languages import check_languages

# A score of the mean cosines of one development file: (weights of the parts) -> figure.
Quality = Callable[[np.ndarray], float]
_FEWEST = 3  # pairs of a development file: on fewer, any weights are as good
_MOST_PAIRS = 2000  # of a bitext, for fitting: all are compared with all, at each try


@dataclass(frozen=True)
class FittedEnsemble(Result[tuple[Any, ...]]):
    """An ensemble, and the scores of it and its parts on the development files.

    Attributes:
        ensemble: the model.
        names: of the parts.
        files: the development files.
        scores: of each part, and last of the ensemble, on each file.
    """

    ensemble: Ensemble
    names: tuple[str, ...]
    files: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def languages(self) -> str:
        """The ensemble's languages, as they are printed."""
        return ", ".join(self.ensemble.languages)

    def columns(self) -> tuple[str, ...]:
        """Return ``model``, ``dims``, ``weight``, and the names of the files."""
        return ("model", "dims", "weight", *(Path(file).name for file in self.files))

    def records(self) -> list[tuple[Any, ...]]:
        """Return a row a part, and one of the ensemble."""
        sizes = [*((part.dim, weight) for part, weight in zip(self.ensemble.parts, self.ensemble.weights, strict=True))]
        rows = zip((*self.names, "ensemble"), (*sizes, (self.ensemble.dim, 1.0)), self.scores, strict=True)
        return [(name, dim, weight, *scores) for name, (dim, weight), scores in rows]

    def __str__(self) -> str:
        return table(self.columns(), [[*row[:2], f"{row[2]:.3f}", *row[3:]] for row in self.records()])


def make_ensemble(
    models: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    weights: Sequence[float] = (),
    fit: Sequence[str | Path] = (),
    languages: Sequence[str] | None = None,
    threads: int | None = None,
) -> FittedEnsemble:
    """Make several static models one.

    Args:
        models: two or more: folders of this library's or Model2Vec's models, names, or ``wordllama``.
        output: folder to write the ensemble to as well.
        weights: of each model; all alike where neither they nor files are given.
        fit: development files that the weights are fitted to: ``score<TAB>a<TAB>b``, or a bitext.
        languages: of models of other libraries; None for English (WordLlama), or all (Model2Vec).
        threads: how many; None for all processors.

    Raises:
        ConfigError: there are too few models, or both weights and files.
        InputError: weights cannot be fitted to a file.
    """
    for name, given, form in _lists(models, fit, weights):
        if not isinstance(given, (list, tuple)):
            raise ConfigError(f"{name}={given}: give a list, as in {name}={form}")
    if output is not None:
        check_folder(output)
    models = several(models, "models", "names of models")
    if others := [type(one).__name__ for one in models if not isinstance(one, (str, Path))]:
        raise TypeError(f"models has one of type {others[0]}: give names or folders, or xswe.types.Ensemble.of(models)")
    names, files = [str(name) for name in models], [str(file) for file in fit]
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in weights):
        raise ConfigError(f"weights={list(weights)}: give numbers, one for each model, as in weights=[0.7,0.3]")
    if len(names) < 2:
        raise ConfigError("models names fewer than two: give models=[runs/a/model,runs/b/model]")
    if files and weights:
        raise ConfigError("give weights=[...] or files to fit them on, fit=[...], not both")
    checked = check_languages(languages) if languages else None
    if checked and not any(name == WORDLLAMA or is_model2vec(locate(name)) for name in names):
        raise ConfigError(f"languages={list(checked)}: every model says its own; leave languages out")
    parts = [read_static(name, checked) for name in names]
    common = Ensemble.of(parts).languages
    scores = [score_of(parts, Path(file), common, threads or available_threads()) for file in files]

    def mean(given: np.ndarray) -> float:
        return float(np.mean([score(given) for score in scores]))

    found = fit_weights(mean, len(parts)) if scores else weights or [1.0] * len(parts)
    ensemble = Ensemble.of(parts, [float(x) for x in found], {"models": names, "fitted_on": files})
    worth = [tuple(score(given) for score in scores) for given in (*np.eye(len(parts)), np.array(ensemble.weights))]
    if output is not None:
        ensemble.save(output)
    return FittedEnsemble(ensemble, tuple(names), tuple(files), tuple(worth))


def _lists(models: Any, fit: Any, weights: Any) -> list[tuple[str, Any, str]]:
    """Return the arguments that are lists, each with its form."""
    return [
        ("models", models, "[runs/a/model,runs/b/model]"),
        ("fit", fit, "[dev.tsv]"),
        ("weights", weights, "[0.7,0.3]"),
    ]


def score_of(parts: Sequence[StaticModel], file: Path, languages: tuple[str, ...], threads: int) -> Quality:
    """Return the score of weights on a development file.

    ``score<TAB>a<TAB>b``: Spearman's correlation of the mean cosines with the scores. An aligned bitext: mteb's F1 of the
    nearest neighbours, mean of both directions.
    """
    if file.is_file() and is_scored(file):
        return _scored(parts, file, threads)
    first, second = (*languages, *languages)[:2]
    pairs = [(a, b) for one in find_pairs([str(file)], (first, second)) for a, b in read_pairs(one) if a and b]
    _refuse_few(file, len(pairs))
    sides = [list(side) for side in zip(*pairs[:_MOST_PAIRS], strict=True)]
    tables = np.stack([products(*(part.encode(side, threads=threads) for side in sides)) for part in parts])

    def f1(weights: np.ndarray) -> float:
        cosines = np.tensordot(np.asarray(weights, np.float32), tables, 1)
        return (weighted_f1(cosines.argmax(1)) + weighted_f1(cosines.argmax(0))) / 2

    return f1


def _refuse_few(file: Path, pairs: int) -> None:
    if pairs < _FEWEST:
        hint = "give a file of more source<TAB>target, or score<TAB>a<TAB>b lines"
        raise InputError(file, f"weights are fitted on {_FEWEST} pairs or more, and it has {pairs}", hint)


def _scored(parts: Sequence[StaticModel], file: Path, threads: int) -> Quality:
    scores, left, right = read_scored(file)
    _refuse_few(file, len(scores))
    if np.ptp(scores) == 0:
        raise InputError(file, "all scores are equal", "give a file with scores that differ")
    cosines = np.stack([row_products(*(part.encode(side, threads=threads) for side in (left, right))) for part in parts])

    def correlation(weights: np.ndarray) -> float:
        return spearman(weights @ cosines, scores)

    if not np.isfinite(correlation(np.full(len(parts), 1.0 / len(parts)))):
        raise InputError(file, "all cosines are equal", "give a file in the languages of the models")
    return correlation
