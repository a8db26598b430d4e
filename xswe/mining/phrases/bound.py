"""What a query can find in a tile at most: one byte a word and query, added up before any span is looked at.

With c_t the cosine of a query and word t,

    cos(q, span) = sum_t (|w_t| / |span|) c_t  <=  sqrt(spread * sum_t max(c_t, 0)^2)

by Cauchy and Schwarz, where spread >= sum_t |w_t|^2 / |span|^2 for every span that begins in a part of a tile, and the
sum is over that part and as many more as such a span can reach. It is nearly tight where words are nearly orthogonal. The
squares are kept in steps of 1 / 255, rounded up: a word then has one line of the cache for all queries of a block, and an
instruction adds up dozens of queries.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.memory import LEAN, prefetch
from xswe.mining.phrases.norms import part_size

LANES = 64  # queries a block: a row of codes is a cache line, and the tables of a block stay in the last-level cache
STEPS = np.float32(255.0)  # of a squared cosine
SEVERAL = 4  # parts that a span can reach beyond the one it begins in
_LARGEST = 65_535 // 255 // (SEVERAL + 1)  # words of a part up to which no sum overflows
_AHEAD = 16  # rows that are asked for before they are read


@njit(**LEAN)
def spell(
    pieces: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    inverse: np.ndarray,
    table: np.ndarray,
    codes: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Make the tables of words from that of their pieces, for a block of queries.

    Args:
        pieces: float32 (pieces, queries), inner products of pieces and unit queries.
        ids: int32, the pieces of the distinct words.
        offsets: int64 (rows + 1,), where each word's start.
        inverse: float32 (rows,), 1 / length of each word; 0 for one without a vector.
        table: float32 (rows, queries), receives the inner products of words.
        codes: uint8 (rows, LANES), receives their squared cosines in ``STEPS``, those of negative ones as 0.
        start: first row.
        stop: one past the last.
    """
    width, none, full = table.shape[1], np.float32(0.0), STEPS * np.float32(1.00001)  # rounding is not to lower a square
    for row in range(start, stop):
        total, code, scale = table[row], codes[row], inverse[row]
        for c in range(width):
            total[c] = none
        for p in range(offsets[row], offsets[row + 1]):
            piece = pieces[ids[p]]
            for c in range(width):
                total[c] += piece[c]
        for c in range(width):
            cosine = max(total[c] * scale, none)
            code[c] = np.uint8(min(np.ceil(cosine * cosine * full), STEPS))
        for c in range(width, LANES):
            code[c] = 0


@njit(**LEAN)
def bound_tile(
    codes: np.ndarray,
    rows: np.ndarray,
    first: int,
    count: int,
    reach: int,
    spread: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """Bound the squared cosines of a tile's spans, for all queries of a block at once.

    Args:
        codes: uint8 (rows, LANES) of :func:`spell`.
        rows: int32 (w,), the row of each word.
        first: the tile's first word.
        count: its words, with those that its spans reach beyond it.
        reach: words of the longest span.
        spread: float32 (parts,), of the spans that begin in each part.
        sums: uint16 (parts + SEVERAL, LANES), room.
        out: float32 (LANES,), receives the bounds in ``STEPS``.
    """
    step = part_size(reach)
    parts = (count + step - 1) // step
    for c in range(LANES):
        out[c] = 0.0 if step <= _LARGEST else np.inf
    if step > _LARGEST:
        return
    for part in range(parts + SEVERAL):  # and zeros behind
        _sum_part(codes, rows, first + min(part * step, count), first + min(part * step + step, count), sums[part])
    for part in range(min(parts, len(spread))):
        v, w, x, y, z = sums[part], sums[part + 1], sums[part + 2], sums[part + 3], sums[part + 4]
        scale = spread[part]
        for c in range(LANES):
            out[c] = max(out[c], np.float32(np.uint16(v[c] + w[c] + x[c] + y[c] + z[c])) * scale)


@njit(inline="always")
def _sum_part(codes: np.ndarray, rows: np.ndarray, t: int, stop: int, total: np.ndarray) -> None:
    """Sum the codes of words ``t`` to ``stop``."""
    for c in range(LANES):
        total[c] = 0
    while t + 5 <= stop:  # five rows a pass: the sums are loaded and stored once
        if t + 5 + _AHEAD <= len(rows):
            for k in range(5):
                prefetch(codes, rows[t + k + _AHEAD] * LANES)
        v, w, x = codes[rows[t]], codes[rows[t + 1]], codes[rows[t + 2]]
        y, z = codes[rows[t + 3]], codes[rows[t + 4]]
        for c in range(LANES):
            total[c] += np.uint16(v[c]) + np.uint16(w[c]) + np.uint16(x[c]) + np.uint16(y[c]) + np.uint16(z[c])
        t += 5
    while t < stop:
        v = codes[rows[t]]
        for c in range(LANES):
            total[c] += np.uint16(v[c])
        t += 1
