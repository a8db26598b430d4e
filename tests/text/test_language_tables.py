"""A language is in every table of the library that goes by languages, or the table says that it does without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import pytest

from xswe.corpus.cards import SAMPLE_COLUMNS
from xswe.mining.verdicts import _LEARNT
from xswe.model.card import _CAT
from xswe.report.space import _TAGGERS
from xswe.serving.messages import Language as Asked
from xswe.text.abbreviations import AT_THE_END, BEFORE_NUMBERS, EITHER, STARTERS, WITHIN
from xswe.text.boundaries import _TAKEN
from xswe.text.detection import _FREQUENT
from xswe.text.languages import LANGUAGES
from xswe.text.numbers import IN_WORDS, numbers_in_words
from xswe.text.stopwords import ATTACHED_PARTICLES, BOUNDARY_STOPWORDS, GENERAL_BY_LANGUAGE, LEADING_BY_LANGUAGE
from xswe.training.units_stage import SHIPPED

SPACED = {code for code, language in LANGUAGES.items() if language.spaced}
# The languages of each table, those that it should have, and those that do without, in which case the library says so or
# falls back on what all languages have. A language that is added goes into the table, or here among the latter.
TABLES: dict[str, tuple[Iterable[str], Iterable[str], set[str]]] = {
    "serving/messages.py Language": (get_args(Asked), LANGUAGES, set()),
    "text/detection.py _FREQUENT": (_FREQUENT, SPACED, set()),
    "text/stopwords.py BOUNDARY_STOPWORDS": (BOUNDARY_STOPWORDS, LANGUAGES, set()),
    "text/stopwords.py GENERAL_BY_LANGUAGE": (GENERAL_BY_LANGUAGE, SPACED, set()),
    "text/stopwords.py LEADING_BY_LANGUAGE": (LEADING_BY_LANGUAGE, SPACED, set()),
    "text/stopwords.py ATTACHED_PARTICLES": (ATTACHED_PARTICLES, LANGUAGES.keys() - SPACED, set()),
    "text/numbers.py IN_WORDS": (IN_WORDS, LANGUAGES, set()),
    "text/abbreviations.py WITHIN": (WITHIN.keys() - {""}, SPACED, set()),
    "text/abbreviations.py AT_THE_END": (AT_THE_END, SPACED, set()),
    "text/abbreviations.py EITHER": (EITHER, SPACED, set()),
    "text/abbreviations.py BEFORE_NUMBERS": (BEFORE_NUMBERS, SPACED, set()),
    "text/abbreviations.py STARTERS": (STARTERS, SPACED, set()),
    "text/boundaries.py _TAKEN": (_TAKEN, SPACED, set()),
    "model/card.py _CAT": (_CAT, LANGUAGES, set()),
    "report/space.py _TAGGERS": (_TAGGERS, LANGUAGES, set()),
    "mining/verdicts.py _LEARNT (examples to learn from)": (_LEARNT, LANGUAGES, set()),
    "training/units_stage.py SHIPPED (the models that ship)": (SHIPPED, LANGUAGES, set()),
    "corpora/sample (its columns)": (SAMPLE_COLUMNS, LANGUAGES, set()),
}


@pytest.mark.parametrize("place", TABLES)
def test_every_language_is_in_the_table_or_does_without(place):
    there, wanted, without = TABLES[place]
    missing = {*wanted} - {*there} - without
    assert not missing, f"xswe/{place} has nothing of {', '.join(sorted(missing))}: add it, or name it here as one without"


@pytest.mark.parametrize("place", TABLES)
def test_no_table_has_a_language_that_is_none(place):
    there, _, without = TABLES[place]
    assert {*there} <= {*LANGUAGES}
    assert not {*there} & without


def test_a_language_with_a_part_of_the_rules_of_sentences_has_all():
    rules = {name: {*there} for name, (there, *_) in TABLES.items() if name.startswith(("text/abbrev", "text/bound"))}
    assert len(rules) == 6
    every = set().union(*rules.values())
    missing = [f"xswe/{name}: {', '.join(sorted(every - there))}" for name, there in rules.items() if every - there]
    assert not missing, f"sentences are cut by all of these tables or by none; add {'; '.join(missing)}"


FIVE = {"en": "five", "de": "fünf", "zh": "五", "ja": "五"}


def test_each_language_whose_words_for_numbers_are_known_has_some():
    assert FIVE.keys() == IN_WORDS, "give its word for five here"
    assert [numbers_in_words(word) for word in FIVE.values()] == [{5}] * len(FIVE)
