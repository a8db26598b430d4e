"""SIF (Arora et al. 2017): rare words weigh more, and what all sentences share is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xswe.embedding.pooling import pool
from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError


def sif(model: StaticEmbedding, texts: Sequence[str], count: bool, a: float = 1e-3) -> StaticEmbedding:
    """Weight a static embedding's rows by a / (a + p) and project the first principal direction of sentences out.

    Both act on single rows, so that the outcome is again a static embedding: the mean of weighted, projected rows is
    the projected weighted mean.

    Args:
        model: any static embedding.
        texts: sentences whose first singular direction is removed.
        count: take p, the probability of a unit, from these sentences; else from its place in the vocabulary, taken to
            be in order of frequency (Zipf's law: p of place r is proportional to 1 / r).
        a: the smaller, the less frequent units weigh (the paper: 1e-3 to 1e-4).

    Raises:
        ConfigError: no sentence holds any unit.
    """
    bags = model.units.bags(texts)
    if not len(bags.ids):
        raise ConfigError("SIF found nothing in its texts that the model knows: give texts in its languages")
    size = len(model.matrix)
    if count:
        frequencies = bags.counts(size) / len(bags.ids)
    else:
        frequencies = 1.0 / np.arange(1, size + 1)
        frequencies /= frequencies.sum()
    weighted = (model.vectors * (a / (a + frequencies))[:, None]).astype(np.float32)
    sentences = pool(weighted, bags, normalise=False).astype(np.float64)
    direction = np.linalg.eigh(sentences.T @ sentences)[1][:, -1]
    projected = weighted - np.outer(weighted @ direction, direction)
    return replace(model, matrix=np.ascontiguousarray(projected, np.float32), scales=None)
