"""Adam on an embedding table: lazily on the rows of a batch, or densely on every row.

``lazy`` updates only the rows that occur in the batch, by the formula of torch's SparseAdam. ``dense`` is the papers' Adam:
rows absent from the batch still move by their momentum, at the price of touching the whole table at each step. Both read
the gradient directly from the bags' gradients: a row's gradient is the sum over its occurrences, and ``lazy`` never forms a
(units x d) gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN, LINE, prefetch
from xswe.io.parallel import over_blocks
from xswe.io.settings import for_all

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
_AHEAD = 2  # rows to prefetch ahead
_LINE = LINE // 4  # float32 numbers per cache line


@njit(**LEAN)
def _group(
    ids: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    slot: np.ndarray,
    rows: np.ndarray,
    ends: np.ndarray,
    bags: np.ndarray,
) -> int:
    """Group the occurrences of a batch by row, and return the number n of distinct rows.

    ``rows[:n]`` receives the distinct ids in order of first occurrence, ``bags`` the bag of each occurrence grouped by
    row, ``ends[u]`` where row ``u``'s group ends. ``slot`` is a scratch array over all ids, -1 everywhere before and
    after.
    """
    n = 0
    for i in range(len(starts)):
        for t in range(starts[i], stops[i]):
            row = ids[t]
            if slot[row] < 0:
                slot[row] = n
                rows[n] = row
                ends[n] = 0
                n += 1
            ends[slot[row]] += 1
    total = 0
    for u in range(n):
        count = ends[u]
        ends[u] = total  # first the start of the group; the loop below moves it to its end
        total += count
    for i in range(len(starts)):
        for t in range(starts[i], stops[i]):
            u = slot[ids[t]]
            bags[ends[u]] = i
            ends[u] += 1
    for u in range(n):
        slot[rows[u]] = -1
    return n


@njit(nogil=True, cache=True, fastmath=True)
def _squared_norm(first: int, last: int, ends: np.ndarray, bags: np.ndarray, gradients: np.ndarray) -> float:
    """Return the sum of squares of the gradients of ``rows[first:last]``."""
    width = gradients.shape[1]
    gradient = np.empty(width, np.float32)
    total = 0.0
    for u in range(first, last):
        gradient[:] = 0.0
        for t in range(ends[u - 1] if u else 0, ends[u]):
            bag = bags[t]
            for j in range(width):
                gradient[j] += gradients[bag, j]
        for j in range(width):
            total += gradient[j] * gradient[j]
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _lazy_step(
    first: int,
    last: int,
    rows: np.ndarray,
    ends: np.ndarray,
    bags: np.ndarray,
    gradients: np.ndarray,
    scale: np.float32,
    matrix: np.ndarray,
    moments: np.ndarray,
    rate: np.float32,
    beta1: np.float32,
    beta2: np.float32,
    epsilon: np.float32,
) -> None:
    """Take an Adam step on ``rows[first:last]``, accumulating each row's gradient and applying it while it is cached."""
    width = matrix.shape[1]
    gradient = np.empty(width, np.float32)
    one = np.float32(1.0)
    for u in range(first, last):
        gradient[:] = 0.0
        for t in range(ends[u - 1] if u else 0, ends[u]):
            bag = bags[t]
            for j in range(width):
                gradient[j] += gradients[bag, j]
        row, coming = rows[u], np.int64(rows[min(u + _AHEAD, last - 1)])
        own, mean, square = matrix[row], moments[row, :width], moments[row, width:]
        for start in range(0, width, _LINE):
            # Prefetched line by line, a later row arrives while this one is computed.
            prefetch(matrix, coming * width + start)
            prefetch(moments, 2 * coming * width + start)
            prefetch(moments, (2 * coming + 1) * width + start)
            for j in range(start, min(start + _LINE, width)):
                g = gradient[j] * scale
                first_moment = mean[j] * beta1 + (one - beta1) * g
                second_moment = square[j] * beta2 + (one - beta2) * g * g
                mean[j] = first_moment
                square[j] = second_moment
                own[j] -= rate * first_moment / (np.sqrt(second_moment) + epsilon)


