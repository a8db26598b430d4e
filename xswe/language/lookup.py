"""Text to unit ids at the speed of memory: the compiled twin of a sub-word tokenizer.

One pass over the bytes of many texts normalises, cuts into chunks and looks each chunk up. A word met before costs one
hash look-up; a new one, and every run of Han and Kana, is cut by the Viterbi search of the tokenizers library's Unigram
model, with the same arithmetic and the same ties. Texts with characters that the alphabet cannot treat one by one go to
the tokenizer itself, so that the result is its result on any text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from tokenizers import Tokenizer

from xswe.language.alphabet import CJK, CLASS_SHIFT, COMPLEX, MARK, REMOVED, SPACE, UNKNOWN, WORD, Alphabet
from xswe.language.bags import Bags
from xswe.language.texts import Texts
from xswe.language.trie import build_trie

_UNKNOWN_PENALTY = 10.0  # tokenizers' Unigram: an unknown character scores the lowest piece's score minus this
_LONGEST_CHUNK = 4096  # bytes; a text with a longer one is left to the tokenizer
_MOST_WORDS = 1 << 20
DONE, LEFT, UNLEARNT = 0, 1, 2  # status of a text: looked up; for the tokenizer; holds characters not yet in the alphabet


@dataclass
class _Words:
    """A hash table from chunks to their pieces; every thread has its own.

    ``slots`` holds entry + 1, or 0. Entry ``e`` has the bytes ``text[where[e, 0]:][:where[e, 1]]`` and the pieces
    ``pieces[where[e, 2]:][:where[e, 3]]``.
    """

    slots: np.ndarray
    hashes: np.ndarray
    where: np.ndarray
    text: np.ndarray
    pieces: np.ndarray
    used: np.ndarray  # int64 (3,): entries, bytes, pieces

    @classmethod
    def of_size(cls, entries: int) -> _Words:
        return cls(
            np.zeros(4 * entries, np.int32),
            np.zeros(entries, np.uint64),
            np.zeros((entries, 4), np.int32),
            np.zeros(16 * entries, np.uint8),
            np.zeros(4 * entries, np.int32),
            np.zeros(3, np.int64),
        )

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.slots, self.hashes, self.where, self.text, self.pieces, self.used


@njit(inline="always")
def _find(
    slots: np.ndarray, hashes: np.ndarray, where: np.ndarray, text: np.ndarray, chunk: np.ndarray, size: int, key: np.uint64
) -> int:
    """Return the entry of a chunk, -1 if it is not there."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while True:
        entry = slots[slot] - 1
        if entry < 0:
            return -1
        if hashes[entry] == key and where[entry, 1] == size:
            start = where[entry, 0]
            same = True
            for k in range(size):
                if text[start + k] != chunk[k]:
                    same = False
                    break
            if same:
                return entry
        slot = (slot + np.uint64(1)) & mask


@njit(nogil=True, cache=True)
def _insert(
    slots: np.ndarray,
    hashes: np.ndarray,
    where: np.ndarray,
    text: np.ndarray,
    pieces: np.ndarray,
    used: np.ndarray,
    new: np.ndarray,
    new_text: np.ndarray,
    new_pieces: np.ndarray,
    new_hashes: np.ndarray,
) -> int:
    """Insert chunks (rows of ``new``: byte start, bytes, piece start, pieces); returns how many fitted."""
    mask = np.uint64(len(slots) - 1)
    for row in range(len(new)):
        start, size, first, count = new[row, 0], new[row, 1], new[row, 2], new[row, 3]
        chunk, key = new_text[start : start + size], new_hashes[row]
        if _find(slots, hashes, where, text, chunk, size, key) >= 0:
            continue
        entry = used[0]
        if entry >= len(where) or used[1] + size > len(text) or used[2] + count > len(pieces):
            return row
        hashes[entry] = key
        where[entry, 0], where[entry, 1], where[entry, 2], where[entry, 3] = used[1], size, used[2], count
        text[used[1] : used[1] + size] = chunk
        pieces[used[2] : used[2] + count] = new_pieces[first : first + count]
        slot = key & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = entry + 1
        used[0], used[1], used[2] = entry + 1, used[1] + size, used[2] + count
    return len(new)


