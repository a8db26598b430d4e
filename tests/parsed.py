"""Large tokenizers, parsed once: hundreds of tests load the package's models, or train one with the pieces of these.

What is made of the bytes of a ``tokenizer.json`` is shared by all that have the same bytes: the tokenizer, its state,
its identity, the trie of its pieces, and how its chunker treats a character. All else that a look-up has is its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tokenizers import Tokenizer

from xswe.teacher.transformer import mini_folder
from xswe.text import subwords
from xswe.text.compiled import lookup
from xswe.text.compiled.alphabet import Alphabet
from xswe.text.subwords import SubwordUnits
from xswe.training import units_stage

LARGE = 1 << 20  # bytes; those that tests train for themselves are smaller


_read, _state, _identity = subwords.state_for_later, SubwordUnits.state, SubwordUnits.identity.fget
_load, _strip, _alphabet = units_stage.load_tokenizer, units_stage.pieces_only, lookup.alphabet_of


class Parsed:
    """What was made of each content so far; nothing is given up, so that an object is known by its id."""

    def __init__(self) -> None:
        self.read: dict[bytes, Any] = {}
        self.tokenizers: dict[bytes, Tokenizer] = {}
        self.contents: dict[int, bytes] = {}  # of tokenizers
        self.classes: dict[int, dict[str, int]] = {}  # of states
        self.identities: dict[tuple[bytes, str], str] = {}

    def state_for_later(self, path: Path) -> tuple[bytes, dict[str, Any]] | None:
        if not path.is_file() or path.stat().st_size < LARGE:
            return _read(path)
        content = path.read_bytes()
        if content not in self.read:
            self.read[content] = found = _read(path)
            self.classes[id(found and found[1])] = {}
        return self.read[content]

    def tokenizer(self, content: bytes) -> Tokenizer:
        if len(content) < LARGE:
            return Tokenizer.from_buffer(content)
        if content not in self.tokenizers:
            self.tokenizers[content] = made = Tokenizer.from_buffer(content)
            self.contents[id(made)] = content
        return self.tokenizers[content]

    def load_tokenizer(self, path: Path) -> Tokenizer:
        return self.tokenizer(path.read_bytes()) if path.parent == mini_folder() else _load(path)

    def content(self, units: SubwordUnits) -> bytes:
        """The content of units that lay in a file; else nothing."""
        content = self.contents.get(id(units._source), units._source)
        return content if isinstance(content, bytes) and self.read.get(content) else b""

    def state(self, units: SubwordUnits) -> dict[str, Any]:
        content = self.content(units)
        return self.read[content][1] if content else _state(units)

    def identity(self, units: SubwordUnits) -> str:
        if not (content := self.content(units)):
            return _identity(units)
        key = content, json.dumps(units.settings)
        if key not in self.identities:
            self.identities[key] = _identity(units)
        return self.identities[key]

    def alphabet(self, state: dict[str, Any]) -> Alphabet:
        found = _alphabet(state)
        found._classes = self.classes.get(id(state), found._classes)
        return found


@contextlib.contextmanager
def parsed_once() -> Iterator[None]:
    """Parse large tokenizers once."""
    own, build, stripped = Parsed(), functools.lru_cache(maxsize=2)(lookup.build_trie), functools.cache(_strip)
    with (
        patch.object(subwords, "state_for_later", own.state_for_later),
        patch.object(subwords, "Tokenizer", SimpleNamespace(from_buffer=own.tokenizer, from_str=Tokenizer.from_str)),
        patch.object(SubwordUnits, "state", lambda units: own.state(units)),
        patch.object(SubwordUnits, "identity", property(own.identity)),
        patch.object(lookup, "build_trie", lambda pieces: build(tuple(pieces))),
        patch.object(lookup, "alphabet_of", own.alphabet),
        patch.object(units_stage, "load_tokenizer", own.load_tokenizer),
        patch.object(units_stage, "pieces_only", lambda it: stripped(it) if id(it) in own.contents else _strip(it)),
    ):
        yield
