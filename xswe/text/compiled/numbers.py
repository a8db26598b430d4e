"""Comparison of the numbers of two texts: :func:`xswe.text.numbers.same_numbers` in a hundredth of its time.

Texts with something rare (combining marks, eras, clocks, numbers of twenty digits) are left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.text.compiled.alphabet import decode_character

SAME, MORE, OTHER, UNDECIDED, REWRITTEN = range(5)  # MORE: one side has extra numbers; OTHER: both have
# Bits of a character's entry: its normalised code (16), whether it is a letter of a word, whether it is left to Python;
# then five bits for its letter in the tries, for the value of a Han digit plus one, and for the zeros of a Han unit.
LETTER, ODD, LATIN, HAN, ZEROS = 1 << 16, 1 << 17, 18, 23, 27
_CODE = (1 << 16) - 1
WORDS, ENDINGS, SIZES = 1, 2, 3  # root nodes of the tries; 0 is no node
ENDS, GOES_ON = 1, 2  # endings: the word ends here, or may continue with any letters
DECADE = 3  # instead of an ending: a word for decades
MOST, MANY = 2048, 128  # limits on the characters and the numbers of a text
_ELLIPSIS, _EMOJI, _LAST_EMOJI = 0x2026, 0x1F300, 0x1FAFF
_YEAR, _MONTH, _DAY, _FIRST = map(ord, "年月日元")
_AGE, _CENTURY, _OLD_CENTURY, _TENTHS, _OLD_TENTHS, _DECADES = map(ord, "世纪紀成割代")
_HOUR, _OLD_HOUR, _HALF = map(ord, "点時半")
_OF_ERAS = tuple(map(ord, "治正和成"))  # last characters of eras


@njit(**INNER)
def _is_digit(room: np.ndarray, k: int, count: int) -> Any:
    """Return True if there is a digit at position k."""
    return 0 <= k < count and 0x30 <= room[k] <= 0x39


@njit(**INNER)
def _code(room: np.ndarray, k: int, count: int) -> Any:
    """Return the code of the character at position k, 0 outside the text."""
    return np.int64(room[k]) & _CODE if 0 <= k < count else np.int64(0)


@njit(**INNER)
def _read(data: np.ndarray, low: int, high: int, characters: np.ndarray, room: np.ndarray) -> Any:
    """Write the entries of a text's characters; return their number, or -1 to leave the text to Python."""
    count, place = np.int64(0), low
    while place < high:
        code, width = decode_character(data, place)
        place += width
        if count + 3 > len(room) or (code > _CODE and not _EMOJI <= code <= _LAST_EMOJI):
            return np.int64(-1)
        if code == _ELLIPSIS:
            for _ in range(3):
                room[count] = np.int32(0x2E)
                count += 1
            continue
        room[count] = np.int32(0) if code > _CODE else characters[code]
        if room[count] & ODD:
            return np.int64(-1)
        count += 1
    return count


@njit(**INNER)
def _may_be_rewritten(room: np.ndarray, count: int) -> Any:  # noqa: C901 (one pass over the characters)
    """Return True if a text may contain a year, share, time or number that has to be rewritten."""
    for k in range(count):
        code, after = _code(room, k, count), _code(room, k + 1, count)
        if code == 0x28:
            before = _code(room, k - 1, count)
            if before == 0x20:
                before = _code(room, k - 2, count)
            dated = before in (_YEAR, _MONTH, _DAY)
            if dated or before == _FIRST or 0x30 <= before <= 0x39:
                digits = 0
                while _is_digit(room, k + 1 + digits, count):
                    digits += 1
                if 3 <= digits <= 4 and _code(room, k + 1 + digits, count) == _YEAR:
                    return True
            if dated and after >= 0x3400:
                for j in range(k + 3, k + 6):
                    if _is_digit(room, j, count) or _code(room, j, count) == _FIRST:
                        return True
        if not 0x30 <= code <= 0x39:
            continue
        unit = k + 1 + (after == 0x20)  # blanks may stand around numbers
        behind = unit + 1 + (_code(room, unit + 1, count) == 0x20)
        here, third = _code(room, unit, count), _code(room, behind, count)
        if here in (_TENTHS, _OLD_TENTHS) or (here in (_HOUR, _OLD_HOUR) and third == _HALF):
            return True
        if behind < count and room[unit] >> ZEROS > 1 and (room[behind] >> ZEROS > 1 or _is_digit(room, behind, count)):
            return True  # 1万7千, 5千万
        if here == _AGE and _code(room, unit + 1, count) in (_CENTURY, _OLD_CENTURY):
            return True
        decade = (here == _YEAR and third == _DECADES) or (after == 0x65 and _code(room, k + 2, count) == 0x72)
        century = code == 0x30 and _code(room, k - 1, count) == 0x30 and _is_digit(room, k - 3, count)
        if code == 0x30 and decade and (century or not _is_digit(room, k - 2, count)):
            return True  # 90年代, 90er, 1900年代
        if century and after == 0x73:
            return True  # 1900s
        if after == _YEAR:
            era = _code(room, k - 2 if _is_digit(room, k - 1, count) else k - 1, count)
            for last in _OF_ERAS:
                if era == last:
                    return True
    return False


