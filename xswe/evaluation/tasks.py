"""Tasks: benchmarks by name, mteb's tasks and presets with their averages, files of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.formats import BY_SUFFIX
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.errors import ConfigError, DependencyError, InputError
from xswe.evaluation.metrics import Row, bitext_items, correlation_rows, spearman, weighted_f1
from xswe.io.arguments import several
from xswe.io.files import check_folder
from xswe.io.lines import read_lines
from xswe.io.parallel import available_threads
from xswe.io.products import products, row_products
from xswe.io.results import Result, table
from xswe.io.sources import is_tar, is_zip, suffix_of
from xswe.model.ensemble import Ensemble, fit_weights, locate
from xswe.model.interchange import WORDLLAMA, is_model2vec, read_static
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, check_languages

# The tasks among mteb's 56 English ones whose two sides are both sentences (Muennighoff et al. 2023, table of the data
# sets): what the EN paper averages as "s2s".
SENTENCE_TO_SENTENCE = (
    *("AmazonCounterfactualClassification", "AmazonReviewsClassification", "Banking77Classification"),
    *("EmotionClassification", "MTOPDomainClassification", "MTOPIntentClassification", "MassiveIntentClassification"),
    *("MassiveScenarioClassification", "ToxicConversationsClassification", "TweetSentimentExtractionClassification"),
    *("ArxivClusteringS2S", "BiorxivClusteringS2S", "MedrxivClusteringS2S", "RedditClustering"),
    *("StackExchangeClustering", "TwentyNewsgroupsClustering"),
    *("SprintDuplicateQuestions", "TwitterSemEval2015", "TwitterURLCorpus"),
    *("AskUbuntuDupQuestions", "MindSmallReranking", "SciDocsRR", "StackOverflowDupQuestions"),
    "QuoraRetrieval",
    *("BIOSSES", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16", "STS17", "STSBenchmark"),
)
_VERSION = re.compile(r"\.v\d+$", re.IGNORECASE)  # how names of mteb's tasks end, where they hold a full stop
_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS17", "STS22", "STSBenchmark", "SICK-R", "BIOSSES")
# What mteb's tasks call our languages, without the script.
_CODES = {language.iso3: code for code, language in LANGUAGES.items()} | {
    language.bcp.split("-")[0]: code for code, language in LANGUAGES.items()
}


@dataclass(frozen=True)
class Preset:
    """A set of tasks under one name.

    Attributes:
        tasks: mteb's names of them.
        benchmark: or mteb's name of the whole benchmark, with its subsets and splits.
        only: the subsets to take of each task: ``pairs`` (two languages), or a language.
        averages: name of each average and the tasks in it; None for all.
    """

    tasks: tuple[str, ...] = ()
    benchmark: str | None = None
    only: str | None = None
    averages: tuple[tuple[str, tuple[str, ...] | None], ...] = ()


PRESETS = {
    "xling": Preset(("BUCC", "BUCC.v2", "Tatoeba", "STS17", "STS22", "STS22.v2"), only="pairs"),
    "sts-en": Preset(_STS, only="en", averages=(("average", None),)),
    "mteb-en": Preset(benchmark="MTEB(eng, v1)", averages=(("average", None), ("average_s2s", SENTENCE_TO_SENTENCE))),
    "jmteb": Preset(benchmark="MTEB(jpn, v1)", averages=(("average", None),)),
    "jmteb.v2": Preset(benchmark="JMTEB(v2)", averages=(("average", None),)),
}
# What messages name; any other task of mteb goes by mteb's own name, in any case.
TASKS = ("tatoeba", "bucc", "bucc.v2", "sts17", "sts22", "sts22.v2")


@dataclass(frozen=True)
class Job:
    """One task of mteb as it will be run."""

    name: str  # what rows call it: mteb's name in small letters
    task: Any  # mteb's task, restricted to the subsets and splits that are run
    subsets: dict[str, str]  # our name of each subset (``en-ja``, ``de``) and mteb's


def import_mteb(purpose: str) -> Any:
    """Return the module ``mteb``.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        import mteb
    except ImportError:
        raise DependencyError("mteb", "evaluate", purpose) from None
    return mteb


@lru_cache(maxsize=1)
def _registered() -> dict[str, str]:
    """Return mteb's task names by their small letters."""
    tasks = import_mteb("a benchmark").get_tasks(exclude_superseded=False)
    return {task.metadata.name.lower(): task.metadata.name for task in tasks}


def is_path(task: str) -> bool:
    """Return True if what a user typed as a task is meant as a file."""
    return "/" in task or Path(task).exists() or bool(Path(task).suffix and not _VERSION.search(task))


def check(tasks: Iterable[str]) -> None:
    """Refuse unknown tasks before any work is done.

    Raises:
        ConfigError: there is none, or one is neither a preset, nor a task of mteb, nor a file.
    """
    tasks = list(tasks)
    known = ", ".join((*PRESETS, *TASKS))
    if not tasks:
        raise ConfigError(f"tasks is empty: name some of {known}, or files")
    for task in tasks:
        if task.lower() in PRESETS or task.lower() in TASKS or is_path(task):
            continue
        if task.lower() not in _registered():
            raise ConfigError(f"unknown task {task!r}: use {known}, any other name of mteb's, or the path of a file")


