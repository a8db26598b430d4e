"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

from typing import Any

from xswe.alignment.phrases import PhraseSearchConfig, search_phrases
from xswe.commands.config import check_report, reported, settings


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases, write what is found, and say how it went."""
    names = [str(values[name]) for name in ("model", "queries", "passages", "output")]
    config = settings(PhraseSearchConfig, {**values, "threads": 1}, "phrases")
    check_report(values, names[1:3])
    found = search_phrases(*names, threads=values["threads"], config=config)
    return f"{found}{reported(values, found)}"
