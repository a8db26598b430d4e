"""Losses on batches of unit vectors: values and gradients, written out by hand.

Each is a pure function of float32 arrays, so that it can be held against automatic differentiation (the tests do), and
each returns the gradient with respect to the *unit* vectors it was given; :func:`through_norm` carries a gradient back
to the vectors before normalisation.

The similarity matrix of a batch is the expensive thing. It is computed once, exponentiated in place by a polynomial that
the compiler vectorises, summed along both axes in the same pass, and turned in place into the gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.io.compiler import LEAN
from xswe.io.parallel import over_blocks

# exp(x) is kept as a normal float32; similarities lie in [-1, 1], so 2 / temperature (plus the margin) must stay below.
_FLOAT32_RANGE = 87.0


@njit(inline="always")
def _exp(x: np.float32) -> float:
    """exp(x) for -87 <= x <= 87 in float32, relative error below 3e-6; branch-free, so loops over it vectorise."""
    t = max(x, np.float32(-_FLOAT32_RANGE)) * np.float32(1.4426950408889634)
    whole = np.floor(t + np.float32(0.5))
    f = t - whole
    p = np.float32(1.5403530e-4)
    p = p * f + np.float32(1.3333558e-3)
    p = p * f + np.float32(9.6181291e-3)
    p = p * f + np.float32(5.5504109e-2)
    p = p * f + np.float32(2.4022651e-1)
    p = p * f + np.float32(6.9314718e-1)
    p = p * f + np.float32(1.0)
    return p * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(**LEAN, fastmath=True)
def _exponentiate(
    logits: np.ndarray,
    start: int,
    scale: np.float32,
    shift: np.float32,
    margin: np.float32,
    same_row: np.ndarray,
    same_column: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    diagonal: np.ndarray,
) -> None:
    """Turn a block of cosines into exp(scale * (cosine - margin on the diagonal) - shift), masking false negatives.

    ``logits`` holds the rows from ``start`` on; ``rows`` and ``columns`` receive the sums, ``diagonal`` the exponents.
    """
    height, width = logits.shape
    for i in range(height):
        g = start + i
        logits[i, g] -= margin
        diagonal[i] = logits[i, g] * scale - shift
        total = np.float32(0.0)
        for j in range(width):
            e = _exp(logits[i, j] * scale - shift)
            masked = (same_row[g] == same_row[j]) | (same_column[g] == same_column[j])
            e = e if (not masked) | (g == j) else np.float32(0.0)
            logits[i, j] = e
            total += e
            columns[j] += e
        rows[i] = total


@njit(**LEAN, fastmath=True)
def _to_gradient(weights: np.ndarray, start: int, rows: np.ndarray, columns: np.ndarray, factor: np.float32) -> None:
    """Turn exponentials into factor * (row softmax + column softmax - 2 * identity), in place."""
    height, width = weights.shape
    for i in range(height):
        by_row = factor / rows[i]
        for j in range(width):
            weights[i, j] *= by_row + factor / columns[j]
        weights[i, start + i] -= np.float32(2.0) * factor


def info_nce(
    source: np.ndarray,
    target: np.ndarray,
    *,
    temperature: float,
    margin: float = 0.0,
    same_source: np.ndarray | None = None,
    same_target: np.ndarray | None = None,
    threads: int = 1,
    gradient: bool = True,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Symmetric in-batch InfoNCE over translation pairs (EN paper 3.3, bilingual).

    With s_ij = cosine(source_i, target_j), and the additive margin m taken off the true pairs (s_ii - m):
    loss = mean_i -log softmax_j(s_ij / t)_i  +  mean_i -log softmax_j(s_ji / t)_i. The directions are summed.
    ``margin=0`` is the paper's loss.

    Args:
        source: float32 (k, d), rows of norm 1 (or 0).
        target: float32 (k, d), row i the translation of source i.
        temperature: t; at least 0.024, so that exp(2 / t) fits float32.
        margin: m, in cosine.
        same_source: int (k,), equal numbers mark equal source texts: such pairs are no negatives of each other.
        same_target: the same for the targets.
        threads: how many threads share the rows.
        gradient: compute the gradients; without, both are empty.

    Returns:
        The loss and its gradients with respect to ``source`` and ``target``, float32 (k, d).
    """
    size = len(source)
    _check_temperature(temperature, _reach(margin))
    scale = 1.0 / temperature
    unique = np.arange(size, dtype=np.int32)
    same_source = unique if same_source is None else same_source
    same_target = unique if same_target is None else same_target
    cosines = np.empty((size, size), np.float32)
    rows, diagonal = np.empty(size, np.float32), np.empty(size, np.float32)
    f = np.float32

    def forward(a: int, b: int) -> np.ndarray:
        np.matmul(source[a:b], target.T, out=cosines[a:b])
        part = np.zeros(size, np.float32)
        _exponentiate(
            cosines[a:b], a, f(scale), f(scale), f(margin), same_source, same_target, rows[a:b], part, diagonal[a:b]
        )
        return part

    columns = np.sum(over_blocks(forward, size, threads), axis=0)
    log_partition = np.log(rows.astype(np.float64)) + np.log(columns.astype(np.float64))
    loss = float(np.mean(log_partition - 2.0 * diagonal))
    if not gradient:
        return loss, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_source = np.empty_like(source)

    def backward(a: int, b: int) -> np.ndarray:
        _to_gradient(cosines[a:b], a, rows[a:b], columns, f(scale / size))
        np.matmul(cosines[a:b], target, out=d_source[a:b])
        return cosines[a:b].T @ source[a:b]

    parts = over_blocks(backward, size, threads)
    d_target = parts[0]
    for part in parts[1:]:
        d_target += part
    return loss, d_source, d_target


