"""The k best of each row and column of a score matrix that is computed tile by tile.

One sweep serves both directions. Each score is compared with the k-th best of its row and of its column before it leaves
the processor's registers, and only a tile that holds a winner is looked at again: the sweep costs next to nothing beside
the products. Lists are ordered by falling score, equal scores by rising id, so that the result does not depend on the order
in which blocks arrive.

The nearest of many stored vectors to one: an estimate from bytes, and then exactly what the estimate cannot rule out.

A question reads a byte a number, which costs memory a quarter of the vectors themselves. How far an estimate can be from
the truth is known, so that all rows that may be among the k nearest are found, and only those are scored in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import LEAN, address_of, prefetch_row, trailing_zeros
from xswe.io.parallel import over_blocks
from xswe.io.products import COLUMNS, ROWS, Room, columns_at_once, make_room, multiply_tile, row_products
from xswe.io.ragged import read_only
from xswe.search.lists import empty_lists
from xswe.search.vectors import Vectors


class Lists(NamedTuple):
    """Lists of the k best that are being filled, of vectors that follow each other."""

    scores: np.ndarray  # float32 (n, k)
    ids: np.ndarray  # int32 (n, k)
    limits: np.ndarray  # float32 (n,), only scores above enter; never below the k-th best
    first: int  # id of the first of the vectors


def nobody(count: int) -> Lists:
    """Return full lists for ``count`` vectors, which nothing can enter."""
    return Lists(*empty_lists(count, 1), np.full(count, np.inf, np.float32), 0)


@njit(inline="always")
def push(scores: np.ndarray, ids: np.ndarray, score: np.float32, new: np.int64) -> None:
    """Insert into one list a score above its last; among equals the new one comes last."""
    place = scores.shape[0] - 1
    while place > 0 and scores[place - 1] < score:
        scores[place], ids[place] = scores[place - 1], ids[place - 1]
        place -= 1
    scores[place], ids[place] = score, new


@njit(**LEAN)
def _enter(lists: Lists, place: int, score: np.float32, new: np.int64) -> None:
    """Insert a score into one of the lists, if it is above its limit."""
    if score > lists.limits[place]:
        push(lists.scores[place], lists.ids[place], score, new)
        last = lists.scores[place, lists.scores.shape[1] - 1]
        if last > lists.limits[place]:
            lists.limits[place] = last


@njit(**LEAN)
def _sweep(left: np.ndarray, right: np.ndarray, dim: int, rows: Lists, columns: Lists, within: bool, room: Room) -> None:
    """See :func:`sweep`."""
    count, width = len(rows.limits), len(columns.limits)
    products, above = address_of(room.products, 0), address_of(room.above, 0)
    step = columns_at_once(dim)
    for part in range(0, width, step):
        for row in range(0, count, ROWS):
            high = min(ROWS, count - row)
            for i in range(high):
                room.limits[i] = rows.limits[row + i]
            for column in range(part, min(part + step, width), COLUMNS):
                if within and columns.first + column >= rows.first + row + high - 1:
                    break
                wide = min(COLUMNS, width - column)
                for j in range(wide):
                    room.limits[ROWS + j] = columns.limits[column + j]
                tile = address_of(left, row * dim), address_of(right, column * dim)
                if not multiply_tile(tile[0], tile[1], dim, address_of(room.limits, 0), products, above):
                    continue
                for i in range(high):
                    bits = np.uint64(room.above[i])
                    while bits:
                        place = np.int64(trailing_zeros(bits))
                        bits &= bits - np.uint64(1)
                        here, there = rows.first + row + i, columns.first + column + place
                        if place >= wide or (within and there >= here):
                            break
                        score = room.products[i * COLUMNS + place]
                        _enter(rows, row + i, score, there)
                        _enter(columns, column + place, score, here)
                    room.limits[i] = rows.limits[row + i]


def sweep(left: np.ndarray, right: np.ndarray, rows: Lists, columns: Lists, within: bool = False) -> None:
    """Update the lists of rows and columns with all their inner products, in place.

    Blocks, packed by :func:`xswe.io.products.pack` to ``ROWS`` and ``COLUMNS``, must come in rising order of rows and of
    columns for equal scores to be kept by rising id. ``within``: both are of the same vectors, and only columns before the
    row count.
    """
    if len(rows.limits) and len(columns.limits):
        dim = len(left) // (-(-len(rows.limits) // ROWS) * ROWS)
        _sweep(left, right, dim, rows, columns, within, make_room())


@njit(inline="always")
def _before(score: np.float32, new: np.int64, other_score: np.float32, other: np.int64) -> bool:
    return bool(score > other_score or (score == other_score and (other < 0 or new < other)))


def merge(
    scores: np.ndarray, ids: np.ndarray, rows: np.ndarray, more_scores: np.ndarray, more_ids: np.ndarray, names: np.ndarray
) -> None:
    """Merge lists of candidates, float32 and int32 (m, k'), in any order into others (n, k), in place.

    An id that is there already keeps its higher score; ``NONE`` is no candidate. ``rows``, int64 (m,), is the row of each
    list of candidates, empty for row i = list i; ``names``, int64, what a candidate's id stands for, empty where it stands
    for itself.
    """
    _merge(scores, ids, *map(read_only, (rows, more_scores, more_ids, names)))


@njit(**LEAN)
def _merge(
    scores: np.ndarray, ids: np.ndarray, rows: np.ndarray, more_scores: np.ndarray, more_ids: np.ndarray, names: np.ndarray
) -> None:
    """See :func:`merge`."""
    last = scores.shape[1] - 1
    for m in range(more_scores.shape[0]):
        row = rows[m] if len(rows) else m
        own_scores, own_ids = scores[row], ids[row]
        for c in range(more_scores.shape[1]):
            if more_ids[m, c] < 0:
                continue
            new = names[more_ids[m, c]] if len(names) else np.int64(more_ids[m, c])
            score = more_scores[m, c]
            if not _before(score, new, own_scores[last], own_ids[last]):
                continue
            hole = last
            for place in range(last + 1):
                if own_ids[place] == new:
                    hole = place if score > own_scores[place] else -1
                    break
            if hole < 0:
                continue
            while hole > 0 and _before(score, new, own_scores[hole - 1], own_ids[hole - 1]):
                own_scores[hole], own_ids[hole] = own_scores[hole - 1], own_ids[hole - 1]
                hole -= 1
            own_scores[hole], own_ids[hole] = score, new


@njit(**LEAN)
def count_members(clusters: np.ndarray, bounds: np.ndarray) -> None:
    """Add how many lines (of clusters int32 (n, p), negative for none) each has to ``bounds[cluster + 1]``, int64."""
    for cluster in clusters.flat:
        if cluster >= 0:
            bounds[cluster + 1] += 1


@njit(**LEAN)
def list_members(clusters: np.ndarray, free: np.ndarray, lines: np.ndarray) -> None:
    """Write the lines of every cluster, rising, from ``free[cluster]`` on, which moves behind them."""
    for line in range(clusters.shape[0]):
        for place in range(clusters.shape[1]):
            cluster = clusters[line, place]
            if cluster >= 0:
                lines[free[cluster]] = line
                free[cluster] += 1


_AHEAD = 32  # rows that memory is asked for in advance
_FEWEST = 1 << 13  # rows of a thread: a fifth of a millisecond
_ROUNDING = 1e-5  # of float32, in a score, many times over
_TOGETHER = 8  # queries that share a pass
_SCORES = 1 << 24  # scores of a pass, at most, unless one query has more
_SHORT = 128  # the longest list that is put in order sooner by insertion than by sorting
_EVERY = np.zeros(0, np.int32)  # in the place of some rows: all of them


class Coded(NamedTuple):
    """Vectors beside their codes."""

    codes: np.ndarray  # int8 (n, d), of :func:`make_codes`
    scales: np.ndarray  # float32 (n,); rows where it is NaN are left out
    vectors: Vectors  # the n vectors
    error: float  # the largest distance of a row of the codes from its vector
    names: np.ndarray | None = None  # int64 (n,), what the rows are called; None for their places


def make_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Round unit vectors, float32 (n, d), rows of norm 1 or zero, to bytes.

    Returns the bytes, int8 (n, d); what a row of them is multiplied with to have norm 1, float32 (n,), NaN for a zero row;
    and the largest distance of a row from what stands for it.
    """
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    return codes, scales, float(_round(vectors, codes, scales)) ** 0.5


@njit(**LEAN)
def _round(vectors: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> np.float32:
    """Fill codes and scales; returns the largest squared distance."""
    worst = np.float32(0.0)
    for i in range(len(vectors)):
        largest = np.float32(0.0)
        for j in range(vectors.shape[1]):
            largest = max(largest, abs(vectors[i, j]))
        factor = np.float32(127.0) / largest if largest > 0 else np.float32(0.0)
        squares = np.int32(0)
        for j in range(vectors.shape[1]):
            codes[i, j] = np.int8(np.rint(vectors[i, j] * factor))
            squares += np.int32(codes[i, j]) * np.int32(codes[i, j])
        scales[i] = np.float32(1.0) / np.sqrt(np.float32(squares)) if squares > 0 else np.float32(np.nan)
        distance = np.float32(0.0)
        for j in range(vectors.shape[1]):
            difference = vectors[i, j] - np.float32(codes[i, j]) * scales[i]
            distance += difference * difference
        worst = max(worst, distance)  # a zero row has NaN, which max leaves out
    return worst


@njit(**LEAN)
def _estimate(
    codes: np.ndarray,
    scales: np.ndarray,
    queries: np.ndarray,
    rows: np.ndarray,
    start: int,
    stop: int,
    out: np.ndarray,
    best: np.ndarray,
    ids: np.ndarray,
) -> None:
    """Fill ``out`` from ``start`` to ``stop`` with inner products, and keep the best of each query; NaN enters nowhere."""
    some, last = len(rows) > 0, best.shape[1] - 1
    for i in range(start, stop):
        ahead = min(i + _AHEAD, stop - 1)
        prefetch_row(codes, rows[ahead] if some else ahead)
        row = rows[i] if some else i
        line = codes[row]
        for q in range(len(queries)):
            query, total = queries[q], np.int32(0)
            for j in range(len(query)):
                total = np.int32(total + np.int32(np.int32(line[j]) * np.int32(query[j])))
            score = np.float32(total) * scales[row]
            out[q, i] = score
            if score > best[q, last]:
                push(best[q], ids[q], score, row)


@njit(**LEAN)
def _order(scores: np.ndarray, names: np.ndarray, best: np.ndarray, ids: np.ndarray) -> None:
    """Fill lists, of no more than there are, with the best by falling score, equal ones by rising name.

    By insertion, which takes the square of their length: for short lists (:data:`_SHORT`).
    """
    count = 0
    for i in range(len(scores)):
        if count < len(best):
            place = count
            count += 1
        elif _before(scores[i], names[i], best[count - 1], ids[count - 1]):
            place = count - 1
        else:
            continue
        while place > 0 and _before(scores[i], names[i], best[place - 1], ids[place - 1]):
            best[place], ids[place] = best[place - 1], ids[place - 1]
            place -= 1
        best[place], ids[place] = scores[i], names[i]


@njit(**LEAN)
def _round_queries(queries: np.ndarray, levels: int, error: float, rounded: np.ndarray, slack: np.ndarray) -> None:
    """Fill in queries in whole numbers up to ``levels``, and how far two estimates are off with each; -1 if it is zero."""
    for q in range(len(queries)):
        largest = np.float32(0.0)
        for number in queries[q]:
            largest = max(largest, abs(number))
        slack[q] = np.float32(-1.0)
        if largest > 0:
            step, squares = largest / np.float32(levels), np.float32(0.0)
            for j in range(queries.shape[1]):
                rounded[q, j] = np.int16(np.rint(queries[q, j] / step))
                difference = queries[q, j] - np.float32(rounded[q, j]) * step
                squares += difference * difference
            slack[q] = np.float32(2 * (np.sqrt(squares) * (1 + error) + error + _ROUNDING) / step)


def nearest(
    queries: np.ndarray, k: int, coded: Coded, rows: np.ndarray | None = None, threads: int = 1
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Find the k vectors with the largest inner products with each query; a few queries share a pass over the codes.

    Queries are float32 (q, d), of norm 1, or zero, which have none; ``rows``, int32, rising, are those to look at, None for
    all. Returns of each query their scores, float32 (k,), best first, and the names of their rows, int64 (k,), of equal
    scores the lower first; fewer than k where there are no more.
    """
    codes, queries = coded.codes, np.ascontiguousarray(queries)
    levels = min(32_767, (2**31 - 1) // (127 * codes.shape[1]))  # the sum of a row fits 32 bits
    rounded, slack = np.empty(queries.shape, np.int16), np.empty(len(queries), np.float32)
    _round_queries(queries, levels, coded.error, rounded, slack)
    count = len(codes) if rows is None else len(rows)
    asked = [q for q, off in enumerate(slack.tolist()) if off >= 0 and count]
    found = [(np.zeros(0, np.float32), np.zeros(0, np.int64)) for _ in queries]
    most = int(max(1, min(_TOGETHER, _SCORES // max(1, count))))
    for start in range(0, len(asked), most):
        some = asked[start : start + most]
        estimated = _estimated(rounded[some], min(k, count), slack[some], coded, rows, threads)
        for place, wanted in zip(some, estimated, strict=True):
            scores = row_products(coded.vectors.take(wanted), queries[place])
            names = (wanted if coded.names is None else coded.names[wanted]).astype(np.int64)
            if k > _SHORT:
                order = np.lexsort((names, -scores))[:k]
                found[place] = scores[order], names[order]
                continue
            found[place] = np.empty(min(k, len(names)), np.float32), np.empty(min(k, len(names)), np.int64)
            _order(scores, names, *found[place])
    return found


def _estimated(
    rounded: np.ndarray, k: int, slack: np.ndarray, coded: Coded, rows: np.ndarray | None, threads: int
) -> Iterator[np.ndarray]:
    """Yield, for each of some rounded queries, the rows that may be among its k best."""
    count = len(coded.codes) if rows is None else len(rows)
    out = np.empty((len(rounded), count), np.float32)

    def work(start: int, stop: int) -> np.ndarray:
        best, ids = empty_lists(len(rounded), k)
        given = read_only(coded.codes), read_only(coded.scales), rounded, _EVERY if rows is None else rows
        _estimate(*given, start, stop, out, best, ids)
        return best

    lists = over_blocks(work, count, threads, _FEWEST)
    bests = lists[0][:, -1] if len(lists) == 1 else np.sort(np.concatenate(lists, axis=1), axis=1)[:, -k]
    for scores, best, off in zip(out, bests.tolist(), slack.tolist(), strict=True):
        wanted = np.flatnonzero(scores >= best - off) if best > -np.inf else np.flatnonzero(scores == scores)
        yield wanted if rows is None else rows[wanted]
