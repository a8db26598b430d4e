"""The nearest neighbours of two sets of vectors in each other: one interface to an exact and to approximate searches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.mining.topk import empty_lists
from xswe.mining.vectors import Vectors, as_vectors
from xswe.parallel import available_threads

Method = Literal["exact", "clusters", "prefix", "ivf", "hnsw", "ivfpq"]
METHODS = ("exact", "clusters", "prefix", "ivf", "hnsw", "ivfpq")
_MOST_LINES = 2**31 - 1


@dataclass(frozen=True)
class SearchConfig:
    """How neighbours are sought.

    Attributes:
        method: ``exact``; ``clusters`` (exact products within overlapping clusters of both sides); ``prefix`` (a few
            principal directions first, the candidates scored exactly); or faiss' ``ivf``, ``hnsw`` and ``ivfpq``.
        memory: GiB that blocks of vectors and the lists of the current block may take.
        clusters: number of clusters (``clusters``, ``ivf``, ``ivfpq``); 0 for a number that suits the sizes.
        probes: clusters that a vector belongs to (``clusters``) or is sought in (``ivf``, ``ivfpq``); for ``hnsw`` the
            breadth of the search is 16 times this.
        prefix: principal directions of the first pass of ``prefix``.
        candidates: of each line that the first pass of ``prefix`` and ``ivfpq`` keep for exact scoring.
        device: ``cpu``, or ``cuda`` for the exact method on a graphics card (through torch).
        seed: of the sample that the clusters are made from.
        threads: null for all processors.
    """

    method: Method = "exact"
    memory: float = 2.0
    clusters: int = 0
    probes: int = 8
    prefix: int = 64
    candidates: int = 64
    device: str = "cpu"
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"neighbours.method={self.method!r}: use one of {', '.join(METHODS)}")
        if not 0 < self.memory < float("inf"):
            raise ConfigError(f"neighbours.memory={self.memory}: give GiB, as in neighbours.memory=2")
        for name in ("probes", "prefix", "candidates"):
            if getattr(self, name) < 1:
                raise ConfigError(f"neighbours.{name}={getattr(self, name)}: must be at least 1")
        if self.clusters < 0:
            raise ConfigError(f"neighbours.clusters={self.clusters}: give a number, or 0 for one that suits the sizes")
        if self.threads is not None and self.threads < 0:
            raise ConfigError(f"threads={self.threads}: give a number, or null for all processors")
        if self.device != "cpu" and self.method != "exact":
            raise ConfigError(f"neighbours.device={self.device}: only neighbours.method=exact runs on a device")

    @property
    def workers(self) -> int:
        """Number of threads."""
        return self.threads or available_threads()

    @property
    def bytes(self) -> int:
        """The memory in bytes."""
        return int(self.memory * 2**30)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest of each vector on the other side, best first; equal cosines by rising row.

    Attributes:
        forward: cosines of each source's nearest targets, float32 (sources, k); -inf where there are fewer.
        forward_ids: their rows, int32 (sources, k); -1 where there are fewer.
        backward: cosines of each target's nearest sources, float32 (targets, k).
        backward_ids: their rows, int32 (targets, k).
    """

    forward: np.ndarray
    forward_ids: np.ndarray
    backward: np.ndarray
    backward_ids: np.ndarray

    @classmethod
    def empty(cls, sources: int, targets: int, k: int) -> Neighbours:
        """Return lists with nothing in them."""
        return cls(*empty_lists(sources, k), *empty_lists(targets, k))

    @property
    def k(self) -> int:
        """Length of the lists."""
        return int(self.forward.shape[1])

    def save(self, folder: Path) -> None:
        """Write the four arrays into ``folder``."""
        for name in ("forward", "forward_ids", "backward", "backward_ids"):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def open(cls, folder: Path) -> Neighbours:
        """Read what :meth:`save` wrote."""
        names = ("forward", "forward_ids", "backward", "backward_ids")
        return cls(*(np.load(folder / f"{name}.npy", allow_pickle=False) for name in names))

    def reversed(self) -> Neighbours:
        """Return the same with the sides exchanged."""
        return Neighbours(self.backward, self.backward_ids, self.forward, self.forward_ids)


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
        checkpoint: a folder for the state of a search (``exact``, ``clusters`` and ``prefix``): the same call with the
            same vectors goes on from there, to the same result. At the end it stays, and holds the result.

    Raises:
        ConfigError: widths differ, k is below 1, or a side is beyond 2**31 lines.
        DependencyError: the method's library is not installed.
    """
    config = config or SearchConfig()
    source, target = as_vectors(source), as_vectors(target)
    if source.dim != target.dim:
        raise ConfigError(f"source vectors have {source.dim} dimensions, target vectors {target.dim}: use one model")
    if k < 1:
        raise ConfigError(f"k={k}: must be at least 1")
    if max(len(source), len(target)) > _MOST_LINES:
        raise ConfigError(f"a side has more than {_MOST_LINES:,} lines: split it and mine the parts")
    if not len(source) or not len(target):
        return Neighbours.empty(len(source), len(target), k)
    if config.method == "exact" and config.device != "cpu":
        from xswe.mining.device import search_on_device

        return search_on_device(source, target, k, config)
    if config.method == "exact":
        from xswe.mining.exact import search_exact

        return search_exact(source, target, k, config, checkpoint)
    if config.method == "clusters":
        from xswe.mining.clusters import search_clusters

        return search_clusters(source, target, k, config, checkpoint)
    if config.method == "prefix":
        from xswe.mining.prefix import search_prefix

        return search_prefix(source, target, k, config, checkpoint)
    from xswe.mining.indexes import search_indexes

    return search_indexes(source, target, k, config)