@njit(nogil=True, cache=True)
def _viterbi(
    chunk: np.ndarray,
    size: int,
    base: np.ndarray,
    check: np.ndarray,
    value: np.ndarray,
    scores: np.ndarray,
    unknown: int,
    unknown_score: float,
    best: np.ndarray,
    piece: np.ndarray,
    came: np.ndarray,
    out: np.ndarray,
) -> int:
    """Cut ``chunk[:size]`` into the pieces of the best path; writes their ids to ``out``, last first, returns how many.

    Neighbouring unknown characters are one unknown piece.
    """
    for place in range(size + 1):
        came[place] = -1
    best[0] = 0.0
    place = 0
    while place < size:
        lead = chunk[place]
        width = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        till_here = best[place]
        single = False
        node, k = 0, place
        while k < size:
            child = base[node] + chunk[k]
            if check[child] != node or child == 0:
                break
            node = child
            k += 1
            found = value[node]
            if found >= 0:
                score = scores[found] + till_here
                if came[k] < 0 or score > best[k]:
                    best[k], piece[k], came[k] = score, found, place
                if k - place == width:
                    single = True
        if not single:
            k = place + width
            score = unknown_score + till_here
            if came[k] < 0 or score > best[k]:
                best[k], piece[k], came[k] = score, unknown, place
        place += width
    count, place = 0, size
    while place > 0:
        if not (piece[place] == unknown and count > 0 and out[count - 1] == unknown):
            out[count] = piece[place]
            count += 1
        place = came[place]
    return count


@njit(inline="always")
def _decode(data: np.ndarray, place: int, lead: int) -> tuple[Any, int]:
    """Return the code and the width of the UTF-8 character at ``place``, whose first byte is ``lead``."""
    if lead < 0x80:
        return lead, 1
    second = np.int64(data[place + 1]) & 0x3F
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | second, 2
    third = np.int64(data[place + 2]) & 0x3F
    if lead < 0xF0:
        return ((lead & 0x0F) << 12) | (second << 6) | third, 3
    return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | (np.int64(data[place + 3]) & 0x3F), 4


@njit(inline="always")
def _append(chunk: np.ndarray, size: int, code: int) -> int:
    """Append a character to the chunk as UTF-8; returns the new size."""
    if code < 0x80:
        chunk[size] = code
        return size + 1
    if code < 0x800:
        chunk[size], chunk[size + 1] = 0xC0 | (code >> 6), 0x80 | (code & 0x3F)
        return size + 2
    if code < 0x10000:
        chunk[size] = 0xE0 | (code >> 12)
        chunk[size + 1], chunk[size + 2] = 0x80 | ((code >> 6) & 0x3F), 0x80 | (code & 0x3F)
        return size + 3
    chunk[size], chunk[size + 1] = 0xF0 | (code >> 18), 0x80 | ((code >> 12) & 0x3F)
    chunk[size + 2], chunk[size + 3] = 0x80 | ((code >> 6) & 0x3F), 0x80 | (code & 0x3F)
    return size + 4


