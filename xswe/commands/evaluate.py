"""``python -m xswe evaluate``: benchmarks through mteb, and any file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.corpus.pairs import find_pairs
from xswe.errors import ConfigError
from xswe.evaluation.encoders import SentenceEncoder, open_encoder
from xswe.evaluation.files import evaluate_bitext, evaluate_scored, is_scored
from xswe.evaluation.mteb_bridge import TASKS, run_task
from xswe.evaluation.rows import Row
from xswe.evaluation.tables import table
from xswe.files import write_json
from xswe.parallel import available_threads

# The metrics that the printed table shows; the output file holds all.
_SHOWN = (
    *("f1", "accuracy", "margin_accuracy", "accuracy_both_ways", "margin_accuracy_both_ways"),
    *("spearman", "cosine_spearman", "skipped"),
)


def run(values: dict[str, Any]) -> str:
    """Evaluate an encoder, write the rows, and return the table."""
    encoder = open_encoder(str(values["model"]), values["threads"] or available_threads())
    tasks = [values["tasks"]] if isinstance(values["tasks"], str) else list(values["tasks"])
    root = Path(values["data"]["root"]) if values["data"]["root"] else None
    output = Path(values["output"])
    rows = evaluate(encoder, tasks, root, output.parent / "mteb")
    write_json(output, {"model": str(values["model"]), "rows": [row.as_dict() for row in rows]})
    shown = [
        [row.task, row.subset, row.metric, row.note if row.metric == "skipped" else row.value, row.n, row.source]
        for row in rows
        if row.metric in _SHOWN
    ]
    return table(["task", "subset", "metric", "value", "n", "source"], shown) + f"\n\nall rows: {output}"


def evaluate(encoder: SentenceEncoder, tasks: list[str], root: Path | None, results: Path) -> list[Row]:
    """Run tasks, in order.

    Args:
        encoder: what is evaluated.
        tasks: names of benchmarks, or paths of files.
        root: folder of data sets under their hub names; None for the hub.
        results: folder of mteb's own result tree.
    """
    known = ", ".join(TASKS)
    if not tasks:
        raise ConfigError(f"tasks is empty: name some of {known}, or files")
    if unknown := [task for task in tasks if task not in TASKS and not (Path(task).suffix or "/" in task)]:
        raise ConfigError(f"unknown task {unknown[0]!r}: the known ones are {known}, or the path of a file")
    rows: list[Row] = []
    for task in tasks:
        rows += run_task(encoder, task, root, results) if task in TASKS else _file(encoder, task)
    return rows


def _file(encoder: SentenceEncoder, path: str) -> list[Row]:
    """Evaluate on a file: ``score<TAB>a<TAB>b``, or an aligned bitext."""
    if Path(path).is_file() and is_scored(Path(path)):
        return evaluate_scored(encoder.encode, Path(path), "file")
    first, second = (*encoder.languages, *encoder.languages)[:2]
    return [row for file in find_pairs([path], (first, second)) for row in evaluate_bitext(encoder.encode, file, "file")]
