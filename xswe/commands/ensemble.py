"""``python -m xswe ensemble``: several static models as one, with given or fitted weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.formats import find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import similarity_correlation, weighted_f1
from xswe.evaluation.tasks import is_scored, read_scored
from xswe.io.parallel import available_threads
from xswe.io.results import table
from xswe.model.ensemble import Ensemble, fit_weights
from xswe.model.interchange import is_model2vec, read_model2vec, read_wordllama
from xswe.model.resolve import locate
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, check_languages

# A score of the mean cosines of one development file: (weights of the parts) -> figure.
Score = Callable[[np.ndarray], float]
_FEWEST = 3  # pairs of a development file: on fewer, any weights are as good
_MOST_PAIRS = 2000  # of a bitext, for fitting: all are compared with all, at each try


def run(values: dict[str, Any]) -> str:
    """Make an ensemble, save it, and say what its parts weigh and what they are worth on the development files."""
    names = [str(name) for name in listed(values, "models", "[runs/a/model,runs/b/model]")]
    files = [str(file) for file in listed(values, "fit", "[dev.tsv]")]
    given = listed(values, "weights", "[0.7,0.3]")
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in given):
        raise ConfigError(f"weights={given}: give numbers, one for each model, as in weights=[0.7,0.3]")
    if len(names) < 2:
        raise ConfigError("models names fewer than two: give models=[runs/a/model,runs/b/model]")
    if files and given:
        raise ConfigError("give weights=[...] or files to fit them on, fit=[...], not both")
    languages = check_languages(values["languages"]) if values["languages"] else None
    parts = [open_part(name, languages) for name in names]
    threads = values["threads"] or available_threads()
    common = Ensemble.of(parts).languages
    scores = [score_of(parts, Path(file), common, threads) for file in files]

    def mean(weights: np.ndarray) -> float:
        return float(np.mean([score(weights) for score in scores]))

    weights = fit_weights(mean, len(parts)) if scores else given or [1.0] * len(parts)
    ensemble = Ensemble.of(parts, [float(x) for x in weights], {"models": names, "fitted_on": files})
    ensemble.save(Path(values["output"]))
    alone = np.eye(len(parts))
    rows: list[list[Any]] = [
        [name, part.dim, f"{weight:.3f}", *(score(alone[k]) for score in scores)]
        for k, (name, part, weight) in enumerate(zip(names, parts, ensemble.weights, strict=True))
    ]
    rows.append(["ensemble", ensemble.dim, "1.000", *(score(np.array(ensemble.weights)) for score in scores)])
    header = ["model", "dims", "weight", *(Path(file).name for file in files)]
    return f"{table(header, rows)}\n\nensemble ({', '.join(ensemble.languages)}): {values['output']}"


def listed(values: Mapping[str, Any], name: str, form: str) -> list[Any]:
    """Return a setting that is a list; none is an empty one.

    Raises:
        ConfigError: it is something else, a single name for instance.
    """
    given = values[name]
    if given is None or isinstance(given, (list, tuple)):
        return list(given or [])
    raise ConfigError(f"{name}={given}: give a list, as in {name}={form}")


def open_part(name: str, languages: Sequence[str] | None = None) -> StaticModel:
    """Open a model: one of ours (see :func:`xswe.model.resolve.locate`), a folder of Model2Vec, or ``wordllama``.

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
