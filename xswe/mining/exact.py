"""Exact neighbours: one pass over the blocks of the score matrix serves both directions.

Targets are held in panels of as many rows as the memory allows, sources go past them in strips, and within a strip small
square blocks are multiplied by BLAS and swept while they are in the cache. Strips are shared out among threads; a thread
owns the lists of its strip's rows, and keeps lists of its own for the panel's columns, which are merged at the end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xswe.mining.topk import empty_lists, merge, sweep
from xswe.mining.types import Neighbours, SearchConfig
from xswe.mining.vectors import Vectors
from xswe.mining.work import Checkpoint, work_off
from xswe.parallel import single_threaded_blas

_BLOCK = 512  # rows and columns of a block: 1 MiB of scores, which the second-level cache holds
_STRIP = 1024  # source rows of a unit of work
_NOTHING = np.zeros(0, np.int64)


class Columns:
    """One thread's lists of a panel's columns: only what beats the merged lists enters."""

    def __init__(self, merged_scores: np.ndarray) -> None:
        self.scores, self.ids = empty_lists(*merged_scores.shape)
        self.limits = merged_scores[:, -1].copy()

    def merge_into(self, scores: np.ndarray, ids: np.ndarray) -> None:
        """Hand the lists over and start again."""
        merge(scores, ids, _NOTHING, self.scores, self.ids, _NOTHING)
        self.scores[:], self.ids[:] = -np.inf, -1


def panel_rows(targets: int, dim: int, k: int, config: SearchConfig) -> int:
    """Return how many target rows a panel holds: their vectors and every thread's lists of them fit in the memory."""
    strips = config.workers * (_STRIP * dim * 4 + _BLOCK * _BLOCK * 4)
    row = dim * 4 + config.workers * (k * 8 + 4)
    rows = max(_BLOCK, (config.bytes - strips) // row // _BLOCK * _BLOCK)
    return int(min(rows, -(-targets // _BLOCK) * _BLOCK))


def score_strip(
    strip: np.ndarray, panel: np.ndarray, lists: Neighbours, columns: Columns, at: tuple[int, int], scratch: np.ndarray
) -> None:
    """Take the scores of a strip of sources with a panel of targets into the lists.

    Args:
        strip: float32 (rows, d).
        panel: float32 (columns, d).
        lists: of all sources; the rows of the strip are changed in place.
        columns: of the panel, changed in place.
        at: the strip's first source and the panel's first target.
        scratch: float32, at least 512 x 512 numbers.
    """
    first, column = at
    scores, ids = lists.forward[first : first + len(strip)], lists.forward_ids[first : first + len(strip)]
    limits = scores[:, -1].copy()
    for c in range(0, len(panel), _BLOCK):
        right = panel[c : c + _BLOCK]
        mine = columns.scores[c : c + _BLOCK], columns.ids[c : c + _BLOCK], columns.limits[c : c + _BLOCK]
        for r in range(0, len(strip), _BLOCK):
            left = strip[r : r + _BLOCK]
            block = scratch[: len(left) * len(right)].reshape(len(left), len(right))
            np.matmul(left, right.T, out=block)
            rows = slice(r, r + _BLOCK)
            sweep(block, scores[rows], ids[rows], limits[rows], *mine, first + r, column + c)


def search_exact(
    source: Vectors, target: Vectors, k: int, config: SearchConfig, checkpoint: Path | None = None
) -> Neighbours:
    """Find the neighbours with the largest inner products, all of them.

    Memory beside the result (8 k bytes a line) is ``config.memory``: it decides the size of the panels, and the sources
    are read once a panel. The result does not depend on the number of threads, nor on interruptions.
    """
    threads, width = config.workers, panel_rows(len(target), source.dim, k, config)
    strips = -(-len(source) // _STRIP)
    panels = -(-len(target) // width)
    saved = Checkpoint(checkpoint, ["exact", k, width], (source, target))
    done, lists = saved.load() or (0, Neighbours.empty(len(source), len(target), k))
    scratch = np.empty((threads, _BLOCK * _BLOCK), np.float32)
    with single_threaded_blas():
        for number in range(done // strips, panels):
            first = number * width
            panel = target.read(first, first + width)
            scores, ids = lists.backward[first : first + width], lists.backward_ids[first : first + width]
            columns = [Columns(scores) for _ in range(threads)]

            def work(thread: int, unit: int, first: int = first, panel: np.ndarray = panel, columns: list = columns) -> int:
                row = (unit % strips) * _STRIP
                strip = source.read(row, row + _STRIP)
                score_strip(strip, panel, lists, columns[thread], (row, first), scratch[thread])
                return len(strip) * len(panel)

            def pause(finished: int, columns: list = columns, scores: np.ndarray = scores, ids: np.ndarray = ids) -> None:
                for own in columns:
                    own.merge_into(scores, ids)
                for own in columns:
                    own.limits[:] = scores[:, -1]
                saved.save(finished, lists)

            begun = max(done, number * strips)
            work_off(
                begun,
                (number + 1) * strips,
                work,
                pause,
                threads,
                f"neighbours {number + 1}/{panels}",
                len(source) * len(panel),
                saved.seconds,
                (begun - number * strips) * _STRIP * len(panel),
            )
    return lists
