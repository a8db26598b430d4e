from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import Later
from xswe.errors import ConfigError
from xswe.io.ragged import Bags
from xswe.training import refine as refine_module
from xswe.training.loop import Schedule
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags, distinct_rows, equal_bags, grouped, tree_order
from xswe.training.refine import RefineConfig, Trainer, refine

torch = Later("torch")
VOCABULARY = 60


def toy(n=300, seed=0):
    """A bitext over two halves of the vocabulary in which word i translates to word i + 30."""
    rng = np.random.default_rng(seed)
    source = [rng.integers(0, 30, rng.integers(1, 5)).tolist() for _ in range(n)]
    return ParallelBags(Bags.of(source), Bags.of([[i + 30 for i in one] for one in source]))


def start(seed=0, width=16):
    return np.random.default_rng(seed).normal(0, 0.02, (VOCABULARY, width)).astype(np.float32)


CONFIG = RefineConfig(max_steps=60, batch_size=32, learning_rate=0.01, eval_steps=20, patience=0)


def test_it_learns_the_translations():
    made = refine(
        start(), [toy()], [toy(60, seed=1)], RefineConfig(max_steps=200, batch_size=64, learning_rate=0.02), Objective()
    )
    unit = made.matrix / np.linalg.norm(made.matrix, axis=1, keepdims=True)
    assert ((unit[:30] @ unit[30:].T).argmax(1) == np.arange(30)).mean() > 0.9
    losses = [row["development_loss"] for row in made.history]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("objective", [Objective(), Objective(distillation=1.0), Objective(ranking=0.0, distillation=1.0)])
def test_the_loss_that_stops_training_is_the_one_it_lowers(objective):
    teacher = np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32)
    teacher /= np.linalg.norm(teacher, axis=1, keepdims=True)
    bitext = replace(toy(16), teacher=teacher)
    trainer = Trainer(start(), RefineConfig(batch_size=16), objective)
    loss, accuracy = trainer.measure(bitext, np.arange(16))
    unit, _ = trainer.vectors(bitext.batch(np.arange(16)))
    nearest = [max(range(16), key=lambda k: unit[row] @ unit[16 + k]) for row in range(16)]
    assert accuracy == sum(row == near for row, near in enumerate(nearest)) / 16
    assert loss == pytest.approx(trainer.step(bitext, np.arange(16), 0.01), rel=1e-5)


def test_a_step_equals_automatic_differentiation_through_the_whole_graph():
    bitext, objective = toy(16), Objective(margin=0.2)
    ours = Trainer(start(), RefineConfig(batch_size=16, learning_rate=0.01), objective)
    table = torch.nn.Parameter(torch.tensor(start()))
    optimiser = torch.optim.SparseAdam([table], lr=0.01)
    same_a, same_b = (torch.tensor(x) for x in bitext.same(np.arange(16)))
    masked = (same_a[:, None] == same_a) | (same_b[:, None] == same_b)
    masked &= ~torch.eye(16, dtype=torch.bool)
    for _ in range(5):
        loss = ours.step(bitext, np.arange(16), 0.01)
        a, b = (
            torch.nn.functional.normalize(
                torch.nn.functional.embedding_bag(
                    torch.tensor(side.ids), table, torch.tensor(side.offsets[:-1]), mode="sum"
                )
            )
            for side in (bitext.source, bitext.target)
        )
        logits = ((a @ b.T - 0.2 * torch.eye(16)) / 0.05).masked_fill(masked, -1e9)
        naive = torch.nn.functional.cross_entropy(logits, torch.arange(16)) + torch.nn.functional.cross_entropy(
            logits.T, torch.arange(16)
        )
        optimiser.zero_grad()
        naive.backward()
        rows = table.grad.abs().sum(1).nonzero()[:, 0]
        table.grad = torch.sparse_coo_tensor(rows[None], table.grad[rows], table.shape)
        optimiser.step()
        assert loss == pytest.approx(naive.item(), rel=1e-4)
    np.testing.assert_allclose(ours.matrix, table.detach().numpy(), atol=2e-4)


