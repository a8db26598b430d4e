"""What the library knows of each language is right, and whole, or the language is named as one that does without."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest

from xswe.corpus.cards import sample_sentences
from xswe.text import languages
from xswe.text.detection import likely_language
from xswe.text.languages import LANGUAGES
from xswe.text.languages.language import Abbreviations, Language
from xswe.text.numbers import IN_WORDS, numbers_in_words
from xswe.text.scripts import in_script
from xswe.text.stopwords import own_stopwords, spaced_language

LISTS = ("frequent", "general", "leading", "joining", "pronouns", "homographs", "endings", "verb_endings")
SPACED = (*LISTS, "abbreviations")  # of languages with blanks between words
OTHERS = ("particles_before", "particles_after")  # of those without
# What the library goes without in a language, as the comments of `Language` and `Abbreviations` say, and of what it has a
# few words only: for each, what is then missing in its place, or why nothing is.
WITHOUT: dict[str, set[str]] = {"en": {"abbreviations.either"}}  # it ends no sentence that the library does not end


def test_every_file_of_a_language_is_in_the_table():
    files = {found.name for found in iter_modules(languages.__path__)} - {"language"}
    assert files == {language.name.lower() for language in LANGUAGES.values()}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_a_language_has_what_its_kind_needs_or_goes_without(language: Language):
    other = OTHERS if language.spaced else SPACED
    wanted = {own.name for own in fields(Language)} - {*other} - WITHOUT.get(language.code, set())
    missing = [name for name in sorted(wanted) if not getattr(language, name)]
    assert not missing, f"{language.name} has no {', '.join(missing)}: add them, or name them in WITHOUT"
    assert not any(getattr(language, name) for name in other)


def lists_of(language: Language) -> dict[str, frozenset[str]]:
    """Return all lists of words of a language, by the names of their fields."""
    found = {own.name: getattr(language, own.name) for own in fields(Language)}
    if language.abbreviations:
        found |= {f"abbreviations.{own.name}": getattr(language.abbreviations, own.name) for own in fields(Abbreviations)}
    return {name: words for name, words in found.items() if isinstance(words, frozenset)}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_no_list_is_a_beginning(language: Language):
    """A list that has not a third of the words that the shortest of a known language has is named in `WITHOUT`, too."""
    known = [lists_of(LANGUAGES[code]) for code in ("en", "de", "zh", "ja") if LANGUAGES[code].spaced == language.spaced]
    without = WITHOUT.get(language.code, set())
    if "abbreviations" in without:
        without = without | {f"abbreviations.{own.name}" for own in fields(Abbreviations)}
    for name, words in lists_of(language).items():
        least = min((len(own[name]) for own in known if own.get(name)), default=0)
        assert name in without or 3 * len(words) >= least, f"{name} has {len(words)} words: add more, or name it in WITHOUT"


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_its_lists_are_in_its_script_and_in_lower_case(language: Language):
    lists = {name: getattr(language, name) for name in ("boundary_stopwords", *LISTS, *OTHERS)}
    for name, words in lists.items():
        assert all(in_script(word, language.code) for word in words), name
        assert all(word == word.lower() for word in words), name
    if language.spaced:
        first = [character for character in language.example if character.isalpha()]
        assert all(unicodedata.name(character).startswith(language.script.upper()) for character in first)
    assert not language.example or in_script(language.example, language.code)
    assert language.homographs | language.joining <= language.boundary_stopwords


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_its_stopwords_tell_it(language: Language):
    if language.spaced and language.boundary_stopwords:
        words = sorted(language.boundary_stopwords)
        assert spaced_language(" ".join(words)) == language.code


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_its_frequent_words_are_neither_frequent_nor_stopwords_elsewhere(language: Language):
    others = [other for other in LANGUAGES.values() if other != language and other.spaced]
    shared = {other.code: language.frequent & (other.frequent | other.boundary_stopwords) for other in others}
    assert not any(shared.values()), (
        f"{shared}: such words tell neither language; leave them out of the lists of the one that is added"
    )


@pytest.mark.parametrize("code", ["en", "de"])
def test_words_that_tell_another_language_are_rare_in_the_sample(code):
    """``come`` and ``i`` of Italian would tell it of English sentences."""
    said = Counter(word for text in sample_sentences()[code] for word in {*text.casefold().split()})
    for other in LANGUAGES.values():
        if other.code != code and other.spaced:
            own = own_stopwords(tuple(LANGUAGES))[other.code] | other.frequent
            frequent = [word for word in sorted(own) if said[word] > 10]
            assert not frequent, f"{other.name} has {frequent}, also {code}: name them in homographs, not in frequent"


@pytest.mark.parametrize(("code", "by_stopwords", "by_frequent"), [("en", 1605, 1500), ("de", 1609, 1413)])
def test_sentences_of_the_sample_are_told_as_well_as_before(code, by_stopwords, by_frequent):
    texts = sample_sentences()[code]
    told = [[tell(text) for text in texts] for tell in (spaced_language, likely_language)]
    assert [len(one) - one.count(code) - one.count("") for one in told] == [0, 0]  # words of a new language that mislead
    fewer = 10 * (sum(language.spaced for language in LANGUAGES.values()) - 1)  # as another one has stopwords in common
    assert told[0].count(code) >= by_stopwords - fewer
    assert told[1].count(code) >= by_frequent - fewer


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_a_word_is_in_one_list_of_abbreviations_and_a_starter_begins_with_a_capital(language: Language):
    if (own := language.abbreviations) is not None:
        lists = [own.within, own.at_the_end, own.either, own.ordinary]
        assert len(frozenset[str]().union(*lists)) == sum(map(len, lists))
        assert all(word[0].isupper() for word in own.starters)


def test_no_starter_matches_the_beginning_of_a_longer_word():
    own = Abbreviations(*[frozenset[str]()] * 4, frozenset(("In", "Indeed")), frozenset())
    found = [own.starter.match(text) for text in ("In a", "Indeed, ", "Indium", "In-house")]
    assert [match and match[0] for match in found] == ["In", "Indeed", None, None]


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=list(LANGUAGES))
def test_its_codes_are_those_of_the_standards(language: Language):
    if (mteb := find_spec("mteb")) is None or mteb.origin is None:
        pytest.skip("mteb, whose tables of codes are read, is not installed")
    tables = Path(mteb.origin).parent / "languages"  # read, not imported: that takes seconds
    shorter, named, scripts = (
        json.loads((tables / name).read_text("utf-8"))
        for name in ("iso_639_1_to_3.json", "iso_639_3_to_language.json", "iso_15924_to_script.json")
    )
    code, script = language.bcp.split("-")
    assert (shorter[language.code], named[code]) == (code, language.name)
    assert language.script in scripts[script].casefold()
    assert language.name in named[language.iso3]


FIVE = {"en": "five", "de": "fünf", "zh": "五", "ja": "五"}


def test_each_language_whose_words_for_numbers_are_known_has_some():
    assert FIVE.keys() == IN_WORDS, "give its word for five here"
    assert [numbers_in_words(word) for word in FIVE.values()] == [{5}] * len(FIVE)
