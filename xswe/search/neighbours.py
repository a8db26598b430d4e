"""The nearest neighbours of two sets of vectors in each other: exactly, or by overlapping clusters.

Within clusters products are exact, but only of lines that share one. Both sides are assigned to the same centroids
(spherical k-means over a sample of both), every line to its few nearest; the block of scores of a cluster is formed and
swept as in the exact search. With C clusters and p of them a line the work is p^2 / C of the exact one, and both directions
still come from one pass. Each side's mean is taken off before the assignment, so that sides which lie apart in the space
(as languages do in many encoders) still meet.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.errors import ConfigError
from xswe.io.parallel import over_blocks
from xswe.io.products import COLUMNS, ROWS, pack
from xswe.io.settings import for_all
from xswe.model.kernels import sum_rows
from xswe.progress import track
from xswe.search.exact import Checkpoint, search_exact, search_on_device, work_off
from xswe.search.kernels import Lists, count_members, list_members, merge, nobody, sweep
from xswe.search.types import Method, Neighbours, SearchConfig, Vectors, as_vectors, empty_lists

_ROUNDS = 6  # of k-means, all but the last on half of the sample; three find 0.5 % fewer pairs
_SAMPLE = 8  # sampled vectors a cluster, of each side


@dataclass(frozen=True, eq=False)
class Members:
    """The lines of each cluster."""

    lines: np.ndarray  # int32, the lines of all clusters one after the other, rising within a cluster
    bounds: np.ndarray  # int64 (clusters + 1,), cluster ``c`` has the lines ``lines[bounds[c]:bounds[c + 1]]``

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
    """Return the number of clusters: the configured one, else the power of two next to 6 sqrt(n)."""
    few = max(1, min(sources, targets))
    wanted = config.clusters or 2 ** round(np.log2(6 * np.sqrt(max(sources, targets))))
    return max(1, min(wanted, few))


def _assign(block: np.ndarray, centroids: np.ndarray, count: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores and the numbers of each vector's ``probes`` best of ``count`` centroids, packed columns."""
    scores, ids = empty_lists(len(block), probes)
    sweep(pack(block, ROWS), centroids, Lists(scores, ids, scores[:, -1].copy(), 0), nobody(count))
    return scores, ids


