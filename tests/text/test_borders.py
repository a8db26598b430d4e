"""Where words begin and end within a text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.text.borders import opens_sentence, splits_word, whole_words, without_particles
from xswe.text.spans import words_at
from xswe.text.units import trim_span


def between(marked):
    """Return a text without its bars, and where these stood."""
    places = [place - k for k, place in enumerate(place for place, c in enumerate(marked) if c == "|")]
    return marked.replace("|", ""), places


@pytest.mark.parametrize(
    ("marked", "trimmed"),
    [
        ("a| cat |sleeps", "cat"),
        ("|  a cat\t\n|", "a cat"),
        ("a|cat|", "cat"),
        ("a|   |b", ""),
        ("cafe|e|\u0301\u0302 b", "e\u0301\u0302"),  # with the marks over it
        ("|é|\u0301", "é\u0301"),
        ("a||\u0301", ""),
    ],
)
def test_spans_are_trimmed(marked, trimmed):
    text, (start, end) = between(marked)
    start, end = trim_span(text, start, end)
    assert text[start:end] == trimmed


@pytest.mark.parametrize(
    ("marked", "whole"),
    [
        ("a h|ea|t pump", "heat"),
        ("a |heat| pump", "heat"),
        ("|hea|t", "heat"),
        ("ル|ーマニ|ア", "ルーマニア"),
        ("東|京都|に", "京都"),  # of Han, words are not seen
    ],
)
def test_spans_are_widened_to_whole_words(marked, whole):
    text, (start, end) = between(marked)
    start, end = whole_words(text, start, end)
    assert text[start:end] == whole
    assert not splits_word(text, start)
    assert not splits_word(text, end)


# What each character is part of: a spaced word, a word of Katakana; or it continues a word.
PARTS = {
    **dict.fromkeys("a1é", "s"),
    **dict.fromkeys("アｱ", "k"),
    **dict.fromkeys("ーｰ", "kc"),
    **dict.fromkeys("ゃ々", "c"),
}


@given(st.text("a1éアｱーｰゃ々人の・- ", max_size=8))
def test_no_two_letters_of_a_spaced_word_and_no_two_katakana_are_parted(text):
    for place in range(-1, len(text) + 2):
        inside = False
        if 0 < place < len(text):
            before, after = (PARTS.get(one, "") for one in text[place - 1 : place + 1])
            inside = bool({*before} & {*after} & {*"sk"}) or (before != "" and "c" in after)
        assert splits_word(text, place) == inside


@pytest.mark.parametrize(
    ("marked", "japanese", "core"),
    [
        ("|の銀行|", True, "銀行"),
        ("この|銀行を|見る", True, "銀行"),
        ("|は銀行の|", True, "銀行"),
        ("|銀行|", True, "銀行"),
        ("我|的银行|", False, "银行"),
        ("我的|银行的|", False, "银行"),
    ],
)
def test_particles_at_the_ends_are_left_out(marked, japanese, core):
    text, (start, end) = between(marked)
    start, end = without_particles(text, start, end, japanese)
    assert text[start:end] == core


def test_sentences_open_after_marks():
    opened = [place for place in range(9) if opens_sentence("A cat. It sleeps", place)]
    assert opened == [0, 1, 6, 7]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ("|a| |cat|", ["a", "cat"]),
        ("|a |cat| |", ["a", "cat"]),
        ("|he|at| |pump|s|", ["heat", "pumps"]),
        ("|heat|-|pump|", ["heat", "pump"]),
        ("|(heat|)|", ["heat"]),
        ("|heat-|pump|", ["heat", "pump"]),
        ("|don|'t|", ["don", "t"]),
        ("|東京|都|", ["東京", "都"]),
        ("|猫|dog|s|", ["猫", "dogs"]),
        ("|dog|猫|", ["dog", "猫"]),
        ("|e|\u0301|te|", ["e\u0301te"]),
        ("|cafe|\u0301|", ["cafe\u0301"]),
        ("|...| |!|", []),
        ("|x|2|", ["x2"]),
    ],
)
def test_tokens_are_grouped_into_words(tokens, words):
    text, places = between(tokens)
    starts, ends = np.array(places[:-1]), np.array(places[1:])
    found = words_at(text, starts, ends)
    assert [text[start:end] for _, _, start, end in found] == words
    for first, stop, start, end in found:  # of the tokens that it lies in
        assert starts[first] <= start < ends[first]
        assert starts[stop - 1] < end
