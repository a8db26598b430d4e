"""From words to ids: the compiled equivalent of the plain look-up of :class:`xswe.text.words.WordUnits`.

The words of the vocabulary are in one hash table from the start, shared by all threads. All other words are resolved
once, by the plain rules (lower case, back-off, the segmenter), and cached in a table for each thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from xswe.io.parallel import Lock
from xswe.io.ragged import Bags, LocatedBags, Texts, bounds_of, concatenate_bags, read_only
from xswe.text.compiled.alphabet import CJK, Alphabet
from xswe.text.compiled.chunks import WINDOW, NewChunks, Table, distinct, first_ids, new_table, remember
from xswe.text.compiled.locate import NOTHING, Tracer, in_order_of_rows
from xswe.text.compiled.lookup import Deferred, RunCutter
from xswe.text.compiled.scan import any_of
from xswe.text.compiled.viterbi import LONGEST_CHUNK
from xswe.text.scripts import around_runs, cjk_codes, is_punctuation, kana_codes
from xswe.text.segmenters import Segmenter, TextPieces

_MAX_IDS = 1 << 18
_BLANK, _NEWLINE = 0x20, 0x0A
_FIRST_CJK = 0xE3  # first UTF-8 byte of the lowest Han and Kana


class WordLookup:
    """The look-up of one vocabulary, for one or two possible languages of a text's Han."""

    def __init__(self, by_language: Mapping[str | None, OneLanguage | WholeTexts]) -> None:
        self._by_language = by_language
        self._tracers: dict[str | None, Callable[[Texts], LocatedBags]] = {}
        self._lock = Lock()

    def __call__(self, texts: Texts) -> Bags:
        """Look texts up."""
        parts = self.languages_of(texts)
        if len(parts) == 1:
            return self._by_language[parts[0][0]](texts)
        bags = concatenate_bags([self._by_language[code](texts.take(rows)) for code, rows in parts])
        return bags.take(np.argsort(np.concatenate([rows for _, rows in parts])))

    def locate(self, texts: Texts, slow: Callable[[list[str]], LocatedBags]) -> LocatedBags:
        """Look texts up with the place of each word; ``slow`` does the same for the texts left over."""
        with self._lock:
            if not self._tracers:
                self._tracers = {code: lookup.tracer(slow) for code, lookup in self._by_language.items()}
        parts = self.languages_of(texts)
        if len(parts) == 1:
            return self._tracers[parts[0][0]](texts)
        return in_order_of_rows([(rows, self._tracers[code](texts.take(rows))) for code, rows in parts])

    def of(self, language: str | None) -> OneLanguage | WholeTexts:
        """Return the look-up of texts whose Han is in a language."""
        return self._by_language[language]

    def languages_of(self, texts: Texts) -> list[tuple[str | None, np.ndarray]]:
        """Return the languages of the texts' Han, each with the ascending rows of its texts."""
        everything = np.arange(len(texts))
        if len(self._by_language) == 1:
            return [(next(iter(self._by_language)), everything)]
        kana, rest = _with_and_without(texts, kana_codes())
        if not len(kana) or not len(rest):
            return [("ja" if len(kana) else "zh", everything)]
        return [("ja", kana), ("zh", rest)]


