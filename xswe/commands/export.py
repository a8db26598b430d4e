"""``python -m xswe export``: a model in another form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.commands.config import settings
from xswe.errors import ConfigError
from xswe.io.lines import read_lines
from xswe.model.ensemble import load_single, locate
from xswe.model.export import ExportConfig, export


def run(values: dict[str, Any]) -> str:
    """Export a model and say how large it has become."""
    config = settings(ExportConfig, values, "export")
    model = load_single(locate(values["model"]))
    counts = None
    if values["counts"]:
        if not config.keep:
            raise ConfigError("counts is the text by which units are kept: say how many, keep=8000")
        counts = model.count_units((line or "" for _, line in read_lines(values["counts"])))
    output = export(model, config, Path(values["output"]), counts)
    files = [file for file in output.rglob("*") if file.is_file()] if output.is_dir() else [output]
    return f"{sum(file.stat().st_size for file in files):,} bytes: {output}"
