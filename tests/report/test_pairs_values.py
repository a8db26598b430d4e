"""What a report of pairs is made of: worked out by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from tests.report.conftest import of_spans
from xswe.errors import InputError
from xswe.io.ragged import Texts
from xswe.mining.evidence import Evidence, Hubs, Removed
from xswe.mining.gold import GoldCheck
from xswe.mining.learning import Noise
from xswe.mining.mined import MinedPairs
from xswe.mining.pipeline import MineReport, SideReport
from xswe.mining.samples import Group, Shown
from xswe.mining.threshold import PrecisionEstimate, Threshold
from xswe.report import figures
from xswe.report import pairs as module
from xswe.report.pairs import (
    PairsView,
    _curve,
    _data,
    _degrees,
    _expected,
    _group,
    _histogram,
    _lengths,
    _noise,
    _overview,
    _parts,
    _removed,
    _scored,
    _script,
    _scripts,
    _span,
    pairs_context,
    pairs_page,
    view_of_aligned,
    view_of_file,
    view_of_filtered,
    view_of_mined,
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


def test_the_slider_begins_where_all_pairs_are_kept():
    scores = np.array([0.9, 0.5, 0.25])
    for others, first in (
        (np.zeros(0, np.float32), 0.25),
        (np.array([0.125, 0.75], np.float32), _span(scores, [0.125, 0.75])[0]),
    ):
        found = PrecisionEstimate(scores, np.ones(3), 3, others)
        for value in (0.5, 0.01, 2.0):
            data = _data(view(scores, value, found), scores)
            low, high = _span(scores, others)
            steps = sorted({*np.linspace(low, high, 400).tolist(), value})
            steps[0] = min(first, value)
            assert data["steps"] == [round(step, 6) for step in steps]
            assert data["above"] == [sum(score >= step for score in scores) for step in steps]
            assert (data["low"], data["high"], data["value"], data["at"]) == (low, high, value, steps.index(value))


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
    links = {1: ([("a", 3)], [("b", 3)])}
    for low, least, name in (
        (0.4, 0.4, "Band 0.4000 to 0.9000, kept"),
        (0.3999, 0.4, "Band 0.3999 to 0.9000, below the cut"),
        (float(np.float32(0.7)), 0.7, "Band 0.7000 to 0.9000, kept"),
    ):
        found = _group(Group("band", low, 0.9, 7, (0, 1), pairs), ("en", "de"), Threshold(least, "x"), links)
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
        Removed("x", "target", 1, (("d",),)),
    )
    found = _removed(view([0.5], removed=removed))
    assert [(one["reason"], one["count"]) for one in found] == [("copies", 9), ("short", 3), ("x", 1)]
    assert [[side["languages"] for side in one["examples"][0]] for one in found] == [
        [("en",), ("de",)],
        [("en",)],
        [("de",)],
    ]
    noise = SimpleNamespace(kinds=[("copies", 0.1, 0.25), ("other", 0.3, 0.0)])
    shown = _noise(SimpleNamespace(noise=noise, evidence=SimpleNamespace(removed=removed)))
    assert [row[0] for row in shown] == ["other", "copies"]
    assert [row[2] for row in shown] == ["0", "9"]
    assert [row[3] for row in shown] == ["0.0 %", "25 %"]
    assert _noise(SimpleNamespace(noise=None)) == []


def test_drawings_of_hubs_and_lengths():
    drawn = _degrees(view([0.5]), Hubs("source", (5, 0, 2), 0.0, ()))
    label = "How many source lines are among the nearest of how many lines of the other side"
    title = "times among the nearest (the last: 2 and more)"
    counts = {"lines": np.array([5.0, 0.0, 2.0])}
    assert drawn == figures.histogram(np.array([-0.5, 0.5, 1.5, 2.5]), counts, title, label, y_title="lines")
    pairs = (Shown(0, 0.6, "abc", "ü"), Shown(1, 0.4, "a", "b"), Shown(2, 0.9, "", "b"))
    groups = (Group("band", 0, 1, 9, (0, 1, 2), pairs), Group("top", 0, 1, 9, (0,), pairs[:1]))
    lengths = _lengths(view([0.6, 0.4], groups=groups))
    assert lengths.count("<circle") == 2  # of the bands alone, and of pairs with both texts
    assert "below the cut" in lengths
    series = {"kept": [(3, 2, "abc")], "below the cut": [(1, 1, "a")]}
    label = "Bytes of the target against bytes of the source, of the pairs drawn from the bands"
    sides = ("bytes of the source", "bytes of the target")
    assert lengths == figures.dots(
        series, *sides, label, log=(True, True), texts=dict.fromkeys(series, ("en",)), height=280
    )
    assert _lengths(view([0.6], groups=groups[1:])).count("<circle") == 1
    assert _lengths(view([0.6])) == ""


def test_the_overview_says_what_is_known():
    bare = view([0.9, 0.4, 0.2], -np.inf)
    assert _overview(bare) == [("pairs before the cut", "3", ""), ("pairs kept", "3", "")]
    known = Threshold(
        0.5, "mismatched neighbours", 0.9, 0.8, within=(0.851, 0.949), recall_within=(0.7, 0.9), share=(0.1, 0.05, 0.2)
    )
    noise = Noise((("copies", 0.25, 0.5), ("cut", 0.125, None)))
    full = replace(
        bare,
        threshold=known,
        read=1234,
        noise=noise,
        gold=GoldCheck(1000, 0.75, 40, 0.5),
        seconds=(("a", 1.0), ("b", 2.26)),
    )
    full = replace(full, evidence=replace(full.evidence, reciprocity=0.25))
    assert _overview(full) == [
        ("read", "1,234", "lines or records"),
        ("pairs before the cut", "3", ""),
        ("pairs kept", "3", ""),
        ("threshold", "0.5000", "mismatched neighbours"),
        ("expected precision", "90 %", "of the kept pairs, 85 to 95 %"),
        ("expected recall", "80 %", "of the right pairs, 70 to 90 %"),
        ("lines with a translation", "10.0 %", "estimated, 5 to 20 %"),
        ("precision on gold", "75.0 %", "of 1,000 kept pairs"),
        ("recall on gold", "50.0 %", "of 40 gold pairs"),
        ("estimated noise", "38 %", f"of the pairs compared: {noise.by_kind}"),
        ("reciprocity", "25.0 %", "nearest neighbours both ways"),
        ("seconds", "3.3", "a 1.0, b 2.3"),
    ]

    def told(gold=None, **changed):
        return _overview(replace(bare, threshold=Threshold(0.5, "given", **changed), gold=gold))[3:]

    assert told(precision=0.9, aside=("copies", "cut")) == [
        ("expected precision", "90 %", "of the kept pairs, but for copies and cut")
    ]
    assert told(within=(0.5, 0.8)) == [("expected precision", "50 to 80 %", "of the kept pairs: cannot be narrowed down")]
    assert told(recall=0.5) == [("expected recall", "50 %", "of the right pairs")]
    assert told(share=(0.11, 0.1, 0.12)) == [("lines with a translation", "11 %", "estimated, 10 to 12 %")]
    assert [name for name, *_ in told(GoldCheck(0, np.nan, 9, 0.5))] == ["recall on gold"]
    assert [name for name, *_ in told(GoldCheck(9, 0.5, 0, np.nan))] == ["precision on gold"]
    on_gold = _overview(replace(bare, threshold=Threshold(0.5, "gold pairs", recall=0.5)))
    assert on_gold[-1] == ("recall", "50 %", "measured on gold")


def test_the_histogram_holds_all_pairs_over_the_expected_mismatches():
    scores, others = np.arange(60.0)[::-1], np.array([0.0, 0.0, 59.0], np.float32)

    def edges_and_counts(of, *every):
        """Sixty bins, of which the outer ones also hold what lies beyond them."""
        low, high = _span(*every)
        edges = np.linspace(low, high, 61)
        inside = [min(max(value, low), high) for value in of]
        counts = [sum(a <= value < b for value in inside) for a, b in pairwise(edges[:-1])]
        return edges, np.array([*counts, len(inside) - sum(counts)])

    found = PrecisionEstimate(scores, np.zeros(60), 60, others, weight=2.0)
    title = "Histogram of the scores of 60 pairs"
    edges, pairs = edges_and_counts(scores, scores, others)
    wrong = 2.0 * edges_and_counts(others, scores, others)[1]
    series = {"pairs": pairs, "mismatches, as many as are expected among the pairs": wrong}
    both = figures.histogram(edges, series, "cosine", f"{title} over that of mismatches", 30.0, "pairs")
    assert _histogram(view(scores, 30.0, found), scores) == both
    edges, pairs = edges_and_counts(scores, scores, np.zeros(0))
    alone = figures.histogram(edges, {"pairs": pairs}, "cosine", title, edges[0], "pairs")
    assert _histogram(view(scores, -np.inf), scores) == alone
    assert _histogram(view(scores, -np.inf, replace(found, mismatches=others[:0])), scores) == alone


def test_the_curve_is_of_what_can_be_expected_from_thirty_pairs_on():
    scores = np.arange(99, -1, -1) / 100.0
    expected = PrecisionEstimate(scores, np.arange(1, 101) * 0.9, 100)
    span = low, _ = _span(scores, np.zeros(0))
    steps = np.linspace(low, scores[29], 120)
    above = np.array([(scores >= step).sum() for step in steps])
    series = {"expected precision": [(step, 90.0) for step in steps]}
    series["expected recall"] = [(step, count / 1.0) for step, count in zip(steps, above, strict=True)]
    label = "Expected precision rises and expected recall falls with the threshold"
    drawn = figures.lines(series, "cosine", "%", label, zero=True, mark=0.5, span=span)
    assert _curve(view(scores, 0.5, expected)) == drawn
    assert _curve(view(scores, 0.5)) == ""
    assert _curve(view(scores, 0.5, replace(expected, right=expected.right / 100))) == ""  # nothing can be expected


def test_the_share_of_each_script_on_either_side():
    texts = [("a", "猫が"), ("b", "猫"), ("", "猫"), ("кот", "犬")]
    pairs = tuple(Shown(row, 0.5, *own) for row, own in enumerate(texts))
    drawn = str(_scripts(view([0.5], groups=(Group("top", 0, 1, 4, (0, 1, 2, 3), pairs),))))
    shares = {"source": (66.67, 0, 0, 33.33), "target": (0, 75, 25, 0)}
    names = ("Latin", "Han", "with Kana", "other")
    expected = [f"{name}, {side}: {share}" for side, own in shares.items() for name, share in zip(names, own, strict=True)]
    assert re.findall(r"<title>([^<]*)<", drawn) == expected
    assert _scripts(view([0.5])) == ""


@pytest.mark.parametrize(
    ("lines", "columns", "score"),
    [
        ("0.5\ta\tb\n", (1, 2), 0),
        ("a\tb\t0.5\n", (0, 1), -1),
        ("a\tb\t-1\n", (0, 1), -1),
        ("1.5e-3\t1\t2\n", (1, 2), 0),  # numbers on both sides: the first
        ("0.5\t1\t2\nnan\ta\t3\n", (1, 2), 0),
        ("1\ta\t0.5\nb\tc\t0.5\n", (0, 1), -1),  # a text that is a number
        ("\ufeff0.5\ta\tb\n", (1, 2), 0),
    ],
)
def test_the_column_of_the_score_is_the_one_of_numbers(tmp_path, lines, columns, score):
    path = tmp_path / "a.tsv"
    path.write_text(lines, "utf-8")
    found = _scored(str(path), ())
    assert (found.columns, found.score) == (columns, score)


def test_what_is_no_file_of_scored_pairs_is_refused(tmp_path):
    for name, lines, said in (
        ("a.tsv", "a\tb\n", "a.tsv:1: no score"),
        ("b.csv", "a,b\nc,d\n", "b.csv:1: its columns are a, b"),
        ("c.csv", "score,b\n1,d\n", "c.csv:1: its columns are score, b"),
        ("d.tsv", "", "d.tsv: no pair in it"),
    ):
        path = tmp_path / name
        path.write_text(lines, "utf-8")
        with pytest.raises(InputError, match=said):
            view_of_file(path)
    path = tmp_path / "e.jsonl"
    path.write_text('{"source": "a", "target": "b", "score": 1}\n{"source": "c", "target": "d"}\n', "utf-8")
    with pytest.raises(InputError, match=r"e\.jsonl:2: no score"):
        view_of_file(path)
    path.write_text('{"source": "a", "target": "b", "score": 1}\n{"source": "c", "target": ""}\n', "utf-8")
    assert np.isnan(view_of_file(path).evidence.scores).sum() == 1  # nothing to score
    path = tmp_path / "d.tsv"
    path.write_text("0.5\ta\tb\n0.75\t\t\n", "utf-8")
    found = view_of_file(path)
    assert found.about == "The 2 pairs of d.tsv: their scores, and samples."
    assert (list(found.evidence.scores), found.kept, found.cut) == ([0.75, 0.5], 2, None)
    shown = {(pair.row, pair.source, pair.target) for group in found.evidence.groups for pair in group.pairs}
    assert shown == {(0, "a", "b"), (1, "", "")}


def test_a_page_has_the_sections_that_there_is_something_for():
    def sections(given, **how):
        return " ".join(re.findall(r'<section id="(\w+)"', pairs_page(given, None, how.get("settings"))))

    pair = Group("top", 0, 1, 1, (0,), (Shown(0, 0.6, "a", "b"),))
    assert sections(view([])) == ""
    assert sections(view([np.nan])) == ""
    assert sections(view([0.5])) == "scores samples marks"
    assert sections(view([0.5], groups=(pair,))) == "scores samples marks texts"
    hubs = Hubs("source", (5, 2), 0.0, ())
    assert sections(view([0.5], hubs=(hubs,), removed=(Removed("x", "target", 1),))) == "scores samples marks removed hubs"
    assert sections(view([0.5]), settings={"a": {"b": 1}}) == "scores samples marks settings"
    assert sections(replace(view([]), summary="x")) == "run"
    found = pairs_context(view([0.5], groups=(pair, Group("random", 0, 1, 0, ()))), None, None)
    assert [group["name"] for group in found["groups"]] == ["The very top"]
    assert not found["linked"]
    assert found["data"]["groups"] == [{"name": "The very top", "kind": "top", "size": 1, "low": 0}]


def test_mined_pairs_without_evidence_are_shown_with_their_lines():
    scores, rows = np.array([0.75, 0.5], np.float32), (np.array([4, 0]), np.array([7, 2]))
    report = MineReport(SideReport(10, 9, {}), SideReport(20, 19, {}), {}, 2, 2, [], "none", {"a": 1.0, "b": 2.0})
    mined = MinedPairs(
        scores, *rows, Texts.of(["a", "b"]), Texts.of(["c", "d"]), Threshold(0.5, "given"), ("en", "de"), report
    )
    found = view_of_mined(mined)
    assert list(found.evidence.scores) == [0.75, 0.5]
    shown = {pair for group in found.evidence.groups for pair in group.pairs}
    assert shown == {Shown(0, 0.75, "a", "c", "5", "8"), Shown(1, 0.5, "b", "d", "1", "3")}
    assert (found.kept, found.score, found.languages, found.read) == (2, "score", ("en", "de"), 30)
    assert (found.summary, found.seconds) == (str(report), (("a", 1.0), ("b", 2.0)))
    vectors = view_of_mined(MinedPairs(scores, *rows, None, None, Threshold(0.5, "given")))
    shown = {pair for group in vectors.evidence.groups for pair in group.pairs}
    assert shown == {Shown(0, 0.75, "", "", "5", "8"), Shown(1, 0.5, "", "", "1", "3")}
    assert (vectors.summary, vectors.seconds, vectors.read) == ("", (), 0)
    alone = MinedPairs(scores, *rows, None, None, Threshold(0.5, "given"), (), replace(report, target=None))
    assert view_of_mined(alone).read == 10


def test_aligned_texts_are_shown_with_their_pairs_and_the_lines_that_are_alone():
    spans = [(0, 1, 0, 2), (1, 2, 2, 2), (2, 3, 2, 2), (3, 3, 2, 3), (3, 4, 3, 4), (4, 5, 4, 5)]
    found = view_of_aligned(of_spans(spans, moved=[0, 0, 0, 0, 0, 1]))
    shown = {pair for group in found.evidence.groups for pair in group.pairs}
    assert shown == {Shown(0, 0.5, "s1", "t1 t2", "1", "1, 2"), Shown(1, 0.5, "s4", "t4", "4", "4")}  # none that moved
    alone = [Removed("no counterpart", "source", 2, (("s2",), ("s3",))), Removed("no counterpart", "target", 1, (("t3",),))]
    assert sorted(found.evidence.removed, key=lambda one: one.side) == alone
    assert (found.kept, found.read, found.languages) == (2, 10, ("en", "de"))


def test_filtered_pairs_without_evidence_are_shown_by_their_scores():
    class Filtered(list):
        scores, kept, evidence = np.array([0.5, np.nan, 0.75], np.float32), np.array([1, 0, 1], bool), None
        threshold, languages, noise, gold = Threshold(0.5, "given"), ("en", "de"), None, None

    given = Filtered([0, 1, 2])
    found = view_of_filtered(given)
    assert list(found.evidence.scores) == [0.75, 0.5]
    assert found.about == ("3 pairs were read and 2 kept. What each filter left out, and the pairs around the cut.")
    assert (found.kept, found.read, found.score) == (2, 3, "cosine")
    given.noise = Noise(())
    assert view_of_filtered(given).score == "probability"
