"""Several static models as one, with weights that are given or fitted to development files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.blocks import read_pairs
from xswe.corpus.formats import find_pairs
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import similarity_correlation, weighted_f1
from xswe.evaluation.tasks import is_scored, read_scored
from xswe.io.parallel import available_threads
from xswe.io.results import Result, table
from xswe.model.ensemble import Ensemble, fit_weights, locate
from xswe.model.interchange import is_model2vec, read_model2vec, read_wordllama
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, check_languages

# A score of the mean cosines of one development file: (weights of the parts) -> figure.
Score = Callable[[np.ndarray], float]
_FEWEST = 3  # pairs of a development file: on fewer, any weights are as good
_MOST_PAIRS = 2000  # of a bitext, for fitting: all are compared with all, at each try


@dataclass(frozen=True)
class FittedEnsemble(Result):
    """An ensemble, and what it and its parts are worth on the development files.

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
    *,
    weights: Sequence[float] = (),
    fit: Sequence[str | Path] = (),
    languages: Sequence[str] | None = None,
    threads: int | None = None,
) -> FittedEnsemble:
    """Make several static models one.

    Args:
        models: two or more: folders of this library's or Model2Vec's models, names, or ``wordllama``.
        weights: of each model; all alike where neither they nor files are given.
        fit: development files that the weights are fitted to: ``score<TAB>a<TAB>b``, or a bitext.
        languages: of models of other libraries; None for English (WordLlama), or all (Model2Vec).
        threads: how many; None for all processors.

    Raises:
        ConfigError: there are too few models, or both weights and files.
        InputError: weights cannot be fitted to a file.
    """
    names, files = [str(name) for name in models], [str(file) for file in fit]
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in weights):
        raise ConfigError(f"weights={list(weights)}: give numbers, one for each model, as in weights=[0.7,0.3]")
    if len(names) < 2:
        raise ConfigError("models names fewer than two: give models=[runs/a/model,runs/b/model]")
    if files and weights:
        raise ConfigError("give weights=[...] or files to fit them on, fit=[...], not both")
    checked = check_languages(languages) if languages else None
    parts = [open_part(name, checked) for name in names]
    common = Ensemble.of(parts).languages
    scores = [score_of(parts, Path(file), common, threads or available_threads()) for file in files]

    def mean(given: np.ndarray) -> float:
        return float(np.mean([score(given) for score in scores]))

    found = fit_weights(mean, len(parts)) if scores else weights or [1.0] * len(parts)
    ensemble = Ensemble.of(parts, [float(x) for x in found], {"models": names, "fitted_on": files})
    worth = [tuple(score(given) for score in scores) for given in (*np.eye(len(parts)), np.array(ensemble.weights))]
    return FittedEnsemble(ensemble, tuple(names), tuple(files), tuple(worth))


def open_part(name: str, languages: Sequence[str] | None = None) -> StaticModel:
    """Open a model: one of ours (see :func:`xswe.model.ensemble.locate`), a folder of Model2Vec, or ``wordllama``.

    Args:
        name: which.
        languages: of a model of another library; None for English (WordLlama), or all (Model2Vec).
    """
    if name == "wordllama":
        return read_wordllama(languages or ("en",))
    folder = locate(name)
    return read_model2vec(folder, languages or tuple(LANGUAGES)) if is_model2vec(folder) else StaticModel.load(folder)


def score_of(parts: Sequence[StaticModel], file: Path, languages: tuple[str, ...], threads: int) -> Score:
    """Return what weights are worth on a development file.

    ``score<TAB>a<TAB>b``: Spearman's correlation of the mean cosines with the scores. An aligned bitext: mteb's F1 of the
    nearest neighbours, mean of both directions.
    """
    if file.is_file() and is_scored(file):
        return _scored(parts, file, threads)
    first, second = (*languages, *languages)[:2]
    pairs = [(a, b) for one in find_pairs([str(file)], (first, second)) for a, b in read_pairs(one) if a and b]
    _refuse_few(file, len(pairs))
    sides = [list(side) for side in zip(*pairs[:_MOST_PAIRS], strict=True)]
    products = np.stack([_cosines(part, sides[0], sides[1], threads) for part in parts])

    def f1(weights: np.ndarray) -> float:
        cosines = np.tensordot(np.asarray(weights, np.float32), products, 1)
        return (weighted_f1(cosines.argmax(1)) + weighted_f1(cosines.argmax(0))) / 2

    return f1


def _refuse_few(file: Path, pairs: int) -> None:
    if pairs < _FEWEST:
        cure = "give a file of more source<TAB>target, or score<TAB>a<TAB>b lines"
        raise InputError(file, f"weights are fitted on {_FEWEST} pairs or more, and it has {pairs}", cure)


def _cosines(part: StaticModel, left: Sequence[str], right: Sequence[str], threads: int) -> np.ndarray:
    """Cosines of each left with each right text, float32 (n, m)."""
    return part.encode(left, threads=threads) @ part.encode(right, threads=threads).T


def _scored(parts: Sequence[StaticModel], file: Path, threads: int) -> Score:
    scores, left, right = read_scored(file)
    _refuse_few(file, len(scores))
    if np.ptp(scores) == 0:
        raise InputError(file, "all scores are equal", "give a file with scores that differ")
    encoded = [(part.encode(left, threads=threads), part.encode(right, threads=threads)) for part in parts]
    cosines = np.stack([np.einsum("ij,ij->i", a, b) for a, b in encoded])

    def correlation(weights: np.ndarray) -> float:
        mean = (weights @ cosines)[:, None]
        return similarity_correlation(mean, np.ones_like(mean), scores)["spearman"]

    if not np.isfinite(correlation(np.full(len(parts), 1.0 / len(parts)))):
        raise InputError(file, "all cosines are equal", "give a file in the languages of the models")
    return correlation
