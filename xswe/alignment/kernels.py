"""Kernels of alignment: similarities of runs of lines within a band, the best path through it, and word links.

The vector of a run of lines is the sum of the lines' vectors, so the inner product of two runs is a sum of inner products
of lines: all beads that end at a cell cost one product of two lines and additions, where encoded overlaps would cost a
product each. A cell (i, j) lies between lines: i lines of the source and j lines of the target come before it. Row i of a
band has the cells ``low[i] <= j < high[i]``; both bounds rise with i.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN

_UNREACHABLE = -1e300


@njit(**LEAN, fastmath=True)
def run_properties(sums: np.ndarray, sizes: np.ndarray, inverse: np.ndarray, logs: np.ndarray, total: np.ndarray) -> None:
    """Measure the runs of up to ``len(inverse)`` lines that end before each cell.

    Args:
        sums: float32 (n, d), vectors of lines.
        sizes: float32 (n,), characters of lines.
        inverse: float32 (runs, n + 1), receives 1 / the norm of the run of ``a + 1`` lines that ends before cell i; 0 if
            there is no such run, or its vector is zero.
        logs: float32 (runs, n + 1), receives the logarithm of its number of characters.
        total: float32 (d,), scratch space.
    """
    n, width = sums.shape
    for i in range(n + 1):
        for k in range(width):
            total[k] = np.float32(0.0)
        size = np.float32(1.0)
        for a in range(inverse.shape[0]):
            if a >= i:
                inverse[a, i], logs[a, i] = np.float32(0.0), np.float32(0.0)
                continue
            row = sums[i - 1 - a]
            square = np.float32(0.0)
            for k in range(width):
                total[k] += row[k]
                square += total[k] * total[k]
            size += sizes[i - 1 - a]
            inverse[a, i] = np.float32(1.0) / np.sqrt(square) if square > np.float32(1e-12) else np.float32(0.0)
            logs[a, i] = np.log(size)


@njit(**INNER, fastmath=True)
def _products(row: np.ndarray, targets: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """Set out[j - first] to the inner product of a line with line j of the target."""
    width = len(row)
    for j in range(first, last):
        other = targets[j]
        total = np.float32(0.0)
        for k in range(width):
            total += row[k] * other[k]
        out[j - first] = total


@njit(**LEAN, fastmath=True)
def best_in_band(
    sources: np.ndarray,
    targets: np.ndarray,
    inverse_source: np.ndarray,
    inverse_target: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    row_best: np.ndarray,
    column_best: np.ndarray,
    products: np.ndarray,
) -> None:
    """Find each line's most similar line of the other side within the band.

    Args:
        sources: float32 (n, d).
        targets: float32 (m, d).
        inverse_source: float32 (n + 1,), 1 / norms of the lines that end before each cell.
        inverse_target: float32 (m + 1,).
        low: int64 (n + 1,).
        high: int64 (n + 1,).
        row_best: float32 (2, n), receives the best cosine of each line of the source, -2 for none, and the target line.
        column_best: float32 (2, m), likewise of the target.
        products: float32, scratch space for the widest row.
    """
    for j in range(len(targets)):
        column_best[0, j] = np.float32(-2.0)
    for i in range(len(sources)):
        first, last = low[i], min(np.int64(len(targets)), high[i + 1] - 1)
        _products(sources[i], targets, first, last, products)
        best, place = np.float32(-2.0), np.float32(-1.0)
        for j in range(first, last):
            cosine = products[j - first] * inverse_source[i + 1] * inverse_target[j + 1]
            if cosine > best:
                best, place = cosine, np.float32(j)
            if cosine > column_best[0, j]:
                column_best[0, j], column_best[1, j] = cosine, np.float32(i)
        row_best[0, i], row_best[1, i] = best, place


@njit(**INNER, fastmath=True)
def _add_rows(
    i: int, left: int, cells: int, runs: int, products: np.ndarray, begins: np.ndarray, columns: np.ndarray
) -> None:
    """Set columns[a, c] to the sum of the products of the last a + 1 source lines with line left + c of the target."""
    for a in range(min(runs, i)):
        row, offset = products[(i - 1 - a) % runs], left - begins[(i - 1 - a) % runs]
        total, under = columns[a], columns[max(a - 1, 0)]
        if a == 0:
            for c in range(cells):
                total[c] = row[c + offset]
        else:
            for c in range(cells):
                total[c] = under[c] + row[c + offset]


@njit(**INNER)
def _forbidden_in_row(i: int, left: int, last: int, runs: int, forbidden: tuple, boxes: np.ndarray) -> int:
    """Gather boxes that beads ending in row i must not contain: the first source line, begin and end in the target."""
    gaps, gaps_before, pairs, pairs_before = forbidden
    count = 0
    for k in range(gaps_before[left], gaps_before[min(last, np.int64(len(gaps_before) - 1))]):
        boxes[count, 0], boxes[count, 1], boxes[count, 2] = i, gaps[k], gaps[k] + 1
        count += 1
    for k in range(pairs_before[max(np.int64(0), i - runs)], pairs_before[i]):
        boxes[count, 0], boxes[count, 1], boxes[count, 2] = pairs[k, 0], pairs[k, 2], pairs[k, 3]
        count += 1
    return count


@njit(**INNER)
def _close(count: int, boxes: np.ndarray, begin: int, lines: int, bottom: int, top: int, before: np.ndarray) -> None:
    """Close the cells from which beads first contain a box when they reach this number of target lines."""
    for k in range(count):
        j = boxes[k, 2] - lines
        if boxes[k, 0] >= begin and j <= boxes[k, 1] and bottom <= j < top:
            before[j - bottom] = _UNREACHABLE


@njit(**INNER, fastmath=True)
def _try_beads(
    i: int,
    runs_source: tuple,
    runs_target: tuple,
    band: tuple,
    prices: tuple,
    forbidden: tuple,
    room: tuple,
    code: np.ndarray,
) -> None:
    """Reach each cell of row i by the best bead that ends there."""
    low, high, _ = band
    inverse_source, logs_source = runs_source
    inverse_target, logs_target = runs_target
    weights, losses, numbers = prices
    scores, columns, beads = room[0], room[3], room[4]
    zero, scale, shift, precision, worst = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    runs, first, last = len(inverse_source), low[i], high[i]
    left, own = max(np.int64(0), first - runs), scores[i % (runs + 1)]
    closed, boxes = room[6], room[7]
    count = _forbidden_in_row(i, left, last, runs, forbidden, boxes)
    for a in range(min(runs, i)):
        if inverse_source[a, i] == 0.0:
            continue
        before, bottom, top = scores[(i - 1 - a) % (runs + 1)], low[i - 1 - a], high[i - 1 - a]
        own_inverse, own_log, total = inverse_source[a, i], logs_source[a, i] + shift, columns[a]
        if count > 0:
            for c in range(top - bottom):
                closed[c] = before[c]
            before = closed
        for j in range(first, last):
            beads[j - first] = np.float32(0.0)
        for b in range(runs):
            weight, loss = weights[a, b], losses[a, b]
            step = np.uint8(1 + 5 * a + b)
            inverse, logs = inverse_target[b], logs_target[b]
            for j in range(max(first, np.int64(b + 1)), last):
                beads[j - first] += total[j - 1 - b - left]
            if count > 0:
                _close(count, boxes, i - 1 - a, b + 1, bottom, top, before)
            for j in range(max(first, bottom + b + 1), min(last, top + b + 1)):
                off = logs[j] - own_log
                price = min(worst, off * off * precision)
                gain = weight * ((beads[j - first] * own_inverse * inverse[j] - zero) * scale - price) - loss
                score = before[j - 1 - b - bottom] + gain
                better = score > own[j - first]
                own[j - first] = score if better else own[j - first]
                code[j - first] = step if better else code[j - first]


@njit(**INNER)
def _try_gaps(i: int, low: np.ndarray, high: np.ndarray, opening: float, room: tuple, code: np.ndarray) -> None:
    """Reach each cell of row i by a gap if that is better."""
    scores, gaps = room[0], room[1]
    runs, first, last = len(scores) - 1, low[i], high[i]
    own, within = scores[i % (runs + 1)], gaps[i % 2]
    above, best_above = gaps[(i - 1) % 2], scores[(i - 1) % (runs + 1)]
    for j in range(first, last):
        best, how = _UNREACHABLE, np.uint8(32)
        if i > 0 and low[i - 1] <= j < high[i - 1]:
            best = above[j - low[i - 1]]
            if best_above[j - low[i - 1]] - opening > best:
                best, how = best_above[j - low[i - 1]] - opening, np.uint8(32 + 128)
        if j > first:
            if within[j - 1 - first] > best:
                best, how = within[j - 1 - first], np.uint8(32 + 64)
            if own[j - 1 - first] - opening > best:
                best, how = own[j - 1 - first] - opening, np.uint8(32 + 64 + 128)
        within[j - first] = best
        # A path within a gap may pass through this cell even if the best path to it ends with a bead.
        if best > own[j - first]:
            own[j - first] = best
        else:
            how &= np.uint8(64 + 128)
        code[j - first] |= how


@njit(**LEAN, fastmath=True)
def best_path(
    sources: np.ndarray,
    targets: np.ndarray,
    runs_source: tuple,
    runs_target: tuple,
    band: tuple,
    prices: tuple,
    forbidden: tuple,
    room: tuple,
    back: np.ndarray,
) -> float:
    """Find the best sequence of beads and gaps from cell (0, 0) to cell (n, m), and fill ``back`` for :func:`trace`.

    Args:
        sources: float32 (n, d).
        targets: float32 (m, d).
        runs_source: inverse norms and log sizes, see :func:`run_properties`.
        runs_target: likewise.
        band: low and high, int64 (n + 1,), and where the cells of each row begin in ``back``, int64 (n + 2,).
        prices: float32 (runs, runs) weights and (runs, runs) losses of bead shapes; and float32 (6,): the cosine at zero
            gain, the scale from cosine to gain, the median log ratio of sizes, the factor of its squared deviation, the
            maximum penalty for that, and the cost of beginning a gap.
        forbidden: int64 (g,), target lines that no bead may contain, rising; int64 (m + 1,), how many of them come before
            each line; int64 (k, 4), pairs of runs that no bead may contain, begin and end in the source, begin and end in
            the target, sorted by their ends in the source; int64 (n + 1,), how many of these end at or before each cell.
            A source run that no bead may contain has the inverse norm 0.
        room: float64 (runs + 1, w) best scores, float64 (2, w) scores within a gap, float32 (runs, w) products, float32
            (runs, w) sums over rows, float32 (w,) sums of a bead's products, int64 (runs,) where a row's products begin,
            float64 (w,) scores of the row where beads begin, int64 (g + k, 3) boxes forbidden in a row.
        back: uint8 (cells,), receives how each cell was reached: 1 + 5 (a - 1) + b - 1 for the best bead of a and b lines
            that ends there, plus 32 if the best path to the cell ends in a gap, 64 if the last line of that gap is in the
            target, and 128 if the gap begins with it.

    Returns:
        The score of the path.
    """
    low, high, starts = band
    scores, products, columns, begins = room[0], room[2], room[3], room[5]
    runs, n, m = len(runs_source[0]), len(sources), len(targets)
    for i in range(n + 1):
        first, last = low[i], high[i]
        own, code = scores[i % (runs + 1)], back[starts[i] : starts[i + 1]]
        for c in range(last - first):
            own[c], code[c] = _UNREACHABLE, np.uint8(0)
        if i == 0:
            own[0] = 0.0
        else:
            line, left = i - 1, max(np.int64(0), first - runs)
            end = min(np.int64(m), high[min(n, line + runs)] - 1)
            _products(sources[line], targets, left, end, products[line % runs])
            begins[line % runs] = left
            _add_rows(i, left, last - 1 - left, runs, products, begins, columns)
            _try_beads(i, runs_source, runs_target, band, prices, forbidden, room, code)
        _try_gaps(i, low, high, prices[2][5], room, code)
    return scores[n % (runs + 1)][m - low[n]]


@njit(**LEAN)
def trace(low: np.ndarray, starts: np.ndarray, back: np.ndarray, m: int, steps: np.ndarray) -> int:
    """Walk back from cell (n, m); return the number of steps, or -1 if there is no path.

    Args:
        low: int64 (n + 1,).
        starts: int64 (n + 2,).
        back: see :func:`best_path`.
        m: number of target lines.
        steps: uint8 (n + m,), receives the steps, last first: 16 times the source lines plus the target lines.
    """
    i, j, count, inside = len(low) - 1, m, 0, False
    while i > 0 or j > 0:
        how = back[starts[i] + j - low[i]]
        bead = how & np.uint8(31)
        if inside or how & np.uint8(32):
            a, b = (0, 1) if how & np.uint8(64) else (1, 0)
            inside = how & np.uint8(128) == 0
        elif bead:
            a, b = (bead - 1) // 5 + 1, (bead - 1) % 5 + 1
        else:
            return -1
        steps[count] = 16 * a + b
        i, j, count = i - a, j - b, count + 1
    return count


FORWARD, BACKWARD, INTERSECTION, UNION, ITERMAX, TRANSPORT = 0, 1, 2, 3, 4, 5
_NO_SIMILARITY = np.float32(-4.0)
_SINKHORN_ROUNDS = 20


@njit(**LEAN, fastmath=True)
def _similarities(source: np.ndarray, target: np.ndarray, prior: float, out: np.ndarray) -> None:
    """Set out[i, j] to the cosine of two words, less ``prior`` times the distance of their relative positions."""
    n, m = len(source), len(target)
    for i in range(n):
        for j in range(m):
            total = np.float32(0.0)
            for k in range(source.shape[1]):
                total += source[i, k] * target[j, k]
            apart = abs((i + 0.5) / n - (j + 0.5) / m)
            out[i, j] = total - np.float32(prior * apart)


@njit(**LEAN)
def _best(values: np.ndarray, n: int, m: int, rows: np.ndarray, columns: np.ndarray) -> None:
    """Find the best column of each row and the best row of each column; ties go to the first."""
    for j in range(m):
        columns[j] = 0
    for i in range(n):
        rows[i] = 0
        for j in range(m):
            if values[i, j] > values[i, rows[i]]:
                rows[i] = j
            if values[i, j] > values[columns[j], j]:
                columns[j] = i


@njit(**LEAN)
def _transport(values: np.ndarray, n: int, m: int, heat: float, left: np.ndarray, right: np.ndarray) -> None:
    """Turn similarities into a transport plan between uniform word masses (Sinkhorn)."""
    for i in range(n):
        left[i] = 1.0
        for j in range(m):
            values[i, j] = np.exp((values[i, j] - 1.0) / heat)
    for _ in range(_SINKHORN_ROUNDS):
        for j in range(m):
            total = 1e-30
            for i in range(n):
                total += left[i] * values[i, j]
            right[j] = 1.0 / (m * total)
        for i in range(n):
            total = 1e-30
            for j in range(m):
                total += right[j] * values[i, j]
            left[i] = 1.0 / (n * total)
    for i in range(n):
        for j in range(m):
            values[i, j] = np.float32(left[i] * right[j] * values[i, j] * min(n, m))


@njit(**LEAN)
def _copy(values: np.ndarray, n: int, m: int, work: np.ndarray, chosen: np.ndarray) -> None:
    """Copy the similarities and clear the choice."""
    for i in range(n):
        for j in range(m):
            work[i, j], chosen[i, j] = values[i, j], False


@njit(**LEAN)
def _choose(method: int, n: int, m: int, rows: np.ndarray, columns: np.ndarray, chosen: np.ndarray) -> None:
    """Choose links from the best columns and rows, by the method."""
    for i in range(n):
        if method in (FORWARD, UNION) or (method != BACKWARD and columns[rows[i]] == i):
            chosen[i, rows[i]] = True
    if method in (BACKWARD, UNION):
        for j in range(m):
            chosen[columns[j], j] = True


@njit(**LEAN)
def link_words(
    source: np.ndarray,
    target: np.ndarray,
    bounds: tuple,
    how: tuple,
    room: tuple,
    links: np.ndarray,
    scores: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Link the words of pairs of sentences.

    Args:
        source: float32 (words, d), unit vectors of all source words; zero for a word without one.
        target: likewise.
        bounds: int64 (pairs + 1,) for either side, where each pair's words begin.
        how: the method; the weight of positions; the minimum cosine of a link; for ITERMAX the number of further turns and
            the share of its similarities that a linked word keeps; for TRANSPORT the temperature and the minimum share.
        room: float32 (a, b) twice, int64 (a,), (b,), bool (a, b), and float64 (a,), (b,), for the longest sentences.
        links: int32 (k, 2), receives the links.
        scores: float32 (k,), receives their cosines.
        ends: int64 (pairs + 1,), receives where each pair's links begin.
    """
    method, prior, least, turns, keep, heat, share = how
    values, work, rows, columns, chosen, left, right = room
    count = 0
    for p in range(len(ends) - 1):
        a, b = source[bounds[0][p] : bounds[0][p + 1]], target[bounds[1][p] : bounds[1][p + 1]]
        n, m = len(a), len(b)
        if n == 0 or m == 0:
            ends[p + 1] = count
            continue
        _similarities(a, b, prior, values)
        _copy(values, n, m, work, chosen)
        if method == TRANSPORT:
            _transport(work, n, m, heat, left, right)
            for i in range(n):
                for j in range(m):
                    chosen[i, j] = work[i, j] >= share
        else:
            for turn in range(1 + (turns if method == ITERMAX else 0)):
                if turn:
                    _discount(values, chosen, n, m, keep, rows, columns, work)
                _best(work, n, m, rows, columns)
                _choose(method, n, m, rows, columns, chosen)
        for i in range(n):
            for j in range(m):
                cosine = values[i, j] + np.float32(prior * abs((i + 0.5) / n - (j + 0.5) / m))
                if chosen[i, j] and cosine >= least and count < len(links):
                    links[count, 0], links[count, 1], scores[count] = i, j, cosine
                    count += 1
        ends[p + 1] = count


@njit(**LEAN)
def _discount(
    values: np.ndarray,
    chosen: np.ndarray,
    n: int,
    m: int,
    keep: float,
    rows: np.ndarray,
    columns: np.ndarray,
    work: np.ndarray,
) -> None:
    """Discount the similarities of linked words; remove those between two linked words (SimAlign's itermax)."""
    for i in range(n):
        rows[i] = 0
    for j in range(m):
        columns[j] = 0
    for i in range(n):
        for j in range(m):
            if chosen[i, j]:
                rows[i], columns[j] = 1, 1
    for i in range(n):
        for j in range(m):
            both = rows[i] + columns[j]
            work[i, j] = _NO_SIMILARITY if both == 2 else values[i, j] * np.float32(keep) if both == 1 else values[i, j]
