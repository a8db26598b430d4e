"""Strings in passages: every occurrence that a plain comparison finds, whole words, forms and their counts."""

from __future__ import annotations

import re
import unicodedata
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xswe.io.ragged import Texts
from xswe.serving import occurrences
from xswe.serving.occurrences import find_string, fold
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
    passages = Texts.of(texts)
    return find_string(passages, fold(passages), string, approximate=approximate, **settled)


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


@settings(max_examples=30)
@example(["baaaa"], "aaaa")  # with one more character at the start
@given(st.lists(WORDS, max_size=12), st.text("abc", min_size=4, max_size=9))
def test_every_word_within_the_errors_is_found(words, query):
    text, most = " - - - ".join(words), len(query) // 4  # too far apart for two of them to be one occurrence
    expected = {word: distance(word, query) for word in words if distance(word, query) <= most}
    forms = found(query, approximate=True, texts=[text, text]).forms
    got = {form.spellings[0]: form for form in forms if re.fullmatch("[abc]+", form.spellings[0])}
    assert {word: form.errors for word, form in got.items()} == expected
    assert all(form.times == 2 * words.count(word) for word, form in got.items())


def plainly(text, query):
    """Where a string stands in a text, one occurrence behind the other, by a comparison of each place."""
    folded = "".join(" " if one.isspace() else unicodedata.normalize("NFKC", one).casefold() for one in text)
    assert len(folded) == len(text)
    found, place = [], 0
    while place <= len(text) - len(query):
        end = place + len(query)
        whole = not splits_word(text, place) and not splits_word(text, end)
        if folded[place:end] == query and whole:
            found.append((place, end))
        place = end if found and found[-1] == (place, end) else place + 1
    return found


LETTERS = "abＡBKȺⱥé雪ア\u3000.-"  # of one to three bytes; some become longer or shorter


@settings(max_examples=30)
@given(st.lists(st.text(LETTERS, max_size=40), max_size=4), st.text("abk ⱥ雪ア", min_size=1, max_size=3), st.integers(1, 9))
def test_a_plain_comparison_finds_the_same(texts, query, size):
    if not query.strip() or query != " ".join(query.split()):
        return
    expected = [(row, *place) for row, text in enumerate(texts) for place in plainly(text, query)]
    with patch.object(occurrences, "_BLOCK_BYTES", size):  # so that occurrences cross block boundaries
        forms = found(query, texts=texts).forms
    assert sorted(place for form in forms for place in form.places) == expected
    assert {text for form in forms for text in form.spellings} == {texts[row][start:end] for row, start, end in expected}


def test_occurrences_come_from_all_of_the_passages():
    """So what is counted in them is not that of the first corpus alone."""
    (form,) = found("snow", texts=[f"Snow {number}" for number in range(100)], lines=5).forms
    assert form.times == 100
    assert [place.row for place in form.places] == [0, 24, 49, 74, 99]


def test_texts_are_folded_a_character_for_a_character():
    texts = ["ＳＮＯＷ\u3000Falls", "", "Ⱥ \N{KELVIN SIGN}m ß ﬁ", "ﾃﾞｰﾀ"]
    assert list(fold(Texts.of(texts))) == ["snow falls", "", "ⱥ km ß ﬁ", "テﾞータ"]


def test_more_occurrences_than_are_told_apart_are_said_to_be_more():
    with patch.object(occurrences, "_MAX_OCCURRENCES", 2):
        many = found("snow")
    assert (many.more, [form.times for form in many.forms]) == (True, [2])
    assert not found("snow").more
    assert not found("*").more


@settings(max_examples=40, deadline=None)
@given(
    text=st.text("abcé猫", min_size=2, max_size=7),
    sample=st.text("abcé猫", min_size=2, max_size=40),
    count=st.integers(1, 3),
)
def test_a_string_is_cut_into_the_rarest_pieces(text, sample, count):
    """By the estimate of a Markov chain, against all ways of cutting it."""
    count, own, data = min(count, len(text)), text.encode(), sample.encode()
    starts = np.cumsum([0, *(len(letter.encode()) for letter in text)])
    pairs = list(pairwise(data))

    def often(first, last):
        piece = own[starts[first] : starts[last]]
        estimate = data.count(piece[:1]) + 1.0
        for a, b in pairwise(piece):
            estimate *= (pairs.count((a, b)) + 1 / 256) / (data.count(bytes([a])) + 1.0)
        return estimate

    def total(borders):
        return sum(often(first, last) for first, last in pairwise(borders))

    found = occurrences._rare_pieces(np.frombuffer(own, np.uint8), starts, count, np.frombuffer(data, np.uint8)).tolist()
    ways = [(0, *cuts, len(text)) for cuts in combinations(range(1, len(text)), count - 1)]
    assert tuple(found) in ways
    assert total(found) == pytest.approx(min(map(total, ways)))
