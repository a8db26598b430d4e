"""Sub-words: the pieces of a tokenizer as units.

One ``tokenizer.json`` defines the whole function from text to ids, here and in every other library.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json
from xswe.io.parallel import Lock
from xswe.io.ragged import Bags, LocatedBags, bounds_of, concatenate_bags
from xswe.text.languages import check_languages
from xswe.text.tokenizers import WORD_START, is_trained_here, load_tokenizer, state_for_later, unknown_id, without_limits
from xswe.text.units import CompileHeuristic, UnitKind, flat_blocks, in_blocks

if TYPE_CHECKING:
    from xswe.text.compiled.locate import Tracer
    from xswe.text.compiled.lookup import FastLookup


class SubwordUnits:
    """The pieces of a tokenizer as units; its special tokens are never units.

    ``tokenizer`` may also be the bytes of a ``tokenizer.json``, parsed when first needed: the compiled look-up works
    without it. ``kind`` is ``subwords`` for the model's own vocabulary, ``teacher`` for the teacher's. With ``lone_mark``,
    as in models of other libraries, the mark of a word start alone is a unit. ``folding`` only records whether folding of
    traditional Chinese was requested: the tokenizer does it. ``state`` is the tokenizer's state, if already known.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | bytes,
        kind: UnitKind,
        languages: Sequence[str],
        *,
        lone_mark: bool = False,
        folding: bool = True,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.kind, self.languages, self._lone_mark = kind, check_languages(languages), lone_mark
        self.folding = folding
        self._source = tokenizer if isinstance(tokenizer, bytes) else _whole_texts(tokenizer)
        self._fast: FastLookup | None = None
        self._traced: Tracer | None = None
        self._worth = CompileHeuristic()
        self._lock = Lock()
        state = state or self.state()
        self.trained_here = is_trained_here(state)
        if self.trained_here:
            pieces = [piece for piece, _ in state["model"]["vocab"]]
            lone, dropped = pieces.index(WORD_START) if WORD_START in pieces else None, [state["model"]["unk_id"]]
            self._is_unit = np.ones(len(pieces), bool)
        else:
            given = self.tokenizer
            lone, unknown = given.token_to_id(WORD_START), unknown_id(given, state)
            dropped = [i for i, added in given.get_added_tokens_decoder().items() if added.special]
            dropped += [] if unknown is None else [unknown]
            self._is_unit = np.ones(given.get_vocab_size(with_added_tokens=True), bool)
        # The mark of a word start alone has no meaning: it remains where the word itself is unknown.
        if not lone_mark and lone is not None:
            dropped.append(lone)
        self._is_unit[dropped] = False

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_fast": None, "_traced": None}  # the compiled look-up is rebuilt on demand
        state.pop("tokens", None)
        return state

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself."""
        with self._lock:
            if isinstance(self._source, bytes):
                self._source = _whole_texts(Tokenizer.from_buffer(self._source))
            return self._source

    def state(self) -> dict[str, Any]:
        """Return the tokenizer's state, as in ``tokenizer.json``."""
        source = self._source  # read once: another thread may replace it by a tokenizer
        state: dict[str, Any] = json.loads(source if isinstance(source, bytes) else source.to_str())
        return state

    def __len__(self) -> int:
        return len(self._is_unit)

    @cached_property
    def tokens(self) -> list[str]:
        """The pieces by id; an empty string for an id that is not a unit (unknown, special, the lone mark)."""
        out = [""] * len(self._is_unit)
        for piece, i in self.tokenizer.get_vocab(with_added_tokens=True).items():
            out[i] = piece if self._is_unit[i] else ""
        return out

    @property
    def settings(self) -> dict[str, Any]:
        """Kind, languages, the lone mark if it is a unit, and folding if it is off."""
        kept = {"lone_mark": True} if self._lone_mark else {}
        kept |= {"folding": False} if not self.folding and "zh" in self.languages else {}
        return {"kind": self.kind, "languages": list(self.languages), **kept}

    @property
    def identity(self) -> str:
        """A fingerprint of settings and tokenizer."""
        return fingerprint(self.settings, without_limits(self.state()))

    @property
    def exact(self) -> SubwordUnits:
        """These units themselves: a piece never stands in for another one."""
        return self

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look texts up; unknown and special pieces are left out."""
        fast = self._fast_lookup(texts)
        if fast is None:
            return concatenate_bags([self._by_tokenizer(block) for block in in_blocks(texts)])
        return concatenate_bags([fast(block) for block in flat_blocks(texts)])

    def _fast_lookup(self, texts: Sequence[str]) -> FastLookup | None:
        """Return the compiled look-up; None if the tokenizer itself is as fast."""
        if not self.trained_here or not self._worth(texts):
            return None
        with self._lock:
            if self._fast is None:
                from xswe.io.compiler import start_compiler
                from xswe.text.compiled.lookup import FastLookup

                start_compiler()
                self._fast = FastLookup(self.state(), self._is_unit, self._by_tokenizer)
            return self._fast

    def _by_tokenizer(self, texts: list[str]) -> Bags:
        """Look well-formed texts up with the tokenizer itself."""
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return self._keep(Bags.of([e.ids for e in encodings]))[0]

    def locate(self, texts: Sequence[str]) -> LocatedBags:
        """Look texts up with the place of each piece; pieces of only whitespace are left out."""
        if (tracer := self._tracer(texts)) is None:
            return self._locate_by_tokenizer(texts)
        from xswe.text.compiled.locate import together

        return together([tracer(block) for block in flat_blocks(texts)])

    def _tracer(self, texts: Sequence[str]) -> Tracer | None:
        """Return the compiled search for places; None if the tokenizer itself is as fast."""
        if not self.trained_here or not self._worth(texts):
            return None
        with self._lock:
            if self._traced is None:
                from xswe.io.compiler import start_compiler
                from xswe.text.compiled.locate import PiecePlaces, Tracer

                start_compiler()
                self._traced = Tracer(PiecePlaces(self.state()), False, self._is_unit, self._locate_by_tokenizer)
            return self._traced

    def _locate_by_tokenizer(self, texts: Sequence[str]) -> LocatedBags:
        """Locate the pieces with the tokenizer itself: the reference for the compiled code."""
        from xswe.text.compiled.locate import locate_pieces

        parts, starts, ends = [], [], []
        for block in in_blocks(texts):
            bags, where, _ = locate_pieces(self.tokenizer, block)
            bags, kept = self._keep(bags, where[:, 0] < where[:, 1])
            parts.append(bags)
            starts.append(where[kept, 0])
            ends.append(where[kept, 1])
        empty = [np.zeros(0, np.int32)]
        return LocatedBags(concatenate_bags(parts), np.concatenate(starts or empty), np.concatenate(ends or empty))

    def _keep(self, bags: Bags, also: np.ndarray | None = None) -> tuple[Bags, np.ndarray]:
        """Drop ids that are not units (or where ``also`` is false); also return the mask of the ids kept."""
        kept = self._is_unit[bags.ids] if also is None else self._is_unit[bags.ids] & also
        if kept.all():
            return bags, kept
        return Bags(bags.ids[kept], bounds_of(kept)[bags.offsets]), kept

    def prune(self, keep: int, counts: np.ndarray | None = None) -> tuple[SubwordUnits, np.ndarray]:
        """Return the most frequent units, and their old ids; single characters and special tokens always stay.

        ConfigError: ``keep`` is below the number of these, or the tokenizer cannot lose pieces.
        """
        tokenizer, kept = _prune_unigram(self.tokenizer, keep, counts)
        return SubwordUnits(tokenizer, self.kind, self.languages, lone_mark=self._lone_mark, folding=self.folding), kept

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``."""
        text = self.tokenizer.to_str(pretty=True)  # its own ``save`` panics if the disk is full
        (folder / "tokenizer.json").write_text(text, encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> SubwordUnits:
        """Load from a model folder (``config.json`` names the kind and the languages)."""
        units = read_json(folder / "config.json")["units"]
        path = folder / "tokenizer.json"
        tokenizer, state = state_for_later(path) or (load_tokenizer(path), None)
        kept = {"lone_mark": bool(units.get("lone_mark")), "folding": units.get("folding", True) is not False}
        return cls(tokenizer, units["kind"], units["languages"], **kept, state=state)


def _whole_texts(tokenizer: Tokenizer) -> Tokenizer:
    """Switch off a tokenizer's truncation and padding; must not happen while another thread uses it."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _prune_unigram(tokenizer: Tokenizer, units: int, counts: np.ndarray | None) -> tuple[Tokenizer, np.ndarray]:
    """Return a tokenizer with fewer pieces, and the old ids of the pieces kept, in their old order."""
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"].get("vocab", [])
    added = {token["id"] for token in state["added_tokens"]}
    if state["model"]["type"] != "Unigram" or any(i >= len(vocabulary) for i in added):
        raise ConfigError(
            f"a {state['model']['type']} tokenizer with {len(added)} added tokens cannot lose pieces: only a Unigram "
            "without tokens beside its vocabulary can"
        )
    always = {*added, unknown_id(tokenizer)}
    stays = np.array([i in always or len(piece) == 1 for i, (piece, _) in enumerate(vocabulary)])
    if stays.sum() > units:
        raise ConfigError(f"keep={units}: the vocabulary has {stays.sum()} single characters, which must stay; keep more")
    worth = np.array([score for _, score in vocabulary]) if counts is None else counts.astype(np.float64)
    order = np.lexsort((np.arange(len(worth)), -worth, ~stays))
    kept = np.sort(order[:units])
    place = {int(old): new for new, old in enumerate(kept)}
    state["model"]["vocab"] = [vocabulary[i] for i in kept]
    state["model"]["unk_id"] = place.get(state["model"]["unk_id"])
    for token in state["added_tokens"]:
        token["id"] = place[token["id"]]
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False)), kept
