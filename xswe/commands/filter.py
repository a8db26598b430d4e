"""``python -m xswe filter``: noisy bitext in, clean bitext out."""

from __future__ import annotations

import time
from typing import Any

from xswe.bitext.output import output_format
from xswe.commands.config import bitext_files, check_report, open_judge, refuse_unused, reported, settings
from xswe.io.files import check_output
from xswe.io.settings import build
from xswe.mining.filter import BitextFilter, filter_bitext
from xswe.model.ensemble import load_any, locate
from xswe.progress import took
from xswe.work.config import ExecutionConfig


def run(values: dict[str, Any]) -> str:
    """Filter, and return the summary."""
    paths, output = bitext_files(values, "filter"), str(values["output"])
    refuse_unused("filter", values)
    for name in ("output", "rejects"):
        if values[name] is not None:
            check_output(str(values[name]), [path for path in paths if path != "-"], name)
    output_format("auto", output, ("", ""))  # known before any work is done
    config = settings(BitextFilter, values, "filter", evidence=check_report(values, paths))
    execution = build(ExecutionConfig, values["execution"], "execution")
    started = time.monotonic()
    how = {"rejects": values["rejects"], "threads": values["threads"], "config": config, "execution": execution}
    model, judge = load_any(locate(values["model"])), open_judge(values["rerank"], values["threads"])
    found = filter_bitext(model, paths, output, rerank=judge, **how)
    seconds = time.monotonic() - started
    return f"{found}\n{took(len(found), seconds, 'pairs')}: {output}{reported(values, found, model)}"