def ranking_on(
    cosines: np.ndarray,
    *,
    temperature: float,
    margin: float,
    same_source: np.ndarray,
    same_target: np.ndarray,
    threads: int = 1,
    gradient: bool = True,
) -> float:
    """The loss of :func:`info_nce` on a matrix of cosines, float32 (k, k), which its gradient then replaces."""
    size, f = len(cosines), np.float32
    _check_temperature(temperature, _reach(margin))
    scale = 1.0 / temperature
    rows, diagonal = np.empty(size, np.float32), np.empty(size, np.float32)

    def forward(a: int, b: int) -> np.ndarray:
        part = np.zeros(size, np.float32)
        exponent = f(scale), f(scale), f(margin)
        _exponentiate(cosines[a:b], a, *exponent, same_source, same_target, rows[a:b], part, diagonal[a:b])
        return part

    columns = np.sum(over_blocks(forward, size, threads), axis=0)
    if gradient:
        over_blocks(lambda a, b: _to_gradient(cosines[a:b], a, rows[a:b], columns, f(scale / size)), size, threads)
    log_partition = np.log(rows.astype(np.float64)) + np.log(columns.astype(np.float64))
    return float(np.mean(log_partition - 2.0 * diagonal))


@njit(**LEAN, fastmath=True)
def _exponentiate_candidates(
    logits: np.ndarray,
    start: int,
    scale: np.float32,
    margin: np.float32,
    owners: np.ndarray,
    texts: np.ndarray,
    anchors: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    diagonal: np.ndarray,
) -> None:
    """As :func:`_exponentiate`, where there may be more columns than rows; see :func:`candidates_on`."""
    height, width = logits.shape
    for i in range(height):
        g = start + i
        logits[i, g] -= margin
        diagonal[i] = logits[i, g] * scale - scale
        total = np.float32(0.0)
        for j in range(width):
            e = _exp(logits[i, j] * scale - scale)
            masked = (owners[g] == owners[j]) | (texts[g] == texts[j]) | (anchors[g] == texts[j])
            e = e if (not masked) | (g == j) else np.float32(0.0)
            logits[i, j] = e
            total += e
            columns[j] += e
        rows[i] = total


@njit(**LEAN, fastmath=True)
def _candidates_to_gradient(
    weights: np.ndarray, start: int, rows: np.ndarray, by_column: np.ndarray, factor: np.float32, directions: np.float32
) -> None:
    """Turn exponentials into factor * (row softmax - directions * identity) + exponential * by_column, in place."""
    height, width = weights.shape
    for i in range(height):
        by_row = factor / rows[i]
        for j in range(width):
            weights[i, j] *= by_row + by_column[j]
        weights[i, start + i] -= directions * factor


