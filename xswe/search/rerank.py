"""Reranking of candidates by a slower encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from xswe.io.arguments import check_encoded
from xswe.io.products import row_products
from xswe.progress import bar
from xswe.search.hits import Hits
from xswe.search.lists import logger

_BATCH = 256


class Encoder(Protocol):
    """Anything that encodes sentences."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 (n, d)."""


def reranker_vectors(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """Encode texts in batches of similar length, float32 (n, d)."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    parts = []
    with bar("rerank", len(texts), unit="line") as progress:
        for start in range(0, len(order), _BATCH):
            batch = [texts[i] for i in order[start : start + _BATCH].tolist()]
            parts.append(check_encoded(np.asarray(encoder.encode(batch), np.float32), len(batch)))
            progress.update(len(parts[-1]))
    out = np.concatenate(parts)
    out[order] = out.copy()
    logger.info("the reranker encoded %d texts", len(texts))
    return out


def combined(own: np.ndarray, other: np.ndarray, of: int | None = None) -> np.ndarray:
    """Add both models' standardised scores, float64 (n,), by mean and deviation of the first ``of`` or of all."""
    out = np.zeros(len(own))
    for scores in (own.astype(np.float64), other.astype(np.float64)):
        out += (scores - scores[:of].mean()) / max(float(scores[:of].std()), 1e-9)
    return out


def rerank_hits(found: Sequence[Hits], encoder: Encoder, k: int) -> list[Hits]:
    """Order the hits of each query by both models, and keep the best ``k``.

    The new score is the mean of both models' standardised scores, on the scale of the static vectors' cosines.
    """
    texts = list(dict.fromkeys(text for hits in found for text in (hits.query or "", *(hit.text for hit in hits))))
    vectors = reranker_vectors(encoder, texts) if texts else np.zeros((0, 1), np.float32)
    place = {text: row for row, text in enumerate(texts)}
    out = []
    for hits in found:
        if not hits.hits:
            out.append(hits)
            continue
        own = np.array([hit.score for hit in hits])
        other = row_products(vectors[[place[hit.text] for hit in hits]], vectors[place[hits.query or ""]])
        scores = own.mean() + own.std() * combined(own, other) / 2
        order = np.argsort(-scores, kind="stable")[:k].tolist()
        out.append(Hits(hits.query, tuple(hits[row]._replace(score=float(scores[row])) for row in order)))
    return out
