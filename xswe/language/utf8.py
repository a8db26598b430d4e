"""Single characters in bytes that are well-formed UTF-8, for compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
