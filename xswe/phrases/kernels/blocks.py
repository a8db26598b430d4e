"""The compiled search: the best spans of many passages for a block of queries.

Before any span is looked at, a bound is, twice (see :mod:`xswe.phrases.kernels.bound`): first for all queries of the block
at once, then for those that are left one by one. What is left then is scored (see :mod:`xswe.phrases.kernels.scoring`), but
not at once: it is asked of memory, and has its turn when some others have had theirs. The result is the same as without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, prefetch, stand_alone, trailing_zeros
from xswe.phrases.kernels.bound import bound_tile, narrow, part_size
from xswe.phrases.kernels.norms import TILE, Block, place_of
from xswe.phrases.kernels.scoring import (
    SLACK,
    Limits,
    Room,
    Task,
    any_above,
    best_of,
    gather,
    make_limits,
    make_room,
    take,
    update,
)
from xswe.phrases.kernels.top import Top
from xswe.phrases.kernels.vectors import LANES, STARTS, count_lanes

_MOST = 64  # pieces of tiles that wait at most
_LANE, _FIRST, _COUNT, _STARTS, _PLACE, _STRIDE = range(6)  # what is kept of each


class Waiting(NamedTuple):
    """What is left of two passages, and waits to be scored: of the one that is looked at, and of the last before it.

    Attributes:
        passages: int64 (2,), which ones.
        counts: int64 (2,), how many pieces of each wait.
        pieces: int64 (2, _MOST, 6): which query; first word; how many there are, with those that spans reach beyond the
            piece; starts; where the inverse length of the shortest span from the first one on stands; where the next size.
        good: uint64 (2,), a bit for each query with a list that the passage can enter.
        low: int64 (2, LANES), the first start from which a span can, counted from the passage's first word.
        high: int64 (2, LANES), one past the last.
    """

    passages: np.ndarray
    counts: np.ndarray
    pieces: np.ndarray
    good: np.ndarray
    low: np.ndarray
    high: np.ndarray


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
