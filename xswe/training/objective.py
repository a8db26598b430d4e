"""The training objective: losses, their weights, and their sums over prefixes of the dimensions.

Losses summed over prefixes let vectors be truncated (Matryoshka; Kusupati et al. 2022). A prefix's cosines are its inner
products divided by its norms, and a longer prefix adds one block of dimensions to the inner products of the shorter: all
prefixes together cost one matrix product forward and two backward, like the full vectors alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.io.parallel import over_blocks
from xswe.io.settings import check_choice, for_all
from xswe.training.losses import (
    CosineLoss,
    RankingLoss,
    RelationalLoss,
    check_temperature,
    finite,
    on_products,
    relational_targets,
)
from xswe.training.stages import OMIT_DEFAULT


@dataclass(frozen=True)
class Prefixes:
    """Prefixes of the dimensions, and the weights of their losses."""

    sizes: tuple[int, ...]  # dimensions of each prefix, ascending
    weights: tuple[float, ...]  # of each prefix's loss

    @classmethod
    def of(cls, sizes: Sequence[int], weights: Sequence[float]) -> Prefixes:
        """Return prefixes sorted by size; without weights each has weight 1.

        ConfigError: a size is not positive or given twice, or the weights are not one per size, negative, or all 0.
        """
        weights = tuple(weights) or (1.0,) * len(sizes)
        counted = all(weight >= 0 for weight in weights) and 0 < sum(weights) < math.inf
        if len(weights) != len(sizes) or len(set(sizes)) != len(sizes) or min(sizes, default=1) < 1 or not counted:
            raise ConfigError(
                f"objective.prefixes={list(sizes)} with prefix_weights={list(weights)}: give distinct positive numbers of "
                "dimensions, and one weight each that is not negative, nor all 0"
            )
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        return cls(tuple(sizes[i] for i in order), tuple(weights[i] for i in order))


@njit(nogil=True, cache=True)
def _inverse_norms(vectors: np.ndarray, bounds: np.ndarray, out: np.ndarray) -> None:
    """out[p, i] = 1 / norm of the first ``bounds[p + 1]`` dimensions of row i; 0 if the norm is 0."""
    for i in range(len(vectors)):
        total = np.float32(0.0)
        for p in range(len(bounds) - 1):
            for j in range(bounds[p], bounds[p + 1]):
                total += vectors[i, j] * vectors[i, j]
            out[p, i] = np.float32(1.0) / np.sqrt(total) if total > 0 else np.float32(0.0)


@njit(nogil=True, cache=True, fastmath=True)
def _scale(products: np.ndarray, left: np.ndarray, right: np.ndarray, cosines: np.ndarray) -> None:
    """cosines[i, j] = products[i, j] * left[i] * right[j]."""
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            cosines[i, j] = products[i, j] * left[i] * right[j]


@njit(nogil=True, cache=True, fastmath=True)
def _unscale(
    products: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    weight: np.float32,
    gradient: np.ndarray,
    along_left: np.ndarray,
    along_right: np.ndarray,
) -> None:
    """Turn the gradient with respect to cosines into that with respect to inner products, in place.

    The sums of gradient times inner product are written to ``along_left[i]``, and added to ``along_right[j]``.
    """
    for i in range(products.shape[0]):
        total = np.float32(0.0)
        for j in range(products.shape[1]):
            by_product = gradient[i, j] * weight * left[i] * right[j]
            gradient[i, j] = by_product
            along = by_product * products[i, j]
            total += along
            along_right[j] += along
        along_left[i] = total


def over_prefixes(
    left: np.ndarray, right: np.ndarray, prefixes: Prefixes, loss: CosineLoss, threads: int = 1, gradient: bool = True
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return sum_p weight_p * loss(cosines of left[:, :p] and right[:, :p]), and its gradients by ``left`` and ``right``.

    Both sides are float32, (k, d) and (n, d), of any norm. If they are the same array, the first gradient is the total and
    the second is zero. Without ``gradient`` both are empty. ConfigError: a prefix is longer than the vectors.
    """
    size, width = left.shape
    if prefixes.sizes[-1] > width:
        raise ConfigError(f"objective.prefixes has {prefixes.sizes[-1]}, the vectors have {width} dimensions")
    bounds = (0, *prefixes.sizes)
    blocks = [slice(a, b) for a, b in pairwise(bounds)]
    by_left, by_right = (np.empty((len(blocks), len(side)), np.float32) for side in (left, right))
    _inverse_norms(left, np.array(bounds), by_left)
    _inverse_norms(right, np.array(bounds), by_right)
    products = np.zeros((size, len(right)), np.float32)
    total, kept = 0.0, []
    for p, block in enumerate(blocks):
        cosines, scales, weight = np.empty_like(products), (by_left[p], by_right[p]), prefixes.weights[p]
        total += weight * _forward(left[:, block], right[:, block], products, *scales, cosines, loss, threads)
        if gradient:
            kept.append((cosines, *_by_products(products, *scales, weight, cosines, loss, threads)))
    if not gradient:
        return total, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_left, d_right = np.zeros_like(left), np.zeros_like(right)
    above, left_above = np.zeros_like(products), np.zeros(size, np.float32)
    right_above = np.zeros(len(right), np.float32)
    for p in reversed(range(len(blocks))):
        block, (part, along_left, along_right) = blocks[p], kept.pop()
        # A dimension is part of its own prefix and of longer ones; the norms' gradient is a multiple of the vector.
        left_above += by_left[p] ** 2 * along_left
        right_above += by_right[p] ** 2 * along_right
        d_right[:, block] = _backward(above, part, left[:, block], right[:, block], d_left[:, block], threads)
        d_left[:, block] -= left[:, block] * left_above[:, None]
        d_right[:, block] -= right[:, block] * right_above[:, None]
    if left is right:
        return total, d_left + d_right, np.zeros_like(d_right)
    return total, d_left, d_right


