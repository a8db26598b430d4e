"""What a space of vectors looks like: languages apart or together, norms, neighbours both ways, maps of words or sentences.

The analyses of Wada et al. (2025, sections 5.2 and 5.3, appendix C): the first two principal components of sentence vectors
by language, before and after components are removed; norms of words by frequency; components against language and length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xswe.report import figures

_LEAST = 3  # sentences of a language that a silhouette needs


@dataclass(frozen=True)
class Cloud:
    """Sentences in a plane.

    Attributes:
        name: of the step or method.
        drawing: the plot.
        silhouette: of the languages in the whole space, -1 to 1: 0 where they lie together; None for a single one.
        shares: of the variance that each axis holds, None where an axis is none of variance.
    """

    name: str
    drawing: Any
    silhouette: float | None
    shares: tuple[float, float] | None = None


def proportion(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of ``n`` trials."""
    z = 1.959964
    wide = z * z / n
    middle = (share + wide / 2) / (1 + wide)
    half = z * float(np.sqrt(share * (1 - share) / n + wide / (4 * n))) / (1 + wide)
    return max(0.0, middle - half), min(1.0, middle + half)


def language_silhouette(vectors: Mapping[str, np.ndarray]) -> float | None:
    """Return the mean silhouette of the languages by cosine: how much nearer a sentence is to its own than to the next.

    Args:
        vectors: unit vectors of each language, float32 (n, d).

    Returns:
        -1 to 1: near 0 where languages lie together, None where there are not two of them.
    """
    known = {code: rows for code, rows in vectors.items() if len(rows) >= _LEAST}
    if len(known) < 2:
        return None
    found = []
    for code, rows in known.items():
        own = (1 - rows @ rows.T).sum(1) / (len(rows) - 1)
        other = np.min([(1 - rows @ rest.T).mean(1) for name, rest in known.items() if name != code], 0)
        found.append((other - own) / np.maximum(np.maximum(own, other), 1e-12))
    return float(np.concatenate(found).mean())


def plane(name: str, vectors: Mapping[str, np.ndarray], texts: Mapping[str, Sequence[str]]) -> Cloud:
    """Draw sentences by their first two principal components.

    Args:
        name: what the cloud is called.
        vectors: unit vectors of each language, float32 (n, d).
        texts: the sentences, which show on hovering.
    """
    every = np.concatenate(list(vectors.values())).astype(np.float64)
    centred = every - every.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * values[:2]
    total = float((values**2).sum()) or 1.0
    shares = (float(values[0] ** 2) / total, float(values[1] ** 2) / total)
    titles = (f"PC 1 ({100 * shares[0]:.1f} %)", f"PC 2 ({100 * shares[1]:.1f} %)")
    return Cloud(name, scatter(places, vectors, texts, titles, name), language_silhouette(vectors), shares)


def scatter(
    places: np.ndarray,
    vectors: Mapping[str, np.ndarray],
    texts: Mapping[str, Sequence[str]],
    titles: tuple[str, str],
    name: str,
) -> Any:
    """Draw sentences at their places, coloured by language; each shows its beginning on hovering."""
    series, start = {}, 0
    for code, rows in vectors.items():
        own = places[start : start + len(rows)].tolist()
        series[code] = [(x, y, text[:50]) for (x, y), text in zip(own, texts[code], strict=True)]
        start += len(rows)
    return figures.dots(series, *titles, f"{name}: sentences by language", height=260)