def _with_and_without(texts: Texts, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ascending rows of texts with a wanted character (bool by code; Han or Kana), and of other texts."""
    present = np.empty(len(texts), bool)
    any_of(*texts.frozen, wanted, _FIRST_CJK, present)
    return np.flatnonzero(present), np.flatnonzero(~present)


class WholeTexts:
    """The look-up of texts whose Han is in one language, if texts with Han or Kana are cut as a whole.

    ``pieces`` cuts texts with Han or Kana, ``words`` looks up the others; ``find`` returns the id of a word, -1 for none,
    without back-off. ``forms`` maps the id of each piece to its word, empty if it is not a word.
    """

    def __init__(self, pieces: TextPieces, find: Callable[[str], int], words: OneLanguage) -> None:
        self._pieces, self.words, self.forms = pieces.units, words, pieces.forms
        self._ids = np.array([find(form) if form else -1 for form in pieces.forms], np.int32)

    def __call__(self, texts: Texts) -> Bags:
        """Look texts up."""
        whole, rest = _with_and_without(texts, cjk_codes())
        if not len(rest):
            return self._whole(texts)
        if not len(whole):
            return self.words(texts)
        bags = concatenate_bags([self._whole(texts.take(whole)), self.words(texts.take(rest))])
        return bags.take(np.argsort(np.concatenate([whole, rest])))

    def tally(self, texts: Texts, counts: np.ndarray) -> Texts:
        """Count the pieces of texts with Han or Kana in ``counts``, int64 (pieces,); return the other texts."""
        whole, rest = _with_and_without(texts, cjk_codes())
        if len(whole):
            counts += np.bincount(self._pieces.bags(texts.take(whole)).ids, minlength=len(counts))
        return texts.take(rest)

    def _whole(self, texts: Texts) -> Bags:
        return self._known(self._pieces.bags(texts))[0]

    def _known(self, bags: Bags) -> tuple[Bags, np.ndarray]:
        """Turn pieces into words; return the words, and which pieces are words."""
        ids = self._ids[bags.ids]
        present = ids >= 0
        before = bounds_of(present)
        return Bags(ids[present], before[bags.offsets]), present

    def tracer(self, slow: Callable[[list[str]], LocatedBags]) -> Callable[[Texts], LocatedBags]:
        """Return what finds the place of each word; ``slow`` does so for the texts that are left."""
        words = self.words.tracer(slow)

        def trace_whole(texts: Texts) -> LocatedBags:
            found = self._pieces.locate(texts)
            bags, present = self._known(found.bags)
            return LocatedBags(bags, found.starts[present], found.ends[present])

        def trace(texts: Texts) -> LocatedBags:
            """Trace texts with Han or Kana as wholes, and the others word by word."""
            whole, rest = _with_and_without(texts, cjk_codes())
            if not len(rest):
                return trace_whole(texts)
            if not len(whole):
                return words(texts)
            return in_order_of_rows([(whole, trace_whole(texts.take(whole))), (rest, words(texts.take(rest)))])

        return trace


class Words(NamedTuple):
    """Words of n runs of Han and Kana."""

    data: np.ndarray  # uint8, the bytes of all words
    starts: np.ndarray  # int64 (words,), the start of each word in them
    ends: np.ndarray  # int64 (words,), one past its last byte
    sizes: np.ndarray  # int64 (n,), the number of words of each run, in the order of the runs


class OneLanguage(Deferred):
    """The look-up of texts whose Han is in one language.

    ``normalise`` maps a text to a normalised text, and ``cut`` maps that to words and marks, the first of each tuple.
    ``segmenter`` cuts runs of Han and Kana; None if they are not cut. ``ids``, by word, is shared by all languages;
    ``known`` is the table of :func:`known_words`; ``slow`` looks up the texts left over.
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
            """Split a text; punctuation is dropped, so that the scan treats it as whitespace."""
            parts = [part for part, _ in cut(text)]
            parts = [piece for part in parts for piece in (around_runs(part) if segmenter is not None else [part])]
            return [(part, None) for part in parts if not all(map(is_punctuation, part))]

        super().__init__(Alphabet(normalise, chunks, ""), known, slow)
        self._segmenter, self._ids = segmenter, ids

    def _resolve(self, fresh: NewChunks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        chunks, which = distinct(fresh.text, fresh.where)
        is_run = np.empty(len(chunks), bool)
        is_run[which] = fresh.pieces[: len(which)] == CJK
        words, runs = np.flatnonzero(~is_run), np.flatnonzero(is_run)
        order, cut = self.cut(chunks.take(runs))
        word_ids = np.fromiter(map(self._word, chunks.take(words)), np.int32, len(words))
        before, ids = self._entries(word_ids, self._ids_of(cut), cut)
        place = np.empty(len(chunks), np.int64)  # index of each chunk among the entries
        place[np.concatenate([words, runs[order]])] = np.arange(len(chunks))
        return before[place[which]], np.diff(before)[place[which]], ids

    def _entries(self, word_ids: np.ndarray, run_ids: np.ndarray, cut: Words) -> tuple[np.ndarray, np.ndarray]:
        """Return the table's entries for words and runs: where the numbers of each start, (n + 1,), and the numbers.

        ``word_ids`` and ``run_ids`` are the ids, int32, of words and of the words of the runs in ``cut``, -1 if unknown.
        """
        ids = np.concatenate([word_ids, run_ids])
        before = bounds_of(ids >= 0)[bounds_of(np.concatenate([np.ones(len(word_ids), np.int64), cut.sizes]))]
        return before, ids[ids >= 0]

    def tracer(self, slow: Callable[[list[str]], LocatedBags]) -> Callable[[Texts], LocatedBags]:
        """Return what finds the place of each word; ``slow`` does so for the texts that are left."""
        return Tracer(WordPlaces(self), True, np.zeros(0, bool), slow)

    @functools.cached_property
    def _cutter(self) -> RunCutter | None:
        return self._ids.cutter_of(self._segmenter.tokenizer) if self._segmenter is not None else None

    def cut(self, runs: Texts) -> tuple[np.ndarray, Words]:
        """Cut runs of Han and Kana into words; return the rows of the runs in the order of cutting, and the words."""
        everything = np.arange(len(runs))
        if not len(runs) or self._segmenter is None:
            none = np.zeros(0, np.int64)
            return everything, Words(np.zeros(0, np.uint8), none, none, none)
        if self._cutter is None:
            return everything, _words_of(self._segmenter.lines(list(runs)))
        found = self._cutter(runs)
        starts = np.concatenate([np.zeros(1, np.int64), found.ends])[:-1]
        if found.done.all():
            return everything, Words(runs.data, starts, found.ends, found.sizes)
        # A run that could not be cut has no word, but its bytes are between those of its neighbours.
        done, left = np.flatnonzero(found.done), np.flatnonzero(~found.done)
        sizes = found.sizes[done]
        starts[np.cumsum(sizes) - sizes] = runs.offsets[done]
        other = _words_of(self._segmenter.lines(list(runs.take(left))))
        base = len(runs.data)
        words = Words(
            np.concatenate([runs.data, other.data]),
            np.concatenate([starts, other.starts + base]),
            np.concatenate([found.ends, other.ends + base]),
            np.concatenate([sizes, other.sizes]),
        )
        return np.concatenate([done, left]), words

    def _ids_of(self, cut: Words) -> np.ndarray:
        """Return the ids of the words of runs, -1 if unknown, int32 (words,)."""
        ids = np.empty(len(cut.ends), np.int32)
        if not len(ids):
            return ids
        room, keys = (
            np.empty(int((cut.ends - cut.starts).max()) // 8 + WINDOW + 1, np.uint64),
            np.empty(len(ids), np.uint64),
        )
        first_ids(read_only(cut.data), cut.starts, cut.ends, self._known, room, room.view(np.uint8), keys, ids)
        missing, raw = np.flatnonzero(ids == -2), cut.data.tobytes()
        places = zip(cut.starts[missing].tolist(), cut.ends[missing].tolist(), strict=True)
        words = [raw[start:end].decode("utf-8") for start, end in places]
        self._ids.learn(words)
        ids[missing] = [self._ids[word] for word in words]
        return ids

    def _word(self, word: str) -> int:
        return -1 if all(map(is_punctuation, word)) else self._ids.identify(word)


class WordPlaces(OneLanguage):
    """Words for :class:`Tracer`, with Han in one language; shares all it can with a look-up of bags."""

    def __init__(self, of: OneLanguage) -> None:
        Deferred.__init__(self, of._alphabet, of._known, of._slow)
        self._lock, self._segmenter, self._ids = of._lock, of._segmenter, of._ids

    def _entries(self, word_ids: np.ndarray, run_ids: np.ndarray, cut: Words) -> tuple[np.ndarray, np.ndarray]:
        first = bounds_of(cut.data & 0xC0 != 0x80)  # characters before each byte
        pairs = np.stack([run_ids, first[cut.ends] - first[cut.starts]], axis=1).astype(np.int32)
        numbers = np.concatenate([word_ids, pairs.ravel()])
        numbers[numbers < 0] = NOTHING
        return bounds_of(np.concatenate([np.ones(len(word_ids), np.int64), 2 * cut.sizes])), numbers


class Ids(dict[str, int]):
    """Ids by word, -1 for none, computed on demand; dropped when there are too many.

    ``find`` returns the id of a word as it is or in lower case, -1 for none; ``identify`` does the same with back-off,
    whose tokenizer, if any, is ``pieces``.
    """

    def __init__(self, find: Callable[[str], int], identify: Callable[[str], int], pieces: Tokenizer | None) -> None:
        super().__init__()
        self.find, self.identify, self._pieces = find, identify, pieces

    @functools.cached_property
    def _cutter(self) -> RunCutter | None:
        return RunCutter.of(self._pieces) if self._pieces is not None else None

    def cutter_of(self, tokenizer: Tokenizer | None) -> RunCutter | None:
        """Return the compiled equivalent of a segmenter's tokenizer if possible; it is usually that of the back-off."""
        if tokenizer is None:
            return None
        if tokenizer is self._pieces:
            return self._cutter
        return RunCutter.of(tokenizer)

    def __missing__(self, word: str) -> int:
        found = self[word] = self.identify(word)
        return found

    def learn(self, words: Iterable[str]) -> None:
        """Compute the ids of many words of Han and Kana at once, if that is faster than one by one."""
        if len(self) >= _MAX_IDS:
            self.clear()
        unknown = [word for word in set(words) if word not in self and not self._learn_known(word)]
        if not unknown or self._cutter is None:
            return
        cut, raws = self._cutter(Texts.of(unknown)), [word.encode("utf-8") for word in unknown]
        ends, start, first = cut.ends.tolist(), 0, 0
        for word, raw, size, done in zip(unknown, raws, cut.sizes.tolist(), cut.done.tolist(), strict=True):
            if done:
                prefixes = [raw[: stop - start].decode("utf-8") for stop in reversed(ends[first : first + size - 1])]
                found = (self.find(prefix) for prefix in prefixes)
                self[word] = next((i for i in found if i >= 0), -1)
            start, first = start + len(raw), first + size

    def _learn_known(self, word: str) -> bool:
        found = self.find(word)
        if found >= 0:
            self[word] = found
        return found >= 0


def _words_of(lines: str) -> Words:
    """Find the words in lines, a line a run."""
    data = np.frombuffer(f"{lines}\n".encode(), np.uint8)
    between = np.flatnonzero(data <= _BLANK)
    starts, ends = np.concatenate([np.zeros(1, np.int64), between[:-1] + 1]), between
    present = starts < ends
    before = bounds_of(present)
    lasts = np.flatnonzero(data[between] == _NEWLINE) + 1
    return Words(data, starts[present], ends[present], np.diff(before[lasts], prepend=0))


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
    return remember(new_table(slots), NewChunks(where, text, np.array([*ids, 0], np.int32)), 1 << 30)
