"""What is made of the paths of two texts, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alignment.test_beads import random_lines
from xswe.alignment import beads as module
from xswe.alignment.beads import (
    AlignConfig,
    Constraints,
    Lines,
    Prices,
    _learnt,
    band_of,
    bead_cosines,
    joined,
    parts_between,
    path_through,
    usual_shapes,
)
from xswe.alignment.sentences import _without

STEPS = st.lists(
    st.one_of(st.tuples(st.integers(1, 3), st.integers(1, 3)), st.sampled_from([(1, 0), (0, 1)])), min_size=1, max_size=12
)


def cells_of(steps):
    return np.cumsum([(0, 0), *steps], axis=0).astype(np.int64)


@settings(max_examples=30)
@given(STEPS, st.integers(0, 99))
def test_beads_have_the_cosine_of_all_their_lines(steps, seed):
    rng, cells = np.random.default_rng(seed), cells_of(steps)
    source, target = (random_lines(rng, size) for size in cells[-1])
    sums = []
    for (i, j), (a, b) in zip(cells[:-1].tolist(), steps, strict=True):
        both = source.sums[i : i + a].sum(0), target.sums[j : j + b].sum(0)
        sums.append(tuple(one / np.linalg.norm(one) for one in both) if a and b else None)
    beads = [both for both in sums if both]
    wanted = [float(both[0] @ both[1]) if both else np.nan for both in sums]
    np.testing.assert_allclose(bead_cosines(cells, source, target), wanted, atol=1e-5)
    most = []  # with the target of another bead, up to four beads away
    for k, both in enumerate(beads):
        near = [other[1] for place, other in enumerate(beads) if 0 < abs(place - k) <= 4]
        most.append(max((float(both[0] @ other) for other in near), default=-1.0))
    found = bead_cosines(cells, source, target, mismatched=True)
    assert np.isnan(found).tolist() == [both is None for both in sums]
    np.testing.assert_allclose(found[~np.isnan(found)], most, atol=1e-5)


def test_shapes_are_a_fifth_as_frequent_for_each_further_line():
    shapes = usual_shapes(3)
    assert shapes.sum() == pytest.approx(1)
    assert shapes[0] / shapes[0, 0] == pytest.approx([1, 0.2, 0.04])
    assert np.array_equal(shapes, shapes.T)
    crossed = shapes[1:, 1:] / shapes[0, 0]
    assert (crossed / [[0.04, 0.008], [0.008, 0.0016]]).ravel() == pytest.approx([module._MANY_TO_MANY] * 4)


def test_what_paths_have_is_learnt_beside_thirty_usual_beads():
    first = np.array([(1, 1)] * 20 + [(1, 0), (0, 1)] + [(2, 1)] * 8 + [(0, 1)])  # two gaps are begun
    second = np.array([(1, 0), (1, 1), (1, 1), (2, 2)])  # and one
    known = [np.array([[1, 2]])]
    prices = _learnt([first, second], known, Prices(signal=0.7), 3)
    assert prices.signal == 0.7
    beads, usual = 20 + 8 + 3 + 1, usual_shapes(3)
    assert prices.gaps == pytest.approx((3 + 30 * 0.05) / (beads + 3 + 30))
    counts = np.array([[22, 1, 0], [8, 1, 0], [0, 0, 0]])
    shapes = (counts + 30 * usual) / (beads + 30)
    shapes[1:, 1:] = np.minimum(shapes, usual)[1:, 1:]  # crossed beads are never learnt
    assert prices.shapes == pytest.approx(shapes / shapes.sum())


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2), st.integers(1, 2)), max_size=4), st.data()
)
def test_known_beads_and_the_parts_between_make_up_the_path(rooms, data):
    anchors, place = [], np.zeros(2, np.int64)
    for a, b, c, d in rooms:
        start = np.add(place, (a, b))
        place = np.add(start, (c, d))
        anchors.append((tuple(start.tolist()), tuple(place.tolist())))
    n, m = (place + data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))).tolist()
    rng = np.random.default_rng(0)
    source, target, search = random_lines(rng, n), random_lines(rng, m), data.draw(st.integers(1, 3))
    parts = parts_between(source, target, Constraints(anchors), AlignConfig())
    assert len(parts) >= 1
    for (a, b), part in parts:
        assert np.array_equal(part.source.sums, source.sums[a : a + len(part.source)])
        assert np.array_equal(part.target.sums, target.sums[b : b + len(part.target)])
    inside = sum(len(part.source) for _, part in parts), sum(len(part.target) for _, part in parts)
    beads = [np.subtract(stop, start) for start, stop in anchors]
    assert tuple(np.add(inside, np.sum(beads, axis=0) if beads else (0, 0))) == (n, m)
    found = [np.array([(0, 0), (len(part.source), len(part.target))]) for _, part in parts]
    path = path_through(anchors, parts, found)
    ends = {(0, 0), (n, m), *(cell for bead in anchors for cell in bead)}
    assert path.tolist() == [list(cell) for cell in sorted(ends)]
    whole = joined(source, target, anchors, parts, search)
    if not anchors:
        assert whole is parts[0][1]
        return
    covered = [(row, column, column + 1) for bead in anchors for row, column in bead]
    for (a, b), part in parts:
        covered += [(a + k, part.band.low[k] + b, part.band.high[k] + b) for k in range(len(part.source) + 1)]
    for row in range(n + 1):
        low = min(first for other, first, _ in covered if other >= row) - search
        high = max(last for other, _, last in covered if other <= row) + search
        assert whole.band.low[row] == (0 if row == 0 else max(low, 0))
        assert whole.band.high[row] == (m + 1 if row == n else min(high, m + 1))


def test_all_cells_are_looked_at_up_to_a_limit_and_few_beyond(monkeypatch):
    monkeypatch.setattr(module, "_MAX_FULL_CELLS", 60 * 50)
    monkeypatch.setattr(module, "_MAX_COARSE_CELLS", 400)
    rng = np.random.default_rng(2)
    source = random_lines(rng, 61, 32)
    target = Lines(source.sums[:50] + 0.2 * rng.normal(size=(50, 32)).astype(np.float32), source.sizes[:50])
    all_cells = band_of(source.part(0, 60), target, AlignConfig(search=2))
    assert np.array_equal(all_cells.low, np.zeros(61))
    assert np.array_equal(all_cells.high, np.full(61, 51))
    levels = []
    monkeypatch.setattr(module, "coarse_cells", lambda part, config: levels.append(part) or plain(part, config))
    few = band_of(source, target, AlignConfig(search=2))
    assert [(len(part.source), len(part.target)) for part in levels] == [(16, 13), (31, 25)]
    assert (few.high - few.low).mean() < 25
    assert all(few.low[row] <= row < few.high[row] for row in range(51))


plain = module.coarse_cells


def test_two_lines_as_one_have_their_sums_and_a_last_one_stays():
    lines = Lines(np.arange(10, dtype=np.float32).reshape(5, 2), np.array([1, 2, 3, 4, 5], np.float32))
    half = lines.halved()
    assert half.sums.tolist() == [[2, 4], [10, 12], [8, 9]]
    assert half.sizes.tolist() == [3, 7, 5]


def test_the_mean_is_that_of_unit_vectors_and_sixteen_of_zero(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 7)
    rng = np.random.default_rng(1)
    lines = random_lines(rng, 20)
    unit = lines.sums / np.linalg.norm(lines.sums, axis=1, keepdims=True)
    np.testing.assert_allclose(lines.mean(), unit.sum(0) / 36, atol=1e-6)
    wanted = lines.sums - np.linalg.norm(lines.sums, axis=1, keepdims=True) * unit.sum(0) / 36
    lines.centre()
    np.testing.assert_allclose(lines.sums, wanted, atol=1e-5)


def test_beads_below_a_score_become_gaps_of_each_line():
    steps = [(1, 1), (2, 1), (1, 0), (1, 2), (1, 1), (1, 1)]
    scores, fixed = np.array([0.5, 0.3, 0.0, 0.2, 0.4, 0.1], np.float32), np.array([0, 0, 0, 0, 0, 1], bool)
    cells, kept, known = _without(cells_of(steps), scores, fixed, 0.4)
    assert np.diff(cells, axis=0).tolist() == [
        *([1, 1], [1, 0], [1, 0], [0, 1], [1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1])
    ]
    assert kept.tolist() == pytest.approx([0.5, 0, 0, 0, 0, 0, 0, 0, 0.4, 0.1])
    assert known.tolist() == [False] * 9 + [True]
    assert cells.tolist()[0] == [0, 0]
