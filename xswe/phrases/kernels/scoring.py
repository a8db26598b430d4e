"""The compiled search: the best spans of many passages for a block of queries.

Before any span is scored, its bound is checked twice (see :mod:`xswe.phrases.kernels.bound`): first for all queries of
the block at once, then for each remaining query. The data of what remains are prefetched, and it is scored later. The
result is the same as without bounds.

The inner products of words with the queries of a block are gathered from a table rather than recomputed. A span's inner
product is their sum, and its cosine is that sum times the inverse length. Sums run along the span, so that a score does
not depend on its surroundings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, address_of, at, bare, prefetch, stand_alone, trailing_zeros
from xswe.phrases.kernels.bound import (
    LANES,
    LEVELS,
    SEVERAL,
    STARTS,
    TILE,
    bound_tile,
    narrow,
    part_size,
    set_limit,
    starts_above,
)
from xswe.phrases.kernels.norms import Block, place_of
from xswe.phrases.kernels.top import Top, insert, key_of

_DIGITS = np.float32(2.0**20)
STEP = np.float32(2.0**-20)  # between rounded scores
SLACK = np.float32(2e-5)  # many times the float32 rounding error of a score
NONE = np.float32(-4.0)  # below every score
_MAX_WAITING = 64  # waiting pieces of tiles, for each of two passages
_PIECE = np.dtype([(name, "i8") for name in ("lane", "first", "count", "starts", "place", "stride")], align=True)
_PASSAGE = np.dtype([("number", "i8"), ("pieces", "i8"), ("good", "u8")], align=True)
_RANGE = np.dtype([("low", "i8"), ("high", "i8")], align=True)
_LIMIT = np.dtype([("exact", "f4"), ("score", "f4")], align=True)


class Task(NamedTuple):
    """The search task, for compiled code."""

    queries: int  # number of queries
    floors: np.ndarray  # float32 (queries,), scores up to this cannot enter the lists
    # float32 (queries,), the highest last score of the full lists of all threads: lower scores are useless
    shared: np.ndarray
    min_size: int  # words of the shortest span
    max_size: int  # words of the longest span
    distinct: bool  # count equal phrases in one entry
    base: int  # number of the first passage


class Limits(NamedTuple):
    """The scores that a span must exceed for each query of a block."""

    lanes: np.ndarray  # _LIMIT (queries,): the score, exactly and with tolerance for rounding
    bounds: np.ndarray  # uint8 (LEVELS, LANES), the limits of the bound
    open: np.ndarray  # uint64 (1,), a bit for each query whose limit a span can exceed at all


class Workspace(NamedTuple):
    """Workspace for the spans of one passage."""

    products: np.ndarray  # float32, inner products of words
    best: np.ndarray  # float32, the best cosine of each start
    taken: np.ndarray  # uint8, whether a word is part of a hit
    lines: np.ndarray  # float32, workspace of :func:`xswe.phrases.kernels.bound.narrow`
    sums: np.ndarray  # uint8 (…, LANES), the bound's sums over the parts of a tile
    alive: np.ndarray  # uint64, the queries not ruled out in each part of a tile


def make_workspace(words: int, max_size: int) -> Workspace:
    """Return the workspace for passages of at most ``words`` words."""
    height = max(words, TILE) + max_size + STARTS
    return Workspace(
        np.empty(height, np.float32),
        np.empty(height, np.float32),
        np.empty(height, np.uint8),
        np.empty(2 * height, np.float32),
        np.empty((TILE + max_size + SEVERAL, LANES), np.uint8),
        np.empty(TILE + max_size, np.uint64),
    )


def make_limits(task: Task) -> Limits:
    """Return uninitialised limits of all queries."""
    bounds, everyone = np.zeros((LEVELS, LANES), np.uint8), np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64)
    return Limits(np.empty(task.queries, _LIMIT), bounds, everyone)


@njit(**INNER)
def update(limits: Limits, lane: int, task: Task, top: Top) -> None:
    """Update a query's limits from its list."""
    stand_alone()
    exact, shared, slack = task.floors[lane], task.shared[lane], SLACK if task.distinct else np.float32(0.0)
    if top.used[lane] == top.k:
        last = at(top.hits, lane * top.k + top.k - 1).score
        exact = max(exact, last - slack)
        if last > shared:
            task.shared[lane] = shared = last  # may overwrite another thread's value, which is harmless
    exact = max(exact, shared - slack - STEP)  # a score equal to another thread's last may come from an earlier passage
    limit = at(limits.lanes, lane)
    limit.exact, limit.score = exact, exact - SLACK
    set_limit(limits.bounds, lane, exact - SLACK)
    if is_closed(exact, task.distinct):
        limits.open[0] &= ~(np.uint64(1) << np.uint64(lane))


