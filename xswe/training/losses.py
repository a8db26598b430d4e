"""Losses on batches of unit vectors: values and hand-written gradients.

Each is a pure function of float32 arrays, which the tests check against automatic differentiation, and returns the gradient
with respect to its *unit* vectors; :func:`through_norm` propagates a gradient back through the normalisation.

The expensive part is the similarity matrix of a batch. It is computed once, exponentiated in place by a polynomial that
the compiler vectorises, summed along both axes in the same pass, and turned into the gradient in place.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol

import numpy as np
from numba import njit

from xswe.errors import ConfigError
from xswe.io.compiler import LEAN
from xswe.io.parallel import over_blocks
from xswe.io.settings import for_all

# exp(x) must be a normal float32: as cosines lie in [-1, 1], (2 + margin) / temperature may not exceed this.
_MAX_EXPONENT = 87.0
Similarity = Literal["normalised", "cosine"]  # of a phrase and a span
# Slope of the similarity over the cosine; its constant cancels in differences.
_SLOPES = for_all(Similarity, {"normalised": 0.5, "cosine": 1.0})


@njit(inline="always")
def _exp(x: np.float32) -> float:
    """exp(x) for -87 <= x <= 87 in float32, relative error below 3e-6; branch-free, so loops over it vectorise."""
    t = max(x, np.float32(-_MAX_EXPONENT)) * np.float32(1.4426950408889634)
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
    margin: np.float32,
    anchor_ids: np.ndarray,
    texts: np.ndarray,
    anchors: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    diagonal: np.ndarray,
) -> None:
    """Turn a block of cosines into exp(scale * (cosine - margin on the diagonal) - scale), masking false negatives.

    ``logits`` starts at row ``start``; ``rows`` and ``columns`` receive the sums, ``diagonal`` the exponents.
    Equal numbers in ``anchor_ids``, ``texts`` and ``anchors`` mark false negatives, see :class:`RankingLoss`.
    """
    height, width = logits.shape
    for i in range(height):
        g = start + i
        logits[i, g] -= margin
        diagonal[i] = logits[i, g] * scale - scale
        total = np.float32(0.0)
        for j in range(width):
            e = _exp(logits[i, j] * scale - scale)
            masked = (anchor_ids[g] == anchor_ids[j]) | (texts[g] == texts[j]) | (anchors[g] == texts[j])
            e = e if (not masked) | (g == j) else np.float32(0.0)
            logits[i, j] = e
            total += e
            columns[j] += e
        rows[i] = total


@njit(**LEAN, fastmath=True)
def _to_gradient(
    weights: np.ndarray, start: int, rows: np.ndarray, by_column: np.ndarray, factor: np.float32, directions: np.float32
) -> None:
    """Turn exponentials into factor * (row softmax - directions * identity) + exponential * by_column, in place."""
    height, width = weights.shape
    for i in range(height):
        by_row = factor / rows[i]
        for j in range(width):
            weights[i, j] *= by_row + by_column[j]
        weights[i, start + i] -= directions * factor


class CosineLoss(Protocol):
    """A loss of a matrix of cosines, computed in blocks of rows that threads share.

    All blocks go through ``forward``, then ``value`` is called, then all blocks go through ``backward``; the loss may keep
    state in between. The same object then serves the next prefix of the vectors, with other cosines.
    """

    def forward(self, cosines: np.ndarray, start: int) -> Any:
        """Process a block of rows, starting at row ``start``, in place; return its part of the loss."""

    def value(self, parts: list[Any]) -> float:
        """Return the loss, given the parts of all blocks."""

    def backward(self, cosines: np.ndarray, start: int) -> None:
        """Turn the block that :meth:`forward` left, starting at row ``start``, into the gradient, in place."""


class RankingLoss:
    """Translation ranking, or multiple negatives ranking, of cosines, float32 (k, k + n).

    Row i is an anchor, column i its positive; columns k and up are extra negatives for all rows. With cosines s_ij, from
    which the margin m is subtracted for true pairs: loss = mean_i -log softmax_j(s_ij / t)_i over all columns, plus, with
    ``both``, mean_i -log softmax_j(s_ji / t)_i over the first k columns: symmetric in-batch InfoNCE (EN paper 3.3,
    bilingual; there the margin is 0). ConfigError: the temperature t is below 0.024, where exp(2 / t) exceeds float32.

    In ``same``, int (k,) and (k + n,), equal numbers mark equal anchors, and equal candidates; a candidate equal to the
    anchor's positive, or to another positive of the same anchor, is not a negative. If anchors may be among the candidates,
    a third array, int (k,), numbers the anchors as candidates; without it, no candidate counts as an anchor.
    """

    def __init__(self, same: tuple[np.ndarray, ...], temperature: float, margin: float = 0.0, both: bool = True) -> None:
        check_temperature(temperature, margin)
        self.size, self.both, f = len(same[0]), both, np.float32
        self.scale, self.margin, self.factor = f(1.0 / temperature), f(margin), f(1.0 / temperature / max(1, self.size))
        anchor_ids = np.full(len(same[1]), -1, np.int32)
        anchor_ids[: self.size] = same[0]
        texts, anchors = (np.ascontiguousarray(numbers, np.int32) for numbers in (*same, np.full(self.size, -2))[1:3])
        self.marks = anchor_ids, texts, anchors
        self.rows, self.diagonal = np.empty(self.size, f), np.empty(self.size, f)
        self.by_column = np.zeros(len(texts), f)

    def forward(self, cosines: np.ndarray, start: int) -> np.ndarray:
        """Exponentiate rows; return their column sums."""
        own, columns = slice(start, start + len(cosines)), np.zeros(cosines.shape[1], np.float32)
        how = self.scale, self.margin, *self.marks
        _exponentiate(cosines, start, *how, self.rows[own], columns, self.diagonal[own])
        return columns

    def value(self, parts: list[np.ndarray]) -> float:
        """Return the loss, given the column sums of all blocks."""
        log_partition, directions = np.log(self.rows.astype(np.float64)), 1.0
        if self.both:
            columns, directions = np.sum(parts, axis=0)[: self.size], 2.0
            self.by_column[: self.size] = self.factor / columns
            log_partition += np.log(columns.astype(np.float64))
        return float(np.mean(log_partition - directions * self.diagonal))

    def backward(self, cosines: np.ndarray, start: int) -> None:
        """Turn exponentials into the gradient."""
        directions = np.float32(2.0 if self.both else 1.0)
        _to_gradient(cosines, start, self.rows[start : start + len(cosines)], self.by_column, self.factor, directions)


class RelationalLoss:
    """Relational distillation of cosines, float32 (k, k), k >= 2 (EN paper 3.3).

    The student's similarities within a batch imitate the teacher's: with s_ij = cosine(left_i, right_j), T the
    temperature and q the ``targets`` of :func:`relational_targets`, loss = -mean_i sum_{j != i} q_ij log p_ij, where p is
    the softmax of s_ij / T over j != i. With the same array left and right it is the papers' monolingual loss; with the two
    sides of translation pairs, source i and target j should be as similar as sentences i and j are to the teacher.
    """

    def __init__(self, targets: np.ndarray, temperature: float) -> None:
        check_temperature(temperature)
        self.targets, self.scale = targets, 1.0 / temperature

    def forward(self, cosines: np.ndarray, start: int) -> float:
        """Turn rows straight into the gradient; return the sum of their losses."""
        own, f = self.targets[start : start + len(cosines)], np.float32
        return _relational_rows(cosines, own, start, f(self.scale), f(self.scale / len(self.targets)))

    def value(self, parts: list[float]) -> float:
        """Return the mean loss."""
        return float(sum(parts)) / len(self.targets)

    def backward(self, cosines: np.ndarray, start: int) -> None:
        """Do nothing: forward already wrote the gradient."""


def on_products(
    left: np.ndarray, right: np.ndarray, loss: CosineLoss, threads: int = 1, gradient: bool = True
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return a loss of the (k, n) cosines of unit (or zero) rows, float32 (k, d) and (n, d), and its gradients by both.

    If ``left`` and ``right`` are the same array, the first gradient is the sum and the second is zero. Without ``gradient``
    both are empty.
    """
    size = len(left)
    cosines = np.empty((size, len(right)), np.float32)

    def forward(a: int, b: int) -> Any:
        np.matmul(left[a:b], right.T, out=cosines[a:b])
        return loss.forward(cosines[a:b], a)

    value = finite(loss.value(over_blocks(forward, size, threads)))
    if not gradient:
        return value, np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)
    d_left = np.empty_like(left)

    def backward(a: int, b: int) -> np.ndarray:
        loss.backward(cosines[a:b], a)
        np.matmul(cosines[a:b], right, out=d_left[a:b])
        return cosines[a:b].T @ left[a:b]

    d_right, *parts = over_blocks(backward, size, threads)
    for part in parts:
        d_right += part
    return (value, d_left + d_right, np.zeros_like(d_right)) if left is right else (value, d_left, d_right)


