"""Metrics: correlation with human scores, retrieval of translations, significance of differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xswe.errors import ConfigError
from xswe.io.products import products
from xswe.io.settings import check_least, refuse_unused
from xswe.mining.margin import ratio_base

# The metric that represents a task in a table of many: the first of these that the task has.
PRIMARY = ("average", "f1", "cosine_spearman", "spearman", "spearman_with_teacher", "main_score")
Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        task: the benchmark (``tatoeba``) or file.
        subset: the language pair.
        metric: what was measured.
        value: the figure, as a fraction, not percent; None if it is missing, and ``note`` has the reason.
        n: number of sentences, or pairs, it is based on.
        source: who computed it: ``xswe``, or ``mteb`` with its version.
        revision: revision of the data set.
        split: split of the data set.
        note: a remark, or the reason for a missing figure.
        low: lower end of the confidence interval.
        high: upper end of the confidence interval.
        items: values for resampling, not written to files: float (n,), whose mean is the value, or (2, n), cosines and
            scores, whose correlation is.
    """

    task: str
    subset: str
    metric: str
    value: float | None
    n: int
    source: str = "xswe"
    revision: str | None = None
    split: str | None = None
    note: str | None = None
    low: float | None = None
    high: float | None = None
    items: np.ndarray | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str, str, str | None]:
        """The key of the figure: task, subset, metric and split."""
        return self.task, self.subset, self.metric, self.split

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "items"}


def primary_metrics(found: Iterable[tuple[Place, str]]) -> dict[Place, str]:
    """Return the metric of :data:`PRIMARY` that represents each place (such as a task and its subset)."""
    chosen: dict[Place, str] = {}
    for place, metric in found:
        if metric in PRIMARY and PRIMARY.index(metric) <= PRIMARY.index(chosen.get(place, PRIMARY[-1])):
            chosen[place] = metric
    return chosen


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Return Pearson's correlation of two (n,); NaN if one of them is constant."""
    x, y = x - x.mean(dtype=np.float64), y - y.mean(dtype=np.float64)
    size = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / size, -1.0, 1.0)) if size > 0 else float("nan")


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation of two (n,); equal values share their mean rank."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(x: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


CORRELATIONS = {"spearman": spearman, "pearson": pearson}  # of two (n,)


def correlation_rows(found: np.ndarray, scores: np.ndarray, task: str, subset: str, what: str = "all cosines") -> list[Row]:
    """Correlate scores with human judgements, float (n,) each; an undefined correlation gives a note and no value."""
    items = np.stack([found.astype(np.float64), scores])
    rows = []
    for metric, correlate in CORRELATIONS.items():
        value = correlate(*items) if np.isfinite(items).all() else math.nan
        if math.isfinite(value):
            rows.append(Row(task, subset, metric, value, len(scores), items=items))
        else:
            rows.append(Row(task, subset, metric, None, len(scores), note=f"no correlation: {_reason(items, what)}"))
    return rows


def _reason(items: np.ndarray, what: str) -> str:
    """Return why two rows of numbers have no correlation."""
    if not np.isfinite(items).all():
        return f"of {what}, or of the scores, some are not finite"
    if items.shape[1] < 2:
        return f"{items.shape[1]} pair is too few"
    return "all scores are equal" if np.ptp(items[1]) == 0 else f"{what} are equal"


_BLOCK_ROWS = 2048
_NEIGHBOURS = 4  # k of the margin, as in Artetxe & Schwenk 2019


class Found(NamedTuple):
    """The result of a search; row i of the candidates is the answer to query i.

    Attributes:
        nearest: int64 (n,), the candidate with the highest score, the lowest row on ties.
        rank: int64 (n,), the rank of the answer among the candidates, from 1.
    """

    nearest: np.ndarray
    rank: np.ndarray


