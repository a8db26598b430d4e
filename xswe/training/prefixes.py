"""Losses summed over prefixes of the dimensions, so that vectors can be cut short (Matryoshka; Kusupati et al. 2022).

A prefix's cosines are its inner products, divided by its norms, and the inner products of a longer prefix are those of
the shorter plus one block of dimensions more: all prefixes together cost one matrix product forward, and two backward,
like the full vectors alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.parallel import over_blocks

# Turns a matrix of cosines, float32 (k, n), into its loss's gradient in place (if told so), and returns the loss.
OnCosines = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Prefixes:
    """Which prefixes, and what each counts.

    Attributes:
        sizes: dimensions of each prefix, ascending.
        weights: of each prefix's loss.
    """

    sizes: tuple[int, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], weights: Sequence[float]) -> Prefixes:
        """Sort prefixes by size; no weights stand for 1 each.

        Raises:
            ConfigError: a size is not positive or there twice, or the weights are not one a size, or all 0.
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
    """out[p, i] = 1 / norm of the first ``bounds[p + 1]`` dimensions of row i; 0 where that is 0."""
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
    """Turn the gradient by cosines into that by inner products, in place.

    ``along_left[i]`` and ``along_right[j]`` receive (the latter: are increased by) the sums of gradient times cosine.
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
    left: np.ndarray, right: np.ndarray, prefixes: Prefixes, loss_on: OnCosines, *, threads: int = 1, gradient: bool = True
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum a loss of cosines over prefixes of the dimensions.

    loss = sum_p weight_p * loss_on(cosines of left[:, :p] and right[:, :p]).

    Args:
        left: float32 (k, d), of any norm.
        right: float32 (n, d), the same array or another.
        prefixes: which, at most d dimensions.
        loss_on: the loss, as a function of the (k, n) cosines.
        threads: how many threads share the rows.
        gradient: compute the gradients; without, both are empty.

    Returns:
        The loss and its gradients with respect to ``left`` and ``right``; where they are one array, the first holds
        the whole gradient and the second is zero.

    Raises:
        ConfigError: a prefix is longer than the vectors.
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
        cosines = np.empty_like(products)
        _add_block(left[:, block], right[:, block], products, by_left[p], by_right[p], cosines, threads)
        total += prefixes.weights[p] * loss_on(cosines)
        if gradient:
            kept.append((cosines, *_by_products(products, by_left[p], by_right[p], prefixes.weights[p], cosines, threads)))
    if not gradient:
        return total, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_left, d_right = np.zeros_like(left), np.zeros_like(right)
    above, left_above = np.zeros_like(products), np.zeros(size, np.float32)
    right_above = np.zeros(len(right), np.float32)
    for p in reversed(range(len(blocks))):
        block, (part, along_left, along_right) = blocks[p], kept.pop()
        # A dimension serves its own prefix and every longer one; the norms' share is a multiple of the vector itself.
        left_above += by_left[p] ** 2 * along_left
        right_above += by_right[p] ** 2 * along_right
        d_right[:, block] = _backward(above, part, left[:, block], right[:, block], d_left[:, block], threads)
        d_left[:, block] -= left[:, block] * left_above[:, None]
        d_right[:, block] -= right[:, block] * right_above[:, None]
    if left is right:
        return total, d_left + d_right, np.zeros_like(d_right)
    return total, d_left, d_right


def _add_block(
    left: np.ndarray,
    right: np.ndarray,
    products: np.ndarray,
    by_left: np.ndarray,
    by_right: np.ndarray,
    cosines: np.ndarray,
    threads: int,
) -> None:
    """Add a block of dimensions to the inner products, and make the cosines of the prefix that it completes."""

    def work(a: int, b: int) -> None:
        products[a:b] += left[a:b] @ right.T
        _scale(products[a:b], by_left[a:b], by_right, cosines[a:b])

    over_blocks(work, len(left), threads)


def _by_products(
    products: np.ndarray, by_left: np.ndarray, by_right: np.ndarray, weight: float, gradient: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Turn a gradient by cosines into one by inner products; also the sums of gradient times cosine, by row and column."""
    along_left = np.empty(len(products), np.float32)

    def work(a: int, b: int) -> np.ndarray:
        part = np.zeros(products.shape[1], np.float32)
        _unscale(products[a:b], by_left[a:b], by_right, np.float32(weight), gradient[a:b], along_left[a:b], part)
        return part

    return along_left, np.sum(over_blocks(work, len(products), threads), axis=0)


def _backward(
    above: np.ndarray, part: np.ndarray, left: np.ndarray, right: np.ndarray, d_left: np.ndarray, threads: int
) -> np.ndarray:
    """Add a prefix's gradient to that of the longer ones, and carry it to a block of the left and (returned) right."""

    def work(a: int, b: int) -> np.ndarray:
        above[a:b] += part[a:b]
        d_left[a:b] = above[a:b] @ right
        return above[a:b].T @ left[a:b]

    return np.sum(over_blocks(work, len(left), threads), axis=0)
