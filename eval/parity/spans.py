"""SLICE's loss over the best spans and its gradient beside the formula over all spans, in float64, by torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eval.parity.figures import Figures, Inputs, figure
from eval.parity.matryoshka import seen_by
from xswe.text.spans import Cut
from xswe.training.losses import Similarity
from xswe.training.refine import SpanTrainer
from xswe.training.triplets import SpanTraining, Triplets

NEEDS = ("torch",)
Words = list[list[int]]  # a text: words of rows


def cut_of(texts: list[Words]) -> Cut:
    """Return texts as the library has them."""
    words = [word for text in texts for word in text]
    ids = np.array([row for word in words for row in word], np.int32)
    lengths = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return Cut(ids, lengths, np.cumsum([0, *map(len, texts)], dtype=np.int64))


def random_texts(generator: np.random.Generator, n: int, longest: int, rows: int = 50) -> list[Words]:
    """Draw texts of 2 to ``longest`` - 1 words."""
    return [
        [generator.integers(0, rows, generator.integers(1, 3)).tolist() for _ in range(generator.integers(2, longest))]
        for _ in range(n)
    ]


def best(matrix: Any, text: Words, phrase: Any, low: int, high: int) -> Any:
    """Return the best cosine of a phrase over all spans of a text, as torch's, differentiable (SLICE 3.1)."""
    import torch

    words = torch.stack([matrix[word].sum(0) for word in text])
    spans = [words[a:b].sum(0) for a in range(len(words)) for b in range(a + low, min(a + high, len(words)) + 1)]
    return torch.stack([torch.nn.functional.cosine_similarity(span, phrase, dim=0, eps=1e-12) for span in spans]).max()


def both(
    n: int, width: int, scale: float, similarity: Similarity = "normalised"
) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Return our loss and the gradient of the table, and those of the formula."""
    import torch

    generator = np.random.default_rng(0)
    start = generator.normal(size=(50, width)).astype(np.float32)
    phrases, true, false = (random_texts(generator, n, longest) for longest in (4, 9, 9))
    table = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    losses = []
    for phrase, yes, no in zip(phrases, true, false, strict=True):
        vector = torch.stack([table[word].sum(0) for word in phrase]).sum(0)
        scores = torch.stack([best(table, text, vector, 1, 5) for text in (yes, no)])
        if similarity == "normalised":
            scores = (1 + scores) / 2
        losses.append(-scale * scores[0] + torch.log(torch.exp(scale * scores).sum()))
    theirs = torch.stack(losses).mean()
    theirs.backward()
    trainer = SpanTrainer(start.copy(), SpanTraining(max_size=5, scale=scale, similarity=similarity))
    gradient = seen_by(trainer.optimiser, start)
    loss = trainer.step(Triplets(cut_of(phrases).bags, cut_of(true), cut_of(false)), 1.0)
    return loss, gradient, theirs.item(), table.grad.numpy()


def measure(inputs: Inputs) -> Figures:
    """Compare a batch of triplets."""
    loss, gradient, theirs, expected = both(*((12, 8) if inputs.small else (64, 128)), 30.0)
    yield figure("SLICE", "torch", "loss", loss, theirs, 1e-4)
    yield figure("SLICE", "torch", "gradient", gradient, expected, 6e-4 if inputs.small else 1e-4)
