"""The compiled search: the best spans of many passages for a block of queries.

A word's inner products with the queries of a block come from a table (one row a piece, one column a query) that one matrix
product made for all passages of a block: per passage they are gathered and added, not multiplied out. A span's inner
product is the difference of two prefix sums, its cosine that times its inverse length.

Before any span is looked at, a bound is: with c_t the cosine of the query and word t,

    cos(q, span) = sum_t (|w_t| / |span|) c_t  <=  sqrt(spread * sum_t max(c_t, 0)^2)

by Cauchy and Schwarz, where spread >= sum_t |w_t|^2 / |span|^2 for every span that begins in a part of a tile, and the
sum is over that part and as many more as such a span can reach. It costs four operations a word instead of three a span,
and is nearly tight where words are nearly orthogonal. A (tile, query) whose bound is below the query's k-th best score is
done; the result is the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.memory import LEAN, prefetch_row
from xswe.mining.phrases.norms import TILE, Block, part_size, place_in_text, place_of
from xswe.mining.phrases.top import Top, insert

STEPS = np.float32(2.0**20)
SLACK = np.float32(2e-5)  # float32 rounding of a score, many times over
NONE = np.float32(-4.0)  # below every score
_AHEAD = 12  # rows of the table that are asked for before they are read
_SEVERAL = 4  # parts that a span can reach beyond the one it begins in
ONE_BY_ONE = 16  # queries up to which spans are scored for one after the other


@njit(inline="always")
def _gather(
    table: np.ndarray, ids: np.ndarray, words: np.ndarray, first: int, count: int, lanes: np.ndarray, out: np.ndarray
) -> None:
    """out[t, c] = inner product of word first + t with query lanes[c]."""
    width = len(lanes)
    whole = width == table.shape[1]
    for t in range(count):
        for c in range(width):
            out[t, c] = 0.0
        for p in range(words[first + t], words[first + t + 1]):
            row = ids[p]
            if whole:
                if p + _AHEAD < len(ids):
                    prefetch_row(table, ids[p + _AHEAD])
                for c in range(width):
                    out[t, c] += table[row, c]
            else:
                for c in range(width):
                    out[t, c] += table[row, lanes[c]]


@njit(**LEAN, fastmath=True)
def _mass(
    products: np.ndarray,
    count: int,
    width: int,
    reach: int,
    word_inverse: np.ndarray,
    first: int,
    spread: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[c] >= the squared cosine of query c and any span of up to ``reach`` words, of those with a positive one.

    Words are summed part by part; ``spread`` is that of the spans that begin in each part, ``sums`` room for the sums, and
    for those of four parts more.
    """
    step, none = part_size(reach), np.float32(0.0)
    parts = (count + step - 1) // step
    for part in range(parts + _SEVERAL):  # and zeros behind
        total = sums[part]
        for c in range(width):
            total[c] = none
        t, stop = part * step, min(part * step + step, count)
        while t + 4 < stop:  # five words a pass: their sums are loaded and stored once
            v, w, x = products[t], products[t + 1], products[t + 2]
            y, z = products[t + 3], products[t + 4]
            i, j, k = word_inverse[first + t], word_inverse[first + t + 1], word_inverse[first + t + 2]
            m, n = word_inverse[first + t + 3], word_inverse[first + t + 4]
            for c in range(width):
                d, e, f = max(v[c] * i, none), max(w[c] * j, none), max(x[c] * k, none)
                g, h = max(y[c] * m, none), max(z[c] * n, none)
                total[c] += d * d + e * e + f * f + g * g + h * h
            t += 5
        while t < stop:
            v, i = products[t], word_inverse[first + t]
            for c in range(width):
                d = max(v[c] * i, none)
                total[c] += d * d
            t += 1
    for c in range(width):
        out[c] = none
    for part in range(min(parts, len(spread))):
        v, w, x, y, z = sums[part], sums[part + 1], sums[part + 2], sums[part + 3], sums[part + 4]
        for c in range(width):
            out[c] = max(out[c], (v[c] + w[c] + x[c] + y[c] + z[c]) * spread[part])


