"""Losses over prefixes of the dimensions, against the sum written out with automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
from test_losses import slow_info_nce, slow_relational, unit

from tests.conftest import Later
from xswe.errors import ConfigError
from xswe.training.objective import Objective, Prefixes

torch = Later("torch")
SIZES, WEIGHTS = (12, 8, 3), (1.0, 0.5, 2.0)


def cut(vectors, size):
    return torch.nn.functional.normalize(vectors[:, :size], dim=1)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_loss_over_prefixes_equals_the_sum(threads):
    rng = np.random.default_rng(0)
    a, b, t = unit(rng, 19, 12), unit(rng, 19, 12), unit(rng, 19, 5)
    same = rng.integers(0, 15, 19), rng.integers(0, 17, 19)
    objective = Objective(
        margin=0.2, distillation=0.7, distillation_temperature=0.08, ranking=1.5, prefixes=SIZES, prefix_weights=WEIGHTS
    )
    loss, d_a, d_b = objective(a, b, same, t, threads)
    ta, tb = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b))
    tt = torch.tensor(t, dtype=torch.float64)
    slow = torch.zeros((), dtype=torch.float64)
    for size, weight in zip(SIZES, WEIGHTS, strict=True):
        ca, cb = cut(ta, size), cut(tb, size)
        slow = slow + weight * 1.5 * slow_info_nce(ca, cb, 0.05, 0.2, *map(torch.tensor, same))
        for left, right in ((ca, ca), (cb, cb), (ca, cb)):
            slow = slow + weight * 0.7 * slow_relational(left, right, tt, 0.08)
    slow.backward()
    assert loss == pytest.approx(slow.item(), rel=2e-5)
    np.testing.assert_allclose(d_a, ta.grad.numpy(), atol=2e-4)
    np.testing.assert_allclose(d_b, tb.grad.numpy(), atol=2e-4)


def test_the_full_prefix_alone_is_the_plain_loss():
    rng = np.random.default_rng(1)
    a, b, t = unit(rng, 9, 6), unit(rng, 9, 6), unit(rng, 9, 4)
    same = np.arange(9), np.arange(9)
    plain, over = Objective(distillation=1.0), Objective(distillation=1.0, prefixes=(6,))
    (one, *by_one), (two, *by_two) = plain(a, b, same, t), over(a, b, same, t)
    assert one == pytest.approx(two, rel=1e-5)
    for vectors, expected, found in zip((a, b), by_one, by_two, strict=True):
        # Prefixes are normalised in the loss: what lies along the vector is off already.
        across = expected - vectors * (vectors * expected).sum(1, keepdims=True)
        np.testing.assert_allclose(found, across, atol=1e-4)
    assert plain(a, b, same, None, gradient=False)[0] == pytest.approx(over(a, b, same, None, gradient=False)[0], rel=1e-5)


def test_a_vector_whose_first_dimensions_are_zero_has_no_gradient_there():
    rng = np.random.default_rng(2)
    a, b = unit(rng, 5, 6), unit(rng, 5, 6)
    a[2, :3] = 0.0
    loss, d_a, _ = Objective(prefixes=(3, 6))(a, b, (np.arange(5), np.arange(5)), None)
    assert np.isfinite(loss)
    assert np.isfinite(d_a).all()


def test_prefixes_are_sorted_with_their_weights():
    assert Prefixes.of((256, 64, 128), (3.0, 1.0, 2.0)) == Prefixes((64, 128, 256), (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefixes": (4, 4)},
        {"prefixes": (0, 4)},
        {"prefixes": (4, 2), "prefix_weights": (1.0,)},
        {"prefix_weights": (1.0,)},
        {"ranking": 0.0},
        {"ranking": -1.0},
    ],
)
def test_settings_that_cannot_work(wrong):
    with pytest.raises(ConfigError):
        Objective(**wrong)


def test_a_prefix_beyond_the_vectors_is_refused():
    rng = np.random.default_rng(3)
    a = unit(rng, 4, 6)
    with pytest.raises(ConfigError, match="have 6 dimensions"):
        Objective(prefixes=(8, 4))(a, a, (np.arange(4), np.arange(4)), None)


def test_prefixes_may_begin_with_one_dimension_and_a_weight_of_zero():
    assert Prefixes.of((3, 1), ()) == Prefixes((1, 3), (1.0, 1.0))
    assert Prefixes.of((3, 1), (0.0, 2.0)) == Prefixes((1, 3), (2.0, 0.0))
    for sizes, weights in (((3, 0), ()), ((3, 3), ()), ((3, 1), (0.0, 0.0)), ((3, 1), (2.0, -1.0)), ((3, 1), (1.0,))):
        with pytest.raises(ConfigError) as found:
            Prefixes.of(sizes, weights)
        assert str(found.value) == (
            f"objective.prefixes={list(sizes)} with prefix_weights={list(weights or (1.0, 1.0))}: give distinct positive "
            "numbers of dimensions, and one weight each that is not negative, nor all 0"
        )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperature": 0.0}, "objective.temperature=0.0: give a number above 0, as 0.05"),
        ({"distillation_temperature": -1.0}, "objective.distillation_temperature=-1.0: give a number above 0, as 0.05"),
        ({"margin": -0.1}, "objective.margin=-0.1: give a number that is not negative, as 0.3"),
        ({"directions": "target"}, "objective.directions='target': choose one of both, source"),
        ({"distillation_on": ("b", "a")}, "objective.distillation_on has ['a', 'b']: use source, target, cross"),
        ({"prefix_weights": (1.0,)}, "objective.prefix_weights needs objective.prefixes=[256,128,64] or the like"),
    ],
)
def test_what_an_objective_refuses(wrong, said):
    with pytest.raises(ConfigError) as found:
        Objective(**wrong)
    assert str(found.value) == said


def test_translations_are_needed_by_the_ranking_alone():
    assert Objective().needs_pairs
    assert Objective(ranking=0.5, distillation=1.0).needs_pairs
    assert not Objective(ranking=0.0, distillation=1.0).needs_pairs
