"""The compiled search: the best spans of many passages for a block of queries.

A word's inner products with the queries of a block come from a table (one row a distinct word, one column a query) that one
matrix product made for all passages of a block: per passage they are gathered, not multiplied out. A span's inner product
is the difference of two prefix sums, its cosine that times its inverse length.

Before any span is looked at, a bound is (see :mod:`xswe.mining.phrases.bound`): a (tile, query) whose bound is below the
query's k-th best score is done; the result is the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.memory import LEAN
from xswe.mining.phrases.bound import LANES, SEVERAL, STEPS, bound_tile
from xswe.mining.phrases.distinct import key_of
from xswe.mining.phrases.norms import TILE, Block, place_in_text, place_of
from xswe.mining.phrases.top import Top, insert

_DIGITS = np.float32(2.0**20)
SLACK = np.float32(2e-5)  # float32 rounding of a score, many times over
NONE = np.float32(-4.0)  # below every score


@njit(**LEAN)
def _sum_up(table: np.ndarray, lane: int, rows: np.ndarray, first: int, count: int, out: np.ndarray) -> None:
    """out[t] = inner product of a query and the first t words of a tile; the last one again behind them.

    Four words make one step of the one chain of additions, so that it is not what is waited for.
    """
    total = np.float32(0.0)
    out[0] = total
    t = 0
    while t + 4 <= count:
        v, w = table[rows[first + t], lane], table[rows[first + t + 1], lane]
        x, y = table[rows[first + t + 2], lane], table[rows[first + t + 3], lane]
        w += v
        y += x
        out[t + 1], out[t + 2], out[t + 3] = total + v, total + w, total + (w + x)
        total += w + y
        out[t + 4] = total
        t += 4
    while t < count:
        total += table[rows[first + t], lane]
        t += 1
        out[t] = total
    for t in range(count + 1, len(out)):
        out[t] = total


@njit(**LEAN, fastmath=True)
def _best(
    prefix: np.ndarray, starts: int, first: int, min_size: int, sizes: int, inverse: np.ndarray, best: np.ndarray
) -> np.float32:
    """The highest cosine of one query with any span of a tile; 0 if all are negative. ``best`` has it for each start.

    Starts are the inner loop, always ``TILE`` of them, which compiles to whole vectors: the sums of spans that begin behind
    the last word are 0, whatever number stands where their inverse length would. Four sizes share one pass over it.
    """
    for i in range(TILE):
        best[i] = 0.0
    r = 0
    while r + 4 <= sizes:
        ends = prefix[min_size + r :]
        scale = inverse[place_of(sizes, first, starts, r, 0) :]
        a, b, c = scale[starts:], scale[2 * starts :], scale[3 * starts :]
        for i in range(TILE):
            base = prefix[i]
            v = max((ends[i] - base) * scale[i], (ends[i + 1] - base) * a[i])
            w = max((ends[i + 2] - base) * b[i], (ends[i + 3] - base) * c[i])
            best[i] = max(best[i], max(v, w))
        r += 4
    while r < sizes:
        ends, scale = prefix[min_size + r :], inverse[place_of(sizes, first, starts, r, 0) :]
        for i in range(TILE):
            best[i] = max(best[i], (ends[i] - prefix[i]) * scale[i])
        r += 1
    highest = np.float32(0.0)
    for i in range(TILE):
        highest = max(highest, best[i])
    return highest


@njit(inline="always")
def _rounded(score: np.float32) -> np.float32:
    """A cosine to 20 binary digits: what is left of rounding errors then is no difference, and a phrase's own is 1."""
    return np.rint(score * _DIGITS) / _DIGITS


@njit(**LEAN)
def _any_above(
    table: np.ndarray,
    lane: int,
    block: Block,
    first: int,
    count: int,
    starts: int,
    min_size: int,
    max_size: int,
    best: np.ndarray,
    limit: np.float32,
    floor: np.float32,
) -> bool:
    """Tell whether a span that begins where ``best`` is above ``limit`` scores above ``floor``, summed along the span.

    A phrase that stands in many passages scores the same in all of them: this spares them the search for its place.
    """
    sizes = max_size + 1 - min_size
    for i in range(starts):
        if best[i] > limit:
            total = np.float32(0.0)
            for j in range(i, min(i + max_size, count)):
                total += table[block.rows[first + j], lane]
                r = j + 1 - i - min_size
                if r >= 0 and _rounded(total * block.inverse[place_of(sizes, first, starts, r, i)]) > floor:
                    return True
    return False


