"""Pairs graded for similarity: their files, and the CoSENT loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.errors import ConfigError
from xswe.evaluation.tasks import read_scored
from xswe.io.files import file_digest
from xswe.io.ragged import Bags, concatenate_bags
from xswe.text.units import Units


@dataclass(frozen=True)
class GradedConfig:
    """Settings of training on graded pairs.

    Attributes:
        paths: files of ``score<TAB>text<TAB>text`` lines, in any of the model's languages, within one or across; none to
            train without. Scores are compared only within a file.
        weight: of the loss, in addition to those of the objective.
        temperature: of the differences of cosines (CoSENT: 0.05).
        batch_size: graded pairs per step, drawn at random from one file.
    """

    paths: tuple[str, ...] = ()
    weight: float = 0.1
    temperature: float = 0.05
    batch_size: int = 256

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf or not 0 < self.temperature < math.inf or self.batch_size < 2:
            raise ConfigError("graded needs weight > 0, temperature > 0 and batch_size >= 2")


@dataclass(frozen=True, eq=False)
class Graded:
    """Graded pairs of one file, tokenised."""

    left: Bags  # n bags
    right: Bags  # n bags
    scores: np.ndarray  # float64 (n,), higher for more similar pairs

    def __len__(self) -> int:
        return len(self.scores)

    def batch(self, rows: np.ndarray) -> Bags:
        """Return the bags of some pairs: first the left ones, then the right ones."""
        return concatenate_bags([self.left.take(rows), self.right.take(rows)])


def read_graded(paths: Sequence[str], units: Units) -> list[Graded]:
    """Read files of graded pairs.

    ConfigError: all pairs of a file have the same score. InputError: a file is missing or damaged.
    """
    found = []
    for path in paths:
        scores, left, right = read_scored(Path(path))
        if len(np.unique(scores)) < 2:
            raise ConfigError(
                f"graded.paths: {path}: all {len(scores):,} pairs have the score {scores[0]:g}: give different grades"
            )
        found.append(Graded(units.bags(left), units.bags(right), scores))
    return found


def describe_graded(config: GradedConfig) -> list[object]:
    """Return the inputs and settings of graded pairs for a stage's fingerprint; empty without pairs."""
    if not config.paths:
        return []
    how = [config.weight, config.temperature, config.batch_size]
    return [{"graded": [file_digest(Path(path)) for path in config.paths], "how": how}]


@dataclass(frozen=True, eq=False)
class GradedLoss:
    """The loss of graded pairs, which a trainer adds to each step."""

    files: Sequence[Graded]  # the graded pairs of each file
    config: GradedConfig
    seed: int = 0  # decides which pairs a step sees

    def draw(self, step: int) -> tuple[Bags, np.ndarray]:
        """Return the bags of a step's k pairs (first the left ones, then the right ones), and their scores (k,)."""
        generator = np.random.default_rng([self.seed, 43, step])
        sizes = np.array([len(file) for file in self.files])
        file = self.files[generator.choice(len(sizes), p=sizes / sizes.sum())]
        rows = np.sort(generator.permutation(len(file))[: self.config.batch_size])
        return file.batch(rows), file.scores[rows]

    def __call__(self, unit: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weighted loss of a step's pairs and its gradient.

        ``unit``, float32 (2k, d), are unit vectors of the left texts, then of the right ones; ``scores`` are float (k,).
        """
        size = len(scores)
        loss, *gradients = cosent(unit[:size], unit[size:], scores, self.config.temperature)
        return self.config.weight * loss, np.float32(self.config.weight) * np.concatenate(gradients)


def cosent(
    left: np.ndarray, right: np.ndarray, scores: np.ndarray, temperature: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the CoSENT loss of graded pairs, and its gradients with respect to ``left`` and ``right``, derived by hand.

    With c_i = cosine(left_i, right_i): loss = log(1 + sum over i, j with score_i > score_j of exp((c_j - c_i) / T)).
    Rows, float32 (k, d), have norm 1 (or 0).
    """
    cosines = np.einsum("ij,ij->i", left, right).astype(np.float64)
    wrong = np.where(scores[:, None] > scores[None, :], (cosines[None, :] - cosines[:, None]) / temperature, -np.inf)
    top = max(0.0, float(wrong.max(initial=0.0)))
    weights = np.exp(wrong - top)
    total = weights.sum() + math.exp(-top)
    weights /= total * temperature
    by_cosine = (weights.sum(axis=0) - weights.sum(axis=1)).astype(np.float32)[:, None]
    return top + math.log(total), by_cosine * right, by_cosine * left
