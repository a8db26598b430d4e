"""What must survive a kill in the middle of a search, in one file."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from xswe.checkpoint import load_checkpoint, save_checkpoint
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
    packed = Texts.of(texts.values())
    arrays = {f"top.{name}": np.ascontiguousarray(array) for name, array in top._asdict().items()}
    arrays |= {"numbers": np.array(list(texts), np.int64), "bytes": packed.data, "offsets": packed.offsets}
    save_checkpoint(path, identity, arrays, {"done": done})


def restore(path: Path, identity: str) -> tuple[Top, dict[int, str], int] | None:
    """Read what :func:`save` wrote; None if there is nothing, or it is of another search."""
    if (found := load_checkpoint(path, identity)) is None:
        return None
    arrays, state = found
    top = Top(*(arrays[f"top.{name}"] for name in Top._fields))
    texts, numbers = Texts(arrays["bytes"], arrays["offsets"]), arrays["numbers"].tolist()
    logger.info("resuming the search at passage %d", state["done"])
    return top, dict(zip(numbers, texts, strict=True)), state["done"]
