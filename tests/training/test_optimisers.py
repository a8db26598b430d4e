"""The table optimisers against torch's, through a naive loss on summed rows."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.io.ragged import Bags
from xswe.training.optimisers import Adam
from xswe.training.refine import RefineConfig

torch = pytest.importorskip("torch")
ROWS, WIDTH = 40, 8


def batches(rng, n):
    for _ in range(n):
        lists = [rng.integers(0, ROWS // 2, rng.integers(1, 6)).tolist() for _ in range(7)]
        yield Bags.of(lists), rng.normal(size=(7, WIDTH)).astype(np.float32)


def naive_gradient(table, bags, gradients):
    """Sum over the bags of <sum of rows, gradient>: its gradient is what the optimiser must see."""
    sums = torch.stack(
        [table[torch.tensor(bags.ids[a:b])].sum(0) for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    )
    (sums * torch.tensor(gradients)).sum().backward()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["lazy", "dense"])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_adam_equals_torch(kind, threads, clip):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    ours = Adam(start.copy(), kind, clip, threads)
    table = torch.nn.Parameter(torch.tensor(start))
    theirs = torch.optim.SparseAdam([table], lr=0.01) if kind == "lazy" else torch.optim.Adam([table], lr=0.01)
    for bags, gradients in batches(rng, 12):
        ours.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, 0.01)
        theirs.zero_grad()
        naive_gradient(table, bags, gradients)
        if clip:
            torch.nn.utils.clip_grad_norm_([table], clip)
        if kind == "lazy":
            table.grad = table.grad.to_sparse(1)
        theirs.step()
    np.testing.assert_allclose(ours.matrix, table.detach().numpy(), atol=2e-6)


def test_lazy_leaves_absent_rows_alone_and_dense_moves_them_on():
    rng = np.random.default_rng(1)
    start = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    lazy, dense = Adam(start.copy(), "lazy"), Adam(start.copy(), "dense")
    for ids in ([3, 3, 4], [5]):
        bags = Bags.of([ids])
        for optimiser in (lazy, dense):
            optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], np.ones((1, WIDTH), np.float32), 0.01)
    moved = lambda a, b: (a != b).any(1).nonzero()[0].tolist()  # noqa: E731
    assert moved(lazy.matrix, start) == [3, 4, 5] == moved(dense.matrix, start)
    assert np.abs(dense.matrix[3] - start[3]).min() > np.abs(lazy.matrix[3] - start[3]).max()


def test_threads_give_the_same_bytes():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    one, two = Adam(start.copy(), "lazy", 0.0, 1), Adam(start.copy(), "lazy", 0.0, 2)
    for bags, gradients in batches(rng, 5):
        for optimiser in (one, two):
            optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, 0.01)
    assert one.matrix.tobytes() == two.matrix.tobytes()


@pytest.mark.parametrize("kind", ["lazy", "dense"])
def test_weight_decay_with_a_cosine_schedule_equals_torchs_adamw(kind):
    transformers = pytest.importorskip("transformers")
    rng = np.random.default_rng(4)
    start = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    config = RefineConfig(max_steps=30, learning_rate=0.2, decay_start=0.0, warmup=0.1, schedule="cosine")
    ours = Adam(start.copy(), kind, decay=0.1)
    table = torch.nn.Parameter(torch.tensor(start))
    theirs = torch.optim.AdamW([table], lr=0.2, weight_decay=0.1)
    schedule = transformers.get_cosine_schedule_with_warmup(theirs, 3, 30)
    for step, (bags, gradients) in enumerate(batches(rng, 30)):
        if kind == "lazy":  # which is the same where every row is in every batch
            bags = Bags.of([*([row] for row in range(ROWS)), *([] for _ in range(len(gradients) - ROWS))])
            gradients = rng.normal(size=(len(bags), WIDTH)).astype(np.float32)
        ours.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, config.rate_at(step))
        theirs.zero_grad()
        naive_gradient(table, bags, gradients)
        theirs.step()
        schedule.step()
    assert np.abs(ours.matrix - start).max() > 0.5
    np.testing.assert_allclose(ours.matrix, table.detach().numpy(), atol=1e-4)
