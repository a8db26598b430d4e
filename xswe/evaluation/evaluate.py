"""``xswe.evaluate``: a model on benchmarks and on files of one's own, as rows that are read, converted and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from xswe.corpus.formats import find_pairs
from xswe.errors import ConfigError
from xswe.evaluation.encoders import EnsembleEncoder, SentenceEncoder, StaticEncoder
from xswe.evaluation.metrics import Bootstrap, Row, with_intervals
from xswe.evaluation.models import open_encoder
from xswe.evaluation.mteb_bridge import run_task
from xswe.evaluation.tasks import check, evaluate_bitext, evaluate_scored, is_path, is_scored
from xswe.io.files import scratch
from xswe.io.parallel import available_threads
from xswe.io.results import Result, table
from xswe.model.ensemble import Ensemble
from xswe.model.static import StaticModel

Model = str | Path | Mapping[str, Any] | StaticModel | Ensemble | SentenceEncoder
FIELDS = tuple(field.name for field in fields(Row) if field.name != "items")
# The metrics that tables show, and the main score of a task that has none of them; the rows hold all.
_SHOWN = (
    *("f1", "accuracy", "margin_accuracy", "mrr", "accuracy_both_ways", "margin_accuracy_both_ways"),
    *("spearman", "cosine_spearman", "average", "average_s2s", "skipped"),
)


@dataclass(frozen=True)
class Scores(Result):
    """The figures of a model; a sequence of :class:`xswe.evaluation.metrics.Row`.

    Printed it is the table of the metrics that are usual; the rows hold all.

    Attributes:
        name: what tables call the model.
        model: what it was named by.
        rows: its figures, and why there is none where there is none.
        level: of the confidence intervals.
    """

    name: str
    model: str
    rows: tuple[Row, ...]
    level: float = 0.95

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Scores({self.name!r}, {len(self)} figures)"

    def __str__(self) -> str:
        return "\n".join([table(*self.layout()), "", *skipped(self.rows)]).rstrip()

    def columns(self) -> tuple[str, ...]:
        """Return the fields of a row."""
        return FIELDS

    def records(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return [tuple(row.as_dict().values()) for row in self.rows]

    def layout(self) -> tuple[list[str], list[list[Any]]]:
        """Return the table of the usual metrics, in percent."""
        rows = [row for row in shown(self.rows) if row.value is not None]
        lines = [[row.task, row.subset, row.metric, row.value, _interval(row), row.n, row.source] for row in rows]
        return ["task", "subset", "metric", "value", f"{self.level:.0%}", "n", "source"], lines

    def as_json(self) -> dict[str, Any]:
        """Return the model and an object a row."""
        return {"model": self.model, "name": self.name, "rows": [row.as_dict() for row in self.rows]}

    def check(self, where: str = "") -> None:
        """Refuse to end well without a single figure.

        Raises:
            ConfigError: no row has a value; the message says why, row by row.
        """
        check_measured(self.rows, where)


def evaluate(
    model: Model,
    tasks: str | Sequence[str],
    data: str | Path | None = None,
    *,
    bootstrap: Bootstrap | None = None,
    threads: int | None = None,
    results: str | Path | None = None,
) -> Scores:
    r"""Evaluate a model.

    Args:
        model: a loaded model; what a model is named by: a folder, ``mini``, ``user/repository``, ``wordllama``,
            ``teacher:mini``, …, see :class:`xswe.evaluation.models.ModelSpec`; or an encoder of one's own.
        tasks: presets (``xling``, ``sts-en``, ``mteb-en``, ``jmteb``), names of mteb's tasks, and paths of files: aligned,
            or ``score<TAB>a<TAB>b``.
        data: folder of data sets under their hub names; None for the hub, and its cache.
        bootstrap: draws for confidence intervals; ``Bootstrap(rounds=0)`` for none.
        threads: None for all processors.
        results: folder of mteb's own result tree, kept; None for none.

    Raises:
        ConfigError: there is no such task.
        ModelError, InputError: a model or file is missing or damaged.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "own.tsv"
        >>> pairs = "A cat sleeps.\t猫が寝ている。\nThe train is late.\t電車が遅れている。\n"
        >>> _ = file.write_text(pairs, encoding="utf-8")
        >>> scores = xswe.evaluate(xswe.load("mini"), [str(file)])
        >>> [row.value for row in scores if row.metric == "accuracy"]
        [1.0]
    """
    tasks = [tasks] if isinstance(tasks, str) else list(tasks)
    check(tasks)
    bootstrap = bootstrap or Bootstrap()
    encoder = as_encoder(model, threads)
    rows = with_intervals(run_tasks(encoder, tasks, data, results), bootstrap)
    named = str(model) if isinstance(model, (str, Path)) else encoder.name
    return Scores(encoder.name, named, tuple(rows), bootstrap.level)


def as_encoder(model: Model, threads: int | None = None) -> SentenceEncoder:
    """Return what evaluates a model: a loaded one, a named one, or an encoder as it is."""
    threads = threads or available_threads()
    if isinstance(model, StaticModel):
        return StaticEncoder(model, "-".join(model.languages), threads)
    if isinstance(model, Ensemble):
        return EnsembleEncoder(model, "ensemble", threads)
    if isinstance(model, (str, Path, Mapping)):
        return open_encoder(str(model) if isinstance(model, Path) else model, threads)
    return model


def run_tasks(
    encoder: SentenceEncoder, tasks: Sequence[str], data: str | Path | None, results: str | Path | None = None
) -> list[Row]:
    """Run tasks, in order; see :func:`evaluate`. Items for resampling are kept."""
    check(tasks)
    rows: list[Row] = []
    with ExitStack() as stack:
        place = Path(results or stack.enter_context(scratch("xswe-mteb-")))
        for task in tasks:
            root = None if data is None else Path(data)
            rows += _file(encoder, task) if is_path(task) else run_task(encoder, task, root, place)
    return rows


def _file(encoder: SentenceEncoder, path: str) -> list[Row]:
    """Evaluate on a file: ``score<TAB>a<TAB>b``, or an aligned bitext."""
    if Path(path).is_file() and is_scored(Path(path)):
        return evaluate_scored(encoder.encode, Path(path), "file")
    first, second = (*encoder.languages, *encoder.languages)[:2]
    return [row for file in find_pairs([path], (first, second)) for row in evaluate_bitext(encoder.encode, file, "file")]


def skipped(rows: Iterable[Row]) -> list[str]:
    """Return a line for each reason why there is no figure: what has none, and why."""
    why: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.value is None and row.note:
            why.setdefault(row.note, {})[f"{row.task} {row.subset}"] = None
    return [f"skipped {', '.join(places)}: {reason}" for reason, places in why.items()]


def check_measured(rows: Sequence[Row], where: str = "") -> None:
    """Refuse to end well without a single figure.

    Raises:
        ConfigError: no row has a value; the message says why, row by row.
    """
    if not any(row.value is not None for row in rows):
        end = f" (all rows: {where})" if where else ""
        raise ConfigError(f"nothing was measured: {'; '.join(skipped(rows)) or 'no task has any row'}{end}")


def _interval(row: Row) -> str | None:
    return None if row.low is None or row.high is None else f"{100 * row.low:.1f}-{100 * row.high:.1f}"


def shown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that tables show."""
    rows = [row for row in rows if row.metric != "spearman" or row.source == "xswe"]  # mteb says it twice
    told = {(row.task, row.subset) for row in rows if row.metric in _SHOWN}
    return [
        row for row in rows if row.metric in _SHOWN or (row.metric == "main_score" and (row.task, row.subset) not in told)
    ]