def candidates_on(
    cosines: np.ndarray,
    *,
    temperature: float,
    margin: float,
    same: tuple[np.ndarray, ...],
    both: bool,
    threads: int = 1,
    gradient: bool = True,
) -> float:
    """Multiple negatives ranking on a matrix of cosines, which its gradient then replaces.

    Row i is an anchor, column i its positive; the columns from k on are further negatives, of any row. With s_ij the
    cosines, and the margin m taken off the true pairs: loss = mean_i -log softmax_j(s_ij / t)_i over all columns, and where
    ``both`` is set, plus mean_i -log softmax_j(s_ji / t)_i over the first k columns, as :func:`info_nce` has it.

    Args:
        cosines: float32 (k, k + n).
        temperature: t.
        margin: m, in cosine.
        same: int (k,) and (k + n,): equal numbers mark equal anchors, and equal candidates; a candidate that is the
            anchor's positive, or another positive of the same anchor, is no negative. A third array, int (k,), has the
            anchors' numbers as the candidates are numbered, where an anchor may be among them.
        both: rank in both directions, not from anchors to candidates alone.
        threads: how many threads share the rows.
        gradient: compute the gradient.
    """
    (size, width), f = cosines.shape, np.float32
    _check_temperature(temperature, _reach(margin))
    scale = 1.0 / temperature
    owners = np.full(width, -1, np.int64)
    owners[:size] = same[0]
    texts = np.ascontiguousarray(same[1], np.int64)
    anchors = np.ascontiguousarray(same[2], np.int64) if len(same) > 2 else np.full(size, -2, np.int64)
    rows, diagonal = np.empty(size, np.float32), np.empty(size, np.float32)

    def forward(a: int, b: int) -> np.ndarray:
        part = np.zeros(width, np.float32)
        marks = owners, texts, anchors
        _exponentiate_candidates(cosines[a:b], a, f(scale), f(margin), *marks, rows[a:b], part, diagonal[a:b])
        return part

    columns = np.sum(over_blocks(forward, size, threads), axis=0)
    factor, directions = f(scale / size), 2.0 if both else 1.0
    if gradient:
        by_column = np.zeros(width, np.float32)
        if both:
            by_column[:size] = factor / columns[:size]
        over_blocks(
            lambda a, b: _candidates_to_gradient(cosines[a:b], a, rows[a:b], by_column, factor, f(directions)),
            size,
            threads,
        )
    log_partition = np.log(rows.astype(np.float64))
    if both:
        log_partition += np.log(columns[:size].astype(np.float64))
    return float(np.mean(log_partition - directions * diagonal))


def multiple_negatives(
    source: np.ndarray, candidates: np.ndarray, on: Callable[[np.ndarray], float], threads: int = 1, gradient: bool = True
) -> tuple[float, np.ndarray, np.ndarray]:
    """Multiple negatives ranking: each source finds its target among those of the batch and further negatives.

    Args:
        source: float32 (k, d), rows of norm 1 (or 0).
        candidates: float32 (k + n, d), row i < k the target of source i, the others negatives.
        on: the loss of the cosines, :func:`candidates_on` with its settings.
        threads: how many threads share the rows.
        gradient: compute the gradients; without, both are empty.

    Returns:
        The loss and its gradients with respect to ``source`` and ``candidates``.
    """
    size = len(source)
    cosines = np.empty((size, len(candidates)), np.float32)
    over_blocks(lambda a, b: np.matmul(source[a:b], candidates.T, out=cosines[a:b]), size, threads)
    loss = on(cosines)
    if not gradient:
        return loss, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_source = np.empty_like(source)

    def backward(a: int, b: int) -> np.ndarray:
        np.matmul(cosines[a:b], candidates, out=d_source[a:b])
        return cosines[a:b].T @ source[a:b]

    return loss, d_source, np.sum(over_blocks(backward, size, threads), axis=0)


def relational_on(cosines: np.ndarray, targets: np.ndarray, *, temperature: float, threads: int = 1) -> float:
    """The loss of :func:`relational` on a matrix of cosines, float32 (k, k), which its gradient then replaces."""
    _check_temperature(temperature, 2.0)
    size, f = len(cosines), np.float32
    scale = 1.0 / temperature
    parts = over_blocks(
        lambda a, b: _relational_rows(cosines[a:b], targets[a:b], a, f(scale), f(scale / size)), size, threads
    )
    return float(sum(parts)) / size


@njit(**LEAN, fastmath=True)
def through_norm(unit: np.ndarray, gradient: np.ndarray, norms: np.ndarray) -> None:
    """Carry ``gradient`` (with respect to u = v / |v|) back to v, in place: (g - u (u . g)) / |v|; 0 where |v| is 0."""
    for i in range(unit.shape[0]):
        along = np.float32(0.0)
        for j in range(unit.shape[1]):
            along += unit[i, j] * gradient[i, j]
        inverse = np.float32(1.0) / norms[i] if norms[i] > 0 else np.float32(0.0)
        for j in range(unit.shape[1]):
            gradient[i, j] = (gradient[i, j] - unit[i, j] * along) * inverse


