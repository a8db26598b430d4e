"""Pairs of texts cut at the words that say the same, to be marked alike in a page."""

from __future__ import annotations

from collections.abc import Sequence

from xswe.alignment.words import align_words
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel

_LEAST = 0.45  # cosine of two words that are marked: well above that of words drawn at random
Part = tuple[str, int]  # a piece of a text, and the number of the link it is in; -1 for none


def linked(model: AnyModel, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[Part], list[Part]]]:
    """Cut both sides of pairs at their words, linked words numbered alike.

    Args:
        model: a static model; of an ensemble nothing is linked.
        pairs: of texts.

    Returns:
        For each pair the parts of both sides, which put together are the texts.
    """
    if not isinstance(model, StaticModel):
        return [([(source, -1)], [(target, -1)]) for source, target in pairs]
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    out = []
    for pair in align_words(model, sources, targets, method="intersection", min_score=_LEAST):
        left = _parts(pair.source, pair.source_words, {i: n for n, (i, _) in enumerate(pair.links)})
        out.append((left, _parts(pair.target, pair.target_words, {j: n for n, (_, j) in enumerate(pair.links)})))
    return out


def _parts(text: str, places: Sequence[tuple[int, int]], links: dict[int, int]) -> list[Part]:
    out, done = [], 0
    for k, (start, end) in enumerate(places):
        if k in links:
            out += [(text[done:start], -1), (text[start:end], links[k])]
            done = end
    return [part for part in [*out, (text[done:], -1)] if part[0]]