def jobs(task: str, languages: Sequence[str]) -> tuple[list[Job], list[Row]]:
    """Return the tasks of a preset or name that have something in these languages, and a row for each that has not."""
    mteb = import_mteb(f"the task {task}")
    preset = PRESETS.get(task.lower())
    if preset is None:
        check([task])
        preset = Preset((_registered()[task.lower()],))
    wanted: list[tuple[str, list[str] | None, list[str] | None]] = [(name, None, None) for name in preset.tasks]
    if preset.benchmark is not None:
        whole = mteb.get_benchmark(preset.benchmark).tasks
        wanted = [(t.metadata.name, list(t.hf_subsets), list(t.eval_splits)) for t in whole]
    found, skipped = [], []
    for name, subsets, splits in wanted:
        about = mteb.get_task(name)
        ours = {
            mine: theirs
            for mine, theirs in subset_names(about.metadata).items()
            if (subsets is None or theirs in subsets)
            and set(mine.split(":")[0].split("-")) <= set(languages)
            and (preset.only is None or ("-" in mine if preset.only == "pairs" else mine == preset.only))
        }
        if ours:
            chosen = mteb.get_task(name, hf_subsets=list(ours.values()), eval_splits=splits)
            found.append(Job(name.lower(), chosen, ours))
        else:
            skipped.append(
                Row(name.lower(), "-", "skipped", None, 0, "mteb", note=f"{name} has nothing in {', '.join(languages)}")
            )
    return found, skipped


def subset_names(metadata: Any) -> dict[str, str]:
    """Return our name of each of a task's subsets that is in our languages alone, and mteb's name of it.

    A subset is named by its languages, English first (``en-ja``); a second subset of the same languages also by
    mteb's name (``en:movies``).
    """
    listed = metadata.eval_langs
    by_subset = listed if isinstance(listed, dict) else {"default": listed}
    out: dict[str, str] = {}
    for theirs, tags in by_subset.items():
        codes = {_CODES.get(tag.split("-")[0]) for tag in tags}
        if None in codes:
            continue
        name = "-".join(code for code in LANGUAGES if code in codes)
        out[f"{name}:{theirs}" if name in out else name] = theirs
    return out


def averages(task: str, rows: Sequence[Row]) -> list[Row]:
    """Return a preset's averages of mteb's main scores, each only if all of its tasks were measured."""
    preset = PRESETS.get(task.lower())
    if preset is None:
        return []
    by_task: dict[str, list[float]] = {}
    for row in rows:
        by_task.setdefault(row.task, [])
        if row.metric == "main_score" and row.value is not None:
            by_task[row.task].append(row.value)
    out = []
    for name, members in preset.averages:
        wanted = list(by_task) if members is None else [member.lower() for member in members]
        missing = [member for member in wanted if not by_task.get(member)]
        subset = "ja" if task.lower().startswith("jmteb") else "en"
        if missing:
            named = ", ".join(missing[:3] + ["…"] * (len(missing) > 3))
            note = f"no {name}: {len(missing)} of {len(wanted)} tasks were not measured ({named})"
            out.append(Row(task.lower(), subset, "skipped", None, 0, note=note))
        else:
            value = math.fsum(math.fsum(by_task[m]) / len(by_task[m]) for m in wanted) / len(wanted)
            out.append(Row(task.lower(), subset, name, value, len(wanted), note=f"mean of {len(wanted)} tasks"))
    return out


Encode = Callable[[Sequence[str]], np.ndarray]
_FIRST_LINES = 20  # tell a scored file from a bitext: a header line or a damaged one must not decide


def evaluate_bitext(encode: Encode, file: Source) -> list[Row]:
    """Score translation retrieval on an aligned bitext: by cosine, and ratio margin (k = 4). Empty sides are left out."""
    pairs = [(a, b) for a, b in read_pairs(file) if a and b]
    if not pairs:
        raise InputError(file.name, "no pair in it", "give a file of source<TAB>target lines")
    source, target = (encode(list(side)) for side in zip(*pairs, strict=True))
    return score_vectors(source, target, "file", Path(file.name).name)


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
    """Return True if at least half of a file's first lines are ``score<TAB>a<TAB>b``; blank ones do not count."""
    if is_zip(path) or is_tar(path) or BY_SUFFIX.get(suffix_of(path), "tsv") != "tsv":
        return False
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


def evaluate_scored(encode: Encode, path: Path) -> list[Row]:
    """Correlate cosines with the scores of a ``score<TAB>a<TAB>b`` file; see :func:`read_scored`."""
    scores, left, right = read_scored(path)
    return correlation_rows(row_products(encode(left), encode(right)), scores, "file", path.name)


# A score of the mean cosines of one development file: (weights of the parts) -> figure.
Quality = Callable[[np.ndarray], float]
_FEWEST = 3  # pairs of a development file: on fewer, any weights are as good
_MOST_PAIRS = 2000  # of a bitext, for fitting: all are compared with all, at each try


@dataclass(frozen=True)
class FittedEnsemble(Result[tuple[Any, ...]]):
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
