"""Compiled scanning of texts: from bytes to chunks, and from chunks to ids by one hash look-up.

No unit crosses the boundary of a chunk: a word of a spaced script, a punctuation mark, or a run of Han and Kana. One pass
over the bytes normalises (by the alphabet), splits, and looks each chunk up in a table of chunks seen before. A new chunk
is either cut into pieces at once by a Viterbi search, or deferred to the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.text.compiled.alphabet import (
    CJK,
    CLASS_SHIFT,
    COMPLEX,
    NEITHER,
    PUNCTUATION,
    REMOVED,
    SPACE,
    UNKNOWN,
    WORD,
    append_character,
    copy_letters,
    decode_character,
)
from xswe.text.compiled.chunks import FEW, WINDOW, NewChunks, Table, copy_ids, find, first_id, hash_chunk, prefetch_slot
from xswe.text.compiled.viterbi import (
    DONE,
    LEFT,
    LONGEST_CHUNK,
    UNLEARNT,
    Paths,
    Search,
    follow_back,
    make_paths,
    read_symbols,
    viterbi,
)

Letters = tuple[np.ndarray, np.ndarray, np.ndarray, int]  # the table of an alphabet

_MAX_WAITING = 256  # chunks looked up together
_MAX_BYTES = 2 * LONGEST_CHUNK  # of waiting chunks
_LONGEST_RUN = 12  # bytes; longer runs of Han and Kana hardly ever recur, and would only crowd the table
# Slots of ``Scratch.state``: counts of ids, of new chunks, of their bytes and pieces; the same at the start of the text.
IDS, NEW, NEW_BYTES, NEW_PIECES = range(4)
BEFORE, TEXT = 4, 8


class Scratch(NamedTuple):
    """Workspace of one scan.

    ``waiting`` has the start, size, class and text number of each chunk to be looked up; ``chunk`` has their bytes, each
    chunk starting at a multiple of eight and padded with zeros; ``words`` is the same memory as uint64; ``keys`` has the
    hashes. ``state`` has the counts so far, at ``IDS`` to ``NEW_PIECES``, the same counts at the start of the current text,
    from ``BEFORE``, and the text's number at ``TEXT``. ``paths`` is the workspace of the Viterbi search.
    """

    chunk: np.ndarray
    words: np.ndarray
    waiting: np.ndarray
    keys: np.ndarray
    state: np.ndarray
    paths: Paths


def make_scratch() -> Scratch:
    """Return the workspace of one scan."""
    words = np.zeros((_MAX_BYTES + LONGEST_CHUNK) // 8 + 2 * WINDOW, np.uint64)
    return Scratch(
        words.view(np.uint8),
        words,
        np.empty((_MAX_WAITING, 4), np.int64),
        np.empty(_MAX_WAITING, np.uint64),
        np.array([0] * 8 + [-1], np.int64),
        make_paths(),
    )


@njit(inline="always")
def _place_after(start: int, size: int) -> int:
    """Return the place of the next chunk in ``Scratch.chunk``."""
    return start + max((size + 7) & -8, 8 * WINDOW)


@njit(inline="always")
def _begin_word(chunk: np.ndarray, end: int, defer: bool) -> Any:
    """Write the mark of a word start, unless words are deferred; return the new end."""
    if defer:
        return end
    chunk[end], chunk[end + 1], chunk[end + 2] = 0xE2, 0x96, 0x81
    return end + 3


@njit(inline="always")
def _may_be_known(kind: int, size: int) -> bool:
    """Return True if a chunk that is cut here is cached, and thus worth looking up."""
    return size <= _LONGEST_RUN or kind != CJK


@njit(**INNER)
def _handle_new_chunk(
    chunk: np.ndarray, kind: int, scratch: Scratch, search: Search, defer: bool, ids: np.ndarray, fresh: NewChunks
) -> bool:
    """Cut or defer a chunk that is in no table; return False if there is no room for it."""
    state, paths = scratch.state, scratch.paths
    count, met, met_bytes, met_pieces = state[IDS], state[NEW], state[NEW_BYTES], state[NEW_PIECES]
    kept = 1 if defer else 0
    if not defer:
        size = read_symbols(chunk, search, paths)
        viterbi(size, search, paths)
        for k in range(follow_back(size, search, paths) - 1, -1, -1):
            if search.is_unit[paths.path[k]]:
                ids[count + kept] = paths.path[k]
                kept += 1
        state[IDS] += kept
    room = met < len(fresh.where) and met_bytes + len(chunk) <= len(fresh.text) and met_pieces + kept <= len(fresh.pieces)
    if defer and not room:
        return False
    if room and (defer or _may_be_known(kind, len(chunk))):
        fresh.where[met, 0], fresh.where[met, 1] = met_bytes, len(chunk)
        fresh.where[met, 2], fresh.where[met, 3] = met_pieces, kept
        for k in range(len(chunk)):
            fresh.text[met_bytes + k] = chunk[k]
        if defer:
            fresh.pieces[met_pieces] = kind
            ids[count] = -1 - met
            state[IDS] += 1
        else:
            for k in range(kept):
                fresh.pieces[met_pieces + k] = ids[count + k]
        state[NEW], state[NEW_BYTES], state[NEW_PIECES] = met + 1, met_bytes + len(chunk), met_pieces + kept
    return True


@njit(**INNER)
def _abandon_text(row: int, why: int, scratch: Scratch, defer: bool, ends: np.ndarray, status: np.ndarray) -> None:
    """Abandon a text, and discard its chunks so far."""
    status[row] = why
    state = scratch.state
    if state[TEXT] == row:
        # New chunks that were cut are valid for any text; deferred ones would be resolved in vain.
        state[IDS] = state[BEFORE + IDS]
        if defer:
            for k in (NEW, NEW_BYTES, NEW_PIECES):
                state[k] = state[BEFORE + k]
    ends[row + 1] = state[IDS]


@njit(**LEAN)
def _hash(size: int, scratch: Scratch, table: Table, known: Table, defer: bool) -> None:
    """Hash the waiting chunks, and prefetch their slots, so that their cache misses overlap."""
    waiting, words, keys = scratch.waiting, scratch.words, scratch.keys
    for w in range(size):
        if not (_may_be_known(waiting[w, 2], waiting[w, 1]) or defer):
            continue
        keys[w] = hash_chunk(words, waiting[w, 0] >> 3, waiting[w, 1])
        if defer and waiting[w, 2] == WORD:
            prefetch_slot(known, keys[w])
        else:
            prefetch_slot(table, keys[w])


@njit(**INNER)
def _take_known(
    w: int,
    size: int,
    scratch: Scratch,
    table: Table,
    known: Table,
    defer: bool,
    ids: np.ndarray,
    ends: np.ndarray,
    status: np.ndarray,
) -> int:
    """Write the ids of waiting chunks from the ``w``-th; return the first that is unknown, or has no room."""
    waiting, words, keys, state = scratch.waiting, scratch.words, scratch.keys, scratch.state
    current, count = state[TEXT], state[IDS]
    while w < size:
        start, length, row = waiting[w, 0], waiting[w, 1], waiting[w, 3]
        if row != current:
            state[IDS] = count
            for k in range(BEFORE):
                state[BEFORE + k] = state[k]
            state[TEXT] = current = row
        if status[row] == DONE:
            if not _has_room(ids, count, length):
                break
            found = find(known, words, start >> 3, length, keys[w]) if defer and waiting[w, 2] == WORD else -1
            if found >= 0:
                ids[count] = first_id(known, found)
                count += 1
            else:
                found = -1
                if _may_be_known(waiting[w, 2], length) or defer:
                    found = find(table, words, start >> 3, length, keys[w])
                if found < 0:
                    break
                count += copy_ids(table, found, ids, count)
            ends[row + 1] = count
        w += 1
    state[IDS] = count
    return w


@njit(inline="always")
def _has_room(ids: np.ndarray, count: int, length: int) -> bool:
    """Return True if there is room for the ids of a chunk of ``length`` bytes, and the ``FEW`` of :func:`copy_ids`."""
    return count + length + FEW <= len(ids)


@njit(**INNER)
def _look_up(
    size: int,
    scratch: Scratch,
    search: Search,
    table: Table,
    known: Table,
    defer: bool,
    ids: np.ndarray,
    ends: np.ndarray,
    status: np.ndarray,
    fresh: NewChunks,
) -> None:
    waiting, state = scratch.waiting, scratch.state
    _hash(size, scratch, table, known, defer)
    w = np.int64(0)
    while True:
        w = _take_known(w, size, scratch, table, known, defer, ids, ends, status)
        if w == size:
            return
        start, length, kind, row = waiting[w, 0], waiting[w, 1], waiting[w, 2], waiting[w, 3]
        chunk = scratch.chunk[start : start + length]
        if _has_room(ids, state[IDS], length) and _handle_new_chunk(chunk, kind, scratch, search, defer, ids, fresh):
            ends[row + 1] = state[IDS]
        else:
            _abandon_text(row, np.int64(LEFT), scratch, defer, ends, status)
        w += 1


@njit(inline="always")
def _copy_plain(
    data: np.ndarray, place: int, last: int, kind: int, alphabet: Letters, chunk: np.ndarray, end: int
) -> tuple[int, int]:
    """Copy characters that simply continue a chunk of class ``kind``: most letters, Han and Kana.

    Return the places, possibly unchanged, after the bytes read, at most ``last``, and after the bytes written.
    """
    entries, _, plain, case = alphabet
    if kind == WORD:
        if case != NEITHER:
            place, end = copy_letters(data, place, last, case, chunk, end)
        while place < last and plain[data[place]] != 0:
            chunk[end] = plain[data[place]]
            place, end = place + 1, end + 1
    elif kind == CJK:
        while place + 3 <= last and data[place] & 0xF0 == 0xE0:
            entry = entries[decode_character(data, place)[0]]
            if entry >> CLASS_SHIFT != CJK:
                break
            place, end = place + 3, append_character(chunk, end, entry & ((1 << CLASS_SHIFT) - 1))
    return place, end


@njit(**LEAN)
def scan_all(  # noqa: C901 (one loop over the bytes: what is cut out of it is passed back and forth)
    data: np.ndarray,
    offsets: np.ndarray,
    alphabet: Letters,
    search: Search,
    table: Table,
    known: Table,
    defer: bool,
    ids: np.ndarray,
    ends: np.ndarray,
    status: np.ndarray,
    fresh: NewChunks,
    scratch: Scratch,
) -> None:
    """Look up texts, whose bytes, uint8, begin at ``offsets``, int64 (n + 1,), in ``data``.

    ``table`` has chunks seen before. New chunks are cut into pieces by ``search`` or, with ``defer``, left to the caller:
    the id of the ``k``-th is then ``-1 - k``, its piece in ``fresh`` is its class, and words are first looked up in
    ``known``. New chunks without room in ``fresh`` are not cached or, with ``defer``, their texts are abandoned.
    The output is ``ids``, int32, of all texts; ``ends``, int64 (n + 1,), zeros on input, where the ids of each text with a
    chunk end; ``status``, uint8 (n,), for texts other than ``DONE`` there are no ids; ``fresh``, the new chunks; and their
    number, ``scratch.state[NEW]``.
    """
    entries, expansions, plain, _ = alphabet
    chunk, words, waiting = scratch.chunk, scratch.words, scratch.waiting
    count: Any = np.int64(0)  # number of waiting chunks
    end: Any = np.int64(0)  # end of their bytes
    for row in range(len(status)):
        status[row] = DONE
    for row in range(len(offsets) - 1):
        own = count  # this text's first waiting chunk
        place, stop = offsets[row], offsets[row + 1]
        start, kind = end, SPACE  # of the current chunk
        pending, last_pending = 0, 0  # outputs of an expansion still to be read
        while True:
            if pending == last_pending:
                if kind == SPACE and place < stop and plain[data[place]] != 0:
                    kind, end = WORD, _begin_word(chunk, end, defer)
                last = min(stop, place + LONGEST_CHUNK - (end - start))
                place, end = _copy_plain(data, place, last, kind, alphabet, chunk, end)
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
                    if entry in (UNKNOWN, COMPLEX):
                        _abandon_text(row, UNLEARNT if entry == UNKNOWN else LEFT, scratch, defer, ends, status)
                        break
                    pending = -16 - entry
                    last_pending = pending + 1 + expansions[pending]
                    pending += 1
                    continue
            else:
                entry = -1  # past the end: flush the chunk
            this = SPACE if entry < 0 else entry >> CLASS_SHIFT
            # A chunk ends where the class changes, and around every mark.
            if end > start and (this != kind or this == PUNCTUATION):
                waiting[count, 0], waiting[count, 1] = start, end - start
                waiting[count, 2], waiting[count, 3] = kind, row
                count += 1
                end = _place_after(start, end - start)
                if count == _MAX_WAITING or end > _MAX_BYTES:
                    _look_up(count, scratch, search, table, known, defer, ids, ends, status, fresh)
                    for k in range(end >> 3):
                        words[k] = 0
                    count, own, end = np.int64(0), np.int64(0), np.int64(0)
                start = end
            if entry < 0:
                break
            if this == SPACE:
                kind = SPACE
                continue
            if end == start:
                kind = this
                if this == WORD:
                    end = _begin_word(chunk, end, defer)
            end = append_character(chunk, end, entry & ((1 << CLASS_SHIFT) - 1))
            if end - start > LONGEST_CHUNK:
                _abandon_text(row, np.int64(LEFT), scratch, defer, ends, status)
                break
        if status[row] != DONE:
            last, count = (end + 7) >> 3, own
            end = _place_after(waiting[count - 1, 0], waiting[count - 1, 1]) if count else 0
            words[end >> 3 : last] = 0
    _look_up(count, scratch, search, table, known, defer, ids, ends, status, fresh)


@njit(**LEAN)
def any_of(data: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, lead: int, found: np.ndarray) -> None:
    """Set found[i] to whether text i has a ``wanted`` character (bool by code); their first bytes are at least ``lead``."""
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


@njit(**LEAN)
def expand(
    ids: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    pieces: np.ndarray,
    out: np.ndarray,
    out_ends: np.ndarray,
) -> None:
    """Copy bags, replacing each id ``-1 - k`` by the ``sizes[k]`` ids from ``pieces[starts[k]]``."""
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
