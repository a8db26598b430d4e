"""Boosted trees over 8-bit features: fitted by scikit-learn, evaluated by compiled code in a tenth of its time.

Trees are not walked node by node. Each value of each feature has a row of bit masks, one per tree, of the leaves that it
leaves possible; the first leaf that all features leave possible is the one that a walk would reach (QuickScorer: Lucchese
and others, 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.io.compiler import INNER, LEAN, trailing_zeros

_MAX_LEAVES = 16  # of a tree, at most; the bits of a mask


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose values, summed by class, are the logits of the classes.

    Leaves are numbered from the left, the branch taken if a node's feature is at most its threshold.
    """

    classes: np.ndarray  # int64 (classes,)
    start: np.ndarray  # float64 (classes,), initial values of the sums
    rows: np.ndarray  # int32 (features, 256), row of masks for each value of a feature; 0: all leaves are possible
    masks: np.ndarray  # uint16 (rows, trees), bit k: leaf k is possible
    values: np.ndarray  # float64 (trees, leaves); tree i is of class i modulo the number of classes

    @classmethod
    def fit(cls, features: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Trees:
        """Fit trees to integers from 0 to 255, float32 (n, features), NaN where unknown, with three or more classes."""
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
        with threadpool_limits(1, user_api="openmp"):  # the order of summation must not depend on the processors
            return cls.of(model.fit(features, classes, sample_weight=weights))

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Read the trees of a fitted classifier, which has no public attribute for them.

        Raises:
            ConfigError: this version of scikit-learn stores its trees differently.
        """
        try:
            nodes = [tree.nodes for trees in model._predictors for tree in trees]
            start, features = np.ravel(model._baseline_prediction).astype(np.float64), int(model.n_features_in_)
            splits = [_splits(each) for each in nodes]
        except (AttributeError, ValueError) as error:
            import sklearn

            hint = "use method=cosine, or another version of scikit-learn"
            raise ConfigError(f"the trees of scikit-learn {sklearn.__version__} cannot be read ({error}); {hint}") from None
        edges: list[set[int]] = [set() for _ in range(features)]  # for each feature, the values at which masks change
        for found, _ in splits:
            for feature, threshold, _ in found:
                edges[feature].add(threshold + 1)
        rows, first, count = np.zeros((features, 256), np.int32), [], 1
        for own, changes in zip(rows, edges, strict=True):
            first.append(count)
            if changes:
                own[:] = count + np.searchsorted(sorted(changes), np.arange(256), "right")
                count += 1 + len(changes)
        masks = np.full((count, len(nodes)), 0xFFFF, np.uint16)
        leaves = np.zeros((len(nodes), _MAX_LEAVES))
        for tree, (found, values) in enumerate(splits):
            leaves[tree, : len(values)] = values
            for feature, threshold, left in found:
                masks[rows[feature, threshold] + 1 : first[feature] + 1 + len(edges[feature]), tree] &= ~np.uint16(left)
        return cls(model.classes_.astype(np.int64), start, rows, masks, leaves)

    def probabilities(self, features: np.ndarray, out: np.ndarray) -> None:
        """Write the probabilities of the classes, float32 (n, classes), given uint8 (n, features), all of them known."""
        room = np.empty(self.masks.shape[1], np.uint16), np.empty(len(self.classes))
        look_up(features, self.classes, self.start, self.rows, self.masks, self.values, *room, out)


def _splits(nodes: np.ndarray) -> tuple[list[tuple[int, int, int]], list[float]]:
    """Return each node's feature, threshold and mask of the leaves to its left; and the values of the leaves."""
    found, values = [], []

    def walked(place: int) -> int:
        """Return the mask of the leaves below a node."""
        node = nodes[place]
        if node["is_leaf"]:
            values.append(float(node["value"]))
            return 1 << (len(values) - 1)
        left, right = walked(int(node["left"])), walked(int(node["right"]))
        threshold = math.floor(min(255.0, node["num_threshold"]))
        if threshold < 255:  # else all go left
            found.append((int(node["feature_idx"]), threshold, left))
        return left | right

    walked(0)
    if len(values) > _MAX_LEAVES:
        raise ValueError(f"a tree of {len(values)} leaves")
    return found, values


@njit(**INNER)
def _softmax(sums: np.ndarray, classes: np.ndarray, out: np.ndarray) -> None:
    """Write the softmax of the logits to ``out``; overwrite ``sums``."""
    highest, total = sums[0], 0.0
    for k in range(len(sums)):
        highest = max(highest, sums[k])
    for k in range(len(sums)):
        sums[k] = math.exp(sums[k] - highest)
        total += sums[k]
    for k in range(len(sums)):
        out[classes[k]] = sums[k] / total


@njit(**LEAN)
def look_up(
    rows: np.ndarray,
    classes: np.ndarray,
    start: np.ndarray,
    places: np.ndarray,
    masks: np.ndarray,
    values: np.ndarray,
    possible: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the class probabilities of rows, given the arrays of :class:`Trees`.

    ``possible``, uint16 (trees,), and ``sums``, float64 (classes,), are workspace.
    """
    count, trees = len(classes), len(possible)
    for i in range(len(rows)):
        for t in range(trees):
            possible[t] = np.uint16(0xFFFF)
        for feature in range(len(places)):
            place = places[feature, rows[i, feature]]
            if place:
                for t in range(trees):
                    possible[t] &= masks[place, t]
        for k in range(count):
            sums[k] = start[k]
        for t in range(0, trees, count):
            for k in range(count):
                sums[k] += values[t + k, trailing_zeros(np.uint64(possible[t + k]))]
        _softmax(sums, classes, out[i])
