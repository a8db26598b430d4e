"""Runs of Han and Kana cut into the pieces of a Unigram tokenizer in compiled code, whosever tokenizer it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from xswe.language.alphabet import CJK, WORD, Alphabet
from xswe.language.lookup import characters_of, search_of
from xswe.language.scripts import cjk_runs
from xswe.language.texts import Texts
from xswe.language.tokenizer_files import without_pieces
from xswe.language.unigram import MARK
from xswe.language.viterbi import DONE, UNLEARNT, cut_runs, make_paths
from xswe.parallel import Lock

_PROBE = "語か々カ〇ーﾊ漢"  # of all kinds that occur in runs: a tokenizer that cuts between scripts cuts it


class CutRuns(NamedTuple):
    """Runs as words.

    Attributes:
        data: uint8, the bytes of all runs.
        ends: int64 (words,), where each word ends in them; the next one starts there.
        sizes: int64 (n,), how many words each run has.
        done: bool (n,), which runs could be cut; the others have no words here.
    """

    data: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray
    done: np.ndarray


class RunCutter:
    """Runs of Han and Kana to the pieces of a tokenizer, in compiled code.

    Args:
        state: what is in its ``tokenizer.json``; made by :meth:`of`, which sees whether it can be done.
        alphabet: what its normaliser and chunker do to characters.
        mark: what it puts before a run: nothing, or the mark of a word's start.
    """

    def __init__(self, state: dict[str, Any], alphabet: Alphabet, mark: str) -> None:
        self._alphabet, self._search = alphabet, search_of(state, np.zeros(1, bool))
        self._kind, self._mark = (WORD, int(self._search.symbols[ord(MARK)])) if mark else (CJK, -1)
        self._lock = Lock()

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> RunCutter | None:
        """Return the compiled twin of a tokenizer; None if it is no Unigram model, or treats runs in a way of its own."""
        if tokenizer.pre_tokenizer is None or tokenizer.truncation is not None or tokenizer.padding is not None:
            return None
        state = json.loads(tokenizer.to_str())
        model = state["model"]
        if model.get("type") != "Unigram" or model.get("unk_id") is None or model.get("byte_fallback"):
            return None
        if any(cjk_runs(token["content"]) for token in state["added_tokens"]):
            return None
        bare = without_pieces({**state, "added_tokens": [], "post_processor": None})
        normalise: Callable[[str], str] = bare.normalizer.normalize_str if bare.normalizer is not None else str
        chunks = bare.pre_tokenizer.pre_tokenize_str
        cut = [chunk for chunk, _ in chunks(normalise(_PROBE))]
        mark = cut[0][: -len(normalise(_PROBE))]
        if mark not in ("", MARK) or cut != [mark + normalise(_PROBE)]:
            return None
        # Whether words of spaced scripts get the mark is for the alphabet to know, which shows itself letters, too.
        before = chunks("a")[0][0][:-1]
        return cls(state, Alphabet(normalise, chunks, before), mark) if before in ("", MARK) else None

    def __call__(self, runs: list[bytes]) -> CutRuns:
        """Cut runs."""
        found = self._cut(runs)
        if (found[1] == UNLEARNT).any():
            with self._lock:
                self._alphabet.learn(characters_of(Texts.of([run.decode("utf-8") for run in runs])))
            found = self._cut(runs)
        return CutRuns(found[0].data, found[0].ends, found[0].sizes, found[1] == DONE)

    def _cut(self, runs: list[bytes]) -> tuple[CutRuns, np.ndarray]:
        offsets = np.cumsum([0, *map(len, runs)])
        data = np.frombuffer(b"".join(runs), np.uint8)
        ends, sizes = np.empty(offsets[-1], np.int64), np.empty(len(runs), np.int64)
        status = np.empty(len(runs), np.uint8)
        letters, search, paths = self._alphabet.table[0], self._search, make_paths()
        total = cut_runs(data, offsets, letters, self._kind, self._mark, search, paths, ends, sizes, status)
        return CutRuns(data, ends[:total], sizes, status == DONE), status
