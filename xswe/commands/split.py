"""``python -m xswe split``: running text cut into its sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.text.sentences import split_text


def run(values: dict[str, Any]) -> str:
    """Cut, write the sentences, and say how many there are."""
    found = split_text(Path(values["input"]), str(values["language"]), str(values["output"]))
    return f"{found.summary()}: {values['output']}"
