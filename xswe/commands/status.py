"""``python -m xswe status``: how far work is that is cut into shards, on however many machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xswe.io.settings import build
from xswe.io.shards import work_status


@dataclass(frozen=True)
class StatusConfig:
    """Settings of ``status``."""

    output: str


def run(values: dict[str, Any]) -> str:
    """Return a line a stage."""
    return str(work_status(build(StatusConfig, values, "status").output))