@njit(**LEAN, fastmath=True)
def through_norm(unit: np.ndarray, gradient: np.ndarray, norms: np.ndarray) -> None:
    """Propagate ``gradient`` from u = v / |v| back to v, in place: (g - u (u . g)) / |v|; 0 where |v| is 0."""
    for i in range(unit.shape[0]):
        along = np.float32(0.0)
        for j in range(unit.shape[1]):
            along += unit[i, j] * gradient[i, j]
        inverse = np.float32(1.0) / norms[i] if norms[i] > 0 else np.float32(0.0)
        for j in range(unit.shape[1]):
            gradient[i, j] = (gradient[i, j] - unit[i, j] * along) * inverse


@njit(**LEAN, fastmath=True)
def _softmax_off_diagonal(cosines: np.ndarray, start: int, scale: np.float32) -> None:
    """Turn a block of cosines into their row softmax at ``scale``, without the diagonal (zero), in place."""
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
    """Turn a block of student cosines into the gradient of the relational loss; return the block's loss sum."""
    height, width = student.shape
    loss = 0.0
    for i in range(height):
        student[i, start + i] = np.float32(-1e9)
        total, cross = np.float32(0.0), np.float32(0.0)
        for j in range(width):
            logit = max((student[i, j] - np.float32(1.0)) * scale, np.float32(-_MAX_EXPONENT))
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
    """Return targets for a student's similarities in a batch, float32 (k, k), from a teacher's unit vectors (k, e), k >= 2.

    Row i is the softmax of cosine(teacher_i, teacher_j) / temperature over j != i; zero on the diagonal (EN paper 3.3).
    """
    check_temperature(temperature)
    targets = np.empty((len(teacher), len(teacher)), np.float32)

    def work(a: int, b: int) -> None:
        np.matmul(teacher[a:b], teacher.T, out=targets[a:b])
        _softmax_off_diagonal(targets[a:b], a, np.float32(1.0 / temperature))

    over_blocks(work, len(teacher), threads)
    return targets


