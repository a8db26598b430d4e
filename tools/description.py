"""The README as the package's description, with links that hold away from the files of the repository.

A package index shows the README alone. With ``Source`` or ``Homepage`` in ``[project.urls]`` its links lead to the files
there; without, linked words are plain text, and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def description(text: str, home: str | None) -> str:
    """Return a page whose links to files lead to those of a repository, or are none if there is no address of one."""

    def absolute(link: re.Match[str]) -> str:
        picture, shown, target = link.groups()
        if home is None:
            return "" if picture else shown
        return f"{picture}[{shown}]({home.rstrip('/')}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return _LINK.sub(absolute, text)


class Description(MetadataHookInterface):
    """Puts the description into the metadata of wheel and sdist."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README."""
        urls = {name.lower(): url for name, url in metadata.get("urls", {}).items()}
        home = next((urls[name] for name in ("source", "repository", "homepage") if name in urls), None)
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text, home)}
