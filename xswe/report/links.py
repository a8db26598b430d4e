"""Which words of two sentences belong together, by nothing but the vectors of the words.

Two words are linked where each is the other's nearest by cosine (Jalili Sabet et al., 2020, "Argmax") and the cosine is
well above that of words drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xswe.errors import ModelError
from xswe.model.ensemble import AnyModel
from xswe.phrases.words import open_words

_LEAST = 0.45  # cosine of two words that are linked
Part = tuple[str, int]  # a piece of a text, and the number of the link it is in; -1 for none


def linked(model: AnyModel, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[Part], list[Part]]]:
    """Cut both sides of pairs at their words, linked words numbered alike.

    Args:
        model: a static model; of an ensemble nothing is linked.
        pairs: of texts.

    Returns:
        For each pair the parts of both sides, which put together are the texts.
    """
    whole = [([(source, -1)], [(target, -1)]) for source, target in pairs]
    try:
        words = open_words(model)
    except ModelError:
        return whole
    texts = [text for pair in pairs for text in pair]
    places = [_cut(text, where) for text, where in zip(texts, words.places(texts), strict=True)] if texts else []
    flat = [text[start:end] for text, own in zip(texts, places, strict=True) for start, end in own]
    vectors = words.queries(flat) if flat else np.zeros((0, 1), np.float32)
    ends = np.cumsum([0, *map(len, places)])
    out = []
    for k, (source, target) in enumerate(pairs):
        a, b = vectors[ends[2 * k] : ends[2 * k + 1]], vectors[ends[2 * k + 1] : ends[2 * k + 2]]
        links = _links(a, b)
        left = _parts(source, places[2 * k], {i: n for n, (i, _) in enumerate(links)})
        out.append((left, _parts(target, places[2 * k + 1], {j: n for n, (_, j) in enumerate(links)})))
    return out


def _cut(text: str, where: np.ndarray) -> list[tuple[int, int]]:
    """Return the places of the words that have a letter, in order and apart."""
    out: list[tuple[int, int]] = []
    for start, end in where.tolist():
        if start >= (out[-1][1] if out else 0) and any(map(str.isalnum, text[start:end])):
            out.append((start, end))
    return out


def _links(left: np.ndarray, right: np.ndarray) -> list[tuple[int, int]]:
    if not len(left) or not len(right):
        return []
    cosines = left @ right.T
    there, back = cosines.argmax(1), cosines.argmax(0)
    mutual = [(i, int(j)) for i, j in enumerate(there.tolist()) if back[j] == i]
    return [(i, j) for i, j in mutual if cosines[i, j] >= _LEAST]


def _parts(text: str, places: Sequence[tuple[int, int]], links: dict[int, int]) -> list[Part]:
    out, done = [], 0
    for k, (start, end) in enumerate(places):
        if k in links:
            out += [(text[done:start], -1), (text[start:end], links[k])]
            done = end
    return [part for part in [*out, (text[done:], -1)] if part[0]]
