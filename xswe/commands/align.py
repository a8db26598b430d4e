"""``python -m xswe align``: texts and their translations, sentence by sentence, in order; many of them at once, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.alignment.beads import AlignConfig
from xswe.alignment.documents import align_documents
from xswe.alignment.sentences import align
from xswe.commands.config import check_report, refuse_unused, reported, settings
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.model.ensemble import load_any, locate


def run(values: dict[str, Any]) -> str:
    """Align, write the beads, and say how it went."""
    source, target, output = (str(values[name]) for name in ("source", "target", "output"))
    config = settings(AlignConfig, values, "align", evidence=bool(values["report"]))
    how: dict[str, Any] = {"format": values["format"], "config": config}
    if source == target == "-":
        raise ConfigError("source=- target=-: one of them can be read from standard input")
    if Path(source).is_dir() or values["manifest"]:
        if values["report"] is not None:
            raise ConfigError("report= is of one pair of texts: give files as source and target")
        how |= {"pairing": values["pairing"], "manifest": values["manifest"]}
        return str(align_documents(load_any(locate(values["model"])), source, target, output, **how))
    refuse_unused("align", values, {"with two files: it is for folders": ["pairing"]})
    read = source, target, config.fixed, config.uncorrected
    check_output(output, [str(path) for path in read if path not in (None, "-")])
    check_report(values, [path for path in (source, target) if path != "-"])
    model = load_any(locate(values["model"]))
    found = align(model, source, target, output=output, **how)
    return f"{found.summary()}: {output}{reported(values, found, model)}"
