"""What aligned texts say of themselves, and how beads become gaps: on beads that are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import xswe
from xswe.alignment.beads import AlignConfig, Prices
from xswe.alignment.corrections import Corrections, Said
from xswe.alignment.formats import Manner
from xswe.alignment.moved import Moved
from xswe.alignment.sentences import AlignedTexts, _Kept, _sequence, _threshold, _warn_of_swapped, _without
from xswe.corpus import near_duplicates
from xswe.io.ragged import Texts
from xswe.mining.threshold import Threshold, estimate_from_decoys

SOURCE, TARGET = Texts.of(["a", "b", "c", "d", "e"]), Texts.of(["A", "B", "C", "D"])
SPANS = np.array([(0, 2, 0, 1), (2, 3, 1, 1), (3, 4, 3, 4), (4, 4, 1, 2), (4, 5, 2, 3)])
SCORES = np.array([0.75, 0, 0.5, 0, 1], np.float32)


def aligned(**more):
    given = {
        **{"cells": np.zeros((2, 2), np.int64), "spans": SPANS, "scores": SCORES, "source": SOURCE, "target": TARGET},
        **{"fixed": np.array([1, 0, 0, 0, 1], bool), "moved": np.array([0, 0, 1, 0, 0], bool), "seconds": 2.0},
        **{"prices": Prices(0.0, 1.0), **more},
    }
    return AlignedTexts(**given)


def test_beads_have_texts_lines_and_a_status():
    found = aligned()
    assert [tuple(bead) for bead in found] == [
        (0.75, "a b", "A", (0, 1), (0,), "right", ""),
        (0.0, "c", "", (2,), (), "", ""),
        (0.5, "d", "D", (3,), (3,), "moved", ""),
        (0.0, "", "B", (), (1,), "", ""),
        (1.0, "e", "C", (4,), (2,), "right", ""),
    ]
    assert list(found.records())[:2] == [(0.75, "a b", "A", "0,1", "0", "right", ""), (0.0, "c", "", "2", "", "", "")]
    assert [bead.source for bead in found.pairs] == ["a b", "d", "e"]
    assert (found.is_pair.tolist(), found.coverage) == ([True, False, True, False, True], (0.8, 0.75))
    assert [(bead.score, bead.source_lines) for bead in found.written()] == [
        *((0.75, (0, 1)), (None, (2,)), (0.5, (3,)), (None, ()), (1.0, (4,)))
    ]
    nothing = Texts.of([])
    empty = aligned(spans=np.zeros((0, 4), np.int64), scores=SCORES[:0], source=nothing, target=nothing)
    assert (list(empty), empty.coverage) == ([], (0.0, 0.0))


def test_what_a_person_said_of_a_bead_stands_in_the_place_of_its_lines():
    said = {((0, 1), (0,)): (Said("x", "X", "one"), Said("y", "", "two")), ((2,), ()): (Said("c", "new"),)}
    found = aligned(said=said)
    assert tuple(found[0]) == (0.75, "x y", "X", (0, 1), (0,), "right", "one two")
    assert found[1][1:3] == ("c", "new")
    assert [(one.source, one.target, one.notes, one.score) for one in found.written()][:3] == [
        ("x", "X", "one", 0.75),
        ("y", "", "two", 0.75),
        ("c", "new", "", None),
    ]


def test_a_summary_has_lines_beads_and_what_was_left_out():
    found = aligned()
    assert repr(found) == "AlignedTexts(5 and 4 lines, 2 of 1:1, 1 of 0:1, 1 of 1:0, 1 of 2:1)"
    more = aligned(spans=np.array([*SPANS[:2], *SPANS[2:4], (4, 5, 2, 4), (4, 5, 2, 3)]))
    assert repr(more) == "AlignedTexts(5 and 4 lines, 2 of 1:1, 1 of 0:1, 1 of 1:0, 1 of 1:2)"  # the four most frequent
    said = "5 and 4 lines, 3 beads with 80.0 % and 75.0 % of them, 1 of them out of order, "
    assert found.summary().startswith(said)
    assert found.summary().endswith(", 2.0 s, 4 lines/s; near-duplicates of earlier beads: none")
    assert found.left_out == {}
    more = aligned(
        moved=np.zeros(5, bool), changes="1 rejected", manner=Manner(gaps=False), threshold=Threshold(0.5, "given")
    )
    assert more.left_out == {"lines without a counterpart": 2}
    told = more.summary()
    assert told.startswith(f"5 and 4 lines, 3 beads with 80.0 % and 75.0 % of them, {more.threshold.sentence()}, ")
    left_out = "; corrections: 1 rejected; left out: 2 lines without a counterpart"
    assert told.endswith(f"{left_out}; near-duplicates of earlier beads: none")


def test_near_duplicates_are_counted_among_beads(monkeypatch):
    """Gaps are not counted, nor beads after the first ones."""
    lines = [f"The train number {n} is late again today." for n in (1, 2, 2, 3)]
    spans = np.array([(0, 1, 0, 1), (1, 2, 1, 1), (2, 3, 1, 2), (3, 4, 2, 3), (4, 5, 3, 4)])
    found = aligned(spans=spans, source=Texts.of([*lines, "No."]), target=Texts.of([*lines[1:], "Nein."]))
    assert found.near == pytest.approx(2 / 4)
    assert found.summary().endswith("; near-duplicates of earlier beads: 50 %")
    monkeypatch.setattr(near_duplicates, "_KEPT_SAMPLE", 3)
    assert replace(found).near == pytest.approx(2 / 3)


def test_beads_that_score_too_little_become_gaps_line_by_line():
    cells = np.array([(0, 0), (1, 1), (3, 3), (3, 4), (4, 5), (5, 6)])
    scores = np.array([0.5, 0.4, 0.0, 0.4, 0.9], np.float32)
    fixed = np.array([False, False, True, True, False])
    found, kept, known = _without(cells, scores, fixed, 0.5)
    assert found.tolist() == [[0, 0], [1, 1], [2, 1], [3, 1], [3, 2], [3, 3], [3, 4], [4, 5], [5, 6]]
    assert kept.tolist() == pytest.approx([0.5, 0, 0, 0, 0, 0, 0.4, 0.9])
    assert known.tolist() == [False] * 5 + [True, True, False]  # what was given stays, whatever it scores
    same = _without(cells, scores, fixed, 0.0)
    assert [one.tolist() for one in same] == [cells.tolist(), scores.tolist(), fixed.tolist()]
    ends, score, free = np.array([(0, 0), (1, 1)]), np.array([0.7], np.float32), np.zeros(1, bool)
    assert [len(_without(ends, score, free, least)[1]) for least in (0.7, 0.71)] == [1, 2]


def test_beads_apart_that_were_given_stay_and_those_found_must_score_enough():
    model = xswe.load("mini")
    source = Texts.of(["It rains.", "A cat sleeps.", "We buy bread.", "The train is late."])
    target = Texts.of(["The train is late.", "We buy bread.", "A cat sleeps.", "It rains."])
    cells = np.array([(0, 0), (1, 0), (1, 1), (1, 2), (2, 3), (3, 3), (4, 3), (4, 4)])
    kept = _Kept(cells, np.array([0, 0, 0, 0.9, 0, 0, 0], np.float32), np.arange(7) == 3, Threshold(0.5, "given"), None)
    known = Corrections(apart=np.array([(3, 4, 0, 1)]))
    moved = Moved(np.array([(2, 3, 1, 2), (0, 1, 3, 4)]), np.array([0.5, 0.49], np.float32))
    found = _sequence(kept, known, moved, (model, source, target, Prices(0.0, 1.0), 1))
    assert [
        (*one.tolist(), bool(fixed), bool(out))
        for one, fixed, out in zip(found.spans, found.fixed, found.moved, strict=True)
    ] == [
        (0, 1, 0, 0, False, False),
        (1, 2, 2, 3, True, False),
        (2, 3, 1, 2, False, True),
        (3, 4, 0, 1, True, True),  # given
        (4, 4, 3, 4, False, False),
    ]
    assert found.scores.tolist() == pytest.approx([0, 0.9, 0.5, 1.0, 0], abs=1e-3)


def test_the_threshold_is_the_higher_of_the_two_that_are_wanted():
    draws = np.random.default_rng(0)
    expected = estimate_from_decoys(draws.normal(0.7, 0.1, 900), draws.normal(0.2, 0.1, 900), 900)
    free = expected.choose(precision=0.9)
    for least, value in ((None, free), (free - 0.1, free), (free + 0.1, free + 0.1)):
        found = _threshold(AlignConfig(precision=0.9, min_score=least), expected)
        assert (found.value, found.origin) == (pytest.approx(value), "mismatched neighbours")
    assert _threshold(AlignConfig(min_score=0.3), expected) == Threshold(0.3, "given")
    assert _threshold(AlignConfig(precision=0.9), None).origin == "none"
    assert _threshold(AlignConfig(), expected).origin == "none"


def test_sides_that_are_swapped_by_more_than_one_script_are_warned_of(caplog):
    def warned(source, target, *languages):
        caplog.clear()
        _warn_of_swapped((Texts.of(source), Texts.of(target)), languages)
        return [record.getMessage() for record in caplog.records]

    said = "the source looks like ja and the target like en; name languages in the order of the texts: languages=[ja,en]"
    assert warned(["猫が寝る", ""], ["a cat"], "en", "ja") == [said]
    assert warned(["a cat"], ["猫が寝る"], "en", "ja") == []
    assert warned(["猫が寝る", "a"], ["a cat"], "en", "ja") == []  # one script more, and no more than that
    assert warned(["猫が寝る", "猫が寝る", "a"], ["a cat"], "en", "ja") == [said]
    assert warned(["猫が寝る"], ["猫睡觉"], "ja", "zh") == []
    assert len(warned(["猫睡觉"], ["猫が寝る"], "ja", "zh")) == 1
    assert warned([], [], "en", "ja") == []
