"""Multiple negatives ranking: values and gradients against the formula, and against sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.errors import ConfigError
from xswe.training.objective import Objective

torch = Later("torch")
unit = eval_script("parity.figures").unit


def slow_ranking(anchors, candidates, objective, same):
    """The formula, prefix by prefix, in float64."""
    k, n = len(anchors), len(candidates)
    masked = torch.zeros(k, n, dtype=torch.bool)
    masked[:, :k] |= same[0][:, None] == same[0][None]
    masked |= same[1][:k, None] == same[1][None]
    if len(same) > 2:
        masked |= same[2][:, None] == same[1][None]
    masked[torch.arange(k), torch.arange(k)] = False
    answer, total = torch.arange(k), 0.0
    for size in objective.prefixes or (anchors.shape[1],):
        a, c = (torch.nn.functional.normalize(x[:, :size], dim=1) for x in (anchors, candidates))
        s = a @ c.T
        s = s - objective.margin * torch.eye(k, n, dtype=s.dtype)
        s = (s / objective.temperature).masked_fill(masked, -1e9)
        total = total + torch.nn.functional.cross_entropy(s, answer)
        if objective.directions == "both":
            total = total + torch.nn.functional.cross_entropy(s[:, :k].T, answer)
    return total


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("prefixes", [(), (16, 8, 4)])
@pytest.mark.parametrize("directions", ["source", "both"])
@pytest.mark.parametrize(
    ("negatives", "alike", "margin"), [(0, False, 0.0), (0, True, 0.2), (41, False, 0.1), (17, True, 0.0)]
)
def test_ranking_over_candidates_equals_the_formula(threads, prefixes, directions, negatives, alike, margin):
    rng = np.random.default_rng(0)
    a, c = unit(rng, 23, 16), unit(rng, 23 + negatives, 16)
    same = (rng.integers(0, 20, 23), rng.integers(0, 25, 23 + negatives), rng.integers(0, 25, 23))[: 3 if alike else 2]
    objective = Objective(margin=margin, prefixes=prefixes, directions=directions)
    loss, d_a, d_c = objective(a, c, same, None, threads)
    ta, tc = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, c))
    slow = slow_ranking(ta, tc, objective, [torch.tensor(x) for x in same])
    slow.backward()
    # slow normalises, so that its gradient has no part along the vectors; ours without prefixes is that of the cosines.
    expected = [x.grad.numpy() for x in (ta, tc)]
    tangent = [g - (g * v).sum(1, keepdims=True) * v for g, v in ((d_a, a), (d_c, c))]
    assert loss == pytest.approx(slow.item(), rel=2e-5)
    assert objective(a, c, same, None, threads, gradient=False)[0] == pytest.approx(loss, rel=1e-6)
    for ours, theirs in zip(tangent, expected, strict=True):
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(ours, theirs, atol=4e-5, rtol=1e-3)


def test_further_negatives_leave_distillation_alone():
    rng = np.random.default_rng(1)
    a, c, teacher = unit(rng, 9, 8), unit(rng, 14, 8), unit(rng, 9, 5)
    same = np.arange(9), np.arange(14)
    alone = Objective(ranking=0.0, distillation=1.0)
    loss, d_a, d_c = alone(a, c, same, teacher)
    without, e_a, e_c = alone(a, c[:9], (same[0], same[1][:9]), teacher)
    assert loss == without == pytest.approx(alone(a, c, same, teacher, gradient=False)[0], rel=1e-6)
    np.testing.assert_array_equal(d_a, e_a)
    np.testing.assert_array_equal(d_c, np.concatenate([e_c, np.zeros((5, 8), np.float32)]))


def test_an_unknown_direction_is_refused():
    with pytest.raises(ConfigError, match="directions='target'"):
        Objective(directions="target")