def assign(vectors: Vectors, centroids: np.ndarray, mean: np.ndarray, probes: int, threads: int) -> np.ndarray:
    """Return each vector's ``probes`` nearest centroids, nearest first, int32 (n, probes); ties: the lower number."""
    out = np.empty((len(vectors), probes), np.int32)
    packed = pack(centroids, COLUMNS)

    def work(start: int, stop: int, block: np.ndarray, first: int) -> None:
        out[first + start : first + stop] = _assign(block[start:stop] - mean, packed, len(centroids), probes)[1]

    for first, block in track(vectors.blocks(), "assign clusters", -(-len(vectors) // 16_384), "block"):
        over_blocks(lambda a, b, block=block, first=first: work(a, b, block, first), len(block), threads)  # type: ignore[misc]
    return out


def mean_vector(vectors: Vectors, sample: np.ndarray) -> np.ndarray:
    """Return the mean of the sampled rows."""
    return vectors.take(sample).mean(0, dtype=np.float64).astype(np.float32)


def train_centroids(sides: list[np.ndarray], count: int, generator: np.random.Generator, threads: int) -> np.ndarray:
    """Spherical k-means over centred samples of both sides: float32 (count, d) unit vectors."""
    points = np.concatenate(sides)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    centroids = points[np.sort(generator.choice(len(points), count, replace=len(points) < count))].copy()
    for turn in track(range(_ROUNDS), "clusters", unit="round"):
        seen = points[turn % 2 :: 2].copy() if turn + 1 < _ROUNDS else points  # half of them are enough to begin with
        packed = pack(centroids, COLUMNS)
        found = over_blocks(lambda a, b: _assign(seen[a:b], packed, count, 1), len(seen), threads)  # noqa: B023
        nearest = np.concatenate([ids[:, 0] for _, ids in found])
        cosines = np.concatenate([scores[:, 0] for scores, _ in found])
        members, sums = Members.of(nearest[:, None], count), np.empty_like(centroids)
        sum_rows(seen, members.lines, members.bounds[:-1], members.bounds[1:], sums)
        empty = np.flatnonzero(np.diff(members.bounds) == 0)  # begins again at one of the points that lie worst
        sums[empty] = seen[np.resize(np.argsort(cosines, kind="stable"), len(empty))]
        centroids = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(centroids, np.float32)


def make_centroids(
    sides: list[Vectors], count: int, config: SearchConfig, threads: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return ``count`` centroids for all sides, and the mean that is taken off the vectors of each side."""
    generator = np.random.default_rng([config.seed, 11])
    samples = [np.sort(generator.permutation(len(side))[: _SAMPLE * count]) for side in sides]
    means = [mean_vector(side, sample) for side, sample in zip(sides, samples, strict=True)]
    points = [side.take(rows) - mean for side, rows, mean in zip(sides, samples, means, strict=True)]
    return train_centroids(points, count, generator, threads), means


def neighbouring(centroids: np.ndarray, groups: int, config: SearchConfig, threads: int) -> np.ndarray:
    """Return clusters so ordered that those which share lines are together: their clusters, one after the other."""
    found = train_centroids([centroids], min(groups, len(centroids)), np.random.default_rng([config.seed, 12]), threads)
    return np.argsort(_assign(centroids, pack(found, COLUMNS), len(found), 1)[1][:, 0], kind="stable")


def near(sides: list[Vectors], config: SearchConfig) -> list[Vectors]:
    """Return sides whose rows are read cluster by cluster: all of them in memory where half of it has room."""
    return [side.at_hand() for side in sides] if sum(side.array.nbytes for side in sides) < config.bytes // 2 else sides


def join(
    left: np.ndarray, right: np.ndarray, limits: tuple[np.ndarray, np.ndarray], k: int, within: bool = False
) -> tuple[np.ndarray, ...]:
    """Return the k best of each row and column of ``left @ right.T`` above the limits: scores, ids, scores, ids.

    Where sides are the same vectors (``within``), only columns before the row count.
    """
    rows, columns = empty_lists(len(left), k), empty_lists(len(right), k)
    # A score equal to the k-th best so far may still win by its lower id.
    row_limits, column_limits = (np.nextafter(each, np.float32(-np.inf)) for each in limits)
    lists = Lists(*rows, row_limits, 0), Lists(*columns, column_limits, 0)
    sweep(pack(left, ROWS), pack(right, COLUMNS), *lists, within)
    return *rows, *columns


def search_clusters(
    source: Vectors,
    target: Vectors,
    k: int,
    config: SearchConfig,
    checkpoint: Path | None = None,
    within: bool = False,
) -> Neighbours:
    """Find neighbours among the lines that share a cluster; ``within`` one side, see ``neighbours_within``.

    The result depends on neither the number of threads nor interruptions. Memory beside the result is the assignment,
    8 x ``probes`` bytes a line, and the vectors of one cluster a thread; or all vectors, see :func:`near`.
    """
    source, target = near([source, target], config)
    threads, count = config.workers, cluster_count(len(source), len(target), config)
    probes = min(config.probes, count)
    settings = ["clusters", k, count, probes, config.seed, *["within"] * within]
    saved = Checkpoint(checkpoint, settings, (source, target), count)
    sides = [source] if within else [source, target]
    centroids, means = make_centroids(sides, count, config, threads)
    members = [
        Members.of(assign(side, centroids, mean, probes, threads), count) for side, mean in zip(sides, means, strict=True)
    ]
    here, there = members[0], members[-1]
    done, lists = saved.load() or (0, Neighbours.empty(len(source), len(target), k))
    lock = threading.Lock()

    def work(_: int, cluster: int) -> int:
        """Search one cluster; returns how many pairs were scored."""
        rows, columns = here[cluster], there[cluster]
        size = len(rows) * len(columns)
        if not size:
            return 0
        limits = lists.forward[rows, -1], lists.backward[columns, -1]
        blocks = source.take(rows), target.take(columns)
        row_scores, row_ids, column_scores, column_ids = join(*blocks, limits, k, within)
        with lock:
            merge(lists.forward, lists.forward_ids, rows, row_scores, row_ids, columns)
            merge(lists.backward, lists.backward_ids, columns, column_scores, column_ids, rows)
        return size

    sizes = np.diff(here.bounds) * np.diff(there.bounds)
    work_off(
        range(done, count),
        work,
        lambda finished: saved.save(finished, lists),
        threads,
        "neighbours",
        (int(sizes[:done].sum()), int(sizes.sum())),
        saved.seconds,
    )
    return lists


_MOST_LINES = 2**31 - 1


def find_neighbours(
    source: Vectors | np.ndarray | str | Path,
    target: Vectors | np.ndarray | str | Path,
    k: int,
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
    k: int,
    config: SearchConfig | None = None,
    checkpoint: Path | None = None,
) -> Neighbours:
    """Find each vector's k nearest before it and after it; no vector is its own neighbour, and each pair is scored once.

    All is as for :func:`find_neighbours`, but ``forward`` are the nearest among the vectors before each one, ``backward``
    those among the vectors after it.
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
    return _SEARCHES[config.method](source, target, k, config, checkpoint, within)


_SEARCHES = for_all(Method, {"exact": search_exact, "clusters": search_clusters})