def test_same_seed_same_bytes_and_the_start_is_left_alone():
    matrix = start()
    before = matrix.copy()
    one = refine(matrix, [toy()], [], CONFIG, Objective())
    two = refine(matrix, [toy()], [], CONFIG, Objective())
    assert (matrix == before).all()
    assert one.matrix.tobytes() == two.matrix.tobytes()
    assert one.steps == 60


class Killed(Exception):
    pass


def killed_and_resumed(arguments, killed_at, checkpoint, monkeypatch, **further):
    """The result of a run that dies before the step ``killed_at`` and is started again."""
    step = Trainer.step

    def dies(self, *rest):
        if self.optimiser.steps == killed_at:
            raise Killed
        return step(self, *rest)

    monkeypatch.setattr(Trainer, "step", dies)
    monkeypatch.setattr("xswe.progress._CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(Killed):
        refine(*arguments, checkpoint=checkpoint, **further)
    monkeypatch.undo()
    return refine(*arguments, checkpoint=checkpoint, **further)


@pytest.mark.parametrize("kind", ["lazy", "dense"])
@pytest.mark.parametrize("killed_at", [1, 19, 20, 47])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch, kind, killed_at):
    config = RefineConfig(max_steps=60, batch_size=32, learning_rate=0.01, eval_steps=20, patience=0, optimiser=kind)
    arguments = (start(), [toy(), toy(90, seed=5)], [toy(40, seed=1)], config, Objective())
    undisturbed = refine(*arguments)
    resumed = killed_and_resumed(arguments, killed_at, tmp_path / "c", monkeypatch)
    assert resumed.matrix.tobytes() == undisturbed.matrix.tobytes()
    assert (resumed.history, resumed.best_step) == (undisturbed.history, undisturbed.best_step)


def test_a_checkpoint_of_other_settings_is_not_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("xswe.progress._CHECKPOINT_SECONDS", 0.0)
    refine(start(), [toy()], [], CONFIG, Objective(), checkpoint=tmp_path / "c")
    other = refine(start(), [toy()], [], CONFIG, Objective(margin=0.1), checkpoint=tmp_path / "c")
    fresh = refine(start(), [toy()], [], CONFIG, Objective(margin=0.1))
    assert other.matrix.tobytes() == fresh.matrix.tobytes()


def test_early_stopping_returns_the_best_table(monkeypatch):
    losses = iter([9.0, 5.0, 3.0, 4.0, 4.0, 4.0, 4.0])
    monkeypatch.setattr(refine_module, "_measured", lambda *_: {"development_loss": next(losses)})
    config = RefineConfig(max_steps=200, batch_size=32, eval_steps=10, patience=2)
    made = refine(start(), [toy()], [toy(10)], config, Objective())
    assert (made.best_step, made.steps) == (20, 40)


def test_small_bitexts_train_on_what_they_have():
    # The reference skips batches it cannot fill and ends with nothing learnt.
    tiny = toy(5)
    made = refine(
        start(), [tiny], [tiny], RefineConfig(max_steps=30, batch_size=512, learning_rate=0.02), Objective(margin=0.0)
    )
    assert made.history[-1]["development_loss"] < made.history[0]["development_loss"]


def test_no_training_pair_is_a_clear_error():
    with pytest.raises(ConfigError, match="no training pair"):
        refine(start(), [toy(0)], [], CONFIG, Objective())


def test_the_rate_is_constant_then_falls_to_zero():
    config = RefineConfig(max_steps=100, learning_rate=1.0, decay_start=0.5)
    assert [config.rate_at(s) for s in (0, 49, 50, 75)] == [1.0, 1.0, 1.0, 0.5]
    assert config.rate_at(99) == pytest.approx(0.02)
    assert RefineConfig(max_steps=100, learning_rate=1.0, decay_start=1.0).rate_at(99) == 1.0


@pytest.mark.parametrize(("shape", "name"), [("linear", "linear"), ("cosine", "cosine")])
@pytest.mark.parametrize("steps", [10, 97])
def test_the_rate_is_that_of_transformers_schedules(shape, name, steps):
    transformers = pytest.importorskip("transformers")
    config = RefineConfig(max_steps=steps, learning_rate=0.2, decay_start=0.0, warmup=0.1, schedule=shape)
    optimiser = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.2)
    theirs = transformers.get_scheduler(name, optimiser, int(np.ceil(steps * 0.1)), steps)
    for step in range(steps):
        assert config.rate_at(step) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimiser.step()
        theirs.step()


