"""``python -m xswe align``: texts and their translations, sentence by sentence, in order; many of them at once, too."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from xswe.alignment.beads import AlignConfig
from xswe.alignment.documents import align_documents
from xswe.alignment.sentences import align
from xswe.commands.config import aside
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.settings import build
from xswe.model.ensemble import load_any
from xswe.model.resolve import locate


def run(values: dict[str, Any]) -> str:
    """Align, write the beads, and say how it went."""
    source, target, output = (str(values[name]) for name in ("source", "target", "output"))
    config = build(AlignConfig, {field.name: values[field.name] for field in fields(AlignConfig)}, "align")
    how: dict[str, Any] = {"languages": values["languages"], "split": values["split"], "config": config}
    if source == target == "-":
        raise ConfigError("source=- target=-: one of them can be read from standard input")
    if Path(source).is_dir() or values["manifest"]:
        if values["fixed"] is not None:
            raise ConfigError("fixed= is of one pair of texts: give files as source and target")
        how |= {"pairing": values["pairing"], "manifest": values["manifest"], "format": values["format"]}
        model = load_any(locate(values["model"]))
        return str(align_documents(model, source, target, output, **how))
    check_output(output, [path for path in (source, target, values["fixed"]) if path not in (None, "-")])
    found = align(
        load_any(locate(values["model"])),
        source,
        target,
        fixed=values["fixed"],
        format=values["format"],
        output=output,
        **how,
    )
    return aside(f"{found.summary()}: {output}", output)
