"""What a batch is trained for: losses, their weights, and their gradients added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.training.losses import (
    candidates_on,
    info_nce,
    multiple_negatives,
    ranking_on,
    relational,
    relational_on,
    relational_targets,
)
from xswe.training.prefixes import Prefixes, over_prefixes
from xswe.training.settings import OFF

Gradients = tuple[float, np.ndarray, np.ndarray]
SIDES = ("source", "target", "cross")


@dataclass(frozen=True)
class Objective:
    """A weighted sum of losses on a batch of translation pairs, or of sentences of one language.

    Attributes:
        temperature: of the ranking loss (paper: 0.05).
        margin: additive margin on the true pairs (paper: 0).
        distillation: weight of each relational loss, 0 for none; it needs a teacher's sentence vectors.
        distillation_temperature: of the relational losses (paper: 0.05).
        distillation_on: which similarities imitate the teacher's: within the ``source`` sentences, within the
            ``target`` sentences, and ``cross`` from source i to target j.
        ranking: weight of the ranking loss; 0 for distillation alone (paper, one language).
        prefixes: numbers of dimensions; every loss is summed over these prefixes of the vectors. None for the full
            vectors alone.
        prefix_weights: one a prefix; empty for 1 each.
        directions: of the ranking: ``both`` (paper), or ``source`` for the targets of each source alone, which is multiple
            negatives ranking as sentence-transformers has it.
    """

    temperature: float = 0.05
    margin: float = 0.3
    distillation: float = 0.0
    distillation_temperature: float = 0.05
    distillation_on: tuple[str, ...] = SIDES
    ranking: float = field(default=1.0, metadata=OFF)
    prefixes: tuple[int, ...] = field(default=(), metadata=OFF)
    prefix_weights: tuple[float, ...] = field(default=(), metadata=OFF)
    directions: Literal["both", "source"] = field(default="both", metadata=OFF)

    def __post_init__(self) -> None:
        if unknown := set(self.distillation_on) - set(SIDES):
            raise ConfigError(f"objective.distillation_on has {sorted(unknown)}: use source, target, cross")
        if not (self.ranking >= 0 and self.distillation >= 0 and 0 < self.ranking + self.distillation < math.inf):
            raise ConfigError("objective.ranking and objective.distillation are weights: at least one must be above 0")
        for name in ("temperature", "distillation_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"objective.{name}={getattr(self, name)}: give a number above 0, as 0.05")
        if not 0 <= self.margin < math.inf:
            raise ConfigError(f"objective.margin={self.margin}: give a number that is not negative, as 0.3")
        if self.directions not in ("both", "source"):
            raise ConfigError(f"objective.directions={self.directions!r}: use both or source")
        if self.prefix_weights and not self.prefixes:
            raise ConfigError("objective.prefix_weights needs objective.prefixes=[256,128,64] or the like")
        if self.prefixes:
            Prefixes.of(self.prefixes, self.prefix_weights)

    def ranking_loss(
        self, source: np.ndarray, target: np.ndarray, same: tuple[np.ndarray, ...], threads: int, gradient: bool
    ) -> Gradients:
        """The ranking loss alone, its weight left out; see :func:`xswe.training.losses.candidates_on`."""
        settings: dict[str, Any] = {"temperature": self.temperature, "margin": self.margin}
        settings |= {"threads": threads, "gradient": gradient}
        on: Callable[[np.ndarray], float]
        if self.directions == "both" and len(target) == len(source) and len(same) == 2:  # as it is fastest
            settings |= {"same_source": same[0], "same_target": same[1]}
            if not self.prefixes:
                return info_nce(source, target, **settings)
            on = partial(ranking_on, **settings)
        else:
            on = partial(candidates_on, **settings, same=same, both=self.directions == "both")
            if not self.prefixes:
                return multiple_negatives(source, target, on, threads, gradient)
        return over_prefixes(
            source, target, Prefixes.of(self.prefixes, self.prefix_weights), on, threads=threads, gradient=gradient
        )

    def _relational(
        self, left: np.ndarray, right: np.ndarray, targets: np.ndarray, threads: int, gradient: bool
    ) -> Gradients:
        """One relational loss, its weight left out; see :func:`xswe.training.losses.relational`."""
        at: dict[str, Any] = {"temperature": self.distillation_temperature, "threads": threads}
        if not self.prefixes:
            return relational(left, right, targets, **at, gradient=gradient)
        chosen = Prefixes.of(self.prefixes, self.prefix_weights)
        return over_prefixes(
            left, right, chosen, lambda c: relational_on(c, targets, **at), threads=threads, gradient=gradient
        )

    def __call__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        same: tuple[np.ndarray, ...],
        teacher: np.ndarray | None,
        threads: int = 1,
    ) -> Gradients:
        """Loss of a batch and its gradients.

        Args:
            source: float32 (k, d), unit vectors.
            target: float32 (k + n, d), unit vectors, row i the translation of source i, the last n further negatives of the
                ranking; (0, d) for sentences of a single language.
            same: equal numbers mark equal texts: int (k,) of the sources, int (k + n,) of the targets; where sources may be
                among the targets, a third of (k,), the sources as the targets are numbered.
            teacher: float32 (k, e), the teacher's unit vectors of the pairs, or None.
            threads: how many threads share the rows.

        Returns:
            The loss and its gradients with respect to ``source`` and ``target``.
        """
        if self.ranking:
            loss, d_source, d_target = self.ranking_loss(source, target, same, threads, gradient=True)
            if self.ranking != 1.0:
                loss, weight = self.ranking * loss, np.float32(self.ranking)
                d_source *= weight
                d_target *= weight
        else:
            loss, d_source, d_target = 0.0, np.zeros_like(source), np.zeros_like(target)
        if not self.distillation or teacher is None or len(source) < 2:
            return loss, d_source, d_target
        weight = np.float32(self.distillation)
        paired, d_paired = target[: len(source)], d_target[: len(source)]
        targets = relational_targets(teacher, temperature=self.distillation_temperature, threads=threads)
        for left, right, d_left, d_right, side in (
            (source, source, d_source, d_source, "source"),
            (paired, paired, d_paired, d_paired, "target"),
            (source, paired, d_source, d_paired, "cross"),
        ):
            if side in self.distillation_on and len(right):
                value, by_left, by_right = self._relational(left, right, targets, threads, gradient=True)
                loss += self.distillation * value
                d_left += weight * by_left
                if side == "cross":
                    d_right += weight * by_right
        return loss, d_source, d_target

    def development(
        self,
        source: np.ndarray,
        target: np.ndarray,
        same: tuple[np.ndarray, ...],
        teacher: np.ndarray | None,
        threads: int = 1,
    ) -> float:
        """The same loss without its gradients: what decides on held-out pairs when to stop."""
        loss = 0.0
        if self.ranking:
            loss += self.ranking * self.ranking_loss(source, target, same, threads, gradient=False)[0]
        if not self.distillation or teacher is None or len(source) < 2:
            return loss
        targets = relational_targets(teacher, temperature=self.distillation_temperature, threads=threads)
        paired = target[: len(source)]
        sides = {"source": (source, source), "target": (paired, paired), "cross": (source, paired)}
        return loss + sum(
            self.distillation * self._relational(*sides[side], targets, threads, gradient=False)[0]
            for side in self.distillation_on
            if len(sides[side][1])
        )
