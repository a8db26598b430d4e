"""The training loop by itself: which batches, when it looks, what it keeps, and when it stops."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.io.ragged import Bags
from xswe.training.loop import BestTable, Schedule, Training, take_steps
from xswe.training.pairs import ParallelBags


def naive_batches(order, count, size, bitext):
    """Take pairs in order; what shares a text with the batch waits for the next; a batch is filled up from the start."""

    def texts(row):
        numbers = bitext.texts()
        negatives = numbers.negatives[numbers.bounds[row] : numbers.bounds[row + 1]]
        source = (numbers.alike, numbers.source[row])  # with the targets only if a text may be on either side
        return {source, (True, numbers.target[row]), *((True, one) for one in negatives if one >= 0)}

    waiting, batches = list(order), []
    for _ in range(count):
        batch, seen = [], set()

        def add(rows, batch=batch, seen=seen):
            for row in rows:
                if len(batch) < size and not seen & texts(row):
                    batch.append(row)
                    seen |= texts(row)

        add(waiting)
        waiting = [row for row in waiting if row not in batch]
        add(order)
        batches.append(batch)
    return batches


@pytest.mark.parametrize("seed", range(12))
def test_batches_without_a_text_twice_are_those_of_a_naive_search(seed):
    rng = np.random.default_rng(seed)
    n, words = int(rng.integers(1, 40)), int(rng.integers(2, 30))
    bounds = np.concatenate([[0], np.cumsum(rng.integers(0, 3, n))])
    source, target, negatives = (Bags.of(rng.integers(0, words, (k, 1)).tolist()) for k in (n, n, bounds[-1]))
    further = {"negatives": negatives, "bounds": bounds} if seed % 3 else {}
    bitext = ParallelBags(source, target, alike=bool(seed % 2), **further)
    size, order = int(rng.integers(1, 9)), rng.permutation(n)
    rows, starts = Schedule((n,), size, 0, texts=[bitext.texts()])._cut(order, 0)
    count = max(1, n // size)
    found = [rows[a:b].tolist() for a, b in pairwise(starts)]
    assert found == naive_batches(order.tolist(), count, min(size, n), bitext)


@pytest.mark.parametrize("seed", range(8))
def test_each_bitext_gives_as_many_batches_as_it_fills(seed):
    rng = np.random.default_rng(seed)
    sizes, batch = tuple(rng.integers(0, 14, 3).tolist()), int(rng.integers(1, 7))
    if not any(sizes):
        sizes = (5, *sizes)
    schedule = Schedule(sizes, batch, seed)
    counts = [max(1, size // batch) if size else 0 for size in sizes]
    assert schedule.per_epoch == sum(counts)
    orders = []
    for epoch in range(3):
        steps = [schedule.at(epoch * sum(counts) + k) for k in range(sum(counts))]
        assert {schedule.epoch_of(epoch * sum(counts) + k) for k in range(sum(counts))} == {epoch}
        for k, size in enumerate(sizes):
            own = [rows for which, rows in steps if which == k]
            assert [len(rows) for rows in own] == [min(batch, size)] * counts[k]
            seen = np.concatenate([np.zeros(0, np.int64), *own])
            assert len(set(seen.tolist())) == len(seen)
            assert set(seen.tolist()) <= set(range(size))
        orders.append([(which, tuple(rows)) for which, rows in steps])
    if sum(sizes) > 12:
        assert orders[0] != orders[1] != orders[2]


def test_neighbours_stay_together_in_the_epochs_after_too_and_what_is_left_comes_last():
    groups = [np.array([4, 9, 1, 7, 0, 2, 8, 3, 6, 5])]
    schedule = Schedule((10,), 10, seed=0, neighbours=4)
    before = schedule.at(0)[1].tolist()
    schedule.regroup(0, groups)
    for epoch in range(3):
        rows = schedule.at(epoch)[1].tolist()
        assert sorted([rows[:4], rows[4:8]]) == [[0, 2, 8, 3], [4, 9, 1, 7]]
        assert rows[8:] == [6, 5]
        assert rows != before
    resumed = Schedule((10,), 10, seed=0, neighbours=4)
    resumed.restore(*schedule.state())
    assert resumed.groups_epoch == 0
    assert resumed.at(2)[1].tolist() == schedule.at(2)[1].tolist()
    assert Schedule((10,), 10, seed=0).state() == ({}, {})


def test_a_table_is_kept_if_its_loss_is_lower_and_losses_are_means_since_the_last_look():
    matrix, optimiser = np.zeros((2, 3), np.float32), SimpleNamespace(steps=0)
    state = BestTable(matrix, optimiser)
    state.begin(2.0, development_accuracy=0.5)
    for steps, running, loss in ((3, 12.0, 2.0), (4, 5.0, 1.5), (8, 6.0, 1.5), (9, 1.0, 1.75)):
        optimiser.steps, state.running = steps, running
        matrix += 1
        state.look(loss, development_accuracy=0.25)
    assert (state.step, state.loss, state.best.tolist()) == (4, 1.5, [[2.0] * 3] * 2)
    assert [(row["step"], row.get("loss"), row["development_loss"]) for row in state.history] == [
        (0, None, 2.0),
        (3, 4.0, 2.0),
        (4, 5.0, 1.5),
        (8, 1.5, 1.5),
        (9, 1.0, 1.75),
    ]
    assert [row["development_accuracy"] for row in state.history] == [0.5, 0.25, 0.25, 0.25, 0.25]
    assert state.running == 0.0


def test_without_development_data_the_last_table_is_the_best():
    matrix, optimiser = np.zeros((1, 2), np.float32), SimpleNamespace(steps=0)
    state = BestTable(matrix, optimiser)
    for steps in (5, 7):
        optimiser.steps, state.running = steps, 10.0
        matrix += 1
        state.look()
    assert (state.step, state.best.tolist()) == (7, [[2.0, 2.0]])
    assert state.history == [{"step": 5, "loss": 2.0}, {"step": 7, "loss": 5.0}]


@dataclass
class Settings:
    max_steps: int = 10
    eval_steps: int = 4
    threads: int = 1


def walked(losses, enough=lambda _: False, config=None):
    """The numbers of the steps taken, the steps at which was looked, what ``enough`` was told, and the state."""
    optimiser, taken, asked = SimpleNamespace(steps=0), [], []
    state = BestTable(np.zeros((1, 1), np.float32), optimiser)
    logged = []

    def take(step):
        taken.append(step)
        optimiser.steps += 1
        return float(step)

    def waited(steps):
        asked.append(steps)
        return enough(steps)

    left = iter(losses)
    measure = lambda: {"development_loss": next(left)} if losses else {}  # noqa: E731
    log = lambda history: logged.append(len(history))  # noqa: E731
    training = Training("test", state, Schedule((10,), 1, 0), config or Settings(), None, "x")
    take_steps(training, take, measure, log=log, enough=waited)
    return taken, asked, logged, state


def test_it_looks_at_intervals_and_at_the_end():
    taken, asked, logged, state = walked([9.0, 8.0, 8.5, 8.25])
    assert taken == list(range(10))
    assert [row["step"] for row in state.history] == [0, 4, 8, 10]
    assert [row["loss"] for row in state.history[1:]] == [1.5, 5.5, 8.5]
    assert asked == [0, 4, 6]  # steps since the best
    assert logged == [2, 3, 4]
    assert walked([], config=Settings(8, 4))[2] == [1, 2]  # no look twice at the same step
    assert walked([], config=Settings(0, 4))[0] == []


def test_it_stops_early_where_that_is_enough(caplog):
    caplog.set_level("INFO", "xswe")
    taken, asked, _, state = walked([9.0, 8.0, 8.5, 8.25], lambda steps: steps >= 4)
    assert (taken, asked, state.step) == (list(range(8)), [0, 4], 4)
    assert "stopped early at step 8: no improvement since step 4" in caplog.text
