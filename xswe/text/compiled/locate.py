"""Units with their places in many texts: the compiled equivalent of the units' ``locate``.

A look-up that defers new chunks (:class:`xswe.text.compiled.lookup.Deferred`) finds the units of each text, and the number
of normalised characters in each unit. A second pass over the bytes, :func:`trace`, counts these off: every output of the
alphabet comes from one character of the original text.

A tokenizer gives each piece a span of characters. :func:`locate_pieces` trims it by the rule of
:func:`xswe.text.units.trim_span`; :func:`place_words` joins the pieces of a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from tokenizers import Tokenizer

from xswe.io.compiler import LEAN, for_steps
from xswe.io.ragged import Bags, LocatedBags, Texts, bounds_of, concatenate_bags
from xswe.text.compiled.alphabet import CJK, CLASS_SHIFT, PUNCTUATION, REMOVED, SPACE, WORD, decode_character
from xswe.text.compiled.chunks import NewChunks, new_table
from xswe.text.compiled.lookup import Deferred, alphabet_of, search_of
from xswe.text.compiled.scan import Letters
from xswe.text.compiled.viterbi import DONE, UNLEARNT, cut_chunks, make_paths
from xswe.text.scripts import is_punctuation
from xswe.text.tokenizers import WORD_START

MARKED, WHOLE, PART, DROPPED, UNKNOWN = 0, 1, 2, 3, 4  # kinds of a piece; UNKNOWN is no unit, but does not end a word
SILENT = 8  # added to the kind of a piece that marks words, but has no vector
_BLANK, _COMBINING, _PUNCTUATION, _NEW = 1, 2, 4, 128

_traits = np.full(0x110000, _NEW, np.uint8)  # of each character; filled on demand


def _read(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the traits of all characters, uint8 (characters,), and the offsets of the texts in them, int64 (n + 1,)."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    for code in np.unique(codes[_traits[codes] == _NEW]).tolist():
        character = chr(code)
        blank = _BLANK if character.isspace() else 0
        combining = _COMBINING if unicodedata.combining(character) else 0
        _traits[code] = blank | combining | (_PUNCTUATION if is_punctuation(character) else 0)
    return _traits[codes], bounds_of(np.fromiter(map(len, texts), np.int64, len(texts)))


def locate_pieces(tokenizer: Tokenizer, texts: list[str]) -> tuple[Bags, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the piece ids of texts (no lone surrogates), their spans, and further input of :func:`place_words`.

    The spans, int32 (pieces, 2), are a piece's first character and one past its last, trimmed of whitespace and extended
    over the combining marks that follow. The further input is the characters' traits and the texts' offsets in them.
    """
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    bags = Bags.of([encoding.ids for encoding in encodings])
    numbers = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
    spans = np.fromiter(numbers, np.int32, 2 * len(bags.ids)).reshape(-1, 2)
    characters = _read(texts)
    for_steps(_settle, len(bags.ids))(bags.offsets, spans, *characters)
    return bags, spans, characters


@njit(**LEAN)
def _settle(offsets: np.ndarray, spans: np.ndarray, traits: np.ndarray, bounds: np.ndarray) -> None:
    """Trim the spans of all texts in place, like :func:`xswe.text.units.trim_span`."""
    for row in range(len(offsets) - 1):
        base, length = bounds[row], bounds[row + 1] - bounds[row]
        for t in range(offsets[row], offsets[row + 1]):
            start, end = spans[t, 0], spans[t, 1]
            while start < end and traits[base + start] & _BLANK:
                start += 1
            while start < end and traits[base + end - 1] & _BLANK:
                end -= 1
            while start < end < length and traits[base + end] & _COMBINING:
                end += 1
            spans[t, 0], spans[t, 1] = start, end


