"""Fast equals slow: values and gradients of the hand-written losses against automatic differentiation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.errors import ConfigError
from xswe.training.losses import RankingLoss, RelationalLoss, on_products, relational_targets, through_norm
from xswe.training.objective import LOSSES, Objective

torch = Later("torch")
unit = eval_script("parity.figures").unit
slow_info_nce, slow_relational = (eval_script(f"parity.{name}").formula for name in ("contrastive", "distillation"))


def info_nce(a, b, temperature, margin=0.0, same_source=None, same_target=None, threads=1, gradient=True):
    same = tuple(np.arange(len(a)) if one is None else one for one in (same_source, same_target))
    return on_products(a, b, RankingLoss(same, temperature, margin), threads, gradient)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("temperature", "margin"), [(0.05, 0.0), (0.05, 0.3), (1.0, 0.1), (0.03, 0.0), (0.1, -0.4)])
def test_info_nce_equals_the_formula(threads, temperature, margin):
    rng = np.random.default_rng(0)
    a, b = unit(rng, 37, 16), unit(rng, 37, 16)
    same_a, same_b = rng.integers(0, 30, 37), rng.integers(0, 34, 37)
    loss, d_a, d_b = info_nce(
        a, b, temperature=temperature, margin=margin, same_source=same_a, same_target=same_b, threads=threads
    )
    ta, tb = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b))
    slow = slow_info_nce(ta, tb, temperature, margin, torch.tensor(same_a), torch.tensor(same_b))
    slow.backward()
    assert loss == pytest.approx(slow.item(), rel=2e-5)
    np.testing.assert_allclose(d_a, ta.grad.numpy(), atol=3e-5 / temperature * 0.05, rtol=1e-3)
    np.testing.assert_allclose(d_b, tb.grad.numpy(), atol=3e-5 / temperature * 0.05, rtol=1e-3)


def test_without_gradient_the_value_is_the_same():
    rng = np.random.default_rng(1)
    a, b = unit(rng, 9, 4), unit(rng, 9, 4)
    assert info_nce(a, b, temperature=0.05, gradient=False)[0] == info_nce(a, b, temperature=0.05)[0]


def test_equal_texts_are_no_negatives_of_each_other():
    rng = np.random.default_rng(2)
    a = unit(rng, 4, 8)
    a[1] = a[0]
    confused, *_ = info_nce(a, a, temperature=0.05)
    masked, *_ = info_nce(a, a, temperature=0.05, same_source=np.array([0, 0, 1, 2]))
    assert confused > 0.6 > 0.1 > masked


def test_a_temperature_that_float32_cannot_carry_is_refused():
    rng = np.random.default_rng(3)
    with pytest.raises(ConfigError, match=r"use at least 0\.02"):
        info_nce(unit(rng, 3, 4), unit(rng, 3, 4), temperature=0.01)
    with pytest.raises(ConfigError, match=r"use at least 0\.05"):
        info_nce(unit(rng, 3, 4), unit(rng, 3, 4), temperature=0.05, margin=-5.0)
    for none in (0.0, -0.05, float("nan")):
        with pytest.raises(ConfigError, match="too small"):
            info_nce(unit(rng, 3, 4), unit(rng, 3, 4), temperature=none)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("same", [True, False])
def test_relational_equals_the_formula(threads, same):
    rng = np.random.default_rng(4)
    a, t = unit(rng, 23, 8), unit(rng, 23, 5)
    b = a if same else unit(rng, 23, 8)
    targets = relational_targets(t, temperature=0.07, threads=threads)
    np.testing.assert_allclose(targets.sum(1), 1, atol=1e-5)
    loss, d_a, d_b = on_products(a, b, RelationalLoss(targets, 0.07), threads)
    ta = torch.tensor(a, dtype=torch.float64, requires_grad=True)
    tb = ta if same else torch.tensor(b, dtype=torch.float64, requires_grad=True)
    slow = slow_relational(ta, tb, torch.tensor(t, dtype=torch.float64), 0.07)
    slow.backward()
    assert loss == pytest.approx(slow.item(), rel=2e-5)
    np.testing.assert_allclose(d_a, ta.grad.numpy(), atol=2e-5)
    np.testing.assert_allclose(d_b, 0 if same else tb.grad.numpy(), atol=2e-5)


def test_gradient_through_the_norm():
    rng = np.random.default_rng(5)
    v = rng.normal(size=(6, 5)).astype(np.float32)
    v[2] = 0.0
    norms = np.linalg.norm(v, axis=1).astype(np.float32)
    u = v / np.where(norms > 0, norms, 1)[:, None]
    g = rng.normal(size=v.shape).astype(np.float32)
    tv = torch.tensor(v, requires_grad=True)
    (torch.nn.functional.normalize(tv, dim=1, eps=1e-30) * torch.tensor(g)).sum().backward()
    expected = tv.grad.numpy()
    expected[2] = 0.0
    through_norm(u, g, norms)
    np.testing.assert_allclose(g, expected, atol=1e-5)


def test_objective_adds_the_weighted_losses():
    rng = np.random.default_rng(6)
    a, b, t = unit(rng, 11, 6), unit(rng, 11, 6), unit(rng, 11, 4)
    same = np.arange(11), np.arange(11)
    objective = Objective(margin=0.1, distillation=0.5, distillation_on=("source", "target", "cross"))
    loss, d_a, d_b = objective(a, b, same, t)
    ta, tb = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b))
    tt = torch.tensor(t, dtype=torch.float64)
    slow = slow_info_nce(ta, tb, 0.05, 0.1, *map(torch.tensor, same)) + 0.5 * (
        slow_relational(ta, ta, tt, 0.05) + slow_relational(tb, tb, tt, 0.05) + slow_relational(ta, tb, tt, 0.05)
    )
    slow.backward()
    assert loss == pytest.approx(slow.item(), rel=2e-5)
    np.testing.assert_allclose(d_a, ta.grad.numpy(), atol=5e-5)
    np.testing.assert_allclose(d_b, tb.grad.numpy(), atol=5e-5)
    assert objective(a, b, same, None)[0] == info_nce(a, b, temperature=0.05, margin=0.1)[0]


def test_unknown_side_is_refused():
    with pytest.raises(ConfigError, match="sauce"):
        Objective(distillation_on=("sauce",))


@pytest.mark.parametrize("prefixes", [(), (8, 4)])
@pytest.mark.parametrize(("ranking", "distillation"), [(1.0, 0.0), (0.5, 2.0), (0.0, 1.0)])
def test_what_decides_when_to_stop_is_the_loss_that_is_trained(ranking, distillation, prefixes):
    rng = np.random.default_rng(5)
    a, b, teacher = unit(rng, 9, 8), unit(rng, 9, 8), unit(rng, 9, 6)
    same = np.arange(9), np.arange(9)
    objective = Objective(ranking=ranking, distillation=distillation, prefixes=prefixes)
    assert objective(a, b, same, teacher, gradient=False)[0] == pytest.approx(objective(a, b, same, teacher)[0], rel=1e-5)


def ranking(objective, source, target, same, teacher):
    """With negatives that are translations of no source, which are no anchors of the other direction."""
    size, both = len(source), objective.directions == "both"
    rows, columns, *among = same
    scores = source @ target.T - objective.margin * torch.eye(size, len(target), dtype=torch.float64)
    anchors = torch.cat([rows, torch.full((len(target) - size,), -1)])
    masked = (rows[:, None] == anchors[None]) | (columns[:size, None] == columns[None])
    for numbers in among:
        masked |= numbers[:, None] == columns[None]
    scores = (scores / objective.temperature).masked_fill(masked & ~torch.eye(size, len(target), dtype=torch.bool), -1e9)
    ways = [scores, scores[:, :size].T][: 1 + both]
    return sum(torch.nn.functional.cross_entropy(one, torch.arange(size)) for one in ways)


def distillation(objective, source, target, same, teacher):
    sides = {"source": (source, source), "target": (target[: len(source)],) * 2, "cross": (source, target[: len(source)])}
    heat = objective.distillation_temperature
    return sum(slow_relational(*sides[one], teacher, heat) for one in objective.distillation_on)


NEGATIVES = {"ranking"}  # losses that compare sources with the targets of no source, too
FORMULAS = {"ranking": ranking, "distillation": distillation}  # of unit vectors, in torch


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("prefixes", [(), (3, 8)])
@pytest.mark.parametrize("directions", ["both", "source"])
@pytest.mark.parametrize(("pairs", "threads"), [(7, 1), (301, 3)])
def test_every_loss_of_the_table_is_its_formula(name, prefixes, directions, pairs, threads):
    """With texts said twice, sources among the targets, and targets that are translations of no source."""
    generator = np.random.default_rng(pairs)
    source, target, teacher = (unit(generator, pairs + more, 8) for more in (0, 5, 0))
    same = tuple(generator.integers(0, pairs, pairs + more) for more in (0, 5))
    same += (np.where(np.arange(pairs) % 3 > 0, -2, same[1][:pairs][::-1]),)
    objective = Objective(
        **{**dict.fromkeys(LOSSES, 0.0), name: 1.5}, margin=0.1, temperature=0.1, prefixes=prefixes, directions=directions
    )
    value, *gradients = objective(source, target, same, teacher, threads)
    given = [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in (source, target)]
    numbers, other = [torch.tensor(one) for one in same], torch.tensor(teacher, dtype=torch.float64)
    slow = 0.0
    for size in prefixes or (8,):
        cut = (torch.nn.functional.normalize(one[:, :size], dim=1) if prefixes else one for one in given)
        slow = slow + 1.5 * FORMULAS[name](objective, *cut, numbers, other)
    slow.backward()
    assert value == pytest.approx(slow.item(), rel=2e-5)
    for found, one in zip(gradients, given, strict=True):
        wanted = np.zeros(one.shape) if one.grad is None else one.grad.numpy()
        np.testing.assert_allclose(found, wanted, atol=2e-4 / pairs, rtol=1e-3)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("prefixes", [(), (3, 8)])
def test_every_loss_of_the_table_is_finite_at_its_ends(name, prefixes):
    generator = np.random.default_rng(11)
    some, none = unit(generator, 4, 8), np.zeros((4, 8), np.float32)
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0}, prefixes=prefixes)
    for source, target in (
        (some, some),
        (some, -some),
        (none, some),
        (none, none),
        (some[:1], some[:1]),
        (some[:2], some[1:3]),
    ):
        numbers = np.arange(len(source))
        value, *gradients = objective(source.copy(), target.copy(), (numbers, numbers), unit(generator, len(source), 5))
        assert np.isfinite(value)
        assert all(np.isfinite(one).all() for one in gradients)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.compares_translations])
def test_a_loss_that_compares_translations_without_negatives_trains_a_single_pair(name):
    generator = np.random.default_rng(12)
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0})
    numbers = np.arange(1)
    value, *gradients = objective(unit(generator, 1, 8), unit(generator, 1, 8), (numbers, numbers), None)
    assert (abs(value) > 1e-4) == (np.abs(gradients).max() > 1e-4) == (name not in NEGATIVES)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_of_the_table_is_trained_by_its_weight_alone(name):
    """A loss that takes part without its weight, or not at all, would train something else without a word."""
    generator = np.random.default_rng(5)
    left, right, teacher = (unit(generator, 6, 8) for _ in range(3))
    same = (np.arange(6), np.arange(6))
    none, values = dict.fromkeys(LOSSES, 0.0), []
    for weight in (1.0, 2.0):
        objective = Objective(**{**none, name: weight}, prefixes=(4, 8))
        value, *gradients = objective(left, right, same, teacher)
        values.append(value)
        for side in range(2):  # each side's gradient is its own, whichever side of a term it is
            step = 0.005 * generator.normal(size=left.shape).astype(np.float32)
            given = [[left, right], [left, right]]
            given[0][side], given[1][side] = given[0][side] + step, given[1][side] - step
            change = objective(*given[0], same, teacher)[0] - objective(*given[1], same, teacher)[0]
            assert change == pytest.approx(2 * (gradients[side] * step).sum(), rel=0.02, abs=1e-4)
    assert values[0] > 0
    assert values[1] == pytest.approx(2 * values[0])


# The settings that decide what a loss is; a value other than the default, where that and one more is none.
USES = {"ranking": {"temperature", "margin", "directions"}, "distillation": {"distillation_temperature", "distillation_on"}}
OTHER = {"distillation_on": ("source",), "prefixes": (4, 8), "prefix_weights": (1.0, 2.0), "directions": "source"}
OF_ALL = {"prefixes", "prefix_weights"}
BEFOREHAND = {"distillation_centred"}  # done to the teacher's vectors, once


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "setting", [one for one in dataclasses.fields(Objective) if one.name not in {*BEFOREHAND, *LOSSES}]
)
def test_a_setting_of_the_objective_changes_the_losses_that_it_is_for(name, setting):
    assert setting.name in OF_ALL.union(*USES.values()), "a weight without an entry in LOSSES, or a setting that none uses"
    generator = np.random.default_rng(7)
    left, right, teacher = (unit(generator, 6, 8) for _ in range(3))
    common = dict.fromkeys(LOSSES, 0.0) | {name: 1.0} | ({"prefixes": (4, 8)} if setting.name == "prefix_weights" else {})
    changed = common | {setting.name: OTHER[setting.name] if setting.name in OTHER else setting.default + 1.0}
    values = [Objective(**one)(left, right, (np.arange(6), np.arange(6)), teacher)[0] for one in (common, changed)]
    assert (values[0] != values[1]) == (setting.name in USES[name] | OF_ALL)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_what_the_table_says_and_no_other_targets(name):
    generator = np.random.default_rng(8)
    left, right, teacher, other = (unit(generator, 6, 8) for _ in range(4))
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0})
    value, further = objective(left, right, (np.arange(6), np.arange(6)), teacher)[0], np.concatenate([right, other])
    assert (objective(left, right, (np.arange(6), np.arange(6)), other)[0] != value) == LOSSES[name].imitates
    assert objective.imitating == ([name] if LOSSES[name].imitates else [])
    assert (objective(left, further, (np.arange(6), np.arange(12)), teacher)[0] != value) == (name in NEGATIVES)


@pytest.mark.parametrize("name", sorted(NEGATIVES))
@pytest.mark.parametrize("side", [0, 1])
def test_a_loss_that_compares_translations_takes_no_equal_text_for_a_negative(name, side):
    """As sentences are said twice in any corpus, their translations would be moved away from each other."""
    generator = np.random.default_rng(9)
    sides = [unit(generator, 6, 8), unit(generator, 6, 8)]
    sides[side][1] = sides[side][0]
    equal = [np.arange(6), np.arange(6)]
    equal[side] = np.array([0, 0, 2, 3, 4, 5])
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0})
    masked, confused = (objective(*sides, same, None)[0] for same in (tuple(equal), (np.arange(6), np.arange(6))))
    assert masked < confused


@pytest.mark.parametrize("name", sorted(NEGATIVES))
def test_a_loss_that_compares_translations_takes_no_source_that_is_a_target_for_its_own_negative(name):
    generator = np.random.default_rng(10)
    sides = [unit(generator, 6, 8), unit(generator, 6, 8)]
    sides[0][1] = sides[1][0]
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0})
    among = np.array([-2, 0, -2, -2, -2, -2])  # the second source is the first target
    masked, confused = (
        objective(*sides, same, None)[0] for same in ((np.arange(6), np.arange(6), among), (np.arange(6),) * 2)
    )
    assert masked < confused


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if not loss.compares_translations])
def test_a_loss_that_compares_no_translations_trains_one_language(name):
    generator = np.random.default_rng(6)
    left, teacher = unit(generator, 6, 8), unit(generator, 6, 8)
    objective = Objective(**{**dict.fromkeys(LOSSES, 0.0), name: 1.0})
    value, by_left, _ = objective(left, left[:0], (np.arange(6), np.arange(0)), teacher)
    assert value > 0
    assert np.abs(by_left).max() > 0
    assert not objective.needs_pairs


@pytest.mark.parametrize("name", ["temperature", "distillation_temperature"])
def test_a_temperature_is_refused_before_all_training_where_it_is_used(name):
    with pytest.raises(ConfigError, match=rf"^objective\.{name}=0\.01 is too small for float32: use at least 0\.02"):
        Objective(ranking=0.5, distillation=0.5, **{name: 0.01})
    Objective(**({"ranking": 0.0, "distillation": 1.0} if name == "temperature" else {}), **{name: 0.01})


@pytest.mark.parametrize("prefixes", [(), (2, 4)])
def test_a_loss_that_is_no_number_ends_the_training(prefixes):
    some, numbers = np.full((3, 4), np.float32(np.inf)), (np.arange(3),) * 2
    with np.errstate(all="ignore"), pytest.raises(ConfigError, match="the loss is nan: set a lower learning_rate"):
        Objective(prefixes=prefixes)(some, some, numbers, None)


def test_no_weight_at_all_is_refused():
    with pytest.raises(ConfigError, match=" and ".join(f"objective.{name}" for name in LOSSES) + " are weights"):
        Objective(**dict.fromkeys(LOSSES, 0.0))


@pytest.mark.parametrize("margin", [0.0, 1.0, -1.0, -4.0])
def test_the_lowest_temperature_is_that_of_the_largest_exponent(margin):
    """A cosine is at most 2 below 1, from which a margin takes more; a negative one takes it above 1."""
    reach = max(2.0 + margin, 2.0, -margin)
    same = (np.arange(2), np.arange(2))
    RankingLoss(same, reach / 87.0, margin)
    with pytest.raises(ConfigError) as found:
        RankingLoss(same, reach / 87.001, margin)
    assert str(found.value) == (f"temperature={reach / 87.001} is too small for float32: use at least {reach / 87.0:.3f}")
    RelationalLoss(np.eye(2), 2.0 / 87.0)
    with pytest.raises(ConfigError):
        RelationalLoss(np.eye(2), 2.0 / 87.001)
