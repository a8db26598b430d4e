"""Approximate neighbours from a few principal directions: a short exact pass, then exact scores of its candidates.

The directions are those of the uncentred covariance of both sides together, so inner products are preserved as well as
any rotation can, whatever model the vectors come from. The first pass costs ``prefix / d`` of the exact product.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.mining.exact import search_exact
from xswe.mining.topk import empty_lists, merge
from xswe.mining.types import Neighbours, SearchConfig
from xswe.mining.vectors import Vectors
from xswe.parallel import over_blocks, single_threaded_blas

_NOTHING = np.zeros(0, np.int64)
_ROWS = 4096


def principal_directions(sides: list[Vectors], width: int) -> np.ndarray:
    """Return the ``width`` leading eigenvectors of the uncentred covariance of both sides, float32 (d, width)."""
    dim = sides[0].dim
    if width > dim:
        raise ConfigError(f"neighbours.prefix={width}: the vectors have {dim} dimensions")
    total = np.zeros((dim, dim))
    for side in sides:
        for _, block in side.blocks():
            total += block.T @ block
    return np.ascontiguousarray(np.linalg.eigh(total)[1][:, ::-1][:, :width], np.float32)


def project(vectors: Vectors, directions: np.ndarray) -> Vectors:
    """Return the vectors' coordinates along the directions, in memory."""
    out = np.empty((len(vectors), directions.shape[1]), np.float32)
    for start, block in vectors.blocks():
        np.matmul(block, directions, out=out[start : start + len(block)])
    return Vectors(out)


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


def search_prefix(
    source: Vectors, target: Vectors, k: int, config: SearchConfig, checkpoint: Path | None = None
) -> Neighbours:
    """Find neighbours among the ``config.candidates`` best of each line along the first principal directions."""
    wanted = max(k, config.candidates)
    with single_threaded_blas():
        directions = principal_directions([source, target], config.prefix)
        short = project(source, directions), project(target, directions)
    rough = search_exact(*short, wanted, config, checkpoint)
    forward = rescore(source, target, rough.forward_ids, k, config.workers)
    backward = rescore(target, source, rough.backward_ids, k, config.workers)
    return Neighbours(*forward, *backward)
