"""The bilingual loss (EN paper 3.3) and its gradient beside its formula in float64, differentiated by torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eval.parity.figures import Figures, Inputs, figure, unit
from xswe.training.losses import RankingLoss, on_products

NEEDS = ("torch",)


def formula(a: Any, b: Any, temperature: float, margin: float, same_a: Any, same_b: Any) -> Any:
    """Cross-entropy over rows plus cross-entropy over columns of the cosines, the diagonal as the answer."""
    import torch

    n = len(a)
    s = a @ b.T
    s = s - margin * torch.eye(n, dtype=s.dtype)
    masked = (same_a[:, None] == same_a[None]) | (same_b[:, None] == same_b[None])
    masked &= ~torch.eye(n, dtype=torch.bool)
    s = (s / temperature).masked_fill(masked, -1e9)
    answer = torch.arange(n)
    return torch.nn.functional.cross_entropy(s, answer) + torch.nn.functional.cross_entropy(s.T, answer)


def measure(inputs: Inputs) -> Figures:
    """Compare a batch without and one with equal texts and a margin."""
    import torch

    n, width = (32, 16) if inputs.small else (128, 256)
    generator = np.random.default_rng(0)
    for what, margin, kinds in (("", 0.0, n), (", equal texts masked, margin .3", 0.3, n - n // 8)):
        a, b = unit(generator, n, width), unit(generator, n, width)
        same = tuple(np.arange(n) if kinds == n else generator.integers(0, kinds, n) for _ in range(2))
        loss, *gradients = on_products(a, b, RankingLoss(same, 0.05, margin))
        inside = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b)]
        theirs = formula(*inside, 0.05, margin, *map(torch.tensor, same))
        theirs.backward()
        yield figure("contrastive loss", "torch", f"loss{what}", loss, theirs.item(), 1e-4)
        expected = [x.grad.numpy() for x in inside]
        yield figure("contrastive loss", "torch", f"gradient{what}", gradients, expected, 3e-5)
