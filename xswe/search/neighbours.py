"""The nearest neighbours of two sets of vectors in each other: exactly, or in clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xswe.errors import ConfigError
from xswe.search.clusters import search_clusters
from xswe.search.exact import search_exact, search_on_device
from xswe.search.types import Neighbours, SearchConfig
from xswe.search.vectors import Vectors, as_vectors

_MOST_LINES = 2**31 - 1


def find_neighbours(
    source: Vectors | np.ndarray | str | Path,
    target: Vectors | np.ndarray | str | Path,
    k: int = 4,
    config: SearchConfig | None = None,
    checkpoint: Path | None = None,
) -> Neighbours:
    """Find each vector's k nearest on the other side, both ways.

    Args:
        source: unit vectors (n, d): an array, a ``.npy`` path, or :class:`Vectors`.
        target: unit vectors (m, d).
        k: length of the lists.
        config: method and limits.
        checkpoint: a folder for the state of a search: the same call with the
            same vectors goes on from there, to the same result. At the end it stays, and holds the result.

    Raises:
        ConfigError: widths differ, k is below 1, or a side is beyond 2**31 lines.
        DependencyError: the device's library is not installed.
    """
    source, target = as_vectors(source), as_vectors(target)
    return _search(source, target, k, config or SearchConfig(), checkpoint, False)


def neighbours_within(
    vectors: Vectors | np.ndarray | str | Path,
    k: int = 4,
    config: SearchConfig | None = None,
    checkpoint: Path | None = None,
) -> Neighbours:
    """Find each vector's k nearest before it and after it; no vector is its own neighbour, and each pair is scored once.

    Args:
        vectors: unit vectors (n, d), as for :func:`find_neighbours`, as are the others.
        k: length of the lists.
        config: method and limits.
        checkpoint: a folder for the state of the search.

    Returns:
        ``forward``: the nearest among the vectors before each one; ``backward``: among those after it.

    Raises:
        ConfigError: k is below 1, or there are more than 2**31 vectors.
        DependencyError: the device's library is not installed.
    """
    vectors = as_vectors(vectors)
    return _search(vectors, vectors, k, config or SearchConfig(), checkpoint, True)


def _search(
    source: Vectors, target: Vectors, k: int, config: SearchConfig, checkpoint: Path | None, within: bool
) -> Neighbours:
    if source.dim != target.dim:
        raise ConfigError(f"source vectors have {source.dim} dimensions, target vectors {target.dim}: use one model")
    if k < 1:
        raise ConfigError(f"k={k}: must be at least 1")
    if max(len(source), len(target)) > _MOST_LINES:
        raise ConfigError(f"a side has more than {_MOST_LINES:,} lines: split it and mine the parts")
    if not len(source) or not len(target):
        return Neighbours.empty(len(source), len(target), k)
    if config.method == "exact" and config.device != "cpu":
        return search_on_device(source, target, k, config, within)
    if config.method == "exact":
        return search_exact(source, target, k, config, checkpoint, within)
    return search_clusters(source, target, k, config, checkpoint, within)
