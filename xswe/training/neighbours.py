"""Which pairs are near each other, for batches of hard negatives: a random projection tree over a corpus."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xswe.language.bags import Bags
from xswe.training.pairs import ParallelBags

_BLOCK = 8192
_WIDTH = 48  # of the random projection that the tree looks at


def grouped(
    vectors: Callable[[Bags], tuple[np.ndarray, np.ndarray]], bitext: ParallelBags, size: int, seed: int
) -> np.ndarray:
    """Order the pairs of a bitext so that each run of ``size`` pairs is a neighbourhood.

    Args:
        vectors: the trainer's function from bags to unit vectors (and norms).
        bitext: the pairs.
        size: of a neighbourhood.
        seed: decides the projection and the tree.

    Returns:
        int64 (n,), a permutation of the rows.
    """
    points = np.empty((len(bitext), _WIDTH), np.float32)
    projection: np.ndarray | None = None
    for start in range(0, len(bitext), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(bitext)))
        unit, _ = vectors(bitext.batch(rows))
        if projection is None:
            shape = unit.shape[1], _WIDTH
            projection = np.random.default_rng([seed, 23]).normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        both = unit[: len(rows)] + unit[len(rows) : 2 * len(rows)] if len(unit) > len(rows) else unit
        points[rows] = both @ projection
    return tree_order(points, size, seed)


def tree_order(points: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Order points so that each run of ``size`` of them is a neighbourhood.

    The points are halved again and again, each time by the plane between two of them drawn at random (as Annoy does) and
    at a multiple of ``size``: n log n steps, where all pairs of neighbours would take n squared.

    Args:
        points: float32 (n, d).
        size: points a neighbourhood.
        seed: decides the planes.

    Returns:
        int64 (n,), a permutation.
    """
    generator = np.random.default_rng([seed, 29])
    out = np.arange(len(points), dtype=np.int64)
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= size:
            continue
        rows = out[start:stop]
        first, second = rows[generator.integers(0, len(rows), 2)]
        direction = points[first] - points[second]
        if not direction.any():
            direction = np.asarray(generator.normal(size=points.shape[1]), np.float32)
        middle = max(1, (stop - start) // size // 2) * size
        out[start:stop] = rows[np.argpartition(points[rows] @ direction, middle - 1)]
        parts += [(start, start + middle), (start + middle, stop)]
    return out
