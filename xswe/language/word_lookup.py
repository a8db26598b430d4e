"""Words to ids in compiled code: the twin of :class:`xswe.language.words.WordUnits`' plain look-up.

The words of the vocabulary are in one hash table from the start, shared by all threads. What else occurs is resolved once,
by the plain rules (lower case, back-off, the segmenter), and remembered in a table of the thread's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from xswe.language.alphabet import CJK, Alphabet
from xswe.language.bags import Bags, concatenate
from xswe.language.chunks import WINDOW, Fresh, Table, first_ids, new_table, remember
from xswe.language.lookup import Lookup, alphabet_of, characters_of, search_of
from xswe.language.scan import any_of, expand
from xswe.language.scripts import around_runs, is_punctuation, kana_codes
from xswe.language.segmenters import Segmenter
from xswe.language.texts import Texts
from xswe.language.unigram import is_trained_here
from xswe.language.viterbi import DONE, LONGEST_CHUNK, NO_SEARCH, UNLEARNT, cut_runs, make_paths
from xswe.parallel import Lock

_LONGEST_RUN = 36  # bytes; longer runs of Han and Kana hardly ever come again
_MOST_IDS = 1 << 18
_BLANK, _NEWLINE = 0x20, 0x0A
_FIRST_KANA = 0xE3  # first byte of the lowest Kana in UTF-8


class WordLookup:
    """The look-up of one vocabulary, over one or two languages of Han.

    Args:
        by_language: the look-ups of texts whose Han is in these languages; just one if there is no choice.
    """

    def __init__(self, by_language: Mapping[str | None, Lookup]) -> None:
        self._by_language = by_language

    def __call__(self, texts: Texts) -> Bags:
        """Look texts up."""
        if len(self._by_language) == 1:
            return next(iter(self._by_language.values()))(texts)
        kana = np.empty(len(texts), bool)
        any_of(*texts.frozen, kana_codes(), _FIRST_KANA, kana)
        if not kana.any():
            return self._by_language["zh"](texts)
        if kana.all():
            return self._by_language["ja"](texts)
        with_kana, without = np.flatnonzero(kana), np.flatnonzero(~kana)
        parts = self._by_language["ja"](texts.take(with_kana)), self._by_language["zh"](texts.take(without))
        return concatenate(parts).take(np.argsort(np.concatenate([with_kana, without])))


class OneLanguage(Lookup):
    """The look-up of texts whose Han is in one language.

    Args:
        normalise: text to normalised text.
        cut: normalised text to words and marks, the first of each tuple.
        segmenter: cuts runs of Han and Kana; None where they are no matter of their own.
        ids: ids by word; shared by all languages.
        known: the table of :func:`known_words`.
        slow: looks up the texts that are left.
    """

    def __init__(
        self,
        normalise: Callable[[str], str],
        cut: Callable[[str], Sequence[tuple[str, object]]],
        segmenter: Segmenter | None,
        ids: Ids,
        known: Table,
        slow: Callable[[list[str]], Bags],
    ) -> None:
        def chunks(text: str) -> list[tuple[str, None]]:
            """Cut; without punctuation, which then is to the scan as blanks are."""
            parts = [part for part, _ in cut(text)]
            parts = [piece for part in parts for piece in (around_runs(part) if segmenter is not None else [part])]
            return [(part, None) for part in parts if not all(map(is_punctuation, part))]

        super().__init__(Alphabet(normalise, chunks, ""), slow)
        self._segmenter, self._ids, self._known = segmenter, ids, known
        self._cutter = ids.cutter_of(segmenter.tokenizer) if segmenter is not None else None

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        ids, ends, status, fresh = self._scan(texts, NO_SEARCH, self._known, True)
        met = len(fresh.where)
        if not met:
            return Bags(ids[: ends[-1]], ends), status
        starts, sizes, pieces = self._resolve(fresh)
        out, out_ends = np.empty(ends[-1] - met + int(sizes.sum()), np.int32), np.zeros_like(ends)
        expand(ids, ends, starts, sizes, pieces, out, out_ends)
        where = np.stack([fresh.where[:, 0], fresh.where[:, 1], starts, sizes], axis=1).astype(np.int32)
        kept = (fresh.pieces[:met] != CJK) | (where[:, 1] <= _LONGEST_RUN)
        self._remember(Fresh(where[kept], fresh.text, pieces))
        return Bags(out, out_ends), status

    def _resolve(self, fresh: Fresh) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the ids of each new chunk: where they start, how many they are, and the ids of all."""
        raw = fresh.text[: fresh.where[-1, 0] + fresh.where[-1, 1]].tobytes()
        chunks = [raw[start : start + size] for start, size in fresh.where[:, :2].tolist()]
        kinds = dict(zip(chunks, fresh.pieces[: len(chunks)].tolist(), strict=True))
        words = [chunk for chunk, kind in kinds.items() if kind != CJK]
        runs = [chunk for chunk, kind in kinds.items() if kind == CJK]
        # Chunk after chunk, with -1 for what is unknown.
        run_ids, run_sizes = self._of_runs(runs)
        word_ids = np.fromiter((self._word(word.decode("utf-8")) for word in words), np.int32, len(words))
        ids = np.concatenate([word_ids, run_ids])
        bounds = np.cumsum(np.concatenate([np.zeros(1, np.int64), np.ones(len(words), np.int64), run_sizes]))
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(ids >= 0)])[bounds]
        place = {chunk: i for i, chunk in enumerate(chain(words, runs))}
        places = np.fromiter(map(place.__getitem__, chunks), np.int64, len(chunks))
        return before[places], np.diff(before)[places], ids[ids >= 0]

    def _of_runs(self, runs: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of the words of runs, -1 for what is unknown, and how many words each run has."""
        if not runs or self._segmenter is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        found = self._cutter(runs) if self._cutter is not None else None
        if found is not None:
            data, ends, sizes = found
            starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        else:
            data, starts, ends, sizes = _words_of(self._segmenter.lines([run.decode("utf-8") for run in runs]))
        ids = np.empty(len(ends), np.int32)
        room = np.empty(max(map(len, runs)) // 8 + WINDOW + 1, np.uint64)
        first_ids(data, starts, ends, self._known, room, room.view(np.uint8), np.empty(len(ids), np.uint64), ids)
        missing, raw = np.flatnonzero(ids == -2), data.tobytes()
        places = zip(starts[missing].tolist(), ends[missing].tolist(), strict=True)
        words = [raw[start:end].decode("utf-8") for start, end in places]
        self._ids.learn(words)
        ids[missing] = [self._ids[word] for word in words]
        return ids, sizes

    def _word(self, word: str) -> int:
        return -1 if all(map(is_punctuation, word)) else self._ids.identify(word)


class RunCutter:
    """Runs of Han and Kana to the pieces of a tokenizer of our kind, in compiled code.

    Args:
        state: what is in its ``tokenizer.json``.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._alphabet, self._search = alphabet_of(state), search_of(state, np.zeros(1, bool))
        self._lock = Lock()

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> RunCutter | None:
        """Return the compiled twin of a tokenizer, None if it is of another kind."""
        state = json.loads(tokenizer.to_str())
        return cls(state) if is_trained_here(state) else None

    def __call__(self, runs: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Cut runs: their bytes, where each word ends, and how many words each has; None if that needs the tokenizer."""
        offsets = np.cumsum([0, *map(len, runs)])
        texts = Texts(np.frombuffer(b"".join(runs), np.uint8), offsets)
        ends, sizes = np.empty(offsets[-1], np.int64), np.empty(len(runs), np.int64)
        paths = make_paths()
        status = cut_runs(texts.data, offsets, self._alphabet.table[0], self._search, paths, ends, sizes)
        if status == UNLEARNT:
            with self._lock:
                self._alphabet.learn(characters_of(texts))
            status = cut_runs(texts.data, offsets, self._alphabet.table[0], self._search, paths, ends, sizes)
        return (texts.data, ends[: sizes.sum()], sizes) if status == DONE else None


class Ids(dict[str, int]):
    """Ids by word, -1 for none, found out when a word is first asked for; forgotten when there are too many.

    Args:
        identify: the id of a word, -1 for none.
        index: the ids of the vocabulary's words.
        pieces: the tokenizer of the back-off, if there is one.
    """

    def __init__(self, identify: Callable[[str], int], index: Mapping[str, int], pieces: Tokenizer | None) -> None:
        super().__init__()
        self.identify, self._index, self._pieces = identify, index, pieces
        self._cutter = RunCutter.of(pieces) if pieces is not None else None

    def cutter_of(self, tokenizer: Tokenizer | None) -> RunCutter | None:
        """Return the compiled twin of a segmenter's tokenizer, if it can have one; mostly it is that of the back-off."""
        if tokenizer is None:
            return None
        if tokenizer is self._pieces:
            return self._cutter
        return RunCutter.of(tokenizer)

    def __missing__(self, word: str) -> int:
        found = self[word] = self.identify(word)
        return found

    def learn(self, words: Iterable[str]) -> None:
        """Find out about many words of Han and Kana at once, if it can be done faster than one by one."""
        if len(self) >= _MOST_IDS:
            self.clear()
        unknown = [word for word in set(words) if word not in self and not self._learn_known(word)]
        if not unknown or self._cutter is None:
            return
        cut = self._cutter([word.encode("utf-8") for word in unknown])
        if cut is not None:
            raw, ends, sizes = cut[0].tobytes(), cut[1].tolist(), cut[2].tolist()
            start, first = 0, 0
            for word, size in zip(unknown, sizes, strict=True):
                stops = ends[first : first + size]
                prefixes = [raw[start:stop].decode("utf-8") for stop in reversed(stops[:-1])]
                found = (self._find(prefix) for prefix in prefixes)
                self[word] = next((i for i in found if i >= 0), -1)
                start, first = stops[-1], first + size

    def _find(self, word: str) -> int:
        found = self._index.get(word, -1)
        return found if found >= 0 else self._index.get(word.lower(), -1)

    def _learn_known(self, word: str) -> bool:
        found = self._find(word)
        if found >= 0:
            self[word] = found
        return found >= 0


def _words_of(lines: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Find words in lines of them: the bytes, where each word starts and ends, and how many words each line has."""
    data = np.frombuffer(f"{lines}\n".encode(), np.uint8)
    between = np.flatnonzero(data <= _BLANK)
    starts, ends = np.concatenate([np.zeros(1, np.int64), between[:-1] + 1]), between
    there = starts < ends
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])
    lasts = np.flatnonzero(data[between] == _NEWLINE) + 1
    return data, starts[there], ends[there], np.diff(before[lasts], prepend=0)


def known_words(words: Sequence[str]) -> Table:
    """Return a table of words; the place in the list is the id."""
    packed = [word.encode("utf-8", "replace") for word in words]
    ids = [i for i, word in enumerate(words) if len(packed[i]) <= LONGEST_CHUNK and not all(map(is_punctuation, word))]
    packed = [packed[i] for i in ids]
    where = np.empty((len(ids), 4), np.int32)
    where[:, 1] = [len(word) for word in packed]
    where[:, 0] = np.cumsum(where[:, 1]) - where[:, 1]
    where[:, 2], where[:, 3] = np.arange(len(ids)), 1
    text = np.frombuffer(b"".join(packed) + b" ", np.uint8)
    slots = 1 << max(12, (len(ids) * 8 // 5).bit_length())
    return remember(new_table(slots), Fresh(where, text, np.array([*ids, 0], np.int32)), 1 << 30)