def test_a_constant_rate_may_rise_first_and_fall_as_a_cosine():
    config = RefineConfig(max_steps=100, learning_rate=1.0, decay_start=0.5, warmup=0.2, schedule="cosine")
    assert [round(config.rate_at(s), 3) for s in (0, 10, 20, 49, 50, 75)] == [0.0, 0.5, 1.0, 1.0, 1.0, 0.5]


def test_epochs_are_as_many_steps_as_the_pairs_take():
    config = RefineConfig(max_steps=7, batch_size=32, eval_steps=20, patience=0)
    made = refine(start(), [toy(), toy(100, seed=3)], [], replace(config, epochs=2), Objective())
    by_steps = refine(start(), [toy(), toy(100, seed=3)], [], replace(config, max_steps=24), Objective())
    assert made.steps == 24  # 300 // 32 + 100 // 32 batches, twice
    assert made.matrix.tobytes() == by_steps.matrix.tobytes()
    assert refine(start(), [toy(5)], [], replace(config, epochs=0.1), Objective()).steps == 1


@pytest.mark.parametrize("mapped", [True, False])
def test_bags_are_numbered_alike_in_shares_and_at_once(monkeypatch, tmp_path, mapped):
    drawn = np.random.default_rng(0).integers(0, 700, 3000)
    bags = Bags.of([[int(i), int(i) % 5] for i in drawn])
    if mapped:
        bags.save(tmp_path, "x")
        bags = Bags.open(tmp_path, "x")
    numbers, rows = equal_bags(bags), distinct_rows(bags)
    assert rows.tolist() == np.sort(np.unique(drawn, return_index=True)[1]).tolist()
    assert np.array_equal(np.unique(numbers), np.arange(len(rows)))
    monkeypatch.setattr("xswe.training.pairs._SHARE", 100)
    monkeypatch.setattr("xswe.training.pairs._BAGS_AT_A_TIME", 256)
    assert np.array_equal(equal_bags(bags), numbers)
    assert np.array_equal(distinct_rows(bags), rows)


def test_rows_are_distinct_where_one_of_several_look_ups_tells_them_apart():
    found, exact = Bags.of([[1, 2], [1, 2], [1, 2], [3], [3]]), Bags.of([[2], [1, 2], [2], [], []])
    assert distinct_rows(found).tolist() == [0, 3]
    assert distinct_rows(found, exact).tolist() == [0, 1, 3]


def test_equal_bags_share_a_number():
    numbers = equal_bags(Bags.of([[1, 2], [2, 1], [1, 2], [], [1], [], [1, 2, 0]]))
    assert numbers[0] == numbers[2]
    assert numbers[3] == numbers[5]
    assert len(set(numbers.tolist())) == 5


def test_every_pair_is_seen_once_an_epoch_and_the_schedule_needs_no_history():
    schedule = Schedule((10, 4, 0), 2, seed=1)
    assert schedule.per_epoch == 7
    seen = {0: [], 1: []}
    for step in range(7):
        which, rows = schedule.at(step)
        seen[which] += rows.tolist()
    assert sorted(seen[0]) == list(range(10))
    assert sorted(seen[1]) == list(range(4))
    fresh = Schedule((10, 4, 0), 2, seed=1)
    assert fresh.at(12)[1].tolist() == schedule.at(12)[1].tolist()


def repeating(n, distinct, seed=0):
    """A bitext in which a text stands in several pairs, once in a while on both sides."""
    rng = np.random.default_rng(seed)
    sides = [[[int(word)] for word in rng.integers(0, distinct, n)] for _ in range(2)]
    return ParallelBags(*map(Bags.of, sides), alike=True)


def texts_of(bitext, rows):
    bags = bitext.batch(rows)
    return [tuple(bags.ids[a:b]) for a, b in zip(bags.offsets, bags.offsets[1:], strict=False)]


