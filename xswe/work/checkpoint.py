"""Checkpoints of iterative work: arrays and values in one file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xswe.io.files import save_tensors
from xswe.work.kept import keep
from xswe.work.records import Checksum

logger = logging.getLogger(__name__)


def save_checkpoint(
    path: Path, identity: str, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any], where: str = ""
) -> None:
    """Write a checkpoint atomically: arrays, and small values as JSON.

    ``where`` is the point from which the same command resumes, see :func:`xswe.work.kept.keep`; "" registers nothing.
    """
    words = json.dumps(values)
    checksum = str(_checksum(arrays, words))
    save_tensors(path, arrays, {"identity": identity, "values": words, "where": where, "checksum": checksum})
    if where:
        keep(path, where)


def load_checkpoint(path: Path | None, identity: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return a checkpoint; None if there is none, it belongs to another run, or it is damaged (which is logged)."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    if path is None or not path.exists():
        return None
    try:
        with safe_open(path, "np") as opened:
            found = opened.metadata() or {}
        if found.get("identity") != identity:
            return None
        arrays = load_file(path)
        if found.get("checksum") == str(_checksum(arrays, found["values"])):
            if where := found.get("where"):
                keep(path, where)
            return arrays, json.loads(found["values"])
    except (SafetensorError, UnicodeDecodeError):
        pass
    logger.warning("%s: damaged since it was written; its work is done again", path)
    return None


def _checksum(arrays: Mapping[str, np.ndarray], words: str) -> int:
    found = Checksum()
    found.add(words.encode())
    for name in sorted(arrays):
        found.add(name.encode())
        found.add(arrays[name])
    return found.finish()
