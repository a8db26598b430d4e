"""Texts cut into words of units, against plain lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xswe.text.spans import Cut, join_cuts

TEXTS = st.lists(st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=4), min_size=1, max_size=6)


def cut_of(texts: list[list[list[int]]]) -> Cut:
    words = [word for text in texts for word in text]
    ids = np.array([one for word in words for one in word], np.int32)
    ends = [np.cumsum([0, *map(len, parts)]).astype(np.int64) for parts in (words, texts)]
    return Cut(ids, *ends)


def lists_of(cut: Cut) -> list[list[list[int]]]:
    words = [cut.ids[a:b].tolist() for a, b in zip(cut.words[:-1], cut.words[1:], strict=True)]
    assert cut.words[0] == cut.texts[0] == 0
    assert (cut.words[-1], cut.texts[-1]) == (len(cut.ids), len(words))
    return [words[a:b] for a, b in zip(cut.texts[:-1], cut.texts[1:], strict=True)]


@given(TEXTS, TEXTS, st.data())
def test_texts_are_taken_joined_and_taken_apart(first, second, data):
    cut = cut_of(first)
    assert len(cut) == len(first)
    rows = data.draw(st.lists(st.integers(0, len(first) - 1), max_size=8))
    assert lists_of(cut.take(np.array(rows, np.int64))) == [first[row] for row in rows]
    for i, text in enumerate(first):
        assert lists_of(cut.text(i)) == [text]
        start, end = cut.bags.offsets[i : i + 2]
        assert cut.bags.ids[start:end].tolist() == [one for word in text for one in word]
    assert lists_of(join_cuts([cut, cut_of(second)])) == first + second
