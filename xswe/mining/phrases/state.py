"""What must survive a kill in the middle of a search, in one file."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np

from xswe.files import whole_file
from xswe.language.texts import Texts
from xswe.mining.phrases.top import Top

logger = logging.getLogger(__name__)


def save(path: Path, identity: str, top: Top, texts: dict[int, str], done: int) -> None:
    """Write the state, whole or not at all.

    Args:
        path: the file.
        identity: what the search is of.
        top: the hits so far.
        texts: the passages they are in.
        done: how many passages have been searched.
    """
    from safetensors.numpy import save_file

    packed = Texts.of(texts.values())
    arrays = {f"top.{name}": np.ascontiguousarray(array) for name, array in top._asdict().items()}
    arrays |= {"numbers": np.array(list(texts), np.int64), "bytes": packed.data, "offsets": packed.offsets}
    with whole_file(path) as temporary:
        save_file(arrays, temporary, {"state": json.dumps({"identity": identity, "done": done})})


def restore(path: Path, identity: str) -> tuple[Top, dict[int, str], int] | None:
    """Read what :func:`save` wrote; None if there is nothing, or it is of another search."""
    from safetensors import safe_open

    if not path.is_file():
        return None
    with safe_open(path, "np") as opened:
        state = json.loads(opened.metadata()["state"])
        if state["identity"] != identity:
            return None
        top = Top(*(opened.get_tensor(f"top.{name}").copy() for name in Top._fields))
        texts = Texts(opened.get_tensor("bytes"), opened.get_tensor("offsets"))
        numbers = opened.get_tensor("numbers").tolist()
    logger.info("resuming the search at passage %d", state["done"])
    return top, dict(zip(numbers, texts, strict=True)), state["done"]