def test_dropped_pairs_wait_and_others_fill_the_batch():
    bitext = repeating(400, 300)
    plain, without = Schedule((400,), 50, seed=1), Schedule((400,), 50, seed=1, texts=[bitext.texts()])
    batches = [without.at(step)[1] for step in range(without.per_epoch)]
    assert [len(rows) for rows in batches] == [50] * 8
    for step, rows in enumerate(batches):
        texts = texts_of(bitext, rows)
        sides = {frozenset(pair) for pair in zip(texts[:50], texts[50:], strict=True)}
        assert sum(map(len, sides)) == len(set(texts))
        assert len(set(texts_of(bitext, plain.at(step)[1]))) < len(set(texts))  # as they come, texts are repeated
    # What waited comes soon: hardly a pair is left for the next epoch.
    assert len(set(np.concatenate(batches).tolist())) > 380
    fresh = Schedule((400,), 50, seed=1, texts=[bitext.texts()])
    assert fresh.at(5)[1].tolist() == batches[5].tolist()
    assert fresh.at(8)[1].tolist() != batches[0].tolist()


def test_too_few_distinct_texts_make_a_smaller_batch():
    bitext = ParallelBags(Bags.of([[1], [2], [1], [3], [4]]), Bags.of([[5], [6], [7], [6], [8]]))
    schedule = Schedule((5,), 4, seed=0, texts=[bitext.texts()])
    rows = schedule.at(0)[1].tolist()
    assert len(rows) == 3
    assert 4 in rows
    assert len({0, 2} & set(rows)) == len({1, 3} & set(rows)) == 1


def test_a_text_is_dropped_wherever_it_stands():
    a, b = Bags.of([[1], [2], [3], [4]]), Bags.of([[5], [1], [6], [7]])
    negatives, bounds = Bags.of([[8], [6], [], []]), np.array([0, 1, 1, 1, 4])
    held = []
    for bitext in (
        ParallelBags(a, b),
        ParallelBags(a, b, alike=True),
        ParallelBags(a, b, alike=True, negatives=negatives, bounds=bounds),
    ):
        rows = Schedule((4,), 4, seed=3, texts=[bitext.texts()]).at(0)[1]
        held.append(set(rows.tolist()))
    assert held[0] == {0, 1, 2, 3}
    assert len(held[1] & {0, 1}) == 1  # text 1 is the source of one and the target of the other
    assert {2, 3} <= held[1]
    assert len(held[2] & {2, 3}) == 1  # text 6 is a target and a negative; those without a known unit are no text


def test_sentences_of_one_language_are_dropped_where_they_are_equal():
    bitext = ParallelBags(Bags.of([[1], [2], [1], [3]]))
    rows = Schedule((4,), 4, seed=0, texts=[bitext.texts()]).at(0)[1].tolist()
    assert len(rows) == 3
    assert {1, 3} <= set(rows)


def test_kept_duplicates_are_negatives_like_any_others():
    bitext = ParallelBags(Bags.of([[1], [2], [1], [3]]), Bags.of([[31], [32], [33], [32]]))
    objective, rows = Objective(margin=0.0), np.arange(4)
    kept, masked = (Trainer(start(), RefineConfig(batch_size=4, duplicates=d), objective) for d in ("keep", "mask"))
    unit = torch.tensor(kept.vectors(bitext.batch(rows))[0])
    logits = unit[:4] @ unit[4:].T / 0.05
    answer = torch.arange(4)
    cross_entropy = torch.nn.functional.cross_entropy
    plain = float(cross_entropy(logits, answer) + cross_entropy(logits.T, answer))
    assert kept.measure(bitext, rows)[0] == pytest.approx(plain, rel=1e-5)
    assert masked.measure(bitext, rows)[0] < plain - 1e-3
    assert kept.step(bitext, rows, 0.01) == pytest.approx(plain, rel=1e-5)


def test_neighbours_of_a_tree_are_near():
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(30, 8)).astype(np.float32)
    label = rng.integers(0, 30, 1200)
    points = centres[label] + rng.normal(scale=0.05, size=(1200, 8)).astype(np.float32)
    order = tree_order(points, 8, seed=0)
    assert sorted(order.tolist()) == list(range(1200))
    groups = label[order].reshape(-1, 8)
    assert (groups == np.median(groups, axis=1)[:, None]).mean() > 0.75
    assert sorted(tree_order(np.zeros((50, 3), np.float32), 8, seed=0).tolist()) == list(range(50))