@njit(**LEAN, fastmath=True)
def _best(
    products: np.ndarray,
    chosen: np.ndarray,
    count: int,
    starts: int,
    first: int,
    min_size: int,
    max_size: int,
    inverse: np.ndarray,
    prefix: np.ndarray,
    best: np.ndarray,
) -> None:
    """best[c] = highest cosine of column chosen[c] with any span of a tile.

    Columns are the inner loop: neighbours in memory, and a running maximum for each. Four sizes share one pass over it.
    """
    width = len(chosen)
    for c in range(width):
        prefix[0, c] = 0.0
        best[c] = NONE
    for t in range(count):
        for c in range(width):
            prefix[t + 1, c] = prefix[t, c] + products[t, chosen[c]]
    sizes = max_size + 1 - min_size
    for i in range(starts):
        most = min(max_size, count - i)
        size = min_size
        while size + 3 <= most:
            e, place = i + size, place_of(sizes, first, starts, size - min_size, i)
            v, w = inverse[place], inverse[place + starts]
            x, y = inverse[place + 2 * starts], inverse[place + 3 * starts]
            for c in range(width):
                base = prefix[i, c]
                a = max((prefix[e, c] - base) * v, (prefix[e + 1, c] - base) * w)
                b = max((prefix[e + 2, c] - base) * x, (prefix[e + 3, c] - base) * y)
                best[c] = max(best[c], max(a, b))
            size += 4
        while size <= most:
            v = inverse[place_of(sizes, first, starts, size - min_size, i)]
            for c in range(width):
                best[c] = max(best[c], (prefix[i + size, c] - prefix[i, c]) * v)
            size += 1


@njit(**LEAN, fastmath=True)
def _best_of_one(
    products: np.ndarray,
    column: int,
    count: int,
    starts: int,
    first: int,
    min_size: int,
    sizes: int,
    inverse: np.ndarray,
    prefix: np.ndarray,
    best: np.ndarray,
) -> np.float32:
    """The highest cosine of one column with any span of a tile; 0 if all are negative.

    Starts are the inner loop, always ``TILE`` of them, which compiles to whole vectors: the sums of spans that begin behind
    the last word are 0, whatever number stands where their inverse length would. Four sizes share one pass over it.
    """
    total = np.float32(0.0)
    prefix[0] = total
    for t in range(count):
        total += products[t, column]
        prefix[t + 1] = total
    for t in range(count + 1, len(prefix)):
        prefix[t] = total
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
    return np.rint(score * STEPS) / STEPS