@njit(**INNER)
def _numbers(room: np.ndarray, count: int, out: np.ndarray) -> Any:
    """Write the numbers in digits, ascending; return their count, or -1 to leave the text to Python."""
    found, k = np.int64(0), np.int64(0)
    while k < count:
        if not _is_digit(room, k, count):
            k += 1
            continue
        value, size = np.int64(0), np.int64(0)
        while _is_digit(room, k, count):
            value = 10 * value + np.int64(room[k]) - 0x30
            size += value > 0
            k += 1
            if size > 18:
                return np.int64(-1)
            code = _code(room, k, count)
            if (
                (code == 0x2E or code == 0x2C or code == 0x27 or code == 0x2019 or code == 0x66C or code == 0x20)
                and _is_digit(room, k + 1, count)
                and _is_digit(room, k + 2, count)
                and _is_digit(room, k + 3, count)
                and not _is_digit(room, k + 4, count)
            ):
                k += 1  # a thousands separator
        if found == len(out):
            return np.int64(-1)
        j = found
        while j > 0 and out[j - 1] > value:
            out[j] = out[j - 1]
            j -= 1
        out[j] = value
        found += 1
    return found


@njit(**INNER)
def _size(room: np.ndarray, k: int, count: int, children: np.ndarray, values: np.ndarray) -> Any:
    """Return the number of zeros of the magnitude word at position k, 0 if there is none, and where it ends."""
    if k < count and room[k] >> ZEROS > 1:
        end, zeros = k + 1, np.int64(room[k] >> ZEROS)
        return (zeros if end >= count or not room[end] >> LATIN & 31 else np.int64(0)), end
    node = np.int64(SIZES)
    while k < count and room[k] >> LATIN & 31:
        node = np.int64(children[node, room[k] >> LATIN & 31])
        k += 1
    return max(np.int64(0), np.int64(values[0, node])), k


@njit(**INNER)
def _written_out(  # noqa: C901 (one pass over the characters)
    room: np.ndarray, count: int, children: np.ndarray, values: np.ndarray, out: np.ndarray
) -> Any:
    """Copy a text with magnitudes written as digits (1.5 million is 1500000); return its length, -1 if it does not fit."""
    size, k = np.int64(0), np.int64(0)
    while k < count:
        if size + 64 > len(out):
            return np.int64(-1)
        if not _is_digit(room, k, count) or _is_digit(room, k - 1, count):
            out[size] = room[k]
            size, k = size + 1, k + 1
            continue
        end = k
        while _is_digit(room, end, count):
            end += 1
            code = _code(room, end, count)
            if (
                (code == 0x2E or code == 0x2C)
                and _is_digit(room, end + 1, count)
                and _is_digit(room, end + 2, count)
                and _is_digit(room, end + 3, count)
                and not _is_digit(room, end + 4, count)
            ):
                end += 1
        place, fraction, code = end, np.int64(0), _code(room, end, count)
        if (code == 0x2E or code == 0x2C) and _is_digit(room, end + 1, count):
            while _is_digit(room, end + 1 + fraction, count):
                fraction += 1
            place = end + 1 + fraction
        code = _code(room, place, count)
        zeros, stop = _size(room, place + (code == 0x20 or code == 0x2D), count, children, values)
        if zeros == 0 or fraction > zeros:
            stop = k + 1 if zeros == 0 else stop
            if size + stop - k + 64 > len(out):
                return np.int64(-1)
            while k < stop:
                out[size] = room[k]
                size, k = size + 1, k + 1
            continue
        if size + end - k + 64 > len(out):
            return np.int64(-1)
        leading: Any = True
        while k < end:
            leading = leading and k + 1 < end and not 0x31 <= room[k] <= 0x39
            if _is_digit(room, k, count) and not leading:
                out[size] = room[k]
                size += 1
            k += 1
        for j in range(zeros):
            out[size] = room[end + 1 + j] if j < fraction else np.int32(0x30)
            size += 1
        out[size] = np.int32(0x20)
        size, k = size + 1, stop
    return size