@pytest.mark.parametrize("sides", [1, 2])
def test_neighbourhoods_of_pairs_are_those_of_both_sides_together(sides, monkeypatch):
    monkeypatch.setattr("xswe.training.pairs._ROWS", 100)
    rng = np.random.default_rng(1)
    label = rng.permutation(np.repeat(np.arange(30), 8))
    centres = 9 * rng.normal(size=(30, 16))
    tables = [rng.normal(size=(240, 16)), None]  # either side alone tells nothing
    tables[1] = centres[label] - tables[0] + rng.normal(scale=0.01, size=(240, 16))

    class Numbered:
        """Pairs whose bags are their numbers."""

        def __len__(self):
            return 240

        def batch(self, rows):
            return rows

    def vectors(rows):
        parts = [table[rows] for table in tables] if sides == 2 else [tables[0][rows] + tables[1][rows]]
        return np.concatenate(parts).astype(np.float32), rows

    order = grouped(vectors, Numbered(), 8, seed=0)
    assert sorted(order.tolist()) == list(range(240))
    groups = label[order].reshape(-1, 8)
    assert (groups == np.median(groups, axis=1)[:, None]).mean() > 0.7
    assert np.array_equal(order, grouped(vectors, Numbered(), 8, seed=0))
    assert not np.array_equal(order, grouped(vectors, Numbered(), 8, seed=1))


@pytest.mark.parametrize("killed_at", [3, 17, 33])
def test_a_killed_run_of_hard_batches_goes_on_to_the_same_bytes(tmp_path, monkeypatch, killed_at):
    config = RefineConfig(
        max_steps=40,
        batch_size=32,
        learning_rate=0.01,
        eval_steps=20,
        neighbours=8,
        duplicates="drop",
    )
    arguments = (start(), [toy(), toy(90, seed=5)], [toy(40, seed=1)], config, Objective())
    undisturbed = refine(*arguments)
    resumed = killed_and_resumed(arguments, killed_at, tmp_path / "c", monkeypatch)
    assert resumed.matrix.tobytes() == undisturbed.matrix.tobytes()
    assert resumed.history == undisturbed.history


def test_batches_of_neighbours_see_every_pair_once_an_epoch():
    schedule = Schedule((40, 10), 8, seed=1, neighbours=4)
    schedule.regroup(0, [np.random.default_rng(0).permutation(40), np.arange(10)])
    groups = {tuple(g) for g in schedule.groups[0].reshape(-1, 4).tolist()}
    seen = []
    for step in range(schedule.per_epoch):
        which, rows = schedule.at(step)
        if which == 0:
            assert {tuple(g) for g in rows.reshape(-1, 4).tolist()} <= groups
            seen += rows.tolist()
    assert sorted(seen) == list(range(40))


def test_many_passes_without_improvement_stop_before_many_looks():
    config = RefineConfig(max_steps=200, batch_size=32, eval_steps=10, patience=10, patience_epochs=4)
    made = refine(start(), [toy()], [toy(60, seed=1)], config, Objective())
    patient = refine(start(), [toy()], [toy(60, seed=1)], replace(config, patience_epochs=0.0), Objective())
    assert made.steps < patient.steps
    if made.best_step == patient.best_step:
        np.testing.assert_array_equal(made.matrix, patient.matrix)


