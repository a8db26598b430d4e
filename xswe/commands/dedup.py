"""``python -m xswe dedup``: a file without its exact, near and semantic duplicates."""

from __future__ import annotations

import time
from typing import Any

from xswe.commands.config import refuse_unused, settings
from xswe.io.files import check_output
from xswe.mining.dedup import DedupConfig, dedup
from xswe.model.ensemble import load_any, locate
from xswe.progress import took


def run(values: dict[str, Any]) -> str:
    """Deduplicate, and return the summary."""
    given, output = str(values["input"]), str(values["output"])
    vectors = ["storage", "keep", "neighbours.memory", "neighbours.method", "neighbours.device"]
    none = values["threshold"] is None
    refuse_unused("dedup", values, {"with threshold=null, which compares no vectors": vectors if none else ()})
    for name in ("output", "rejects"):
        if values[name] is not None:
            check_output(str(values[name]), [given] if given != "-" else [], name)
    config = settings(DedupConfig, values, "dedup")
    started = time.monotonic()
    model = None if config.threshold is None else load_any(locate(values["model"]))
    found = dedup(model, given, output, rejects=values["rejects"], work=values["work"], config=config)
    seconds = time.monotonic() - started
    return f"{found}\n{took(len(found), seconds, 'lines')}: {output}"
