"""Ensembles with weights fitted to development files."""

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
from xswe.io.settings import sound
from xswe.model.ensemble import Ensemble, fit_weights, locate
from xswe.model.interchange import WORDLLAMA, is_model2vec, read_static
from xswe.model.static import StaticModel
from xswe.text.languages import check_languages

# The quality of an ensemble on one development file: (weights of the parts) -> figure.
Quality = Callable[[np.ndarray], float]
_MIN_PAIRS = 3  # of a development file: fewer cannot tell weights apart
_MAX_PAIRS = 2000  # of a bitext: every step of the fit compares all with all


@dataclass(frozen=True)
class FittedEnsemble(Result[tuple[Any, ...]]):
    """An ensemble, and the scores of its parts and itself on the development files.

    Attributes:
        ensemble: the model.
        names: names of the parts.
        files: the development files.
        scores: scores on each file, one row per part, the last for the ensemble.
    """

    ensemble: Ensemble
    names: tuple[str, ...]
    files: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def languages(self) -> str:
        """The ensemble's languages, for printing."""
        return ", ".join(self.ensemble.languages)

    def columns(self) -> tuple[str, ...]:
        """Return ``model``, ``dims``, ``weight``, and the names of the files."""
        return ("model", "dims", "weight", *(Path(file).name for file in self.files))

    def records(self) -> list[tuple[Any, ...]]:
        """Return one row per part, and one for the ensemble."""
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
    """Combine several static models into one.

    Args:
        models: two or more: folders of this library's or Model2Vec's models, names, or ``wordllama``.
        output: folder to write the ensemble to, if any.
        weights: one per model; equal by default, unless ``fit`` is given.
        fit: development files to fit the weights on: ``score<TAB>a<TAB>b``, or a bitext.
        languages: languages of models of other libraries; None for English (WordLlama), or all (Model2Vec).
        threads: number of threads; None for all processors.

    Raises:
        ConfigError: there are fewer than two models, or both weights and files.
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
    names, files = sound([str(name) for name in models], "models"), sound([str(file) for file in fit], "fit")
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in weights):
        raise ConfigError(f"weights={list(weights)}: give numbers, one for each model, as in weights=[0.7,0.3]")
    if len(names) < 2:
        raise ConfigError("models names fewer than two: give models=[runs/a/model,runs/b/model]")
    if files and weights:
        raise ConfigError("give weights=[...] or files to fit them on, fit=[...], not both")
    checked = check_languages(languages) if languages else None
    if checked and not any(name == WORDLLAMA or is_model2vec(locate(name)) for name in names):
        raise ConfigError(f"languages={list(checked)}: every model knows its own; leave languages out")
    parts = [read_static(name, checked) for name in names]
    common = Ensemble.of(parts).languages
    scores = [score_of(parts, Path(file), common, available_threads(threads)) for file in files]

    def mean(given: np.ndarray) -> float:
        return float(np.mean([score(given) for score in scores]))

    found = fit_weights(mean, len(parts)) if scores else weights or [1.0] * len(parts)
    ensemble = Ensemble.of(parts, [float(x) for x in found], {"models": names, "fitted_on": files})
    worth = [tuple(score(given) for score in scores) for given in (*np.eye(len(parts)), np.array(ensemble.weights))]
    if output is not None:
        ensemble.save(output)
    return FittedEnsemble(ensemble, tuple(names), tuple(files), tuple(worth))


def _lists(models: Any, fit: Any, weights: Any) -> list[tuple[str, Any, str]]:
    """Return the arguments that must be lists, each with its name and an example."""
    return [
        ("models", models, "[runs/a/model,runs/b/model]"),
        ("fit", fit, "[dev.tsv]"),
        ("weights", weights, "[0.7,0.3]"),
    ]


def score_of(parts: Sequence[StaticModel], file: Path, languages: tuple[str, ...], threads: int) -> Quality:
    """Return a function that scores weights on a development file.

    On ``score<TAB>a<TAB>b``, it is Spearman's correlation of the mean cosines with the scores; on an aligned bitext, mteb's
    F1 of the nearest neighbours, averaged over both directions.
    """
    if file.is_file() and is_scored(file):
        return _scored(parts, file, threads)
    first, second = (*languages, *languages)[:2]
    pairs = [pair for one in find_pairs([str(file)], (first, second)) for pair in read_pairs(one, whole=True)]
    _refuse_few(file, len(pairs))
    sides = [list(side) for side in zip(*pairs[:_MAX_PAIRS], strict=True)]
    tables = np.stack([products(*(part.encode(side, threads=threads) for side in sides)) for part in parts])

    def f1(weights: np.ndarray) -> float:
        cosines = np.tensordot(np.asarray(weights, np.float32), tables, 1)
        return (weighted_f1(cosines.argmax(1)) + weighted_f1(cosines.argmax(0))) / 2

    return f1


def _refuse_few(file: Path, pairs: int) -> None:
    if pairs < _MIN_PAIRS:
        hint = "give a file of more source<TAB>target, or score<TAB>a<TAB>b lines"
        raise InputError(file, f"fitting weights needs at least {_MIN_PAIRS} pairs, and it has {pairs}", hint)


def _scored(parts: Sequence[StaticModel], file: Path, threads: int) -> Quality:
    scores, left, right = read_scored(file)
    _refuse_few(file, len(scores))
    if np.ptp(scores) == 0:
        raise InputError(file, "all scores are equal", "give a file with scores that differ")
    cosines = np.stack([row_products(*(part.encode(side, threads=threads) for side in (left, right))) for part in parts])

    def correlation(weights: np.ndarray) -> float:
        return spearman(weights @ cosines, scores)

    if not np.isfinite(correlation(np.ones(len(parts)))):
        raise InputError(file, "all cosines are equal", "give a file in the languages of the models")
    return correlation
