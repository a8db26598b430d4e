"""Sentence PCA with the first components removed, beside scikit-learn's PCA on the same sentences' means of words."""

from __future__ import annotations

import numpy as np

from eval.parity.figures import Figures, Inputs, figure
from xswe.io.ragged import Bags
from xswe.model.static import pool
from xswe.training.components import Components

NEEDS = ("sklearn",)


def by_scikit_learn(words: np.ndarray, bags: Bags, drop: int, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean and the components of the sentences' means of words, and the projected words."""
    from sklearn.decomposition import PCA

    ids = [bags.ids[a:b] for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    sentences = np.stack([np.mean([words[i].astype(np.float64) for i in one], axis=0) for one in ids])
    made = PCA(svd_solver="full").fit(sentences)
    kept = made.components_[drop : drop + dim]
    return made.mean_, kept, (words.astype(np.float64) - made.mean_) @ kept.T


def measure(inputs: Inputs) -> Figures:
    """Compare vectors that share a mean and a falling spectrum, as an encoder's do."""
    rows, width, sentences, dim = (60, 32, 120, 8) if inputs.small else (3000, 384, 6000, 256)
    drop = 3
    generator = np.random.default_rng(0)
    words = (generator.normal(size=(rows, width)) * np.geomspace(1, 0.01, width) + 2).astype(np.float32)
    bags = Bags.of([generator.integers(0, rows, generator.integers(3, 20)).tolist() for _ in range(sentences)])
    made = Components(drop, dim).fit(pool(words, bags, normalise=False, threads=1))
    mean, components, projected = by_scikit_learn(words, bags, drop, dim)
    signs = np.sign((components * made.components_).sum(1))
    yield figure("sentence PCA", "scikit-learn", "mean", made.mean_, mean, 1e-6)
    yield figure("sentence PCA", "scikit-learn", "components", made.components_, components * signs[:, None], 1e-3)
    yield figure("sentence PCA", "scikit-learn", "projected words", made.transform(words), projected * signs, 1e-3)
