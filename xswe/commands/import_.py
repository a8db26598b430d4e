"""``python -m xswe import``: vectors of another project as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.io.files import check_folder
from xswe.io.settings import build
from xswe.model.interchange import ImportConfig, import_model


def run(values: dict[str, Any]) -> str:
    """Import vectors and say what has become of them."""
    check_folder(values["output"])
    settings = {k: v for k, v in values.items() if k not in ("input", "output", "pair")}
    given = [values["input"]] if isinstance(values["input"], str) else list(values["input"])
    model = import_model(
        [Path(path) for path in given], values["pair"]["languages"], build(ImportConfig, settings, "import")
    )
    model.save(values["output"])
    return f"{len(model.matrix):,} units, {model.dim} dimensions: {values['output']}"
