"""Function words with which no term begins or ends."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from xswe.text.languages import LANGUAGES
from xswe.text.languages.language import word_set

GENERAL_WORDS = frozenset[str]().union(*(language.general for language in LANGUAGES.values()))
LEADING_WORDS = frozenset[str]().union(*(language.leading for language in LANGUAGES.values()))


@lru_cache(maxsize=16)
def boundary_stopwords(japanese: bool, spaced: str = "") -> frozenset[str]:
    """Return the boundary stopwords of Japanese or Chinese, and of all spaced languages or the given one."""
    codes = ("ja" if japanese else "zh", *([spaced] if spaced else _spaced()))
    return frozenset[str]().union(*(LANGUAGES[code].boundary_stopwords for code in codes))


def spaced_language(text: str) -> str:
    """Return the spaced language with the most stopwords in a text, not counting shared ones; empty on a tie."""
    words = text.casefold().split()
    counts = {code: sum(word in own for word in words) for code, own in _own().items()}
    most = max(counts.values())
    first, *others = (code for code, count in counts.items() if count == most)
    return "" if others else first


# Stopwords of one language that are also words of another prove nothing.
_HOMOGRAPHS = frozenset(("den", "hat", "man", "not", "war", "was", "will"))


def _spaced() -> list[str]:
    return [code for code, language in LANGUAGES.items() if language.spaced]


@cache
def _own() -> dict[str, frozenset[str]]:
    """Return the stopwords of each spaced language that no other one has."""
    sets = {code: LANGUAGES[code].boundary_stopwords for code in _spaced()}
    others = {code: _HOMOGRAPHS.union(*(words for other, words in sets.items() if other != code)) for code in sets}
    return {code: words - others[code] for code, words in sets.items()}


@lru_cache(maxsize=2)
def attached_particles(japanese: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of the particles at the start and end of a run of Han and Kana, longest first.

    A Japanese particle does not match beside Hiragana, because it may be part of the same word.
    """
    own = LANGUAGES["ja" if japanese else "zh"]
    before, after = (
        "|".join(sorted(words, key=lambda word: (-len(word), word)))
        for words in (own.particles_before, own.particles_after)
    )
    if japanese:
        return re.compile(rf"(?:{before})(?=[^ぁ-ゖ])"), re.compile(rf"(?<=[^ぁ-ゖ])(?:{after})$")
    return re.compile(f"(?:{before})(?=.)"), re.compile(f"(?<=.)(?:{after})$")


# Words that only look as if they had a particle.
_WHOLE = word_set("""
    特に 最も 既に 主に 更に 単に 遂に 常に 次に 共に 実に 誠に 故に 主な 大した
    決して 概して この頃 各地 各国 各種 各自 各位 対する 関する 称する 達する 愛する 我が
""")


def has_particle(text: str) -> bool:
    """Return True if a Japanese run is a word with particles before or after it."""
    before, after = attached_particles(True)
    return text not in _WHOLE and (before.match(text) or after.search(text)) is not None
