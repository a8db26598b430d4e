"""The page of aligned texts: a map, the worst pairs with what stands around them, and marks that become corrections."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xswe
from tests.report.conftest import of_spans
from xswe.report import aligned as module
from xswe.report.aligned import (
    _CONTEXT,
    Stretch,
    _coarse,
    _listed,
    _map,
    _place_of,
    _rungs,
    _shown,
    _worst,
    aligned_page,
    stretches,
)


@pytest.fixture(scope="module")
def texts(sample):
    """A chapter is missing, two changed places, a line was joined, and some stand on one side alone."""
    german = sample["de"]
    german = [
        *german[:30],
        *german[900:904],
        *german[30:60],
        *german[100:160],
        *german[60:100],
        *german[200:300],
    ]
    german[5:7] = [" ".join(german[5:7])]
    return sample["en"][:300], german


@pytest.fixture(scope="module")
def found(mini, texts):
    return xswe.align(mini, *texts, languages=("en", "de"), evidence=True)


def test_runs_of_one_kind_are_stretches(found):
    runs = list(stretches(found))
    assert ("source", (160, 200)) in [run[:2] for run in runs]
    assert [run.source for run in runs if run.kind == "moved"] in ([(60, 99)], [(60, 100)], [(100, 160)])
    assert next(run.target for run in runs if run.kind == "target") == (29, 33)
    for side, count in enumerate((len(found.source), len(found.target)), 1):
        lines = [line for run in runs for line in range(*run[side])]
        assert sorted(lines) == list(range(count))


def test_the_page_says_where_lines_are_alone(found, tmp_path):
    xswe.write_report(found, tmp_path / "a.html", settings={"align": {"most": 5}})
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "source 161 to 200, without a counterpart, 40 lines" in page
    assert "target 30 to 33, without a counterpart, 4 lines" in page
    assert page.count('class="moved"') == 1
    assert "threshold=" not in page.replace('data.setting || "threshold"', "")
    places = [int(one) for one in re.findall(r'data-place="(\d+)"', page)]
    scores = [float(one) for one in re.findall(r'data-place="\d+" data-row="\d+" data-score="([^"]+)"', page)]
    assert places == list(range(120))
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(min(bead.score for bead in found.pairs))
    assert len(page) < 600_000


def test_a_page_of_little_or_nothing(mini):
    for texts in ((["It rains."], ["Es regnet."]), (["It rains."], []), ([], [])):
        page = aligned_page(xswe.align(mini, *texts))
        assert "Map of the texts" in page
        assert ('id="review"' in page) == all(texts)
        assert ("1 stretch<" in page) == (len(texts[0]) > len(texts[1]))


def test_what_a_stretch_is_called_and_where_it_stands():
    assert _place_of(Stretch("aligned", (0, 1), (0, 2))) == "source 1, target 1 to 2"
    assert _place_of(Stretch("moved", (999, 1200), (4, 5))) == "source 1,000 to 1,200, target 5, out of order"
    assert _place_of(Stretch("source", (3, 5), (3, 3))) == "source 4 to 5, without a counterpart"
    assert _place_of(Stretch("target", (3, 3), (6, 7))) == "target 7, without a counterpart"
    assert Stretch("source", (3, 5), (3, 3)).size == Stretch("target", (1, 1), (0, 2)).size == 2
    found = of_spans([(0, 1, 0, 3)])
    assert _listed(found, Stretch("target", (0, 0), (0, 3))) == {
        **{"where": "target 1 to 3, without a counterpart", "lines": 3},
        **{"first": "t1", "last": "t3", "languages": ("de",)},
    }
    assert _listed(found, Stretch("source", (0, 1), (0, 0))) == {
        **{"where": "source 1, without a counterpart", "lines": 1},
        **{"first": "s1", "last": "", "languages": ("en",)},
    }


def test_beads_of_one_kind_that_follow_each_other_are_a_stretch():
    spans = [(0, 1, 0, 1), (1, 3, 1, 2), (3, 4, 2, 2), (4, 5, 2, 2), (5, 5, 2, 4), (5, 5, 4, 5), (5, 6, 5, 6), (6, 7, 9, 9)]
    assert list(stretches(of_spans(spans))) == [
        Stretch("aligned", (0, 3), (0, 2)),
        Stretch("source", (3, 5), (2, 2)),
        Stretch("target", (5, 5), (2, 5)),
        Stretch("aligned", (5, 6), (5, 6)),
        Stretch("source", (6, 7), (9, 9)),
    ]
    apart = [(0, 1, 0, 1), (1, 2, 3, 4), (2, 3, 4, 5)]
    assert list(stretches(of_spans(apart))) == [Stretch("aligned", (0, 1), (0, 1)), Stretch("aligned", (1, 3), (3, 5))]
    assert [run.kind for run in stretches(of_spans(apart, moved=[0, 1, 0]))] == ["aligned", "moved", "aligned"]
    # a passage that stands elsewhere leaves a gap in the other text: no break for lines that are alone in theirs
    (run,) = stretches(of_spans([(0, 1, 0, 0), (1, 2, 3, 3)]))
    assert (run.kind, run.source) == ("source", (0, 2))
    (run,) = stretches(of_spans([(0, 0, 0, 1), (4, 4, 1, 2)]))
    assert (run.kind, run.target) == ("target", (0, 2))
    gap = [(0, 0, 0, 1), (0, 0, 5, 6)]
    assert list(stretches(of_spans(gap))) == [Stretch("target", (0, 0), (0, 1)), Stretch("target", (0, 0), (5, 6))]
    assert list(stretches(of_spans([]))) == []


def test_stretches_too_small_to_be_seen_are_drawn_with_others():
    first, second = Stretch("aligned", (0, 5), (0, 5)), Stretch("aligned", (7, 9), (6, 9))
    gap, moved = Stretch("source", (5, 7), (5, 5)), Stretch("moved", (9, 10), (5, 6))
    assert list(_coarse([first, gap, second, moved], 3)) == [moved, Stretch("aligned", (0, 9), (0, 9))]
    assert list(_coarse([first, gap, second], 2)) == [gap, Stretch("aligned", (0, 9), (0, 9))]
    assert list(_coarse([first, gap, second], 1.5)) == [gap, first, second]
    back = Stretch("aligned", (7, 9), (4, 5))  # before the last one in the target
    assert list(_coarse([first, back], 3)) == [first, back]
    assert list(_coarse([first, Stretch("aligned", (6, 9), (5, 9))], 3)) == [Stretch("aligned", (0, 9), (0, 9))]
    assert list(_coarse([first, Stretch("aligned", (6, 9), (8, 9))], 3)) == [Stretch("aligned", (0, 9), (0, 9))]
    assert list(_coarse([first, Stretch("aligned", (6, 9), (9, 10))], 3)) == [first, Stretch("aligned", (6, 9), (9, 10))]
    assert list(_coarse([], 3)) == []


def test_both_texts_are_drawn_to_the_same_width():
    alone = Stretch("source", (5, 10), (2, 2)), Stretch("target", (0, 0), (2, 4))
    drawn = str(_map([Stretch("aligned", (0, 5), (0, 2)), *alone], 10, 4))
    assert 'points="0.0,14 500.0,14 500.0,106 0.0,106"' in drawn
    assert '<rect class="alone" x="500.0" y="0" width="500.0" height="14"><title>source 6 to 10' in drawn
    assert '<rect class="alone" x="500.0" y="106" width="500.0" height="14"><title>target 3 to 4' in drawn
    assert 'points="0.0,14 1000.0,14 1000.0,106 0.0,106"' in str(_map([Stretch("aligned", (0, 1), (0, 1))], 1, 1))
    thin = str(_map([Stretch("source", (0, 1), (0, 0))], 1000, 0))
    assert 'width="1.5"' in thin
    assert "Source above, 1,000 lines, and target below, 0" in thin


def test_the_page_has_what_there_is_and_the_longest_stretches(monkeypatch):
    monkeypatch.setattr(module, "render", lambda template, **context: context)
    spans = [(0, 1, 0, 1), (1, 4, 1, 1), (4, 5, 1, 2), (5, 6, 2, 2), (6, 7, 2, 3), (7, 7, 3, 5), (7, 8, 5, 6)]
    told = aligned_page(of_spans(spans, moved=[0, 0, 0, 0, 0, 0, 1]))
    assert [(one["where"], one["lines"]) for one in told["stretches"]] == [
        ("source 2 to 4, without a counterpart", 3),
        ("source 6, without a counterpart", 1),
        ("target 4 to 5, without a counterpart", 2),
        ("source 8, target 6, out of order", 1),
    ]
    assert told["overview"][-1] == ("out of order", "1", "more pairs")
    assert (told["more"], told["data"]["setting"], len(told["data"]["rungs"])) == (0, "min_score", 4)
    monkeypatch.setattr(module, "_MAX_LISTED", 2)
    told = aligned_page(of_spans(spans))
    assert [one["lines"] for one in told["stretches"]] == [3, 2]  # in their order
    assert told["more"] == 1
    assert told["overview"][-1][0] != "out of order"
    monkeypatch.setattr(module, "_MAP_SHAPES", 1)  # then the smallest has the mean of the lines of both
    for size, drawn in ((3, True), (2, False)):
        assert ("without a counterpart" in _map([Stretch("source", (0, size), (0, 0))], size, 6 - size)) == drawn


def test_a_mark_writes_the_lines_that_it_is_about():
    spans = [(0, 1, 0, 1), (1, 3, 1, 2), (3, 3, 2, 3), (3, 4, 3, 4), (9, 10, 4, 5), (10, 14, 5, 6), (14, 16, 6, 7)]
    found = of_spans(spans)
    right, wrong = [[0, 1, 0, 1], ""], [[0, 1, 0, 1], "rejected"]
    assert _rungs(found, 0) == {"right": right, "wrong": wrong, "merge": [[0, 3, 0, 2], ""]}
    assert _rungs(found, 1)["split"] == [[1, 3, 1, 2], "rejected"]
    assert _rungs(found, 1)["merge"] == [[1, 3, 1, 3], ""]
    assert set(_rungs(found, 3)) == {"right", "wrong"}  # what follows stands elsewhere
    assert _rungs(found, 4)["merge"] == [[9, 14, 4, 6], ""]  # of five lines
    assert set(_rungs(found, 5)) == {"right", "wrong", "split"}  # of six
    assert set(_rungs(found, 6)) == {"right", "wrong", "split"}
    assert set(_rungs(of_spans([(0, 1, 0, 2)]), 0)) == {"right", "wrong", "split"}
    assert _rungs(of_spans([(0, 1, 0, 1), (1, 2, 1, 2)]), 0)["merge"] == [[0, 2, 0, 2], ""]
    for elsewhere in ((1, 2, 5, 6), (5, 6, 1, 2)):
        assert set(_rungs(of_spans([(0, 1, 0, 1), elsewhere]), 0)) == {"right", "wrong"}


def test_the_worst_pairs_are_unconfirmed_ones_with_two_beads_around(mini):
    english = ["A cat sleeps.", "It rains.", "xyz", "The train is late."]
    found = xswe.align(mini, english, ["Eine Katze schläft.", "Es regnet.", "Der Zug kommt zu spät."])
    worst = _worst(found)
    order = np.argsort(found.scores, kind="stable").tolist()
    assert [one["row"] for one in worst] == [row for row in order if found.is_pair[row]]
    assert [one["score"] for one in worst] == sorted(float(score) for score in found.scores[found.is_pair])
    for one in worst:
        assert sum(bead["is_it"] for bead in one["beads"]) == 1
        place = next(k for k, bead in enumerate(one["beads"]) if bead["is_it"])
        assert place == min(one["row"], _CONTEXT)
        assert len(one["beads"]) == min(len(found), one["row"] + _CONTEXT + 1) - max(0, one["row"] - _CONTEXT)
    alone = next(_shown(found, place, False) for place in range(len(found)) if not found.is_pair[place])
    assert (alone["lines"], alone["sides"][1]["text"]) == ("3 · –", "")
    assert [side["languages"] for side in _shown(of_spans([(0, 1, 0, 1)]), 0, True)["sides"]] == [("en",), ("de",)]


@pytest.mark.slow
def test_marks_become_corrections(mini, texts, found, tmp_path, visit):
    xswe.write_report(found, tmp_path / "a.html")
    opened = visit(tmp_path / "a.html")
    page = opened.page
    rows = [int(row.get_attribute("data-row")) for row in page.query_selector_all("li.pair")]
    spans = [found.spans[row].tolist() for row in rows]
    several = next(k for k, (a, b, c, d) in enumerate(spans) if b - a > 1)
    used = {rows[several] + k for k in (-1, 0, 1)}
    free = [k for k, row in enumerate(rows) if row not in used]
    right, wrong = free[0], next(k for k in free if abs(rows[k] - rows[free[0]]) > 2)
    used |= {rows[one] + k for one in (right, wrong) for k in (-2, -1, 0, 1, 2)}
    merge = next(
        k
        for k, row in enumerate(rows)
        if row not in used
        and row + 1 not in used
        and found.is_pair[row + 1]
        and not found.moved[row : row + 2].any()
        and found.spans[row + 1, 0] == found.spans[row, 1]
        and found.spans[row + 1, 2] == found.spans[row, 3]
    )
    for place, mark in ((right, "right"), (wrong, "wrong"), (merge, "merge"), (several, "split")):
        page.click(f'li.pair[data-place="{place}"] button[data-mark="{mark}"]')
    assert page.inner_text("#marked") == "4 of 120 marked"
    one = next(k for k, (a, b, c, d) in enumerate(spans) if b - a == d - c == 1)
    assert page.is_disabled(f'li.pair[data-place="{one}"] button[data-mark="split"]')
    path = opened.saved(lambda: page.click("#save"), tmp_path)
    assert path.name == "corrections.ladder"
    again = xswe.align(mini, *texts, fixed=path)
    assert again.changes == "2 as they were, 2 rejected"
    beads = {tuple(span) for span in again.spans.tolist()}
    a, _b, c, _d = spans[merge]
    _e, f, _g, h = found.spans[rows[merge] + 1].tolist()
    assert {tuple(spans[right]), (a, f, c, h)} <= beads
    assert not {tuple(spans[wrong]), tuple(spans[several])} & beads
    page.focus(f'li.pair[data-place="{right}"]')
    page.keyboard.press("1")
    assert page.inner_text("#marked") == "3 of 120 marked"
    assert page.inner_text("#setting").startswith("min_score=")
    for width in (390, 1920):
        assert visit(tmp_path / "a.html", width).widest() <= 0


def test_a_table_of_beads_is_a_file_of_scored_pairs(found, tmp_path):
    """Lines without a counterpart have no score."""
    found.write(tmp_path / "a.csv")
    xswe.write_report(tmp_path / "a.csv", tmp_path / "b.html", languages=("en", "de"))
    assert "Scored pairs" in (tmp_path / "b.html").read_text("utf-8")
