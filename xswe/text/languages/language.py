"""Data of one language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


def word_set(text: str) -> frozenset[str]:
    """Return the set of words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Abbreviations:
    """Words that decide where a sentence ends: abbreviations with a period, by what follows, and first words of sentences.

    Only words that the sentence splitter does not know or treats otherwise are listed: words with a period within a
    sentence of real texts, and entries of dictionaries of abbreviations.
    """

    within: frozenset[str]  # titles, and words before a noun, a name or a number: the sentence continues
    at_the_end: frozenset[str]  # words that end a list: the sentence ends if a capital letter follows
    # units, legal forms and the like: the sentence ends if a typical first word follows
    either: frozenset[str]
    # words of four or more letters before numbers; after other words of this length, a number begins a sentence (shorter
    # ones belong in ``within``)
    before_numbers: frozenset[str]
    starters: frozenset[str]  # capitalised words, no nouns or names, that hardly ever occur within a sentence
    ordinary: frozenset[str]  # words that the library mistakes for abbreviations

    @cached_property
    def starter(self) -> re.Pattern[str]:
        """A pattern of typical first words of a sentence."""
        return re.compile(rf"(?:{'|'.join(sorted(self.starters, reverse=True))})(?![\w-])")


@dataclass(frozen=True)
class Language:
    """A language; codes and script suffice for training and encoding, and the word lists are optional."""

    code: str  # ISO 639-1 code, the name used everywhere in the library
    name: str  # English name
    # the Unicode name of its letters (``latin``, ``hangul``, ``cyrillic``) if words are separated by spaces; runs of
    # ``han`` and ``kana`` need a segmenter
    script: str
    iso3: str  # ISO 639-3 code, used by Tatoeba's files (``cmn`` for Mandarin)
    bcp: str  # code used by mteb
    example: str = ""  # a short sentence for model cards
    # function words with which no term begins or ends, in running text
    boundary_stopwords: frozenset[str] = frozenset()

    # for spaced languages
    frequent: frozenset[str] = frozenset()  # words in most sentences of this language and few of others
    # words of all kinds of text that are no terms by themselves: numbers, and words of time, quantity and certainty
    general: frozenset[str] = frozenset()
    # adjectives that refer to the text, numbers, and verbs of speech: no multi-word term begins with one
    leading: frozenset[str] = frozenset()
    # those of the function words that may stand within a term, as in ``Bank of England``
    joining: frozenset[str] = frozenset()
    # pronouns and the like: no term of a bitext begins or ends with one, either
    pronouns: frozenset[str] = frozenset()
    # those of the function words that are also words of other languages, so that they tell neither
    homographs: frozenset[str] = frozenset()
    # endings of words: those that differ in one of any language's are forms of one term; those of verbs only if used alike
    endings: frozenset[str] = frozenset()
    verb_endings: frozenset[str] = frozenset()
    abbreviations: Abbreviations | None = None

    # for other languages: particles to trim from the start and end of units such as ``の値``
    particles_before: frozenset[str] = frozenset()
    particles_after: frozenset[str] = frozenset()

    @property
    def codes(self) -> tuple[str, ...]:
        """Its codes in file names."""
        return self.code, self.iso3, self.bcp.split("-")[0]

    @property
    def spaced(self) -> bool:
        """True if its words are separated by spaces."""
        return self.script not in ("han", "kana")
