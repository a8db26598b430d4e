"""The page of aligned texts: a map, the worst pairs with what stands around them, and marks that become corrections."""

from __future__ import annotations

import re

import pytest

import xswe
from xswe.report.aligned import aligned_page, stretches


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
        assert "What stands where" in page
        assert ('id="review"' in page) == all(texts)
        assert ("1 stretch<" in page) == (len(texts[0]) > len(texts[1]))


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
