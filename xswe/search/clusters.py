"""Nearest neighbours by overlapping clusters: exact products, but only between lines that share a cluster.

Both sides are assigned to the same centroids (spherical k-means over a sample of both), every line to its few nearest; the
scores within a cluster are computed and swept as in exact search. With C clusters and p of them per line the work is
p^2 / C times that of exact search, and both directions still come from one pass. Each side's mean is subtracted before the
assignment, so sides that are apart in the space (as languages are in many encoders) still share clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from xswe.io.parallel import over_blocks, parallel_for
from xswe.io.products import COLUMNS, ROWS, pack
from xswe.model.kernels import sum_rows
from xswe.progress import track
from xswe.search.kernels import Lists, count_members, list_members, merge, nobody, sweep
from xswe.search.lists import Neighbours, SearchConfig, empty_lists
from xswe.search.shard import Opened, Search, SearchJob, lists_of
from xswe.search.vectors import Vectors
from xswe.work.config import ExecutionConfig
from xswe.work.run import arrays_once, map_shards
from xswe.work.stage import Made

_KMEANS_ROUNDS = 6  # all but the last on half of the sample; three rounds find 0.5 % fewer pairs
_SAMPLE = 8  # sampled vectors per cluster and side


@dataclass(frozen=True, eq=False)
class Members:
    """The lines of each cluster."""

    lines: np.ndarray  # int32, the lines of all clusters one after the other, ascending within a cluster
    bounds: np.ndarray  # int64 (clusters + 1,), cluster ``c`` holds ``lines[bounds[c]:bounds[c + 1]]``

    @classmethod
    def of(cls, clusters: np.ndarray, count: int) -> Members:
        """Turn each line's clusters, int32 (n, p), -1 for none, into each cluster's lines."""
        bounds = np.zeros(count + 1, np.int64)
        count_members(clusters, bounds)
        np.cumsum(bounds, out=bounds)
        lines = np.empty(bounds[-1], np.int32)
        list_members(clusters, bounds[:-1].copy(), lines)
        return cls(lines, bounds)

    def __getitem__(self, cluster: int) -> np.ndarray:
        return self.lines[self.bounds[cluster] : self.bounds[cluster + 1]]


def cluster_count(sources: int, targets: int, config: SearchConfig) -> int:
    """Return the configured number of clusters, or else the power of two nearest to 6 sqrt(n)."""
    smaller = max(1, min(sources, targets))
    wanted = config.clusters or 2 ** round(np.log2(6 * np.sqrt(max(sources, targets))))
    return max(1, min(wanted, smaller))


def _assign(block: np.ndarray, centroids: np.ndarray, count: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and ids of each vector's ``probes`` best of ``count`` centroids, which are packed as columns."""
    scores, ids = empty_lists(len(block), probes)
    sweep(pack(block, ROWS), centroids, Lists(scores, ids, scores[:, -1].copy(), 0), nobody(count))
    return scores, ids


