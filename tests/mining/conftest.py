"""A small bilingual model made in a second: latent semantic indexing of the sample's English and Japanese together."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.conftest import shared_folder
from tests.kernels import alone
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits


@pytest.fixture(scope="session")
def model(sample, tokenizer_json, tmp_path_factory) -> StaticModel:
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ["en", "ja"])
    kept = shared_folder(tmp_path_factory) / "lsi.npy"
    with alone(kept.with_suffix(".lock"), set()):  # of several processes that share the tests one makes it
        if not kept.exists():
            np.save(kept, indexed(sample, units))
    return StaticModel(units, np.load(kept))


def indexed(sample, units):
    """The vectors of units by latent semantic indexing: float32 (units, 300)."""
    size = len(units.tokens)
    counts = np.zeros((len(sample["en"]), size), np.float32)
    for language in ("en", "ja"):
        bags = units.bags(sample[language])
        rows = np.repeat(np.arange(len(bags)), bags.lengths)
        np.add.at(counts, (rows, bags.ids), 1.0)
    weights = np.log(len(counts) / np.maximum(1, (counts > 0).sum(0)))
    gram = (counts * weights) @ (counts * weights).T
    values, left = np.linalg.eigh(gram.astype(np.float64))
    top = left[:, ::-1][:, 1:301]
    matrix = ((counts * weights).T @ top / np.sqrt(values[::-1][1:301])) * weights[:, None]
    return np.ascontiguousarray(matrix, np.float32)


@pytest.fixture(scope="session")
def model_folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lsi") / "model"
    model.save(folder)
    return folder


@pytest.fixture
def vectors():
    """Two sets of unit vectors with planted translations: rows i and i of the first half belong together."""

    def make(n: int, m: int, dim: int = 24, planted: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(seed)
        a, b = (generator.standard_normal((rows, dim)).astype(np.float32) for rows in (n, m))
        b[:planted] = a[:planted] + 0.4 * b[:planted]
        return tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))

    return make
