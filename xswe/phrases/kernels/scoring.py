"""Scores of spans, and what is taken from a passage into the lists of the best.

A word's inner products with the queries of a block stand in a table, and are gathered from it, not multiplied out. A span's
inner product is their sum, its cosine that times its inverse length. Sums run along the span, so that a score does not
depend on what stands around it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, address_of, stand_alone
from xswe.phrases.kernels.bound import LEVELS, SEVERAL, set_limit
from xswe.phrases.kernels.norms import TILE, Block, place_in_text
from xswe.phrases.kernels.top import Top, insert, key_of
from xswe.phrases.kernels.vectors import LANES, STARTS, best_spans

_DIGITS = np.float32(2.0**20)
_STEP = np.float32(2.0**-20)  # between scores
SLACK = np.float32(2e-5)  # float32 rounding of a score, many times over
NONE = np.float32(-4.0)  # below every score


class Task(NamedTuple):
    """What is searched for, as compiled code sees it.

    Attributes:
        floors: float32 (queries,), scores up to this cannot enter the lists.
        shared: float32 (queries,), the highest of the last scores of full lists, of all threads: nothing below is wanted.
        min_size: words of the shortest span.
        max_size: words of the longest.
        distinct: keep one entry for equal phrases, and count them.
        prune: use the bound.
        base: number of passage 0.
    """

    floors: np.ndarray
    shared: np.ndarray
    min_size: int
    max_size: int
    distinct: bool
    prune: bool
    base: int


class Limits(NamedTuple):
    """What a span must be above for each query of a block.

    Attributes:
        exact: float32 (queries,).
        scores: float32 (queries,), the same with room for rounding.
        bounds: uint8 (LEVELS, LANES), the same as the bound has it.
        open: uint64 (1,), a bit for each query that a span can be above at all.
    """

    exact: np.ndarray
    scores: np.ndarray
    bounds: np.ndarray
    open: np.ndarray


class Room(NamedTuple):
    """Room for the spans of one passage.

    Attributes:
        products: float32, inner products of words.
        best: float32, the best cosine of each start.
        taken: bool, which words are part of a hit.
        lines: float32 (2, …), what the bound knows of words.
        sums: uint8 (…, LANES), the bound's sums over the parts of a tile.
        alive: uint64, the queries that each part of a tile is left to.
    """

    products: np.ndarray
    best: np.ndarray
    taken: np.ndarray
    lines: np.ndarray
    sums: np.ndarray
    alive: np.ndarray


def make_room(words: int, max_size: int) -> Room:
    """Return room for passages of so many words at most."""
    height = max(words, TILE) + max_size + STARTS
    return Room(
        np.empty(height, np.float32),
        np.empty(height, np.float32),
        np.empty(height, np.bool_),
        np.empty((2, height), np.float32),
        np.empty((TILE + max_size + SEVERAL, LANES), np.uint8),
        np.empty(TILE + max_size, np.uint64),
    )


def make_limits(task: Task, top: Top) -> Limits:
    """Return the limits of all queries."""
    width = len(task.floors)
    bounds, everyone = np.zeros((LEVELS, LANES), np.uint8), np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64)
    limits = Limits(np.empty(width, np.float32), np.empty(width, np.float32), bounds, everyone)
    _update_all(limits, task, top)
    return limits


@njit(**LEAN)
def _update_all(limits: Limits, task: Task, top: Top) -> None:
    """Bring all queries' limits up to date."""
    for lane in range(len(task.floors)):
        update(limits, lane, task, top)


@njit(**INNER)
def update(limits: Limits, lane: int, task: Task, top: Top) -> None:
    """Bring a query's limits up to date with its list."""
    stand_alone()
    exact, last, slack = task.floors[lane], task.shared[lane], SLACK if task.distinct else np.float32(0.0)
    if top.used[lane] == top.scores.shape[1]:
        exact = max(exact, top.scores[lane, -1] - slack)
        if top.scores[lane, -1] > last:
            task.shared[lane] = last = top.scores[lane, -1]  # another thread's may be lost here, which does no harm
    exact = max(exact, last - slack - _STEP)  # as high as another thread's last may come from an earlier passage
    limits.exact[lane], limits.scores[lane] = exact, exact - SLACK
    set_limit(limits.bounds, lane, exact - SLACK)
    if is_closed(exact, task.distinct):
        limits.open[0] &= ~(np.uint64(1) << np.uint64(lane))


@njit(inline="always")
def is_closed(limit: float, distinct: bool) -> bool:
    """Tell whether no span is above a limit: none is above a list of phrases that are the query's own."""
    return limit > 1 if distinct else limit >= 1


@njit(**INNER)
def gather(table: np.ndarray, lane: int, rows: np.ndarray, first: int, count: int, out: np.ndarray) -> None:
    """out[t] = inner product of a query and word first + t; 0 behind ``count``."""
    for t in range(count):
        out[t] = table[rows[first + t], lane]
    for t in range(count, len(out)):
        out[t] = 0.0


