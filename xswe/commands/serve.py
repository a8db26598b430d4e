"""``python -m xswe serve``: a local application to look at corpora and models, and an interface for programs."""

from __future__ import annotations

from typing import Any

import xswe
from xswe.io.settings import build
from xswe.serving.config import ServeConfig


def run(values: dict[str, Any]) -> str:
    """Serve until interrupted."""
    model, corpora = str(values.pop("model")), list(values.pop("corpora") or [])
    xswe.serve(model, corpora, config=build(ServeConfig, values, "serve"))
    return ""
