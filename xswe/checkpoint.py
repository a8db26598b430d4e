"""One file that holds all that a killed run needs to go on: arrays, and a few values in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import XsweError
from xswe.files import whole_file


def save_checkpoint(path: Path, identity: str, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: the file.
        identity: names everything that decides the run.
        arrays: what is large.
        values: what is small, as JSON values.
    """
    from safetensors.numpy import save_file

    with whole_file(path) as temporary:
        save_file(dict(arrays), temporary, {"identity": identity, "values": json.dumps(values)})


def load_checkpoint(path: Path | None, identity: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Read a checkpoint; None if there is none, or it is another run's.

    Raises:
        XsweError: the file is damaged.
    """
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    if path is None or not path.exists():
        return None
    try:
        with safe_open(path, "np") as opened:
            found = opened.metadata() or {}
        return (load_file(path), json.loads(found["values"])) if found.get("identity") == identity else None
    except SafetensorError as error:
        raise XsweError(f"{path}: damaged ({error}); remove the file to start again") from None
