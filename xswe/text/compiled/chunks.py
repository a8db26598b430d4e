"""A hash table from chunks of text to their ids, read and written by compiled code.

A chunk's bytes are read as eight-byte words, the last one padded with zeros. A slot of the table is one cache line and
holds both bytes and ids of a typical chunk, so that a look-up costs at most one cache miss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN, LINE, load_word, prefetch
from xswe.io.ragged import Texts, bounds_of, read_only

WINDOW = 3  # words of a chunk within its slot
_SLOT = LINE // 8  # words of a slot: the window, then size, number of ids and place of the overflow, then ids
_HELD = 8  # ids within a slot
_AHEAD = 16  # chunks whose slots are prefetched
LONGEST = 0xFFFF  # bytes of a chunk, whose size has 16 bits
FEW = 4  # ids copied regardless of their number
_BASIS, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
_LOW, _NONE = np.uint64(0xFFFF), np.uint64(0)


class Table(NamedTuple):
    """A hash table from chunks to their ids; only one thread at a time may write to it.

    A slot whose fourth word is 0 is empty. That word has the chunk's size in bytes (16 bits), the number of its ids (16
    bits) and the place of its overflow in ``rest`` (32 bits): the words after the third, then the ids after the eighth, two
    a word.
    """

    slots: np.ndarray  # uint64 (8 x slots,), with a power of two of slots
    numbers: np.ndarray  # the same memory as int32
    rest: np.ndarray  # uint64, overflow of the slots
    more: np.ndarray  # the same memory as int32
    used: np.ndarray  # int64 (2,), slots and words of ``rest`` in use


class NewChunks(NamedTuple):
    """Buffers for new chunks.

    Chunk ``k`` has the bytes ``text[where[k, 0]:][:where[k, 1]]`` and the ids ``pieces[where[k, 2]:][:where[k, 3]]``.
    """

    where: np.ndarray
    text: np.ndarray
    pieces: np.ndarray


def new_table(slots: int) -> Table:
    """Return an empty table with ``slots`` slots, a power of two, of which five eighths can be used."""
    room = np.zeros(_SLOT * (slots + 1), np.uint64)
    skipped = -room.ctypes.data % LINE // 8
    aligned, rest = room[skipped : skipped + _SLOT * slots], np.zeros(2 * slots, np.uint64)
    return Table(aligned, aligned.view(np.int32), rest, rest.view(np.int32), np.zeros(2, np.int64))


def room_for(chunks: int) -> NewChunks:
    """Return buffers for ``chunks`` chunks of typical lengths."""
    return NewChunks(np.empty((chunks, 4), np.int32), np.empty(24 * chunks, np.uint8), np.empty(8 * chunks, np.int32))


@njit(inline="always")
def hash_chunk(words: np.ndarray, first: int, size: int) -> np.uint64:
    """Hash the chunk of ``size`` bytes whose words start at ``words[first]``; at least three words are read."""
    key = _BASIS
    for k in range(WINDOW):
        key = (key ^ words[first + k]) * _FACTOR
        key ^= key >> np.uint64(32)
    for k in range(WINDOW, (size + 7) >> 3):
        key = (key ^ words[first + k]) * _FACTOR
        key ^= key >> np.uint64(32)
    return key


@njit(inline="always")
def prefetch_slot(table: Table, key: np.uint64) -> None:
    """Prefetch the slot of a hash."""
    slots = table.slots
    prefetch(slots, np.int64(key & np.uint64(len(slots) // _SLOT - 1)) * _SLOT)


@njit(inline="always")
def find(table: Table, words: np.ndarray, first: int, size: int, key: np.uint64) -> Any:
    """Return the slot of a chunk given as in :func:`hash_chunk`, -1 if it is not in the table."""
    slots, rest = table.slots, table.rest
    mask = np.uint64(len(slots) // _SLOT - 1)
    a, b, c = words[first], words[first + 1], words[first + 2]
    slot = np.int64(key & mask)
    while True:
        place = slot * _SLOT
        about = slots[place + 3]
        if about == _NONE:
            return -1
        size_differs = (about & _LOW) ^ np.uint64(size)
        if (slots[place] ^ a) | (slots[place + 1] ^ b) | (slots[place + 2] ^ c) | size_differs == _NONE:
            start, same = np.int64(about >> np.uint64(32)) - WINDOW, True
            for k in range(WINDOW, (size + 7) >> 3):
                if rest[start + k] != words[first + k]:
                    same = False
                    break
            if same:
                return slot
        slot = np.int64(np.uint64(slot + 1) & mask)


@njit(inline="always")
def first_id(table: Table, slot: int) -> Any:
    """Return the first id of a slot."""
    return table.numbers[2 * _SLOT * slot + _HELD]


@njit(inline="always")
def copy_ids(table: Table, slot: int, ids: np.ndarray, count: int) -> Any:
    """Write a slot's ids to ``ids[count:]``, which must have room for ``FEW`` more; return their number."""
    about, numbers = table.slots[slot * _SLOT + 3], table.numbers
    n: Any = np.int64((about >> np.uint64(16)) & _LOW)
    held = slot * 2 * _SLOT + _HELD
    for k in range(FEW):
        ids[count + k] = numbers[held + k]
    if n > FEW:
        for k in range(FEW, min(n, _HELD)):
            ids[count + k] = numbers[held + k]
        if n > _HELD:
            size: Any = np.int64(about & _LOW)
            start = 2 * (np.int64(about >> np.uint64(32)) + max(0, ((size + 7) >> 3) - WINDOW)) - _HELD
            for k in range(_HELD, n):
                ids[count + k] = table.more[start + k]
    return n


