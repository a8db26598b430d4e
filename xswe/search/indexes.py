"""Approximate neighbours through faiss: inverted lists, graphs, and inverted lists of product-quantised vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from xswe.errors import DependencyError
from xswe.io.parallel import over_blocks
from xswe.progress import track
from xswe.search.kernels import empty_lists, merge
from xswe.search.types import Neighbours, SearchConfig
from xswe.search.vectors import Vectors

_POINTS = 64  # of the training sample a cluster
_CODES = 16  # points that the shortest codes are trained on, at least
_LINKS = 32  # of a point of the graph
_BLOCK = 16_384
_ROWS = 4096
_NOTHING = np.zeros(0, np.int64)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise DependencyError("faiss-cpu", "mine", "neighbours.method=ivf, hnsw or ivfpq") from None
    return faiss


def index_name(count: int, dim: int, config: SearchConfig) -> str:
    """Return faiss' name for an index over ``count`` vectors."""
    if config.method == "hnsw":
        return f"HNSW{_LINKS},Flat"
    clusters = max(1, min(config.clusters or int(4 * np.sqrt(count)), count // 39 or 1))
    if config.method == "ivf" or count < _CODES:
        return f"IVF{clusters},Flat"
    codes = next(m for m in (64, 32, 16, 8, 4, 2, 1) if dim % m == 0)
    return f"IVF{clusters},PQ{codes}" + ("x4" if count < 256 * 39 else "")


def build(vectors: Vectors, config: SearchConfig) -> Any:
    """Build an inner-product index; the vectors (``ivf``, ``hnsw``) or their codes (``ivfpq``) are held in memory."""
    faiss = _faiss()
    index = faiss.index_factory(vectors.dim, index_name(len(vectors), vectors.dim, config), faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        generator = np.random.default_rng([config.seed, 13])
        wanted = max(_POINTS * faiss.extract_index_ivf(index).nlist, 256 * 39)
        index.train(vectors.take(np.sort(generator.permutation(len(vectors))[:wanted])))
    for _, block in track(vectors.blocks(_BLOCK), f"{config.method} index", -(-len(vectors) // _BLOCK), "block"):
        index.add(block)
    if config.method == "hnsw":
        index.hnsw.efSearch = 16 * config.probes
    else:
        faiss.extract_index_ivf(index).nprobe = config.probes
    return index


@njit(nogil=True, cache=True, fastmath=True)
def _dots(query: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            total = np.float32(0.0)
            for j in range(rows.shape[2]):
                total += query[i, j] * rows[i, c, j]
            out[i, c] = total


def rescore(
    queries: Vectors, others: Vectors, candidates: np.ndarray, k: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Score candidates with the whole vectors.

    Args:
        queries: (n, d).
        others: (m, d).
        candidates: int32 (n, c) rows of ``others``, -1 for none.
        k: how many to keep.
        threads: how many threads share the work.

    Returns:
        Scores, float32 (n, k), and ids, int32 (n, k), of the k best candidates.
    """
    scores, ids = empty_lists(len(queries), k)
    step = max(64, _ROWS // candidates.shape[1])

    def work(start: int, stop: int) -> None:
        """Score the candidates of some rows in full."""
        for first in range(start, stop, step):
            block = slice(first, min(first + step, stop))
            wanted = candidates[block]
            order = np.argsort(wanted.ravel(), kind="stable")  # rising rows: the disk is read in one direction
            rows = np.empty((wanted.size, others.dim), np.float32)
            rows[order] = others.take(np.maximum(wanted.ravel()[order], 0))
            found = np.empty(wanted.shape, np.float32)
            _dots(queries.read(block.start, block.stop), rows.reshape(*wanted.shape, -1), found)
            merge(scores[block], ids[block], _NOTHING, found, np.ascontiguousarray(wanted), _NOTHING)

    over_blocks(work, len(queries), threads)
    return scores, ids


def _search(queries: Vectors, others: Vectors, k: int, config: SearchConfig) -> tuple[np.ndarray, np.ndarray]:
    index = build(others, config)
    wanted = max(k, config.candidates) if config.method == "ivfpq" else k
    scores, ids = empty_lists(len(queries), wanted)
    for first, block in track(queries.blocks(_BLOCK), f"{config.method} search", -(-len(queries) // _BLOCK), "block"):
        found, where = index.search(block, wanted)
        scores[first : first + len(block)] = np.where(where >= 0, found, -np.inf)
        ids[first : first + len(block)] = where
    # Scores of faiss' own kernels differ in the last bits between runs and methods; ours are a function of the vectors.
    return rescore(queries, others, ids, k, config.workers)


def search_indexes(source: Vectors, target: Vectors, k: int, config: SearchConfig) -> Neighbours:
    """Search each side in an index of the other, one index at a time in memory."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(config.workers)
    try:
        return Neighbours(*_search(source, target, k, config), *_search(target, source, k, config))
    finally:
        faiss.omp_set_num_threads(before)
