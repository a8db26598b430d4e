"""The k best hits of each query, as flat arrays that compiled code fills and files keep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.memory import LEAN


class Top(NamedTuple):
    """The best hits of ``n`` queries, best first.

    Attributes:
        scores: float32 (n, k).
        used: int32 (n,), how many of the k there are.
        keys: uint64 (n, k), names of the phrases, where equal ones are counted.
        times: int64 (n, k), how often a phrase was found.
        passages: int64 (n, k, e), the passages of the first e times.
        first: int32 (n, k, e), the first word of the span there.
        last: int32 (n, k, e), one past its last word.
    """

    scores: np.ndarray
    used: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    passages: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def empty(cls, n: int, k: int, examples: int = 1) -> Top:
        """Return lists with nothing in them."""
        return cls(
            np.full((n, k), -4.0, np.float32),
            np.zeros(n, np.int32),
            np.zeros((n, k), np.uint64),
            np.zeros((n, k), np.int64),
            np.full((n, k, examples), -1, np.int64),
            np.zeros((n, k, examples), np.int32),
            np.zeros((n, k, examples), np.int32),
        )


@njit(**LEAN)
def insert(
    top: Top,
    lane: int,
    score: float,
    passage: int,
    first: int,
    last: int,
    key: np.uint64,
    distinct: bool,
) -> bool:
    """Put a hit into a query's list, if it is among the k best; of equal scores the one that came first stays.

    With ``distinct``, a phrase that is there already is counted instead.

    Returns:
        Whether it was put in or counted.
    """
    scores, used, keys, times, passages, firsts, lasts = top
    k, examples = scores.shape[1], passages.shape[2]
    n = used[lane]
    if distinct:
        for r in range(n):
            if keys[lane, r] == key:
                if times[lane, r] < examples:
                    e = times[lane, r]
                    passages[lane, r, e], firsts[lane, r, e], lasts[lane, r, e] = passage, first, last
                times[lane, r] += 1
                return True
    if n == k and score <= scores[lane, k - 1]:
        return False
    r = n if n < k else k - 1
    while r > 0 and scores[lane, r - 1] < score:
        scores[lane, r], keys[lane, r], times[lane, r] = scores[lane, r - 1], keys[lane, r - 1], times[lane, r - 1]
        for e in range(examples):
            passages[lane, r, e] = passages[lane, r - 1, e]
            firsts[lane, r, e], lasts[lane, r, e] = firsts[lane, r - 1, e], lasts[lane, r - 1, e]
        r -= 1
    scores[lane, r], keys[lane, r], times[lane, r] = score, key, 1
    for e in range(examples):
        passages[lane, r, e], firsts[lane, r, e], lasts[lane, r, e] = -1, 0, 0
    passages[lane, r, 0], firsts[lane, r, 0], lasts[lane, r, 0] = passage, first, last
    if n < k:
        used[lane] = n + 1
    return True


@njit(nogil=True, cache=True)
def merge(into: Top, part: Top, queries: np.ndarray, distinct: bool) -> None:
    """Put the hits of later passages into the lists of earlier ones.

    Args:
        into: the lists of all queries.
        part: those of some, from later passages.
        queries: int64 (n,), which ones.
        distinct: see :func:`insert`.
    """
    for own in range(len(part.used)):
        lane = queries[own]
        for r in range(part.used[own]):
            score, key, times = part.scores[own, r], part.keys[own, r], part.times[own, r]
            known = min(times, part.passages.shape[2])
            kept = False
            for e in range(known):
                passage, first, last = part.passages[own, r, e], part.first[own, r, e], part.last[own, r, e]
                kept |= insert(into, lane, score, passage, first, last, key, distinct)
            if distinct and kept and times > known:
                for q in range(into.used[lane]):
                    if into.keys[lane, q] == key:
                        into.times[lane, q] += times - known
