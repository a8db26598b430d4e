"""A shard of a search for neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from xswe.io.files import fingerprint
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.vectors import Vectors
from xswe.version import __version__
from xswe.work.run import read_arrays
from xswe.work.stage import Advancing, Job, Made, Stage


@dataclass(frozen=True)
class Search:
    """The search that a shard is part of."""

    paths: tuple[Path, ...]  # the ``.npy`` files of both sides' vectors, or of one; empty for vectors in memory
    lengths: tuple[int, int]  # of both sides
    within: bool  # whether both sides are the same, so that only targets before a source count
    k: int  # length of the lists
    config: SearchConfig  # method and limits
    folder: Path  # for results and unfinished work

    def identity(self, *sizes: int) -> str:
        """Return a digest of everything, except the vectors, that decides the results of shards of these sizes."""
        limits = replace(self.config, threads=None, memory=1.0)  # neither changes the result
        return fingerprint(__version__, self.lengths, self.within, self.k, asdict(limits), sizes)

    def place(self, name: str, identity: str) -> Path:
        """Return the folder of a step."""
        return self.folder / f"{name}-{identity}"

    def stage(self, name: str, count: int, job: Job, *sizes: int) -> Stage:
        """Return a step divided into shards."""
        identity = self.identity(count, *sizes)
        return Stage(self.place(name, identity), name, count, ".safetensors", job, identity)


@dataclass
class Opened(Advancing):
    """The state of a process that works on shards."""

    sides: list[Vectors]  # both sides, or one
    made: Mapping[str, np.ndarray] = field(default_factory=dict)  # results of an earlier step for all shards
    threads: int = 1  # threads that share a shard
    known: Neighbours | None = None  # the lists of all lines so far, which new neighbours must beat

    def lists(self, lines: tuple[np.ndarray, np.ndarray], k: int) -> Neighbours:
        """Return the lists to fill for some sources and targets."""
        if self.known is None:
            return Neighbours.empty(len(lines[0]), len(lines[1]), k)
        (rows, columns), known = lines, self.known
        return Neighbours(
            known.forward[rows], known.forward_ids[rows], known.backward[columns], known.backward_ids[columns]
        )


@dataclass(frozen=True)
class SearchJob(Job):
    """Base class of jobs on the shards of a search."""

    search: Search
    made: Path | None = None  # the folder with the results of an earlier step

    @property
    def on_card(self) -> bool:  # type: ignore[override]
        """Whether a worker needs a GPU."""
        return self.search.config.device != "cpu"

    @property
    def heavy(self) -> bool:  # type: ignore[override]
        """Whether workers are kept between shards, as for a GPU."""
        return self.on_card

    def open(self) -> Opened:
        """Open the vectors, and the results of earlier steps."""
        return Opened([Vectors.open(path) for path in self.search.paths], read_arrays(self.made) if self.made else {})


def lists_of(lines: tuple[np.ndarray, np.ndarray], found: Neighbours, pairs: int) -> Made:
    """Return the results of a shard: the lists of its sources and targets, and the number of pairs it scored."""
    places = {"forward_lines": lines[0].astype(np.int64), "backward_lines": lines[1].astype(np.int64)}
    return {**vars(found), **places}, {"pairs": pairs}
