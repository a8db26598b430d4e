"""Compiled hashes of texts, sketches of them, and tables of 64-bit keys with open addressing (0 marks a free place)."""

from __future__ import annotations

import numpy as np
from numba import njit

_C1, _C2, _C3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def mix(value: np.uint64) -> np.uint64:
    """Scramble 64 bits, one to one (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * _C2
    value = (value ^ (value >> np.uint64(27))) * _C3
    return value ^ (value >> np.uint64(31))


@njit(nogil=True, cache=True)
def hash_texts(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Hash each text to 64 bits; equal texts have equal hashes, and no hash is 0."""
    for row in range(len(out)):
        place, end = offsets[row], offsets[row + 1]
        state = np.uint64(end - place) * _C1
        while place + 8 <= end:
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(data[place + k]) << np.uint64(8 * k)
            state = (state ^ mix(word + _C1)) * _C2
            state ^= state >> np.uint64(29)
            place += 8
        word = np.uint64(0)
        for k in range(end - place):
            word |= np.uint64(data[place + k]) << np.uint64(8 * k)
        state = mix(state ^ mix(word + _C3))
        out[row] = state if state != np.uint64(0) else _C1


@njit(nogil=True, cache=True)
def hash_pairs(source: np.ndarray, target: np.ndarray, out: np.ndarray) -> None:
    """Hash pairs of text hashes; the order within a pair matters, and no hash is 0."""
    for row in range(len(out)):
        key = mix(source[row] * _C1 ^ mix(target[row] + _C2))
        out[row] = key if key != np.uint64(0) else _C1


@njit(inline="always")
def _slot(table: np.ndarray, key: np.uint64) -> int:
    """Return where a key is in the table, or the free place where it belongs."""
    mask = np.uint64(len(table) - 1)
    slot = key & mask
    while table[slot] != np.uint64(0) and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@njit(nogil=True, cache=True)
def add_keys(table: np.ndarray, keys: np.ndarray, fresh: np.ndarray) -> int:
    """Put keys into a hash table, in order; ``fresh`` tells which were not there. Returns how many."""
    added = 0
    for row in range(len(keys)):
        slot = _slot(table, keys[row])
        fresh[row] = table[slot] == np.uint64(0)
        if fresh[row]:
            table[slot] = keys[row]
            added += 1
    return added


@njit(nogil=True, cache=True)
def move_keys(old: np.ndarray, new: np.ndarray) -> None:
    """Put the keys of one table into a larger one."""
    for key in old:
        if key != np.uint64(0):
            new[_slot(new, key)] = key