def search(queries: np.ndarray, candidates: np.ndarray, base: tuple[np.ndarray, np.ndarray] | None = None) -> Found:
    """Rank the candidates of every query, in blocks of at most 2,048 rows of scores.

    Both are unit vectors, float32 (n, d) and (m, d), m >= n. With ``base``, the mean cosines of each query and of each
    candidate with its neighbours, float32 (n,) and (m,), scores are cosines divided by the mean of the two (ratio margin,
    as in mining); without, cosines.
    """
    nearest, rank = np.empty(len(queries), np.int64), np.empty(len(queries), np.int64)
    columns = np.arange(len(candidates))
    for start in range(0, len(queries), _BLOCK_ROWS):
        scores = products(queries[start : start + _BLOCK_ROWS], candidates)
        if base is not None:
            scores /= ratio_base(base[0][start : start + _BLOCK_ROWS, None], base[1][None, :])
        rows = np.arange(start, start + len(scores))
        nearest[rows] = scores.argmax(1)
        answer = scores[rows - start, rows][:, None]
        # Of equal scores the lower row ranks first, so that rank 1 and ``nearest`` agree.
        before = (scores > answer) | ((scores == answer) & (columns[None, :] < rows[:, None]))
        rank[rows] = 1 + before.sum(1)
    return Found(nearest, rank)


def neighbourhood(queries: np.ndarray, candidates: np.ndarray, k: int = _NEIGHBOURS) -> np.ndarray:
    """Return the mean inner product of each query with its k nearest candidates, float32 (n,)."""
    k = min(k, len(candidates))
    out = np.empty(len(queries), np.float32)
    for start in range(0, len(queries), _BLOCK_ROWS):
        scores = products(queries[start : start + _BLOCK_ROWS], candidates)
        out[start : start + _BLOCK_ROWS] = np.partition(scores, -k, axis=1)[:, -k:].mean(1)
    return out


def weighted_f1(predicted: np.ndarray) -> float:
    """Return mteb's bitext F1: scikit-learn's weighted F1 of the predicted rows, where row i is the answer to query i."""
    return float(_f1_items(predicted).mean()) if len(predicted) else 0.0


def _f1_items(predicted: np.ndarray) -> np.ndarray:
    """Return the F1 of each row, float64 (n,); their mean is the weighted F1.

    Each row is a class that occurs once, so its F1 is 2 / (1 + number of times it was predicted) if its own query found
    it, else 0.
    """
    times = np.bincount(predicted, minlength=len(predicted))[: len(predicted)]
    return np.where(predicted == np.arange(len(predicted)), 2.0 / (1.0 + times), 0.0)


def bitext_items(source: np.ndarray, target: np.ndarray, margin: bool = False) -> dict[str, np.ndarray]:
    """Score translation retrieval by cosine or ratio margin (k = 4); row i of one side translates row i of the other.

    The sides are unit vectors, float32 (n, d). Returns one value per pair, float64 (n,), between 0 and 1, whose mean is the
    figure: ``accuracy_forward`` (source to target), ``accuracy_backward``, their mean ``accuracy``, and the same for ``f1``
    (mteb's) and ``mrr`` (mean reciprocal rank).
    """
    base = (neighbourhood(source, target), neighbourhood(target, source)) if margin and len(source) else None
    ways = search(source, target, base), search(target, source, base and base[::-1])
    measured = {
        "accuracy": [(way.rank == 1).astype(np.float64) for way in ways],
        "f1": [_f1_items(way.nearest) for way in ways],
        "mrr": [1.0 / way.rank for way in ways],
    }
    out: dict[str, np.ndarray] = {}
    for name, (forward, backward) in measured.items():
        out |= {f"{name}_forward": forward, f"{name}_backward": backward, name: (forward + backward) / 2}
    return out


# Bootstrap intervals of figures, and paired tests between two models on the same items.
#
# Items (queries, or scored pairs) are drawn with replacement; a query still searches all candidates. Two models are
# resampled with the same draws, so items that are hard for both do not blur their difference (Koehn 2004).


