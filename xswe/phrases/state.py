"""The state of a search of phrases: the best spans so far and the passages they are in, filled block by block and kept."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from xswe.io.files import load_checkpoint, save_checkpoint
from xswe.io.ragged import Texts
from xswe.phrases.kernels.top import Top
from xswe.phrases.search import Search

logger = logging.getLogger(__name__)
_CHARACTERS = 2_000_000  # of passages a block, at spans of up to 20 words; what is kept of each span bounds the memory


def searched(search: Search, passages: Iterable[str], texts: dict[int, str], done: int) -> Iterator[int]:
    """Search passages block by block, and yield after each how many have been searched.

    Args:
        search: whose lists are filled.
        passages: all of them, of which those before ``done`` have been searched.
        texts: the passages that hold a hit, by their number; changed in place.
        done: how many.
    """
    size = min(getattr(search.source, "block_characters", _CHARACTERS), 20 * _CHARACTERS // search.config.max_size)
    for block in _blocks(islice(iter(passages), done, None), size):
        search.add(block, done)
        texts |= {done + i: text for i, text in enumerate(block)}
        wanted = set(search.top.passages.ravel().tolist())
        for number in [number for number in texts if number not in wanted]:
            del texts[number]
        done += len(block)
        yield done


def _blocks(passages: Iterator[str], characters: int) -> Iterator[list[str]]:
    """Cut a stream into lists of about so many characters; where they end depends on nothing but the passages."""
    block: list[str] = []
    held = 0
    for passage in passages:
        block.append(passage)
        held += len(passage) + 1
        if held >= characters:
            yield block
            block, held = [], 0
    if block:
        yield block


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
