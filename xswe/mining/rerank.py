"""Reranking of mined pairs: an encoder scores the pairs near the threshold, where static vectors are least certain.

Pairs far above the threshold are kept and pairs far below it are left out, without reranking. The encoder scores the pairs
in between, and mismatched pairs with similar scores (or the best ones, if so few lines have a translation that nothing else
is known). The sum of both models' standardised scores ranks them, and the number of mismatches above a score estimates how
many of the pairs above it are wrong. So few lines pass through an encoder that is a thousand times slower, and the decision
rests on more than either model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from xswe.bitext.records import Record
from xswe.io.products import row_products
from xswe.io.ragged import Texts
from xswe.mining.margin import Pairs
from xswe.search.rerank import Encoder, combined, reranker_vectors

_MIN_PAIRS = 10  # pairs needed for meaningful standardised scores
TextsOf = Callable[[np.ndarray], Texts]  # from rows of one side to their texts


def window(scores: np.ndarray, threshold: float, most: int) -> slice:
    """Return which ``most`` of descending scores are around a threshold, half above and half below as far as possible."""
    above = int((scores >= np.float32(threshold)).sum())
    start = max(0, min(above - most // 2, len(scores) - most))
    return slice(start, min(len(scores), start + most))


def rerank_pairs(
    pairs: Pairs,
    decoys: Pairs,
    threshold: float,
    texts: tuple[TextsOf, TextsOf],
    encoder: Encoder,
    most: int,
    weight: float | None = None,
) -> np.ndarray:
    """Return which pairs are kept, bool (n,), after an encoder has scored the ``most`` nearest to the threshold.

    Pairs and decoys come best first; ``decoys`` are wrong pairs, selected without each line's best neighbour. With an
    infinite threshold the best pairs are reranked. ``weight`` is the number of wrong pairs that each decoy in the range of
    the reranked pairs stands for; if it is unknown, the best decoys are taken and stand for one each.
    """
    near = window(pairs.scores, threshold, most)
    asked = pairs.take(np.arange(near.start, near.stop))
    kept = np.arange(len(pairs)) < near.start
    if len(asked) < _MIN_PAIRS:
        return np.asarray(pairs.scores >= np.float32(threshold))
    among = np.arange(min(most, len(decoys)))
    if weight is not None:
        # Decoys above the window stand for pairs that are kept anyway, decoys below it for pairs that are left out anyway.
        among = np.flatnonzero((decoys.scores >= asked.scores[-1]) & (decoys.scores <= asked.scores[0]))
    chosen = among[np.linspace(0, len(among) - 1, min(most, len(among))).astype(np.int64)]
    wrong, each = decoys.take(chosen), (1.0 if weight is None else weight) * len(among) / max(len(chosen), 1)
    cosines = _cosines(asked, wrong, texts, encoder)
    both = combined(np.concatenate([asked.scores, wrong.scores]), cosines, len(asked))
    ranks, false = both[: len(asked)], np.sort(both[len(asked) :])
    falling, count = np.sort(ranks)[::-1], np.arange(1, len(ranks) + 1)
    above = len(false) - np.searchsorted(false, falling)
    right = np.minimum(np.maximum.accumulate(np.maximum(count - each * (above + 1), 0)), count)
    f1 = (near.start + right) / (2 * near.start + count + right[-1])
    if right[-1] or near.start:
        kept[near] = ranks >= falling[int(f1.argmax())]
    return kept


def _texts_of_records(records: Callable[[], Iterable[Record]], side: int, rows: np.ndarray) -> Texts:
    """Read one side of the given records."""
    wanted = set(rows.tolist())
    texts = {row: record.texts or ("", "") for row, record in enumerate(records()) if row in wanted}
    return Texts.of([texts[row][side] for row in rows.tolist()])


def rerank_bitext(
    scores: np.ndarray,
    compared: np.ndarray,
    decoys: np.ndarray,
    threshold: float,
    records: Callable[[], Iterable[Record]],
    encoder: Encoder,
    most: int,
    weight: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scored records of a bitext, best first, and which of them are kept; see :func:`rerank_pairs`.

    ``scores``, float32 (n,), are NaN for records that are dropped anyway. ``compared``, int64 (d,), are the records whose
    source was compared with the next one's target, and ``decoys``, float32 (d,), the cosines, NaN for the last record.
    """
    rows = np.flatnonzero(np.isfinite(scores))
    # A decoy is a source with the next target, or at the end of a block with the block's first, no translation either.
    there = np.isfinite(decoys)
    pairs = Pairs.of(scores[rows], rows, rows).best_first()
    wrong = Pairs.of(decoys[there], compared[there], np.roll(compared, -1)[there]).best_first()
    texts = partial(_texts_of_records, records, 0), partial(_texts_of_records, records, 1)
    return pairs.source, rerank_pairs(pairs, wrong, threshold, texts, encoder, most, weight)


def _cosines(asked: Pairs, wrong: Pairs, texts: tuple[TextsOf, TextsOf], encoder: Encoder) -> np.ndarray:
    """Return the reranker's cosines of the pairs and of the decoys."""
    sides = []
    for texts_of, column in zip(texts, ("source", "target"), strict=True):
        rows = np.concatenate([getattr(asked, column), getattr(wrong, column)]).astype(np.int64)
        distinct, place = np.unique(rows, return_inverse=True)
        sides.append(reranker_vectors(encoder, list(texts_of(distinct)))[place])
    return row_products(*sides)
