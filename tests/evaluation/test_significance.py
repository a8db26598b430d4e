from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import eval_script
from xswe.errors import ConfigError
from xswe.evaluation.evaluate import Measured, significance
from xswe.evaluation.metrics import Bootstrap, Row, compare_draws, compare_rows, corrected, enough, resample, with_interval

row = eval_script("parity.significance").row


def test_the_interval_of_a_share_is_about_the_normal_one():
    rng = np.random.default_rng(0)
    items = (rng.random(1000) < 0.8).astype(float)
    found = with_interval(row(items), Bootstrap(2000))
    half = 1.96 * items.std() / np.sqrt(1000)
    assert found.low == pytest.approx(items.mean() - half, abs=0.004)
    assert found.high == pytest.approx(items.mean() + half, abs=0.004)
    assert found.value == items.mean()


def test_the_interval_of_a_correlation_is_scipys():
    from scipy.stats import bootstrap, rankdata

    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)

    def spearman(a, b):
        return np.corrcoef(rankdata(a), rankdata(b))[0, 1]

    ours = with_interval(row(np.stack([x, y]), "cosine_spearman", spearman(x, y)), Bootstrap(1000))
    theirs = bootstrap(
        (x, y), spearman, paired=True, vectorized=False, n_resamples=1000, method="percentile"
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)


def test_same_seed_same_draws():
    items = np.random.default_rng(0).random(50)
    np.testing.assert_array_equal(resample(row(items), Bootstrap(20)), resample(row(items), Bootstrap(20)))
    assert (resample(row(items), Bootstrap(20)) != resample(row(items), Bootstrap(20, seed=1))).any()
    generator = np.random.default_rng([Bootstrap.seed, 50])
    each = [items[generator.integers(0, 50, 50)].mean() for _ in range(700)]
    assert resample(row(items), Bootstrap(700)).tolist() == each  # however many are made at once


def test_a_model_does_not_differ_from_itself():
    items = (np.random.default_rng(0).random(300) < 0.7).astype(float)
    found = compare_rows(row(items), row(items.copy()), Bootstrap(500))
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_paired_test_sees_what_two_intervals_do_not():
    rng = np.random.default_rng(3)
    hard = rng.random(1000)
    a, b = (hard < 0.82).astype(float), (hard < 0.80).astype(float)  # whatever b finds, a finds
    first, second = with_interval(row(a), Bootstrap()), with_interval(row(b), Bootstrap())
    assert first.low < second.high
    found = compare_rows(first, second, Bootstrap())
    assert found.p < 0.01
    assert 0 < found.low < found.difference < found.high
    swapped = compare_rows(second, first, Bootstrap())
    assert (swapped.difference, swapped.low, swapped.high, swapped.p) == pytest.approx(
        (-found.difference, -found.high, -found.low, found.p)
    )


def test_p_is_uniform_enough_where_there_is_no_difference():
    rng = np.random.default_rng(4)
    below = sum(
        compare_rows(
            row((rng.random(200) < 0.7).astype(float)), row((rng.random(200) < 0.7).astype(float)), Bootstrap(200)
        ).p
        < 0.05
        for _ in range(100)
    )
    assert 1 <= below <= 14  # 5 expected


def test_rows_without_items_have_no_test_and_no_interval():
    plain = Row("t", "en-ja", "accuracy", 0.5, 10)
    assert with_interval(plain, Bootstrap()) is plain
    assert compare_rows(plain, row(np.ones(10)), Bootstrap()) is None
    assert with_interval(row(np.ones(10)), Bootstrap(0)).low is None
    with pytest.raises(ValueError, match="cannot be compared"):
        compare_rows(row(np.ones(10)), row(np.ones(10), "f1"), Bootstrap())


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="rounds"):
        Bootstrap(-1)
    for level in (95, 1.0, 0.0):
        with pytest.raises(ConfigError, match=r"^bootstrap needs rounds >= 0 and 0 < level < 1$"):
            Bootstrap(level=level)
    assert (Bootstrap(0).rounds, Bootstrap(level=0.999).level) == (0, 0.999)


def test_p_of_many_tests_is_corrected_by_holms_steps():
    assert corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert corrected([0.02]) == [0.02]
    assert corrected([0.9, 0.8]) == [1.0, 1.0]
    assert corrected([]) == []


def test_draws_are_enough_for_the_smallest_corrected_p():
    assert enough(Bootstrap(10), 20).rounds == 800  # with 2 / 801 * 20 below 0.05
    assert enough(Bootstrap(801), 20).rounds == 801
    assert enough(Bootstrap(0), 20).rounds == 0


def test_p_is_twice_the_share_of_draws_that_say_the_contrary():
    draws = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.1, 0.0, np.nan])
    found = compare_draws(0.25, draws, 0.5)
    assert found.p == pytest.approx(2 * (2 + 1) / (8 + 1))
    assert (found.difference, found.low, found.high) == (0.25, pytest.approx(0.075), pytest.approx(0.425))
    assert compare_draws(-0.25, -draws, 0.5).p == found.p
    assert compare_draws(1.0, np.ones(99), 0.5).p == pytest.approx(2 / 100)


def measured(name, figures):
    rows = tuple(
        Row(f"t{k}", "en-ja", "f1", float(items.mean()), len(items), items=items) for k, items in enumerate(figures)
    )
    return Measured(name, 8, 8, 8, ("en", "ja"), None, rows)


def test_one_of_many_figures_is_not_better_by_chance():
    """Two models that are equally good, on 20 figures: without a correction two tests would find a difference."""
    rng = np.random.default_rng(8)
    alike = [measured(name, [(rng.random(200) < 0.7).astype(float) for _ in range(20)]) for name in "ab"]
    tests = significance(alike, Bootstrap(400))
    assert len(tests) == 20
    assert min(test.p for test in tests) < 0.05 <= min(test.corrected for test in tests)


def test_what_differs_is_found_among_many_tests_with_few_draws():
    """100 draws show no p below .02, which times 20 is no difference whatever the figures: as many as needed are drawn."""
    rng = np.random.default_rng(6)
    better = measured("better", [(rng.random(200) < 0.9).astype(float) for _ in range(20)])
    worse = measured("worse", [(rng.random(200) < 0.4).astype(float) for _ in range(20)])
    assert max(test.corrected for test in significance([better, worse], Bootstrap(100))) < 0.05
    assert significance([better, worse], Bootstrap(0)) == []


def test_figures_without_values_or_items_cannot_be_compared():
    items = np.array([1.0, 0.0, 1.0, 1.0])
    known = Row("a", "en-de", "f1", 0.75, 4, items=items)
    assert compare_rows(known, known, Bootstrap(50)).difference == 0.0
    for other in (
        replace(known, value=None),
        replace(known, items=None),
        replace(known, items=items[:3]),
    ):
        assert compare_rows(known, other, Bootstrap(50)) is None
        assert compare_rows(other, known, Bootstrap(50)) is None
    assert compare_rows(known, known, Bootstrap(0)) is None
    with pytest.raises(ValueError, match="cannot be compared"):
        compare_rows(known, replace(known, metric="accuracy"), Bootstrap(50))
