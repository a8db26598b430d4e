"""``python -m xswe encode``: one vector a line of text."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import is_cut, refuse_unused
from xswe.io.files import check_output
from xswe.io.settings import arguments
from xswe.io.sources import expand
from xswe.model.encode_file import encode_file
from xswe.model.ensemble import load_any, locate
from xswe.progress import took


def run(values: dict[str, Any]) -> str:
    """Encode the lines of a file; returns what was done and how fast."""
    source, output = values["input"], str(values["output"])
    if not is_cut(source, values["split"]):
        refuse_unused("encode", values, {"without split=true": ["language"]})
    how = arguments(encode_file, values, "encode")
    if "*" not in output:
        check_output(output, expand(source))  # before the model is loaded
    made = encode_file(load_any(locate(values["model"])), source, output, **how)
    where = "Ray" if values["execution"]["kind"] == "ray" else f"{made.threads} thread{'s' if made.threads > 1 else ''}"
    fast = f"{took(made.rows - made.kept, made.seconds, 'lines')} on {where}"
    again = f" ({made.kept:,} of them by an earlier run)" if made.kept else ""
    scales = f", scales: {made.scales}" if made.scales else ""
    return f"{made.rows:,} lines{again}, {made.dim} dimensions, {made.dtype}, {fast}: {made.path}{scales}"
