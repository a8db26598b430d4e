from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.io import ragged as bags_module
from xswe.io import ragged as texts_module
from xswe.io.ragged import Bags, Texts, TextView, joined

any_text = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(any_text, max_size=20))
def test_texts_give_back_what_they_were_made_of(strings):
    texts = Texts.of(strings)
    assert list(texts) == strings
    assert [texts[i] for i in range(len(texts))] == strings
    assert list(texts[1:-1]) == strings[1:-1]
    assert list(texts[::-2]) == strings[::-2]


@given(st.lists(any_text, min_size=1, max_size=20), st.data())
def test_take_and_concatenate(strings, data):
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=10))
    texts = Texts.of(strings)
    assert list(texts.take(np.array(rows, np.int64))) == [strings[r] for r in rows]
    assert list(texts_module.concatenate([texts[:3], texts, texts[2:]])) == strings[:3] + strings + strings[2:]


def test_a_lone_surrogate_becomes_a_question_mark():
    assert list(Texts.of(["a\ud800b"])) == ["a?b"]


def test_texts_survive_the_disk_memory_mapped(tmp_path):
    Texts.of(["a", "", "日本"]).save(tmp_path, "t")
    opened = Texts.open(tmp_path, "t")
    assert list(opened) == ["a", "", "日本"]
    assert isinstance(opened.data, np.memmap)


def test_an_index_out_of_range_raises():
    with pytest.raises(IndexError):
        Texts.of(["a"])[1]


@settings(max_examples=60)
@given(st.data())
def test_a_view_reads_like_texts(data):
    parts, expected = [], []
    for _ in range(data.draw(st.integers(1, 3))):
        strings = data.draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=12))
        rows = data.draw(st.none() | st.sets(st.integers(0, len(strings) - 1)) if strings else st.none())
        chosen = range(len(strings)) if rows is None else sorted(rows)
        parts.append((Texts.of(strings), None if rows is None else np.array(sorted(rows), np.int64)))
        expected += [strings[i] for i in chosen]
    view = TextView(parts)
    assert list(view) == expected
    assert len(view) == len(expected)
    a, b = sorted(data.draw(st.tuples(st.integers(0, 40), st.integers(0, 40))))
    assert list(view[a:b]) == expected[a:b]
    assert list(view[::2]) == expected[::2]
    if expected:
        rows = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=20))
        assert list(view.take(np.array(rows, np.int64))) == [expected[i] for i in rows]
        assert [view[i] for i in rows] == [expected[i] for i in rows]
        assert view[-1] == expected[-1]
    with pytest.raises(IndexError):
        view[len(expected)]
    assert list(joined([view, Texts.of(["x"])])) == [*expected, "x"]


lists_of_ids = st.lists(st.lists(st.integers(0, 50), max_size=8), max_size=12)


def as_lists(bags: Bags) -> list[list[int]]:
    return [bags.ids[a:b].tolist() for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]


@given(lists_of_ids)
def test_bags_round_trip_and_counts(lists):
    bags = Bags.of(lists)
    assert as_lists(bags) == lists
    assert bags.lengths.tolist() == [len(one) for one in lists]
    assert bags.counts(51).tolist() == [sum(one.count(i) for one in lists) for i in range(51)]


@given(lists_of_ids.filter(bool), st.data())
def test_bags_take_block_and_concatenate(lists, data):
    bags = Bags.of(lists)
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
    assert as_lists(bags.take(np.array(rows, np.int64))) == [lists[r] for r in rows]
    a = data.draw(st.integers(0, len(lists)))
    assert as_lists(bags.block(a, len(lists) + 5)) == lists[a:]
    joined = bags_module.concatenate_bags([bags.block(0, a), bags, bags.block(a, len(lists))])
    assert as_lists(joined) == lists[:a] + lists + lists[a:]


def test_bags_survive_the_disk(tmp_path):
    Bags.of([[1, 2], [], [3]]).save(tmp_path, "b")
    assert as_lists(Bags.open(tmp_path, "b")) == [[1, 2], [], [3]]
