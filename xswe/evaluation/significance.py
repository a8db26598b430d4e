"""How sure a figure is: bootstrap intervals, and paired tests between two models on the same items.

Items (queries, or scored pairs) are drawn with replacement; the candidates among which a query searches stay all there.
Two models are resampled with the same draws, so that what is hard for both does not blur their difference (Koehn 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from xswe.errors import ConfigError
from xswe.evaluation.rows import Row
from xswe.evaluation.similarity import CORRELATIONS


@dataclass(frozen=True)
class Bootstrap:
    """Settings of the bootstrap.

    Attributes:
        rounds: how often the items are drawn; 0 for no intervals.
        level: of the confidence intervals.
        seed: decides the draws.
    """

    rounds: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 0 or not 0 < self.level < 1:
            raise ConfigError("bootstrap needs rounds >= 0 and 0 < level < 1")


@dataclass(frozen=True)
class Comparison:
    """The difference between two models on one figure.

    Attributes:
        difference: first minus second.
        low: lower end of the difference's confidence interval.
        high: upper end of it.
        p: two-sided: twice the share of the draws in which the other model is at least as good.
    """

    difference: float
    low: float
    high: float
    p: float


def resample(row: Row, settings: Bootstrap) -> np.ndarray:
    """Return the figure of each draw, float64 (rounds,); the same number of items always gives the same draws."""
    items = row.items
    if items is None:
        raise ValueError(f"{row.key} has no items to draw from")
    n = items.shape[-1]
    generator = np.random.default_rng([settings.seed, n])
    correlate = CORRELATIONS[_correlation(row.metric)] if items.ndim == 2 else None
    out = np.empty(settings.rounds)
    for k in range(settings.rounds):
        drawn = items[..., generator.integers(0, n, n)]
        out[k] = correlate(drawn[0], drawn[1]) if correlate else drawn.mean()
    return out


def _correlation(metric: str) -> str:
    return metric.rsplit("_", 1)[-1]


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
    """Return the percentile interval; a draw of one item over and over has no correlation and is left out."""
    low, high = np.nanpercentile(values, [50 - 50 * level, 50 + 50 * level])
    return float(low), float(high)


def compare_rows(first: Row, second: Row, settings: Bootstrap) -> Comparison | None:
    """Test whether two models differ on a figure; None if the rows do not say what they are made of.

    Raises:
        ValueError: the two rows are figures of different things.
    """
    if first.key != second.key:
        raise ValueError(f"{first.key} and {second.key} cannot be compared")
    a, b = first.items, second.items
    if a is None or b is None or a.shape != b.shape or not settings.rounds:
        return None
    if first.value is None or second.value is None:
        return None
    difference = resample(first, settings) - resample(second, settings)
    difference = difference[~np.isnan(difference)]
    # One is added to both, so that p is never zero: no draw can show more than one in rounds + 1.
    worse = min((difference <= 0).sum(), (difference >= 0).sum()) + 1
    p = min(1.0, 2.0 * float(worse) / (len(difference) + 1))
    return Comparison(first.value - second.value, *_interval(difference, settings.level), p)
