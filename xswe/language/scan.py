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
from xswe.language.chunks import BASIS, Fresh, Table, call, find, mix
from xswe.language.utf8 import append_character, decode_character
from xswe.language.viterbi import DONE, LEFT, LONGEST_CHUNK, UNLEARNT, Search, viterbi

_WAITING = 256  # chunks that are looked up together
_NEAR = 1 << 17  # slots of a table that the processor's own cache holds


class Scratch(NamedTuple):
    """Working memory of one scan.

    ``waiting`` has the start, size and class of each chunk that waits to be looked up, and its text's number; the bytes are
    in ``text``, the hash in ``keys``. ``state`` counts what there is so far: ids, new chunks, and their bytes and pieces;
    then come the same counts where the text begins whose number is in ``state[8]``. The rest is the Viterbi search's.
    """

    text: np.ndarray
    waiting: np.ndarray
    keys: np.ndarray
    state: np.ndarray
    best: np.ndarray
    piece: np.ndarray
    came: np.ndarray
    path: np.ndarray


def _scratch() -> Scratch:
    """Return room for one scan."""
    long = LONGEST_CHUNK + 9
    return Scratch(
        np.empty(2 * LONGEST_CHUNK + 16, np.uint8),
        np.empty((_WAITING, 4), np.int64),
        np.empty(_WAITING, np.uint64),
        np.array([0] * 8 + [-1], np.int64),
        np.empty(long, np.float64),
        *(np.empty(long, np.int32) for _ in range(3)),
    )


@njit(nogil=True, cache=True)
def _meet(
    chunk: np.ndarray,
    key: np.uint64,
    kind: int,
    scratch: Scratch,
    search: Search,
    defer: bool,
    ids: np.ndarray,
    fresh: Fresh,
) -> bool:
    """Take a chunk that is in no table: cut it, or leave it to the caller. Returns False if it finds no room."""
    state, path = scratch.state, scratch.path
    count, met, met_bytes, met_pieces = state[0], state[1], state[2], state[3]
    kept = 1 if defer else 0
    if not defer:
        n = viterbi(chunk, len(chunk), search, scratch.best, scratch.piece, scratch.came, path)
        for k in range(n - 1, -1, -1):
            if search.is_unit[path[k]]:
                ids[count + kept] = path[k]
                kept += 1
        state[0] += kept
    room = met < len(fresh.where) and met_bytes + len(chunk) <= len(fresh.text) and met_pieces + kept <= len(fresh.pieces)
    if defer and not room:
        return False
    # Long runs of Han and Kana hardly ever come again: they would only crowd the table.
    if room and (defer or kind != CJK or len(chunk) <= 12):
        fresh.where[met, 0], fresh.where[met, 1] = met_bytes, len(chunk)
        fresh.where[met, 2], fresh.where[met, 3] = met_pieces, kept
        fresh.hashes[met] = key
        for k in range(len(chunk)):
            fresh.text[met_bytes + k] = chunk[k]
        if defer:
            fresh.pieces[met_pieces] = kind
            ids[count] = -1 - met
            state[0] += 1
        else:
            for k in range(kept):
                fresh.pieces[met_pieces + k] = ids[count + k]
        state[1], state[2], state[3] = met + 1, met_bytes + len(chunk), met_pieces + kept
    return True


@njit(nogil=True, cache=True)
def _leave(row: int, why: int, scratch: Scratch, defer: bool, ends: np.ndarray, status: np.ndarray) -> None:
    """Give a text up: what is there of it is forgotten."""
    status[row] = why
    state = scratch.state
    if state[8] == row:
        # New chunks that were cut here are true of any text; those left to the caller would be looked for in vain.
        state[0] = state[4]
        if defer:
            state[1:4] = state[5:8]
    ends[row + 1] = state[0]


