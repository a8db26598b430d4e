"""``python -m xswe evaluate``: benchmarks through mteb, and any file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.commands.config import refuse_unused
from xswe.evaluation.evaluate import evaluate
from xswe.evaluation.metrics import Bootstrap
from xswe.evaluation.tasks import is_path
from xswe.io.files import check_output
from xswe.io.results import check_suffix
from xswe.io.settings import build


def run(values: dict[str, Any]) -> str:
    """Evaluate a model, write the rows by the output's suffix, and return the table.

    Raises:
        ConfigError: a setting is wrong, or every task was skipped (after the rows, with their reasons, are written).
    """
    scores = evaluate(values["model"], **common(values))
    scores.write(values["output"])
    scores.check(values["output"])
    return f"{scores}\nall rows: {values['output']}"


def common(values: dict[str, Any]) -> dict[str, Any]:
    """Return what ``evaluate`` and ``compare`` are both told."""
    tasks = [str(task) for task in values["tasks"] or []]
    check_output(values["output"], tasks)
    check_suffix(values["output"])
    unused = {"where all tasks are files": ["data.root"] if all(map(is_path, tasks)) else ()}
    unused["with bootstrap.rounds=0"] = () if values["bootstrap"]["rounds"] else ["bootstrap.level", "bootstrap.seed"]
    refuse_unused("evaluate", values, unused)
    return {
        "tasks": tasks,
        "data": values["data"]["root"] or None,
        "bootstrap": build(Bootstrap, values["bootstrap"], "bootstrap"),
        "threads": values["threads"],
        "results": Path(values["output"]).parent / "mteb",
    }
