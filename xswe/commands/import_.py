"""``python -m xswe import``: vectors of another project as a model folder."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import settings
from xswe.model.interchange import ImportConfig, import_vectors


def run(values: dict[str, Any]) -> str:
    """Import vectors and say what has become of them."""
    config = settings(ImportConfig, values, "import")
    model = import_vectors(values["input"], values["pair"]["languages"], values["output"], config=config)
    return f"{len(model.matrix):,} units, {model.dim} dimensions: {values['output']}"
