"""``python -m xswe report``: a page to look at, of what a run left on the disk."""

from __future__ import annotations

from typing import Any

from xswe.errors import ConfigError
from xswe.model.ensemble import load_any, locate
from xswe.report.analysis import export_space, open_space
from xswe.report.write import Kind, write_report

_OF: tuple[Kind, ...] = ("mined", "run", "hits", "compare", "space")


def run(values: dict[str, Any]) -> str:
    """Write the page, and return what to say of it."""
    given = [name for name in _OF if values[name]]
    if len(given) != 1:
        raise ConfigError(f"report needs one of {', '.join(f'{name}=' for name in _OF)}: what is the page to be of?")
    model = load_any(locate(values["model"])) if values["model"] else None
    what, languages = str(values[given[0]]), tuple(values["languages"])
    if values["projector"]:
        if given != ["space"]:
            raise ConfigError("projector= writes what space= looks at: give space=BITEXT")
        export_space(open_space(model, what, languages), values["projector"])
    path = write_report(what, values["output"], kind=given[0], model=model, languages=languages)
    return f"report: {path} ({path.stat().st_size / 1e6:.1f} MB)"
