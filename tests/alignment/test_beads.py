"""Beads: the compiled programme against a plain one, and texts edited at places that are known."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xswe
from tests.conftest import eval_script
from xswe.alignment.beads import (
    AlignConfig,
    Band,
    Constraints,
    Lines,
    Part,
    Prices,
    align_lines,
    best_cells,
    estimate,
    line_sums,
    usual_shapes,
)
from xswe.alignment.kernels import run_properties
from xswe.errors import ConfigError


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def gold():
    return eval_script("experiments.align_gold")


def random_lines(rng: np.random.Generator, n: int, d: int = 6) -> Lines:
    return Lines(rng.normal(size=(n, d)).astype(np.float32), rng.integers(5, 60, n).astype(np.float32))


def score_of(steps: list[tuple[int, int]], part: Part, prices: Prices, config: AlignConfig) -> float:
    """The score of a sequence of steps, from its definition."""
    total, i, j, in_gap = 0.0, 0, 0, False
    shapes = usual_shapes(config.most)
    for a, b in steps:
        if a and b:
            x, y = part.source.sums[i : i + a].sum(0), part.target.sums[j : j + b].sum(0)
            score = prices.score(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
            ratio = np.log((part.target.sizes[j : j + b].sum() + 1) / (part.source.sizes[i : i + a].sum() + 1))
            size = min(1.0, config.length * (ratio - prices.shift) ** 2 / (2 * prices.spread**2))
            prior = config.prior * prices.doubt * np.log(shapes[a - 1, b - 1] * (1 - prices.gaps))
            total += (1 + (a + b - 2) / 8) * (score - config.gap - size) + prior - config.merge * (a + b - 2)
            total -= 0.3 * min(a - 1, b - 1)
        elif not in_gap:
            total += config.prior * prices.doubt * np.log(prices.gaps)
        in_gap = not (a and b)
        i, j = i + a, j + b
    return total


def every_path(n: int, m: int, most: int):
    """All sequences of steps from (0, 0) to (n, m)."""
    if n == m == 0:
        yield []
    for a in range(min(n, most) + 1):
        for b in range(min(m, most) + 1):
            if (a and b) or (a, b) in ((1, 0), (0, 1)):
                for rest in every_path(n - a, m - b, most):
                    yield [*rest, (a, b)]


@pytest.mark.parametrize("seed", range(12))
def test_the_compiled_path_scores_as_the_best_of_all_paths(seed):
    rng = np.random.default_rng(seed)
    n, m, most = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    part = Part(random_lines(rng, n), random_lines(rng, m), Band.full(n, m))
    config, prices = AlignConfig(most=most, length=0.2, merge=0.1), Prices(0.0, 0.5, 0.1, 0.2, 0.4)
    cells = best_cells(part, prices, config, most)
    steps = [tuple(step) for step in np.diff(cells, axis=0).tolist()]
    best = max(score_of(path, part, prices, config) for path in every_path(n, m, most))
    assert score_of(steps, part, prices, config) == pytest.approx(best, abs=1e-4)


def is_allowed(i: int, j: int, a: int, b: int, known: Constraints) -> bool:
    """Whether a bead of so many lines from a cell on holds no line in a gap, and no rejected pair."""
    rows, columns = set(range(i, i + a)), set(range(j, j + b))
    if rows & set(known.source_gaps.tolist()) or columns & set(known.target_gaps.tolist()):
        return False
    pairs = ((set(range(p, q)), set(range(r, s))) for p, q, r, s in known.rejected.tolist())
    return not any(x <= rows and y <= columns for x, y in pairs)


def best_score(part: Part, prices: Prices, config: AlignConfig, known: Constraints) -> float:
    """The score of the best path, by trying all beads that are allowed at all cells."""
    n, m = len(part.source), len(part.target)

    def bead(i: int, j: int, a: int, b: int) -> float:
        lines = Part(part.source.part(i, i + a), part.target.part(j, j + b), part.band)
        return score_of([(a, b)], lines, prices, config)

    @lru_cache(None)
    def best(i: int, j: int, in_gap: bool) -> float:
        if (i, j) == (n, m):
            return 0.0
        opening = 0.0 if in_gap else config.prior * prices.doubt * np.log(prices.gaps)
        gaps = [opening + best(i + a, j + b, True) for a, b in ((1, 0), (0, 1)) if i + a <= n and j + b <= m]
        sizes = [(a, b) for a in range(1, config.most + 1) for b in range(1, config.most + 1) if i + a <= n and j + b <= m]
        return max(gaps + [bead(i, j, a, b) + best(i + a, j + b, False) for a, b in sizes if is_allowed(i, j, a, b, known)])

    return best(0, 0, False)


@st.composite
def constrained(draw):
    """A seed, the sizes of two texts, the largest bead, and what is known of them."""
    n, m, most = draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(1, 5))
    gaps = [np.array(sorted(draw(st.sets(st.integers(0, size - 1), max_size=3))), np.int64) for size in (n, m)]
    runs = [
        st.tuples(st.integers(0, size - 1), st.integers(1, 3)).map(lambda one, size=size: (one[0], min(sum(one), size)))
        for size in (n, m)
    ]
    pairs = sorted(draw(st.sets(st.tuples(*runs), max_size=12)), key=lambda pair: pair[0][1])
    rejected = np.array([[*a, *b] for a, b in pairs], np.int64).reshape(-1, 4)
    return draw(st.integers(0, 2**32 - 1)), n, m, most, Constraints((), *gaps, rejected)


@settings(max_examples=20)
@given(constrained())
def test_the_compiled_path_scores_as_the_best_of_those_that_are_allowed(given):
    seed, n, m, most, known = given
    rng = np.random.default_rng(seed)
    source, target = random_lines(rng, n), random_lines(rng, m)
    if min(n, m) > 1:  # some lines are like some others, so that a bead is worth it
        target.sums[: min(n, m)] += source.sums[: min(n, m)]
    # So low a price that beads are worth it that are like nothing.
    config, prices = AlignConfig(most=most, length=0.2, gap=0.0, merge=0.1), Prices(-0.3, 0.5, 0.1, 0.2, 0.4)
    for side, gaps in ((source, known.source_gaps), (target, known.target_gaps)):
        side.clear(gaps)
    part = Part(source, target, Band.full(n, m), known)
    cells = best_cells(part, prices, config, most)
    steps = [tuple(step) for step in np.diff(cells, axis=0).tolist()]
    for (i, j), (a, b) in zip(cells[:-1].tolist(), steps, strict=True):
        assert not (a and b) or is_allowed(i, j, a, b, known)
    assert score_of(steps, part, prices, config) == pytest.approx(best_score(part, prices, config, known), abs=1e-4)


def test_what_is_known_of_a_part_is_counted_from_its_corner():
    known = Constraints(
        [((0, 0), (4, 5)), ((4, 5), (5, 6)), ((6, 7), (8, 9)), ((7, 8), (9, 9)), ((8, 9), (9, 10))],
        np.array([2, 5, 9]),
        np.array([0, 7]),
        np.array([[1, 2, 4, 5], [4, 6, 5, 8], [3, 7, 2, 3], [6, 8, 7, 9], [9, 10, 9, 10]]),
    )
    part = known.within((4, 5), (8, 9))
    assert part.anchors == [((0, 0), (1, 1)), ((2, 2), (4, 4))]
    assert part.source_gaps.tolist() == [1]
    assert part.target_gaps.tolist() == [2]
    assert part.rejected.tolist() == [[0, 2, 0, 3], [2, 4, 2, 4]]
    assert part.within((0, 0), (4, 4)).rejected.tolist() == part.rejected.tolist()


def test_a_narrow_band_that_holds_the_path_gives_the_same_path():
    rng = np.random.default_rng(3)
    source = random_lines(rng, 60, 16)
    target = Lines(source.sums[:-4] + rng.normal(size=(56, 16)).astype(np.float32) * 0.2, source.sizes[:-4])
    config, prices = AlignConfig(), Prices(0.0, 0.9)
    full = best_cells(Part(source, target, Band.full(60, 56)), prices, config, 5)
    rows = np.arange(61)
    band = Band(np.clip(rows - 7, 0, 52), np.clip(rows + 8, 9, 57))
    band.high[-1] = 57
    assert np.array_equal(best_cells(Part(source, target, band), prices, config, 5), full)


def test_the_band_around_a_coarse_path_holds_the_fine_one():
    coarse = np.array([[0, 0], [1, 1], [3, 2], [3, 9], [4, 10]])
    band = Band.around(coarse, 9, 21, 2)
    for i, j in (2 * coarse).tolist():
        assert band.low[i] <= j < band.high[i]
    assert (band.low[0], band.high[9]) == (0, 22)
    assert (np.diff(band.low) >= 0).all()
    assert (np.diff(band.high) >= 0).all()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=9), st.integers(1, 4), st.data())
def test_a_band_is_no_wider_than_is_said(steps, search, data):
    cells = np.cumsum([(0, 0), *steps], axis=0)
    (half_n, half_m), more = cells[-1].tolist(), st.integers(0, 1)
    n, m = 2 * half_n + data.draw(more), 2 * half_m + data.draw(more)
    between = [*cells.tolist(), *((a + b) // 2 for a, b in pairwise(cells))]  # of steps of several lines, the middle
    found = Band.around(cells, n, m, search)
    for row in range(n + 1):
        behind = [2 * column for line, column in between if line >= (row - search) // 2]
        before = [2 * column for line, column in between if line <= (row + search + 1) // 2]
        low = min([*behind, m + 1]) - search
        assert found.low[row] == (0 if row == 0 else min(max(low, 0), m))
        assert found.high[row] == (m + 1 if row == n else min(max(before) + search + 1, m + 1))
    found = Band.near(cells, *cells[-1], search)
    n, m = cells[-1]
    for row in range(n + 1):
        behind = [column for line, column in cells.tolist() if line >= row]
        before = [column for line, column in cells.tolist() if line <= row]
        assert found.low[row] == (0 if row == 0 else max(min(behind) - search, 0))
        assert found.high[row] == (m + 1 if row == n else min(max(before) + search, m) + 1)


def told_apart(pairs: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> Prices:
    """The statistics of cosines of translations and of others, and of the logarithms of sizes, from their definition."""
    good = pairs > np.quantile(others, 0.9)
    good = good if good.sum() >= 20 else np.ones(len(pairs), bool)
    noise, shift = others.mean(), np.median(ratios[good])
    signal = max(np.median(pairs[good]), noise + 0.1)
    doubt = (others.var() + pairs[good].var()) / 2 / (signal - noise) ** 2
    spread = 1.4826 * np.median(np.abs(ratios[good] - shift))
    return Prices(noise, signal, min(max(doubt, 0.02), 0.3), shift, min(max(spread, 0.1), 1.0))


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0])
def test_the_statistics_of_translations_are_those_of_lines_that_are_nearest_to_each_other(alike, spread):
    rng = np.random.default_rng(4)
    parts, pairs, others, ratios = [], [], [], []
    for n in (150, 100):
        common = alike * rng.normal(size=16)  # in all lines; much of it, and nothing tells them apart
        source = rng.normal(size=(n, 16)) + common
        target = source + 0.3 * rng.normal(size=(n, 16))
        sizes = rng.integers(5, 60, n), 20 * np.exp(spread * rng.normal(size=n))
        sides = [Lines(a.astype(np.float32), b.astype(np.float32)) for a, b in zip((source, target), sizes, strict=True)]
        parts.append(Part(*sides, Band.full(n, n)))
        a, b = (side.sums / np.linalg.norm(side.sums, axis=1, keepdims=True) for side in sides)
        cosines = a @ b.T
        rows = [i for i in range(n) if cosines[:, cosines[i].argmax()].argmax() == i]
        columns = cosines[rows].argmax(1)
        pairs.append(cosines[rows, columns])
        ratios.append(np.log((sides[1].sizes[columns] + 1) / (sides[0].sizes[rows] + 1)))
        for away in (-4, -3, -2, 2, 3, 4):
            others.append([cosines[i, j + away] for i, j in zip(rows, columns, strict=True) if 0 <= j + away < n])
    found, wanted = estimate(parts), told_apart(*map(np.concatenate, (pairs, others, ratios)))
    for name in ("noise", "signal", "doubt", "shift", "spread"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-4), name


def test_too_few_lines_have_the_usual_statistics():
    rng = np.random.default_rng(4)
    few = random_lines(rng, 5)
    assert estimate([]) == estimate([Part(few, few.part(0, 0), Band.full(5, 0))]) == Prices(0.0, 0.5, 0.05, 0.0, 0.5)
    assert estimate([Part(few, few, Band.full(5, 5))]) == Prices(signal=pytest.approx(1.0))
    opposite = Lines(np.array([[1, 0]], np.float32), few.sizes[:1]), Lines(np.array([[-1, 0]], np.float32), few.sizes[:1])
    assert estimate([Part(*opposite, Band.full(1, 1))]) == Prices(signal=0.3)


def test_edited_documents_are_aligned_as_they_were_edited(mini, gold, sample):
    """Sentences merged, split, dropped and inserted at known places, in three pairs of languages."""
    for language in ("de", "zh", "ja"):
        pairs = list(zip(sample["en"], sample[language], strict=True))
        total = np.zeros(5, int)
        for seed, start in enumerate((0, 300, 600)):
            made = gold.edited(pairs[start : start + 250], pairs[1000:], ("en", language), seed)
            for document in (made, gold.half_missing(made, seed)):
                lines = line_sums(mini, document.source), line_sums(mini, document.target)
                cells, _ = align_lines(*lines, AlignConfig())
                total += gold.counts(gold.beads_of(cells), document.beads)
        strict, lax = gold.f1(total)
        assert strict > 0.93, language
        assert lax > 0.97, language


def test_long_texts_go_through_coarser_ones_to_the_same_end(mini, sample):
    """4,000 lines a side, a run of 700 missing: over 2**22 cells, so that the path is found from coarse to fine."""
    rows = np.random.default_rng(5).permutation(np.tile(np.arange(len(sample["en"])), 3))[:4000].tolist()
    english = [sample["en"][row] for row in rows]
    german = [sample["de"][row] for row in rows[:1000] + rows[1700:]]
    cells, _ = align_lines(line_sums(mini, english), line_sums(mini, german), AlignConfig())
    steps = np.diff(cells, axis=0)
    i, j = cells[:-1][(steps == 1).all(1)].T
    right = np.where(i < 1000, i == j, i - 700 == j).sum()
    assert right > 0.97 * 3300


def test_lines_of_an_ensemble_weigh_as_much_as_they_have_characters(mini, sample):
    texts = [*sample["en"][:5], ""]
    model = xswe.types.Ensemble.of([mini, mini])
    found = line_sums(model, texts)
    np.testing.assert_allclose(found.sums, model.encode(texts) * np.array([[len(text)] for text in texts]), rtol=1e-5)
    assert found.sizes.tolist() == [len(text) for text in texts]


def test_several_lines_are_as_long_as_all_their_characters():
    lines = random_lines(np.random.default_rng(0), 4)
    inverse, logs = np.empty((2, 3, 5), np.float32)
    run_properties(lines.sums, lines.sizes, inverse, logs, np.empty(6, np.float32))
    for end in range(5):
        for further in range(3):
            run, whole = slice(end - 1 - further, end), further < end
            norm, size = (np.linalg.norm(lines.sums[run].sum(0)), 1 + lines.sizes[run].sum()) if whole else (1, 1)
            assert inverse[further, end] == pytest.approx(1 / norm if whole else 0, rel=1e-5)
            assert logs[further, end] == pytest.approx(np.log(size) if whole else 0, rel=1e-5)


def test_no_line_counts_more_than_another_in_what_all_have_in_common():
    lines = random_lines(np.random.default_rng(0), 3)
    np.testing.assert_allclose(Lines(lines.sums[::-1], lines.sizes).mean(), lines.mean(), atol=1e-6)


def test_empty_sides_and_lines_are_gaps():
    rng = np.random.default_rng(0)
    for n, m in ((0, 0), (3, 0), (0, 3)):
        cells, _ = align_lines(random_lines(rng, n), random_lines(rng, m), AlignConfig())
        assert cells[-1].tolist() == [n, m]
        assert not (np.diff(cells, axis=0) > 0).all(1).any()
    blank = Lines(np.zeros((4, 6), np.float32), np.zeros(4, np.float32))
    cells, _ = align_lines(blank, random_lines(rng, 4), AlignConfig())
    assert not (np.diff(cells, axis=0) > 0).all(1).any()


@pytest.mark.parametrize("wrong", [{"most": 6}, {"most": 0}, {"search": 0}, {"merge": -1}, {"gap": 1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        AlignConfig(**wrong)