@njit(nogil=True, cache=True)
def find_keys(table: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
    """Tell which keys are in a table."""
    for row in range(len(keys)):
        found[row] = table[_slot(table, keys[row])] != np.uint64(0)


@njit(nogil=True, cache=True)
def sketch(data: np.ndarray, offsets: np.ndarray, factors: np.ndarray, rows: int, out: np.ndarray) -> None:
    """MinHash sketches of texts by their shingles of four bytes; letters are lower-cased, digits are all alike.

    Args:
        data: uint8, the texts.
        offsets: int64 (n + 1,).
        factors: uint64 (bands * rows,), odd; each makes one hash function.
        rows: hash functions a band.
        out: uint64 (n, bands) out; two texts of Jaccard similarity s agree in a band with probability s ** rows.
    """
    least = np.empty(len(factors), np.uint64)
    for row in range(len(out)):
        least[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        shingle = np.uint64(0)
        for place in range(offsets[row], offsets[row + 1]):
            byte = data[place]
            if 0x41 <= byte <= 0x5A:
                byte += 0x20
            elif 0x30 <= byte <= 0x39:
                byte = 0x30
            shingle = ((shingle << np.uint64(8)) | np.uint64(byte)) & np.uint64(0xFFFFFFFF)
            if place - offsets[row] < 3 and place + 1 < offsets[row + 1]:
                continue
            key = mix(shingle + _C1)
            for k in range(len(factors)):
                value = key * factors[k]
                value ^= value >> np.uint64(32)
                if value < least[k]:
                    least[k] = value
        for band in range(out.shape[1]):
            state = np.uint64(band + 1) * _C3
            for k in range(band * rows, (band + 1) * rows):
                state = mix(state ^ least[k])
            out[row, band] = state if state != np.uint64(0) else _C1


@njit(nogil=True, cache=True)
def places_of(table: np.ndarray, keys: np.ndarray, places: np.ndarray) -> None:
    """Find where keys that are in a table stand."""
    for row in range(len(keys)):
        places[row] = _slot(table, keys[row])


@njit(nogil=True, cache=True)
def admit(
    keys: np.ndarray,
    bands: np.ndarray,
    sides: np.ndarray,
    pairs_seen: np.ndarray,
    bands_seen: np.ndarray,
    sides_seen: np.ndarray,
    side_counts: np.ndarray,
    before: np.ndarray,
    most: int,
    codes: tuple[int, int, int],
    reason: np.ndarray,
    added: np.ndarray,
) -> None:
    """Decide in order which pairs were there before; those that were not are remembered, and only those.

    Args:
        keys: uint64 (n,), of the pairs.
        bands: uint64 (n, b), of their sketches; b may be 0.
        sides: uint64 (n, s), of their sides; s is 2 or 0.
        pairs_seen: hash table of keys.
        bands_seen: of bands.
        sides_seen: of sides.
        side_counts: uint8, in how many pairs each side of that table was.
        before: uint8 (n,), 1 for a pair, plus 2 for a pair one of whose bands, that was there before and is in no table.
        most: pairs that a side may be in.
        codes: what to write for a pair seen, a band seen, a side in too many pairs.
        reason: uint8 (n,) in and out; only pairs of reason 0 are looked at.
        added: int64 (3,) out, new entries of each table.
    """
    for row in range(len(keys)):
        if reason[row] != 0:
            continue
        if before[row] & 1 or pairs_seen[_slot(pairs_seen, keys[row])] != np.uint64(0):
            reason[row] = codes[0]
            continue
        reason[row] = codes[1] if before[row] & 2 else 0
        for band in range(bands.shape[1]):
            if bands_seen[_slot(bands_seen, bands[row, band])] != np.uint64(0):
                reason[row] = codes[1]
        if reason[row] != 0:
            continue
        for side in range(sides.shape[1]):
            slot = _slot(sides_seen, sides[row, side])
            if sides_seen[slot] != np.uint64(0) and side_counts[slot] >= most:
                reason[row] = codes[2]
        if reason[row] != 0:
            continue
        pairs_seen[_slot(pairs_seen, keys[row])] = keys[row]
        added[0] += 1
        for band in range(bands.shape[1]):
            slot = _slot(bands_seen, bands[row, band])
            added[1] += bands_seen[slot] == np.uint64(0)
            bands_seen[slot] = bands[row, band]
        for side in range(sides.shape[1]):
            slot = _slot(sides_seen, sides[row, side])
            added[2] += sides_seen[slot] == np.uint64(0)
            sides_seen[slot] = sides[row, side]
            side_counts[slot] += 1


@njit(inline="always")
def _filter_place(bits: np.ndarray, key: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the word of a filter that a key belongs to, and which bits of it: all in one line of memory."""
    scrambled = mix(key ^ _C3)
    pattern = np.uint64(0)
    for k in range(5):
        pattern |= np.uint64(1) << ((scrambled >> np.uint64(6 * k)) & np.uint64(63))
    return (scrambled >> np.uint64(30)) & np.uint64(len(bits) - 1), pattern


@njit(nogil=True, cache=True)
def add_to_filter(bits: np.ndarray, keys: np.ndarray) -> None:
    """Put keys into a Bloom filter: uint64, a power of two in length up to 2 ** 34."""
    for key in keys:
        place, pattern = _filter_place(bits, key)
        bits[place] |= pattern


@njit(nogil=True, cache=True)
def may_hold(bits: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
    """Tell which keys may be among those put into a filter; one that is, surely."""
    for row in range(len(keys)):
        place, pattern = _filter_place(bits, keys[row])
        found[row] = bits[place] & pattern == pattern
