"""Function words with which no term begins or ends."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import Literal

from xswe.text.languages import LANGUAGES
from xswe.text.languages.language import word_set


@cache
def word_list(
    language: str, name: Literal["boundary_stopwords", "general", "leading", "joining", "pronouns"]
) -> frozenset[str]:
    """Return a list of a language's words, with those of English if the script is not Latin: such texts quote English."""
    codes = (language,) if LANGUAGES[language].script == "latin" else (language, "en")
    return frozenset[str]().union(*(getattr(LANGUAGES[code], name) for code in codes))


def passage_stopwords(text: str, japanese: bool, languages: Collection[str] = LANGUAGES) -> frozenset[str]:
    """Return the boundary stopwords of a passage: of Japanese or Chinese, and of the spaced language that it is in.

    On a tie they are those of all spaced languages among ``languages``, and of English, which any text may quote.
    """
    likely = spaced_language(text, languages)
    return _boundary_stopwords("ja" if japanese else "zh", *([likely] if likely else own_stopwords(tuple(languages))))


@lru_cache(maxsize=16)
def _boundary_stopwords(*languages: str) -> frozenset[str]:
    return frozenset[str]().union(*(LANGUAGES[code].boundary_stopwords for code in languages))


def spaced_language(text: str, languages: Collection[str] = LANGUAGES) -> str:
    """Return the spaced language with the most stopwords in a text, not counting shared ones; empty on a tie."""
    words = text.casefold().split()
    counts = {code: sum(word in own for word in words) for code, own in own_stopwords(tuple(languages)).items()}
    most = max(counts.values())
    first, *others = (code for code, count in counts.items() if count == most)
    return "" if others else first


@cache
def own_stopwords(languages: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return the stopwords that tell each spaced language among ``languages``, and English, from the others."""
    known = [language for code, language in LANGUAGES.items() if language.spaced and (code in languages or code == "en")]
    return {
        one.code: one.boundary_stopwords.difference(
            one.homographs, *(other.boundary_stopwords for other in known if other != one)
        )
        for one in known
    }


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