def check_temperature(temperature: float, margin: float = 0.0, name: str = "temperature") -> None:
    """Raise ConfigError if an exponential of cosines, from which a margin is subtracted, exceeds float32."""
    # How far a cosine minus the margin can be from 1: below it or, with a negative margin, above it.
    least = max(2.0 + max(margin, 0.0), -margin) / _MAX_EXPONENT
    if not temperature >= least:
        raise ConfigError(f"{name}={temperature} is too small for float32: use at least {least:.3f}")


def finite(loss: float) -> float:
    """Return a loss; ConfigError: it is no number, as of vectors that grew beyond float32."""
    if not math.isfinite(loss):
        raise ConfigError(f"the loss is {loss}: set a lower learning_rate")
    return loss


def span_max_loss(
    phrases: np.ndarray, true: np.ndarray, false: np.ndarray, scale: float, similarity: Similarity = "normalised"
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the loss of triplets, given unit vectors, float32 (n, d), and its gradients with respect to all three arrays.

    ``true`` and ``false`` are the best spans of passages with and without a paraphrase. With s+ and s- the similarities of
    a phrase to these spans, and l the ``scale`` (lambda in SLICE), loss = mean of -l s+ + log(e^{l s+} + e^{l s-}). The
    maximum over spans passes its gradient to the best span only.
    ``similarity`` is ``normalised``, (1 + cosine) / 2, which lies in [0, 1] (SLICE), or ``cosine``.
    """
    scale *= _SLOPES[similarity]
    difference = scale * (np.einsum("ij,ij->i", phrases, false) - np.einsum("ij,ij->i", phrases, true)).astype(np.float64)
    loss = float(np.logaddexp(0.0, difference).mean())
    # The derivative of log(1 + e^x), in a form that never overflows.
    weight = np.exp(-np.logaddexp(0.0, -difference)) * scale / len(phrases)
    column = weight.astype(np.float32)[:, None]
    return loss, column * (false - true), -column * phrases, column * phrases


@njit(nogil=True, cache=True, fastmath=True)
def _best_spans(
    matrix: np.ndarray,
    ids: np.ndarray,
    words: np.ndarray,
    texts: np.ndarray,
    phrases: np.ndarray,
    min_size: int,
    max_size: int,
    start: int,
    stop: int,
    found: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Find the spans of :func:`best_spans` in passages ``start`` to ``stop``."""
    width = matrix.shape[1]
    total = np.empty(width, np.float32)
    for i in range(start, stop):
        found[i, 0] = found[i, 1] = texts[i]
        best = np.float32(-4.0)
        for first in range(texts[i], texts[i + 1]):
            total[:] = 0.0
            for last in range(first, min(first + max_size, texts[i + 1])):
                for p in range(words[last], words[last + 1]):
                    row = ids[p]
                    for k in range(width):
                        total[k] += matrix[row, k]
                if last + 1 - first < min_size:
                    continue
                along, squared = np.float32(0.0), np.float32(0.0)
                for k in range(width):
                    along += total[k] * phrases[i, k]
                    squared += total[k] * total[k]
                score = along / np.sqrt(squared) if squared > 0 else np.float32(0.0)
                if score > best:
                    best = score
                    found[i, 0], found[i, 1] = first, last + 1
        scores[i] = best if best > np.float32(-4.0) else np.float32(0.0)


def best_spans(
    matrix: np.ndarray,
    ids: np.ndarray,
    words: np.ndarray,
    texts: np.ndarray,
    phrases: np.ndarray,
    min_size: int,
    max_size: int,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the span of passage i nearest to phrase i, as first word and one past the last, int64 (n, 2), and cosines.

    Without a span, both words are equal and the cosine is 0. ``phrases``, float32 (n, d), are unit vectors. Word
    ``j`` has the rows ``ids[words[j]:words[j + 1]]`` of ``matrix``, passage ``i`` the words ``texts[i]`` to ``texts[i +
    1]``. Spans have ``min_size`` to ``max_size`` words.
    """
    found, scores = np.empty((len(texts) - 1, 2), np.int64), np.empty(len(texts) - 1, np.float32)
    over_blocks(
        lambda a, b: _best_spans(matrix, ids, words, texts, phrases, min_size, max_size, a, b, found, scores),
        len(scores),
        threads,
    )
    return found, scores
