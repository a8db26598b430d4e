"""One figure, with everything needed to know what it is a figure of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        task: the benchmark (``tatoeba``) or file.
        subset: the language pair.
        metric: what was measured.
        value: the figure; fractions of one, not percent.
        n: number of sentences, or pairs, it rests on.
        source: where the figure comes from: ``xswe``, or ``mteb`` with its version.
        revision: of the data set.
        split: of the data set.
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

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)
