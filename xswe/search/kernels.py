"""The k best of each row and column of a score matrix that is computed tile by tile.

One sweep serves both directions. Each score is compared with the k-th best of its row and of its column before it leaves
the processor's registers, and only a tile that holds a winner is looked at again: the sweep costs next to nothing compared
with the products. Lists are ordered by descending score, equal scores by ascending id, so the result does not depend on the
order in which blocks arrive.

The stored vectors nearest to a query: an estimate from int8 codes, then exact scores of what the estimate cannot rule out.

A query reads one byte per coordinate, a quarter of the memory traffic of the vectors themselves. The error of the estimate
is bounded, so all rows that may be among the k nearest are found, and only those are scored in full.
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
    """Lists of the k best under construction, for consecutive vectors."""

    scores: np.ndarray  # float32 (n, k)
    ids: np.ndarray  # int32 (n, k)
    limits: np.ndarray  # float32 (n,), only higher scores enter; at least the k-th best
    first: int  # id of the first vector


def nobody(count: int) -> Lists:
    """Return lists for ``count`` vectors that no score can enter."""
    return Lists(*empty_lists(count, 1), np.full(count, np.inf, np.float32), 0)


@njit(inline="always")
def push(scores: np.ndarray, ids: np.ndarray, score: np.float32, new: np.int64) -> None:
    """Insert a score above the last one into a list, after equal scores."""
    place = scores.shape[0] - 1
    while place > 0 and scores[place - 1] < score:
        scores[place], ids[place] = scores[place - 1], ids[place - 1]
        place -= 1
    scores[place], ids[place] = score, new


@njit(**LEAN)
def _enter(lists: Lists, place: int, score: np.float32, new: np.int64) -> None:
    """Insert a score into one of the lists if it is above the list's limit."""
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
                        row_id, column_id = rows.first + row + i, columns.first + column + place
                        if place >= wide or (within and column_id >= row_id):
                            break
                        score = room.products[i * COLUMNS + place]
                        _enter(rows, row + i, score, column_id)
                        _enter(columns, column + place, score, row_id)
                    room.limits[i] = rows.limits[row + i]