@dataclass(frozen=True)
class Bootstrap:
    """Settings of the bootstrap.

    Attributes:
        rounds: number of draws; 0 for no intervals. Several paired tests draw more if their correction needs it.
        level: level of the confidence intervals.
        seed: seed of the draws.
    """

    rounds: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 0 or not 0 < self.level < 1:
            raise ConfigError("bootstrap needs rounds >= 0 and 0 < level < 1")
        check_least(self, "bootstrap", seed=0)
        refuse_unused(self, {"with bootstrap.rounds=0": () if self.rounds else ("level", "seed")}, "bootstrap")


LEVEL = 0.05  # a difference with this p or more is not significant


def corrected(p: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests for their number (Holm 1979).

    The smallest is multiplied by the number of tests, the next by one less, and so on, and none becomes smaller than the
    one before. The probability that any difference is found by chance is then at most the level of a single test.
    """
    out, least = list(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        out[place] = least
    return out


def enough(settings: Bootstrap, tests: int) -> Bootstrap:
    """Return settings with enough draws for one of ``tests`` corrected p-values to be below :data:`LEVEL`."""
    least = math.ceil(2 * tests / LEVEL)
    return replace(settings, rounds=max(settings.rounds, least)) if settings.rounds else settings


@dataclass(frozen=True)
class Comparison:
    """The difference between two models on one figure.

    Attributes:
        difference: first minus second.
        low: lower end of the difference's confidence interval.
        high: upper end of the confidence interval.
        p: two-sided: twice the share of draws in which the other model is at least as good.
    """

    difference: float
    low: float
    high: float
    p: float


_BLOCK_ITEMS = 1 << 14  # items drawn per call: drawing a few costs less than a call


def resample(row: Row, settings: Bootstrap) -> np.ndarray:
    """Return the figure of each draw, float64 (rounds,); equal numbers of items get the same draws."""
    items = row.items
    if items is None:
        raise ValueError(f"{row.key} has no items to draw from")
    n = items.shape[-1]
    generator = np.random.default_rng([settings.seed, n])
    correlate = CORRELATIONS[row.metric.rpartition("_")[2]] if items.ndim == 2 else None
    out, step = np.empty(settings.rounds), max(1, _BLOCK_ITEMS // max(1, n))
    for start in range(0, settings.rounds, step):
        resampled = items[..., generator.integers(0, n, (min(step, settings.rounds - start), n))]
        out[start : start + step] = [*map(correlate, *resampled)] if correlate else resampled.mean(axis=-1)
    return out


def with_interval(row: Row, settings: Bootstrap) -> Row:
    """Add the percentile interval to a row that has items."""
    if row.items is None or row.value is None or not settings.rounds:
        return row
    low, high = _interval(resample(row, settings), settings.level)
    return replace(row, low=low, high=high)


def with_intervals(rows: Sequence[Row], settings: Bootstrap) -> list[Row]:
    """Add intervals to all rows that have items."""
    return [with_interval(row, settings) for row in rows]


def _interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return the percentile interval; draws of a single item over and over have no correlation and are left out."""
    low, high = np.nanpercentile(values, [50 - 50 * level, 50 + 50 * level])
    return float(low), float(high)


def compare_rows(first: Row, second: Row, settings: Bootstrap) -> Comparison | None:
    """Test whether two models differ on a figure; return None if the rows lack items.

    ValueError: the rows have different keys.
    """
    if first.key != second.key:
        raise ValueError(f"{first.key} and {second.key} cannot be compared")
    a, b = first.items, second.items
    if a is None or b is None or a.shape != b.shape or not settings.rounds:
        return None
    if first.value is None or second.value is None:
        return None
    return compare_draws(first.value - second.value, resample(first, settings) - resample(second, settings), settings.level)


def compare_draws(difference: float, draws: np.ndarray, level: float) -> Comparison:
    """Test a difference, given the differences in each draw, float64 (rounds,), NaN where undefined."""
    draws = draws[~np.isnan(draws)]
    # One is added to both: p is never zero, because the draws cannot show less than one in rounds + 1.
    worse = min((draws <= 0).sum(), (draws >= 0).sum()) + 1
    p = min(1.0, 2.0 * float(worse) / (len(draws) + 1))
    return Comparison(difference, *_interval(draws, level), p)