@njit(nogil=True, cache=True)
def _look_up(  # noqa: C901 (one loop over the bytes: what is cut out of it is passed back and forth)
    data: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
    expansions: np.ndarray,
    base: np.ndarray,
    check: np.ndarray,
    value: np.ndarray,
    scores: np.ndarray,
    unknown: int,
    unknown_score: float,
    is_unit: np.ndarray,
    slots: np.ndarray,
    hashes: np.ndarray,
    where: np.ndarray,
    text: np.ndarray,
    pieces: np.ndarray,
    ids: np.ndarray,
    ends: np.ndarray,
    status: np.ndarray,
    new: np.ndarray,
    new_text: np.ndarray,
    new_pieces: np.ndarray,
    new_hashes: np.ndarray,
) -> int:
    """Look texts up; returns how many new chunks were met (of those that found room in ``new``)."""
    longest = _LONGEST_CHUNK
    chunk = np.empty(longest + 8, np.uint8)
    best, piece = np.empty(longest + 9, np.float64), np.empty(longest + 9, np.int32)
    came, path = np.empty(longest + 9, np.int32), np.empty(longest + 9, np.int32)
    met, met_bytes, met_pieces = 0, 0, 0
    count = 0
    for row in range(len(offsets) - 1):
        begun = count
        place, stop = offsets[row], offsets[row + 1]
        status[row] = DONE
        size, kind = 0, SPACE
        key = np.uint64(0)
        pending, last_pending = 0, 0  # outputs of an expansion still to be taken
        while True:
            # The next output character, and its class; class SPACE at the end of the text.
            if pending < last_pending:
                entry = expansions[pending]
                pending += 1
            elif place < stop:
                code, width = _decode(data, place, np.int64(data[place]))
                place += width
                entry = entries[code]
                if entry < 0:
                    if entry == REMOVED:
                        continue
                    if entry == UNKNOWN:
                        status[row] = UNLEARNT
                        break
                    if entry == COMPLEX:
                        status[row] = LEFT
                        break
                    pending = -16 - entry
                    last_pending = pending + 1 + expansions[pending]
                    pending += 1
                    continue
            else:
                entry = -1  # past the end: flush what is there
            this = SPACE if entry < 0 else entry >> CLASS_SHIFT
            # A chunk ends where the class changes, and around every mark.
            if size > 0 and (this != kind or this == MARK):
                if count + size > len(ids):
                    status[row] = LEFT
                    break
                found = _find(slots, hashes, where, text, chunk, size, key)
                if found >= 0:
                    first, n = where[found, 2], where[found, 3]
                    for k in range(n):
                        ids[count] = pieces[first + k]
                        count += 1
                else:
                    n = _viterbi(chunk, size, base, check, value, scores, unknown, unknown_score, best, piece, came, path)
                    kept = 0
                    for k in range(n - 1, -1, -1):
                        if is_unit[path[k]]:
                            ids[count] = path[k]
                            count += 1
                            kept += 1
                    # Long runs of Han and Kana hardly ever come again: they would only crowd the table.
                    room = met < len(new) and met_bytes + size <= len(new_text) and met_pieces + kept <= len(new_pieces)
                    if room and (kind != CJK or size <= 12):
                        new[met, 0], new[met, 1], new[met, 2], new[met, 3] = met_bytes, size, met_pieces, kept
                        new_hashes[met] = key
                        for k in range(size):
                            new_text[met_bytes + k] = chunk[k]
                        for k in range(kept):
                            new_pieces[met_pieces + k] = ids[count - kept + k]
                        met, met_bytes, met_pieces = met + 1, met_bytes + size, met_pieces + kept
                size = 0
            if entry < 0:
                break
            if this == SPACE:
                kind = SPACE
                continue
            if size == 0:
                kind = this
                key = np.uint64(0xCBF29CE484222325)
                if this == WORD:
                    chunk[0], chunk[1], chunk[2] = 0xE2, 0x96, 0x81
                    size = 3
            code = entry & ((1 << CLASS_SHIFT) - 1)
            size = _append(chunk, size, code)
            key = (key ^ np.uint64(code)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
            if size > longest:
                status[row] = LEFT
                break
        if status[row] != DONE:
            count = begun
        ends[row + 1] = count
    return met


class FastLookup:
    """The look-up of one tokenizer.

    Args:
        tokenizer: one for which :func:`xswe.language.subwords.is_trained_here` holds.
        is_unit: bool (ids,), which ids are units; others are left out.
        slow: looks up texts with the tokenizer itself, for those that are left.
    """

    def __init__(self, tokenizer: Tokenizer, is_unit: np.ndarray, slow: Callable[[list[str]], Bags]) -> None:
        model = json.loads(tokenizer.to_str())["model"]
        self._alphabet, self._slow, self._is_unit = Alphabet(tokenizer), slow, is_unit
        self._trie = build_trie([piece for piece, _ in model["vocab"]])
        self._scores = np.array([score for _, score in model["vocab"]], np.float64)
        self._unknown = int(model["unk_id"])
        self._unknown_score = float(self._scores.min()) - _UNKNOWN_PENALTY
        self._own = threading.local()
        self._lock = threading.Lock()

    def __call__(self, texts: Texts) -> Bags:
        """Look texts up."""
        bags, status = self._pass(texts)
        if not status.any():
            return bags
        rows = np.flatnonzero(status == UNLEARNT)
        if len(rows):
            with self._lock:
                self._alphabet.learn(_characters(texts.take(rows)))
            again, state = self._pass(texts.take(rows))
            bags, status[rows] = _replace(bags, rows, again), state
        rows = np.flatnonzero(status)
        return _replace(bags, rows, self._slow([texts[int(row)] for row in rows])) if len(rows) else bags

    def _pass(self, texts: Texts) -> tuple[Bags, np.ndarray]:
        """One compiled pass; texts whose status is not ``DONE`` have empty bags."""
        room = 2 * int(texts.offsets[-1] - texts.offsets[0]) + 64  # rarely exceeded; such texts go to the tokenizer
        ids, ends = np.empty(room, np.int32), np.zeros(len(texts) + 1, np.int64)
        status = np.empty(len(texts), np.uint8)
        most = max(64, min(1 << 16, room // 4))
        new, new_hashes = np.empty((most, 4), np.int32), np.empty(most, np.uint64)
        new_text, new_pieces = np.empty(24 * most, np.uint8), np.empty(8 * most, np.int32)
        words: _Words = getattr(self._own, "words", None) or _Words.of_size(1 << 12)
        trie = self._trie
        met = _look_up(
            texts.data,
            texts.offsets,
            *self._alphabet.table,
            trie.base,
            trie.check,
            trie.value,
            self._scores,
            self._unknown,
            self._unknown_score,
            self._is_unit,
            *words.arrays[:-1],
            ids,
            ends,
            status,
            new,
            new_text,
            new_pieces,
            new_hashes,
        )
        self._own.words = _remember(words, new[:met], new_text, new_pieces, new_hashes)
        return Bags(ids[: ends[-1]], ends), status


def _remember(words: _Words, new: np.ndarray, text: np.ndarray, pieces: np.ndarray, hashes: np.ndarray) -> _Words:
    """Put newly met chunks into the table; returns the table, a larger one if need be (up to a bound)."""
    while len(new):
        fitted = _insert(*words.arrays, new, text, pieces, hashes)
        new, hashes = new[fitted:], hashes[fitted:]
        if len(new):
            if 2 * len(words.where) > _MOST_WORDS:
                break
            entries, larger = int(words.used[0]), _Words.of_size(2 * len(words.where))
            _insert(*larger.arrays, words.where[:entries], words.text, words.pieces, words.hashes[:entries])
            words = larger
    return words


def _characters(texts: Texts) -> np.ndarray:
    """Return the distinct character codes of texts."""
    codes = np.frombuffer(texts.data.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)
    return np.unique(codes).astype(np.int64)


def _replace(bags: Bags, rows: np.ndarray, with_bags: Bags) -> Bags:
    """Return ``bags`` with those of ``rows`` (empty ones) replaced."""
    lengths = bags.lengths
    lengths[rows] = with_bags.lengths
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ids = np.empty(offsets[-1], np.int32)
    new = np.zeros(len(bags), bool)
    new[rows] = True
    from_new = np.repeat(new, lengths)
    ids[from_new], ids[~from_new] = with_bags.ids, bags.ids
    return Bags(ids, offsets)
