"""The compiled search: the best spans of many passages for a block of queries.

Before any span is looked at, a bound is, twice (see :mod:`xswe.phrases.kernels.bound`): first for all queries of the block
at once, then for those that are left one by one. What is left then is scored, but not at once: it is asked of memory, and
has its turn when some others have had theirs. The result is the same as without.

A word's inner products with the queries of a block stand in a table, and are gathered from it, not multiplied out. A span's
inner product is their sum, its cosine that times its inverse length. Sums run along the span, so that a score does not
depend on what stands around it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, address_of, prefetch, stand_alone, trailing_zeros
from xswe.phrases.kernels.bound import (
    LANES,
    LEVELS,
    SEVERAL,
    STARTS,
    best_spans,
    bound_tile,
    count_lanes,
    narrow,
    part_size,
    set_limit,
)
from xswe.phrases.kernels.norms import TILE, Block, place_in_text, place_of
from xswe.phrases.kernels.top import Top, insert, key_of

_DIGITS = np.float32(2.0**20)
_STEP = np.float32(2.0**-20)  # between scores
SLACK = np.float32(2e-5)  # float32 rounding of a score, many times over
NONE = np.float32(-4.0)  # below every score
_MOST = 64  # pieces of tiles that wait at most
_LANE, _FIRST, _COUNT, _STARTS, _PLACE, _STRIDE = range(6)  # what is kept of each


class Task(NamedTuple):
    """What is searched for, as compiled code sees it."""

    floors: np.ndarray  # float32 (queries,), scores up to this cannot enter the lists
    # float32 (queries,), the highest of the last scores of full lists, of all threads: nothing below is wanted
    shared: np.ndarray
    min_size: int  # words of the shortest span
    max_size: int  # words of the longest
    distinct: bool  # keep one entry for equal phrases, and count them
    prune: bool  # use the bound
    base: int  # number of passage 0


class Limits(NamedTuple):
    """What a span must be above for each query of a block."""

    exact: np.ndarray  # float32 (queries,)
    scores: np.ndarray  # float32 (queries,), the same with room for rounding
    bounds: np.ndarray  # uint8 (LEVELS, LANES), the same as the bound has it
    open: np.ndarray  # uint64 (1,), a bit for each query that a span can be above at all


class Room(NamedTuple):
    """Room for the spans of one passage."""

    products: np.ndarray  # float32, inner products of words
    best: np.ndarray  # float32, the best cosine of each start
    taken: np.ndarray  # bool, which words are part of a hit
    lines: np.ndarray  # float32 (2, …), what the bound knows of words
    sums: np.ndarray  # uint8 (…, LANES), the bound's sums over the parts of a tile
    alive: np.ndarray  # uint64, the queries that each part of a tile is left to


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
        table: see :func:`search_block`.
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


class Waiting(NamedTuple):
    """What is left of two passages, and waits to be scored: of the one that is looked at, and of the last before it."""

    passages: np.ndarray  # int64 (2,), which ones
    counts: np.ndarray  # int64 (2,), how many pieces of each wait
    # int64 (2, _MOST, 6): which query; first word; how many there are, with those that spans reach beyond the piece;
    # starts; where the inverse length of the shortest span from the first one on stands; where the next size
    pieces: np.ndarray
    good: np.ndarray  # uint64 (2,), a bit for each query with a list that the passage can enter
    low: np.ndarray  # int64 (2, LANES), the first start from which a span can, counted from the passage's first word
    high: np.ndarray  # int64 (2, LANES), one past the last


def search_block(
    table: np.ndarray,
    codes: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    allowed: np.ndarray,
    task: Task,
    top: Top,
) -> tuple[int, int]:
    """Offer the spans of passages ``start`` to ``stop`` to the lists of a block of queries.

    Args:
        table: float32 (rows, queries), inner products of the block's distinct words and the queries.
        codes: uint8 (rows, LANES), what the bound knows of them, see :func:`xswe.phrases.kernels.bound.spell`.
        block: the passages.
        start: first passage.
        stop: one past the last.
        allowed: uint64 (passages,), a bit for each query that is to look there.
        task: what is searched for.
        top: the lists, see :mod:`xswe.phrases.kernels.top`.

    Returns:
        How many pairs of a tile and a query there were, and in how many of them spans were scored.
    """
    waiting = Waiting(
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.empty((2, _MOST, 6), np.int64),
        np.zeros(2, np.uint64),
        np.empty((2, LANES), np.int64),
        np.empty((2, LANES), np.int64),
    )
    longest = int(np.diff(block.texts[start : stop + 1]).max(initial=0))
    room, limits = make_room(longest, task.max_size), make_limits(task, top)
    counts: tuple[int, int] = _scan(table, codes, block, start, stop, allowed, task, top, limits, waiting, room)
    return counts


@njit(**LEAN)
def _scan(
    table: np.ndarray,
    codes: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    allowed: np.ndarray,
    task: Task,
    top: Top,
    limits: Limits,
    waiting: Waiting,
    room: Room,
) -> tuple[int, int]:
    """See :func:`search_block`."""
    min_size, max_size = task.min_size, task.max_size
    sizes, step = max_size + 1 - min_size, part_size(max_size)
    alive = room.alive
    seen, scored = 0, 0
    now: Any = np.int64(0)
    for text in range(start, stop):
        wanted, end = allowed[text], block.texts[text + 1]
        if wanted == 0 or end - block.texts[text] < min_size:
            continue
        waiting.passages[now] = text
        tile = block.tiles[text]
        for first in range(block.texts[text], end, TILE):
            starts, count = min(TILE, end - first), min(TILE + max_size - 1, end - first)
            levels, there = block.levels[tile], wanted
            if task.prune:
                there &= bound_tile(codes, block.rows, first, count, max_size, levels, limits.bounds, room.sums, alive)
                there &= limits.open[0]
            seen += count_lanes(wanted)
            while there:
                lane = np.int64(trailing_zeros(there))
                there &= there - np.uint64(1)
                low, high = np.int64(0), starts
                if task.prune:
                    low, high = _range(alive, lane, step, starts)
                    words = codes, lane, block.rows, block.row_lengths, first, count
                    parts = levels[low // step : (high + step - 1) // step]
                    low, high = narrow(*words, low, high, parts, limits.scores[lane], min_size, max_size, room.lines)
                if low == high:
                    continue
                if waiting.counts[now] == _MOST:
                    _score(waiting, now, table, block, task, limits, top, room)
                piece = waiting.pieces[now, waiting.counts[now]]
                waiting.counts[now] += 1
                scored += 1
                piece[_LANE], piece[_FIRST], piece[_STARTS] = lane, first + low, high - low
                piece[_COUNT] = min(high - low + max_size - 1, count - low)
                piece[_PLACE], piece[_STRIDE] = place_of(sizes, first, starts, 0, low), starts
                _ask_for(piece, table, block, sizes)
            tile += 1
        if waiting.counts[now] or waiting.good[now]:
            now = 1 - now
            _settle(waiting, now, table, block, task, limits, top, room)
    _settle(waiting, 1 - now, table, block, task, limits, top, room)
    return seen, scored


@njit(inline="always")
def _range(alive: np.ndarray, lane: int, step: int, starts: int) -> tuple[int, int]:
    """Return the first start, and one past the last, of the parts where a query's spans might be above its limit."""
    parts, bit = (starts + step - 1) // step, np.uint64(1) << np.uint64(lane)
    low, high = 0, parts - 1
    while not alive[low] & bit:
        low += 1
    while not alive[high] & bit:
        high -= 1
    return low * step, min(high * step + step, starts)


