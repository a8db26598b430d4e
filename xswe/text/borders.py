"""Word boundaries in running text, and words that start a sentence.

In spaced scripts a run of letters and digits is a word, and so is a run of Katakana; no word begins with a small kana, a
long mark or an iteration mark. In Han and Hiragana any other place may be a boundary.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from xswe.text.scripts import cjk_codes
from xswe.text.stopwords import attached_particles

_SPACED, _KATAKANA, _CONTINUES = 1, 2, 4
_Traits = TypeVar("_Traits", int, np.ndarray)
_KATAKANA_CODES = ((0x30A1, 0x30FB), (0x30FC, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0))  # without the middle dot
_CONTINUING = "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮー々ゝゞヽヾｧｨｩｪｫｯｬｭｮｰ"
# Any word may be capitalised if one of these is among the two characters before it.
OPENING = frozenset("\n\r\t.!?:…。！？：•*-–—\"'“”„‚‘»«([（「『")


@lru_cache(maxsize=1)
def traits_of_characters() -> np.ndarray:
    """Return the traits of all characters for :func:`within_word`, uint8 (0x110000,)."""
    out, cjk = np.zeros(0x110000, np.uint8), cjk_codes()
    codes = (code for code in range(0x20000) if not cjk[code] and chr(code).isalnum())
    out[np.fromiter(codes, np.int64)] = _SPACED
    for first, last in _KATAKANA_CODES:
        out[first:last] = _KATAKANA
    out[[ord(character) for character in _CONTINUING]] |= _CONTINUES
    return out


def within_word(before: _Traits, after: _Traits) -> Any:
    """Return whether two adjacent characters are in one word, given their traits; 0 stands for no character."""
    return (before & after & (_SPACED | _KATAKANA) > 0) | ((before > 0) & (after & _CONTINUES > 0))


@lru_cache(maxsize=1 << 16)
def _trait(character: str) -> int:
    return int(traits_of_characters()[ord(character)])


def splits_word(text: str, place: int) -> bool:
    """Return True if a cut at a place of a text would split a word."""
    return 0 < place < len(text) and within_word(_trait(text[place - 1]), _trait(text[place]))


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span to whole words at both ends."""
    while splits_word(text, start):
        start -= 1
    while splits_word(text, end):
        end += 1
    return start, end


def without_particles(text: str, start: int, end: int, japanese: bool) -> tuple[int, int]:
    """Return a span without the Japanese or Chinese particles in the units at its ends."""
    before, after = attached_particles(japanese)
    if found := before.match(text[start:end]):
        start += found.end()
    if found := after.search(text[start:end]):
        end = start + found.start()
    return start, end


def opens_sentence(text: str, start: int) -> bool:
    """Return True if a place is at the start of a text, or follows a mark that ends sentences."""
    return start < 2 or not OPENING.isdisjoint(text[start - 2 : start])
