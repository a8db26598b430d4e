"""Tokenizers of the ``tokenizers`` library as they lie in files: read, checked, and stripped of what units do not need."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from xswe.errors import ModelError
from xswe.language.unigram import is_trained_here


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a ``tokenizer.json``.

    Raises:
        ModelError: the file is missing or no tokenizer.
    """
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; a sub-word model needs its tokenizer.json")
    return parse_tokenizer(path.read_bytes(), path)


def parse_tokenizer(content: bytes, path: Path) -> Tokenizer:
    """Make a tokenizer of the bytes of a ``tokenizer.json``; ``path`` is for the error.

    Raises:
        ModelError: it is no tokenizer.
    """
    try:
        return Tokenizer.from_buffer(content)
    except BaseException as error:
        if not _is_of_the_library(error):
            raise
        raise ModelError(
            f"{path}: not a tokenizer ({' '.join(str(error).split())[:300]}); fetch or train the model again"
        ) from None


def state_for_later(path: Path) -> tuple[bytes, dict[str, Any]] | None:
    """Return a ``tokenizer.json``, its bytes and what they say if a tokenizer can surely be made of it later; else None."""
    try:
        content = path.read_bytes()
        state = json.loads(content.decode("utf-8"), parse_float=_exact)
        if not is_trained_here(state):
            return None
        without_pieces(state)
        pieces, unknown = state["model"]["vocab"], state["model"]["unk_id"]
        "".join(piece for piece, _ in pieces).encode("utf-8")
        sound = all(type(score) is float and math.isfinite(score) for _, score in pieces)
        return (content, state) if sound and type(unknown) is int and 0 <= unknown < len(pieces) else None
    except BaseException as error:
        if not _is_of_the_library(error):
            raise
        return None  # whatever is the matter, the library says it best


def _is_of_the_library(error: BaseException) -> bool:
    """Tell an error over a malformed file from an interruption: the library raises bare exceptions, or panics."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _exact(number: str) -> float:
    """Read a decimal number of so few digits that every reader makes the same of it; the library's may round others."""
    if len(number) > 16 or "e" in number.lower():
        raise ValueError(number)
    return float(number)


def unknown_id(tokenizer: Tokenizer, state: dict[str, Any] | None = None) -> int | None:
    """Return the id that a tokenizer gives to what it does not know, None if it has none.

    Args:
        tokenizer: the tokenizer.
        state: what it is made of, where that is at hand.
    """
    model = (state or json.loads(tokenizer.to_str()))["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None


def without_limits(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tokenizer's state without what units never use: where texts are cut, and what they are filled up with."""
    return {**state, "padding": None, "truncation": None}


def without_pieces(state: dict[str, Any]) -> Tokenizer:
    """Return a Unigram tokenizer's normaliser and chunks as a tokenizer of no pieces, which takes no memory to speak of."""
    return Tokenizer.from_str(json.dumps({**state, "model": {**state["model"], "vocab": [], "unk_id": None}}))


def pieces_only(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy without the special tokens that an encoder adds to the pieces, and without their template.

    Units are what stands in a text: a padding token is no unit, and "<pad>" in a text is five characters. Special tokens
    among the pieces themselves (XLM-R's) stay, as they must keep their ids.
    """
    state = json.loads(tokenizer.to_str())
    vocabulary, unknown = tokenizer.get_vocab_size(with_added_tokens=False), unknown_id(tokenizer, state)
    state["added_tokens"] = [
        token
        for token in state["added_tokens"]
        if not token["special"] or (token["id"] < vocabulary and token["id"] != unknown)
    ]
    state["post_processor"] = state["padding"] = state["truncation"] = None
    return Tokenizer.from_str(json.dumps(state))
