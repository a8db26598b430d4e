"""What the library knows of one language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, a set."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Abbreviations:
    """Words that decide where a sentence ends: abbreviations with a period, by what follows, and first words of sentences.

    Only what the library that cuts sentences does not know, or takes otherwise, is listed: collected from real texts, as
    words with a period within a sentence, and from dictionaries of abbreviations.
    """

    within: frozenset[str]  # titles, and what stands before a noun, a name or a number: the sentence goes on
    at_the_end: frozenset[str]  # what ends a list: a sentence ends with it where a capital letter follows
    # units, legal forms and the like: a sentence ends with them where a word follows that sentences begin with
    either: frozenset[str]
    # of four letters and more, with numbers behind them; other words as long end a sentence where a number follows
    before_numbers: frozenset[str]
    starters: frozenset[str]  # words with a capital letter, no nouns or names, that are hardly ever within a sentence
    ordinary: frozenset[str]  # words that the library takes for abbreviations, and that are none

    @cached_property
    def starter(self) -> re.Pattern[str]:
        """The pattern of a word that sentences begin with."""
        return re.compile(rf"(?:{'|'.join(sorted(self.starters, reverse=True))})(?![\w-])")


@dataclass(frozen=True)
class Language:
    """One language; with its codes and script alone it trains and encodes, and what its words are for goes without."""

    code: str  # ISO 639-1 code, the name used everywhere in the library
    name: str  # English name
    # as Unicode names its letters (``latin``, ``hangul``, ``cyrillic``) where words stand between blanks; runs of
    # ``han`` and ``kana`` need a segmenter
    script: str
    iso3: str  # ISO 639-3 code, as Tatoeba's files name it (Mandarin is ``cmn`` there)
    bcp: str  # the code that mteb uses
    example: str = ""  # a short sentence, on cards of models
    # words that no term begins or ends with: what stands at the rim of a term's span in running text, nothing that itself
    # is a term
    boundary_stopwords: frozenset[str] = frozenset()

    # where words stand between blanks
    frequent: frozenset[str] = frozenset()  # words that most sentences have one of, and few of another language do
    # words of all texts that are no term by themselves: numbers, and what says when, how much, whether, how surely
    general: frozenset[str] = frozenset()
    # adjectives that point to something in the text, numbers, and verbs of speech: no term of several words begins so
    leading: frozenset[str] = frozenset()
    abbreviations: Abbreviations | None = None

    # where they do not: what is cut off a unit such as ``の値``, before and after it, where Han, Katakana or Latin letters
    # remain
    particles_before: frozenset[str] = frozenset()
    particles_after: frozenset[str] = frozenset()

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes by which the names of files tell it."""
        return self.code, self.iso3, self.bcp.split("-")[0]

    @property
    def spaced(self) -> bool:
        """True if its words are separated by blanks."""
        return self.script not in ("han", "kana")
