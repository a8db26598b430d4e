"""``python -m xswe serve``: a local application to look at corpora and models, and an interface for programs."""

from __future__ import annotations

import logging
from typing import Any, Literal

import xswe
from xswe.io.settings import build, check_choice
from xswe.serving.config import ServeConfig


def run(values: dict[str, Any]) -> str:
    """Serve until interrupted."""
    model, corpora, log = str(values.pop("model")), list(values.pop("corpora") or []), values.pop("log")
    check_choice("log", log, Literal["text", "json"])
    config = build(ServeConfig, values, "serve")
    if log == "json":
        from xswe.serving.logs import JsonLines

        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())
    xswe.serve(model, corpora, config=config)
    return ""