@njit(inline="always")
def is_closed(limit: float, distinct: bool) -> bool:
    """Return True if no span can exceed a limit, because the list is full of the query's own phrase."""
    return limit > 1 if distinct else limit >= 1


@njit(inline="always")
def _rounded(score: np.float32) -> np.float32:
    """Round a cosine to 20 binary digits, so that rounding errors make no difference, and a phrase's own cosine is 1.

    No cosine is above 1: once a list is full of ones, its query is closed (:func:`is_closed`).
    """
    rounded, most = np.rint(score * _DIGITS) / _DIGITS, np.float32(1.0)
    return rounded if rounded < most else most


@njit(**INNER)
def take(  # noqa: C901 (calling inner functions would take longer to compile than all they do)
    table: np.ndarray, lane: int, block: Block, text: int, low: int, high: int, task: Task, top: Top, workspace: Workspace
) -> None:
    """Offer a passage's best spans to a query's list: the best span, the best one that does not overlap it, and so on.

    Spans that can enter the list start at ``low`` to ``high`` (exclusive), counted from the passage's first word.
    """
    stand_alone()
    products, highest, taken = workspace.products, workspace.best, workspace.taken
    begin, floor, end = block.texts[text], task.floors[lane], lane * top.k + top.k - 1
    words, sizes, width = block.texts[text + 1] - begin, task.max_size + 1 - task.min_size, task.queries
    count = high + task.max_size - 1 if high + task.max_size - 1 < words else words
    for j in range(low, count):
        products[j] = table[block.rows[begin + j] * width + lane]
        taken[j] = 0
    for i in range(low, high):
        highest[i] = np.inf  # upper bound of the spans from a start
    while True:
        best = floor
        if top.used[lane] == top.k and at(top.hits, end).score - SLACK > floor:
            best = at(top.hits, end).score - SLACK
        start: Any = np.int64(-1)
        stop: Any = np.int64(-1)
        for i in range(low, high):
            if highest[i] <= best:
                continue
            # The best span from here that contains no taken word.
            total, own, tile = np.float32(0.0), NONE, i // TILE * TILE
            starts = words - tile if words - tile < TILE else TILE
            place = place_of(sizes, begin + tile, starts, 1 - task.min_size, i - tile)
            last = i + task.max_size if i + task.max_size < words else words
            for j in range(i, last):
                if taken[j]:
                    break
                total += products[j]
                if j + 1 - i >= task.min_size:
                    length = block.inverse[place + (j - i) * starts]
                    score = _rounded(total * length)
                    if length > 0 and score > own:
                        own = score
                        if score > best:
                            best, start, stop = score, i, j + 1
            highest[i] = own
        if start < 0:
            return
        key = key_of(block.names, block.words[begin + start], block.words[begin + stop])
        placed = insert(top, lane, best, task.base + text, start, stop, key, task.distinct)
        # Rounding may have moved the score of a phrase to be counted slightly below that of its entry.
        if not placed and (not task.distinct or best < at(top.hits, end).score - SLACK):
            return
        for j in range(start, stop):
            taken[j] = 1


