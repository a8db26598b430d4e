"""``python -m xswe evaluate``: benchmarks through mteb, and any file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xswe
from xswe.corpus.pairs import find_pairs
from xswe.errors import ConfigError
from xswe.evaluation.files import evaluate_bitext, evaluate_scored, is_scored
from xswe.evaluation.mteb_bridge import TASKS, MtebEncoder, run_task
from xswe.evaluation.rows import Row
from xswe.evaluation.tables import table
from xswe.files import write_json
from xswe.parallel import available_threads

# The metrics that the printed table shows; the output file holds all.
_SHOWN = ("accuracy", "margin_accuracy", "f1", "spearman", "cosine_spearman", "skipped")


def run(values: dict[str, Any]) -> str:
    """Evaluate a model, write the rows, and return the table."""
    model = xswe.load(values["model"])
    threads = values["threads"] or available_threads()
    tasks = [values["tasks"]] if isinstance(values["tasks"], str) else list(values["tasks"])
    if not tasks:
        raise ConfigError(f"tasks is empty: name some of {', '.join(TASKS)}, or files")
    root = Path(values["data"]["root"]) if values["data"]["root"] else None
    output = Path(values["output"])
    rows: list[Row] = []
    for task in tasks:
        if task in TASKS:
            encoder = MtebEncoder(model, f"xswe/{Path(values['model']).resolve().parent.name}", threads)
            rows += run_task(encoder, task, model.languages, root, output.parent / "mteb")
        elif Path(task).suffix or "/" in task:
            rows += _file(model, task, threads)
        else:
            raise ConfigError(f"unknown task {task!r}: the known ones are {', '.join(TASKS)}, or the path of a file")
    write_json(output, {"model": str(values["model"]), "rows": [row.as_dict() for row in rows]})
    shown = [
        [row.task, row.subset, row.metric, row.note if row.metric == "skipped" else row.value, row.n, row.source]
        for row in rows
        if row.metric in _SHOWN
    ]
    return table(["task", "subset", "metric", "value", "n", "source"], shown) + f"\n\nall rows: {output}"


def _file(model: Any, path: str, threads: int) -> list[Row]:
    """Evaluate on a file: ``score<TAB>a<TAB>b``, or an aligned bitext."""

    def encode(texts: Any) -> Any:
        return model.encode(texts, threads=threads)

    if Path(path).is_file() and is_scored(Path(path)):
        return evaluate_scored(encode, Path(path), "file")
    languages = (*model.languages, *model.languages)[:2]
    return [row for file in find_pairs([path], languages) for row in evaluate_bitext(encode, file, "file")]
