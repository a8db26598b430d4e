"""The monolingual loss (EN paper 3.3) and its gradient beside its formula in float64, differentiated by torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eval.parity.figures import Figures, Inputs, figure, unit
from xswe.training.losses import RelationalLoss, on_products, relational_targets

NEEDS = ("torch",)


def formula(left: Any, right: Any, teacher: Any, temperature: float) -> Any:
    """Cross-entropy of the student's soft-max against the teacher's, the diagonal left out."""
    import torch

    n = len(left)
    off = ~torch.eye(n, dtype=torch.bool)
    log_p = torch.log_softmax((left @ right.T / temperature).masked_fill(~off, -1e9), 1)
    q = torch.softmax((teacher @ teacher.T / temperature).masked_fill(~off, -1e9), 1)
    return -(q * log_p)[off].sum() / n


def measure(inputs: Inputs) -> Figures:
    """Compare a batch of one language's sentences."""
    import torch

    n, width = (24, 8) if inputs.small else (128, 256)
    generator = np.random.default_rng(0)
    student, teacher = unit(generator, n, width), unit(generator, n, width)
    loss, gradient, _ = on_products(student, student, RelationalLoss(relational_targets(teacher, temperature=0.05), 0.05))
    inside = torch.tensor(student, dtype=torch.float64, requires_grad=True)
    theirs = formula(inside, inside, torch.tensor(teacher, dtype=torch.float64), 0.05)
    theirs.backward()
    yield figure("distillation", "torch", "loss", loss, theirs.item(), 1e-4)
    yield figure("distillation", "torch", "gradient", gradient, inside.grad.numpy(), 2e-5)