def place_words(
    bags: Bags, spans: np.ndarray, characters: tuple[np.ndarray, np.ndarray], kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the spans of words, int32 (words, 2), and the number of words before each text, int64 (n + 1,).

    ``spans`` and ``characters`` come from :func:`locate_pieces`; ``kinds``, uint8 (vocabulary,), is the kind of each piece.
    """
    places, ends = np.empty((len(bags.ids), 2), np.int32), np.zeros(len(bags.offsets), np.int64)
    for_steps(_place, len(bags.ids))(bags.ids, bags.offsets, spans, *characters, kinds, places, ends)
    return places[: ends[-1]], ends


@njit(**LEAN)
def _place(
    ids: np.ndarray,
    offsets: np.ndarray,
    spans: np.ndarray,
    traits: np.ndarray,
    bounds: np.ndarray,
    kinds: np.ndarray,
    places: np.ndarray,
    ends: np.ndarray,
) -> None:
    """See :func:`place_words`."""
    found = 0
    for row in range(len(offsets) - 1):
        inside = False  # within a word of a spaced script
        for t in range(offsets[row], offsets[row + 1]):
            kind, start, end = kinds[ids[t]] & (SILENT - 1), spans[t, 0], spans[t, 1]
            if kind == DROPPED:
                inside = False
            elif kind == UNKNOWN:
                # An unknown part of a word has no vector, but its characters belong to the word.
                if inside and start <= places[found - 1, 1] < end and not traits[bounds[row] + start] & _PUNCTUATION:
                    places[found - 1, 1] = end
            elif kind == PART and inside:
                places[found - 1, 0] = min(places[found - 1, 0], start)
                places[found - 1, 1] = max(places[found - 1, 1], end)
            else:
                inside = kind != WHOLE
                places[found, 0], places[found, 1] = start, end
                found += 1
        ends[row + 1] = found


NOTHING = 0x7FFFFFFF  # placeholder for a word that is no unit
_SCAN_BYTES = 1 << 17  # scanned at a time: there is room even if all of their chunks are new


class Found(NamedTuple):
    """The output of :func:`trace`."""

    ids: np.ndarray  # int32 (units,)
    starts: np.ndarray  # int32 (units,), first characters
    ends: np.ndarray  # int32 (units,), one past the last characters
    unit_ends: np.ndarray  # int64 (texts + 1,), bounds of each text's units; zeros on input


class Tracer:
    """Finder of the units of texts and their places; ``slow`` does the same for texts that the compiled code cannot handle.

    For each chunk, ``lookup`` gives pairs of a unit's id and its number of characters; with ``whole``, a chunk that is not
    a run of Han and Kana has only one id. Without ``whole`` the first character of a word stands for the mark before it.
    ``is_unit``, bool (ids,), says which ids are units; other ids, and ``NOTHING``, are left out. Empty means all are units.
    """

    def __init__(
        self, lookup: Deferred, whole: bool, is_unit: np.ndarray, slow: Callable[[list[str]], LocatedBags]
    ) -> None:
        self._lookup, self._whole, self._is_unit, self._slow = lookup, whole, is_unit, slow

    def __call__(self, texts: Texts) -> LocatedBags:
        """Find the units of texts."""
        return together([self._part(texts[start:stop]) for start, stop in portions(texts)])

    def _part(self, texts: Texts) -> LocatedBags:
        found, status = self._pass(texts)
        rows = np.flatnonzero(status == UNLEARNT)
        parts = [(np.flatnonzero(status == DONE), found)]
        if len(rows):
            self._lookup.learn(texts.take(rows))
            again, state = self._pass(texts.take(rows))
            parts.append((rows[state == DONE], again))
            status[rows] = state
        rows = np.flatnonzero(status != DONE)
        if len(rows):
            parts.append((rows, self._slow([texts[int(row)] for row in rows])))
        return in_order_of_rows(parts)

    def _pass(self, texts: Texts) -> tuple[LocatedBags, np.ndarray]:
        """Run one compiled pass; return the units of the texts whose status is ``DONE``, and all statuses."""
        items, status = self._lookup.numbers(texts)
        most = len(items.ids)
        ids, starts, ends = (np.empty(most, np.int32) for _ in range(3))
        found = Found(ids, starts, ends, np.zeros(len(texts) + 1, np.int64))
        trace(*texts.frozen, self._lookup.letters, status, items.ids, items.offsets, self._whole, self._is_unit, found)
        count, done = int(found.unit_ends[-1]), status == DONE
        offsets = found.unit_ends if done.all() else found.unit_ends[np.append(True, done)]
        return LocatedBags(Bags(ids[:count], offsets), starts[:count], ends[:count]), status


def portions(texts: Texts) -> list[tuple[int, int]]:
    """Split texts into non-empty blocks (start, stop) with a bounded number of bytes, to scan at a time."""
    offsets, out, start = texts.offsets, [], 0
    while start < len(texts):
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + _SCAN_BYTES, "right")) - 1)
        out.append((start, stop))
        start = stop
    return out


def together(parts: Sequence[LocatedBags]) -> LocatedBags:
    """Join the units of several texts into one."""
    if len(parts) == 1:
        return parts[0]
    none = [np.zeros(0, np.int32)]
    starts, ends = (np.concatenate([getattr(part, name) for part in parts] or none) for name in ("starts", "ends"))
    return LocatedBags(concatenate_bags([part.bags for part in parts]), starts, ends)


def in_order_of_rows(parts: Sequence[tuple[np.ndarray, LocatedBags]]) -> LocatedBags:
    """Merge the units of several sets of rows, in the order of the rows."""
    parts = [part for part in parts if len(part[0])] or list(parts[:1])
    if len(parts) == 1:
        return parts[0][1]
    joined = together([part for _, part in parts])
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    starts, ends = (Bags(values, joined.bags.offsets).take(order).ids for values in (joined.starts, joined.ends))
    return LocatedBags(joined.bags.take(order), starts, ends)


class PiecePlaces(Deferred):
    """Pieces of a tokenizer for :class:`Tracer`; ``state`` must pass :func:`xswe.text.tokenizers.is_trained_here`."""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__(alphabet_of(state), new_table(1), lambda texts: Bags.of([[] for _ in texts]))
        self._search = search_of(state, np.zeros(1, bool))

    def _resolve(self, fresh: NewChunks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        met = len(fresh.where)
        items = np.empty(2 * (int(fresh.where[-1, 0] + fresh.where[-1, 1]) + met), np.int32)
        starts = np.empty(met + 1, np.int64)
        mark, paths = int(self._search.symbols[ord(WORD_START)]), make_paths()
        cut_chunks(fresh.text, fresh.where, fresh.pieces, mark, self._search, paths, items, starts)
        return starts[:-1], np.diff(starts), items[: starts[-1]]


@njit(inline="always")
def _place_of_next(count: int, first: int, is_unit: np.ndarray, ids: np.ndarray) -> Any:
    """Return the place of the unit after the one at ``count``, which is overwritten if it is not a unit."""
    if count > first and (ids[count] == NOTHING or (len(is_unit) > 0 and not is_unit[ids[count]])):
        return count
    return count + 1


@njit(inline="always")
def _next(count: int, first: int, items: np.ndarray, item: int, is_unit: np.ndarray, ids: np.ndarray) -> Any:
    """Advance to the next unit of a text; return its place, that of the next item, and the unit's characters."""
    count = _place_of_next(count, first, is_unit, ids)
    ids[count] = items[item]
    return count, item + 2, np.int64(items[item + 1])


@njit(**LEAN)
def trace(  # noqa: C901 (one loop over the bytes, as in the scan)
    data: np.ndarray,
    offsets: np.ndarray,
    alphabet: Letters,
    status: np.ndarray,
    items: np.ndarray,
    bounds: np.ndarray,
    whole: bool,
    is_unit: np.ndarray,
    found: Found,
) -> None:
    """Find the units' places in the texts that are ``DONE``; the texts' bytes begin at ``offsets`` in ``data``.

    ``items`` (int32; each text's begin at ``bounds``), ``whole`` and ``is_unit`` are as in :class:`Tracer`.
    """
    entries, expansions, plain, _ = alphabet
    ids, starts, ends, unit_ends = found
    count = 0
    for row in range(len(offsets) - 1):
        unit_ends[row + 1] = count
        if status[row] != DONE:
            continue
        place, stop, item = offsets[row], offsets[row + 1], bounds[row]
        kind, left = SPACE, 0  # of the current chunk; remaining characters of the unit
        here = -1  # the current character of the text
        pending, last_pending = 0, 0  # outputs of an expansion still to be read
        count -= 1  # the current unit; there is none before a text's first
        first = count
        while True:
            if pending == last_pending and kind == WORD:
                # Letters continue the word, one character each: count them off together.
                run = place
                while run < stop and plain[data[run]] != 0:
                    run += 1
                run -= place
                place, here = place + run, here + run
                while run > left:
                    if left:
                        ends[count] = here - run + left + 1
                        run -= left
                    count, item, left = _next(count, first, items, item, is_unit, ids)
                    starts[count] = here - run + 1
                if run:
                    left -= run
                    ends[count] = here + 1
            if pending < last_pending:
                entry = expansions[pending]
                pending += 1
            elif place < stop:
                code, width = decode_character(data, place)
                place, here = place + width, here + 1
                entry = entries[code]
                if entry < 0:
                    if entry != REMOVED:
                        pending = -16 - entry
                        last_pending = pending + 1 + expansions[pending]
                        pending += 1
                    continue
            else:
                break
            this = entry >> CLASS_SHIFT
            if this == SPACE:
                kind = SPACE
                continue
            if this != kind or this == PUNCTUATION:  # a chunk begins
                kind, left = this, 0
                if whole and kind != CJK:
                    count = _place_of_next(count, first, is_unit, ids)
                    ids[count], starts[count], item, left = items[item], here, item + 1, 1 << 30
                elif kind == WORD:  # the mark before a word reports the place of the word's first character
                    count, item, left = _next(count, first, items, item, is_unit, ids)
                    starts[count], ends[count], left = here, here + 1, left - 1
            if left == 0:
                count, item, left = _next(count, first, items, item, is_unit, ids)
                starts[count] = here
            left -= 1
            ends[count] = here + 1
        count = _place_of_next(count, first, is_unit, ids)
        unit_ends[row + 1] = count
