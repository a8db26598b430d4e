"""One phrase against one passage, by every method of SLICE's Table 1: what the evaluation compares.

Each scorer answers the same question with the same types, whether it can say where the phrase is or not.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from xswe.errors import DependencyError
from xswe.io.ragged import Bags
from xswe.phrases.search import Search, SpanConfig, WordSource
from xswe.progress import track
from xswe.text.scripts import CJK_CHARACTERS
from xswe.text.spans import Cut

Encode = Callable[[Sequence[str]], np.ndarray]


class WholeTexts:
    """Each passage as one span: the cosine of sentence vectors, blind to where in the context the phrase is.

    Args:
        encode: texts to unit vectors, float32 (n, d).
        name: what tells the encoder from another.
    """

    block_characters = 100_000
    in_context = True

    def __init__(self, encode: Encode, name: str) -> None:
        self._encode, self.identity = encode, ["whole", name]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Encode texts; each is one word."""
        matrix = np.ascontiguousarray(self._encode(texts), np.float32)
        ones = Bags.of([[i] for i in range(len(texts))])
        return matrix, Cut(ones.ids, ones.offsets, np.arange(len(texts) + 1, dtype=np.int64))

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The whole of each text, int32 (1, 2)."""
        return [np.array([[0, len(text)]], np.int32) for text in texts]

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d)."""
        return np.ascontiguousarray(self._encode(texts), np.float32)


@dataclass(frozen=True, eq=False)
class Scored:
    """The best span of each pair of a phrase and a passage.

    Attributes:
        scores: float64 (n,).
        starts: int64 (n,), its first character in the passage; 0 where none was found.
        ends: int64 (n,), one past its last; the passage's length for methods that see passages only as a whole.
    """

    scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class Scorer(Protocol):
    """A method."""

    def __call__(self, phrases: Sequence[str], passages: Sequence[str]) -> Scored:
        """Score phrase i against passage i."""


class SpanScorer:
    """The best span of words by cosine, from a single pass over the passage.

    Args:
        source: words with vectors: a static model's, a teacher's, or whole texts.
        config: least and most words of a span.
    """

    def __init__(self, source: WordSource, config: SpanConfig | None = None) -> None:
        self.source, self.config = source, replace(config or SpanConfig(), k=1, min_score=-1.0, distinct=False)

    def __call__(self, phrases: Sequence[str], passages: Sequence[str]) -> Scored:
        """Score phrase i against passage i; a pair without a span scores 0."""
        queries = self.source.queries(phrases)
        matrix, cut = self.source.cut(passages, 1)
        scores, starts, ends = np.zeros(len(phrases)), *(np.zeros(len(phrases), np.int64) for _ in range(2))
        for i in track(range(len(phrases)), "score pairs", unit="pair"):
            search = Search(self.source, queries[i : i + 1], self.config)
            search.add_cut(matrix, cut.text(i), 0)
            if search.top.used[0]:
                _, first, last = search.top.places[0].item()
                places = self.source.places([passages[i]])[0][first:last]
                scores[i], starts[i], ends[i] = search.top.hits["score"][0], places[0, 0], places[:, 1].max()
        return Scored(scores, starts, ends)


class NGramScorer:
    """One encoding for each n-gram of words of the passage: SLICE's costly upper row.

    Args:
        encode: texts to unit vectors.
        source: tells the words of a passage; its vectors are not used.
        config: least and most words of an n-gram.
    """

    def __init__(self, encode: Encode, source: WordSource, config: SpanConfig | None = None) -> None:
        self._encode, self.source, self.config = encode, source, config or SpanConfig()

    def __call__(self, phrases: Sequence[str], passages: Sequence[str]) -> Scored:
        """Score phrase i against passage i; a pair without a span scores 0."""
        queries = self._encode(phrases)
        scores, starts, ends = np.zeros(len(phrases)), *(np.zeros(len(phrases), np.int64) for _ in range(2))
        low, high = self.config.min_size, self.config.max_size
        for i, passage in enumerate(track(passages, "encode n-grams", len(passages), "passage")):
            words = self.source.places([passage])[0].tolist()
            spans = [
                (words[a][0], max(end for _, end in words[a:b]))
                for a in range(len(words))
                for b in range(a + low, min(a + high, len(words)) + 1)
            ]
            if spans:
                found = self._encode([passage[a:b] for a, b in spans]) @ queries[i]
                best = int(found.argmax())
                scores[i], (starts[i], ends[i]) = found[best], spans[best]
        return Scored(scores, starts, ends)


_TERM = re.compile(f"[{CJK_CHARACTERS}]|[^\\W{CJK_CHARACTERS}]+")


def bm25_terms(text: str) -> list[str]:
    """Cut a text into the terms of BM25: lower-cased words of spaced scripts, single Han and Kana characters."""
    return _TERM.findall(text.lower())


class BM25Scorer:
    """BM25 (the library bm25s, Lucene's variant, k1 = 1.5, b = 0.75), the passages being the collection."""

    def __call__(self, phrases: Sequence[str], passages: Sequence[str]) -> Scored:
        """Score phrase i against passage i."""
        try:
            import bm25s
        except ImportError:
            raise DependencyError("bm25s", "evaluate", "the BM25 comparison") from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
        index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        index.index([bm25_terms(text) for text in passages], show_progress=False)
        known = index.vocab_dict
        scores = np.zeros(len(phrases))
        for i, phrase in enumerate(phrases):
            terms = [term for term in bm25_terms(phrase) if term in known]
            scores[i] = index.get_scores(terms)[i] if terms else 0.0
        ends = np.array([len(passage) for passage in passages], np.int64)
        return Scored(scores, np.zeros(len(passages), np.int64), ends)
