"""Untranslated copies: pairs whose sides are the same letters, or hold mostly the same words.

Compiled code looks at the bytes of all pairs and rules out what is surely none; what is left is looked at letter by letter.
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numba import njit

from xswe.corpus.kernels import blank_after, mix
from xswe.io.compiler import INNER, LEAN
from xswe.io.ragged import Texts

_MOST = 256  # a side of a copy with more different words is looked at letter by letter
_COPIED = 0.8  # share of the words of the shorter side that the other side has, too
_WORD, _LETTERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)  # hashes of nothing


def find_copies(source: Texts, target: Texts, rows: np.ndarray) -> list[int]:
    """Return those of some pairs whose sides are copies."""
    found = np.zeros(len(rows), bool)
    sides = source.take(rows), target.take(rows)
    may_be_copies(*sides[0].frozen, *sides[1].frozen, _COPIED, np.empty((2, _MOST), np.uint64), found)
    return [row for row in rows[found].tolist() if is_copy(source[row], target[row])]


def is_copy(source: str, target: str) -> bool:
    """Return True if two texts are the same letters, or hold mostly the same words of three letters and more."""
    a, b = source.casefold(), target.casefold()
    words = [{word for word in text.split() if len(word) > 2} for text in (a, b)]
    least = min(map(len, words))
    if least > 1 and len(words[0] & words[1]) >= _COPIED * least:
        return True
    if 4 * min(len(a), len(b)) < 3 * max(len(a), len(b)):
        return False
    letters = ["".join(filter(str.isalnum, unicodedata.normalize("NFKC", text))) for text in (a, b)]
    return letters[0] == letters[1]


@njit(**INNER)
def _is_odd(a: int, b: int, c: int) -> bool:
    """Tell whether case folding or normalisation may turn a character, given its first bytes, into other letters or digits.

    Latin-1 aside, whose letters :func:`may_be_copies` folds itself: other alphabets with cases, combining marks, and
    what stands for letters and digits (full-width, circled, squared, superscript, ligatures).
    """
    if a == 0xC2:
        return b == 0xAA or b == 0xB2 or b == 0xB3 or b == 0xB5 or b == 0xB9 or b == 0xBA or 0xBC <= b <= 0xBE
    if a == 0xE2:
        return b == 0x84 or b == 0x85 or 0x91 <= b <= 0x93 or b >= 0xB0
    if a == 0xE3:
        return 0x88 <= b <= 0x8F
    if a == 0xEF:
        wide = (b == 0xBC and c >= 0x90) or (b == 0xBD and c <= 0x9A)
        return 0xA4 <= b <= 0xAC or wide
    return 0xC4 <= a <= 0xE1 or a >= 0xF0 or a == 0xEA


@njit(**LEAN)
def _read_words(  # noqa: C901 (one pass over the bytes)
    data: np.ndarray, low: int, high: int, words: np.ndarray
) -> tuple[int, np.uint64, bool]:
    """Hash the different words of a text of at least three characters, and all its letters and digits, case ignored.

    Returns:
        Number of words, put into ``words``; a hash of the letters and digits in their order; whether there is more to the
        text than these tell.
    """
    count, letters = 0, _LETTERS
    word, size = _WORD, 0
    place = low
    while place <= high:
        width = 1 if place == high else blank_after(data, place, high)
        if width:
            if size > 2:
                known = False
                for k in range(count):
                    known |= words[k] == word
                if not known:
                    if count == len(words):
                        return count, letters, True
                    words[count] = word
                    count += 1
            word, size = _WORD, 0
            place += width
            continue
        a = data[place]
        if a < 0x80:
            value = np.uint64(a + 0x20 if 0x41 <= a <= 0x5A else a)
            word, size = mix(word ^ value), size + 1
            if 0x30 <= a <= 0x39 or 0x61 <= value <= 0x7A:
                letters = mix(letters ^ value)
            place += 1
            continue
        b = data[place + 1]
        wide = 1 if a < 0xE0 else 2 if a < 0xF0 else 3
        if _is_odd(a, b, data[place + min(2, wide)]):
            return count, letters, True
        if a == 0xC3 and b == 0x9F:  # the sharp s
            value = np.uint64(0x73)
            word, size, letters = mix(mix(word ^ value) ^ value), size + 2, mix(mix(letters ^ value) ^ value)
            place += 2
            continue
        value = np.uint64(a)
        for k in range(1, wide + 1):
            value = value << np.uint64(8) | np.uint64(data[place + k])
        if a == 0xC3 and 0x80 <= b <= 0x9E and b != 0x97:
            value += np.uint64(0x20)
        word, size = mix(word ^ value), size + 1
        if 0xE4 <= a <= 0xE9:  # ideographs
            letters = mix(letters ^ value)
        place += wide + 1
    return count, letters, False


@njit(**LEAN)
def may_be_copies(
    source: np.ndarray,
    source_offsets: np.ndarray,
    target: np.ndarray,
    target_offsets: np.ndarray,
    share: float,
    words: np.ndarray,
    found: np.ndarray,
) -> None:
    """Tell which pairs may hold mostly the same words, or the same letters.

    Args:
        source: uint8, the bytes of all sources.
        source_offsets: int64 (n + 1,), where they start.
        target: the same of the targets.
        target_offsets: likewise.
        share: of the different words of three characters and more of the side that has fewer, those that both must have.
        words: uint64 (2, most), room for the words of a text; what has more may be a copy.
        found: bool (n,) out. False is sure.
    """
    for row in range(len(found)):
        count, letters, odd = _read_words(source, source_offsets[row], source_offsets[row + 1], words[0])
        if not odd:
            number, same, odd = _read_words(target, target_offsets[row], target_offsets[row + 1], words[1])
        if odd or letters == same:
            found[row] = True
            continue
        shared, least = 0, min(count, number)
        for k in range(count):
            for j in range(number):
                shared += words[0, k] == words[1, j]
        found[row] = least > 1 and shared >= share * least
