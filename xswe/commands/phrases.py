"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import check_report, refuse_unused, reported, settings
from xswe.io.parallel import available_threads
from xswe.io.settings import build
from xswe.phrases.in_files import Counterparts, PhraseFiles, find_in_files
from xswe.phrases.search import SpanConfig
from xswe.work.config import ExecutionConfig


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases, write what is found, and say how it went."""
    own = {name: str(values[name]) for name in ("queries", "passages", "output", "mode")}
    files = settings(PhraseFiles, values, "phrases", **own)
    how = {"distinct": files.mode == "terms", "threads": values["threads"] or available_threads()}
    config = settings(SpanConfig, values, "phrases", **how)
    refuse_unused("phrases", values)
    check_report(values, [files.queries, files.passages])
    execution = build(ExecutionConfig, values["execution"], "execution")
    linked: Counterparts | None = None
    if files.is_bitext:
        from xswe.alignment.words import counterparts

        linked = counterparts
    found = find_in_files(str(values["model"]), files, config, linked, execution)
    return f"{found}{reported(values, found)}"
