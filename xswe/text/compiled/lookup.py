"""From text to unit ids: the compiled equivalent of a sub-word tokenizer.

A word seen before costs one hash look-up; a new word, and every run of Han and Kana, is cut by the Viterbi search of the
tokenizers library's Unigram model, with the same arithmetic and the same ties. Texts with characters that the alphabet
cannot treat independently go to the tokenizer itself, so the result equals its result on any text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from xswe.io.parallel import Lock
from xswe.io.ragged import Bags, Texts, bounds_of
from xswe.text.compiled.alphabet import CJK, WORD, Alphabet
from xswe.text.compiled.chunks import NewChunks, Table, new_table, remember, room_for
from xswe.text.compiled.scan import NEW, Letters, expand, make_scratch, scan_all
from xswe.text.compiled.viterbi import DONE, NO_SEARCH, UNLEARNT, Search, build_trie, cut_runs, make_paths, make_search
from xswe.text.scripts import cjk_runs
from xswe.text.tokenizers import WORD_START, without_pieces

_UNKNOWN_PENALTY = 10.0  # tokenizers' Unigram: an unknown character scores this much below the lowest piece
_MAX_SLOTS = 1 << 18  # of a thread's table, 64 bytes each: 164,000 words


class Lookup:
    """A compiled look-up that leaves texts it cannot process to a slow one."""

    def __init__(self, alphabet: Alphabet, slow: Callable[[list[str]], Bags]) -> None:
        self._alphabet, self._slow = alphabet, slow
        self._own = threading.local()
        self._lock = Lock()

    def __call__(self, texts: Texts) -> Bags:
        """Look texts up."""
        bags, status = self._pass(texts)
        if not status.any():
            return bags
        rows = np.flatnonzero(status == UNLEARNT)
        if len(rows):
            self.learn(texts.take(rows))
            again, state = self._pass(texts.take(rows))
            bags, status[rows] = _replace(bags, rows, again), state
        rows = np.flatnonzero(status)
        return _replace(bags, rows, self._slow([texts[int(row)] for row in rows])) if len(rows) else bags

    @property
    def letters(self) -> Letters:
        """The table of the alphabet."""
        return self._alphabet.table

    def learn(self, texts: Texts) -> None:
        """Learn the characters of texts."""
        with self._lock:
            self._alphabet.learn(characters_of(texts))

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        """Run one compiled pass; texts whose status is not ``DONE`` have empty bags."""
        raise NotImplementedError

    def _scan(
        self, texts: Texts, search: Search, known: Table, defer: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, NewChunks]:
        """Scan texts with this thread's table; return ids, ends, status and the new chunks."""
        room = 2 * int(texts.offsets[-1] - texts.offsets[0]) + 64  # rarely exceeded; texts beyond it go to the slow path
        ids, ends = np.empty(room, np.int32), np.zeros(len(texts) + 1, np.int64)
        status = np.empty(len(texts), np.uint8)
        fresh = room_for(max(64, min(1 << 16, room // 4)))
        scratch = make_scratch()
        arguments = *texts.frozen, self._alphabet.table, search, self._table(), known, defer
        scan_all(*arguments, ids, ends, status, fresh, scratch)
        np.maximum.accumulate(ends, out=ends)  # a text without a chunk ends where the one before it does
        return ids, ends, status, fresh._replace(where=fresh.where[: int(scratch.state[NEW])])

    def _table(self) -> Table:
        if not hasattr(self._own, "words"):
            self._own.words = new_table(1 << 12)
        table: Table = self._own.words
        return table

    def _remember(self, fresh: NewChunks) -> None:
        self._own.words = remember(self._table(), fresh, _MAX_SLOTS)


class Deferred(Lookup):
    """A look-up that defers new chunks to :meth:`_resolve`, many at a time; each known word has one id."""

    _longest_run = 36  # bytes; longer runs of Han and Kana hardly ever recur

    def __init__(self, alphabet: Alphabet, known: Table, slow: Callable[[list[str]], Bags]) -> None:
        super().__init__(alphabet, slow)
        self._known = known

    def numbers(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        """Return the table's numbers for the chunks of each text, and the texts' status; see :meth:`_pass`."""
        return self._pass(texts)

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        ids, ends, status, fresh = self._scan(texts, NO_SEARCH, self._known, True)
        met = len(fresh.where)
        if not met:
            return Bags(ids[: ends[-1]], ends), status
        starts, sizes, pieces = self._resolve(fresh)
        out, out_ends = np.empty(ends[-1] - met + int(sizes.sum()), np.int32), np.zeros_like(ends)
        expand(ids, ends, starts, sizes, pieces, out, out_ends)
        where = np.stack([fresh.where[:, 0], fresh.where[:, 1], starts, sizes], axis=1).astype(np.int32)
        kept = (fresh.pieces[:met] != CJK) | (where[:, 1] <= self._longest_run)
        self._remember(NewChunks(where[kept], fresh.text, pieces))
        return Bags(out, out_ends), status

    def _resolve(self, fresh: NewChunks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the ids of new chunks: the start and number of each chunk's ids, and all ids."""
        raise NotImplementedError


def alphabet_of(state: dict[str, Any]) -> Alphabet:
    """Return the alphabet of a tokenizer of our kind, given the state in its ``tokenizer.json``."""
    tokenizer = without_pieces(state)
    return Alphabet(tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str, WORD_START)


def search_of(state: dict[str, Any], is_unit: np.ndarray) -> Search:
    """Return the Viterbi search of a tokenizer of our kind, given the state in its ``tokenizer.json``."""
    model = state["model"]
    trie = build_trie([piece for piece, _ in model["vocab"]])
    scores = np.array([score for _, score in model["vocab"]], np.float64)
    lowest = float(scores.min()) - _UNKNOWN_PENALTY
    return make_search(trie, scores, int(model["unk_id"]), lowest, is_unit)


class FastLookup(Lookup):
    """The look-up of one tokenizer, whose ``state`` must pass :func:`xswe.text.tokenizers.is_trained_here`.

    ``is_unit``, bool (ids,), says which ids are units; others are left out. ``slow`` looks texts up with the tokenizer
    itself.
    """

    def __init__(self, state: dict[str, Any], is_unit: np.ndarray, slow: Callable[[list[str]], Bags]) -> None:
        super().__init__(alphabet_of(state), slow)
        self._search = search_of(state, is_unit)
        self._known = new_table(1)

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        ids, ends, status, fresh = self._scan(texts, self._search, self._known, False)
        self._remember(fresh)
        return Bags(ids[: ends[-1]], ends), status


def characters_of(texts: Texts) -> np.ndarray:
    """Return the distinct character codes of texts."""
    codes = np.frombuffer(texts.data.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)
    return np.unique(codes).astype(np.int64)


def _replace(bags: Bags, rows: np.ndarray, with_bags: Bags) -> Bags:
    """Return ``bags`` with the empty bags of ``rows``, in order, replaced."""
    lengths = bags.lengths
    lengths[rows] = with_bags.lengths
    offsets = bounds_of(lengths)
    ids = np.empty(offsets[-1], np.int32)
    done = 0
    for row, start, stop in zip(rows.tolist(), *(with_bags.offsets[k:].tolist() for k in (0, 1)), strict=False):
        before, place = bags.offsets[row], offsets[row]
        ids[place - (before - done) : place] = bags.ids[done:before]
        ids[place : place + stop - start] = with_bags.ids[start:stop]
        done = before
    ids[len(ids) - (len(bags.ids) - done) :] = bags.ids[done:]
    return Bags(ids, offsets)


# Runs of Han and Kana cut into the pieces of any Unigram tokenizer, in compiled code.


_PROBE = "語か々カ〇ーﾊ漢"  # all kinds of characters in runs: a tokenizer that cuts between scripts cuts it


class CutRuns(NamedTuple):
    """Runs as words."""

    ends: np.ndarray  # int64 (words,), the end of each word in the bytes of all runs, where the next one starts
    sizes: np.ndarray  # int64 (n,), the number of words of each run
    done: np.ndarray  # bool (n,), which runs could be cut; others have no words here


class RunCutter:
    """A compiled splitter of runs of Han and Kana into a tokenizer's pieces; :meth:`of` checks whether that is possible.

    ``state`` and ``alphabet`` are the tokenizer's; ``mark`` is what it puts before a run: nothing, or the mark of a word
    start.
    """

    def __init__(self, state: dict[str, Any], alphabet: Alphabet, mark: str) -> None:
        self._alphabet, self._search = alphabet, search_of(state, np.zeros(1, bool))
        self._kind, self._mark = (WORD, int(self._search.symbols[ord(WORD_START)])) if mark else (CJK, -1)
        self._lock = Lock()

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> RunCutter | None:
        """Return the compiled equivalent of a tokenizer; None if it is no Unigram model, or treats runs specially."""
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
        if mark not in ("", WORD_START) or cut != [mark + normalise(_PROBE)]:
            return None
        # The alphabet must know whether words of spaced scripts get the mark, because it tests characters between letters.
        before = chunks("a")[0][0][:-1]
        return cls(state, Alphabet(normalise, chunks, before), mark) if before in ("", WORD_START) else None

    def __call__(self, runs: Texts) -> CutRuns:
        """Cut runs."""
        ends, sizes, status = self._cut(runs)
        if (status == UNLEARNT).any():
            with self._lock:
                self._alphabet.learn(characters_of(runs))
            ends, sizes, status = self._cut(runs)
        return CutRuns(ends, sizes, status == DONE)

    def _cut(self, runs: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ends, sizes = np.empty(runs.offsets[-1], np.int64), np.empty(len(runs), np.int64)
        status = np.empty(len(runs), np.uint8)
        letters, search, paths = self._alphabet.table[0], self._search, make_paths()
        total = cut_runs(*runs.frozen, letters, self._kind, self._mark, search, paths, ends, sizes, status)
        return ends[:total], sizes, status
