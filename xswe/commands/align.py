"""``python -m xswe align``: texts and their translations, sentence by sentence, in order; many of them at once, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.alignment.beads import AlignConfig
from xswe.alignment.documents import AlignedDocuments, align_files
from xswe.commands.config import check_report, reported, settings
from xswe.errors import ConfigError


def run(values: dict[str, Any]) -> str:
    """Align, write the beads, and say how it went."""
    names = [str(values[name]) for name in ("source", "target", "output")]
    config = settings(AlignConfig, values, "align", evidence=bool(values["report"]))
    if values["report"] and (Path(names[0]).is_dir() or values["manifest"]):
        raise ConfigError("report= is of one pair of texts: give files as source and target")
    check_report(values, [path for path in names[:2] if path != "-"])
    how = {name: values[name] for name in ("manifest", "pairing", "format")}
    found = align_files(values["model"], *names, config=config, **how)
    if isinstance(found, AlignedDocuments):
        return str(found)
    return f"{found.summary()}: {names[2]}{reported(values, found)}"
