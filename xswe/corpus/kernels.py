"""Compiled loops over the bytes of many texts: cutting lines into columns, copying spans, counting characters.

A pair of sentences never becomes a Python string on its way from a file of lines to the arrays of a corpus.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.language.utf8 import decode_character

# What became of a line.
FINE, EMPTY, LONG, NOT_UTF8, NUL, FEW = 0, 1, 2, 3, 4, 5


@njit(inline="always")
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


@njit(inline="always")
def _blank_after(data: np.ndarray, low: int, high: int) -> int:
    """Return the width of the blank that starts at ``low``, 0 for none."""
    lead = data[low]
    if lead <= 0x20:
        return 1 if lead == 0x20 or 0x09 <= lead <= 0x0D or 0x1C <= lead <= 0x1F else 0
    if lead == 0xC2:
        return _blank_before(data, low, low + 2) if high - low >= 2 else 0
    if 0xE1 <= lead <= 0xE3 and high - low >= 3:
        return _blank_before(data, low, low + 3)
    return 0


@njit(inline="always")
def _stripped(data: np.ndarray, low: int, high: int) -> tuple[int, int]:
    while low < high:
        width = _blank_after(data, low, high)
        if width == 0:
            break
        low += width
    while low < high:
        width = _blank_before(data, low, high)
        if width == 0:
            break
        high -= width
    return low, high


@njit(inline="always")
def _is_utf8(data: np.ndarray, low: int, high: int) -> bool:
    """Tell whether bytes are well-formed UTF-8: no surrogates, no over-long forms, nothing beyond U+10FFFF."""
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


@njit(nogil=True, cache=True)
def cut_lines(  # noqa: C901 (one pass over the bytes; cut in two it would be two)
    data: np.ndarray, offsets: np.ndarray, first: int, second: int, longest: int, spans: np.ndarray, status: np.ndarray
) -> None:
    """Check lines and find their columns.

    Args:
        data: uint8, lines one after the other, with their line ends.
        offsets: int64 (n + 1,), where each starts.
        first: 0-based column of ``spans[:, :2]``; -1 takes the whole line for it, and there is no second column.
        second: 0-based column of ``spans[:, 2:]``.
        longest: lines of more bytes are ``LONG``.
        spans: int64 (n, 4) out, start and end of both columns, without the blanks at their ends.
        status: uint8 (n,) out, what became of each line.
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


@njit(nogil=True, cache=True)
def strip_spans(data: np.ndarray, offsets: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
    """Find each text without the blanks at its ends."""
    for row in range(len(starts)):
        starts[row], ends[row] = _stripped(data, offsets[row], offsets[row + 1])


@njit(nogil=True, cache=True)
def copy_spans(data: np.ndarray, starts: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Copy ``data[starts[i]:]`` to ``out[offsets[i]:offsets[i + 1]]``, for all i."""
    for row in range(len(starts)):
        shift = starts[row] - offsets[row]
        for place in range(offsets[row], offsets[row + 1]):
            out[place] = data[place + shift]


@njit(nogil=True, cache=True)
def characters(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Count the characters of each text into ``out`` (n,)."""
    for row in range(len(out)):
        count = 0
        for place in range(offsets[row], offsets[row + 1]):
            count += (data[place] & 0xC0) != 0x80
        out[row] = count


@njit(nogil=True, cache=True)
def count_classes(data: np.ndarray, offsets: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Count the characters of each class in each text: ``out[row, table[code]]``; codes beyond the table are class 0."""
    for row in range(len(out)):
        place = offsets[row]
        while place < offsets[row + 1]:
            code, width = decode_character(data, place)
            out[row, table[code] if code < len(table) else 0] += 1
            place += width
