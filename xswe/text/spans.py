"""Texts as sequences of words, each a few rows of a table, for the span search.

A span is a run of words. In spaced scripts a word is a chunk of the model's units (all pieces from one word start to the
next), in Han and Kana it is one unit. Punctuation is not a word and does not count in a phrase's vector (the papers'
inference strips it, EN paper 3.1); a span may cross it.

``cut`` is the fast look-up; ``places`` reads texts again for character offsets, and is meant for the few texts that need
them.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN, for_steps
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Bags, concatenate_bags
from xswe.text.compiled.locate import DROPPED, MARKED, PART, SILENT, UNKNOWN, WHOLE, locate_pieces, place_words
from xswe.text.scripts import CJK_CHARACTERS, is_punctuation
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import WORD_START, unknown_id
from xswe.text.units import CompileHeuristic, Units, flat_blocks, in_blocks
from xswe.text.words import WordUnits

if TYPE_CHECKING:
    from xswe.text.compiled.lookup import FastLookup

_CJK_CHARACTER = re.compile(f"[{CJK_CHARACTERS}]")


@dataclass(frozen=True, eq=False)
class Cut:
    """Texts as words."""

    ids: np.ndarray  # int32 (pieces,), rows of a table
    # int64 (w + 1,), word ``j`` has the rows ``ids[words[j]:words[j + 1]]``; none if all of it is unknown
    words: np.ndarray
    texts: np.ndarray  # int64 (n + 1,), text ``i`` has the words ``texts[i]`` to ``texts[i + 1]``

    def __len__(self) -> int:
        return len(self.texts) - 1

    def text(self, i: int) -> Cut:
        """Return one text."""
        a, b = self.texts[i], self.texts[i + 1]
        words = self.words[a : b + 1]
        return Cut(self.ids[words[0] : words[-1]], words - words[0], np.array([0, b - a], np.int64))

    def take(self, rows: np.ndarray) -> Cut:
        """Return a copy of the texts ``rows``, in that order."""
        words = Bags(np.arange(len(self.words) - 1), self.texts).take(rows)
        pieces = Bags(self.ids, self.words).take(words.ids)
        return Cut(pieces.ids, pieces.offsets, words.offsets)

    @property
    def bags(self) -> Bags:
        """The rows of each text, regardless of words."""
        return Bags(self.ids, self.words[self.texts])


def join_cuts(parts: Sequence[Cut]) -> Cut:
    """Concatenate the texts of several cuts."""
    words = concatenate_bags([Bags(part.ids, part.words) for part in parts])
    texts = concatenate_bags([Bags(np.zeros(len(part.words) - 1, np.int8), part.texts) for part in parts])
    return Cut(words.ids, words.offsets, texts.offsets)


class Cutter(Protocol):
    """A splitter of texts into words, for one choice of units."""

    def cut(self, texts: Sequence[str]) -> Cut:
        """Cut texts."""

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the places of each text's words: int32 (words, 2), first character and one past the last."""


@functools.lru_cache(maxsize=2)  # making one takes a hundred times as long as linking a few sentences
def make_cutter(units: Units) -> Cutter:
    """Return the cutter of a model's units."""
    if isinstance(units, SubwordUnits) and units.trained_here:
        return _Pieces(units)
    return _Located(units)


def cut_texts(cutter: Cutter, texts: Sequence[str], threads: int = 1) -> Cut:
    """Cut texts, on ``threads`` threads."""
    parts = over_blocks(lambda a, b: cutter.cut(texts[a:b]), len(texts), threads) if len(texts) else []
    return join_cuts(parts)


@njit(**LEAN)
def _group(
    ids: np.ndarray, offsets: np.ndarray, kinds: np.ndarray, kept: np.ndarray, words: np.ndarray, texts: np.ndarray
) -> tuple[int, int]:
    """Group pieces into words; return the numbers of rows and words.

    ``words`` receives each word's first index in ``kept``, ``texts`` the number of words up to the end of each text.
    """
    count, found = 0, 0
    for row in range(len(offsets) - 1):
        open_word = False
        for t in range(offsets[row], offsets[row + 1]):
            kind = kinds[ids[t]] & (SILENT - 1)
            if kind == DROPPED:
                open_word = False
                continue
            if kind == UNKNOWN:
                continue
            if kind != PART or not open_word:
                words[found] = count
                found += 1
                open_word = kind != WHOLE
            if kinds[ids[t]] < SILENT:
                kept[count] = ids[t]
                count += 1
        texts[row + 1] = found
    words[found] = count
    return count, found


