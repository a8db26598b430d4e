"""Scripts: runs of characters of one kind within a text.

The script alone decides how characters are cut: Latin (and any other spaced) script into words, runs of Han and Kana by a
segmenter. With a model of both languages, Kana anywhere in a sentence makes its Han runs Japanese. There is no statistical
detector, so the decision is the same for a sentence alone and in a batch.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np

from xswe.text.languages import LANGUAGES

# Han: ideographs, their extensions, iteration and zero marks. Kana: both syllabaries, the length mark, half-width forms.
# The compatibility ideographs are escaped because an editor that normalises would replace them.
HAN_CHARACTERS = "々〇〻㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿｦ-ﾟ\U0001aff0-\U0001b16f"
CJK_CHARACTERS = HAN_CHARACTERS + _KANA  # the content of a character class, for any regular-expression engine
_CJK_RUN = re.compile(f"[{CJK_CHARACTERS}]+")
_AROUND_RUNS = re.compile(f"([{CJK_CHARACTERS}]+)")
_KANA_CHARACTER = re.compile(f"[{_KANA}]")
# ASCII punctuation, including characters that Unicode calls symbols but word tokenisers treat as punctuation.
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def cjk_runs(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each maximal run of Han and Kana characters."""
    return [match.span() for match in _CJK_RUN.finditer(text)]


def around_runs(text: str) -> list[str]:
    """Split a text at the boundaries of its runs of Han and Kana."""
    return [part for part in _AROUND_RUNS.split(text) if part]


def has_cjk(text: str) -> bool:
    """Return True if a text has any Han or Kana."""
    return _CJK_RUN.search(text) is not None


def has_kana(text: str) -> bool:
    """Return True if a text has any Kana."""
    return _KANA_CHARACTER.search(text) is not None


def in_script(text: str, language: str) -> bool:
    """Return True if at least half of a text's letters are in the script of its language."""
    if text.isascii():  # fast path for most texts
        return LANGUAGES[language].script.upper() == "LATIN" and any(map(str.isalpha, text))
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if LANGUAGES[language].spaced:
        letters, script = sum(map(str.isalpha, text)), LANGUAGES[language].script.upper()
        own = sum(c.isalpha() and unicodedata.name(c, "").startswith(script) for c in text)
        return letters > 0 and 2 * own >= letters
    if language == "zh" and has_kana(text):
        return False
    return cjk > 0 and 2 * cjk >= sum(map(str.isalpha, text))


@lru_cache(maxsize=1)
def kana_codes() -> np.ndarray:
    """Return whether each character code is Kana, bool (0x110000,)."""
    return _codes_of_script(_KANA_CHARACTER)


@lru_cache(maxsize=1)
def cjk_codes() -> np.ndarray:
    """Return whether each character code is Han or Kana, bool (0x110000,)."""
    return _codes_of_script(_CJK_RUN)


def _codes_of_script(wanted: re.Pattern[str]) -> np.ndarray:
    characters = "".join(" " if 0xD800 <= code < 0xE000 else chr(code) for code in range(0x40000))  # none beyond
    out = np.zeros(0x110000, bool)
    for match in wanted.finditer(characters):
        out[slice(*match.span())] = True
    return out


@lru_cache(maxsize=65536)
def is_punctuation(character: str) -> bool:
    """Return True if a character is punctuation: Unicode category P, or an ASCII symbol."""
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")
