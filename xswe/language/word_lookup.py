"""Words to ids in compiled code: the twin of :class:`xswe.language.words.WordUnits`' plain look-up.

The words of the vocabulary are in one hash table from the start, shared by all threads. What else occurs is resolved once,
by the plain rules (lower case, back-off, the segmenter), and remembered in a table of the thread's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from xswe.language.alphabet import CJK, Alphabet
from xswe.language.bags import Bags, concatenate
from xswe.language.lookup import Lookup
from xswe.language.scan import NO_SEARCH, Fresh, Table, any_of, expand, hash_chunks, new_table, remember
from xswe.language.scripts import cjk_runs, is_punctuation, kana_codes
from xswe.language.texts import Texts

_LONGEST_RUN = 36  # bytes; longer runs of Han and Kana hardly ever come again
_MOST_IDS = 1 << 18
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
        any_of(texts.data, texts.offsets, kana_codes(), _FIRST_KANA, kana)
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
        segment: runs of Han and Kana to their words; None where they are no matter of their own.
        identify: the id of a word, -1 for none.
        known: the table of :func:`known_words`.
        slow: looks up the texts that are left.
    """

    def __init__(
        self,
        normalise: Callable[[str], str],
        cut: Callable[[str], Sequence[tuple[str, object]]],
        segment: Callable[[list[str]], list[list[str]]] | None,
        identify: Callable[[str], int],
        known: Table,
        slow: Callable[[list[str]], Bags],
    ) -> None:
        def chunks(text: str) -> list[tuple[str, None]]:
            """Cut; without punctuation, which then is to the scan as blanks are."""
            parts = [part for part, _ in cut(text)]
            parts = [piece for part in parts for piece in (_around_runs(part) if segment is not None else [part])]
            return [(part, None) for part in parts if not all(map(is_punctuation, part))]

        super().__init__(Alphabet(normalise, chunks, ""), slow)
        self._segment, self._ids, self._known = segment, _Ids(identify), known

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
        self._remember(Fresh(where[kept], fresh.hashes[kept], fresh.text, pieces))
        return Bags(out, out_ends), status

    def _resolve(self, fresh: Fresh) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the ids of each new chunk: where they start, how many they are, and the ids of all."""
        raw = fresh.text[: fresh.where[-1, 0] + fresh.where[-1, 1]].tobytes()
        chunks = [raw[start : start + size] for start, size in fresh.where[:, :2].tolist()]
        kinds = dict(zip(chunks, fresh.pieces[: len(chunks)].tolist(), strict=True))
        words = [chunk for chunk, kind in kinds.items() if kind != CJK]
        runs = [chunk for chunk, kind in kinds.items() if kind == CJK]
        # Chunk after chunk, with -1 for what is unknown; one call a segment is all that Python has to do.
        cut = self._segment([run.decode("utf-8") for run in runs]) if self._segment is not None else []
        every = chain((self._word(word.decode("utf-8")) for word in words), map(self._ids.__getitem__, chain(*cut)))
        bounds = np.cumsum([0, *([1] * len(words)), *map(len, cut)])
        ids = np.fromiter(every, np.int32, int(bounds[-1]))
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(ids >= 0)])[bounds]
        place = {chunk: i for i, chunk in enumerate(chain(words, runs))}
        places = np.fromiter(map(place.__getitem__, chunks), np.int64, len(chunks))
        return before[places], np.diff(before)[places], ids[ids >= 0]

    def _word(self, word: str) -> int:
        return -1 if all(map(is_punctuation, word)) else self._ids.identify(word)


class _Ids(dict[str, int]):
    """Ids by word, -1 for none, found out when a word is first asked for; forgotten when there are too many."""

    def __init__(self, identify: Callable[[str], int]) -> None:
        super().__init__()
        self.identify = identify

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_IDS:
            self.clear()
        found = self[word] = self.identify(word)
        return found


def _around_runs(part: str) -> list[str]:
    """Cut a part at the borders of its runs of Han and Kana."""
    borders = sorted({0, len(part), *chain.from_iterable(cjk_runs(part))})
    return [part[start:stop] for start, stop in pairwise(borders)]


def known_words(words: Sequence[str]) -> Table:
    """Return a table of the words of spaced scripts; the place in the list is the id."""
    ids = [i for i, word in enumerate(words) if word and not cjk_runs(word) and not all(map(is_punctuation, word))]
    packed = [words[i].encode("utf-8", "replace") for i in ids]
    where = np.empty((len(ids), 4), np.int32)
    where[:, 1] = [len(word) for word in packed]
    where[:, 0] = np.cumsum(where[:, 1]) - where[:, 1]
    where[:, 2], where[:, 3] = np.arange(len(ids)), 1
    text, hashes = np.frombuffer(b"".join(packed) + b" ", np.uint8), np.empty(len(ids), np.uint64)
    hash_chunks(where, text, hashes)
    return remember(new_table(1 << 12), Fresh(where, hashes, text, np.array([*ids, 0], np.int32)), 1 << 30)
