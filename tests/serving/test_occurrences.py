"""Strings in passages: every occurrence that a plain comparison finds, whole words, forms and their counts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.io.ragged import Texts
from xswe.serving.occurrences import find_string
from xswe.text.borders import splits_word

TEXTS = [
    "Snow falls. SNOW, snow and snowfall!",
    "Der Schnee fällt; die Verspätung, viele Verspätungen.",
    "東京で雪が降る。ＳＮＯＷ　ＦＡＬＬＳ",
    "データベースのデータを消す",
    "",
    "The colour of snw is not the color of sno w.",
]


def found(string, approximate=False, texts=TEXTS, **how):
    settled = {"k": 20, "lines": 50, "threads": 1} | how
    return find_string(Texts.of(texts), string, approximate=approximate, **settled)


def shown(string, **how):
    return [(form.errors, form.times, form.spellings) for form in found(string, **how).forms]


@pytest.mark.parametrize(
    ("string", "forms"),
    [
        ("snow", [(0, 4, ("SNOW", "Snow", "snow", "ＳＮＯＷ"))]),
        ("snow  falls", [(0, 2, ("Snow falls", "ＳＮＯＷ\u3000ＦＡＬＬＳ"))]),
        ("snow*", [(0, 4, ("SNOW", "Snow", "snow", "ＳＮＯＷ")), (0, 1, ("snowfall",))]),
        ("verspätung", [(0, 1, ("Verspätung",))]),
        ("*spätung*", [(0, 1, ("Verspätung",)), (0, 1, ("Verspätungen",))]),
        ("雪", [(0, 1, ("雪",))]),
        ("データ", [(0, 1, ("データ",))]),  # that of データベース is a part of a word
        ("*", []),
        ("", []),
        ("snowman", []),
    ],
)
def test_a_string_is_found_in_any_case_and_width(string, forms):
    assert sorted(shown(string)) == sorted(forms)


def test_a_string_is_found_with_other_letters():
    assert shown("snow", approximate=True) == [
        (0, 4, ("SNOW", "Snow", "snow", "ＳＮＯＷ")),
        (1, 1, ("snw",)),
        (1, 1, ("sno",)),
    ]
    assert [form.spellings for form in found("colour", approximate=True).forms] == [("colour",), ("color",)]
    assert [form.spellings for form in found("Verspatung", approximate=True).forms] == [("Verspätung",)]


def test_places_are_characters_of_the_passage():
    for form in found("*snow*").forms:
        for place in form.places:
            text = TEXTS[place.row]
            assert text[place.start : place.end] in form.spellings
            assert not splits_word(text, place.start)
            assert not splits_word(text, place.end)


def test_only_wanted_passages_are_looked_at():
    rows = np.zeros(len(TEXTS), bool)
    rows[2] = True
    assert [form.places[0].row for form in found("snow", rows=rows).forms] == [2]
    assert found("snow", rows=rows, threads=2) == found("snow", rows=rows)


def distance(a, b):
    """The edit distance of two strings."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


WORDS = st.text("abc", min_size=1, max_size=7)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=12), st.text("abc", min_size=4, max_size=9))
def test_every_word_within_the_errors_is_found(words, query):
    text, most = " - - - ".join(words), len(query) // 4  # too far apart for two of them to be one occurrence
    expected = {word: distance(word, query) for word in words if distance(word, query) <= most}
    forms = found(query, approximate=True, texts=[text, text]).forms
    got = {form.spellings[0]: form for form in forms if re.fullmatch("[abc]+", form.spellings[0])}
    assert {word: form.errors for word, form in got.items()} == expected
    assert all(form.times == 2 * words.count(word) for word, form in got.items())
