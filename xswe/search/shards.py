"""The nearest neighbours of vectors on a shared disk, found by many processes, to the bytes that one would find.

By clusters: centroids once; the lines of each shard to their clusters; then groups of clusters, each swept as in one
process. Exactly: tiles of sources and targets. Either way a shard leaves lists of the lines that it has seen, and a last
stage merges all lists of a range of lines: the best of the whole, equal cosines by rising line. Nothing is scored against
its neighbourhood before that, for the neighbourhood in a shard is not the whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json, save_tensors
from xswe.io.settings import for_all
from xswe.search.exact import search_exact, search_on_device
from xswe.search.kernels import empty_lists, merge
from xswe.search.neighbours import Members, assign, cluster_count, join, make_centroids, near, neighbouring
from xswe.search.types import Method, Neighbours, SearchConfig, Vectors
from xswe.work.config import ExecutionConfig
from xswe.work.once import once
from xswe.work.ray import one_cluster
from xswe.work.run import run_shards
from xswe.work.stage import Job, Stage

_BLOCK = 16_384  # rows that are assigned together, wherever a shard begins
_GROUPS, _FEW_PAIRS = 64, 1 << 28  # of clusters; pairs of a few seconds, too few to be shared out
_NOTHING = np.zeros(0, np.int64)
_NAMES = (("forward", "sources"), ("backward", "targets"))


@dataclass(frozen=True)
class Sizes:
    """How large the shards of a search are."""

    rows: int = 8 * _BLOCK  # that are assigned to clusters, a multiple of 16,384
    # that a group of clusters holds at most; fewer where that would leave less than 64 groups to share out
    pairs: int = 1 << 32
    # rows of a tile of the exact search, a multiple of 1,024; of many rows there are at most 64 x 64 tiles
    edge: int = 1 << 17
    lines: int = 1 << 18  # whose lists are merged

    def group(self, pairs: int) -> int:
        """Return the pairs of a group of clusters, given those of all clusters."""
        return min(self.pairs, max(pairs // _GROUPS, _FEW_PAIRS))


@dataclass(frozen=True)
class _Search:
    """What the shards of all stages know."""

    paths: tuple[Path, ...]  # the ``.npy`` files of both sides' vectors, or of one
    k: int  # length of the lists
    config: SearchConfig  # method and limits
    folder: Path  # of the whole search
    sizes: Sizes  # of the shards

    @property
    def within(self) -> bool:
        return len(self.paths) == 1

    def sides(self) -> list[Vectors]:
        return [Vectors.open(path) for path in self.paths]

    def lengths(self) -> list[int]:
        return [len(side) for side in self.sides()]

    @property
    def identity(self) -> str:
        limits = replace(self.config, threads=None, memory=1.0)
        return fingerprint([[*map(str, self.paths)], self.lengths(), self.k, asdict(limits), asdict(self.sizes)])

    @property
    def edge(self) -> int:
        return max(self.sizes.edge, -(-max(self.lengths()) // 64 // 1024) * 1024)


@dataclass(frozen=True)
class _Job(Job):
    """Base of the jobs: a shard is one file of arrays."""

    search: _Search

    @property
    def heavy(self) -> bool:  # type: ignore[override]
        """Whether a worker needs a graphics card, which stays its own."""
        return self.search.config.device != "cpu"


@dataclass(frozen=True)
class AssignJob(_Job):
    """Assign the vectors of a shard to their clusters; the shards of the sources come first."""

    def open(self) -> tuple[list[Vectors], np.ndarray, list[np.ndarray]]:
        """Open the vectors, and load the centroids."""
        folder, sides = self.search.folder / "centroids", self.search.sides()
        return sides, np.load(folder / "centroids.npy"), [np.load(folder / f"mean{n}.npy") for n in range(len(sides))]

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write int32 (n, probes)."""
        sides, centroids, means = opened
        number = 0
        while shard >= (shards := -(-len(sides[number]) // self.search.sizes.rows)):
            number, shard = number + 1, shard - shards
        first = shard * self.search.sizes.rows
        part = Vectors(sides[number].array[first : first + self.search.sizes.rows])
        found = assign(part, centroids, means[number], min(self.search.config.probes, len(centroids)), 1)
        save_tensors(output, {"clusters": found}, crowded=True)
        return {"lines": len(part)}


class _Lists:
    """The lists of the lines that a shard has seen, rising."""

    def __init__(self, lines: np.ndarray, k: int) -> None:
        self.lines = lines
        self.scores, self.ids = empty_lists(len(lines), k)

    def arrays(self, name: str, lines: int) -> dict[str, np.ndarray]:
        last = int(self.lines[-1]) if len(self.lines) else -1
        starts = np.searchsorted(self.lines, np.arange(0, last + lines + 1, lines))
        own = {"lines": self.lines.astype(np.int32), "scores": self.scores, "ids": self.ids, "starts": starts}
        return {f"{name}_{part}": value for part, value in own.items()}


@dataclass(frozen=True)
class ClustersJob(_Job):
    """Search the clusters of a group."""

    def open(self) -> tuple[list[Vectors], list[Members], list[np.ndarray]]:
        """Open the vectors, the lines of each cluster, and the clusters of each group."""
        folder, sides = self.search.folder / "members", near(self.search.sides(), self.search.config)
        members = [
            Members(np.load(folder / f"lines{n}.npy", mmap_mode="r"), np.load(folder / f"bounds{n}.npy"))
            for n in range(len(sides))
        ]
        return sides, members, np.split(np.load(folder / "order.npy"), np.load(folder / "cuts.npy"))

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the lists of the lines in these clusters."""
        sides, members, groups = opened
        clusters, k = groups[shard].tolist(), self.search.k
        there = [np.unique(np.concatenate([own[cluster] for cluster in clusters])) for own in members]
        forward, backward = _Lists(there[0], k), _Lists(there[-1], k)
        pairs = 0
        for cluster in clusters:
            rows, columns = np.asarray(members[0][cluster]), np.asarray(members[-1][cluster])
            if not len(rows) or not len(columns):
                continue
            at = np.searchsorted(forward.lines, rows), np.searchsorted(backward.lines, columns)
            limits = forward.scores[at[0], -1], backward.scores[at[1], -1]
            blocks = sides[0].take(rows), sides[-1].take(columns)
            row_scores, row_ids, column_scores, column_ids = join(*blocks, limits, k, self.search.within)
            merge(forward.scores, forward.ids, at[0], row_scores, row_ids, columns)
            merge(backward.scores, backward.ids, at[1], column_scores, column_ids, rows)
            pairs += len(rows) * len(columns)
        lines = self.search.sizes.lines
        save_tensors(output, {**forward.arrays("forward", lines), **backward.arrays("backward", lines)}, crowded=True)
        return {"pairs": pairs}


@dataclass(frozen=True)
class TileJob(_Job):
    """Search a tile exactly: so many sources against so many targets; within one side, those not after the sources."""

    def open(self) -> list[Vectors]:
        """Open the vectors."""
        return self.search.sides()

    def run(self, opened: list[Vectors], shard: int, output: Path) -> dict[str, Any]:
        """Write the lists of the tile's lines."""
        search, edge = self.search, self.search.edge
        row, column = (edge * n for n in divmod(shard, -(-len(opened[-1]) // edge)))
        left, right = opened[0].array[row : row + edge], opened[-1].array[column : column + edge]
        here = [np.arange(first, first + len(part)) for first, part in ((row, left), (column, right))]
        forward, backward = _Lists(here[0], search.k), _Lists(here[1], search.k)
        if not (search.within and column > row):
            find = search_exact if search.config.device == "cpu" else search_on_device
            config = replace(search.config, threads=1)
            found = find(Vectors(left), Vectors(right), search.k, config, within=search.within and row == column)
            for lists, scores, ids, first in (
                (forward, found.forward, found.forward_ids, column),
                (backward, found.backward, found.backward_ids, row),
            ):
                lists.scores, lists.ids = scores, np.where(ids >= 0, ids + first, ids).astype(np.int32)
        lines = search.sizes.lines
        save_tensors(output, {**forward.arrays("forward", lines), **backward.arrays("backward", lines)}, crowded=True)
        return {"pairs": len(left) * len(right)}


@dataclass(frozen=True)
class MergeJob(_Job):
    """Merge what all shards of the stage in ``found`` found for a range of lines; the ranges of the sources come first."""

    found: Path

    def open(self) -> list[Path]:
        """Name the shards."""
        told = read_json(self.found / "manifest.json")
        return [self.found / f"{shard:06d}{told['suffix']}" for shard in range(told["shards"])]

    def run(self, opened: list[Path], shard: int, output: Path) -> dict[str, Any]:
        """Write the lists of the range."""
        from safetensors import safe_open

        lengths = self.search.lengths()
        sizes, number = [lengths[0], lengths[-1]], 0
        while shard >= (shards := -(-sizes[number] // self.search.sizes.lines)):
            number, shard = number + 1, shard - shards
        name, first = _NAMES[number][0], shard * self.search.sizes.lines
        scores, ids = empty_lists(min(self.search.sizes.lines, sizes[number] - first), self.search.k)
        for path in opened:
            with safe_open(path, "np") as arrays:
                starts = arrays.get_tensor(f"{name}_starts")
                if shard + 1 >= len(starts) or starts[shard] == starts[shard + 1]:
                    continue
                part = slice(int(starts[shard]), int(starts[shard + 1]))
                lines, more, names = (arrays.get_slice(f"{name}_{each}")[part] for each in ("lines", "scores", "ids"))
                merge(scores, ids, lines.astype(np.int64) - first, more, names, _NOTHING)
        save_tensors(output, {"scores": scores, "ids": ids}, crowded=True)
        return {"lines": len(scores)}


def search_shards(
    paths: Sequence[Path],
    k: int,
    config: SearchConfig,
    folder: Path,
    execution: ExecutionConfig,
    sizes: Sizes | None = None,
) -> Neighbours:
    """Find each vector's k nearest on the other side, both ways, by whoever takes part.

    Args:
        paths: the ``.npy`` files of both sides, which all can read; of one side for neighbours within it.
        k: length of the lists.
        config: method and limits; ``device`` is that of the workers.
        folder: for the shards, which all can write; what a killed run left there is used. The vectors' content must be
            part of its name.
        execution: who does it.
        sizes: of the shards.

    Returns:
        The bytes of :func:`xswe.search.neighbours.find_neighbours` or ``neighbours_within``.
    """
    search = _Search(tuple(path.absolute() for path in paths), k, config, folder.absolute(), sizes or Sizes())
    if search.sizes.rows % _BLOCK or search.sizes.edge % 1024:
        raise ConfigError(f"{search.sizes}: rows must be a multiple of {_BLOCK}, edge of 1024")
    lengths = search.lengths()
    if not all(lengths):
        return Neighbours.empty(lengths[0], lengths[-1], k)
    with one_cluster():  # for all stages
        return _searched(search, lengths, execution)


def _searched(search: _Search, lengths: list[int], execution: ExecutionConfig) -> Neighbours:
    found = _SEARCHES[search.config.method](search, execution)
    ranges = [-(-length // search.sizes.lines) for length in (lengths[0], lengths[-1])]
    for shard in range(found.count):  # each is read in parts, by many
        found.sound(shard)
    stage = _begun(search, "merge", sum(ranges), MergeJob(search, found.folder))
    run_shards(stage, execution, search.config.workers)
    lists = Neighbours.empty(lengths[0], lengths[-1], search.k)
    _fill(stage, range(ranges[0]), lists.forward, lists.forward_ids)
    _fill(stage, range(ranges[0], sum(ranges)), lists.backward, lists.backward_ids)
    return lists


def _begun(search: _Search, name: str, count: int, job: Any) -> Stage:
    stage = Stage(search.folder / name, name, count, ".safetensors", job, fingerprint(search.identity, name, count))
    stage.begin()
    return stage


def _fill(stage: Stage, shards: range, scores: np.ndarray, ids: np.ndarray) -> None:
    """Read merged lists one after the other."""
    from safetensors.numpy import load_file

    place = 0
    for shard in shards:
        read = load_file(stage.sound(shard))
        part = slice(place, place + len(read["scores"]))
        scores[part], ids[part] = read["scores"], read["ids"]
        place = part.stop


def _tiles(search: _Search, execution: ExecutionConfig) -> Stage:
    """Search all tiles; returns the stage whose shards hold what they found."""
    lengths = search.lengths()
    count = -(-lengths[0] // search.edge) * -(-lengths[-1] // search.edge)
    stage = _begun(search, "neighbours", count, TileJob(search))
    run_shards(stage, execution, search.config.workers)
    return stage


def _clusters(search: _Search, execution: ExecutionConfig) -> Stage:
    """Search all groups of clusters; returns the stage whose shards hold what they found."""
    lengths, threads = search.lengths(), search.config.workers
    count = cluster_count(lengths[0], lengths[-1], search.config)

    def centroids(place: Path) -> None:
        found, means = make_centroids(search.sides(), count, search.config, threads)
        np.save(place / "centroids.npy", found)
        for n, mean in enumerate(means):
            np.save(place / f"mean{n}.npy", mean)

    once(search.folder / "centroids", search.identity, centroids)
    shards = [-(-length // search.sizes.rows) for length in lengths]
    assigned = _begun(search, "assign", sum(shards), AssignJob(search))
    run_shards(assigned, execution, threads)

    def members(place: Path) -> None:
        """Turn the clusters of lines into the lines of clusters, and group these."""
        from safetensors.numpy import load_file

        pairs, first = [], 0
        for n, own in enumerate(shards):
            parts = [load_file(assigned.sound(shard))["clusters"] for shard in range(first, first + own)]
            found, first = Members.of(np.concatenate(parts), count), first + own
            np.save(place / f"lines{n}.npy", found.lines)
            np.save(place / f"bounds{n}.npy", found.bounds)
            pairs.append(np.diff(found.bounds))
        order = neighbouring(np.load(search.folder / "centroids" / "centroids.npy"), _GROUPS, search.config, threads)
        ends = np.cumsum((pairs[0] * pairs[-1])[order])
        size = search.sizes.group(int(ends[-1]))
        cuts = np.unique(np.searchsorted(ends, np.arange(size, int(ends[-1]), size)) + 1)
        np.save(place / "order.npy", order)
        np.save(place / "cuts.npy", cuts[cuts < count])

    once(search.folder / "members", search.identity, members)
    groups = len(np.load(search.folder / "members" / "cuts.npy")) + 1
    stage = _begun(search, "neighbours", groups, ClustersJob(search))
    run_shards(stage, execution, threads)
    return stage


_SEARCHES = for_all(Method, {"exact": _tiles, "clusters": _clusters})
