"""Boosted trees over features of eight bits: scikit-learn fits them, compiled code reads them, in half of its time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN

_ROWS = 32  # that go down a tree together


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose values, summed by class, are logarithms of how likely each class is.

    A node's next one is the first of its children if its feature is at most its threshold; a leaf is its own child.
    """

    classes: np.ndarray  # int64 (classes,)
    start: np.ndarray  # float64 (classes,), what the sums begin with
    features: np.ndarray  # uint8 (nodes,)
    thresholds: np.ndarray  # uint8 (nodes,)
    children: np.ndarray  # int32 (nodes, 2)
    values: np.ndarray  # float64 (nodes,)
    roots: np.ndarray  # int32 (trees,); tree i is of class i modulo the number of classes
    depths: np.ndarray  # int32 (trees,)

    @classmethod
    def fit(cls, features: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Trees:
        """Fit trees to whole numbers from 0 to 255, float32 (n, features), NaN where unknown, of three classes or more."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        model = HistGradientBoostingClassifier(
            max_iter=40,
            learning_rate=0.15,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1, user_api="openmp"):  # sums are in one order, however many processors there are
            return cls.of(model.fit(features, classes, sample_weight=weights))

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Take the trees of a fitted classifier, which has no public name for them."""
        nodes = [tree.nodes for trees in model._predictors for tree in trees]
        roots = np.cumsum([0, *map(len, nodes)]).astype(np.int32)
        everyone = np.concatenate(nodes)
        first = np.repeat(roots[:-1], np.diff(roots))
        own, leaf = np.arange(len(everyone)), everyone["is_leaf"].astype(bool)
        children = [np.where(leaf, own, everyone[side] + first) for side in ("left", "right")]
        return cls(
            model.classes_.astype(np.int64),
            np.ravel(model._baseline_prediction).astype(np.float64),
            np.where(leaf, 0, everyone["feature_idx"]).astype(np.uint8),
            np.clip(np.floor(everyone["num_threshold"]), 0, 255).astype(np.uint8),
            np.stack(children, axis=1).astype(np.int32),
            everyone["value"].astype(np.float64),
            roots[:-1],
            np.array([each["depth"].max() for each in nodes], np.int32),
        )

    def probabilities(self, features: np.ndarray, out: np.ndarray) -> None:
        """Write how likely each class is, float32 (n, classes), given uint8 (n, features), all of them known."""
        nodes = self.features, self.thresholds, self.children, self.values
        room = np.empty(_ROWS, np.int64), np.empty((len(self.classes), _ROWS))
        walk(features, self.classes, self.start, *nodes, self.roots, self.depths, *room, out)


@njit(**INNER)
def _shares(sums: np.ndarray, classes: np.ndarray, out: np.ndarray) -> None:
    """Turn logarithms of how likely classes are into shares of one."""
    highest, total = sums[0], 0.0
    for k in range(len(sums)):
        highest = max(highest, sums[k])
    for k in range(len(sums)):
        total += math.exp(sums[k] - highest)
    for k in range(len(sums)):
        out[classes[k]] = math.exp(sums[k] - highest) / total


@njit(**LEAN)
def walk(
    rows: np.ndarray,
    classes: np.ndarray,
    start: np.ndarray,
    features: np.ndarray,
    thresholds: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    roots: np.ndarray,
    depths: np.ndarray,
    at: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the probabilities of rows by :class:`Trees`.

    ``at``, int64 (r,), and ``sums``, float64 (classes, r), are workspace of r rows, which go down a tree together: what one
    waits for, a node from memory, another has meanwhile.
    """
    count = len(classes)
    for i in range(0, len(rows), len(at)):
        size = min(len(at), len(rows) - i)
        for k in range(count):
            for j in range(size):
                sums[k, j] = start[k]
        for t in range(len(roots)):
            for j in range(size):
                at[j] = roots[t]
            for _ in range(depths[t]):  # no branch to guess: a leaf is its own child
                for j in range(size):
                    node = at[j]
                    at[j] = children[node, np.int64(rows[i + j, features[node]] > thresholds[node])]
            for j in range(size):
                sums[t % count, j] += values[at[j]]
        for j in range(size):
            _shares(sums[:, j], classes, out[i + j])
