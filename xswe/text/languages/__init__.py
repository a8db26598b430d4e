"""Languages: the table of known languages, one a module, and their codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from xswe.errors import ConfigError
from xswe.text.languages.chinese import CHINESE
from xswe.text.languages.english import ENGLISH
from xswe.text.languages.german import GERMAN
from xswe.text.languages.japanese import JAPANESE
from xswe.text.languages.language import Language

LANGUAGES: dict[str, Language] = {language.code: language for language in (ENGLISH, GERMAN, CHINESE, JAPANESE)}

# ISO 639-1 codes that are English words.
_ENGLISH_WORDS = ("am", "an", "as", "be", "do", "he", "hi", "id", "is", "it", "me", "my", "no", "or", "so", "to", "we")


def check_languages(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes as a tuple; raise ConfigError if there are none, or one is unknown or repeated."""
    codes = tuple(codes)
    known = ", ".join(f"{language.code} ({language.name})" for language in LANGUAGES.values())
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise ConfigError(f"unknown language {', '.join(map(repr, unknown))}: the known ones are {known}")
    if not codes or len(set(codes)) != len(codes):
        raise ConfigError(f"languages={list(codes)}: name at least one language, each once, of {known}")
    return codes


@lru_cache(maxsize=1024)
def languages_in_name(name: str) -> tuple[str, ...]:
    """Return the language codes in the name of a file.

    A code that is also an English word only counts after a period: ``do-it.txt`` is not Italian.

    Example:
        >>> languages_in_name("news.en-de.tsv.gz"), languages_in_name("manual.ja.txt"), languages_in_name("news.tsv")
        (('en', 'de'), ('ja',), ())
    """
    codes = "|".join(LANGUAGES)
    found = re.findall(rf"(?:^|([._-]))({codes})(?:-({codes}))?(?=[._]|$)", name)
    said = [(first, second) for before, first, second in found if second or before == "." or first not in _ENGLISH_WORDS]
    return tuple(filter(None, said[-1])) if said else ()


def base_language(code: str) -> str:
    """Return a code without its script or country: ``en`` of ``en-GB``, ``zh`` of ``zh-Hant``."""
    return code.replace("_", "-").split("-")[0].strip().lower()
