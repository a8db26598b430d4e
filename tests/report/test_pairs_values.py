"""What a report of pairs is made of: worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.mining.evidence import Evidence, Hubs, Removed
from xswe.mining.samples import Group, Shown
from xswe.mining.threshold import PrecisionEstimate, Threshold
from xswe.report import pairs as module
from xswe.report.pairs import (
    PairsView,
    _data,
    _degrees,
    _expected,
    _group,
    _lengths,
    _noise,
    _parts,
    _removed,
    _script,
    _span,
)


def view(scores, value=0.5, expected=None, languages=("en", "de"), **evidence):
    given = Evidence(np.array(scores, np.float64), expected, **evidence)
    return PairsView("Pairs", "about", given, Threshold(value, "given"), len(scores), "cosine", languages)


def test_the_range_of_a_histogram_leaves_the_outermost_out():
    assert _span(np.arange(1001.0), np.zeros(0)) == pytest.approx((1.0, 999.0))
    assert _span(np.arange(501.0), np.arange(501.0, 1001.0)) == pytest.approx((1.0, 999.0))
    assert _span(np.array([2.0]), np.zeros(0)) == (1.5, 2.5)


def test_the_slider_counts_the_pairs_from_each_place_on():
    scores = np.sort(np.random.default_rng(0).random(500))[::-1]
    for value in (0.5, 2.0, -np.inf):
        data = _data(view(scores, value), scores)
        steps = np.array(data["steps"])
        assert list(steps) == sorted(steps)
        assert data["above"][0] == 500
        for step, above in list(zip(steps, data["above"], strict=True))[1:]:
            assert abs(above - (scores >= step).sum()) <= (np.abs(scores - step) < 1e-6).sum()
        if value == 0.5:
            assert steps[data["at"]] == 0.5
        assert data["at"] == (0 if value == -np.inf else int(np.abs(steps - value).argmin()))
        assert (data["precision"], data["recall"], data["unsure"]) == ([], [], "")


def test_the_slider_tells_what_is_expected():
    scores = np.arange(99, -1, -1) / 100.0
    expected = PrecisionEstimate(scores, np.arange(1, 101) * 0.9, 100)
    data = _data(view(scores, 0.5, expected), scores)
    assert (len(data["precision"]), data["unsure"]) == (len(data["steps"]), "")
    assert data["precision"][data["at"]] == "90 %"
    assert data["recall"][data["at"]] == "50 %"
    assert data["id"] == _data(view(scores, 0.1, expected), scores)["id"] != _data(view(scores / 2), scores / 2)["id"]


def test_a_share_is_told_with_its_bounds_or_by_these_alone():
    assert _expected(0.9, None) == "90 %"
    assert _expected(None, None) == "–"
    assert _expected(0.9, (0.8, 0.95)).startswith("90 % (80")
    assert _expected(None, (0.8, 0.95)).startswith("80")


def test_a_text_is_cut_into_what_is_linked_and_what_is_not():
    text, places = "the cat is here", [(0, 3), (4, 7), (8, 10), (11, 15)]
    assert _parts(text, places, {}) == [(text, -1)]
    assert _parts(text, places, {1: 5, 3: 0}) == [("the ", -1), ("cat", 5), (" is ", -1), ("here", 0)]
    assert _parts(text, places, {0: 0, 1: 1}) == [("the", 0), (" ", -1), ("cat", 1), (" is here", -1)]
    assert _parts("", [], {}) == []


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("猫が", "kana"),
        ("猫", "han"),
        ("猫a", "han"),
        ("猫ab", "latin"),
        ("abc", "latin"),
        ("ɐ", "other"),
        ("aɐ", "latin"),
        ("aɐɐ", "other"),
        ("12", "other"),
        ("кот", "other"),
    ],
)
def test_the_script_of_most_letters(text, script):
    assert _script(text) == script


def test_a_group_is_named_by_where_it_lies_and_its_texts_are_cut(monkeypatch):
    monkeypatch.setattr(module, "_MAX_SHOWN", 5)
    pairs = (Shown(0, 0.6, "abcde", "abcdef", "a:1", "b:2"), Shown(1, 0.5, "a", "b"))
    for low, name in ((0.4, "Band 0.4000 to 0.9000, kept"), (0.3999, "Band 0.3999 to 0.9000, below the cut")):
        found = _group(
            Group("band", low, 0.9, 7, (0, 1), pairs), ("en", "de"), Threshold(0.4, "x"), {1: ([("a", 3)], [("b", 3)])}
        )
        assert (found["name"], found["size"], found["open"]) == (name, 7, False)
    first, second = found["pairs"]
    assert (first["cut"], first["lines"], second["cut"], second["lines"]) == (True, "a:1 · b:2", False, "")
    assert [side["text"] for side in first["sides"]] == ["abcde", "abcde…"]
    assert [side["languages"] for side in first["sides"]] == [("en",), ("de",)]
    assert [side["parts"] for side in second["sides"]] == [[("a", 3)], [("b", 3)]]
    assert _group(Group("band", 0.4, 0.9, 7, ()), (), Threshold(-np.inf, "x"), {})["name"] == "Band 0.4000 to 0.9000"
    assert [
        _group(Group(name, 0, 1, 1, ()), (), Threshold(0.4, "x"), {})["open"]
        for name in ("above", "below", "top", "random")
    ] == [
        True,
        True,
        True,
        False,
    ]


def test_what_was_left_out_and_what_noise_there_is():
    removed = (
        Removed("short", "source", 3, (("a",),)),
        Removed("copies", "pairs", 9, (("b", "c"),)),
        Removed("x", "target", 1),
    )
    found = _removed(view([0.5], removed=removed))
    assert [(one["reason"], one["count"]) for one in found] == [("copies", 9), ("short", 3), ("x", 1)]
    assert [[side["languages"] for side in one["examples"][0]] for one in found[:2]] == [[("en",), ("de",)], [("en",)]]
    noise = SimpleNamespace(kinds=[("copies", 0.1, 0.25), ("other", 0.3, 0.0)])
    shown = _noise(SimpleNamespace(noise=noise, evidence=SimpleNamespace(removed=removed)))
    assert [row[0] for row in shown] == ["other", "copies"]
    assert [row[2] for row in shown] == ["0", "9"]
    assert [row[3] for row in shown] == ["0.0 %", "25 %"]
    assert _noise(SimpleNamespace(noise=None)) == []


def test_drawings_of_hubs_and_lengths():
    drawn = _degrees(view([0.5]), Hubs("source", (5, 0, 2), 0.0, ()))
    assert drawn.count("<rect") == 2
    assert "the last: 2 and more" in drawn
    pairs = (Shown(0, 0.6, "abc", "ü"), Shown(1, 0.4, "a", "b"), Shown(2, 0.9, "", "b"))
    groups = (Group("band", 0, 1, 9, (0, 1, 2), pairs), Group("top", 0, 1, 9, (0,), pairs[:1]))
    lengths = _lengths(view([0.6, 0.4], groups=groups))
    assert lengths.count("<circle") == 2  # of the bands alone, and of pairs with both texts
    assert "below the cut" in lengths
    assert _lengths(view([0.6], groups=groups[1:])).count("<circle") == 1
    assert _lengths(view([0.6])) == ""
