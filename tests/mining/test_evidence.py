"""What a report of mining shows of hubs and of lines that choose each other, worked out by hand."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from xswe.corpus.near_duplicates import NearDuplicates, sketches
from xswe.io.ragged import Texts
from xswe.mining.evidence import _HUBS, _hubs, _reciprocity, evidence_of
from xswe.mining.hard_rules import FilterConfig, Traits
from xswe.mining.margin import Pairs
from xswe.mining.side import Side
from xswe.search.lists import Neighbours
from xswe.search.vectors import Vectors


def lists(forward, backward):
    forward, backward = np.array(forward, np.int32), np.array(backward, np.int32)
    return Neighbours(forward.astype(np.float32), forward, backward.astype(np.float32), backward)


def test_lines_are_counted_by_how_many_have_them_among_their_nearest():
    ids = np.array([[0, 1], [0, 2], [0, -1], [0, 1], [0, 3]])
    found = _hubs("target", ids, 6, None)
    times = [5, 2, 1, 1, 0, 0]
    assert found.chosen == (2, 2, 1, 0, 0, 1, 0, 0, 0)  # up to four times as often as there are neighbours
    assert [count for count, _ in found.lines] == [5, 2, 1, 1]
    deviation = (sum((n - 1.5) ** 2 for n in times) / 6) ** 0.5
    assert found.skewness == pytest.approx(sum((n - 1.5) ** 3 for n in times) / 6 / deviation**3)
    many = _hubs("source", np.zeros((30, 1), np.int64), 20, None)
    assert (many.chosen, many.side) == ((19, 0, 0, 0, 1), "source")
    assert _hubs("source", np.arange(20)[:, None], 20, None).skewness == 0.0
    assert len(_hubs("source", np.arange(20)[:, None], 20, None).lines) == _HUBS
    assert _hubs("source", np.zeros((0, 2), np.int64), 0, None).chosen == (0,) * 9


def test_the_share_of_lines_that_choose_each_other():
    assert _reciprocity(lists([[0], [1], [1]], [[0], [2]])) == pytest.approx(2 / 3)
    assert _reciprocity(lists([[0], [-1], [1]], [[2], [2]])) == pytest.approx(1 / 2)  # of those that have a nearest
    assert _reciprocity(lists([[-1], [-1]], [[0], [1]])) is None
    assert _reciprocity(lists(np.zeros((0, 1)), [[0]])) is None
    assert _reciprocity(lists([[0]], np.zeros((0, 1)))) is None


def test_pairs_of_vectors_are_shown_by_their_numbers():
    pairs = Pairs(
        np.array([0.9, 0.8, 0.2], np.float32), np.array([0, 1, 2]), np.array([1, 0, 1]), np.array([0, 0, 1], np.int8)
    )
    found = evidence_of(pairs, 0.5, None, lists([[1], [0], [1]], [[1], [0]]), FilterConfig())
    assert found.scores.tolist() == pytest.approx([0.9, 0.8, 0.2])
    assert [(hub.side, hub.chosen) for hub in found.hubs] == [("target", (0, 1, 1, 0, 0)), ("source", (1, 2, 0, 0, 0))]
    assert (found.removed, found.reciprocity) == ((), pytest.approx(2 / 3))
    shown = {one[:1] + one[2:] for group in found.groups for one in group.pairs}
    assert shown == {(0, "", "", "0", "1"), (1, "", "", "1", "0"), (2, "", "", "2", "1")}


def mined_side(texts, dropped=None, examples=None, ids=None):
    traits = Traits(
        np.array([len(text.encode()) for text in texts]),
        np.array([zlib.crc32(text.casefold().encode()) for text in texts], np.uint64),
        np.zeros(0, np.uint64),
        texts,
    )
    numbers, vectors = np.arange(1, len(texts) + 1), Vectors(np.eye(len(texts), dtype=np.float32))
    own = None if ids is None else Texts.of(ids)
    return Side(Texts.of(texts), numbers, own, vectors, traits, len(texts), dropped or {}, examples or {})


def test_what_was_left_out_is_shown_by_reason_and_side():
    left = mined_side(["Same", "b", "c" * 40], {"too short": 3, "empty": 1}, {"too short": ["x", "y"]})
    right = mined_side(["same", "bb", "d"], {"empty": 2}, ids=["i", "j", "k"])
    found = lists([[0, 1], [1, -1], [2, 1]], [[0], [1], [2]])
    pairs = Pairs(np.array([0.9], np.float32), np.array([2]), np.array([1]), np.array([0], np.int8))
    rules = FilterConfig(identical=True, length_ratio=3.0, numbers=False)
    told = evidence_of(pairs, 0.5, None, found, rules, (left, right))
    assert [(one.reason, one.side, one.count, one.examples) for one in told.removed] == [
        ("empty", "source", 1, ()),
        ("too short", "source", 3, (("x",), ("y",))),
        ("empty", "target", 2, ()),
        ("identical sides", "candidates", 1, (("Same", "same"),)),
        ("length ratio", "candidates", 2, (("c" * 40, "d"), ("c" * 40, "bb"))),
    ]
    assert {one[2:] for group in told.groups for one in group.pairs} == {("c" * 40, "bb", "3", "j")}
    assert [hub.lines[0] for hub in told.hubs] == [(3, "bb"), (1, "Same")]
    alone = evidence_of(pairs, 0.5, None, found, rules, (left, left))
    assert [one.side for one in alone.hubs] == ["target"]
    assert {one.side for one in alone.removed} == {"lines", "candidates"}


def test_near_duplicates_are_counted_among_the_first_lines():
    text = "The quick brown fox jumps over the lazy dog beside the river number "
    lines = [f"{text}{n}" for n in (1, 2)] + ["Something else entirely was written here, and at length."]
    counted = NearDuplicates(most=4)
    counted.add(Texts.of(lines))
    assert (counted.lines, counted.repeated, counted.share) == (3, 1, pytest.approx(1 / 3))
    counted.add(Texts.of(lines))  # of which only one more is looked at
    assert (counted.lines, counted.repeated) == (4, 2)
    counted.add(Texts.of(lines))
    assert (counted.lines, counted.repeated) == (4, 2)
    assert NearDuplicates().share == 0.0
    pairs = NearDuplicates()
    pairs.add(Texts.of([lines[0], lines[0], lines[0]]), Texts.of([lines[0], lines[2], lines[1]]))  # both sides must repeat
    assert (pairs.lines, pairs.repeated) == (3, 1)
    assert sketches(Texts.of(lines), bands=3, rows=2).shape == (3, 3)