def sweep(left: np.ndarray, right: np.ndarray, rows: Lists, columns: Lists, within: bool = False) -> None:
    """Update the lists of rows and columns with all their inner products, in place.

    Blocks, packed by :func:`xswe.io.products.pack` to ``ROWS`` and ``COLUMNS``, must come in ascending order of rows and
    of columns for equal scores to be kept by ascending id. ``within``: both sides are the same vectors, and only columns
    before the row count.
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
    """Merge lists of candidates, float32 and int32 (m, k'), in any order, into other lists (n, k) in place.

    An id that is in a list already keeps the higher score; ``NONE`` is not a candidate. ``rows``, int64 (m,), gives the row
    that each list of candidates belongs to, empty if list i belongs to row i; ``names``, int64, maps the candidates' ids to
    the ids to enter, empty if they are the same.
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
    """Add each cluster's number of lines to ``bounds[cluster + 1]``; ``clusters`` is int32 (n, p), negative for none."""
    for cluster in clusters.flat:
        if cluster >= 0:
            bounds[cluster + 1] += 1


@njit(**LEAN)
def list_members(clusters: np.ndarray, free: np.ndarray, lines: np.ndarray) -> None:
    """Write the lines of every cluster, ascending, at ``free[cluster]``, and advance it past them."""
    for line in range(clusters.shape[0]):
        for place in range(clusters.shape[1]):
            cluster = clusters[line, place]
            if cluster >= 0:
                lines[free[cluster]] = line
                free[cluster] += 1


_AHEAD = 32  # rows to prefetch ahead
_MIN_THREAD_ROWS = 1 << 13  # minimum rows per thread: a fifth of a millisecond
_ROUNDING = 1e-5  # generous bound on the float32 rounding error of a score
_PASS_QUERIES = 8  # queries that share a pass
_MAX_PASS_SCORES = 1 << 24  # maximum scores per pass, unless a single query has more
_MAX_INSERTION = 128  # longest list for which insertion is faster than sorting
_ALL_ROWS = np.zeros(0, np.int32)  # stands for all rows


class Coded(NamedTuple):
    """Vectors with their codes."""

    codes: np.ndarray  # int8 (n, d), see :func:`make_codes`
    scales: np.ndarray  # float32 (n,); rows with NaN are left out
    vectors: Vectors  # the n vectors
    error: float  # the largest distance between a vector and its scaled codes
    names: np.ndarray | None = None  # int64 (n,), the ids of the rows; None for the row numbers


def make_codes(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Quantise float32 (n, d) vectors, with rows of norm 1 or zero, to int8.

    Return the codes, int8 (n, d); the factor that gives each row of codes norm 1, float32 (n,), NaN for a zero row; and the
    largest distance between a vector and its scaled codes.
    """
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    return codes, scales, float(_round(vectors, codes, scales)) ** 0.5


@njit(**LEAN)
def _round(vectors: np.ndarray, codes: np.ndarray, scales: np.ndarray) -> np.float32:
    """Fill codes and scales, and return the largest squared distance."""
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
        worst = max(worst, distance)  # NaN for a zero row, which max ignores
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
    """Fill ``out[:, start:stop]`` with inner products, and keep the best of each query, without NaN."""
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
    """Fill lists, no longer than there are scores, with the best by descending score, equal ones by ascending name.

    Insertion takes quadratic time, so only short lists are filled in this way (:data:`_MAX_INSERTION`).
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
    """Round queries to integers up to ``levels``; ``slack`` bounds the error of two estimates, -1 for a zero query."""
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

    Queries are float32 (q, d), of norm 1 or zero; a zero query finds nothing. ``rows``, int32, ascending, are the rows to
    search, None for all. Return for each query scores, float32 (k,), best first, and names of rows, int64 (k,), the lower
    first of equal scores; fewer than k if there are no more.
    """
    codes, queries = coded.codes, np.ascontiguousarray(queries)
    levels = min(32_767, (2**31 - 1) // (127 * codes.shape[1]))  # the sum of a row fits 32 bits
    rounded, slack = np.empty(queries.shape, np.int16), np.empty(len(queries), np.float32)
    _round_queries(queries, levels, coded.error, rounded, slack)
    count = len(codes) if rows is None else len(rows)
    asked = [q for q, off in enumerate(slack.tolist()) if off >= 0 and count]
    found = [(np.zeros(0, np.float32), np.zeros(0, np.int64)) for _ in queries]
    most = int(max(1, min(_PASS_QUERIES, _MAX_PASS_SCORES // max(1, count))))
    for start in range(0, len(asked), most):
        some = asked[start : start + most]
        estimated = _estimated(rounded[some], min(k, count), slack[some], coded, rows, threads)
        for place, wanted in zip(some, estimated, strict=True):
            scores = row_products(coded.vectors.take(wanted), queries[place])
            names = (wanted if coded.names is None else coded.names[wanted]).astype(np.int64)
            if k > _MAX_INSERTION:
                order = np.lexsort((names, -scores))[:k]
                found[place] = scores[order], names[order]
                continue
            found[place] = np.empty(min(k, len(names)), np.float32), np.empty(min(k, len(names)), np.int64)
            _order(scores, names, *found[place])
    return found


def _estimated(
    rounded: np.ndarray, k: int, slack: np.ndarray, coded: Coded, rows: np.ndarray | None, threads: int
) -> Iterator[np.ndarray]:
    """Yield, for each rounded query, the rows that may be among its k best."""
    count = len(coded.codes) if rows is None else len(rows)
    out = np.empty((len(rounded), count), np.float32)

    def work(start: int, stop: int) -> np.ndarray:
        best, ids = empty_lists(len(rounded), k)
        given = read_only(coded.codes), read_only(coded.scales), rounded, _ALL_ROWS if rows is None else rows
        _estimate(*given, start, stop, out, best, ids)
        return best

    lists = over_blocks(work, count, threads, _MIN_THREAD_ROWS)
    bests = lists[0][:, -1] if len(lists) == 1 else np.sort(np.concatenate(lists, axis=1), axis=1)[:, -k]
    for scores, best, off in zip(out, bests.tolist(), slack.tolist(), strict=True):
        wanted = np.flatnonzero(scores >= best - off) if best > -np.inf else np.flatnonzero(scores == scores)
        yield wanted if rows is None else rows[wanted]
