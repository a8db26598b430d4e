"""The table optimisers against torch's, through a naive loss on summed rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.io.ragged import Bags
from xswe.training.optimisers import Adam

torch = Later("torch")
adam = eval_script("parity.adam")
ROWS, WIDTH, batches = adam.ROWS, adam.WIDTH, adam.batches


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["lazy", "dense"])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_adam_equals_torch(kind, threads, clip):
    ours, theirs = adam.plain(kind, clip, threads, 12)
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


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


@pytest.mark.parametrize(("kind", "shrunk"), [("lazy", [3, 4]), ("dense", range(ROWS))])
def test_the_rows_that_a_step_moves_shrink_before_it(kind, shrunk):
    start = np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype(np.float32)
    with_decay, without = Adam(start.copy(), kind, decay=0.5), Adam(start.copy(), kind)
    bags = Bags.of([[3, 4, 3]])
    for optimiser in (with_decay, without):
        optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], np.ones((1, WIDTH), np.float32), 0.01)
    wanted = without.matrix - start
    wanted += start * np.where(np.isin(np.arange(ROWS), shrunk), 1 - 0.01 * 0.5, 1)[:, None]
    np.testing.assert_allclose(with_decay.matrix, wanted, atol=1e-6)


def test_threads_give_the_same_bytes():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    one, two = Adam(start.copy(), "lazy", 0.0, 1), Adam(start.copy(), "lazy", 0.0, 2)
    for bags, gradients in batches(rng, 5):
        for optimiser in (one, two):
            optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, 0.01)
    assert one.matrix.tobytes() == two.matrix.tobytes()
