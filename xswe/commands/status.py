"""``python -m xswe status``: how far work is that is cut into shards, on however many machines."""

from __future__ import annotations

from typing import Any

from xswe.io.settings import arguments
from xswe.work.status import work_status


def run(values: dict[str, Any]) -> str:
    """Return a line a stage."""
    return str(work_status(**arguments(work_status, values, "status", "output")))