def _forward(
    left: np.ndarray,
    right: np.ndarray,
    products: np.ndarray,
    by_left: np.ndarray,
    by_right: np.ndarray,
    cosines: np.ndarray,
    loss: CosineLoss,
    threads: int,
) -> float:
    """Add a block of dimensions to the inner products, and return the loss of the cosines of the prefix up to there."""

    def work(a: int, b: int) -> Any:
        products[a:b] += left[a:b] @ right.T
        _scale(products[a:b], by_left[a:b], by_right, cosines[a:b])
        return loss.forward(cosines[a:b], a)

    return finite(loss.value(over_blocks(work, len(left), threads)))


def _by_products(
    products: np.ndarray,
    by_left: np.ndarray,
    by_right: np.ndarray,
    weight: float,
    gradient: np.ndarray,
    loss: CosineLoss,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Turn cosines into the gradient by inner products; return the sums of their products, by row and by column."""
    along_left = np.empty(len(products), np.float32)

    def work(a: int, b: int) -> np.ndarray:
        loss.backward(gradient[a:b], a)
        part = np.zeros(products.shape[1], np.float32)
        _unscale(products[a:b], by_left[a:b], by_right, np.float32(weight), gradient[a:b], along_left[a:b], part)
        return part

    return along_left, np.sum(over_blocks(work, len(products), threads), axis=0)


def _backward(
    above: np.ndarray, part: np.ndarray, left: np.ndarray, right: np.ndarray, d_left: np.ndarray, threads: int
) -> np.ndarray:
    """Add a prefix's gradient to that of longer ones; write its block of ``d_left``, and return that of the right side."""

    def work(a: int, b: int) -> np.ndarray:
        above[a:b] += part[a:b]
        d_left[a:b] = above[a:b] @ right
        return above[a:b].T @ left[a:b]

    return np.sum(over_blocks(work, len(left), threads), axis=0)


Gradients = tuple[float, np.ndarray, np.ndarray]
SIDES = ("source", "target", "cross")
Directions = Literal["both", "source"]
_RANKS_BOTH = for_all(Directions, {"both": True, "source": False})


@dataclass(frozen=True)
class Objective:
    """A weighted sum of losses on a batch of translation pairs, or of sentences of one language.

    Attributes:
        temperature: temperature of the ranking loss (paper: 0.05).
        margin: additive margin on the true pairs (paper: 0).
        distillation: weight of each relational loss, 0 for none; needs a teacher's sentence vectors.
        distillation_temperature: temperature of the relational losses (paper: 0.05).
        distillation_on: which similarities imitate the teacher's: within the ``source`` sentences, within the
            ``target`` sentences, and ``cross`` from source i to target j.
        distillation_centred: subtract the mean of the teacher's vectors first. The similarities of many encoders lie in a
            narrow range far from 0, and a table that imitates them (paper) gets back the direction common to all
            sentences, which the sentence PCA has removed.
        ranking: weight of the ranking loss; 0 for distillation only (paper, one language).
        prefixes: numbers of dimensions; every loss is summed over these prefixes of the vectors. Empty for the full vectors
            only.
        prefix_weights: one weight per prefix; empty for 1 each.
        directions: of the ranking: ``both`` (paper), or ``source`` to rank only the targets of each source, which is
            multiple negatives ranking as in sentence-transformers.
    """

    temperature: float = 0.05
    margin: float = 0.3
    distillation: float = 0.0
    distillation_temperature: float = 0.05
    distillation_on: tuple[str, ...] = SIDES
    distillation_centred: bool = field(default=False, metadata=OMIT_DEFAULT)
    ranking: float = field(default=1.0, metadata=OMIT_DEFAULT)
    prefixes: tuple[int, ...] = field(default=(), metadata=OMIT_DEFAULT)
    prefix_weights: tuple[float, ...] = field(default=(), metadata=OMIT_DEFAULT)
    directions: Directions = field(default="both", metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        if unknown := set(self.distillation_on) - set(SIDES):
            raise ConfigError(f"objective.distillation_on has {sorted(unknown)}: use source, target, cross")
        weights = [getattr(self, name) for name in LOSSES]
        if not (min(weights) >= 0 and 0 < sum(weights) < math.inf):
            named = " and ".join(f"objective.{name}" for name in LOSSES)
            raise ConfigError(f"{named} are weights: at least one must be above 0")
        for name in ("temperature", "distillation_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"objective.{name}={getattr(self, name)}: give a number above 0, as 0.05")
        if not 0 <= self.margin < math.inf:
            raise ConfigError(f"objective.margin={self.margin}: give a number that is not negative, as 0.3")
        if self.ranking:
            check_temperature(self.temperature, self.margin, "objective.temperature")
        if self.distillation:
            check_temperature(self.distillation_temperature, name="objective.distillation_temperature")
        check_choice("objective.directions", self.directions, Directions)
        if self.prefix_weights and not self.prefixes:
            raise ConfigError("objective.prefix_weights needs objective.prefixes=[256,128,64] or the like")
        if self.prefixes:
            Prefixes.of(self.prefixes, self.prefix_weights)

    @property
    def needs_pairs(self) -> bool:
        """Whether a loss compares translations; otherwise sentences of a single language suffice."""
        return any(getattr(self, name) > 0 for name, loss in LOSSES.items() if loss.compares_translations)

    @property
    def imitating(self) -> list[str]:
        """The losses with a weight that imitate a teacher."""
        return [name for name, loss in LOSSES.items() if loss.imitates and getattr(self, name) > 0]

    def _summed(self, left: np.ndarray, right: np.ndarray, loss: CosineLoss, threads: int, gradient: bool) -> Gradients:
        """Return one unweighted loss, on the full vectors or summed over prefixes."""
        if not self.prefixes:
            return on_products(left, right, loss, threads, gradient)
        return over_prefixes(left, right, Prefixes.of(self.prefixes, self.prefix_weights), loss, threads, gradient)

    def __call__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        same: tuple[np.ndarray, ...],
        teacher: np.ndarray | None,
        threads: int = 1,
        gradient: bool = True,
    ) -> Gradients:
        """Return the loss of a batch and its gradients with respect to ``source`` and ``target``.

        ``source``, float32 (k, d), and ``target``, (k + n, d), are unit vectors: target i is the translation of source i,
        and the last n are additional negatives for the ranking; (0, d) for sentences of a single language. Equal numbers
        in ``same`` mark equal texts: int (k,) of the sources and int (k + n,) of the targets; if sources may be among the
        targets, a third array (k,) numbers the sources as targets. ``teacher``, float32 (k, e), are the teacher's unit
        vectors of the pairs, or None. Without ``gradient``, as for development pairs, the gradients are meaningless.
        """
        value, d_source, d_target = 0.0, np.zeros_like(source), np.zeros_like(target)
        batch, size = Batch(source, target, same, teacher, threads), len(source)
        vectors = {"source": source, "translations": target[:size], "targets": target}
        totals = {"source": d_source, "translations": d_target[:size], "targets": d_target}
        for name, loss in LOSSES.items():
            if not (weight := getattr(self, name)):
                continue
            for left, right, compared in loss.terms(self, batch):
                own, by_left, by_right = self._summed(vectors[left], vectors[right], compared, threads, gradient)
                value += weight * own
                changes = {right: by_right, left: by_left}  # of a side with itself, the first is all
                for side, change in changes.items() if gradient else ():
                    totals[side] += np.float32(weight) * change
        return value, d_source, d_target


class Batch(NamedTuple):
    """The input of a loss: the arguments of an objective."""

    source: np.ndarray
    target: np.ndarray
    same: tuple[np.ndarray, ...]
    teacher: np.ndarray | None
    threads: int


# What a loss compares, ``source``, ``translations`` or ``targets`` (those, and additional negatives), on the left and on
# the right; and the loss of their cosines.
Term = tuple[str, str, CosineLoss]


def _ranking(objective: Objective, batch: Batch) -> Iterator[Term]:
    directions = _RANKS_BOTH[objective.directions]
    yield "source", "targets", RankingLoss(batch.same, objective.temperature, objective.margin, directions)


def _distillation(objective: Objective, batch: Batch) -> Iterator[Term]:
    if batch.teacher is None or len(batch.source) < 2:
        return
    heat = objective.distillation_temperature
    loss = RelationalLoss(relational_targets(batch.teacher, temperature=heat, threads=batch.threads), heat)
    sides = {"source": ("source", "source")}
    if len(batch.target):
        sides |= {"target": ("translations", "translations"), "cross": ("source", "translations")}
    yield from ((*compared, loss) for side, compared in sides.items() if side in objective.distillation_on)


class Loss(NamedTuple):
    """A loss of the objective; its weight is the setting of the same name."""

    compares_translations: bool  # otherwise sentences of a single language suffice
    imitates: bool  # a teacher, whose vectors it needs
    terms: Callable[[Objective, Batch], Iterator[Term]]


LOSSES = {"ranking": Loss(True, False, _ranking), "distillation": Loss(False, True, _distillation)}