@njit(**INNER)
def _ask_for(piece: np.ndarray, table: np.ndarray, block: Block, sizes: int) -> None:
    """Ask memory for what it takes to score a piece of a tile."""
    width = table.shape[1]
    for t in range(piece[_FIRST], piece[_FIRST] + piece[_COUNT]):
        prefetch(table, block.rows[t] * width + piece[_LANE])
    for r in range(sizes):
        place = piece[_PLACE] + r * piece[_STRIDE]
        for i in range(0, piece[_STARTS] + STARTS - 1, STARTS):
            prefetch(block.inverse, place + min(i, piece[_STARTS] - 1))


@njit(**INNER)
def _settle(
    waiting: Waiting, which: int, table: np.ndarray, block: Block, task: Task, limits: Limits, top: Top, room: Room
) -> None:
    """Score what waits of a passage, and offer it to the lists that it can enter."""
    stand_alone()
    _score(waiting, which, table, block, task, limits, top, room)
    good = waiting.good[which]
    while good:
        lane = np.int64(trailing_zeros(good))
        good &= good - np.uint64(1)
        take(
            table,
            lane,
            block,
            waiting.passages[which],
            waiting.low[which, lane],
            waiting.high[which, lane],
            task,
            top,
            room,
        )
        update(limits, lane, task, top)
    waiting.good[which] = 0


@njit(**INNER)
def _score(
    waiting: Waiting, which: int, table: np.ndarray, block: Block, task: Task, limits: Limits, top: Top, room: Room
) -> None:
    """Score the pieces of a passage that wait, and note those that have a span above their query's limit."""
    stand_alone()
    low, high, begin = waiting.low[which], waiting.high[which], block.texts[waiting.passages[which]]
    for k in range(waiting.counts[which]):
        piece = waiting.pieces[which, k]
        lane, first, count = piece[_LANE], piece[_FIRST], piece[_COUNT]
        starts, place, stride = piece[_STARTS], piece[_PLACE], piece[_STRIDE]
        if task.shared[lane] > limits.scores[lane] + 3 * SLACK:  # another thread has found more
            update(limits, lane, task, top)
        gather(table, lane, block.rows, first, count, room.products[: starts + STARTS + task.max_size])
        limit = limits.scores[lane]
        if best_of(room.products, starts, place, stride, task, block.inverse, room.best) > limit:
            floor = limit if task.distinct else limits.exact[lane]
            if any_above(room.products, count, starts, place, stride, task, block.inverse, room.best, limit, floor):
                bit = np.uint64(1) << np.uint64(lane)
                if not waiting.good[which] & bit:
                    low[lane] = first - begin
                high[lane] = first - begin + starts
                waiting.good[which] |= bit
    waiting.counts[which] = 0