class Waiting(NamedTuple):
    """Pieces of two passages waiting to be scored: the current passage and the one before it."""

    # _PASSAGE (2,): its number; the number of its waiting pieces; a bit for each query whose list it can enter
    passages: np.ndarray
    # _PIECE (2 x _MAX_WAITING,): the query; the first word; the number of words, including those that spans reach beyond
    # the piece; the number of starts; the index of the inverse length of the shortest span from the first start; the
    # stride to the next size
    pieces: np.ndarray
    # _RANGE (2 x LANES,): the first start of a span that can enter, counted from the passage's first word; one past the
    # last
    ranges: np.ndarray


def search_block(
    table: np.ndarray,
    codes: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    task: Task,
    top: Top,
) -> tuple[int, int]:
    """Offer the spans of passages ``start`` to ``stop`` to the lists of a block of queries.

    ``table``, float32 (rows, queries), has the inner products of the block's distinct words and the queries, and
    ``codes``, uint8 (rows, LANES), their bounds (:func:`xswe.phrases.kernels.bound.spell`). Returns the number of pairs
    of a tile and a query, and the number of these in which spans were scored.
    """
    waiting = Waiting(np.zeros(2, _PASSAGE), np.empty(2 * _MAX_WAITING, _PIECE), np.empty(2 * LANES, _RANGE))
    longest = int(np.diff(block.texts[start : stop + 1]).max(initial=0))
    workspace, limits = make_workspace(longest, task.max_size), make_limits(task)
    counts: tuple[int, int] = _scan(table, codes, block, start, stop, task, top, limits, waiting, workspace)
    return counts


@njit(**LEAN)
def _scan(  # noqa: C901 (likewise)
    table: np.ndarray,
    codes: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    task: Task,
    top: Top,
    limits: Limits,
    waiting: Waiting,
    workspace: Workspace,
) -> tuple[int, int]:
    """Search a block, for :func:`search_block`.

    Each passage goes through two turns of the loop, between which its data arrive in the cache:

        its turn      bound its tiles for all queries -> narrow them for each query left -> its pieces wait, are prefetched
        the next      score its pieces -> offer it to the lists that it can enter

    ``waiting`` has a place for each of both, and ``now`` is that of the passage whose turn it is. The last turn, ``stop``,
    has no passage of its own.
    """
    known = len(block.rows)
    table, codes, block, task = bare(table), bare(codes), bare(block), bare(task)
    top, limits, waiting, workspace = bare(top), bare(limits), bare(waiting), bare(workspace)
    min_size, max_size = task.min_size, task.max_size
    sizes, step, reach = max_size + 1 - min_size, part_size(max_size), TILE + max_size - 1
    parts, alive, width = (TILE + step - 1) // step, workspace.alive, task.queries
    everyone, seen, scored = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - task.queries), 0, 0
    now: Any = np.int64(0)
    lane: Any = np.int64(0)
    while lane < task.queries:
        update(limits, lane, task, top)
        lane += 1
    for text in range(start, stop + 1):
        passage = at(waiting.passages, now)
        if text < stop:
            begin, end = block.texts[text], block.texts[text + 1]
            if end - begin < min_size:
                continue
            passage.number = text
            tile = block.tiles[text]
            for first in range(begin, end, TILE):
                starts = end - first if end - first < TILE else TILE
                count = end - first if end - first < reach else reach
                level = tile * parts
                lanes_left = everyone & limits.open[0]
                lanes_left &= bound_tile(
                    codes,
                    block.rows,
                    known,
                    first,
                    count,
                    max_size,
                    block.levels,
                    level,
                    limits.bounds,
                    workspace.sums,
                    alive,
                )
                seen += task.queries
                while lanes_left:
                    lane = np.int64(trailing_zeros(lanes_left))
                    lanes_left &= lanes_left - np.uint64(1)
                    # From the first to the last part where this query's spans might exceed its limit.
                    bit, part, part_end = np.uint64(1) << np.uint64(lane), np.int64(0), (starts + step - 1) // step
                    while not alive[part] & bit:
                        part += 1
                    while not alive[part_end - 1] & bit:
                        part_end -= 1
                    low, high = part * step, part_end * step if part_end * step < starts else starts
                    low, high = narrow(
                        codes,
                        lane,
                        block.rows,
                        block.row_lengths,
                        first,
                        count,
                        low,
                        high,
                        block.levels,
                        level + part,
                        level + part_end,
                        at(limits.lanes, lane).score,
                        min_size,
                        max_size,
                        workspace.lines,
                    )
                    if low == high:
                        continue
                    if passage.pieces == _MAX_WAITING:
                        _score(waiting, now, table, block, task, limits, top, workspace)
                    piece = at(waiting.pieces, now * _MAX_WAITING + passage.pieces)
                    passage.pieces += 1
                    scored += 1
                    piece.lane, piece.first, piece.starts = lane, first + low, high - low
                    piece.count = high - low + max_size - 1
                    if piece.count > count - low:
                        piece.count = count - low
                    piece.place, piece.stride = place_of(sizes, first, starts, 0, low), starts
                    # Prefetch the data to score them.
                    for t in range(piece.first, piece.first + piece.count):
                        prefetch(table, block.rows[t] * width + lane)
                    for r in range(sizes):
                        place = piece.place + r * starts
                        for i in range(0, high - low + STARTS - 1, STARTS):
                            prefetch(block.inverse, place + (i if i < high - low else high - low - 1))
                tile += 1
            if passage.pieces == 0 and passage.good == 0:
                continue
        # The previous passage's data have arrived: score its waiting pieces, and offer it to the lists it can enter.
        now = 1 - now
        _score(waiting, now, table, block, task, limits, top, workspace)
        passage = at(waiting.passages, now)
        while passage.good:
            lane = np.int64(trailing_zeros(passage.good))
            passage.good &= passage.good - np.uint64(1)
            span = at(waiting.ranges, now * LANES + lane)
            take(table, lane, block, passage.number, span.low, span.high, task, top, workspace)
            update(limits, lane, task, top)
    return seen, scored


