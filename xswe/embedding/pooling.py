"""Averaging rows: a text's vector is the mean of its units' rows (EN paper 3.1).

Two implementations give the same bytes: the compiled one of :mod:`xswe.embedding.kernels`, and one in plain numpy for a
few texts in a process that has not loaded the compiler's run time yet, which takes longer than they do.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np

from xswe.language.bags import Bags
from xswe.parallel import over_blocks

_FEW = 20_000  # rows to gather for which loading the compiled code does not pay
_NO_SCALES = np.ones(1, np.float32)


def pool(
    matrix: np.ndarray,
    bags: Bags,
    *,
    normalise: bool,
    threads: int = 1,
    out: np.ndarray | None = None,
    scales: np.ndarray | None = None,
) -> np.ndarray:
    """Average the rows of each bag.

    Args:
        matrix: (units, d) float32, float16 or int8, C-contiguous; gathered from as it is, without a float32 copy.
        bags: n bags of row numbers below ``units``.
        normalise: scale each result to Euclidean norm 1 (an empty bag, or one whose rows cancel, stays zero).
        threads: how many threads share the bags.
        out: float32 (n, d) to write into; made anew if not given.
        scales: float32 (units,), what the rows of an int8 matrix are multiplied with.

    Returns:
        float32 (n, d).
    """
    out = np.empty((len(bags), matrix.shape[1]), np.float32) if out is None else out
    if "numba" not in sys.modules and len(bags.ids) < _FEW:
        pool_plainly(matrix, scales, bags, normalise, out)
        return out
    from xswe.embedding.kernels import pool_rows

    # numba has no float16 on processors: the kernel reads its bits.
    numbers = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    factors = _NO_SCALES if scales is None else scales

    def work(start: int, stop: int) -> None:
        squares = np.empty(out.shape[1], np.float32)
        pool_rows(numbers, factors, bags.ids, bags.offsets[start : stop + 1], normalise, out[start:stop], squares)

    over_blocks(work, len(bags), threads)
    return out


def pool_plainly(matrix: np.ndarray, scales: np.ndarray | None, bags: Bags, normalise: bool, out: np.ndarray) -> None:
    """Do what :func:`pool` does, in numpy, with the same additions in the same order."""
    ids = bags.ids.tolist()
    for i, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
        total = out[i]
        total[:] = 0.0
        for unit in ids[start:stop]:
            row = matrix[unit].astype(np.float32, copy=False)
            total += row if scales is None else row * scales[unit]
        divisor = np.sqrt(_fold(total * total)) if normalise else np.float32(stop - start)
        if divisor > 0:
            total *= np.float32(1.0) / divisor


def _fold(numbers: np.ndarray) -> np.float32:
    """Add up an array by folding it in halves, in place."""
    size = len(numbers)
    while size > 1:
        half = size // 2
        numbers[:half] += numbers[size - half : size]
        size -= half
    return np.float32(numbers[0])