class _Pieces:
    """Words from the pieces of this library's sub-word tokenizers, by their marks and chunks, without the text."""

    def __init__(self, units: SubwordUnits) -> None:
        self._tokenizer = units.tokenizer
        vocabulary = units.tokenizer.get_vocab(with_added_tokens=True)
        self._kinds = np.full(max(vocabulary.values()) + 1, UNKNOWN, np.uint8)
        state = units.state()
        unknown = unknown_id(units.tokenizer, state)
        for piece, i in vocabulary.items():
            self._kinds[i] = UNKNOWN if i == unknown else _kind(piece)
            if piece == WORD_START:
                self._kinds[i] += SILENT  # begins a word
        self._state, self._worth = state, CompileHeuristic()

    @functools.cached_property
    def _fast(self) -> FastLookup:
        from xswe.text.compiled.lookup import FastLookup

        # Every piece is needed here, even if it is no unit, to show where words begin.
        return FastLookup(self._state, np.ones(len(self._kinds), bool), self._by_tokenizer)

    def _by_tokenizer(self, texts: list[str]) -> Bags:
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return Bags.of([e.ids for e in encodings])

    def cut(self, texts: Sequence[str]) -> Cut:
        """See :class:`Cutter`."""
        if self._worth(texts):
            bags = concatenate_bags([self._fast(block) for block in flat_blocks(texts)])
        else:
            bags = concatenate_bags([self._by_tokenizer(block) for block in in_blocks(texts)])
        ids, words = np.empty(len(bags.ids), np.int32), np.empty(len(bags.ids) + 1, np.int64)
        ends = np.zeros(len(bags) + 1, np.int64)
        count, found = for_steps(_group, len(bags.ids))(bags.ids, bags.offsets, self._kinds, ids, words, ends)
        return Cut(ids[:count].copy(), words[: found + 1].copy(), ends)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """See :class:`Cutter`."""
        out: list[np.ndarray] = []
        for block in in_blocks(texts):
            bags, spans, characters = locate_pieces(self._tokenizer, block)
            places, ends = place_words(bags, spans, characters, self._kinds)
            out += np.split(places, ends[1:-1])
        return out


def _kind(piece: str) -> int:
    if piece.startswith(WORD_START):
        return MARKED
    if all(map(is_punctuation, piece)):
        return DROPPED
    return WHOLE if _CJK_CHARACTER.match(piece) else PART


class _Located:
    """Words from any units, by the place of each unit in the text."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._whole = isinstance(units, WordUnits)

    def cut(self, texts: Sequence[str]) -> Cut:
        """See :class:`Cutter`."""
        if self._whole:
            bags = self._units.bags(texts)
            return Cut(bags.ids, np.arange(len(bags.ids) + 1, dtype=np.int64), bags.offsets)
        ids: list[np.ndarray] = []
        words, ends = [0], [0]
        for text, own, starts, stops in self._rows(texts):
            for first, last, _, _ in words_at(text, starts, stops):
                ids.append(own[first:last])
                words.append(words[-1] + last - first)
            ends.append(len(words) - 1)
        flat = np.concatenate(ids) if ids else np.zeros(0, np.int32)
        return Cut(flat, np.array(words, np.int64), np.array(ends, np.int64))

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """See :class:`Cutter`."""
        rows = self._rows(texts)
        if self._whole:
            return [np.stack([starts, ends], 1) for _, _, starts, ends in rows]
        return [places_of(words_at(text, starts, ends)) for text, _, starts, ends in rows]

    def _rows(self, texts: Sequence[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield each text with its units, their starts and their ends."""
        located = self._units.locate(texts)
        bounds = located.bags.offsets.tolist()
        for text, (a, b) in zip((one for block in in_blocks(texts) for one in block), pairwise(bounds), strict=True):
            yield text, located.bags.ids[a:b], located.starts[a:b], located.ends[a:b]


def _spaced(character: str) -> bool:
    """Return True if a character belongs to a word of a spaced script."""
    return not (character.isspace() or _CJK_CHARACTER.match(character) or is_punctuation(character))


def _in_a_word(character: str) -> bool:
    return not (character.isspace() or is_punctuation(character))


def words_at(text: str, starts: np.ndarray, ends: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Group the tokens of a text, given in text order by first character and one past the last, into words.

    Return, for each word, its tokens (first, one past the last) and its characters (start, end), with trailing combining
    marks. Tokens of punctuation alone are in no word; a token with Han or Kana is a word; a token that begins with a
    combining mark continues the word before; other tokens share a word unless whitespace or punctuation is between them.
    """
    out: list[tuple[int, int, int, int]] = []
    inside = False
    for t, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while start < end and not _in_a_word(text[start]):
            start += 1
        last = end
        while start < last and not _in_a_word(text[last - 1]):
            last -= 1
        if start == last:
            inside = False
            continue
        begins = not unicodedata.combining(text[start])
        while last < len(text) and unicodedata.combining(text[last]):
            last += 1
        if not begins and out and out[-1][1] == t and start <= out[-1][3]:
            out[-1] = (out[-1][0], t + 1, out[-1][2], max(last, out[-1][3]))
            continue
        spaced = not _CJK_CHARACTER.search(text, start, last)
        if inside and spaced and out[-1][1] == t and all(map(_spaced, text[out[-1][3] - 1 : start + 1])):
            out[-1] = (out[-1][0], t + 1, out[-1][2], max(last, out[-1][3]))
        else:
            out.append((t, t + 1, start, last))
        inside = spaced and last >= end
    return out


def places_of(words: list[tuple[int, int, int, int]]) -> np.ndarray:
    """Return the places of words found by :func:`words_at`, int32 (words, 2)."""
    return np.array([word[2:] for word in words], np.int32).reshape(-1, 2)
