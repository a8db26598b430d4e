"""Several models on the same figures: which is best, and which of the others may as well be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xswe.evaluation.encoders import SentenceEncoder
from xswe.evaluation.metrics import Bootstrap, Row, compare_rows, primary_metrics
from xswe.io.results import cell

_EXTRA = ("average_s2s",)  # shown beside the primary metrics
_LEVEL = 0.05


@dataclass(frozen=True)
class Measured:
    """A model and its figures.

    Attributes:
        name: what tables call it.
        dim: dimensions of a vector.
        size: bytes of the weights in memory.
        parameters: number of weights.
        languages: codes of the languages it was evaluated on.
        rate: sentences a second; None if not timed.
        rows: its figures.
    """

    name: str
    dim: int
    size: int
    parameters: int
    languages: tuple[str, ...]
    rate: float | None
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON object, without the rows."""
        return {
            "name": self.name,
            "dim": self.dim,
            "bytes": self.size,
            "parameters": self.parameters,
            "languages": list(self.languages),
            "sentences_per_second": None if self.rate is None else round(self.rate),
        }

    def only(self, rows: Sequence[Row]) -> Measured:
        """Return the same with some of its rows."""
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class PairedTest:
    """The best model on a figure against another one; see :class:`xswe.evaluation.metrics.Comparison`."""

    task: str
    subset: str
    metric: str
    split: str | None
    best: str
    other: str
    difference: float
    low: float
    high: float
    p: float


def measured(encoder: SentenceEncoder, rows: Sequence[Row], rate: float | None) -> Measured:
    """Keep what a table says of an encoder, without its weights."""
    about = (encoder.name, encoder.dim, encoder.size, encoder.parameters, tuple(encoder.languages))
    return Measured(*about, rate, tuple(rows))


def _columns(models: Sequence[Measured]) -> list[tuple[str, str, str, str | None]]:
    """Return the keys of the figures that a table shows, in the order of the rows."""
    keys = list(dict.fromkeys(row.key for model in models for row in model.rows))
    chosen = primary_metrics(((task, subset, split), metric) for task, subset, metric, split in keys)
    return [key for key in keys if chosen.get((key[0], key[1], key[3])) == key[2] or key[2] in _EXTRA]


def _best(models: Sequence[Measured], key: tuple[str, str, str, str | None]) -> Measured | None:
    """Return the model of the highest figure (the first of equals); None if none has one."""
    values = [(_value(model, key), model) for model in models]
    return max(
        ((value, model) for value, model in values if value is not None), key=lambda pair: pair[0], default=(0, None)
    )[1]


def _row(model: Measured, key: tuple[str, str, str, str | None]) -> Row | None:
    return next((row for row in model.rows if row.key == key), None)


def _value(model: Measured, key: tuple[str, str, str, str | None]) -> float | None:
    row = _row(model, key)
    return row.value if row else None


def significance(models: Sequence[Measured], settings: Bootstrap) -> list[PairedTest]:
    """Test the best model of each figure of the table against every other, on the same draws of the same items."""
    tests = []
    for key in _columns(models):
        best = _best(models, key)
        if best is None:
            continue
        for other in models:
            first, second = _row(best, key), _row(other, key)
            if other is best or first is None or second is None:
                continue
            if (found := compare_rows(first, second, settings)) is not None:
                result = (found.difference, found.low, found.high, found.p)
                tests.append(PairedTest(*key, best.name, other.name, *result))
    return tests


def outcome(models: Sequence[Measured], tests: Sequence[PairedTest]) -> tuple[list[str], list[list[Any]], list[str]]:
    """Lay a comparison out.

    Returns:
        The header, a line a model, and notes: what the marks mean, and what was skipped and why.
    """
    keys = _columns(models)
    alike = {(t.task, t.subset, t.metric, t.split, t.other) for t in tests if t.p >= _LEVEL}
    best = {key: _best(models, key) for key in keys}
    header = ["model", "dims", "MB", "sentences/s", *(_title(key, keys) for key in keys)]
    lines = []
    for model in models:
        figures = []
        for key in keys:
            value = _value(model, key)
            mark = "*" if value is not None and best[key] is model else "=" if (*key, model.name) in alike else " "
            figures.append(cell(value) + (mark if value is not None else " "))
        rate = None if model.rate is None else f"{model.rate:,.0f}"
        lines.append([model.name, model.dim, f"{model.size / 2**20:.1f}", rate, *figures])
    notes = [f"* best; = not shown to be worse (paired bootstrap, p >= {_LEVEL})"] if keys else []
    why: dict[str, list[str]] = {}
    for model in models:
        for row in model.rows:
            if row.value is None and row.note:
                why.setdefault(f"{row.task} {row.subset}: {row.note}".replace(" -:", ":"), []).append(model.name)
    return header, lines, [*notes, *(f"skipped {reason} ({', '.join(names)})" for reason, names in why.items())]


def _title(key: tuple[str, str, str, str | None], keys: Sequence[tuple[str, str, str, str | None]]) -> str:
    """Name a column by its task and subset, and by its split or metric where that is needed to tell it from another."""
    task, subset, metric, split = key
    parts = [task if task != "file" else "", subset]
    if sum(other[:2] == key[:2] and other[3] != split for other in keys):
        parts.append(str(split))
    if sum(other[:2] == key[:2] and other[2] != metric for other in keys):
        parts.append(metric)
    return " ".join(filter(None, parts))
