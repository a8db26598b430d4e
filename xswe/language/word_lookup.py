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
        index: id by word.
        identify: the id of a word that is not in ``index``, -1 for none.
        known: the table of :func:`known_words`.
        slow: looks up the texts that are left.
    """

    def __init__(
        self,
        normalise: Callable[[str], str],
        cut: Callable[[str], Sequence[tuple[str, object]]],
        segment: Callable[[list[str]], list[list[str]]] | None,
        index: Mapping[str, int],
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
        self._segment, self._index, self._identify, self._known = segment, index, identify, known

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        ids, ends, status, fresh = self._scan(texts, NO_SEARCH, self._known, True)
        met = len(fresh.where)
        if not met:
            return Bags(ids[: ends[-1]], ends), status
        found = self._resolve(fresh)
        where = fresh.where.copy()
        where[:, 3] = np.fromiter(map(len, found), np.int32, met)
        where[:, 2] = np.cumsum(where[:, 3]) - where[:, 3]
        pieces = np.fromiter(chain.from_iterable(found), np.int32, int(where[:, 3].sum()))
        out, out_ends = np.empty(ends[-1] - met + len(pieces), np.int32), np.zeros_like(ends)
        expand(ids, ends, where[:, 2].copy(), where[:, 3].copy(), pieces, out, out_ends)
        kept = (fresh.pieces[:met] != CJK) | (where[:, 1] <= _LONGEST_RUN)
        self._remember(Fresh(where[kept], fresh.hashes[kept], fresh.text, pieces))
        return Bags(out, out_ends), status

    def _resolve(self, fresh: Fresh) -> list[list[int]]:
        """Return the ids of each new chunk."""
        raw = fresh.text[: fresh.where[-1, 0] + fresh.where[-1, 1]].tobytes()
        chunks = [raw[start : start + size] for start, size in fresh.where[:, :2].tolist()]
        kinds = dict(zip(chunks, fresh.pieces[: len(chunks)].tolist(), strict=True))
        found = {chunk: self._word(chunk.decode("utf-8")) for chunk, kind in kinds.items() if kind != CJK}
        runs = [chunk for chunk, kind in kinds.items() if kind == CJK]
        if runs and self._segment is not None:
            known, identify = self._index.get, self._identify
            for run, words in zip(runs, self._segment([run.decode("utf-8") for run in runs]), strict=True):
                ids = [known(word, -1) for word in words]
                if -1 in ids:
                    ids = [i if i >= 0 else identify(word) for i, word in zip(ids, words, strict=True)]
                found[run] = [i for i in ids if i >= 0]
        return [found[chunk] for chunk in chunks]

    def _word(self, word: str) -> list[int]:
        found = self._identify(word)
        return [found] if found >= 0 and not all(map(is_punctuation, word)) else []


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