@njit(**INNER)
def best_of(
    products: np.ndarray,
    starts: int,
    place: int,
    stride: int,
    task: Task,
    inverse: np.ndarray,
    out: np.ndarray,
) -> np.float32:
    """The highest cosine of one query with any span of some starts; 0 if all are negative. ``out`` has it for each start.

    Args:
        products: float32 of :func:`gather`, from the first start on; ``STARTS`` + max_size more than there are.
        starts: how many there are.
        place: where ``inverse`` has the shortest span from the first start on.
        stride: starts of the tile.
        task: has the sizes.
        inverse: see :class:`Block`.
        out: float32 (starts, rounded up to whole ``STARTS``).
    """
    highest = np.float32(0.0)
    for i in range(0, starts, STARTS):
        words, lengths = address_of(products, i), address_of(inverse, place + i)
        best_spans(words, lengths, stride, task.min_size, task.max_size, address_of(out, i))
        for k in range(i, min(i + STARTS, starts)):
            highest = max(highest, out[k])
    return highest


@njit(inline="always")
def _rounded(score: np.float32) -> np.float32:
    """A cosine to 20 binary digits: what is left of rounding errors then is no difference, and a phrase's own is 1.

    None is above 1: where a list is full of ones, its query wants nothing more (:func:`is_closed`).
    """
    return min(np.rint(score * _DIGITS) / _DIGITS, np.float32(1.0))


@njit(**INNER)
def any_above(
    products: np.ndarray,
    count: int,
    starts: int,
    place: int,
    stride: int,
    task: Task,
    inverse: np.ndarray,
    best: np.ndarray,
    limit: np.float32,
    floor: np.float32,
) -> bool:
    """Tell whether a span that begins where ``best`` is above ``limit`` scores above ``floor``, to the digits that count.

    A phrase that stands in many passages scores the same in all of them: this spares them the search for its place.
    """
    for i in range(starts):
        if best[i] > limit:
            total = np.float32(0.0)
            for j in range(i, min(i + task.max_size, count)):
                total += products[j]
                r = j + 1 - i - task.min_size
                if r >= 0:
                    length = inverse[place + r * stride + i]
                    if length > 0 and _rounded(total * length) > floor:
                        return True
    return False


@njit(**INNER)
def take(
    table: np.ndarray, lane: int, block: Block, text: int, low: int, high: int, task: Task, top: Top, room: Room
) -> None:
    """Offer a passage's best spans to a query's list: the best one, the best one that does not overlap it, and so on.

    Args:
        table: see :func:`xswe.phrases.kernels.blocks.search_block`.
        lane: which query.
        block: the passages.
        text: which passage.
        low: the first start of spans that can enter the list, counted from the passage's first word.
        high: one past the last.
        task: what is searched for.
        top: the lists.
        room: room.
    """
    stand_alone()
    products, highest, taken = room.products, room.best, room.taken
    begin, floor = block.texts[text], task.floors[lane]
    count = min(high + task.max_size - 1, block.texts[text + 1] - begin)
    gather(table, lane, block.rows, begin + low, count - low, products[: count - low])
    for i in range(high - low):
        highest[i] = np.inf  # of the spans from a start on, at most
    for j in range(count):
        taken[j] = False
    while True:
        least = max(floor, top.scores[lane, -1] - SLACK) if top.used[lane] == top.scores.shape[1] else floor
        best = least
        at: Any = np.int64(-1)
        until: Any = np.int64(-1)
        for i in range(low, high):
            if highest[i - low] > best:
                score, end = _best_from(i, low, products, block, text, task, taken)
                highest[i - low] = score
                if score > best:
                    best, at, until = score, i, end
        if at < 0:
            return
        key = key_of(block.names, block.words[begin + at], block.words[begin + until])
        placed = insert(top, lane, best, task.base + text, at, until, key, task.distinct)
        # A phrase to be counted may come with a score that rounding has moved a little below its own.
        if not placed and (not task.distinct or best < top.scores[lane, -1] - SLACK):
            return
        for j in range(at, until):
            taken[j] = True


@njit(inline="always")
def _best_from(
    i: int, low: int, products: np.ndarray, block: Block, text: int, task: Task, taken: np.ndarray
) -> tuple[np.float32, int]:
    """The best score of the spans from a start on that hold no word that is taken, and one past that span's last word."""
    begin, sizes = block.texts[text], task.max_size + 1 - task.min_size
    words = block.texts[text + 1] - begin
    total, best, end = np.float32(0.0), NONE, -1
    for j in range(i, min(i + task.max_size, words)):
        if taken[j]:
            break
        total += products[j - low]
        r = j + 1 - i - task.min_size
        if r >= 0:
            length = block.inverse[place_in_text(sizes, begin, words, r, i)]
            score = _rounded(total * length)
            if length > 0 and score > best:
                best, end = score, j + 1
    return best, end
