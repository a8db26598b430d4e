"""``python -m xswe compare``: several models on the same tasks, in one table with the best marked."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import check_report, reported
from xswe.commands.evaluate import common
from xswe.evaluation.evaluate import compare


def run(values: dict[str, Any]) -> str:
    """Evaluate the models one after the other, write all rows and tests, and return the table."""
    check_report(values)
    found = compare(values["models"], **common(values), seconds=float(values["speed"]["seconds"]))
    found.write(values["output"])
    found.check(values["output"])
    return f"{found}\nall rows and tests: {values['output']}{reported(values, found)}"
