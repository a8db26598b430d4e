"""Comparison of words in Katakana with words of the other side, by their consonants.

Katakana spells foreign words by ear: their consonants stay, in their order, with vowels between. So the consonants of both
are compared, each as a set of classes that its letter may stand for: ``c`` as in *cat* and as in *city*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.io.ragged import Texts

_K, _G, _S, _T, _D, _N, _M, _H, _B, _P, _R = (1 << place for place in range(11))
MAY_BE_SILENT = 1 << 11  # of a consonant, as r is in "river", and s at the end of a plural
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
MOST = 24  # consonants of a word
ALIKE = np.float32(0.7), np.float32(0.85)  # from this share in common on, with a word and with two
_SURE = np.float32(0.15), np.float32(0.3)  # how much a match says: so much a consonant, and so much at least
_CLASSES = np.zeros((2, 0x100), np.uint16)  # of Latin-1, and of Katakana from FIRST on
for _letters, _classes in _LATIN.items():
    _CLASSES[0, [ord(_letters), ord(_letters.upper()) if _letters != "ß" else ord(_letters)]] = _classes
for _letters, _classes in _KATAKANA.items():
    for _letter in _letters:
        _CLASSES[1, ord(_letter) - FIRST] = _classes
CLASSES = _CLASSES


def heard_in(names: Texts, spans: np.ndarray, records: np.ndarray, others: Texts) -> np.ndarray:
    """Return how much each name, float32 (n,), 0 to 1, sounds like a word or two of the other side, one in Katakana.

    ``spans``, int64 (n, 2), are where names stand in their texts: first byte and one past the last; ``records``, int64
    (n,), are the texts of ``others`` in which they are sought.
    """
    out, room = np.zeros(len(spans), np.float32), np.empty((5, MOST + 1), np.uint16)
    sounds_alike(names.frozen[0], spans, records, *others.frozen, CLASSES, room, out)
    return out


@njit(**INNER)
def _consonants(data: np.ndarray, low: int, high: int, classes: np.ndarray, out: np.ndarray, found: int) -> int:
    """Append the classes of the consonants of a word, doubled ones once; returns how many there are then."""
    place, before = low, np.uint16(0)
    while place < high:
        a = np.int64(data[place])
        own = np.uint16(0)
        if a < 0x80:
            own = classes[0, a]
            width = 1
        elif a < 0xE0:
            code = (a & 0x1F) << 6 | np.int64(data[place + 1]) & 0x3F
            own = classes[0, code] if code < 0x100 else np.uint16(0)
            width = 2
        elif a < 0xF0:
            code = (a & 0x0F) << 12 | (np.int64(data[place + 1]) & 0x3F) << 6 | np.int64(data[place + 2]) & 0x3F
            own = classes[1, code - FIRST] if FIRST <= code <= LAST else np.uint16(0)
            width = 3
        else:
            width = 4
        if own and found < len(out) and not (own == before and a < 0x80):
            out[found] = own
            found += 1
        before = own
        place += width
    return found


@njit(**INNER)
def _both(word: np.ndarray, m: int, common: int) -> Any:
    """Return the consonants of a word that count beside those it has in common."""
    heard = np.int64(0)
    for j in range(m):
        heard += not (word[j] & MAY_BE_SILENT)
    heard -= m > 1 and word[m - 1] == _S  # of a plural
    return max(heard, common)


@njit(**INNER)
def _at_most(kana: np.ndarray, n: int, word: np.ndarray, m: int) -> Any:
    """Return what :func:`_in_common` is at most: as if the order of consonants did not matter."""
    classes, others, common, back = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        classes |= np.int64(kana[i])
    for j in range(m):
        others |= np.int64(word[j])
        common += (np.int64(word[j]) & classes & (MAY_BE_SILENT - 1)) > 0
    for i in range(n):
        back += (np.int64(kana[i]) & others & (MAY_BE_SILENT - 1)) > 0
    common = min(common, back)
    return np.float32(2 * common) / np.float32(n + _both(word, m, common))


@njit(**INNER)
def _in_common(kana: np.ndarray, n: int, word: np.ndarray, m: int, least: Any, room: np.ndarray) -> Any:
    """Return the share of consonants that both have in the same order, of both (Dice), those that may be silent aside.

    Where it is surely below ``least`` that is returned which it is at most.
    """
    most = _at_most(kana, n, word, m)
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
    common = np.int64(room[n & 1, m])
    return np.float32(2 * common) / np.float32(n + _both(word, m, common))


@njit(**LEAN)
def sounds_alike(
    data: np.ndarray,
    spans: np.ndarray,
    records: np.ndarray,
    other: np.ndarray,
    offsets: np.ndarray,
    classes: np.ndarray,
    room: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill ``out`` as :func:`heard_in` says; ``room`` uint16 (5, MOST + 1) is workspace."""
    for name in range(len(spans)):
        out[name] = np.float32(0.0)
        low, high = spans[name]
        kana = data[low] == 0xE3
        n = _consonants(data, low, high, classes, room[0], np.int64(0))
        if n < 2:
            continue
        start, stop = offsets[records[name]], offsets[records[name] + 1]
        place, before = start, start  # of this word, and of the one before it
        begun = np.int64(-1)
        while place <= stop:
            inside: Any = False
            width = 1
            if place < stop:
                a = np.int64(other[place])
                width = 1 if a < 0x80 else 2 if a < 0xE0 else 3 if a < 0xF0 else 4
                if kana:
                    inside = 0x41 <= (a & 0xDF) <= 0x5A if width == 1 else a == 0xC3
                elif width == 3:
                    code = (a & 0x0F) << 12 | (np.int64(other[place + 1]) & 0x3F) << 6 | np.int64(other[place + 2]) & 0x3F
                    inside = FIRST <= code <= LAST and code != 0x30FB
            if inside and begun < 0:
                begun = place
            if begun >= 0 and not inside:
                m = _consonants(other, begun, place, classes, room[1], np.int64(0))
                both = _consonants(other, before, begun, classes, room[2], np.int64(0))
                both = _consonants(other, begun, place, classes, room[2], both)
                for k in range(2):
                    word, count = (room[1], m) if k == 0 else (room[2], both)
                    if count > 1:
                        first, second = (room[0], word) if kana else (word, room[0])
                        sizes = (n, count) if kana else (count, n)
                        value = _in_common(first, sizes[0], second, sizes[1], ALIKE[k], room[3:5])
                        sure = min(np.float32(1.0), _SURE[0] * np.float32(min(n, count)) + _SURE[1])
                        if value >= ALIKE[k]:
                            out[name] = max(out[name], min(value, sure))
                before, begun = begun, np.int64(-1)
            place += width
