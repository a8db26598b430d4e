"""``python -m xswe report``: a page to look at, of what a run left on the disk."""

from __future__ import annotations

from typing import Any

from xswe.model.ensemble import load_any, locate
from xswe.report.write import report_of

_OF = ("mined", "run", "hits", "compare", "space", "projector")


def run(values: dict[str, Any]) -> str:
    """Write the page, and return what to say of it."""
    model = load_any(locate(values["model"])) if values["model"] else None
    of = {name: values[name] for name in _OF}
    path = report_of(values["output"], model=model, languages=tuple(values["languages"]), **of)
    return f"report: {path} ({path.stat().st_size / 1e6:.1f} MB)"
