"""The speed of encoders."""

from __future__ import annotations

import time
from collections.abc import Sequence

from xswe.evaluation.encoders import SentenceEncoder

_MOST = 1_000_000  # texts a call


def sample_texts(languages: Sequence[str]) -> list[str]:
    """Return the sentences that come with the package, in those of the languages named that it has, else in English."""
    from xswe.corpus.cards import sample_sentences  # brings what fetches corpora

    sides = sample_sentences()
    chosen = [texts for code, texts in sides.items() if code in languages] or [sides["en"]]
    return [text for row in zip(*chosen, strict=True) for text in row]


def sentences_per_second(encoder: SentenceEncoder, texts: Sequence[str], seconds: float = 1.0) -> float:
    """Time ``encode`` on ever more texts until a call takes ``seconds``, and return the best rate seen.

    The first call is not counted: it compiles and fills caches.

    Args:
        encoder: what is timed, with its own number of threads.
        texts: what is encoded, repeated as often as it takes.
        seconds: how long the last call takes, roughly.
    """
    encoder.encode([texts[i % len(texts)] for i in range(256)])
    count, best = 256, 0.0
    while True:
        block = [texts[i % len(texts)] for i in range(count)]
        start = time.perf_counter()
        encoder.encode(block)
        took = time.perf_counter() - start
        best = max(best, count / max(took, 1e-9))
        if took >= seconds / 2 or count >= _MOST:
            return best
        count = min(_MOST, count * min(8, max(2, int(seconds / max(took, 1e-6)))))