@njit(nogil=True, cache=True)
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
    fresh: Fresh,
) -> None:
    """Look the ``size`` waiting chunks up, all of them at each step: their cache misses overlap."""
    waiting, state = scratch.waiting, scratch.state
    for turn in range(1, 3 if len(known.slots if defer else table.slots) > _NEAR else 1):
        for w in range(size):
            call(known if defer and waiting[w, 2] == WORD else table, scratch.keys[w], turn)
    for w in range(size):
        start, length, kind, row = waiting[w, 0], waiting[w, 1], waiting[w, 2], waiting[w, 3]
        if row != state[8]:
            state[4:8] = state[:4]
            state[8] = row
        if status[row] != DONE:
            continue
        key, count = scratch.keys[w], state[0]
        if count + length > len(ids):
            _leave(row, LEFT, scratch, defer, ends, status)
            continue
        found = find(known, scratch.text, start, length, key) if defer and kind == WORD else -1
        if found >= 0:
            ids[count] = known.pieces[known.where[found, 2]]
            state[0] += 1
        else:
            found = find(table, scratch.text, start, length, key)
            if found >= 0:
                first, n = table.where[found, 2], table.where[found, 3]
                for k in range(n):
                    ids[count + k] = table.pieces[first + k]
                state[0] += n
            elif not _meet(scratch.text[start : start + length], key, kind, scratch, search, defer, ids, fresh):
                _leave(row, LEFT, scratch, defer, ends, status)
                continue
        ends[row + 1] = state[0]


def scan(
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
        ends: int64 (n + 1,), zero; receives where each text's ids start and end.
        status: uint8 (n,), receives what became of each text; one that is not ``DONE`` has no ids.
        fresh: receives new chunks, with their pieces unless ``defer``; then the piece is the class of the chunk.

    Returns:
        How many new chunks there are. Those that find no room are not remembered, or their texts are left if ``defer``.
    """
    scratch = _scratch()
    _scan(data, offsets, alphabet, search, table, known, defer, ids, ends, status, fresh, scratch)
    np.maximum.accumulate(ends, out=ends)  # a text without a chunk ends where the one before it does
    return int(scratch.state[1])


@njit(nogil=True, cache=True)
def _scan(  # noqa: C901 (one loop over the bytes: what is cut out of it is passed back and forth)
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
    scratch: Scratch,
) -> None:
    """See :func:`scan`."""
    entries, expansions = alphabet
    chunk, waiting, keys, state = scratch.text, scratch.waiting, scratch.keys, scratch.state
    # A small table is in the processor's own cache: what is there is taken at once, and nothing waits.
    near = not defer and len(table.slots) <= _NEAR
    count, end = 0, 0  # of the waiting chunks, and of their bytes
    status[:] = DONE
    for row in range(len(offsets) - 1):
        own = count  # the first of this text's waiting chunks
        place, stop = offsets[row], offsets[row + 1]
        start, kind = end, SPACE  # of the chunk being read
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
                    if entry in (UNKNOWN, COMPLEX):
                        _leave(row, UNLEARNT if entry == UNKNOWN else LEFT, scratch, defer, ends, status)
                        break
                    pending = -16 - entry
                    last_pending = pending + 1 + expansions[pending]
                    pending += 1
                    continue
            else:
                entry = -1  # past the end: flush what is there
            this = SPACE if entry < 0 else entry >> CLASS_SHIFT
            # A chunk ends where the class changes, and around every mark.
            if end > start and (this != kind or this == MARK):
                found = find(table, chunk, start, end - start, key) if near else -1
                if found >= 0 and state[0] + end - start <= len(ids):
                    if row != state[8]:
                        state[4:8] = state[:4]
                        state[8] = row
                    first, n = table.where[found, 2], table.where[found, 3]
                    for k in range(n):
                        ids[state[0] + k] = table.pieces[first + k]
                    state[0] += n
                    ends[row + 1] = state[0]
                    end = 0
                else:
                    waiting[count, 0], waiting[count, 1] = start, end - start
                    waiting[count, 2], waiting[count, 3] = kind, row
                    keys[count] = key
                    count += 1
                    if not near:
                        call(known if defer and kind == WORD else table, key, 0)
                    if near or count == _WAITING or end > LONGEST_CHUNK:
                        _look_up(count, scratch, search, table, known, defer, ids, ends, status, fresh)
                        count, own, end = 0, 0, 0
                start = end
            if entry < 0:
                break
            if this == SPACE:
                kind = SPACE
                continue
            if end == start:
                kind = this
                key = BASIS
                if this == WORD and not defer:
                    chunk[end], chunk[end + 1], chunk[end + 2] = 0xE2, 0x96, 0x81
                    end += 3
            code = entry & ((1 << CLASS_SHIFT) - 1)
            end = append_character(chunk, end, code)
            key = mix(key, code)
            if end - start > LONGEST_CHUNK:
                _leave(row, LEFT, scratch, defer, ends, status)
                break
        if status[row] != DONE:
            count = own
            end = waiting[count - 1, 0] + waiting[count - 1, 1] if count else 0
    _look_up(count, scratch, search, table, known, defer, ids, ends, status, fresh)


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
