"""Comparison of Katakana words with words of the other side, by their consonants.

Katakana spells foreign words by ear: their consonants stay, in order, with vowels in between. So the consonants of both are
compared, each as the set of sounds that its letter may stand for: ``c`` as in *cat* and as in *city*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.io.ragged import Texts

_K, _G, _S, _T, _D, _N, _M, _H, _B, _P, _R = (1 << place for place in range(11))
MAY_BE_SILENT = 1 << 11  # a consonant such as the last r in "river"
_KATAKANA = {
    "カキクケコヵヶ": _K,
    "ガギグゲゴ": _G,
    "サシスセソザジズゼゾヂヅ": _S,
    "チツ": _S | _T,
    "タテト": _T,
    "ダデド": _D,
    "ナニヌネノ": _N,
    "ン": _N | _M,
    "マミムメモ": _M,
    "ハヒフヘホ": _H,
    "バビブベボヴ": _B,
    "パピプペポ": _P,
    "ラリルレロ": _R,
}
_LATIN = {
    **{"b": _B, "c": _K | _S, "d": _D, "f": _H, "g": _G | _S, "h": _H | MAY_BE_SILENT, "j": _S | MAY_BE_SILENT, "k": _K},
    **{"l": _R, "m": _M, "n": _N, "p": _P, "q": _K, "r": _R | MAY_BE_SILENT, "s": _S, "t": _T | _S, "v": _B | _H},
    **{"w": _B | MAY_BE_SILENT, "x": _K | _S, "z": _S | _T, "ç": _S, "ñ": _N, "ß": _S},
}
FIRST, LAST = 0x30A1, 0x30FC
MOST = 24  # consonants compared per word, or pair of words
ALIKE = np.float32(0.7), np.float32(0.85)  # minimum share in common, for one word and for two
_CONFIDENCE = np.float32(0.15), np.float32(0.3)  # confidence in a match: slope per consonant, and intercept
_CLASSES = np.zeros((2, 0x100), np.uint16)  # of Latin-1, and of Katakana from FIRST
for _letters, _classes in _LATIN.items():
    _CLASSES[0, [ord(_letters), ord(_letters.upper()) if _letters != "ß" else ord(_letters)]] = _classes
for _letters, _classes in _KATAKANA.items():
    for _letter in _letters:
        _CLASSES[1, ord(_letter) - FIRST] = _classes
CLASSES = _CLASSES


def heard_in(names: Texts, spans: np.ndarray, records: np.ndarray, others: Texts) -> np.ndarray:
    """Return how much each name sounds like a word, or two, of the other side, float32 (n,), 0 to 1.

    Katakana is compared with Latin letters. ``spans``, int64 (n, 2), are the places of names in their texts, first byte and
    one past the last; ``records``, int64 (n,), are the texts of ``others`` to search.
    """
    out, room = np.zeros(len(spans), np.float32), np.empty((3, MOST + 1), np.uint16)
    longest = int(np.diff(others.offsets)[records].max(initial=0))
    read = np.empty(longest, np.uint16), np.empty((longest, 3), np.int64)
    sounds_alike(names.frozen[0], spans, records, *others.frozen, CLASSES, room, *read, out)
    return out


@njit(**INNER)
def _read_character(data: np.ndarray, place: int, classes: np.ndarray) -> tuple[Any, Any, int]:
    """Return a character's code point (0 if of four bytes), its consonant classes (0 if none), and its length in bytes."""
    a = np.int64(data[place])
    if a < 0x80:
        return a, classes[0, a], 1
    if a < 0xE0:
        code = (a & 0x1F) << 6 | np.int64(data[place + 1]) & 0x3F
        return code, classes[0, code] if code < 0x100 else np.uint16(0), 2
    if a < 0xF0:
        code = (a & 0x0F) << 12 | (np.int64(data[place + 1]) & 0x3F) << 6 | np.int64(data[place + 2]) & 0x3F
        return code, classes[1, code - FIRST] if FIRST <= code <= LAST else np.uint16(0), 3
    return np.int64(0), np.uint16(0), 4


@njit(**INNER)
def _appended(out: np.ndarray, found: Any, own: Any, before: Any, code: Any) -> Any:
    """Append the classes of a consonant, unless it doubles a Latin letter; return how many there are then."""
    if own and found < len(out) and not (own == before and code < 0x80):
        out[found] = own
        return found + 1
    return found


@njit(**INNER)
def _consonants(data: np.ndarray, low: int, high: int, classes: np.ndarray, out: np.ndarray) -> Any:
    """Write the classes of a word's consonants, doubled ones once; return how many there are."""
    place, found, before = low, np.int64(0), np.uint16(0)
    while place < high:
        code, own, width = _read_character(data, place, classes)
        found = _appended(out, found, own, before, code)
        before = own
        place += width
    return found


