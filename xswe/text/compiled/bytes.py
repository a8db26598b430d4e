"""UTF-8 in compiled code: single characters, and runs of letters eight bytes at a time.

Single characters in bytes that are well-formed UTF-8, for compiled loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xswe.io.compiler import load_word, store_word, trailing_zeros


@njit(inline="always")
def decode_character(data: np.ndarray, place: int) -> tuple[Any, int]:
    """Return the code and the width of the UTF-8 character at ``place``."""
    lead = np.int64(data[place])
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
def append_character(chunk: np.ndarray, size: int, code: int) -> int:
    """Write a character as UTF-8 at ``chunk[size]``; returns the new size."""
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


# Latin letters and digits, eight bytes at a time, for compiled loops: most of a spaced script is nothing else.


LETTERS = "".join(map(chr, [*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B)]))
AS_THEY_ARE, LOWER_CASE, NEITHER = 0x00, 0x20, -1  # what is done to them; a lower-case letter has one bit more

_EACH = np.uint64(0x0101010101010101)
_TOP, _REST = np.uint64(0x80) * _EACH, np.uint64(0x7F) * _EACH
_CASE = np.uint64(LOWER_CASE) * _EACH
# Added to a byte below 128, these set its top bit from a certain character on.
_FROM_A, _BEYOND_Z = np.uint64(0x80 - 0x61) * _EACH, np.uint64(0x80 - 0x7B) * _EACH
_FROM_0, _BEYOND_9 = np.uint64(0x80 - 0x30) * _EACH, np.uint64(0x80 - 0x3A) * _EACH
_SEVEN, _ONE = np.uint64(7), np.uint64(1)


@njit(inline="always")
def copy_letters(data: np.ndarray, place: int, last: int, case: int, chunk: np.ndarray, end: int) -> tuple[Any, Any]:
    """Copy letters and digits while eight bytes are left, with zeros behind them; returns the places behind them.

    Args:
        data: uint8, the bytes to read.
        place: where to start.
        last: one past the last byte to read.
        case: ``AS_THEY_ARE`` or ``LOWER_CASE``.
        chunk: uint8, the bytes to write; needs room for eight more than are copied.
        end: where to write.
    """
    fold = np.uint64(case) * _EACH
    source, target = np.uintp(data.ctypes.data), np.uintp(chunk.ctypes.data)
    while place + 8 <= last:
        word = load_word(source + np.uintp(place))
        plain, lower = word & _REST, (word | _CASE) & _REST
        letters = (lower + _FROM_A) & ~(lower + _BEYOND_Z)
        digits = (plain + _FROM_0) & ~(plain + _BEYOND_9)
        others = (~(letters | digits) | word) & _TOP
        # All bits below the first byte that is something else; all bits if there is none.
        kept = ((others & (~others + _ONE)) >> _SEVEN) - _ONE
        store_word(target + np.uintp(end), (word | fold) & kept)
        count: Any = np.int64(trailing_zeros(others) >> np.uint64(3))
        place, end = place + count, end + count
        if count < 8:
            break
    return place, end