BATCH = "refine needs batch_size >= 2, max_steps >= 0, eval_steps >= 1 and 0 <= decay_start <= 1"
RATE = "refine needs learning_rate > 0, max_grad_norm >= 0 and patience >= 0"
EPOCHS = "refine needs epochs >= 0, 0 <= warmup <= 1, weight_decay >= 0 and weight_decay * learning_rate < 1"
UNIT = "refine.per_unit counts contexts of a unit: set refine.sample_from=contexts, or 0"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        *[(wrong, BATCH) for wrong in ({"batch_size": 1}, {"max_steps": -1}, {"eval_steps": 0}, {"decay_start": 1.1})],
        *[(wrong, RATE) for wrong in ({"learning_rate": 0.0}, {"max_grad_norm": -1.0}, {"patience": -1})],
        *[(wrong, EPOCHS) for wrong in ({"epochs": -1.0}, {"warmup": 1.5}, {"weight_decay": -0.1})],
        ({"weight_decay": 500.0, "learning_rate": 2e-3}, EPOCHS),
        ({"per_unit": 2}, UNIT),
        ({"per_unit": -1, "sample_from": "contexts"}, UNIT),
        ({"neighbours": 33, "batch_size": 32}, "refine needs 0 <= neighbours <= batch_size"),
        ({"bigrams": -1}, "refine needs 0 <= bigrams <= 16777215"),
        ({"patience_epochs": -0.1}, "refine needs patience_epochs >= 0"),
        ({"optimiser": "sgd"}, "refine.optimiser='sgd': choose one of lazy, dense"),
        ({"schedule": "step"}, "refine.schedule='step': choose one of linear, cosine"),
        ({"duplicates": "hide"}, "refine.duplicates='hide': choose one of mask, drop, keep"),
        ({"sample_from": "units"}, "refine.sample_from='units': choose one of corpus, contexts"),
    ],
)
def test_settings_that_cannot_work(wrong, said):
    with pytest.raises(ConfigError) as found:
        RefineConfig(**wrong)
    assert str(found.value) == said


def test_it_stops_after_so_many_looks_or_passes_without_improvement():
    looks = RefineConfig(eval_steps=10, patience=3)
    assert [looks.waited(steps, 1) for steps in (0, 29, 30)] == [False, False, True]
    passes = RefineConfig(eval_steps=10, patience=0, patience_epochs=0.5)
    assert [passes.waited(steps, 40) for steps in (0, 19, 20)] == [False, False, True]
    assert not RefineConfig(eval_steps=1, patience=0).waited(10**6, 1)


def test_epochs_are_rounded_up_to_steps():
    config = RefineConfig(max_steps=0, epochs=1.5)
    assert (config.trains, RefineConfig(max_steps=0).trains, RefineConfig(max_steps=1).trains) == (True, False, True)
    made = config.for_corpus(7)
    assert (made.max_steps, made.epochs) == (11, 0.0)
    assert CONFIG.for_corpus(7) is CONFIG


def test_figures_of_development_data_are_means_over_its_pairs(monkeypatch):
    bitexts = [toy(37), replace(toy(10, seed=3), target=None)]
    trainer = Trainer(start(), RefineConfig(batch_size=16), Objective(ranking=1.0, distillation=1.0))
    batches = [(bitexts[0], np.arange(a, b)) for a, b in ((0, 16), (16, 32), (32, 37))]
    measured = {(id(one), len(rows), int(rows[0])): trainer.measure(one, rows) for one, rows in batches}
    measured[id(bitexts[1]), 10, 0] = (7.0, None)  # sentences of one language
    monkeypatch.setattr(Trainer, "measure", lambda _, bitext, rows: measured[id(bitext), len(rows), int(rows[0])])
    found = refine_module._measured(trainer, bitexts)
    first = [(measured[id(one), len(rows), int(rows[0])], len(rows)) for one, rows in batches]
    loss = sum(value * size for (value, _), size in first)
    assert found["development_loss"] == pytest.approx((loss + 70.0) / 47)
    assert found["development_accuracy"] == pytest.approx(sum(value * size for (_, value), size in first) / 37)
    assert refine_module._measured(trainer, [toy(0)]) == {"development_loss": 0.0}


def test_many_sources_are_compared_with_all_targets(monkeypatch):
    bitext, rows = toy(50), np.arange(50)
    trainer = Trainer(refine(start(), [bitext], [], CONFIG, Objective()).matrix, CONFIG, Objective())
    whole = trainer.measure(bitext, rows)
    assert 0.2 < whole[1] < 1.0
    for size in (1, 7, 49, 50):
        monkeypatch.setattr(refine_module, "_SOURCES_AT_A_TIME", size)
        assert trainer.measure(bitext, rows) == whole
