from __future__ import annotations

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.evaluation.metrics import Bootstrap, Row, compare_rows, resample, with_interval


def row(items, metric="accuracy", value=None):
    return Row("t", "en-ja", metric, float(items.mean()) if value is None else value, items.shape[-1], items=items)


def test_the_interval_of_a_share_is_about_the_normal_one():
    rng = np.random.default_rng(0)
    items = (rng.random(1000) < 0.8).astype(float)
    found = with_interval(row(items), Bootstrap(2000))
    half = 1.96 * items.std() / np.sqrt(1000)
    assert found.low == pytest.approx(items.mean() - half, abs=0.004)
    assert found.high == pytest.approx(items.mean() + half, abs=0.004)
    assert found.value == items.mean()


def test_the_interval_of_a_correlation_is_scipys():
    from scipy.stats import bootstrap, spearmanr

    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    value = spearmanr(x, y).statistic
    ours = with_interval(row(np.stack([x, y]), "cosine_spearman", value), Bootstrap(1000))
    theirs = bootstrap(
        (x, y), lambda a, b: spearmanr(a, b).statistic, paired=True, vectorized=False, n_resamples=1000, method="percentile"
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)


def test_same_seed_same_draws():
    items = np.random.default_rng(0).random(50)
    np.testing.assert_array_equal(resample(row(items), Bootstrap(20)), resample(row(items), Bootstrap(20)))
    assert (resample(row(items), Bootstrap(20)) != resample(row(items), Bootstrap(20, seed=1))).any()


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
        for _ in range(200)
    )
    assert 1 <= below <= 24  # 10 expected


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
    with pytest.raises(ConfigError, match="level"):
        Bootstrap(level=95)
