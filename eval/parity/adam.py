"""Adam on a table, dense and lazy, clipped, with weight decay and a cosine schedule, beside torch and transformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eval.parity.figures import Figures, Inputs, figure
from xswe.io.ragged import Bags
from xswe.training.optimisers import Adam, Optimiser
from xswe.training.refine import RefineConfig

NEEDS = ("torch", "transformers")
ROWS, WIDTH = 40, 8


def batches(generator: np.random.Generator, n: int) -> Iterator[tuple[Bags, np.ndarray]]:
    """Draw batches of seven bags, of the first half of the rows, and a gradient each."""
    for _ in range(n):
        lists = [generator.integers(0, ROWS // 2, generator.integers(1, 6)).tolist() for _ in range(7)]
        yield Bags.of(lists), generator.normal(size=(7, WIDTH)).astype(np.float32)


def backward(table: Any, bags: Bags, gradients: np.ndarray) -> None:
    """Sum over the bags of <sum of rows, gradient>: its gradient is what the optimiser must see."""
    import torch

    sums = torch.stack(
        [table[torch.tensor(bags.ids[a:b])].sum(0) for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    )
    (sums * torch.tensor(gradients)).sum().backward()


def plain(kind: Optimiser, clip: float, threads: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table after so many steps of ours, and of torch's Adam (``dense``) or SparseAdam (``lazy``)."""
    import torch

    generator = np.random.default_rng(0)
    start = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    ours = Adam(start.copy(), kind, clip, threads)
    table = torch.nn.Parameter(torch.tensor(start))
    theirs = torch.optim.SparseAdam([table], lr=0.01) if kind == "lazy" else torch.optim.Adam([table], lr=0.01)
    for bags, gradients in batches(generator, steps):
        ours.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, 0.01)
        theirs.zero_grad()
        backward(table, bags, gradients)
        if clip:
            torch.nn.utils.clip_grad_norm_([table], clip)
        if kind == "lazy":
            table.grad = table.grad.to_sparse(1)  # type: ignore[union-attr]
        theirs.step()
    return ours.matrix, table.detach().numpy()


def decayed(kind: Optimiser, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table after so many steps of ours, and of torch's AdamW, at the rates of transformers' cosine schedule."""
    import torch
    import transformers

    generator = np.random.default_rng(4)
    start = generator.normal(size=(ROWS, WIDTH)).astype(np.float32)
    config = RefineConfig(max_steps=steps, learning_rate=0.2, decay_start=0.0, warmup=0.1, schedule="cosine")
    ours = Adam(start.copy(), kind, decay=0.1)
    table = torch.nn.Parameter(torch.tensor(start))
    theirs = torch.optim.AdamW([table], lr=0.2, weight_decay=0.1)
    schedule = transformers.get_cosine_schedule_with_warmup(theirs, steps // 10, steps)
    for step, (bags, gradients) in enumerate(batches(generator, steps)):
        if kind == "lazy":  # which is the same where every row is in every batch
            bags = Bags.of([*([row] for row in range(ROWS)), *([] for _ in range(len(gradients) - ROWS))])
            gradients = generator.normal(size=(len(bags), WIDTH)).astype(np.float32)
        ours.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradients, config.rate_at(step))
        theirs.zero_grad()
        backward(table, bags, gradients)
        theirs.step()
        schedule.step()
    return ours.matrix, table.detach().numpy()


def measure(inputs: Inputs) -> Figures:
    """Compare the tables after some steps."""
    steps = 12 if inputs.small else 60
    kinds: tuple[tuple[Optimiser, str], ...] = (("dense", "torch's Adam"), ("lazy", "torch's SparseAdam"))
    for kind, beside in kinds:
        for clip in (0.0, 0.5):
            what = f"table after {steps} steps{', clipped' if clip else ''}"
            yield figure(f"Adam, {kind}", beside, what, *plain(kind, clip, 1, steps), 1e-5)
    for kind, _ in kinds:
        what = "table after 30 steps of rate .2, cosine schedule"
        yield figure(f"Adam, {kind}, weight decay", "torch's AdamW", what, *decayed(kind, 30), 1e-4)