@njit(**INNER)
def _read_words(
    data: np.ndarray, low: int, high: int, kana: Any, classes: np.ndarray, sounds: np.ndarray, words: np.ndarray
) -> Any:
    """Write the consonants of a text, doubled ones once, and where its words in Katakana, or in Latin letters, are.

    ``words`` receives for each word the offsets among ``sounds`` at which the previous word (or the text) starts, the word
    starts, and it ends. Returns how many words there are.
    """
    place, found, count = low, np.int64(0), np.int64(0)
    earlier, begun, before = np.int64(0), np.int64(-1), np.uint16(0)
    while place <= high:
        inside: Any = False
        own, code, width = np.uint16(0), np.int64(0), 1
        if place < high:
            code, own, width = _read_character(data, place, classes)
            if kana:
                inside = FIRST <= code <= LAST and code != 0x30FB
            else:
                inside = 0x41 <= (code & 0xDF) <= 0x5A if code < 0x80 else 0xC0 <= code <= 0xFF
        if inside and begun < 0:
            begun, before = found, np.uint16(0)
        if begun >= 0 and not inside:
            words[count, 0], words[count, 1], words[count, 2] = earlier, begun, found
            count, earlier, begun = count + 1, begun, np.int64(-1)
        found = _appended(sounds, found, own, before, code)
        before = own
        place += width
    return count


@njit(**INNER)
def _dice(n: int, word: np.ndarray, m: int, common: int) -> Any:
    """Return the Dice coefficient of ``common`` consonants; those of the word that may be silent count only if common."""
    heard = np.int64(0)
    for j in range(m):
        heard += not (word[j] & MAY_BE_SILENT)
    heard -= m > 1 and word[m - 1] == _S  # may be a plural
    return np.float32(2 * common) / np.float32(n + max(heard, common))


@njit(**INNER)
def _in_any_order(kana: np.ndarray, n: int, word: np.ndarray, m: int) -> Any:
    """Return an upper bound of the consonants in common, ignoring order."""
    classes, others, common, back = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        classes |= np.int64(kana[i])
    for j in range(m):
        others |= np.int64(word[j])
        common += (np.int64(word[j]) & classes & (MAY_BE_SILENT - 1)) > 0
    for i in range(n):
        back += (np.int64(kana[i]) & others & (MAY_BE_SILENT - 1)) > 0
    return min(common, back)


@njit(**INNER)
def _in_common(kana: np.ndarray, n: int, word: np.ndarray, m: int, least: Any, room: np.ndarray) -> Any:
    """Return the Dice coefficient of the consonants in the same order; below ``least``, an upper bound of it."""
    most = _dice(n, word, m, np.int64(min(n, m)))
    if most >= least:
        most = _dice(n, word, m, _in_any_order(kana, n, word, m))
    if most < least:
        return most
    for j in range(m + 1):
        room[0, j] = 0
    for i in range(n):
        here, above = room[(i + 1) & 1], room[i & 1]
        here[0] = 0
        for j in range(m):
            if kana[i] & word[j] & (MAY_BE_SILENT - 1):
                here[j + 1] = above[j] + 1
            else:
                here[j + 1] = max(above[j + 1], here[j])
    return _dice(n, word, m, np.int64(room[n & 1, m]))


@njit(**LEAN)
def sounds_alike(
    data: np.ndarray,
    spans: np.ndarray,
    records: np.ndarray,
    other: np.ndarray,
    offsets: np.ndarray,
    classes: np.ndarray,
    room: np.ndarray,
    sounds: np.ndarray,
    words: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the result of :func:`heard_in` to ``out``.

    ``room`` uint16 (3, MOST + 1), ``sounds`` uint16 (most,) and ``words`` int64 (most, 3) are workspace, ``most`` at least
    the bytes of the longest text.
    """
    count, last = np.int64(0), np.int64(-1)
    for name in range(len(spans)):
        out[name] = np.float32(0.0)
        low, high = spans[name]
        kana = data[low] == 0xE3
        n = _consonants(data, low, high, classes, room[0, :MOST])
        if n < 2:
            continue
        record = np.int64(records[name])
        if 2 * record + kana != last:
            count = _read_words(other, offsets[record], offsets[record + 1], not kana, classes, sounds, words)
            last = 2 * record + kana
        for word in range(count):
            for k in range(2):  # the word alone, and with the previous one
                first = words[word, 1 - k]
                m = min(words[word, 2] - first, MOST)
                if m < 2:
                    continue
                heard = sounds[first : first + m]
                if kana:
                    value = _in_common(room[0], n, heard, m, ALIKE[k], room[1:3])
                else:
                    value = _in_common(heard, m, room[0], n, ALIKE[k], room[1:3])
                if value >= ALIKE[k]:
                    sure = min(np.float32(1.0), _CONFIDENCE[0] * np.float32(min(n, m)) + _CONFIDENCE[1])
                    out[name] = max(out[name], min(value, sure))
