"""Examples of right and wrong pairs, from which a filter starts.

The library ships their features, without texts, for the models of this project and bitext with English on one side. For
other models and languages they are made from the package's sample corpus, which takes a second.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np

from xswe.corpus.cards import sample_sentences
from xswe.io.products import row_products
from xswe.io.ragged import Texts
from xswe.mining.features import CENTRED, NAMES, Features, mirrored
from xswe.mining.names import NameUsage
from xswe.mining.wrong import KINDS, Pair, WrongPairs
from xswe.model.ensemble import AnyModel

_PER_KIND = 400  # wrong pairs of each kind, made from the sample corpus
_WRONG_LANGUAGE = 1 + KINDS.index("wrong language")
_cache: dict[tuple[str, tuple[str, ...]], tuple[np.ndarray, np.ndarray]] = {}  # features and classes by model and languages


def features_of(
    features: Features, pairs: list[Pair], usage: NameUsage | None = None, origins: list[Pair] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of pairs, uint8 (n, features), and the vectors of their targets, float32 (n, d).

    ``usage`` has counted the names of the pairs, or of the ``origins`` that they are made from.
    """
    source, target = _sides(pairs)
    (left, here), (right, there) = (features.read(side) for side in (source, target))
    out = features.of(source, target, (here, there), row_products(left, right))
    if usage:
        usage.write((source, target), out, np.ones(len(pairs), bool), _sides(origins) if origins else None)
    return out, right


def _sides(pairs: list[Pair]) -> tuple[Texts, Texts]:
    return Texts.of([source for source, _ in pairs]), Texts.of([target for _, target in pairs])


def wrong_ones(features: Features, made: WrongPairs, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and the classes of wrong pairs of every kind."""
    parts, classes = [np.zeros((0, len(NAMES)), np.uint8)], [np.zeros(0, np.int64)]
    for place, kind in enumerate(KINDS, 1):
        wrong, rows = made.of_kind(kind, most)
        if wrong:
            origins = [made.pairs[row] for row in rows.tolist()]
            parts.append(features_of(features, wrong, made.usage, origins)[0])
            classes.append(np.full(len(wrong), place))
    return np.concatenate(parts), np.concatenate(classes)


def foreign_texts(languages: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return, for each side, texts in languages other than its own."""
    sample = sample_sentences()
    if len(languages) != 2:
        return [], []
    own = (languages[0], languages[1])
    return tuple([text for code in sample if code != own[side] for text in sample[code]] for side in (0, 1))  # type: ignore[return-value]


def examples_for(model: AnyModel, languages: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features uint8 (n, features), classes int64 (n,), and the median :data:`CENTRED` features of right pairs."""
    key = model.identity, languages
    if key not in _cache:
        _cache[key] = _shipped(model.identity, languages) or _of_sample(model, languages)
    features, classes = _cache[key]
    return features, classes, np.median(features[classes == 0][:, CENTRED].astype(np.float32), axis=0)


@lru_cache(1)
def _file() -> dict[str, np.ndarray]:
    with files("xswe.mining").joinpath("examples.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as found:
        return dict(found)


def shipped_name(identity: str, language: str) -> str:
    """Return the name of a model's examples for English and another language."""
    return f"{identity[:16]}-{language}"


def _shipped(identity: str, languages: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    other = next((code for code in languages if code != "en"), "")
    name = shipped_name(identity, other)
    if "en" not in languages or name not in _file():
        return None
    rows = _file()[name]
    features = rows[:, :-1] if languages[0] == "en" else mirrored(rows[:, :-1])
    return features, rows[:, -1].astype(np.int64)


def _of_sample(model: AnyModel, languages: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    sample, finder = sample_sentences(), Features(model, languages)
    own = languages if len(languages) == 2 else tuple(code for code in sample if code in model.languages)[:2]
    pairs = list(zip(*(sample[code] for code in own), strict=True))
    right, vectors = features_of(finder, pairs)
    wrong, classes = wrong_ones(finder, WrongPairs(pairs, vectors, foreign_texts(own), 1), _PER_KIND)
    foreign = features_of(finder, other_languages(own))[0]
    return (
        np.concatenate([right, wrong, foreign]),
        np.concatenate([np.zeros(len(right), np.int64), classes, np.full(len(foreign), _WRONG_LANGUAGE)]),
    )


def other_languages(languages: tuple[str, ...], step: int = 5) -> list[tuple[str, str]]:
    """Return right translations from the sample corpus with one side in a wrong language."""
    sample = sample_sentences()
    others = [code for code in sample if code not in languages]
    rows = range(0, len(sample["en"]), step)
    targets = [(sample[languages[0]][row], sample[others[row % len(others)]][row]) for row in rows]
    sources = [(sample[others[row % len(others)]][row], sample[languages[1]][row]) for row in rows[::2]]
    return targets + sources
