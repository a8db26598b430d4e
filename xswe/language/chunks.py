"""A hash table from chunks of text to their ids, read and written by compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.language.utf8 import decode_character
from xswe.memory import prefetch

BASIS, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)


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
def find(table: Table, data: np.ndarray, first: int, size: int, key: np.uint64) -> int:
    """Return the entry of the chunk ``data[first:first + size]``, -1 if it is not there."""
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
                if text[start + k] != data[first + k]:
                    same = False
                    break
            if same:
                return entry
        slot = (slot + np.uint64(1)) & mask


@njit(inline="always")
def call(table: Table, key: np.uint64, turn: int) -> None:
    """Ask memory for what a look-up will read: its slot (turn 0), then its entry, then the entry's bytes and ids."""
    place = key & np.uint64(len(table.slots) - 1)
    if turn == 0:
        prefetch(table.slots, place)
        return
    entry = table.slots[place] - 1
    if entry >= 0:
        if turn == 1:
            prefetch(table.hashes, entry)
            prefetch(table.where, 4 * entry)
        else:
            prefetch(table.text, table.where[entry, 0])
            prefetch(table.pieces, table.where[entry, 2])


@njit(nogil=True, cache=True)
def _insert(table: Table, fresh: Fresh) -> int:
    """Insert chunks that are not there yet; returns how many, from the first on, are there now."""
    slots, hashes, where, text, pieces, used = table
    mask = np.uint64(len(slots) - 1)
    for row in range(len(fresh.where)):
        start, size, first, count = fresh.where[row, 0], fresh.where[row, 1], fresh.where[row, 2], fresh.where[row, 3]
        chunk, key = fresh.text[start : start + size], fresh.hashes[row]
        if find(table, fresh.text, start, size, key) >= 0:
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


@njit(inline="always")
def mix(key: np.uint64, code: int) -> np.uint64:
    """Hash one more character."""
    key = (key ^ np.uint64(code)) * _FACTOR
    return key ^ (key >> np.uint64(32))


@njit(cache=True)
def hash_chunks(where: np.ndarray, text: np.ndarray, hashes: np.ndarray) -> None:
    """Fill in the hashes of chunks as the scan computes them."""
    for row in range(len(where)):
        key, place, stop = BASIS, where[row, 0], where[row, 0] + where[row, 1]
        while place < stop:
            code, width = decode_character(text, place)
            key = mix(key, code)
            place += width
        hashes[row] = key


@njit(nogil=True, cache=True)
def find_pieces(data: np.ndarray, ends: np.ndarray, known: Table, ids: np.ndarray) -> None:
    """ids[k] = the id of ``data[ends[k - 1]:ends[k]]``, -2 if it is not among the known words."""
    place = 0
    for k in range(len(ids)):
        key, start = BASIS, place
        while place < ends[k]:
            code, width = decode_character(data, place)
            key = mix(key, code)
            place += width
        found = find(known, data, start, place - start, key)
        ids[k] = known.pieces[known.where[found, 2]] if found >= 0 else -2


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
