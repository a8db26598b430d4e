"""Tasks: benchmarks by name, mteb's tasks and presets with their averages, and files of the user."""

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
from xswe.bitext.source import Source, read_pairs
from xswe.errors import ConfigError, DependencyError, InputError
from xswe.evaluation.metrics import Row, bitext_items, correlation_rows
from xswe.io.lines import read_lines
from xswe.io.products import row_products
from xswe.io.sources import is_tar, is_zip, suffix_of
from xswe.text.languages import LANGUAGES

# The tasks among mteb's 56 English ones that compare sentences with sentences (Muennighoff et al. 2023, table of the data
# sets); the EN paper averages them as "s2s".
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
_VERSION_SUFFIX = re.compile(r"\.v\d+$", re.IGNORECASE)  # the end of names of mteb's tasks that contain a full stop
_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS17", "STS22", "STSBenchmark", "SICK-R", "BIOSSES")
# Our language codes by mteb's tags without the script.
_CODE_OF_TAG = {language.iso3: code for code, language in LANGUAGES.items()} | {
    language.bcp.split("-")[0]: code for code, language in LANGUAGES.items()
}


@dataclass(frozen=True)
class Preset:
    """A set of tasks under one name.

    Attributes:
        tasks: mteb's names of the tasks.
        benchmark: or mteb's name of a whole benchmark, with its subsets and splits.
        only: the subsets to use of each task: ``pairs`` (two languages), or a language.
        averages: the name of each average and its tasks, None for all.
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
# The tasks named in messages; any other task of mteb goes by mteb's name, in any case.
TASKS = ("tatoeba", "bucc", "bucc.v2", "sts17", "sts22", "sts22.v2")


@dataclass(frozen=True)
class Job:
    """A task of mteb to run."""

    name: str  # name in rows: mteb's name in lower case
    task: Any  # mteb's task, restricted to the subsets and splits to run
    subsets: dict[str, str]  # our name of each subset (``en-ja``, ``de``), and mteb's


def import_mteb(purpose: str) -> Any:
    """Return the module ``mteb``; DependencyError: it is not installed."""
    try:
        import mteb
    except ImportError:
        raise DependencyError("mteb", "evaluate", purpose) from None
    return mteb


@lru_cache(maxsize=1)
def _registered() -> dict[str, str]:
    """Return mteb's task names, keyed by the lower-case name."""
    tasks = import_mteb("a benchmark").get_tasks(exclude_superseded=False)
    return {task.metadata.name.lower(): task.metadata.name for task in tasks}


def is_path(task: str) -> bool:
    """Return True if the name of a task is the path of a file."""
    return "/" in task or Path(task).exists() or bool(Path(task).suffix and not _VERSION_SUFFIX.search(task))


def check(tasks: Iterable[str]) -> None:
    """Check the names of tasks before any work.

    ConfigError: there are none, or one is neither a preset, nor a task of mteb, nor a file.
    """
    tasks = list(tasks)
    known = ", ".join((*PRESETS, *TASKS))
    if not tasks:
        raise ConfigError(f"tasks is empty: name some of {known}, or files")
    for task in tasks:
        if task.lower() in PRESETS or task.lower() in TASKS or is_path(task):
            continue
        if task.lower() not in _registered():
            raise ConfigError(f"unknown task {task!r}: use {known}, any other task of mteb, or the path of a file")


def jobs(task: str, languages: Sequence[str]) -> tuple[list[Job], list[Row]]:
    """Return the tasks of a preset or name that have subsets in these languages, and a row for each that has none."""
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
    """Return the subsets of a task that are in our languages only: our names, and mteb's.

    A subset is named by its languages, English first (``en-ja``), and if that is taken, also by mteb's name
    (``en:movies``).
    """
    listed = metadata.eval_langs
    by_subset = listed if isinstance(listed, dict) else {"default": listed}
    out: dict[str, str] = {}
    for theirs, tags in by_subset.items():
        codes = {_CODE_OF_TAG.get(tag.split("-")[0]) for tag in tags}
        if None in codes:
            continue
        name = "-".join(code for code in LANGUAGES if code in codes)
        out[f"{name}:{theirs}" if name in out else name] = theirs
    return out


def averages(task: str, rows: Sequence[Row]) -> list[Row]:
    """Return a preset's averages of mteb's main scores, or a note if a task of the average was not measured."""
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
_FIRST_LINES = 20  # that tell a scored file from a bitext: a header or a damaged line must not decide


def evaluate_bitext(encode: Encode, file: Source) -> list[Row]:
    """Score translation retrieval on an aligned bitext, by cosine and by ratio margin (k = 4), without empty sides."""
    pairs = list(read_pairs(file, whole=True))
    if not pairs:
        raise InputError(file.name, "no pair in it", "give a file of source<TAB>target lines")
    source, target = (encode(list(side)) for side in zip(*pairs, strict=True))
    return score_vectors(source, target, "file", Path(file.name).name)


def score_vectors(source: np.ndarray, target: np.ndarray, task: str, subset: str) -> list[Row]:
    """Score translation retrieval between two aligned matrices of unit vectors, float32 (n, d)."""
    if not len(source):
        return []
    return [
        Row(task, subset, f"{prefix}{metric}", float(items.mean()), len(source), items=items)
        for prefix, margin in (("", False), ("margin_", True))
        for metric, items in bitext_items(source, target, margin).items()
    ]


def is_scored(path: Path) -> bool:
    """Return True if at least half of a file's first non-blank lines are ``score<TAB>a<TAB>b``."""
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

    Returns the scores, float64 (n,), and both columns of texts. InputError: a line has no finite score or fewer than three
    columns, or the file is empty.
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