@njit(**INNER)
def _is_ending(letters: np.ndarray, low: int, high: int, children: np.ndarray, values: np.ndarray) -> Any:
    """Return True if the rest of a word after a German number is an ending."""
    node = np.int64(ENDINGS)
    for k in range(low, high):
        node = np.int64(children[node, letters[k]])
        if node == 0 or values[2, node] == GOES_ON:
            return node > 0
    return bool(values[2, node] == ENDS)


@njit(**INNER)
def _word(letters: np.ndarray, low: int, high: int, children: np.ndarray, values: np.ndarray) -> Any:
    """Return the node of a word, 0 for none; its value, -1 for none; and whether longer words may begin with it."""
    node, value, begins = np.int64(WORDS), np.int64(-1), False
    for k in range(low, high):
        node = np.int64(children[node, letters[k]])
        if node == 0:
            return node, value, begins
        if values[1, node] >= 0:
            begins = True
            if _is_ending(letters, k + 1, high, children, values):
                value = np.int64(values[1, node])
    return node, np.int64(values[0, node]) if values[0, node] >= 0 else value, True


@njit(**INNER)
def _han_value(room: np.ndarray, low: int, high: int) -> Any:
    """Return the value of a number in Han numerals."""
    plain, total, section, digit, units = np.int64(0), np.int64(0), np.int64(0), np.int64(0), False
    for k in range(low, high):
        zeros = np.int64(room[k] >> ZEROS)
        if zeros == 0:
            digit = np.int64(room[k] >> HAN & 15) - 1
            plain = 10 * plain + digit
            continue
        unit, units = np.int64(10) ** zeros, True
        if zeros < 4:
            section, digit = section + max(digit, np.int64(1)) * unit, np.int64(0)
        else:
            total += max(section + digit, np.int64(1)) * unit
            section = digit = np.int64(0)
    return total + section + digit if units else plain


@njit(**INNER)
def _in_words(  # noqa: C901 (one pass over the characters)
    room: np.ndarray, count: int, children: np.ndarray, values: np.ndarray, letters: np.ndarray, out: np.ndarray
) -> Any:
    """Write the numbers in words; return their count, or -1 to leave the text to Python."""
    found, size, before, start = np.int64(0), np.int64(0), np.int64(-1), np.int64(0)
    joins, last, han = False, np.int64(-1), np.int64(0)
    for k in range(count + 1):
        one = np.int64(room[k]) if k < count else np.int64(0)
        if found + 4 > len(out):
            return np.int64(-1)
        if one & LETTER:
            letters[size] = one >> LATIN & 31
            size += 1
        elif size > start:
            node, value, may_join = _word(letters, start, size, children, values)
            if value >= 0:
                out[found] = value
                found += 1
            if node > 0 and values[2, node] == DECADE and last >= 0:
                out[found] = 10 * last
                found += 1
            if joins:
                _, value, _ = _word(letters, before, size, children, values)
                if value >= 0:
                    out[found] = value
                    found += 1
            joins, last = may_join, np.int64(values[0, node])
            before, start = start, size
        if one >> HAN & 15 or 0 < one >> ZEROS <= 8:
            han += 1
            following = _code(room, k + 1, count)
            if one >> HAN & 15 and following in (_TENTHS, _OLD_TENTHS):
                out[found] = 10 * ((one >> HAN & 15) - 1)
                found += 1
        elif han:
            if 15 < han <= 20:
                return np.int64(-1)
            if han <= 15:
                out[found] = _han_value(room, k - han, k)
                found += 1
            han = np.int64(0)
    return found


@njit(**INNER)
def _lacking(a: np.ndarray, n: int, b: np.ndarray, m: int, out: np.ndarray) -> Any:
    """Write the multiset difference a - b of ascending numbers; return its size."""
    found = j = np.int64(0)
    for k in range(n):
        while j < m and b[j] < a[k]:
            j += 1
        if j < m and b[j] == a[k]:
            j += 1
        else:
            out[found] = a[k]
            found += 1
    return found


@njit(**INNER)
def _may_be_hours(a: np.ndarray, n: int, b: np.ndarray, m: int) -> Any:
    """Return True if two lists of numbers are equal as hours on a twelve-hour dial."""
    if n == 0 or m == 0 or a[n - 1] > 24 or b[m - 1] > 24:
        return False
    for hour in range(12):
        balance = 0
        for k in range(n):
            balance += a[k] > 0 and a[k] % 12 == hour
        for k in range(m):
            balance -= b[k] > 0 and b[k] % 12 == hour
        if balance:
            return False
    return True


@njit(**INNER)
def _are_among(a: np.ndarray, n: int, b: np.ndarray, m: int) -> Any:
    """Return True if all numbers of a are in b."""
    for k in range(n):
        there = False
        for j in range(m):
            there |= a[k] == b[j]
        if not there:
            return False
    return True


