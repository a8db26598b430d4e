"""``python -m xswe ensemble``: several static models as one, with given or fitted weights."""

from __future__ import annotations

from typing import Any

from xswe.evaluation.tasks import make_ensemble


def run(values: dict[str, Any]) -> str:
    """Make an ensemble, save it, and say what its parts weigh and what they are worth on the development files."""
    given = {name: [] if values[name] is None else values[name] for name in ("models", "weights", "fit")}
    how = {"languages": values["languages"], "threads": values["threads"]}
    found = make_ensemble(output=values["output"], **given, **how)
    return f"{found}\n\nensemble ({', '.join(found.ensemble.languages)}): {values['output']}"
