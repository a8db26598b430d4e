"""Compiled scanning of texts: bytes to chunks, and chunks to ids by one hash look-up.

A chunk is what no unit reaches beyond: a word of a spaced script, a punctuation mark, a run of Han and Kana. One pass over
the bytes normalises (by the alphabet), cuts, and looks each chunk up in a table of those met before. A new chunk is cut
into pieces at once by a Viterbi search, or handed back to be resolved in Python, once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.language.alphabet import CJK, CLASS_SHIFT, COMPLEX, MARK, REMOVED, SPACE, UNKNOWN, WORD
from xswe.language.utf8 import append_character, decode_character

LONGEST_CHUNK = 4096  # bytes; a text with a longer one is left to the slow path
DONE, LEFT, UNLEARNT = 0, 1, 2  # status of a text: looked up; for the slow path; holds characters not yet in the alphabet
_BASIS, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)


class Table(NamedTuple):
    """A hash table from chunks to their ids; only one thread at a time may write to it.

    ``slots`` holds entry + 1, or 0. Entry ``e`` has the bytes ``text[where[e, 0]:][:where[e, 1]]`` and the ids
    ``pieces[where[e, 2]:][:where[e, 3]]``. ``used`` counts entries, bytes and ids, int64 (3,).
    """

    slots: np.ndarray
    hashes: np.ndarray
    where: np.ndarray
    text: np.ndarray
    pieces: np.ndarray
    used: np.ndarray


class Fresh(NamedTuple):
    """Room for chunks newly met: rows of ``where`` as in a ``Table``, and what they speak of."""

    where: np.ndarray
    hashes: np.ndarray
    text: np.ndarray
    pieces: np.ndarray


class Search(NamedTuple):
    """What the Viterbi search needs: the trie of the pieces, their scores, the unknown piece, and which ids are units."""

    base: np.ndarray
    check: np.ndarray
    value: np.ndarray
    scores: np.ndarray
    unknown: int
    unknown_score: float
    is_unit: np.ndarray


_NONE = np.zeros(1, np.int32)
NO_SEARCH = Search(_NONE, _NONE, _NONE, np.zeros(1), 0, 0.0, np.zeros(1, bool))


def new_table(entries: int) -> Table:
    """Return an empty table with room for ``entries``, a power of two."""
    return Table(
        np.zeros(4 * entries, np.int32),
        np.zeros(entries, np.uint64),
        np.zeros((entries, 4), np.int32),
        np.zeros(16 * entries, np.uint8),
        np.zeros(4 * entries, np.int32),
        np.zeros(3, np.int64),
    )


def room_for(chunks: int) -> Fresh:
    """Return room for so many chunks of common lengths."""
    return Fresh(
        np.empty((chunks, 4), np.int32),
        np.empty(chunks, np.uint64),
        np.empty(24 * chunks, np.uint8),
        np.empty(8 * chunks, np.int32),
    )


@njit(inline="always")
def _find(table: Table, chunk: np.ndarray, size: int, key: np.uint64) -> int:
    """Return the entry of a chunk, -1 if it is not there."""
    slots, hashes, where, text = table.slots, table.hashes, table.where, table.text
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
def _insert(table: Table, fresh: Fresh) -> int:
    """Insert chunks that are not there yet; returns how many, from the first on, are there now."""
    slots, hashes, where, text, pieces, used = table
    mask = np.uint64(len(slots) - 1)
    for row in range(len(fresh.where)):
        start, size, first, count = fresh.where[row, 0], fresh.where[row, 1], fresh.where[row, 2], fresh.where[row, 3]
        chunk, key = fresh.text[start : start + size], fresh.hashes[row]
        if _find(table, chunk, size, key) >= 0:
            continue
        entry = used[0]
        if entry >= len(where) or used[1] + size > len(text) or used[2] + count > len(pieces):
            return row
        hashes[entry] = key
        where[entry, 0], where[entry, 1], where[entry, 2], where[entry, 3] = used[1], size, used[2], count
        text[used[1] : used[1] + size] = chunk
        pieces[used[2] : used[2] + count] = fresh.pieces[first : first + count]
        slot = key & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = entry + 1
        used[0], used[1], used[2] = entry + 1, used[1] + size, used[2] + count
    return len(fresh.where)


@njit(nogil=True, cache=True)
def _viterbi(
    chunk: np.ndarray, size: int, search: Search, best: np.ndarray, piece: np.ndarray, came: np.ndarray, out: np.ndarray
) -> int:
    """Cut ``chunk[:size]`` into the pieces of the best path; writes their ids to ``out``, last first, returns how many.

    Neighbouring unknown characters are one unknown piece.
    """
    base, check, value, scores = search.base, search.check, search.value, search.scores
    unknown, unknown_score = search.unknown, search.unknown_score
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
def _mix(key: np.uint64, code: int) -> np.uint64:
    """Hash one more character."""
    key = (key ^ np.uint64(code)) * _FACTOR
    return key ^ (key >> np.uint64(32))


@njit(nogil=True, cache=True)
def scan(  # noqa: C901 (one loop over the bytes: what is cut out of it is passed back and forth)
    data: np.ndarray,
    offsets: np.ndarray,
    alphabet: tuple[np.ndarray, np.ndarray],
    search: Search,
    table: Table,
    known: Table,
    defer: bool,
    ids: np.ndarray,
    ends: np.ndarray,
    status: np.ndarray,
    fresh: Fresh,
) -> int:
    """Look texts up.

    Args:
        data: uint8, the bytes of all texts.
        offsets: int64 (n + 1,), where they start.
        alphabet: see :class:`xswe.language.alphabet.Alphabet`.
        search: cuts new chunks into pieces, unless ``defer``.
        table: chunks met before.
        known: words known from the start, looked at first if ``defer``.
        defer: leave new chunks to the caller. The id of the ``k``-th one is then ``-1 - k``.
        ids: int32, receives the ids of all texts.
        ends: int64 (n + 1,), receives where each text's ids start and end.
        status: uint8 (n,), receives what became of each text; one that is not ``DONE`` has no ids.
        fresh: receives new chunks, with their pieces unless ``defer``; then the piece is the class of the chunk.

    Returns:
        How many new chunks there are. Those that find no room are not remembered, or their texts are left if ``defer``.
    """
    entries, expansions = alphabet
    longest = LONGEST_CHUNK
    chunk = np.empty(longest + 8, np.uint8)
    best, piece = np.empty(longest + 9, np.float64), np.empty(longest + 9, np.int32)
    came, path = np.empty(longest + 9, np.int32), np.empty(longest + 9, np.int32)
    met, met_bytes, met_pieces = 0, 0, 0
    count = 0
    for row in range(len(offsets) - 1):
        begun, begun_met, begun_bytes = count, met, met_bytes
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
                code, width = decode_character(data, place)
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
                found = _find(known, chunk, size, key) if defer and kind == WORD else -1
                if found >= 0:
                    ids[count] = known.pieces[known.where[found, 2]]
                    count += 1
                    found = 0
                else:
                    found = _find(table, chunk, size, key)
                    if found >= 0:
                        first, n = table.where[found, 2], table.where[found, 3]
                        for k in range(n):
                            ids[count] = table.pieces[first + k]
                            count += 1
                if found < 0:
                    kept = 0
                    if defer:
                        path[0] = kind
                        kept = 1
                    else:
                        n = _viterbi(chunk, size, search, best, piece, came, path)
                        for k in range(n - 1, -1, -1):
                            if search.is_unit[path[k]]:
                                ids[count] = path[k]
                                count += 1
                                kept += 1
                    room = met < len(fresh.where) and met_bytes + size <= len(fresh.text)
                    room = room and met_pieces + kept <= len(fresh.pieces)
                    if defer and not room:
                        status[row] = LEFT
                        break
                    # Long runs of Han and Kana hardly ever come again: they would only crowd the table.
                    if room and (defer or kind != CJK or size <= 12):
                        fresh.where[met, 0], fresh.where[met, 1] = met_bytes, size
                        fresh.where[met, 2], fresh.where[met, 3] = met_pieces, kept
                        fresh.hashes[met] = key
                        for k in range(size):
                            fresh.text[met_bytes + k] = chunk[k]
                        if defer:
                            fresh.pieces[met_pieces] = kind
                            ids[count] = -1 - met
                            count += 1
                        else:
                            for k in range(kept):
                                fresh.pieces[met_pieces + k] = ids[count - kept + k]
                        met, met_bytes, met_pieces = met + 1, met_bytes + size, met_pieces + kept
                size = 0
            if entry < 0:
                break
            if this == SPACE:
                kind = SPACE
                continue
            if size == 0:
                kind = this
                key = _BASIS
                if this == WORD and not defer:
                    chunk[0], chunk[1], chunk[2] = 0xE2, 0x96, 0x81
                    size = 3
            code = entry & ((1 << CLASS_SHIFT) - 1)
            size = append_character(chunk, size, code)
            key = _mix(key, code)
            if size > longest:
                status[row] = LEFT
                break
        if status[row] != DONE:
            count = begun
            if defer:
                met, met_bytes, met_pieces = begun_met, begun_bytes, begun_met
        ends[row + 1] = count
    return met


@njit(nogil=True, cache=True)
def cut_runs(
    data: np.ndarray, offsets: np.ndarray, entries: np.ndarray, search: Search, ends: np.ndarray, counts: np.ndarray
) -> int:
    """Cut runs of Han and Kana into the pieces of the best path; neighbouring unknown characters are one.

    Args:
        data: uint8, the bytes of all runs.
        offsets: int64 (n + 1,), where they start.
        entries: the first array of an alphabet.
        search: the pieces.
        ends: int64, receives the end of each piece in ``data``.
        counts: int64 (n,), receives how many pieces each run has.

    Returns:
        ``DONE``; or, as soon as a character is met that needs it, ``UNLEARNT`` or (not one ideograph for another) ``LEFT``.
    """
    longest = LONGEST_CHUNK
    chunk, origin = np.empty(longest + 8, np.uint8), np.empty(longest + 9, np.int64)
    best, piece = np.empty(longest + 9, np.float64), np.empty(longest + 9, np.int32)
    came, path = np.empty(longest + 9, np.int32), np.empty(longest + 9, np.int32)
    total = 0
    for row in range(len(offsets) - 1):
        place, stop, size = offsets[row], offsets[row + 1], 0
        while place < stop:
            code, width = decode_character(data, place)
            entry = entries[code]
            if entry == UNKNOWN:
                return UNLEARNT
            if entry >> CLASS_SHIFT != CJK or size >= longest:
                return LEFT
            place += width
            size = append_character(chunk, size, entry & ((1 << CLASS_SHIFT) - 1))
            origin[size] = place
        _viterbi(chunk, size, search, best, piece, came, path)
        # Backwards along the path; a piece after an unknown one, itself unknown, is part of it.
        begun, end, behind = total, size, False
        while end > 0:
            unknown = piece[end] == search.unknown
            if not (unknown and behind):
                ends[total] = origin[end]
                total += 1
            behind, end = unknown, came[end]
        ends[begun:total] = ends[begun:total][::-1].copy()
        counts[row] = total - begun
    return DONE


@njit(nogil=True, cache=True)
def find_pieces(data: np.ndarray, ends: np.ndarray, known: Table, ids: np.ndarray) -> None:
    """ids[k] = the id of ``data[ends[k - 1]:ends[k]]``, -2 if it is not among the known words."""
    place = 0
    for k in range(len(ids)):
        key, start = _BASIS, place
        while place < ends[k]:
            code, width = decode_character(data, place)
            key = _mix(key, code)
            place += width
        found = _find(known, data[start:place], place - start, key)
        ids[k] = known.pieces[known.where[found, 2]] if found >= 0 else -2


@njit(nogil=True, cache=True)
def any_of(data: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, lead: int, found: np.ndarray) -> None:
    """found[i] = whether text i holds a ``wanted`` character (bool by code); their first bytes are at least ``lead``."""
    for row in range(len(offsets) - 1):
        place, stop = offsets[row], offsets[row + 1]
        found[row] = False
        while place < stop:
            if data[place] >= lead and wanted[decode_character(data, place)[0]]:
                found[row] = True
                break
            place += 1
            while place < stop and data[place] & 0xC0 == 0x80:
                place += 1


@njit(cache=True)
def hash_chunks(where: np.ndarray, text: np.ndarray, hashes: np.ndarray) -> None:
    """Fill in the hashes of chunks as :func:`scan` computes them."""
    for row in range(len(where)):
        key, place, stop = _BASIS, where[row, 0], where[row, 0] + where[row, 1]
        while place < stop:
            code, width = decode_character(text, place)
            key = _mix(key, code)
            place += width
        hashes[row] = key


@njit(nogil=True, cache=True)
def expand(
    ids: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    pieces: np.ndarray,
    out: np.ndarray,
    out_ends: np.ndarray,
) -> None:
    """Copy bags, with each id ``-1 - k`` replaced by the ``sizes[k]`` ids from ``pieces[starts[k]]`` on."""
    count = 0
    for row in range(len(ends) - 1):
        for t in range(ends[row], ends[row + 1]):
            if ids[t] >= 0:
                out[count] = ids[t]
                count += 1
            else:
                k = -1 - ids[t]
                for place in range(starts[k], starts[k] + sizes[k]):
                    out[count] = pieces[place]
                    count += 1
        out_ends[row + 1] = count


def remember(table: Table, fresh: Fresh, most: int) -> Table:
    """Put chunks into a table; returns it, or a larger one if need be, of up to ``most`` entries."""
    while len(fresh.where):
        fitted = _insert(table, fresh)
        fresh = fresh._replace(where=fresh.where[fitted:], hashes=fresh.hashes[fitted:])
        if len(fresh.where):
            if 2 * len(table.where) > most:
                break
            entries, larger = int(table.used[0]), new_table(2 * len(table.where))
            _insert(larger, Fresh(table.where[:entries], table.hashes[:entries], table.text, table.pieces))
            table = larger
    return table
