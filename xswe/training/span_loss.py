"""Span-max ranking (SLICE 3.1): a phrase against the best span of a passage that says it, and of one that does not."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from xswe.io.parallel import over_blocks

Similarity = Literal["normalised", "cosine"]


def span_max_loss(
    phrases: np.ndarray, true: np.ndarray, false: np.ndarray, scale: float, similarity: Similarity = "normalised"
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Loss of triplets, given their best spans.

    With s+ and s- the similarities of a phrase with the best span of either passage, and l the scale,
    loss = mean of -l s+ + log(e^{l s+} + e^{l s-}). The maximum over spans passes its gradient to the best one alone.

    Args:
        phrases: float32 (n, d), unit vectors.
        true: float32 (n, d), unit vectors of the best spans of the passages that hold a paraphrase.
        false: float32 (n, d), the same of passages that do not.
        scale: l, lambda in SLICE.
        similarity: ``normalised``, (1 + cosine) / 2, which lies in [0, 1] (SLICE), or ``cosine``.

    Returns:
        The loss and its gradients with respect to the three arrays, float32 (n, d).
    """
    scale = scale / 2 if similarity == "normalised" else scale  # the constant 1 / 2 falls out of the difference
    difference = scale * (np.einsum("ij,ij->i", phrases, false) - np.einsum("ij,ij->i", phrases, true)).astype(np.float64)
    loss = float(np.logaddexp(0.0, difference).mean())
    # The derivative of log(1 + e^x), in a form that no x makes overflow.
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
    """See :func:`best_spans`; passages ``start`` to ``stop``."""
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
    """Find the span of passage i that is nearest to phrase i.

    Args:
        matrix: float32 (rows, d).
        ids: int32 (pieces,), rows of the words.
        words: int64 (w + 1,), word ``j`` has the rows ``ids[words[j]:words[j + 1]]``.
        texts: int64 (n + 1,), passage ``i`` has the words ``texts[i]`` to ``texts[i + 1]``.
        phrases: float32 (n, d), unit vectors.
        min_size: words of the shortest span.
        max_size: words of the longest.
        threads: how many threads share the passages.

    Returns:
        int64 (n, 2), first word and one past the last (both the same where a passage has no span), and float32 (n,) the
        cosines (0 there).
    """
    found, scores = np.empty((len(texts) - 1, 2), np.int64), np.empty(len(texts) - 1, np.float32)
    over_blocks(
        lambda a, b: _best_spans(matrix, ids, words, texts, phrases, min_size, max_size, a, b, found, scores),
        len(scores),
        threads,
    )
    return found, scores