@njit(**INNER)
def _has_others(numbers: np.ndarray, counts: np.ndarray, side: int) -> Any:
    """Return True if a text has a number in words that the other text lacks."""
    other = 1 - side
    for k in range(counts[6 + side]):
        one = numbers[6 + side, k : k + 1]
        if not (
            _are_among(one, 1, numbers[other], counts[2 + other])
            or _are_among(one, 1, numbers[2 + other], counts[4 + other])
            or _are_among(one, 1, numbers[6 + other], counts[6 + other])
        ):
            return True
    return False


@njit(**INNER)
def _compared(  # noqa: C901 (the steps of same_numbers)
    data: np.ndarray,
    offsets: np.ndarray,
    pair: int,
    pairs: int,
    counts: np.ndarray,
    characters: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    texts: np.ndarray,
    letters: np.ndarray,
    numbers: np.ndarray,
) -> Any:
    """Compare the texts of a pair."""
    rewritten = len(offsets) > 2 * pairs + 1
    for side in range(2):
        place = side * pairs + pair
        counts[side] = _read(data, offsets[place], offsets[place + 1], characters, texts[side])
        counts[2 + side] = _numbers(texts[side], counts[side], numbers[side])
        if counts[side] < 0 or counts[2 + side] < 0:
            return UNDECIDED
    if counts[2] == counts[3] and _lacking(numbers[0], counts[2], numbers[1], counts[3], numbers[4]) == 0:
        return SAME
    for side in range(2):
        if rewritten:
            place = (2 + side) * pairs + pair
            counts[side] = _read(data, offsets[place], offsets[place + 1], characters, texts[side])
            if counts[side] < 0:
                return UNDECIDED
        elif _may_be_rewritten(texts[side], counts[side]):
            return REWRITTEN
        size = _written_out(texts[side], counts[side], children, values, texts[2 + side])
        counts[4 + side] = np.int64(-1) if size < 0 else _numbers(texts[2 + side], size, numbers[2 + side])
        if counts[4 + side] < 0:
            return UNDECIDED
        counts[6 + side] = np.int64(-1)
    if counts[4] == counts[5] and _lacking(numbers[2], counts[4], numbers[3], counts[5], numbers[4]) == 0:
        return SAME
    for turn in range(2):
        left, right = numbers[2 * turn], numbers[2 * turn + 1]
        n, m = counts[2 + 2 * turn], counts[3 + 2 * turn]
        more = _lacking(left, n, right, m, numbers[4]), _lacking(right, m, left, n, numbers[5])
        if _may_be_hours(numbers[4], more[0], numbers[5], more[1]):
            return UNDECIDED
        same = True
        for side in range(2):  # numbers missing on the other side may be there in words
            lacking = more[0] if side == 0 else more[1]
            if not same or lacking == 0:
                continue
            other = 1 - side
            if counts[6 + other] < 0:
                counts[6 + other] = _in_words(texts[other], counts[other], children, values, letters, numbers[6 + other])
                if counts[6 + other] < 0:
                    return UNDECIDED
            same = _are_among(numbers[4 + side], lacking, numbers[6 + other], counts[6 + other])
        if same:
            return SAME
    for side in range(2):
        if counts[6 + side] < 0:
            counts[6 + side] = _in_words(texts[side], counts[side], children, values, letters, numbers[6 + side])
            if counts[6 + side] < 0:
                return UNDECIDED
    for side in range(2):
        if _are_among(numbers[4 + side], more[side], numbers[7 - side], counts[7 - side]):
            return OTHER if _has_others(numbers, counts, side) else MORE
    return OTHER


@njit(**LEAN)
def compare_numbers(
    data: np.ndarray,
    offsets: np.ndarray,
    characters: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    texts: np.ndarray,
    letters: np.ndarray,
    numbers: np.ndarray,
    counts: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write for each pair whether its texts have the ``SAME`` numbers, or ``MORE`` or ``OTHER`` ones, uint8 (n,).

    The texts are all sources, then all targets, optionally followed by both rewritten; without these, pairs with a text
    that may need it get ``REWRITTEN``. ``characters`` int32 (65536,) are the entries of characters. ``children`` uint16
    (nodes, letters) are tries of words; ``values`` int32 (3, nodes) are the values of words, of stems of German words, and
    of endings, -1 for none. ``texts`` int32 (4, most), ``letters`` uint8 (most,), ``numbers`` int64 (8, many) and
    ``counts`` int64 (8,) are workspace.
    """
    tables, room = (characters, children, values), (texts, letters, numbers)
    for pair in range(len(out)):
        out[pair] = np.uint8(_compared(data, offsets, pair, len(out), counts, *tables, *room))