@njit(**LEAN)
def _any_above(
    products: np.ndarray,
    column: int,
    count: int,
    starts: int,
    first: int,
    min_size: int,
    max_size: int,
    inverse: np.ndarray,
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
                total += products[j, column]
                r = j + 1 - i - min_size
                if r >= 0 and _rounded(total * inverse[place_of(sizes, first, starts, r, i)]) > floor:
                    return True
    return False


@njit(inline="always")
def _key(ids: np.ndarray, first: int, last: int) -> np.uint64:
    """A hash of the rows of a span: equal for equal phrases."""
    key = np.uint64(0xCBF29CE484222325)
    for p in range(first, last):
        key = (key ^ np.uint64(ids[p])) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


@njit(nogil=True, cache=True)
def _take(
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
) -> None:
    """Offer a passage's best spans to a query's list: the best one, the best one that does not overlap it, and so on.

    Sums run along the span here, so that a score does not depend on what stands before it.
    """
    words, inverse, begin = block.words, block.inverse, block.texts[text]
    count, sizes = block.texts[text + 1] - begin, max_size + 1 - min_size
    products, taken = np.zeros(count, np.float32), np.zeros(count, np.bool_)
    for t in range(count):
        for p in range(words[begin + t], words[begin + t + 1]):
            products[t] += table[block.ids[p], lane]
    while True:
        best, at, until = NONE, -1, -1
        for i in range(count):
            total = np.float32(0.0)
            for j in range(i, min(i + max_size, count)):
                if taken[j]:
                    break
                total += products[j]
                r = j + 1 - i - min_size
                if r >= 0:
                    score = _rounded(total * inverse[place_in_text(sizes, begin, count, r, i)])
                    if score > best:
                        best, at, until = score, i, j + 1
        if at < 0 or best <= floor:
            return
        key = _key(block.names, words[begin + at], words[begin + until])
        placed = insert(top, lane, best, base + text, at, until, key, distinct)
        # A phrase to be counted may come with a score that rounding has moved a little below its own.
        if not placed and (not distinct or best < top.scores[lane, -1] - SLACK):
            return
        for j in range(at, until):
            taken[j] = True


@njit(nogil=True, cache=True)
def search_block(  # noqa: C901 (one loop over passages and tiles, whose buffers all steps share)
    table: np.ndarray,
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
        table: float32 (rows, queries), inner products of the rows and the queries.
        block: the passages; its ``ids`` are rows of ``table``.
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
    ids, words, texts, inverse = block.ids, block.words, block.texts, block.inverse
    scores, used = top.scores, top.used
    width = table.shape[1]
    height = TILE + max_size
    products, prefix = np.empty((height, width), np.float32), np.empty((height + 1, width), np.float32)
    sums = np.empty((height + _SEVERAL, width), np.float32)
    line, line_best = np.empty(height + TILE, np.float32), np.empty(TILE, np.float32)
    sizes = max_size + 1 - min_size
    mass, best = np.empty(width, np.float32), np.empty(width, np.float32)
    every = np.arange(width)
    lanes, chosen, good = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.bool_)
    limits, exact = np.empty(width, np.float32), np.empty(width, np.float32)  # with room for rounding, and without
    seen, scored = 0, 0
    for c in range(width):
        exact[c] = max(floors[c], scores[c, -1] if used[c] == scores.shape[1] and not distinct else NONE)
        limits[c] = exact[c] - SLACK
    for text in range(start, stop):
        n = 0
        if len(allowed):
            for c in range(width):
                if allowed[text, c]:
                    lanes[n] = c
                    n += 1
        else:
            n = width
        if n == 0 or texts[text + 1] - texts[text] < min_size:
            continue
        own = every if n == width else lanes[:n]
        for c in range(n):
            good[c] = False
        tile = block.tiles[text]
        for first in range(texts[text], texts[text + 1], TILE):
            left = texts[text + 1] - first
            starts, count = min(TILE, left), min(TILE + max_size - 1, left)
            _gather(table, ids, words, first, count, own, products)
            m = 0
            if prune:
                _mass(products, count, n, max_size, block.word_inverse, first, block.spread[tile], sums, mass)
            for c in range(n):
                limit = limits[own[c]]
                if prune and not distinct and exact[own[c]] >= 1:
                    continue  # nothing is above a list of phrases that are the query's own
                if not prune or limit <= 0 or mass[c] >= limit * limit:
                    chosen[m] = c
                    m += 1
            seen += n
            scored += m
            if 0 < m <= ONE_BY_ONE:
                for c in range(m):
                    lane = own[chosen[c]]
                    highest = _best_of_one(
                        *(products, chosen[c], count, starts, first, min_size, sizes, inverse, line, line_best)
                    )
                    good[chosen[c]] |= highest > limits[lane] and _any_above(
                        products,
                        chosen[c],
                        count,
                        starts,
                        first,
                        min_size,
                        max_size,
                        inverse,
                        line_best,
                        limits[lane],
                        limits[lane] if distinct else exact[lane],
                    )
            elif m:
                _best(products, chosen[:m], count, starts, first, min_size, max_size, inverse, prefix, best)
                for c in range(m):
                    good[chosen[c]] |= best[c] > limits[own[chosen[c]]]
            tile += 1
        for c in range(n):
            if good[c]:
                lane = own[c]
                _take(table, lane, block, text, min_size, max_size, base, floors[lane], distinct, top)
                if used[lane] == scores.shape[1]:
                    low = scores[lane, -1] - (SLACK if distinct else np.float32(0.0))
                    exact[lane] = max(floors[lane], low)
                    limits[lane] = exact[lane] - SLACK
    return seen, scored
