from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.io import ragged as bags_module
from xswe.io import ragged as texts_module
from xswe.io.ragged import (
    Bags,
    Texts,
    TextView,
    append_texts,
    bag_writer,
    concatenate_bags,
    joined,
    map_unfinished,
    text_writer,
)

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


blocks_of_lists = st.lists(st.lists(st.lists(st.integers(0, 255), max_size=4), max_size=4), max_size=5)


@settings(max_examples=15, deadline=None)
@given(blocks=blocks_of_lists, kept=st.integers(0, 5))
def test_what_is_written_block_by_block_is_what_was_given(tmp_path_factory, blocks, kept):
    """Also if some blocks were kept of a writer that was killed after more."""
    folder = tmp_path_factory.getbasetemp()
    rows = [row for block in blocks for row in block]
    texts = [Texts.of([bytes(row).decode("latin-1") for row in block]) for block in blocks]

    def write(state, some):
        writer = text_writer(folder, "t", state)
        states = [writer.state]
        for block in some:
            append_texts(writer, block)
            states.append(writer.state)
        return writer, states

    writer, states = write((0, 0), texts)
    writer.sync()
    assert states == [
        (sum(map(len, texts[:n])), sum(len(block.data) for block in texts[:n])) for n in range(len(texts) + 1)
    ]
    assert list(map_unfinished(folder, "t", states[-1])) == [text for block in texts for text in block]
    writer._values.abandon()
    writer._offsets.abandon()
    kept = min(kept, len(texts))
    with write(states[kept], texts[kept:])[0]:
        pass
    assert list(Texts.open(folder, "t")) == [text for block in texts for text in block]
    for units, kind in ((256, np.uint16), (1 << 16, np.uint16), ((1 << 16) + 1, np.int32)):
        with bag_writer(folder, "b", units) as writer:
            for block in blocks:
                bags = Bags.of([[9], *block])  # whose first offset is not 0
                writer.append(bags.ids[1:], bags.offsets[1:])
        opened = Bags.open(folder, "b")
        assert opened.ids.dtype == kind
        assert [opened.ids[a:b].tolist() for a, b in pairwise(opened.offsets.tolist())] == rows
        assert opened.counts(256).tolist() == [sum(row.count(one) for row in rows) for one in range(256)]


def test_a_writer_of_more_keeps_what_another_killed_one_left(tmp_path):
    with text_writer(tmp_path, "t") as writer:
        append_texts(writer, Texts.of(["a", "bc"]))
    for state, expected in (((2, 3), ["a", "bc", "d"]), ((1, 1), ["a", "d"]), ((0, 0), ["d"])):
        with text_writer(tmp_path, "t", state) as writer:
            append_texts(writer, Texts.of(["d"]))
        assert list(Texts.open(tmp_path, "t")) == expected
        with text_writer(tmp_path, "t") as writer:
            append_texts(writer, Texts.of(["a", "bc"]))


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8), st.data())
def test_bags_are_cut_and_chosen_by_rows(lists, data):
    bags = Bags.of(lists)
    assert bags.lengths.tolist() == [len(one) for one in lists]
    start = data.draw(st.integers(0, len(lists)))
    stop = data.draw(st.integers(start, len(lists) + 3))
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=5)) if lists else []
    for found, expected in (
        (bags.block(start, stop), lists[start:stop]),
        (bags.take(np.array(rows, np.int64)), [lists[row] for row in rows]),
        (concatenate_bags([bags, bags.block(start, stop)]), lists + lists[start:stop]),
    ):
        assert found.offsets[0] == 0
        assert [found.ids[a:b].tolist() for a, b in pairwise(found.offsets.tolist())] == expected
    assert concatenate_bags([bags]) is bags
    for nothing in (concatenate_bags([]), Bags.of([])):
        assert (nothing.ids.tolist(), nothing.offsets.tolist(), nothing.ids.dtype) == ([], [0], np.int32)
    assert texts_module.concatenate([]).data.tolist() == []
    assert bags.nbytes == 4 * len(bags.ids) + 8 * (len(lists) + 1)
