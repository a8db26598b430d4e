"""One figure, with everything needed to know what it is a figure of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

# Of all metrics of a task, the one that a table of many tasks shows: the first of these that is there.
PRIMARY = ("average", "f1", "cosine_spearman", "spearman", "spearman_with_teacher", "main_score")
Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        task: the benchmark (``tatoeba``) or file.
        subset: the language pair.
        metric: what was measured.
        value: the figure; fractions of one, not percent. None where there is none, and ``note`` says why.
        n: number of sentences, or pairs, it rests on.
        source: where the figure comes from: ``xswe``, or ``mteb`` with its version.
        revision: of the data set.
        split: of the data set.
        note: what else must be known, or the reason why there is no figure.
        low: lower end of the confidence interval.
        high: upper end of it.
        items: what the figure is made of, for resampling; not written to files. Float (n,) whose mean is the value, or
            (2, n), cosines and scores that are correlated.
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
        """What the figure is a figure of, whatever the model."""
        return self.task, self.subset, self.metric, self.split

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "items"}


def primary_metrics(found: Iterable[tuple[Place, str]]) -> dict[Place, str]:
    """Return the metric that stands for each place.

    Args:
        found: pairs of a place (a task and its subset, say) and a metric measured there, in any order.

    Returns:
        The places that have one of :data:`PRIMARY`, in the order of their first.
    """
    chosen: dict[Place, str] = {}
    for place, metric in found:
        if metric in PRIMARY and PRIMARY.index(metric) <= PRIMARY.index(chosen.get(place, PRIMARY[-1])):
            chosen[place] = metric
    return chosen