@njit(nogil=True, cache=True, fastmath=True)
def _dense_step(
    group_of: np.ndarray,
    ends: np.ndarray,
    bags: np.ndarray,
    gradients: np.ndarray,
    scale: np.float32,
    matrix: np.ndarray,
    moments: np.ndarray,
    rate: np.float32,
    correction: np.float32,
    beta1: np.float32,
    beta2: np.float32,
    epsilon: np.float32,
) -> None:
    """Take an Adam step on all rows of a block; ``group_of[row]`` is the row's group, or -1 if its gradient is zero."""
    width = matrix.shape[1]
    gradient = np.empty(width, np.float32)
    one = np.float32(1.0)
    for row in range(matrix.shape[0]):
        gradient[:] = 0.0
        u = group_of[row]
        if u >= 0:
            for t in range(ends[u - 1] if u else 0, ends[u]):
                bag = bags[t]
                for j in range(width):
                    gradient[j] += gradients[bag, j]
        for j in range(width):
            g = gradient[j] * scale
            first_moment = moments[row, j] * beta1 + (one - beta1) * g
            second_moment = moments[row, width + j] * beta2 + (one - beta2) * g * g
            moments[row, j] = first_moment
            moments[row, width + j] = second_moment
            matrix[row, j] -= rate * first_moment / (np.sqrt(second_moment) * correction + epsilon)


Optimiser = Literal["lazy", "dense"]
_LAZY = for_all(Optimiser, {"lazy": True, "dense": False})


@dataclass
class Adam:
    """The state of Adam for one table."""

    matrix: np.ndarray  # float32 (units, d), changed in place by :meth:`step`
    # ``lazy`` (only rows of the batch) or ``dense`` (every row, as in the papers)
    kind: Optimiser = "lazy"
    clip: float = 0.0  # maximum Euclidean norm of the gradient (of all rows together), 0 for no clipping
    threads: int = 1  # threads that share the rows
    steps: int = 0  # steps taken
    # weight decay: before a step its rows shrink by this times the rate (AdamW; Loshchilov and Hutter 2019)
    decay: float = 0.0
    # float32 (units, 2 d), the running means of each row's gradient and of its square
    moments: np.ndarray = field(init=False, repr=False)
    _slot: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Rows are accessed at random, which is what costs, so both moments of a row are stored together.
        self.moments = np.zeros((len(self.matrix), 2 * self.matrix.shape[1]), np.float32)
        self._slot = np.full(len(self.matrix), -1, np.int32)

    def step(self, ids: np.ndarray, starts: np.ndarray, stops: np.ndarray, gradients: np.ndarray, rate: float) -> None:
        """Update the table by the gradient of a batch, whose bag ``i`` holds the rows ``ids[starts[i]:stops[i]]``.

        ``gradients``, float32 (bags, d), are with respect to the *sum* of each bag's rows; ``rate`` is the learning rate.
        """
        self.steps += 1
        occurrences = int((stops - starts).sum())
        rows, ends = np.empty(occurrences, np.int32), np.empty(occurrences, np.int64)
        bags = np.empty(occurrences, np.int32)
        n = _group(ids, starts, stops, self._slot, rows, ends, bags)
        scale = 1.0
        if self.clip > 0:
            norm = sum(over_blocks(lambda a, b: _squared_norm(a, b, ends, bags, gradients), n, self.threads)) ** 0.5
            scale = min(1.0, self.clip / (norm + 1e-6))
        f = np.float32
        lazy = _LAZY[self.kind]
        if self.decay > 0 and lazy:
            self.matrix[rows[:n]] *= f(1.0 - rate * self.decay)
        elif self.decay > 0:
            self.matrix *= f(1.0 - rate * self.decay)
        bias1, bias2 = 1 - BETA1**self.steps, 1 - BETA2**self.steps
        betas = f(BETA1), f(BETA2), f(EPSILON)
        if lazy:
            pace = f(rate * bias2**0.5 / bias1)
            tables = self.matrix, self.moments
            over_blocks(
                lambda a, b: _lazy_step(a, b, rows, ends, bags, gradients, f(scale), *tables, pace, *betas),
                n,
                self.threads,
            )
            return
        self._slot[rows[:n]] = np.arange(n, dtype=np.int32)
        pace, correction = f(rate / bias1), f(bias2**-0.5)

        def work(a: int, b: int) -> None:
            tables = self.matrix[a:b], self.moments[a:b]
            _dense_step(self._slot[a:b], ends, bags, gradients, f(scale), *tables, pace, correction, *betas)

        over_blocks(work, len(self.matrix), self.threads)
        self._slot[rows[:n]] = -1