@njit(**INNER)
def _score(  # noqa: C901 (likewise)
    waiting: Waiting,
    which: int,
    table: np.ndarray,
    block: Block,
    task: Task,
    limits: Limits,
    top: Top,
    workspace: Workspace,
) -> None:
    """Score the waiting pieces of a passage, and mark the queries whose limit a span exceeds."""
    stand_alone()
    passage, products, width, max_size = at(waiting.passages, which), workspace.products, task.queries, task.max_size
    begin, inverse = block.texts[passage.number], block.inverse
    for k in range(which * _MAX_WAITING, which * _MAX_WAITING + passage.pieces):
        piece = at(waiting.pieces, k)
        lane, first, count, starts = piece.lane, piece.first, piece.count, piece.starts
        limit = at(limits.lanes, lane)
        if task.shared[lane] > limit.score + 3 * SLACK:  # another thread has found more
            update(limits, lane, task, top)
        for t in range(count):
            products[t] = table[block.rows[first + t] * width + lane]
        for t in range(count, starts + STARTS + max_size):
            products[t] = 0.0
        floor = limit.score if task.distinct else limit.exact
        found = False
        for i in range(0, starts, STARTS):
            place = piece.place + i
            sizes = piece.stride, task.min_size, max_size
            above = starts_above(address_of(products, i), address_of(inverse, place), *sizes, limit.score)
            # A phrase in many passages scores the same in all of them: comparing rounded scores here saves the search
            # for its place.
            while above and not found:
                start = i + np.int64(trailing_zeros(np.uint64(above)))
                above &= above - np.uint16(1)
                total, last = np.float32(0.0), start + max_size if start + max_size < count else count
                if start >= starts:
                    last = start
                for j in range(start, last):
                    total += products[j]
                    r = j + 1 - start - task.min_size
                    if r >= 0:
                        length = inverse[piece.place + r * piece.stride + start]
                        if length > 0 and _rounded(total * length) > floor:
                            found = True
                            break
            if found:
                break
        if found:
            bit, span = np.uint64(1) << np.uint64(lane), at(waiting.ranges, which * LANES + lane)
            if not passage.good & bit:
                span.low = first - begin
            span.high = first - begin + starts
            passage.good |= bit
    passage.pieces = 0
