"""``python -m xswe evaluate``: benchmarks through mteb, and any file of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from xswe.corpus.formats import find_pairs
from xswe.errors import ConfigError
from xswe.evaluation.encoders import SentenceEncoder
from xswe.evaluation.metrics import Bootstrap, Row, with_intervals
from xswe.evaluation.models import open_encoder
from xswe.evaluation.mteb_bridge import run_task
from xswe.evaluation.tasks import check, evaluate_bitext, evaluate_scored, is_path, is_scored
from xswe.io.files import write_json
from xswe.io.parallel import available_threads
from xswe.io.results import table
from xswe.io.settings import build

# The metrics that the printed table shows, and the main score of a task that has none of them; the output file holds all.
_SHOWN = (
    *("f1", "accuracy", "margin_accuracy", "mrr", "accuracy_both_ways", "margin_accuracy_both_ways"),
    *("spearman", "cosine_spearman", "average", "average_s2s", "skipped"),
)


def run(values: dict[str, Any]) -> str:
    """Evaluate an encoder, write the rows, and return the table.

    Raises:
        ConfigError: a setting is wrong, or every task was skipped (after the rows, with their reasons, are written).
    """
    tasks = task_list(values)
    bootstrap = build(Bootstrap, values["bootstrap"], "bootstrap")
    encoder = open_encoder(values["model"], values["threads"] or available_threads())
    output = Path(values["output"])
    rows = with_intervals(evaluate(encoder, tasks, data_root(values), output.parent / "mteb"), bootstrap)
    write_json(output, {"model": values["model"], "name": encoder.name, "rows": [row.as_dict() for row in rows]})
    check_measured(rows, output)
    measured = [row for row in shown(rows) if row.value is not None]
    lines = [[row.task, row.subset, row.metric, row.value, _interval(row), row.n, row.source] for row in measured]
    header = ["task", "subset", "metric", "value", f"{bootstrap.level:.0%}", "n", "source"]
    return "\n".join([table(header, lines), "", *skipped(rows), f"all rows: {output}"])


def skipped(rows: Iterable[Row]) -> list[str]:
    """Return a line for each reason why there is no figure: what has none, and why."""
    why: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.value is None and row.note:
            why.setdefault(row.note, {})[f"{row.task} {row.subset}"] = None
    return [f"skipped {', '.join(places)}: {reason}" for reason, places in why.items()]


def check_measured(rows: Sequence[Row], output: Path) -> None:
    """Refuse to end well without a single figure.

    Raises:
        ConfigError: no row has a value; the message says why, row by row.
    """
    if not any(row.value is not None for row in rows):
        raise ConfigError(f"nothing was measured: {'; '.join(skipped(rows)) or 'no task has any row'} (all rows: {output})")


def _interval(row: Row) -> str | None:
    return None if row.low is None or row.high is None else f"{100 * row.low:.1f}-{100 * row.high:.1f}"


def shown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that tables show."""
    rows = [row for row in rows if row.metric != "spearman" or row.source == "xswe"]  # mteb says it twice
    told = {(row.task, row.subset) for row in rows if row.metric in _SHOWN}
    return [
        row for row in rows if row.metric in _SHOWN or (row.metric == "main_score" and (row.task, row.subset) not in told)
    ]


def task_list(values: dict[str, Any]) -> list[str]:
    """Return the tasks named, all of them known."""
    tasks = [values["tasks"]] if isinstance(values["tasks"], str) else [str(task) for task in values["tasks"] or []]
    check(tasks)
    return tasks


def data_root(values: dict[str, Any]) -> Path | None:
    """Return the folder of data sets, None for the hub."""
    return Path(values["data"]["root"]) if values["data"]["root"] else None


def evaluate(encoder: SentenceEncoder, tasks: Sequence[str], root: Path | None, results: Path) -> list[Row]:
    """Run tasks, in order.

    Args:
        encoder: what is evaluated.
        tasks: presets, names of mteb's tasks, or paths of files.
        root: folder of data sets under their hub names; None for the hub.
        results: folder of mteb's own result tree.
    """
    check(tasks)
    rows: list[Row] = []
    for task in tasks:
        rows += _file(encoder, task) if is_path(task) else run_task(encoder, task, root, results)
    return rows


def _file(encoder: SentenceEncoder, path: str) -> list[Row]:
    """Evaluate on a file: ``score<TAB>a<TAB>b``, or an aligned bitext."""
    if Path(path).is_file() and is_scored(Path(path)):
        return evaluate_scored(encoder.encode, Path(path), "file")
    first, second = (*encoder.languages, *encoder.languages)[:2]
    return [row for file in find_pairs([path], (first, second)) for row in evaluate_bitext(encoder.encode, file, "file")]