@njit(nogil=True, cache=True)
def _take(  # noqa: C901 (one search over spans)
    table: np.ndarray,
    lane: int,
    block: Block,
    text: int,
    min_size: int,
    max_size: int,
    base: int,
    floor: np.float32,
    distinct: bool,
    top: Top,
    prefix: np.ndarray,
    best_of_tile: np.ndarray,
) -> None:
    """Offer a passage's best spans to a query's list: the best one, the best one that does not overlap it, and so on.

    Sums run along the span here, so that a score does not depend on what stands before it. ``prefix`` and ``best_of_tile``
    are room for the fast scores, which tell the few starts that are worth it.
    """
    words, inverse, begin = block.words, block.inverse, block.texts[text]
    count, sizes = block.texts[text + 1] - begin, max_size + 1 - min_size
    highest, taken = np.empty(count, np.float32), np.zeros(count, np.bool_)
    for first in range(0, count, TILE):
        starts = min(TILE, count - first)
        _sum_up(table, lane, block.rows, begin + first, min(TILE + max_size - 1, count - first), prefix)
        _best(prefix, starts, begin + first, min_size, sizes, inverse, best_of_tile)
        for i in range(starts):
            highest[first + i] = best_of_tile[i] + SLACK
    while True:
        best, at, until = NONE, -1, -1
        least = max(floor, top.scores[lane, -1] - SLACK) if top.used[lane] == top.scores.shape[1] else floor
        for i in range(count):
            if highest[i] <= max(best, least):
                continue
            total = np.float32(0.0)
            for j in range(i, min(i + max_size, count)):
                if taken[j]:
                    break
                total += table[block.rows[begin + j], lane]
                r = j + 1 - i - min_size
                if r >= 0:
                    score = _rounded(total * inverse[place_in_text(sizes, begin, count, r, i)])
                    if score > best:
                        best, at, until = score, i, j + 1
        if at < 0 or best <= floor:
            return
        key = key_of(block.names, words[begin + at], words[begin + until])
        placed = insert(top, lane, best, base + text, at, until, key, distinct)
        # A phrase to be counted may come with a score that rounding has moved a little below its own.
        if not placed and (not distinct or best < top.scores[lane, -1] - SLACK):
            return
        for j in range(at, until):
            taken[j] = True


@njit(nogil=True, cache=True)
def search_block(
    table: np.ndarray,
    codes: np.ndarray,
    block: Block,
    start: int,
    stop: int,
    min_size: int,
    max_size: int,
    floors: np.ndarray,
    allowed: np.ndarray,
    prune: bool,
    distinct: bool,
    base: int,
    top: Top,
) -> tuple[int, int]:
    """Offer the spans of passages ``start`` to ``stop`` to the lists of a block of queries.

    Args:
        table: float32 (rows, queries), inner products of the block's distinct words and the queries.
        codes: uint8 (rows, LANES), what the bound knows of them, see :func:`xswe.mining.phrases.bound.spell`.
        block: the passages.
        start: first passage.
        stop: one past the last.
        min_size: words of the shortest span.
        max_size: words of the longest.
        floors: float32 (queries,), scores up to this cannot enter the lists.
        allowed: bool (passages, queries), where a first stage wants to look; (0, 0) for everywhere.
        prune: use the bound.
        distinct: keep one entry for equal phrases, and count them.
        base: number of passage 0.
        top: the lists, see :mod:`xswe.mining.phrases.top`.

    Returns:
        How many pairs of a tile and a query there were, and in how many of them spans were scored.
    """
    rows, texts, inverse = block.rows, block.texts, block.inverse
    width, sizes = table.shape[1], max_size + 1 - min_size
    height = TILE + max_size
    sums, bounds = np.empty((height + SEVERAL, LANES), np.uint16), np.empty(LANES, np.float32)
    prefix, best = np.empty(height + TILE, np.float32), np.empty(TILE, np.float32)
    chosen, promising = np.empty(width + 1, np.int64), np.empty(width, np.int64)
    good = np.zeros(width, np.bool_)
    # Scores a span must be above: with room for rounding, squared in steps of the bound, and without room.
    limits, squares, exact = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    seen, scored = 0, 0
    bounds[:] = np.inf
    for c in range(width):
        _set_limits(c, top, floors, exact, limits, squares, prune, distinct)
    for text in range(start, stop):
        n = width if len(allowed) == 0 else allowed[text].sum()
        if n == 0 or texts[text + 1] - texts[text] < min_size:
            continue
        tile, hits = block.tiles[text], 0
        for first in range(texts[text], texts[text + 1], TILE):
            left = texts[text + 1] - first
            starts, count = min(TILE, left), min(TILE + max_size - 1, left)
            if prune:
                bound_tile(codes, rows, first, count, max_size, block.spread[tile], sums, bounds)
            m = 0
            for c in range(width):
                chosen[m] = c
                m += bounds[c] >= squares[c] and (n == width or allowed[text, c])
            seen += n
            scored += m
            for c in chosen[:m]:
                if good[c]:
                    continue
                _sum_up(table, c, rows, first, count, prefix)
                if _best(prefix, starts, first, min_size, sizes, inverse, best) > limits[c]:
                    floor = limits[c] if distinct else exact[c]
                    if _any_above(table, c, block, first, count, starts, min_size, max_size, best, limits[c], floor):
                        good[c] = True
                        promising[hits] = c
                        hits += 1
            tile += 1
        for c in promising[:hits]:
            good[c] = False
            _take(table, c, block, text, min_size, max_size, base, floors[c], distinct, top, prefix, best)
            _set_limits(c, top, floors, exact, limits, squares, prune, distinct)
    return seen, scored


@njit(inline="always")
def _set_limits(
    c: int,
    top: Top,
    floors: np.ndarray,
    exact: np.ndarray,
    limits: np.ndarray,
    squares: np.ndarray,
    prune: bool,
    distinct: bool,
) -> None:
    """Bring what a span must be above for query ``c`` up to date with its list."""
    exact[c] = floors[c]
    if top.used[c] == top.scores.shape[1]:
        exact[c] = max(floors[c], top.scores[c, -1] - (SLACK if distinct else np.float32(0.0)))
    limits[c] = exact[c] - SLACK
    squares[c] = limits[c] * limits[c] * STEPS if limits[c] > 0 else np.float32(-1.0)
    if prune and not distinct and exact[c] >= 1:
        squares[c] = np.inf  # nothing is above a list of phrases that are the query's own
