"""The speed of encoders."""

from __future__ import annotations

import time
from collections.abc import Sequence

from xswe.evaluation.encoders import SentenceEncoder

_MAX_TEXTS = 1_000_000  # per call


def sample_texts(languages: Sequence[str]) -> list[str]:
    """Return the package's sample sentences in the given languages, or in English if it has none of them."""
    from xswe.corpus.cards import sample_sentences  # imports the code that fetches corpora

    sides = sample_sentences()
    chosen = [texts for code, texts in sides.items() if code in languages] or [sides["en"]]
    return [text for row in zip(*chosen, strict=True) for text in row]


def sentences_per_second(encoder: SentenceEncoder, texts: Sequence[str], seconds: float = 1.0) -> float:
    """Time ``encode`` on more and more texts until a call takes about ``seconds``, and return the best rate.

    The first call is not timed: it compiles and fills caches.

    Args:
        encoder: the encoder, which decides the number of threads.
        texts: the texts to encode, repeated as needed.
        seconds: approximate duration of the last call.
    """
    encoder.encode([texts[i % len(texts)] for i in range(256)])
    count, best = 256, 0.0
    while True:
        block = [texts[i % len(texts)] for i in range(count)]
        start = time.perf_counter()
        encoder.encode(block)
        took = time.perf_counter() - start
        best = max(best, count / max(took, 1e-9))
        if took >= seconds / 2 or count >= _MAX_TEXTS:
            return best
        count = min(_MAX_TEXTS, count * min(8, max(2, int(seconds / max(took, 1e-6)))))
