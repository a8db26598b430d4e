"""``python -m xswe link``: links of the words of a bitext, and the tables that they make."""

from __future__ import annotations

from typing import Any

from xswe.alignment.link import BitextLinkConfig, link
from xswe.commands.config import bitext_files, refuse_unused, settings


def run(values: dict[str, Any]) -> str:
    """Link, write what is asked for, and say how much there is."""
    paths = bitext_files(values, "link")
    refuse_unused("link", values)
    config = settings(BitextLinkConfig, values, "link")
    return f"{link(values['model'], paths, values['output'], config=config).summary()}: {values['output']}"
