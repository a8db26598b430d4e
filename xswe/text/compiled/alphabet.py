"""The alphabet: a table, filled on demand, of the normaliser's and chunker's effect on each character.

Both are called on each character when it is first seen, so the table cannot disagree with them. Characters whose result
may depend on their neighbours (combining marks, Hangul letters, …) are marked ``COMPLEX``, and a text with one goes to the
slow path as a whole.

The compiled code reads well-formed UTF-8: single characters, and runs of letters eight bytes at a time.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
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
    """Write a character as UTF-8 at ``chunk[size]``; return the new size."""
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


# Latin letters and digits, eight bytes at a time, for compiled loops: they make up most text in spaced scripts.


LETTERS = "".join(map(chr, [*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B)]))
AS_THEY_ARE, LOWER_CASE, NEITHER = 0x00, 0x20, -1  # their case folding, as the bit that lower-case letters add

_EACH = np.uint64(0x0101010101010101)
_TOP, _REST = np.uint64(0x80) * _EACH, np.uint64(0x7F) * _EACH
_CASE = np.uint64(LOWER_CASE) * _EACH
# Added to a byte below 128, these set its top bit if it is at least a certain character.
_FROM_A, _BEYOND_Z = np.uint64(0x80 - 0x61) * _EACH, np.uint64(0x80 - 0x7B) * _EACH
_FROM_0, _BEYOND_9 = np.uint64(0x80 - 0x30) * _EACH, np.uint64(0x80 - 0x3A) * _EACH
_SEVEN, _ONE = np.uint64(7), np.uint64(1)


@njit(inline="always")
def copy_letters(data: np.ndarray, place: int, last: int, case: int, chunk: np.ndarray, end: int) -> tuple[Any, Any]:
    """Copy letters and digits to ``chunk[end:]`` while eight bytes are left before ``last``; return the places after them.

    ``case`` is ``AS_THEY_ARE`` or ``LOWER_CASE``. Zeros are written after them, so ``chunk`` needs eight spare bytes.
    """
    fold = np.uint64(case) * _EACH
    source, target = np.uintp(data.ctypes.data), np.uintp(chunk.ctypes.data)
    while place + 8 <= last:
        word = load_word(source + np.uintp(place))
        plain, lower = word & _REST, (word | _CASE) & _REST
        letters = (lower + _FROM_A) & ~(lower + _BEYOND_Z)
        digits = (plain + _FROM_0) & ~(plain + _BEYOND_9)
        others = (~(letters | digits) | word) & _TOP
        # All bits below the first other byte; all bits if there is none.
        kept = ((others & (~others + _ONE)) >> _SEVEN) - _ONE
        store_word(target + np.uintp(end), (word | fold) & kept)
        count: Any = np.int64(trailing_zeros(others) >> np.uint64(3))
        place, end = place + count, end + count
        if count < 8:
            break
    return place, end


UNKNOWN, COMPLEX, REMOVED = -1, -2, -3
_FIRST_EXPANSION = -16  # entry e <= -16: the outputs are expansions[-16 - e], …
_MAX_EXPANSIONS = 1 << 16  # more than Unicode has; further characters count as complex
SPACE, PUNCTUATION, CJK, WORD = 0, 1, 2, 3
CLASS_SHIFT = 21  # an entry >= 0 is (class << 21) | output character

_SEPARATOR = " a "  # between characters that are normalised together
_END = "end"  # ends the chunker's answer about one character

# Blocks whose characters normalise independently of their neighbours; marks in them are found by category.
_SIMPLE_BLOCKS = (
    (0x0000, 0x02FF),
    (0x0370, 0x052F),
    (0x1E00, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x2E80, 0x2FDF),
    (0x3000, 0x3029),
    (0x3030, 0x3098),
    (0x309B, 0x30FF),
    (0x3105, 0x312F),
    (0x3190, 0x31BF),
    (0x31F0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE6F),
    (0xFEFF, 0xFEFF),
    (0xFF00, 0xFF9D),
    (0xFFE0, 0xFFEF),
    (0x1F000, 0x1F1E5),
    (0x1F200, 0x1F3FA),
    (0x1F400, 0x1FAFF),
    (0x20000, 0x3FFFF),
)
_BORDERS = [border for low, high in _SIMPLE_BLOCKS for border in (low, high + 1)]


class Alphabet:
    """The self-filling table of one normaliser and chunker.

    ``normalise`` maps a text to a normalised text, and ``chunks`` maps that to its chunks, the first of each tuple. The
    chunker puts ``mark`` before each word of a spaced script. ``table`` has three arrays and a number for compiled code:
    int32, for each of the 0x110000 characters ``UNKNOWN``, ``COMPLEX``, ``REMOVED``, a class and output character, or the
    index of several outputs in the second array; int32, their number, then the outputs; uint8, the output of each byte that
    is a word letter with a one-byte output, else 0; and the case folding (``AS_THEY_ARE``, …) if such bytes are exactly the
    Latin letters and digits. Threads may read while characters are learnt: an entry is written once, after the data it
    refers to.
    """

    def __init__(
        self, normalise: Callable[[str], str], chunks: Callable[[str], Sequence[tuple[str, Any]]], mark: str
    ) -> None:
        self._normalise, self._chunks, self._mark = normalise, chunks, mark
        self._classes: dict[str, int] = {}
        self._entries, self._expansions = np.full(0x110000, UNKNOWN, np.int32), np.zeros(_MAX_EXPANSIONS, np.int32)
        self._expanded = 1  # number of expansions in use
        self.learn(np.arange(128))
        is_plain = (self._entries[:128] >= WORD << CLASS_SHIFT) & (self._entries[:128] < (WORD << CLASS_SHIFT) + 128)
        plain = np.concatenate([np.where(is_plain, self._entries[:128], 0).astype(np.uint8), np.zeros(128, np.uint8)])
        self.table = self._entries, self._expansions, plain, _case(plain)

    def learn(self, codes: np.ndarray) -> None:
        """Fill in the entries of character codes that are still unknown; one thread at a time."""
        characters = [chr(code) for code in np.unique(codes[self._entries[codes] == UNKNOWN]).tolist()]
        simple = [character for character in characters if _is_simple(character)]
        outputs = dict(zip(simple, self._normalise_all(simple), strict=True))
        self._classify(sorted({out for text in outputs.values() for out in text if not _is_mark(out)} - set(self._classes)))
        entries = [self._entry(outputs[character]) if character in outputs else COMPLEX for character in characters]
        self._entries[list(map(ord, characters))] = entries

    def _normalise_all(self, characters: list[str]) -> list[str]:
        """Normalise each character: all in one text if the results can be separated, else one by one."""
        parts = self._normalise(_SEPARATOR.join(characters)).split(_SEPARATOR)
        return parts if len(parts) == len(characters) else [self._normalise(character) for character in characters]

    def _entry(self, outputs: str) -> int:
        if any(map(_is_mark, outputs)):
            return COMPLEX
        packed = [(self._classes[out] << CLASS_SHIFT) | ord(out) for out in outputs]
        if any(one < 0 for one in packed):
            return COMPLEX
        if len(packed) == 1:
            return packed[0]
        if not packed:
            return REMOVED
        place, end = self._expanded, self._expanded + 1 + len(packed)
        if end > len(self._expansions):
            return COMPLEX
        self._expansions[place:end] = [len(packed), *packed]
        self._expanded = end
        return _FIRST_EXPANSION - place

    def _classify(self, characters: list[str]) -> None:
        """Determine the chunker's classes of characters, -1 for an unknown behaviour.

        Each character is passed to it alone, doubled and between letters; a word of letters ends its part of the answer.
        """
        if not characters:
            return
        m = self._mark
        kinds: dict[int, Callable[[str], list[str]]] = {
            WORD: lambda c: [f"{m}{c}", f"{m}{c}{c}", f"{m}a{c}a"],
            CJK: lambda c: [c, c + c, f"{m}a", c, f"{m}a"],
            PUNCTUATION: lambda c: [c, c, c, f"{m}a", c, f"{m}a"],
            SPACE: lambda c: [f"{m}a", f"{m}a"],
        }
        answer = [chunk for chunk, _ in self._chunks("".join(f"{c} {c}{c} a{c}a {_END} " for c in characters))]
        start = 0
        for character in characters:
            stop = answer.index(m + _END, start)
            seen = answer[start:stop]
            self._classes[character] = next((kind for kind, chunks in kinds.items() if chunks(character) == seen), -1)
            start = stop + 1


def _case(plain: np.ndarray) -> int:
    """Return the case folding of Latin letters and digits, given the third array of a table."""
    plain_letters = "".join(map(chr, np.flatnonzero(plain)))
    outputs = plain[plain > 0].tobytes().decode("ascii")
    if plain_letters != LETTERS:
        return NEITHER
    return {LETTERS: AS_THEY_ARE, LETTERS.lower(): LOWER_CASE}.get(outputs, NEITHER)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _is_simple(character: str) -> bool:
    """Return True if a character normalises independently of its neighbours."""
    return bisect_right(_BORDERS, ord(character)) % 2 == 1 and not _is_mark(character)
