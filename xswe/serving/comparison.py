"""Two texts side by side: their cosine, and what each word adds to it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from xswe.alignment.words import link_vectors
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.serving.messages import CompareRequest, Comparison, Word
from xswe.text.languages import has_cjk, is_punctuation

_LINKED = 0.4  # least cosine of words that are linked


def compare(model: AnyModel, part: StaticModel, request: CompareRequest) -> Comparison:
    """Compare all texts of two lists, and explain one pair of them.

    A text's vector is the mean of its units' vectors, so that a cosine is a sum over pairs of units, and nothing is
    estimated: what two words add is the sum over theirs. Of an ensemble, ``part`` is explained.
    """
    left, right = (np.asarray(model.encode(texts)) for texts in (request.left, request.right))
    cosines = left @ right.T
    i, j = request.pair
    (words, vectors), (others, theirs) = explained(part, request.left[i]), explained(part, request.right[j])
    shares = vectors @ theirs.T
    return Comparison(
        np.round(cosines.astype(np.float64), 4).tolist(),
        (i, j),
        [word_of(word, share) for word, share in zip(words, shares.sum(1), strict=True)],
        [word_of(word, share) for word, share in zip(others, shares.sum(0), strict=True)],
        np.round(shares.astype(np.float64), 5).tolist(),
        link_vectors(vectors, theirs, method="intersection", prior=0.0, min_score=_LINKED),
    )


def word_of(word: tuple[str, int, int], share: float) -> Word:
    """Return a word as it is sent."""
    return Word(*word, round(float(share), 5))


def explained(model: StaticModel, text: str) -> tuple[list[tuple[str, int, int]], np.ndarray]:
    """Cut a text into words whose vectors add up to the text's.

    Returns:
        Each word, where it starts and where it ends; and float32 (words, d), whose sum is ``model.encode(text)``.
    """
    located = model.units.locate([text])
    ids, starts, ends = located.bags.ids, located.starts.tolist(), located.ends.tolist()
    rows = model.vectors[ids] if model.scales is None else model.matrix[ids] * model.scales[ids, None]
    firsts = [k for k in range(len(ids)) if k == 0 or not _goes_on(text, starts, ends, k)]
    words = []
    for a, b in pairwise([*firsts, len(ids)]):
        start, end = min(starts[a:b]), max(ends[a:b])
        words.append((text[start:end], start, end))
    sums = np.add.reduceat(rows.astype(np.float32), firsts, axis=0) if firsts else np.zeros((0, model.dim), np.float32)
    norm = float(np.linalg.norm(sums.sum(0)))
    return words, sums / norm if norm else sums


def _goes_on(text: str, starts: list[int], ends: list[int], k: int) -> bool:
    """Tell whether piece ``k`` belongs to the word of the one before it."""
    if starts[k] != ends[k - 1]:
        return starts[k] < ends[k - 1]  # of one character
    before, after = text[starts[k - 1] : ends[k - 1]], text[starts[k] : ends[k]]
    return not (has_cjk(before + after) or is_punctuation(before[-1:]) or is_punctuation(after[:1]))
