"""Multiple negatives ranking within Matryoshka beside sentence-transformers: the loss, and the gradient of every row."""

from __future__ import annotations

import numpy as np

from eval.parity.figures import Figures, Inputs, figure
from xswe.io.ragged import Bags
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer

NEEDS = ("torch", "sentence_transformers")


def measure(inputs: Inputs) -> Figures:
    """Compare a batch with no and with two further negatives a pair."""
    rows, width, pairs = (80, 16, 24) if inputs.small else (2000, 256, 128)
    for negatives in (0, 2):
        loss, gradient, theirs, expected = both(rows, width, pairs, negatives)
        what = f", {negatives} negatives" if negatives else ""
        yield figure("ranking + Matryoshka", "sentence-transformers", f"loss{what}", loss, theirs, 1e-4)
        yield figure("ranking + Matryoshka", "sentence-transformers", f"gradient{what}", gradient, expected, 1e-5)


def both(rows: int, width: int, pairs: int, negatives: int) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Return our loss and the gradient of the table, and those of sentence-transformers."""
    from sentence_transformers import SentenceTransformer, losses
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    generator, prefixes = np.random.default_rng(2), (width, width // 2, width // 4)
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(rows)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    table = generator.normal(size=(rows, width)).astype(np.float32)
    columns = [
        [generator.integers(0, rows, generator.integers(2, 8)).tolist() for _ in range(pairs)] for _ in range(2 + negatives)
    ]
    texts = [[" ".join(f"w{i}" for i in one) for one in column] for column in columns]
    if len({text for column in texts for text in column}) != pairs * len(columns):
        raise ValueError("two texts are equal, and would be masked by one of the two alone")
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table.copy())], device="cpu")
    ranking = losses.MultipleNegativesRankingLoss(model, scale=20.0)
    theirs = losses.MatryoshkaLoss(model, ranking, list(prefixes))([model.preprocess(column) for column in texts], None)
    theirs.backward()

    further = [column[i] for i in range(pairs) for column in columns[2:]]
    given = (Bags.of(further), np.arange(pairs + 1) * negatives) if negatives else ()
    bitext = ParallelBags(*map(Bags.of, columns[:2]), None, True, *given)
    objective = Objective(temperature=0.05, margin=0.0, directions="source", prefixes=prefixes)
    trainer = Trainer(table.copy(), RefineConfig(batch_size=pairs), objective)
    gradient = seen_by(trainer.optimiser, table)
    loss = trainer.step(bitext, np.arange(pairs), 0.2)
    return loss, gradient, theirs.item(), model[0].embedding.weight.grad.numpy()


def seen_by(optimiser: object, table: np.ndarray) -> np.ndarray:
    """Let an optimiser note the gradient of every row instead of moving it; returns where it notes it."""
    seen = np.zeros_like(table, np.float64)

    def remember(ids: np.ndarray, starts: np.ndarray, stops: np.ndarray, gradients: np.ndarray, rate: float) -> None:
        for a, b, gradient in zip(starts, stops, gradients, strict=True):
            np.add.at(seen, ids[a:b], gradient)

    optimiser.step = remember  # type: ignore[attr-defined]
    return seen
