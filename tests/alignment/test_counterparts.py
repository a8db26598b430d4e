"""Where the translation of a span stands, by the links of its words."""

from __future__ import annotations

from itertools import pairwise

import pytest

from xswe.alignment.words import LinkedPair


def linked(source, target, links, scores=None):
    """A pair whose words are those between blanks."""
    places = []
    for text in (source, target):
        ends = [0]
        for word in text.split(" "):
            ends.append(ends[-1] + len(word) + 1)
        places.append(tuple((a, b - 1) for a, b in pairwise(ends)))
    return LinkedPair(source, target, *places, tuple(links), tuple(scores or [1.0] * len(links)))


@pytest.mark.parametrize(
    ("span", "found"),
    [
        ((0, 1), "X"),
        ((2, 3), "Y"),  # the words beside, which it only touches, are not in it
        ((1, 2), None),  # a blank
        ((1, 3), "Y"),
        ((0, 3), "X Y"),
        ((2, 5), "Y Z"),
        ((3, 5), "Z"),
        ((6, 7), None),  # a word without a link
    ],
)
def test_a_span_has_the_translations_of_its_words(span, found):
    pair = linked("a b c d", "X Y Z", [(0, 0), (1, 1), (2, 2)])
    place = pair.counterpart(*span)
    assert (None if place is None else pair.target[slice(*place)]) == found


@pytest.mark.parametrize(
    ("links", "scores", "found"),
    [
        ([(0, 0), (0, 2)], [0.5, 0.5], "A B C"),  # over one word between
        ([(0, 0), (0, 3)], [0.5, 0.6], "D"),  # over two they are apart, and the better one is it
        ([(0, 0), (0, 3)], [0.6, 0.5], "A"),
        ([(0, 0), (0, 1), (0, 4)], [0.3, 0.3, 0.5], "A B"),  # a run counts with all of its links
    ],
)
def test_of_words_that_stand_apart_the_best_run_is_taken(links, scores, found):
    pair = linked("a", "A B C D E", links, scores)
    assert pair.target[slice(*pair.counterpart(0, 1))] == found


def test_the_links_as_words():
    assert linked("a b", "X Y", [(0, 1), (1, 0)]).linked == [("a", "Y"), ("b", "X")]
