"""What of a settings object decides a result, and so belongs into the fingerprint of what it made."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Metadata of a dataclass field that changes nothing at its default: it then stays out of fingerprints, so that what was
# made before the field existed is still known to be the same.
OFF = {"off": True}


def decisive(settings: DataclassInstance) -> dict[str, Any]:
    """Return a dataclass as a dict, without the fields that are switched off."""
    off = {f.name for f in fields(settings) if f.metadata.get("off") and getattr(settings, f.name) == f.default}
    return {name: value for name, value in asdict(settings).items() if name not in off}
