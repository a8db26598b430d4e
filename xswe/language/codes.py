"""The languages the library knows, and what it knows of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from xswe.errors import ConfigError


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        code: ISO 639-1 code, the name used everywhere in the library.
        name: English name.
        script: ``latin`` words stand between spaces; ``han`` and ``kana`` runs need a segmenter.
        iso3: ISO 639-3 code, as Tatoeba's files name it (Mandarin is ``cmn`` there).
        bcp: the code that mteb uses.
    """

    code: str
    name: str
    script: Literal["latin", "han", "kana"]
    iso3: str
    bcp: str


LANGUAGES = {
    language.code: language
    for language in (
        Language("en", "English", "latin", "eng", "eng-Latn"),
        Language("de", "German", "latin", "deu", "deu-Latn"),
        Language("zh", "Chinese", "han", "cmn", "zho-Hans"),
        Language("ja", "Japanese", "kana", "jpn", "jpn-Jpan"),
    )
}


def check_languages(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes as a tuple.

    Raises:
        ConfigError: a code is unknown, named twice, or there is none; the message lists the known ones.
    """
    codes = tuple(codes)
    known = ", ".join(f"{language.code} ({language.name})" for language in LANGUAGES.values())
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise ConfigError(f"unknown language {', '.join(map(repr, unknown))}: the known ones are {known}")
    if not codes or len(set(codes)) != len(codes):
        raise ConfigError(f"languages={list(codes)}: name at least one language, each once, of {known}")
    return codes