@njit(**LEAN, fastmath=True)
def _softmax_off_diagonal(cosines: np.ndarray, start: int, scale: np.float32) -> None:
    """Turn a block of cosines into their row soft-max at ``scale``, the diagonal left out (zero), in place."""
    height, width = cosines.shape
    for i in range(height):
        cosines[i, start + i] = np.float32(-1e9)
        total = np.float32(0.0)
        for j in range(width):
            e = _exp((cosines[i, j] - np.float32(1.0)) * scale)
            cosines[i, j] = e
            total += e
        total -= cosines[i, start + i]
        cosines[i, start + i] = 0.0
        inverse = np.float32(1.0) / total
        for j in range(width):
            cosines[i, j] *= inverse


@njit(**LEAN, fastmath=True)
def _relational_rows(student: np.ndarray, targets: np.ndarray, start: int, scale: np.float32, factor: np.float32) -> float:
    """Turn a block of student cosines into the gradient of the relational loss; returns the block's loss sum."""
    height, width = student.shape
    loss = 0.0
    for i in range(height):
        student[i, start + i] = np.float32(-1e9)
        total, cross = np.float32(0.0), np.float32(0.0)
        for j in range(width):
            logit = max((student[i, j] - np.float32(1.0)) * scale, np.float32(-_FLOAT32_RANGE))
            cross += targets[i, j] * logit
            e = _exp(logit)
            student[i, j] = e
            total += e
        total -= student[i, start + i]
        student[i, start + i] = 0.0
        loss += np.log(total) - cross
        inverse = np.float32(1.0) / total
        for j in range(width):
            student[i, j] = factor * (student[i, j] * inverse - targets[i, j])
    return loss


def relational_targets(teacher: np.ndarray, *, temperature: float, threads: int = 1) -> np.ndarray:
    """What a student's similarities within a batch are to imitate (EN paper 3.3).

    Args:
        teacher: float32 (k, e), the teacher's unit vectors of the batch, k >= 2.
        temperature: T.
        threads: how many threads share the rows.

    Returns:
        float32 (k, k): row i is the soft-max of cosine(teacher_i, teacher_j) / T over j != i; zero on the diagonal.
    """
    _check_temperature(temperature, 2.0)
    targets = np.empty((len(teacher), len(teacher)), np.float32)

    def work(a: int, b: int) -> None:
        np.matmul(teacher[a:b], teacher.T, out=targets[a:b])
        _softmax_off_diagonal(targets[a:b], a, np.float32(1.0 / temperature))

    over_blocks(work, len(teacher), threads)
    return targets


def relational(
    left: np.ndarray,
    right: np.ndarray,
    targets: np.ndarray,
    *,
    temperature: float,
    threads: int = 1,
    gradient: bool = True,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Relational distillation: the student's similarities within a batch imitate the teacher's (EN paper 3.3).

    With s_ij = cosine(left_i, right_j) and q = ``targets``: loss = -mean_i sum_{j != i} q_ij log p_ij, where p is the
    soft-max of s_ij / T over j != i. ``left is right`` is the papers' monolingual loss; with the two sides of
    translation pairs it asks source i and target j to be as similar as the teacher finds sentences i and j.

    Args:
        left: float32 (k, d), rows of norm 1 (or 0), k >= 2.
        right: float32 (k, d), the same array or the translations.
        targets: float32 (k, k), from :func:`relational_targets`.
        temperature: T.
        threads: how many threads share the rows.
        gradient: compute the gradients; without, both are empty.

    Returns:
        The loss and its gradients with respect to ``left`` and ``right``; where they are one array, the first holds
        the whole gradient and the second is zero.
    """
    _check_temperature(temperature, 2.0)
    size = len(left)
    scale = 1.0 / temperature
    d_left = np.empty_like(left)

    def work(a: int, b: int) -> tuple[float, np.ndarray]:
        student = left[a:b] @ right.T
        loss = _relational_rows(student, targets[a:b], a, np.float32(scale), np.float32(scale / size))
        if not gradient:
            return loss, student
        np.matmul(student, right, out=d_left[a:b])
        return loss, student.T @ left[a:b]

    parts = over_blocks(work, size, threads)
    loss = sum(part for part, _ in parts) / size
    if not gradient:
        return loss, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_right = parts[0][1]
    for _, part in parts[1:]:
        d_right += part
    if left is right:
        return loss, d_left + d_right, np.zeros_like(d_right)
    return loss, d_left, d_right


def _reach(margin: float) -> float:
    """Return how far a cosine, or one less the margin, can be from 1: below it, and with a negative margin above it."""
    return max(2.0 + max(margin, 0.0), -margin)


def _check_temperature(temperature: float, reach: float) -> None:
    """Refuse a temperature at which exp(reach / temperature) leaves float32."""
    if not temperature >= reach / _FLOAT32_RANGE:
        least = reach / _FLOAT32_RANGE
        raise ConfigError(f"temperature {temperature} is too small for float32: use at least {least:.3f}")
