"""Scores of candidate pairs: the cosine, and the cosine set against both sides' neighbourhoods.

A cosine says little by itself: some sentences (hubs) are near everything. With a(x) the mean cosine of x with its k
nearest on the other side, and b = (a(x) + a(y)) / 2 (Artetxe & Schwenk, 2019):

    cosine (absolute)   cos(x, y)
    ratio               cos(x, y) / b, with a b of at least 0.1
    distance            cos(x, y) - b
    csls                2 cos(x, y) - a(x) - a(y), which is twice ``distance`` (Conneau et al., 2018)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.mining.types import Neighbours

Score = Literal["cosine", "absolute", "ratio", "distance", "csls"]
SCORES = ("cosine", "absolute", "ratio", "distance", "csls")
# A cosine is divided by no less: where a neighbourhood holds next to nothing (a few lines, none of them related), a
# quotient would grow without bound and rank noise above translations, and by a negative one would turn signs round. A pair
# of cosine 0.4 brings its own neighbourhoods (k = 4) to this much, and those of the struck lists of 50 lines lie above.
_LEAST = np.float32(0.1)


def check_score(score: str) -> None:
    """Complain of an unknown score.

    Raises:
        ConfigError: there is no such score.
    """
    if score not in SCORES:
        raise ConfigError(f"score={score!r}: use one of {', '.join(SCORES)}")


def neighbourhood(cosines: np.ndarray, k: int, skip: int = 0) -> np.ndarray:
    """Return the mean cosine with the k nearest (fewer where there are fewer; 0 with none), float32 (n,).

    Args:
        cosines: float32 (n, at least k + skip), falling, -inf for no neighbour.
        k: neighbours averaged over.
        skip: leave the best ``skip`` out.
    """
    part = cosines[:, skip : skip + k]
    there = np.isfinite(part)
    total = np.where(there, part, 0).sum(1, dtype=np.float64)
    return (total / np.maximum(there.sum(1), 1)).astype(np.float32)


def ratio_base(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return what the ratio margin divides cosines by, float32: the mean of both neighbourhoods, at least 0.1.

    Args:
        here: neighbourhoods of the one side, float32.
        there: neighbourhoods of the other side, broadcast against ``here``.
    """
    return np.maximum((here + there) / np.float32(2), _LEAST)


def score_cosines(cosines: np.ndarray, here: np.ndarray, there: np.ndarray, score: Score) -> np.ndarray:
    """Turn cosines into scores.

    Args:
        cosines: float32, of any shape; -inf stays -inf.
        here: neighbourhoods of the one side, broadcast against ``cosines``.
        there: neighbourhoods of the other side.
        score: which.
    """
    check_score(score)
    if score in ("cosine", "absolute"):
        return cosines
    if score == "ratio":
        return cosines / ratio_base(here, there)
    out = cosines - (here + there) / np.float32(2)
    return out * np.float32(2) if score == "csls" else out


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scored candidate pairs, both ways.

    Attributes:
        forward: scores of each source's candidates, float32 (sources, c), in the order of the cosines; -inf for none.
        forward_ids: int32 (sources, c).
        backward: scores of each target's candidates, float32 (targets, c).
        backward_ids: int32 (targets, c).
    """

    forward: np.ndarray
    forward_ids: np.ndarray
    backward: np.ndarray
    backward_ids: np.ndarray


def score_candidates(lists: Neighbours, score: Score, k: int = 4, skip: int = 0) -> Candidates:
    """Score neighbours against both neighbourhoods.

    Args:
        lists: neighbours both ways, at least k + skip of each line where there are so many.
        score: which score.
        k: size of the neighbourhoods.
        skip: leave every line's best ``skip`` neighbours out, of the candidates and of the neighbourhoods.
    """
    if not len(lists.forward) or not len(lists.backward):
        return Candidates(lists.forward, lists.forward_ids, lists.backward, lists.backward_ids)
    a, b = neighbourhood(lists.forward, k, skip), neighbourhood(lists.backward, k, skip)
    forward_ids, backward_ids = lists.forward_ids[:, skip:], lists.backward_ids[:, skip:]
    forward = score_cosines(lists.forward[:, skip:], a[:, None], b[forward_ids], score)
    backward = score_cosines(lists.backward[:, skip:], b[:, None], a[backward_ids], score)
    return Candidates(
        np.where(forward_ids >= 0, forward, -np.inf).astype(np.float32),
        forward_ids,
        np.where(backward_ids >= 0, backward, -np.inf).astype(np.float32),
        backward_ids,
    )
