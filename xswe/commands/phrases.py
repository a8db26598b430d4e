"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

from typing import Any

from xswe.alignment.words import counterparts
from xswe.commands.config import aside, check_report, refuse_unused, reported
from xswe.io.execution import ExecutionConfig
from xswe.io.parallel import available_threads
from xswe.io.settings import build
from xswe.phrases.in_files import PhraseFiles, find_in_files
from xswe.phrases.search import SpanConfig

_SETTINGS = ("min_size", "max_size", "k", "min_score", "examples", "first_stage", "near")


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases, write what is found, and say how it went."""
    own = {name: str(values[name]) for name in ("queries", "passages", "output", "mode")}
    own |= {name: values[name] for name in ("languages", "split", "on_error")}
    files = build(PhraseFiles, own, "phrases")
    how = {"distinct": files.mode == "terms", "threads": values["threads"] or available_threads()}
    config = build(SpanConfig, {**{name: values[name] for name in _SETTINGS}, **how}, "phrases")
    unused = {"without mode=terms": () if files.mode == "terms" else ["examples"]}
    unused["without first_stage=words"] = () if config.first_stage == "words" else ["near"]
    refuse_unused("phrases", values, unused)
    check_report(values, [files.queries, files.passages])
    execution = build(ExecutionConfig, values["execution"], "execution")
    found = find_in_files(str(values["model"]), files, config, counterparts, execution)
    return aside(f"{found}{reported(values, found)}", files.output)