def _nearest(
    vectors: np.ndarray, mean: np.ndarray | np.float32, centroids: np.ndarray, count: int, probes: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Like :func:`_assign`, for vectors minus a mean, on several threads."""
    found = over_blocks(lambda a, b: _assign(vectors[a:b] - mean, centroids, count, probes), len(vectors), threads)
    return np.concatenate([scores for scores, _ in found]), np.concatenate([ids for _, ids in found])


def assign(
    vectors: Vectors,
    centroids: np.ndarray,
    mean: np.ndarray,
    probes: int,
    threads: int,
    advance: Callable[[int], object] | None = None,
) -> np.ndarray:
    """Return each vector's ``probes`` nearest centroids, nearest first, int32 (n, probes); the lower id first on a tie.

    Show a progress bar, unless ``advance`` is given.
    """
    out, packed, blocks = np.empty((len(vectors), probes), np.int32), pack(centroids, COLUMNS), vectors.blocks()
    for first, block in blocks if advance else track(blocks, "assign clusters", -(-len(vectors) // 16_384), "block"):
        out[first : first + len(block)] = _nearest(block, mean, packed, len(centroids), probes, threads)[1]
        if advance:
            advance(len(block))
    return out


def mean_vector(vectors: Vectors, sample: np.ndarray) -> np.ndarray:
    """Return the mean of the sampled rows."""
    return vectors.take(sample).mean(0, dtype=np.float64).astype(np.float32)


def train_centroids(sides: list[np.ndarray], count: int, generator: np.random.Generator, threads: int) -> np.ndarray:
    """Return centroids by spherical k-means over centred samples of both sides: float32 (count, d) unit vectors."""
    points = np.concatenate(sides)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    centroids = points[np.sort(generator.choice(len(points), count, replace=len(points) < count))].copy()
    for turn in track(range(_KMEANS_ROUNDS), "clusters", unit="round"):
        seen = points[turn % 2 :: 2].copy() if turn + 1 < _KMEANS_ROUNDS else points  # half of them suffice at first
        cosines, nearest = _nearest(seen, np.float32(0), pack(centroids, COLUMNS), count, 1, threads)
        members, sums = Members.of(nearest, count), np.empty_like(centroids)
        sum_rows(seen, members.lines, members.bounds[:-1], members.bounds[1:], sums)
        empty = np.flatnonzero(np.diff(members.bounds) == 0)  # restart at the points farthest from any centroid
        sums[empty] = seen[np.resize(np.argsort(cosines[:, 0], kind="stable"), len(empty))]
        centroids = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(centroids, np.float32)


def make_centroids(
    sides: list[Vectors], count: int, config: SearchConfig, threads: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return ``count`` centroids for all sides, and the mean to subtract from the vectors of each side."""
    generator = np.random.default_rng([config.seed, 11])
    samples = [np.sort(generator.permutation(len(side))[: _SAMPLE * count]) for side in sides]
    means = [mean_vector(side, sample) for side, sample in zip(sides, samples, strict=True)]
    points = [side.take(rows) - mean for side, rows, mean in zip(sides, samples, means, strict=True)]
    return train_centroids(points, count, generator, threads), means


def neighbouring(centroids: np.ndarray, groups: int, config: SearchConfig) -> np.ndarray:
    """Return the clusters in an order that puts neighbouring ones, which share lines, together."""
    generator = np.random.default_rng([config.seed, 12])
    found = train_centroids([centroids], min(groups, len(centroids)), generator, config.workers)
    return np.argsort(_assign(centroids, pack(found, COLUMNS), len(found), 1)[1][:, 0], kind="stable")


def near(sides: list[Vectors], config: SearchConfig) -> list[Vectors]:
    """Return sides for reading cluster by cluster: all in memory if they fit half of the configured memory."""
    return [side.at_hand() for side in sides] if sum(side.array.nbytes for side in sides) < config.bytes // 2 else sides


def join(
    left: np.ndarray, right: np.ndarray, limits: tuple[np.ndarray, np.ndarray], k: int, within: bool
) -> tuple[np.ndarray, ...]:
    """Return the k best of each row and column of ``left @ right.T`` above the limits: scores, ids, scores, ids.

    If both sides are the same vectors (``within``), only columns before the row count.
    """
    rows, columns = empty_lists(len(left), k), empty_lists(len(right), k)
    # A score equal to the k-th best so far may still enter by its lower id.
    row_limits, column_limits = (np.nextafter(each, np.float32(-np.inf)) for each in limits)
    lists = Lists(*rows, row_limits, 0), Lists(*columns, column_limits, 0)
    sweep(pack(left, ROWS), pack(right, COLUMNS), *lists, within)
    return *rows, *columns


_ROWS = 1 << 17  # rows per shard of the assignment
_GROUPS, _MIN_GROUP_PAIRS, _MAX_GROUP_PAIRS = 64, 1 << 28, 1 << 32  # groups to aim at; pairs in each


@dataclass(frozen=True)
class AssignJob(SearchJob):
    """Assign the vectors of a shard to clusters; the shards of the sources come first."""

    rows: int = _ROWS

    def shards(self) -> list[tuple[int, int]]:
        """Return the side and the first row of every shard."""
        lengths = self.search.lengths[: 1 if self.search.within else 2]
        return [(side, first) for side, length in enumerate(lengths) for first in range(0, length, self.rows)]

    def compute(self, opened: Opened, shard: int) -> Made:
        """Return the clusters of each line, int32 (n, probes)."""
        side, first = self.shards()[shard]
        part = Vectors(opened.sides[side].array[first : first + self.rows])
        centroids, mean = opened.made["centroids"], opened.made[f"mean{side}"]
        probes = min(self.search.config.probes, len(centroids))
        found = assign(part, centroids, mean, probes, opened.threads, opened.advance)
        return {"clusters": found}, {"lines": len(part)}


def _distinct(members: Members, clusters: list[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lines in the given clusters, ascending, and each one's place among them, in an int64 (count,) array."""
    lines = np.sort(np.concatenate([members[cluster] for cluster in clusters]))
    lines = lines[np.diff(lines, prepend=-1) > 0]
    places = np.empty(count, np.int64)  # only the places of these lines are written, and only those pages take memory
    places[lines] = np.arange(len(lines))
    return lines, places


@dataclass(frozen=True)
class ClustersJob(SearchJob):
    """Search all clusters of a group."""

    def open(self) -> Opened:
        """Open the vectors, the lines of each cluster, and the clusters of each group."""
        opened = super().open()
        return replace(opened, sides=near(opened.sides, self.search.config))

    def compute(self, opened: Opened, shard: int) -> Made:
        """Return the lists of the lines in the group's clusters."""
        sides, made, k, within = opened.sides, opened.made, self.search.k, self.search.within
        clusters = np.split(made["order"], made["cuts"])[shard].tolist()
        members = [Members(made[f"lines{n}"], made[f"bounds{n}"]) for n in range(len(sides))]
        distinct = [_distinct(own, clusters, len(side)) for own, side in zip(members, sides, strict=True)]
        (sources, place), (targets, other) = distinct[0], distinct[-1]
        found, lock = opened.lists((sources, targets), k), Lock()

        def work(start: int, stop: int) -> None:
            """Join some clusters, a block of either side each, and merge what is found into the lists."""
            for cluster in clusters[start:stop]:
                rows, columns = (np.asarray(members[side][cluster], np.int64) for side in (0, -1))
                if not len(rows) or not len(columns):
                    continue
                at = place[rows], other[columns]
                limits = found.forward[at[0], -1], found.backward[at[1], -1]
                blocks = sides[0].take(rows), sides[-1].take(columns)
                row_scores, row_ids, column_scores, column_ids = join(*blocks, limits, k, within)
                with lock:
                    merge(found.forward, found.forward_ids, at[0], row_scores, row_ids, columns)
                    merge(found.backward, found.backward_ids, at[1], column_scores, column_ids, rows)
                    opened.advance(len(rows) * len(columns))

        parallel_for(work, len(clusters), 1, opened.threads)
        sizes = [np.diff(own.bounds)[clusters] for own in members]
        return lists_of((sources, targets), found, int((sizes[0] * sizes[-1]).sum()))


def search_clusters(
    search: Search, sides: list[Vectors], known: Neighbours, execution: ExecutionConfig
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the lists of each group of clusters; ``known`` holds the lists so far.

    The result depends on neither the number of threads nor interruptions. Memory in addition to the result is the
    assignment, 8 x ``probes`` bytes per line, and the vectors of one cluster per thread, or all vectors, see :func:`near`.
    """
    sizes = _GROUPS, _MIN_GROUP_PAIRS, _MAX_GROUP_PAIRS
    identity = search.identity(*sizes)
    made = _grouped(search, sides, identity, execution)
    pairs = int((np.diff(made["bounds0"]) * np.diff(made[f"bounds{len(sides) - 1}"])).sum())
    job = ClustersJob(search, search.place("members", identity))
    stage = search.stage("neighbours", len(made["cuts"]) + 1, job, *sizes)
    opened = Opened(near(sides, search.config), made, search.config.workers, known)
    yield from map_shards(stage, execution, 1, opened, ("pair", pairs), state=vars(known))


def _grouped(search: Search, sides: list[Vectors], name: str, execution: ExecutionConfig) -> Mapping[str, np.ndarray]:
    """Assign all lines; return the lines of each cluster, and the clusters of each group."""
    config, threads, identity = search.config, search.config.workers, search.identity()
    count, place = cluster_count(*search.lengths, config), search.place("centroids", identity)

    def centroids() -> dict[str, np.ndarray]:
        found, means = make_centroids(sides, count, config, threads)
        return {"centroids": found, **{f"mean{n}": mean for n, mean in enumerate(means)}}

    made = arrays_once(place, identity, centroids, execution)
    job, lines = AssignJob(search, place, _ROWS), sum(map(len, sides))
    clusters, first = np.empty((lines, min(config.probes, count)), np.int32), 0
    stage = search.stage("assign", len(job.shards()), job, _ROWS)
    for arrays in map_shards(stage, execution, 1, Opened(sides, made, threads), ("line", lines)):
        part = arrays["clusters"]
        clusters[first : first + len(part)] = part
        first += len(part)
    own = np.split(clusters, [len(sides[0])])[: len(sides)]
    return arrays_once(search.place("members", name), name, lambda: _members(own, made["centroids"], config), execution)


def group_count(pairs: int) -> int:
    """Return the number of groups to divide clusters with ``pairs`` pairs into."""
    return max(1, round(pairs / min(_MAX_GROUP_PAIRS, max(pairs // _GROUPS, _MIN_GROUP_PAIRS))))


def _members(clusters: list[np.ndarray], centroids: np.ndarray, config: SearchConfig) -> dict[str, np.ndarray]:
    """Invert the clusters of lines into the lines of clusters, and group the clusters."""
    members = [Members.of(own, len(centroids)) for own in clusters]
    pairs = np.diff(members[0].bounds) * np.diff(members[-1].bounds)
    groups = group_count(int(pairs.sum()))
    order = neighbouring(centroids, _GROUPS, config) if groups > 1 else np.arange(len(pairs))
    ends = np.cumsum(pairs[order])
    cuts = np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], groups + 1)[1:-1]) + 1)
    found = {"order": order, "cuts": cuts[cuts < len(pairs)]}
    for n, own in enumerate(members):
        found |= {f"lines{n}": own.lines, f"bounds{n}": own.bounds}
    return found
