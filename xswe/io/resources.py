"""The folders of data that ship with the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent  # the folder of xswe


def resource(name: str) -> Path:
    """Return the folder ``conf`` or ``corpora``, from a wheel, an editable install or a checkout."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
