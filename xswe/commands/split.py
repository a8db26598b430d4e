"""``python -m xswe split``: running text cut into its sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.io.files import check_output
from xswe.text.sentences import check_split_output, split_text


def run(values: dict[str, Any]) -> str:
    """Cut, write the sentences, and say how many there are."""
    given, output = str(values["input"]), str(values["output"])
    check_output(output, [given] if given != "-" else [])
    check_split_output(output)
    found = split_text(Path(given), str(values["language"]))
    found.write(output)
    return f"{found.summary()}: {output}"
