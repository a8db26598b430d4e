"""``python -m xswe export``: a model in another form."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import settings
from xswe.model.export import ExportConfig, export_model


def run(values: dict[str, Any]) -> str:
    """Export a model and say how large it has become."""
    config = settings(ExportConfig, values, "export")
    return str(export_model(values["model"], values["output"], counts=values["counts"], config=config))
