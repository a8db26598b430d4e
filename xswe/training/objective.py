"""What a batch of translation pairs is trained for: losses, their weights, and their gradients added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xswe.errors import ConfigError
from xswe.training.losses import info_nce, relational, relational_targets


@dataclass(frozen=True)
class Objective:
    """A weighted sum of losses on a batch of translation pairs.

    Attributes:
        temperature: of the ranking loss (paper: 0.05).
        margin: additive margin on the true pairs (paper: 0).
        distillation: weight of each relational loss, 0 for none; it needs a teacher's sentence vectors.
        distillation_temperature: of the relational losses (paper: 0.05).
        distillation_on: which similarities imitate the teacher's: within the ``source`` sentences, within the
            ``target`` sentences, and ``cross`` from source i to target j.
    """

    temperature: float = 0.05
    margin: float = 0.3
    distillation: float = 0.0
    distillation_temperature: float = 0.05
    distillation_on: tuple[str, ...] = ("source", "target", "cross")

    def __post_init__(self) -> None:
        if unknown := set(self.distillation_on) - {"source", "target", "cross"}:
            raise ConfigError(f"objective.distillation_on has {sorted(unknown)}: use source, target, cross")

    def ranking(
        self, source: np.ndarray, target: np.ndarray, same: tuple[np.ndarray, np.ndarray], threads: int, gradient: bool
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The ranking loss alone; see :func:`xswe.training.losses.info_nce`."""
        return info_nce(
            source,
            target,
            temperature=self.temperature,
            margin=self.margin,
            same_source=same[0],
            same_target=same[1],
            threads=threads,
            gradient=gradient,
        )

    def __call__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        same: tuple[np.ndarray, np.ndarray],
        teacher: np.ndarray | None,
        threads: int = 1,
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss of a batch and its gradients.

        Args:
            source: float32 (k, d), unit vectors.
            target: float32 (k, d), unit vectors, row i the translation of source i.
            same: int (k,) each, equal numbers mark equal source texts, and equal target texts.
            teacher: float32 (k, e), the teacher's unit vectors of the pairs, or None.
            threads: how many threads share the rows.

        Returns:
            The loss and its gradients with respect to ``source`` and ``target``.
        """
        loss, d_source, d_target = self.ranking(source, target, same, threads, gradient=True)
        if not self.distillation or teacher is None:
            return loss, d_source, d_target
        weight, at = np.float32(self.distillation), {"temperature": self.distillation_temperature, "threads": threads}
        targets = relational_targets(teacher, **at)  # type: ignore[arg-type]
        for left, right, d_left, d_right, side in (
            (source, source, d_source, d_source, "source"),
            (target, target, d_target, d_target, "target"),
            (source, target, d_source, d_target, "cross"),
        ):
            if side in self.distillation_on:
                value, by_left, by_right = relational(left, right, targets, **at)  # type: ignore[arg-type]
                loss += self.distillation * value
                d_left += weight * by_left
                if side == "cross":
                    d_right += weight * by_right
        return loss, d_source, d_target
