"""``python -m xswe align``: texts and their translations, sentence by sentence, in order; many of them at once, too."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from xswe.alignment.beads import AlignConfig
from xswe.alignment.documents import align_documents
from xswe.alignment.sentences import align
from xswe.commands.config import aside, check_report, refuse_unused, reported
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.settings import build
from xswe.model.ensemble import load_any, locate


def run(values: dict[str, Any]) -> str:
    """Align, write the beads, and say how it went."""
    source, target, output = (str(values[name]) for name in ("source", "target", "output"))
    given = {**values, "evidence": bool(values["report"])}
    config = build(AlignConfig, {field.name: given[field.name] for field in fields(AlignConfig)}, "align")
    how: dict[str, Any] = {"languages": values["languages"], "split": values["split"], "config": config}
    if source == target == "-":
        raise ConfigError("source=- target=-: one of them can be read from standard input")
    if Path(source).is_dir() or values["manifest"]:
        for name in ("fixed", "report"):
            if values[name] is not None:
                raise ConfigError(f"{name}= is of one pair of texts: give files as source and target")
        how |= {"pairing": values["pairing"], "manifest": values["manifest"], "format": values["format"]}
        model = load_any(locate(values["model"]))
        return str(align_documents(model, source, target, output, **how))
    refuse_unused("align", values, {"with two files: it is for folders": ["pairing"]})
    check_output(output, [path for path in (source, target, values["fixed"]) if path not in (None, "-")])
    check_report(values, [path for path in (source, target) if path != "-"])
    how |= {"fixed": values["fixed"], "format": values["format"], "output": output}
    model = load_any(locate(values["model"]))
    found = align(model, source, target, **how)
    return aside(f"{found.summary()}: {output}{reported(values, found, model)}", output)
