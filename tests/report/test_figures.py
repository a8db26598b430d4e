"""Figures: whoever reads a value off the axes of a drawing reads the one that was drawn."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.report import figures
from xswe.report.figures import Axis

NUMBER = r"(-?[\d.]+)"


def number(label):
    return float(label.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(label[-1], 1.0)


def scale(drawing, name, log=False):
    """Return what reads a value off an axis, by its ticks; its places are percentages."""
    found = re.findall(rf'<text class="{name}" (?:x="{NUMBER}%?")? ?(?:x="-8" )?y="{NUMBER}%"[^>]*>([^<]*)<', drawing)
    ticks = sorted(
        (float(y if name == "y" else x), number(label)) for x, y, label in found if re.fullmatch(r"-?[\d.]+[kMG]?", label)
    )
    places, values = np.array(ticks).T
    assert len(ticks) > 1
    values = np.log(values) if log else values
    slope = (values[-1] - values[0]) / (places[-1] - places[0])
    assert values == pytest.approx(values[0] + slope * (places - places[0]), abs=0.01 * abs(values[-1] - values[0]))  # even
    return lambda place: (math.exp if log else float)(values[0] + slope * (float(place) - places[0]))


def attributes(drawing, tag, *names):
    """Return attributes of all elements of a kind, without their percent signs."""
    for found in re.findall(rf"<{tag} [^>]*>", drawing):
        yield [float(re.search(rf' {name}="{NUMBER}', found)[1]) for name in names]


def test_bins_are_as_high_as_their_counts_and_as_wide_as_their_edges():
    edges, counts = np.array([0.5, 1.0, 1.5, 2.5]), np.array([12.0, 0.0, 30.0])
    drawn = figures.histogram(edges, {"all": counts, "wrong": counts / 3}, "score", "Scores", cut=1.7, y_title="pairs")
    x, y = scale(drawn, "x"), scale(drawn, "y")
    bars = list(attributes(drawn, "rect", "x", "width", "y", "height"))
    assert [x(left) for left, *_ in bars] == pytest.approx([0.5, 1.5], abs=0.01)
    assert [x(left + width) for left, width, *_ in bars] == pytest.approx([1.0, 2.5], abs=0.1)
    assert all(x(left + width) < right for (left, width, *_), right in zip(bars, (1.0, 2.5), strict=True))  # a gap between
    assert [y(top) for _, _, top, _ in bars] == pytest.approx([12, 30], abs=0.05)
    assert [top + height for _, _, top, height in bars] == pytest.approx([100, 100], abs=0.02)  # from the axis on
    assert [x(at) for at, _ in attributes(drawn, 'line class="cut"', "x1", "x2")] == pytest.approx([1.7], abs=0.01)
    area = [tuple(map(float, point.split(","))) for point in re.search(r'polyline[^>]* points="([^"]*)"', drawn)[1].split()]
    expected = [(0.5, 0), (0.5, 4), (1, 4), (1, 0), (1.5, 0), (1.5, 10), (2.5, 10), (2.5, 0)]
    assert [(x(100 * a), y(100 * b)) for a, b in area] == [pytest.approx(point, abs=0.02) for point in expected]
    assert re.findall(r'<li class="s(\d)">.*?</span>(\w+)<', drawn) == [("0", "all"), ("1", "wrong")]
    assert "legend" not in figures.histogram(edges, {"all": counts}, "score", "Scores")
    assert scale(figures.histogram(edges, {"all": 0 * counts}, "score", "Scores"), "y")(0) == pytest.approx(1.04, abs=1e-3)
    for cut, place in ((0.0, 0.0), (9.0, 100.0)):  # a cut beyond the bins stands at their end
        drawn = figures.histogram(edges, {"all": counts}, "score", "Scores", cut=cut)
        assert list(attributes(drawn, 'line class="cut"', "x1", "x2")) == [[place, place]]


def drawings():
    """One small figure of each kind."""
    yield figures.histogram(
        np.array([0.0, 1.0, 2.0]),
        {"all": np.array([3.0, 0.0]), "wrong": np.array([1.0, 2.0])},
        "score",
        "Scores of <pairs>",
        1.5,
        "pairs",
    )
    several = {
        name: [(1.0, 0.5), (100.0, share)] for name, share in zip("abcdef", (1.0, 0.9, 0.8, 0.7, 0.6, 0.5), strict=True)
    }
    yield figures.lines(several | {"g": [(10.0, 0.0)]}, "step", "share", "Shares", log_x=True, mark=10.0)
    yield figures.dots(
        {"": [(0.0, 2.0, "x<y"), (1.0, 4.0, "")]}, "p", "q", "Dots", named=True, front=[(0.0, 2.0), (1.0, 4.0)], height=99
    )
    yield figures.bars({"g": {"a": (2.0, 1.0, 3.0), "b": (4.0, None, None)}, "h": {"b": (1.0, None, 2.0)}}, "%", "Bars")


def test_the_same_values_give_the_same_bytes():
    """The golden file shows the figures one below the other when a browser opens it with the style of pages."""
    golden = Path(__file__).with_name("golden_figures.html").read_text("utf-8")
    assert golden == "".join(f"{drawn}\n" for drawn in drawings())


def test_lines_and_dots_stand_where_their_values_are():
    points = {"a": [(1.0, 0.25), (10.0, 0.5), (1000.0, 0.99)], "b": [(100.0, 0.75)]}
    drawn = figures.lines(points, "step", "share", "Shares", log_x=True, zero=True, mark=100.0)
    x, y = scale(drawn, "x", log=True), scale(drawn, "y")
    found = [(x(cx), y(cy)) for cx, cy in attributes(drawn, "circle", "cx", "cy")]
    expected = [point for own in points.values() for point in own]
    assert [point[1] for point in found] == pytest.approx([b for _, b in expected], abs=0.002)
    assert [point[0] for point in found] == pytest.approx([a for a, _ in expected], rel=0.01)
    assert [x(at) for at, _ in attributes(drawn, 'line class="cut"', "x1", "x2")] == pytest.approx([100], rel=0.01)
    assert drawn.count("<polyline") == 1  # of one point there is no line
    line = re.search(r'polyline[^>]* points="([^"]*)"', drawn)[1].split()
    assert [x(100 * float(point.split(",")[0])) for point in line] == pytest.approx([1, 10, 1000], rel=0.01)
    assert y(0) == pytest.approx(1.0)  # where shares end
    assert y(100) == pytest.approx(0.0)
    many = figures.lines({"a": [(k, 2.0 * k) for k in range(40)]}, "step", "loss", "Losses", span=(0.0, 50.0))
    assert "<circle" not in many  # too many to see
    for mark, place in ((-1.0, 0.0), (25.0, 50.0), (99.0, 100.0)):  # one beyond the ends stands there
        marked = figures.lines({"a": [(0.0, 1.0), (50.0, 2.0)]}, "step", "loss", "Losses", span=(0.0, 50.0), mark=mark)
        assert list(attributes(marked, 'line class="cut"', "x1", "x2")) == [[place, place]]
    assert scale(many, "x")(100) == pytest.approx(50)
    assert scale(many, "y")(0) > 78

    drawn = figures.dots(
        {"a": [(10.0, 2.0, "one"), (1000.0, 8.0, "two")]}, "bytes", "norm", "Dots", log=(True, False), named=True
    )
    x, y = scale(drawn, "x", log=True), scale(drawn, "y")
    assert [x(cx) for cx, _ in attributes(drawn, "circle", "cx", "cy")] == pytest.approx([10, 1000], rel=0.02)
    assert [y(cy) for _, cy in attributes(drawn, "circle", "cx", "cy")] == pytest.approx([2, 8], abs=0.02)
    assert re.findall(r"<title>(\w+)<", drawn) == ["one", "two"] == re.findall(r'class="name"[^>]*>(\w+)<', drawn)
    assert list(attributes(drawn, 'text class="name"', "x", "y")) == list(attributes(drawn, "circle", "cx", "cy"))
    front = figures.dots({"": [(1.0, 1.0, ""), (2.0, 3.0, "")]}, "a", "b", "Dots", front=[(1.0, 1.0), (2.0, 3.0)])
    read = [(scale(front, "x")(cx), scale(front, "y")(cy)) for cx, cy in attributes(front, "circle", "cx", "cy")]
    assert read == [pytest.approx((1, 1), abs=0.01), pytest.approx((2, 3), abs=0.01)]
    line = re.search(r'class="front" points="([^"]*)"', front)[1].replace(" ", ",").split(",")
    places = [number / 100 for pair in attributes(front, "circle", "cx", "cy") for number in pair]
    assert [float(one) for one in line] == pytest.approx(places, abs=1e-3)


def test_bars_stand_in_their_groups_with_their_intervals():
    groups = {"en-de": {"mini": (40.0, 35.0, 44.0), "e5": (60.0, None, None)}, "en-ja": {"mini": (20.0, 18.0, 22.0)}}
    drawn = figures.bars(groups, "%", "Tasks")
    y = scale(drawn, "y")
    bars = list(attributes(drawn, "rect", "x", "width", "y", "height"))
    assert [y(top) for _, _, top, _ in bars] == pytest.approx([40, 60, 20], abs=0.05)
    assert re.findall(r"<title>([^<]*)<", drawn) == ["mini, en-de: 40", "e5, en-de: 60", "mini, en-ja: 20"]
    assert re.findall(r'class="s(\d) fill"', drawn) == ["0", "1", "0"]
    whiskers = list(attributes(drawn, 'line class="whisker"', "x1", "y1", "y2"))
    assert sorted(y(at) for _, *both in whiskers for at in both) == pytest.approx([18, 22, 35, 44], abs=0.05)
    middles = [left + width / 2 for left, width, *_ in bars]
    assert [at for at, *_ in whiskers] == pytest.approx([middles[0], middles[2]], abs=0.02)
    ends = [end for left, width, *_ in bars for end in (left, left + width)]
    assert ends == sorted(ends)  # side by side, none over another
    assert 0 < ends[0] < ends[3] < 50 < ends[4] < ends[5] < 100  # each group in its half
    titles = re.findall(rf'<text class="x" x="{NUMBER}%"[^>]*>(en-\w+)<', drawn)
    assert titles == [("25", "en-de"), ("75", "en-ja")]
    assert scale(figures.bars(groups, "%", "Tasks", zero=False), "y")(100) > 10  # the axis need not begin at 0


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis(0.0, 1.0), "0.0 0.2 0.4 0.6 0.8 1.0"),
        (Axis(0.0, 0.05), "0.00 0.01 0.02 0.03 0.04 0.05"),
        (Axis(0.6, 0.75), "0.60 0.65 0.70 0.75"),
        (Axis(0.0, 0.15), "0.000 0.025 0.050 0.075 0.100 0.125 0.150"),
        (Axis(0.0, 25_000.0), "0 5k 10k 15k 20k 25k"),
        (Axis(0.0, 3.2e6), "0 1M 2M 3M"),
        (Axis(0.0, 6e9), "0 1G 2G 3G 4G 5G 6G"),
        (Axis(1.0, 10_000.0, True), "1 10 100 1k 10k"),
        (Axis(0.01, 100.0, True), "0.01 0.1 1 10 100"),
        (Axis(1.0, 1e8, True), "1 100 10k 1M 100M"),
        (Axis(1.0, 1e5, True), "1 10 100 1k 10k 100k"),
        (Axis(1.0, 1e6, True), "1 100 10k 1M"),
        (Axis(5.0, 50.0, True), "5 10 20 30 50"),
        (Axis(0.0, 7.0), "0 2 4 6"),
        (Axis(4.0, 60.0, True), "5 10 20 30 50"),
        (Axis(110.0, 190.0, True), "120 140 160 180"),
    ],
)
def test_ticks_are_round_and_all_within_the_axis(axis, labels):
    ticks = axis.ticks()
    assert " ".join(label for _, label in ticks) == labels
    assert len(axis.ticks(3)) <= 4
    assert all(-1e-9 < axis.fraction(value) < 1 + 1e-9 for value, _ in ticks)
    assert [number(label) for _, label in ticks] == pytest.approx([value for value, _ in ticks])


def test_an_axis_holds_all_values_with_some_room():
    axis = Axis.around([2.0, 4.0, math.nan, math.inf])
    assert (axis.low, axis.high) == pytest.approx((1.92, 4.08))
    assert Axis.around([3.0, 5.0], zero=True).low == 0
    assert Axis.around([-3.0, 5.0], zero=True).low < -3
    assert Axis.around([-2.0, -1.0]).high > -1
    for only in (0.0, 7.0, -7.0):
        axis = Axis.around([only])
        assert axis.low < only < axis.high
    axis = Axis.around([0.0, -1.0, 1.0, 100.0], log=True)  # there is no logarithm of the first two
    assert 0.8 < axis.low < 1 < 100 < axis.high < 130
    axis = Axis.around([10.0, 1000.0], log=True)
    assert (axis.low, axis.high, axis.log) == (pytest.approx(10 / 100**0.04), pytest.approx(1000 * 100**0.04), True)
    assert Axis.around([]) == Axis(0.0, 1.0)
    assert Axis.around([0.0], log=True) == Axis(1.0, 10.0, True)


def test_the_interval_of_a_share_is_wilsons():
    """Against its published example: 95 % of 1 of 29 (Newcombe 1998)."""
    assert figures.proportion(1 / 29, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)
    assert figures.proportion(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert figures.proportion(0.0, 20)[0] == 0.0
    assert figures.proportion(1.0, 20)[1] == 1.0


def test_the_plane_of_two_components_tells_their_shares_and_how_far_languages_lie_apart():
    draw = np.random.default_rng(0)
    vectors = {
        code: draw.normal(size=(n, 5)) + shift for code, n, shift in (("en", 12, 1.0), ("de", 9, 0.0), ("ja", 1, 0.0))
    }
    vectors = {code: (own / np.linalg.norm(own, axis=1, keepdims=True)).astype(np.float32) for code, own in vectors.items()}
    texts = {code: [f"{code} {k}" * 20 for k in range(len(own))] for code, own in vectors.items()}
    found = figures.plane("a", vectors, texts)
    variances = np.sort(np.linalg.eigvalsh(np.cov(np.concatenate(list(vectors.values())).T)))[::-1]
    assert found.shares == pytest.approx(tuple(variances[:2] / variances.sum()))
    assert f"PC 1 ({100 * found.shares[0]:.1f} %)" in str(found.drawing)
    assert f"PC 2 ({100 * found.shares[1]:.1f} %)" in str(found.drawing)
    assert "en 3" in str(found.drawing)
    scores = []
    for code, other in (("en", "de"), ("de", "en")):  # a language of two sentences is left out
        for k, row in enumerate(vectors[code]):
            own = np.mean([1 - row @ one for j, one in enumerate(vectors[code]) if j != k])
            rest = np.mean([1 - row @ one for one in vectors[other]])
            scores.append((rest - own) / max(own, rest))
    assert found.silhouette == pytest.approx(np.mean(scores), abs=1e-4)
    assert figures.language_silhouette({"en": vectors["en"], "ja": vectors["ja"]}) is None
    three = figures.language_silhouette({"en": vectors["en"], "de": vectors["de"][:3]})
    assert three is not None
    still = figures.plane("b", {"en": np.ones((4, 2), np.float32)}, {"en": list("abcd")})
    assert still.shares == (0.0, 0.0)
