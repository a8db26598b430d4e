"""The best spans so far, and the distinct words of a block of passages: what stands in many places is multiplied once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, stand_alone


class Distinct(NamedTuple):
    """The distinct words of a block, the most frequent first: what is read again and again lies side by side."""

    rows: np.ndarray  # int32 (w,), which of them each word is
    pieces: np.ndarray  # int64 (p,), the rows of the whole table that occur, the most frequent first
    ids: np.ndarray  # int32 (n,), places in ``pieces``: the pieces of the distinct words
    offsets: np.ndarray  # int64 (d + 1,), distinct word ``r`` has the pieces ``ids[offsets[r]:offsets[r + 1]]``


def distinct_words(names: np.ndarray, words: np.ndarray, size: int) -> Distinct:
    """Find the distinct words of a block.

    Args:
        names: int32 (pieces,), rows of the table.
        words: int64 (w + 1,), word ``j`` has the pieces ``names[words[j]:words[j + 1]]``.
        size: rows of the table.
    """
    several = int(np.count_nonzero(np.diff(words) != 1))
    alone, slots = np.full(size, -1, np.int32), np.full(max(16, 1 << (2 * several - 1).bit_length()), -1, np.int32)
    rows, examples = np.empty(len(words) - 1, np.int32), np.empty(len(words) - 1, np.int64)
    examples = examples[: _number(names, words, alone, slots, rows, examples)]
    counts = np.bincount(rows, minlength=len(examples))
    order = np.argsort(-counts, kind="stable")
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    examples = examples[order]
    lengths = words[examples + 1] - words[examples]
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    spelled = names[np.repeat(words[examples] - offsets[:-1], lengths) + np.arange(offsets[-1])]
    used = np.bincount(spelled, weights=np.repeat(counts[order], lengths), minlength=size)
    pieces = np.flatnonzero(used)
    pieces = pieces[np.argsort(-used[pieces], kind="stable")]
    place = np.zeros(size, np.int32)
    place[pieces] = np.arange(len(pieces), dtype=np.int32)
    return Distinct(number[rows], pieces, place[spelled], offsets)


@njit(inline="always")
def key_of(names: np.ndarray, first: int, last: int) -> np.uint64:
    """A hash of a run of pieces: equal for equal words and phrases."""
    key = np.uint64(0xCBF29CE484222325)
    for p in range(first, last):
        key = (key ^ np.uint64(names[p])) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


@njit(**LEAN)
def _number(
    names: np.ndarray, words: np.ndarray, alone: np.ndarray, table: np.ndarray, rows: np.ndarray, examples: np.ndarray
) -> int:
    """Number the distinct words as they come; returns how many there are.

    ``alone`` has the numbers of words of one piece, ``table`` those of others; ``rows`` receives the number of each word,
    ``examples`` a word of each number.
    """
    found, slots = 0, len(table)
    for j in range(len(rows)):
        first, last = words[j], words[j + 1]
        if last - first == 1:
            row = alone[names[first]]
            if row < 0:
                alone[names[first]] = found
        else:
            slot = np.int64(key_of(names, first, last) & np.uint64(slots - 1))
            while table[slot] >= 0 and not _same(names, words, examples[table[slot]], j):
                slot = (slot + 1) & (slots - 1)
            row = table[slot]
            if row < 0:
                table[slot] = found
        if row < 0:
            row = np.int32(found)
            examples[found] = j
            found += 1
        rows[j] = row
    return found


@njit(inline="always")
def _same(names: np.ndarray, words: np.ndarray, i: int, j: int) -> bool:
    """Tell whether two words have the same pieces."""
    size = words[i + 1] - words[i]
    same = size == words[j + 1] - words[j]
    k = 0
    while same and k < size:
        same = names[words[i] + k] == names[words[j] + k]
        k += 1
    return same


# The k best hits of each query, as flat arrays that compiled code fills and files keep.


class Top(NamedTuple):
    """The best hits of ``n`` queries, best first."""

    scores: np.ndarray  # float32 (n, k)
    used: np.ndarray  # int32 (n,), how many of the k there are
    keys: np.ndarray  # uint64 (n, k), names of the phrases, where equal ones are counted
    times: np.ndarray  # int64 (n, k), how often a phrase was found
    spread: np.ndarray  # int64 (n, k), in how many passages
    latest: np.ndarray  # int64 (n, k), the last of these
    passages: np.ndarray  # int64 (n, k, e), the passages of the first e times
    first: np.ndarray  # int32 (n, k, e), the first word of the span there
    last: np.ndarray  # int32 (n, k, e), one past its last word

    @classmethod
    def empty(cls, n: int, k: int, examples: int = 1) -> Top:
        """Return lists with nothing in them."""
        return cls(
            np.full((n, k), -4.0, np.float32),
            np.zeros(n, np.int32),
            np.zeros((n, k), np.uint64),
            np.zeros((n, k), np.int64),
            np.zeros((n, k), np.int64),
            np.full((n, k), -1, np.int64),
            np.full((n, k, examples), -1, np.int64),
            np.zeros((n, k, examples), np.int32),
            np.zeros((n, k, examples), np.int32),
        )


@njit(**INNER)
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
    stand_alone()
    scores, used, keys, times, spread, latest, passages, firsts, lasts = top
    k, examples = scores.shape[1], passages.shape[2]
    n = used[lane]
    if distinct:
        for r in range(n):
            if keys[lane, r] == key:
                if times[lane, r] < examples:
                    e = times[lane, r]
                    passages[lane, r, e], firsts[lane, r, e], lasts[lane, r, e] = passage, first, last
                times[lane, r] += 1
                spread[lane, r] += latest[lane, r] != passage
                latest[lane, r] = passage
                return True
    if n == k and score <= scores[lane, k - 1]:
        return False
    r = n if n < k else k - 1
    while r > 0 and scores[lane, r - 1] < score:
        scores[lane, r], keys[lane, r], times[lane, r] = scores[lane, r - 1], keys[lane, r - 1], times[lane, r - 1]
        spread[lane, r], latest[lane, r] = spread[lane, r - 1], latest[lane, r - 1]
        for e in range(examples):
            passages[lane, r, e] = passages[lane, r - 1, e]
            firsts[lane, r, e], lasts[lane, r, e] = firsts[lane, r - 1, e], lasts[lane, r - 1, e]
        r -= 1
    scores[lane, r], keys[lane, r], times[lane, r] = score, key, 1
    spread[lane, r], latest[lane, r] = 1, passage
    for e in range(examples):
        passages[lane, r, e], firsts[lane, r, e], lasts[lane, r, e] = -1, 0, 0
    passages[lane, r, 0], firsts[lane, r, 0], lasts[lane, r, 0] = passage, first, last
    if n < k:
        used[lane] = n + 1
    return True


@njit(**LEAN)
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
            kept, shown = False, 0
            for e in range(known):
                shown += e == 0 or part.passages[own, r, e] != part.passages[own, r, e - 1]
                passage = part.passages[own, r, e]
                first, last = np.int64(part.first[own, r, e]), np.int64(part.last[own, r, e])
                kept |= insert(into, lane, score, passage, first, last, key, distinct)
            if distinct and kept and times > known:
                for q in range(into.used[lane]):
                    if into.keys[lane, q] == key:
                        into.times[lane, q] += times - known
                        into.spread[lane, q] += part.spread[own, r] - shown
