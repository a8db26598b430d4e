"""``python -m xswe encode``: one vector a line of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xswe.commands.config import is_cut, refuse_unused
from xswe.io.execution import LOCAL, ExecutionConfig
from xswe.io.files import check_output
from xswe.io.remote import expand
from xswe.io.settings import build
from xswe.model.encode_file import encode_file
from xswe.model.ensemble import load_any, locate
from xswe.progress import took


@dataclass(frozen=True)
class EncodeConfig:
    """Settings of ``encode``; see ``conf/encode.yaml``."""

    model: str
    input: Any
    output: str
    dtype: str = "float32"
    threads: int | None = None
    execution: ExecutionConfig = LOCAL
    split: bool | None = None
    language: str | None = None


def run(values: dict[str, Any]) -> str:
    """Encode the lines of a file; returns what was done and how fast."""
    config = build(EncodeConfig, values, "encode")
    if not is_cut(config.input, config.split):
        refuse_unused("encode", values, {"without split=true": ["language"]})
    if "*" not in config.output:
        check_output(config.output, expand(config.input))  # before the model is loaded
    names = ("dtype", "threads", "execution", "split", "language")
    how: dict[str, Any] = {name: getattr(config, name) for name in names}
    made = encode_file(load_any(locate(config.model)), config.input, config.output, **how)
    where = "Ray" if config.execution.kind == "ray" else f"{made.threads} thread{'s' if made.threads > 1 else ''}"
    fast = f"{took(made.rows - made.kept, made.seconds, 'lines')} on {where}"
    again = f" ({made.kept:,} of them by an earlier run)" if made.kept else ""
    scales = f", scales: {made.scales}" if made.scales else ""
    return f"{made.rows:,} lines{again}, {made.dim} dimensions, {made.dtype}, {fast}: {made.path}{scales}"
