"""Compiled kernels for corpora: cutting lines into columns, hashes and sketches of texts, hash tables.

Hash tables hold 64-bit keys, with open addressing; 0 marks a free slot.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.text.compiled.alphabet import decode_character

_C1, _C2, _C3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def mix(value: np.uint64) -> np.uint64:
    """Scramble 64 bits, one to one (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * _C2
    value = (value ^ (value >> np.uint64(27))) * _C3
    return value ^ (value >> np.uint64(31))


@njit(**LEAN)
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


@njit(**LEAN)
def hash_pairs(source: np.ndarray, target: np.ndarray, out: np.ndarray) -> None:
    """Hash pairs of text hashes; the order within a pair matters, and no hash is 0."""
    for row in range(len(out)):
        key = mix(source[row] * _C1 ^ mix(target[row] + _C2))
        out[row] = key if key != np.uint64(0) else _C1


@njit(inline="always")
def _slot(table: np.ndarray, key: np.uint64) -> int:
    """Return the slot of a key in the table, or the free slot where it belongs."""
    mask = np.uint64(len(table) - 1)
    slot = key & mask
    while table[slot] != np.uint64(0) and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@njit(**LEAN)
def add_keys(table: np.ndarray, keys: np.ndarray, fresh: np.ndarray) -> int:
    """Insert keys into a hash table, in order; ``fresh`` marks those that were new. Return their number."""
    added = 0
    for row in range(len(keys)):
        slot = _slot(table, keys[row])
        fresh[row] = table[slot] == np.uint64(0)
        if fresh[row]:
            table[slot] = keys[row]
            added += 1
    return added


@njit(**LEAN)
def move_keys(old: np.ndarray, new: np.ndarray) -> None:
    """Copy the keys of one table into a larger one."""
    for key in old:
        if key != np.uint64(0):
            new[_slot(new, key)] = key


@njit(**LEAN)
def find_keys(table: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
    """Mark in ``found`` which keys are in a table."""
    for row in range(len(keys)):
        found[row] = table[_slot(table, keys[row])] != np.uint64(0)


@njit(**LEAN)
def sketch(
    data: np.ndarray, offsets: np.ndarray, factors: np.ndarray, rows: int, least: np.ndarray, out: np.ndarray
) -> None:
    """Write MinHash sketches, uint64 (n, bands), of texts by their four-byte shingles, lower-cased, all digits alike.

    Each of the odd ``factors``, uint64 (bands * rows,), makes one hash function; ``least``, of the same shape, is
    workspace. Two texts of Jaccard similarity s agree in a band, of ``rows`` hash functions, with probability s ** rows.
    """
    for row in range(len(out)):
        for k in range(len(factors)):
            least[k] = np.uint64(0xFFFFFFFFFFFFFFFF)
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


@njit(**LEAN)
def places_of(table: np.ndarray, keys: np.ndarray, places: np.ndarray) -> None:
    """Find the slots of keys that are in a table."""
    for row in range(len(keys)):
        places[row] = _slot(table, keys[row])


@njit(**LEAN)
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
    """Mark, in order, the pairs to leave out: repeated, near-duplicate, or of a hub; add only the others to the tables.

    ``keys``, uint64 (n,), are hashes of the pairs, ``bands`` (n, b) of their sketches (b may be 0), ``sides`` (n, s) of
    their sides (s is 2 or 0); ``*_seen`` are the hash tables of each, and ``side_counts``, uint8, counts the pairs of each
    side. ``before``, uint8 (n,), is 1 for a pair, plus 2 for a band, seen before but not in the tables. A side may be in
    ``most`` pairs. ``codes``, for a pair seen, a band seen, and a side in too many pairs, are written to ``reason``,
    uint8 (n,), where that is 0. ``added``, int64 (3,), is increased by the number of new entries of each table.
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
    """Return the index of a key's word in a filter, and its bits in that word: all are in one cache line."""
    scrambled = mix(key ^ _C3)
    pattern = np.uint64(0)
    for k in range(5):
        pattern |= np.uint64(1) << ((scrambled >> np.uint64(6 * k)) & np.uint64(63))
    return (scrambled >> np.uint64(30)) & np.uint64(len(bits) - 1), pattern


@njit(**LEAN)
def add_to_filter(bits: np.ndarray, keys: np.ndarray) -> None:
    """Add keys to a Bloom filter: uint64, a power of two in length up to 2 ** 34."""
    for key in keys:
        place, pattern = _filter_place(bits, key)
        bits[place] |= pattern


@njit(**LEAN)
def may_hold(bits: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
    """Mark in ``found`` which keys may be in a filter; those that were added always are."""
    for row in range(len(keys)):
        place, pattern = _filter_place(bits, keys[row])
        found[row] = bits[place] & pattern == pattern


# Loops over the bytes of many texts: cutting lines into columns, copying spans, counting characters.
#
# A pair of sentences never becomes a Python string on its way from a text file to the arrays of a corpus.


# States of a line.
FINE, EMPTY, LONG, NOT_UTF8, NUL, FEW = 0, 1, 2, 3, 4, 5


@njit(**INNER)
def _blank_before(data: np.ndarray, low: int, high: int) -> int:
    """Return the width of the blank (as ``str.strip`` sees it) that ends at ``high``, 0 for none."""
    last = data[high - 1]
    if last <= 0x20:
        return 1 if last == 0x20 or 0x09 <= last <= 0x0D or 0x1C <= last <= 0x1F else 0
    if last < 0x80:
        return 0
    if high - low >= 2 and data[high - 2] == 0xC2 and (last == 0x85 or last == 0xA0):
        return 2
    if high - low >= 3:
        a, b = data[high - 3], data[high - 2]
        if a == 0xE2 and b == 0x80 and (last <= 0x8A or last == 0xA8 or last == 0xA9 or last == 0xAF):
            return 3
        if (a == 0xE2 and b == 0x81 and last == 0x9F) or (a == 0xE1 and b == 0x9A and last == 0x80):
            return 3
        if a == 0xE3 and b == 0x80 and last == 0x80:
            return 3
    return 0


@njit(**INNER)
def blank_after(data: np.ndarray, low: int, high: int) -> int:
    """Return the width of the blank that starts at ``low``, 0 for none."""
    lead = data[low]
    if lead <= 0x20:
        return 1 if lead == 0x20 or 0x09 <= lead <= 0x0D or 0x1C <= lead <= 0x1F else 0
    if lead == 0xC2:
        return _blank_before(data, low, low + 2) if high - low >= 2 else 0
    if 0xE1 <= lead <= 0xE3 and high - low >= 3:
        return _blank_before(data, low, low + 3)
    return 0


@njit(**LEAN)
def _stripped(data: np.ndarray, low: int, high: int) -> tuple[int, int]:
    while low < high:
        width = blank_after(data, low, high)
        if width == 0:
            break
        low += width
    while low < high:
        width = _blank_before(data, low, high)
        if width == 0:
            break
        high -= width
    return low, high


@njit(**INNER)
def _is_utf8(data: np.ndarray, low: int, high: int) -> bool:
    """Return True if bytes are well-formed UTF-8: no surrogates, no overlong forms, nothing beyond U+10FFFF."""
    place = low
    while place < high:
        lead = data[place]
        if lead < 0x80:
            place += 1
            continue
        if 0xC2 <= lead <= 0xDF:
            width, least, most = 2, 0x80, 0xBF
        elif 0xE0 <= lead <= 0xEF:
            width, least, most = 3, 0xA0 if lead == 0xE0 else 0x80, 0x9F if lead == 0xED else 0xBF
        elif 0xF0 <= lead <= 0xF4:
            width, least, most = 4, 0x90 if lead == 0xF0 else 0x80, 0x8F if lead == 0xF4 else 0xBF
        else:
            return False
        if place + width > high or data[place + 1] < least or data[place + 1] > most:
            return False
        for k in range(2, width):
            if data[place + k] & 0xC0 != 0x80:
                return False
        place += width
    return True


@njit(**LEAN)
def cut_lines(  # noqa: C901 (one pass over the bytes; two functions would need two)
    data: np.ndarray, offsets: np.ndarray, first: int, second: int, longest: int, spans: np.ndarray, status: np.ndarray
) -> None:
    """Check lines, uint8 with their line ends, that begin at ``offsets``, int64 (n + 1,), and find two of their columns.

    ``first`` and ``second`` are 0-based; a ``first`` of -1 is the whole line, without a second. ``spans``, int64 (n, 4),
    receives the start and end of both columns without the blanks at their ends; ``status``, uint8 (n,), the state of
    each line, ``LONG`` for those of over ``longest`` bytes.
    """
    for row in range(len(status)):
        low, high = offsets[row], offsets[row + 1]
        if high > low and data[high - 1] == 0x0A:
            high -= 1
        if high - low > longest:
            status[row] = LONG
            continue
        if high > low and data[high - 1] == 0x0D:
            high -= 1
        if not _is_utf8(data, low, high):
            status[row] = NOT_UTF8
            continue
        status[row] = FINE
        begin, end = _stripped(data, low, high)
        if first < 0:
            spans[row, 0], spans[row, 1] = begin, end
            spans[row, 2], spans[row, 3] = end, end
            for place in range(begin, end):
                if data[place] == 0:
                    status[row] = NUL
                    break
            continue
        if begin == end:
            status[row] = EMPTY
            continue
        column, start, found = 0, low, 0
        for place in range(low, high + 1):
            if place < high and data[place] == 0:
                status[row] = NUL
                break
            if place == high or data[place] == 0x09:
                if column == first:
                    spans[row, 0], spans[row, 1] = _stripped(data, start, place)
                    found += 1
                if column == second:
                    spans[row, 2], spans[row, 3] = _stripped(data, start, place)
                    found += 1
                column, start = column + 1, place + 1
        if found < 2 and status[row] == FINE:
            status[row] = FEW


@njit(**LEAN)
def strip_spans(data: np.ndarray, offsets: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
    """Find the span of each text without the blanks at its ends."""
    for row in range(len(starts)):
        starts[row], ends[row] = _stripped(data, offsets[row], offsets[row + 1])


@njit(**LEAN)
def copy_spans(data: np.ndarray, starts: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out[offsets[i]:offsets[i + 1]]`` from ``data[starts[i]:]``, for all i."""
    for row in range(len(starts)):
        shift = starts[row] - offsets[row]
        for place in range(offsets[row], offsets[row + 1]):
            out[place] = data[place + shift]


@njit(**LEAN)
def characters(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Count the characters of each text into ``out`` (n,)."""
    for row in range(len(out)):
        count = 0
        for place in range(offsets[row], offsets[row + 1]):
            count += (data[place] & 0xC0) != 0x80
        out[row] = count


@njit(**LEAN)
def count_classes(data: np.ndarray, offsets: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Count the characters of each class in each text: ``out[row, table[code]]``; codes beyond the table are class 0."""
    for row in range(len(out)):
        place = offsets[row]
        while place < offsets[row + 1]:
            code, width = decode_character(data, place)
            out[row, table[code] if code < len(table) else 0] += 1
            place += width