@njit(inline="always")
def _free_slot(slots: np.ndarray, key: np.uint64) -> Any:
    """Return a free slot for a chunk that is not in the table."""
    mask = np.uint64(len(slots) // _SLOT - 1)
    slot = np.int64(key & mask)
    while slots[slot * _SLOT + 3] != _NONE:
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@njit(inline="always")
def copy_chunk(data: np.ndarray, first: int, size: int, words: np.ndarray, chunk: np.ndarray) -> None:
    """Copy bytes to the start of ``words``, padded with zeros; ``chunk`` is the same memory as bytes."""
    count = (size + 7) >> 3
    for k in range(count, WINDOW):
        words[k] = 0
    if first + 8 * count <= len(data):
        source = np.uintp(data.ctypes.data) + np.uintp(first)
        for k in range(count):
            words[k] = load_word(source + np.uintp(8 * k))
        if size & 7:
            words[count - 1] &= (np.uint64(1) << np.uint64(8 * (size & 7))) - np.uint64(1)
    else:
        for k in range(count):
            words[k] = 0
        for k in range(size):
            chunk[k] = data[first + k]


@njit(**LEAN)
def _insert(table: Table, fresh: NewChunks, words: np.ndarray, chunk: np.ndarray) -> int:
    """Insert chunks that are not in the table yet; return how many of the first chunks are in it now."""
    slots, numbers, rest, more, used = table
    most = len(slots) // _SLOT * 5 // 8
    for row in range(len(fresh.where)):
        size: Any = np.int64(fresh.where[row, 1])
        count: Any = np.int64(fresh.where[row, 3])
        first = fresh.where[row, 2]
        copy_chunk(fresh.text, fresh.where[row, 0], size, words, chunk)
        key = hash_chunk(words, 0, size)
        if find(table, words, 0, size, key) >= 0:
            continue
        start, over = used[1], max(0, ((size + 7) >> 3) - WINDOW)
        needed = over + (max(0, count - _HELD) + 1) // 2
        if used[0] >= most or start + needed > len(rest):
            return row
        slot = _free_slot(slots, key)
        place = slot * _SLOT
        for k in range(WINDOW):
            slots[place + k] = words[k]
        slots[place + 3] = np.uint64(size) | np.uint64(count) << np.uint64(16) | np.uint64(start) << np.uint64(32)
        for k in range(over):
            rest[start + k] = words[WINDOW + k]
        for k in range(count):
            if k < _HELD:
                numbers[2 * place + _HELD + k] = fresh.pieces[first + k]
            else:
                more[2 * (start + over) + k - _HELD] = fresh.pieces[first + k]
        used[0], used[1] = used[0] + 1, start + needed
    return len(fresh.where)


@njit(**LEAN)
def _move(table: Table, larger: Table, words: np.ndarray) -> None:
    """Copy the slots of a table into a larger empty one."""
    for slot in range(len(table.slots) // _SLOT):
        place = slot * _SLOT
        about = table.slots[place + 3]
        if about == _NONE:
            continue
        size, start = np.int64(about & _LOW), np.int64(about >> np.uint64(32)) - WINDOW
        for k in range(WINDOW):
            words[k] = table.slots[place + k]
        for k in range(WINDOW, (size + 7) >> 3):
            words[k] = table.rest[start + k]
        to = _free_slot(larger.slots, hash_chunk(words, 0, size)) * _SLOT
        for k in range(_SLOT):
            larger.slots[to + k] = table.slots[place + k]


def remember(table: Table, fresh: NewChunks, most: int) -> Table:
    """Insert chunks into a table; return it, or a larger one if needed, of up to ``most`` slots."""
    if not len(fresh.where):
        return table
    words, fresh = np.zeros(1 << 13, np.uint64), fresh._replace(text=read_only(fresh.text))  # a size has 16 bits
    while True:
        fitted = _insert(table, fresh, words, words.view(np.uint8))
        fresh = fresh._replace(where=fresh.where[fitted:])
        slots = 2 * len(table.slots) // _SLOT
        if not len(fresh.where) or slots > most:
            return table
        table = _grown(table, slots, words)


def _grown(table: Table, slots: int, words: np.ndarray) -> Table:
    """Return a table with more slots and the same chunks."""
    larger = new_table(slots)
    larger.rest[: len(table.rest)], larger.used[:] = table.rest, table.used
    _move(table, larger, words)
    return larger


def number(table: Table, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[Table, np.ndarray]:
    """Number the distinct chunks ``data[starts[k]:ends[k]]``, with new numbers following those in the table.

    Return the table with all chunks, which may be a larger one, and the numbers, int64 (n,).
    """
    numbers, done, words = np.empty(len(starts), np.int64), 0, np.zeros(1 << 13, np.uint64)
    keys, starts, ends = np.empty(_AHEAD, np.uint64), np.ascontiguousarray(starts), np.ascontiguousarray(ends)
    data = read_only(data)
    while True:
        done = _number(table, data, starts, ends, words, words.view(np.uint8), keys, done, numbers)
        if done == len(starts):
            return table, numbers
        table = _grown(table, 2 * len(table.slots) // _SLOT, words)


@njit(**LEAN)
def _number(
    table: Table,
    data: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    words: np.ndarray,
    chunk: np.ndarray,
    keys: np.ndarray,
    row: int,
    numbers: np.ndarray,
) -> int:
    """Number chunks from ``row``; return the first one without room. ``keys`` buffers hashes."""
    slots, held, rest, _, used = table
    most = len(slots) // _SLOT * 5 // 8
    asked = row
    while row < len(starts):
        while asked < min(row + _AHEAD, len(starts)):
            copy_chunk(data, starts[asked], ends[asked] - starts[asked], words, chunk)
            keys[asked % _AHEAD] = hash_chunk(words, 0, ends[asked] - starts[asked])
            prefetch_slot(table, keys[asked % _AHEAD])
            asked += 1
        size: Any = np.int64(ends[row] - starts[row])
        copy_chunk(data, starts[row], size, words, chunk)
        key = keys[row % _AHEAD]
        found = find(table, words, 0, size, key)
        if found >= 0:
            numbers[row] = held[2 * _SLOT * found + _HELD]
        else:
            start, over = used[1], max(0, ((size + 7) >> 3) - WINDOW)
            if used[0] >= most or start + over > len(rest):
                break
            place = _free_slot(slots, key) * _SLOT
            for k in range(WINDOW):
                slots[place + k] = words[k]
            slots[place + 3] = np.uint64(size) | np.uint64(1 << 16) | np.uint64(start) << np.uint64(32)
            for k in range(over):
                rest[start + k] = words[WINDOW + k]
            numbers[row] = held[2 * place + _HELD] = used[0]
            used[0], used[1] = used[0] + 1, start + over
        row += 1
    return row


def distinct(text: np.ndarray, where: np.ndarray) -> tuple[Texts, np.ndarray]:
    """Return the distinct chunks, and the index of each given chunk in them, int64 (n,); ``where`` as in ``NewChunks``."""
    starts = where[:, 0].astype(np.int64)
    table, numbers = number(new_table(1 << (len(where) * 8 // 5).bit_length()), text, starts, starts + where[:, 1])
    return contents(table)[0], numbers


def contents(table: Table) -> tuple[Texts, np.ndarray]:
    """Return the chunks of a table filled by :func:`number`, in order of their numbers, and their hashes, uint64 (n,)."""
    count = int(table.used[0])
    places, sizes, keys = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint64)
    _places(table, places, sizes)
    offsets = bounds_of(sizes)
    data, words = np.empty(offsets[-1], np.uint8), np.zeros(1 << 13, np.uint64)
    _read(table, places, offsets, words, words.view(np.uint8), data, keys)
    return Texts(data, offsets), keys


@njit(**LEAN)
def _places(table: Table, places: np.ndarray, sizes: np.ndarray) -> None:
    """Write the slot and size of each chunk at its number."""
    for slot in range(len(table.slots) // _SLOT):
        about = table.slots[slot * _SLOT + 3]
        if about != _NONE:
            k = table.numbers[2 * _SLOT * slot + _HELD]
            places[k], sizes[k] = slot * _SLOT, np.int64(about & _LOW)


@njit(**LEAN)
def _read(
    table: Table,
    places: np.ndarray,
    offsets: np.ndarray,
    words: np.ndarray,
    chunk: np.ndarray,
    data: np.ndarray,
    keys: np.ndarray,
) -> None:
    """Write the bytes and the hash of each chunk."""
    for row in range(len(places)):
        place, size = places[row], offsets[row + 1] - offsets[row]
        start = np.int64(table.slots[place + 3] >> np.uint64(32)) - WINDOW
        for k in range(WINDOW):
            words[k] = table.slots[place + k]
        for k in range(WINDOW, (size + 7) >> 3):
            words[k] = table.rest[start + k]
        keys[row] = hash_chunk(words, 0, size)
        for k in range(size):
            data[offsets[row] + k] = chunk[k]


@njit(**LEAN)
def first_ids(
    data: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    known: Table,
    words: np.ndarray,
    chunk: np.ndarray,
    keys: np.ndarray,
    ids: np.ndarray,
) -> None:
    """Set ids[k] to the first id of the chunk ``data[starts[k]:ends[k]]``, -2 if it is not in the table.

    ``words``, and ``chunk``, the same memory as bytes, have room for the longest chunk; ``keys``, uint64, has one a chunk.
    """
    for k in range(len(ids) + _AHEAD):
        if k < len(ids):
            copy_chunk(data, starts[k], ends[k] - starts[k], words, chunk)
            keys[k] = hash_chunk(words, 0, ends[k] - starts[k])
            prefetch_slot(known, keys[k])
        j = k - _AHEAD
        if j >= 0:
            size = ends[j] - starts[j]
            copy_chunk(data, starts[j], size, words, chunk)
            found = find(known, words, 0, size, keys[j])
            ids[j] = first_id(known, found) if found >= 0 else -2
