"""Lists of each side's nearest neighbours on the other, and the settings of their search."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.io.parallel import available_threads
from xswe.io.settings import check_choice, check_least, refuse_unused

logger = logging.getLogger(__name__)


Method = Literal["exact", "clusters"]

NONE = -1  # the id of an empty place, with a score of -inf


def empty_lists(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, float32 (rows, k) all -inf, and ids, int32 (rows, k) all ``NONE``."""
    return np.full((rows, k), -np.inf, np.float32), np.full((rows, k), NONE, np.int32)


@dataclass(frozen=True)
class SearchConfig:
    """Settings of a search for neighbours.

    Attributes:
        method: ``exact``, or ``clusters`` (exact products within overlapping clusters of both sides).
        memory: GiB for blocks of vectors and the lists of the current block.
        clusters: number of clusters; 0 for a number that suits the sizes.
        probes: number of clusters that each vector belongs to.
        device: ``cpu``, or ``cuda`` for the exact method on a GPU (through torch).
        seed: seed of the sample from which clusters are made.
        threads: number of threads; None for all processors.
    """

    method: Method = "exact"
    memory: float = 2.0
    clusters: int = 0
    probes: int = 8
    device: str = "cpu"
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        if not 0 < self.memory < float("inf"):
            raise ConfigError(f"memory={self.memory}: give GiB, as in memory=2")
        if self.probes < 1:
            raise ConfigError(f"probes={self.probes}: must be at least 1")
        check_least(self, "neighbours", seed=0)
        if self.clusters < 0:
            raise ConfigError(f"clusters={self.clusters}: give a number, or 0 for one that suits the sizes")
        available_threads(self.threads)  # refuses an impossible number
        if self.device != "cpu" and self.method != "exact":
            raise ConfigError(f"device={self.device}: only method=exact runs on a device")
        unused = () if self.method == "clusters" else ("clusters", "probes", "seed")
        refuse_unused(self, {"without method=clusters": unused}, "neighbours")

    @property
    def workers(self) -> int:
        """Number of threads."""
        return available_threads(self.threads)

    @property
    def bytes(self) -> int:
        """The memory in bytes."""
        return int(self.memory * 2**30)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest of each vector on the other side, best first; equal cosines by ascending row."""

    forward: np.ndarray  # cosines of each source's nearest targets, float32 (sources, k); -inf if there are fewer
    forward_ids: np.ndarray  # their rows, int32 (sources, k); -1 if there are fewer
    backward: np.ndarray  # cosines of each target's nearest sources, float32 (targets, k)
    backward_ids: np.ndarray  # their rows, int32 (targets, k)

    @classmethod
    def empty(cls, sources: int, targets: int, k: int) -> Neighbours:
        """Return empty lists."""
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
        """Return the lists with the sides exchanged."""
        return Neighbours(self.backward, self.backward_ids, self.forward, self.forward_ids)
