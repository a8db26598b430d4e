"""A second opinion: an encoder judges the pairs near the threshold, of which the static vectors are least sure.

Pairs far above the threshold are kept and pairs far below it are left out, as they are. Those between, and as many of the
best mismatched pairs, pass through the encoder; the sum of both models' standardised scores ranks them, and the mismatches
above a score say how many of the pairs above it are wrong. So few lines pass through an encoder that is a thousand times
slower, and what decides is more than either model has.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from xswe.io.ragged import Texts
from xswe.mining.margin import Pairs
from xswe.mining.score import row_cosines
from xswe.progress import bar

logger = logging.getLogger(__name__)
_BATCH = 256
_LEAST = 10  # pairs, for standardised scores to mean something


class Encoder(Protocol):
    """Whatever makes sentence vectors."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 (n, d)."""


def window(scores: np.ndarray, threshold: float, most: int) -> slice:
    """Return which scores are the ``most`` nearest to a threshold, half above and half below where there are so many.

    Args:
        scores: falling.
        threshold: of them.
        most: how many.
    """
    above = int((scores >= np.float32(threshold)).sum())
    start = max(0, min(above - most // 2, len(scores) - most))
    return slice(start, min(len(scores), start + most))


def judge_pairs(
    pairs: Pairs, decoys: Pairs, threshold: float, texts: tuple[Texts, Texts], encoder: Encoder, most: int
) -> np.ndarray:
    """Tell which pairs are kept, bool (n,).

    Args:
        pairs: best first.
        decoys: pairs that are selected among each line's further neighbours, best first: they are wrong.
        threshold: of the scores; infinite to have the best pairs judged.
        texts: of both sides.
        encoder: the judge.
        most: pairs that it judges, and decoys; it encodes both texts of each, a text once.
    """
    near = window(pairs.scores, threshold, most)
    asked, wrong = pairs.take(np.arange(near.start, near.stop)), decoys.take(np.arange(min(most, len(decoys))))
    kept = np.arange(len(pairs)) < near.start
    if len(asked) < _LEAST:
        return np.asarray(pairs.scores >= np.float32(threshold))
    cosines = _cosines(asked, wrong, texts, encoder)
    ranks = np.zeros(len(asked) + len(wrong))
    for scores in (np.concatenate([asked.scores, wrong.scores]).astype(np.float64), cosines.astype(np.float64)):
        own = scores[: len(asked)]
        ranks += (scores - own.mean()) / max(float(own.std()), 1e-9)
    falling, false = np.sort(ranks[: len(asked)])[::-1], np.sort(ranks[len(asked) :])
    count = np.arange(1, len(falling) + 1)
    right = np.maximum.accumulate(np.maximum(count - (len(false) - np.searchsorted(false, falling)) - 1, 0))
    f1 = (near.start + right) / (2 * near.start + count + right[-1])
    if right[-1] or near.start:
        kept[near] = ranks[: len(asked)] >= falling[int(f1.argmax())]
    return kept


def _cosines(asked: Pairs, wrong: Pairs, texts: tuple[Texts, Texts], encoder: Encoder) -> np.ndarray:
    """Return the judge's cosines of the pairs and of the decoys."""
    sides = []
    for side, column in zip(texts, ("source", "target"), strict=True):
        rows = np.concatenate([getattr(asked, column), getattr(wrong, column)]).astype(np.int64)
        distinct, place = np.unique(rows, return_inverse=True)
        sides.append(_encoded(encoder, list(side.take(distinct)))[place])
    return row_cosines(*sides)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """Encode texts in batches of about the same length, float32 (n, d)."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    parts = []
    with bar("judge", len(texts), unit="line") as progress:
        for start in range(0, len(order), _BATCH):
            parts.append(np.asarray(encoder.encode([texts[i] for i in order[start : start + _BATCH].tolist()]), np.float32))
            progress.update(len(parts[-1]))
    out = np.concatenate(parts)
    out[order] = out.copy()
    logger.info("the judge encoded %d texts", len(texts))
    return out
