"""Which sentences stand for a unit (JA paper: of the candidates those of fewest tokens), beside a sort of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eval.parity.figures import Figure, Figures, Inputs
from xswe.corpus.contexts import ContextConfig, Contexts, choose_contexts
from xswe.io.ragged import Bags

NEEDS = ()


def by_unit(contexts: Contexts, size: int) -> dict[int, list[int]]:
    """Return the chosen sentences of each unit."""
    out: dict[int, list[int]] = {unit: [] for unit in range(size)}
    for k, sentence in enumerate(contexts.sentences):
        for unit in contexts.units[contexts.offsets[k] : contexts.offsets[k + 1]]:
            out[int(unit)].append(int(sentence))
    return out


def written_out(
    lists: Sequence[Sequence[int]], size: int, n: int, pick: str, sizes: Sequence[int] | None = None
) -> dict[int, list[int]]:
    """Choose the first n, or n shortest, of the sentences that contain a unit; of equal ones the first."""
    out = {}
    for unit in range(size):
        rows = [row for row, one in enumerate(lists) if unit in one]
        if pick == "shortest":
            rows = sorted(rows, key=lambda row: ((len(lists[row]) if sizes is None else sizes[row]), row))
        out[unit] = sorted(rows[:n])
    return out


def measure(inputs: Inputs) -> Figures:
    """Count the units that stand for other sentences."""
    size, sentences, n = (10, 60, 3) if inputs.small else (500, 2000, 20)  # as many as there are candidates
    generator = np.random.default_rng(0)
    lists = [generator.zipf(1.3, generator.integers(1, 30)).clip(max=size) - 1 for _ in range(sentences)]
    tokens = [len(one) + int(generator.integers(0, 9)) for one in lists]
    bags = Bags.of([one.tolist() for one in lists])
    for what, length, sizes in (("words", "units", None), ("the teacher's tokens", "tokens", tokens)):
        config = ContextConfig(per_unit=n, length=length)  # type: ignore[arg-type]
        of = None if sizes is None else lambda rows: np.array([tokens[row] for row in rows], np.int64)
        found = by_unit(choose_contexts(bags, size, config, lengths=of), size)
        expected = written_out(lists, size, n, "shortest", sizes)
        wrong = sum(found[unit] != expected[unit] for unit in range(size))
        yield Figure(
            "contexts", "written out", f"units with other sentences, length in {what}", wrong, 0.0, size, counted=True
        )
