"""``python -m xswe import``: vectors of another project as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.commands.config import settings
from xswe.io.files import check_folder
from xswe.model.interchange import ImportConfig, import_model


def run(values: dict[str, Any]) -> str:
    """Import vectors and say what has become of them."""
    check_folder(values["output"])
    given = [values["input"]] if isinstance(values["input"], str) else list(values["input"])
    config = settings(ImportConfig, values, "import")
    model = import_model([Path(path) for path in given], values["pair"]["languages"], config)
    model.save(values["output"])
    return f"{len(model.matrix):,} units, {model.dim} dimensions: {values['output']}"
