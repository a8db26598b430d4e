"""Which sentences represent which unit (EN paper 3.1, JA paper 2.1): up to N short sentences that contain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.language.bags import Bags

Pick = Literal["shortest", "random", "first"]


@dataclass(frozen=True)
class ContextConfig:
    """How contexts are chosen.

    Attributes:
        per_unit: N, sentences a unit (paper: 100).
        candidates: at most this many sentences of a unit, drawn at random, are looked at (JA paper: 2,000).
        pick: of the candidates, the ``shortest`` (JA paper), ``random`` ones, or the ``first`` (reference code).
        seed: decides candidates and random picks.
    """

    per_unit: int = 100
    candidates: int = 2000
    pick: Pick = "shortest"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pick not in ("shortest", "random", "first"):
            raise ConfigError(f"contexts.pick={self.pick!r}: use shortest, random or first")
        if self.per_unit < 1 or self.candidates < 1:
            raise ConfigError("contexts.per_unit and contexts.candidates must be at least 1")


@dataclass(frozen=True, eq=False)
class Contexts:
    """The chosen (sentence, unit) pairs, grouped by sentence.

    Attributes:
        sentences: int64 (s,), rows of the chosen sentences, ascending; each is encoded once.
        units: int32 (pairs,), the units harvested, by sentence, ascending within one.
        offsets: int64 (s + 1,), sentence ``i`` is harvested for ``units[offsets[i]:offsets[i + 1]]``.
    """

    sentences: np.ndarray
    units: np.ndarray
    offsets: np.ndarray

    @property
    def reference_passes(self) -> int:
        """Forward passes of the reference implementation, which encodes every (unit, sentence) pair anew."""
        return len(self.units)


def choose_contexts(bags: Bags, size: int, config: ContextConfig) -> Contexts:
    """Choose the context sentences of every unit.

    A sentence is counted once for a unit however often the unit occurs in it. Sentence length is the number of units.

    Args:
        bags: the sentences of one language.
        size: number of units.
        config: how to choose.

    Returns:
        The pairs chosen. The result depends on the bags and the seed only.
    """
    lengths = bags.lengths
    sentence = np.repeat(np.arange(len(bags)), lengths)
    pairs = np.unique(np.asarray(bags.ids, np.int64) * max(1, len(bags)) + sentence)
    unit, sentence = np.divmod(pairs, max(1, len(bags)))
    draw = np.random.default_rng([config.seed, 11]).permutation(len(pairs))
    if np.bincount(unit, minlength=size).max(initial=0) > config.candidates and config.pick != "first":
        kept = np.sort(_first_of_each(unit, draw, config.candidates))
        unit, sentence, draw = unit[kept], sentence[kept], draw[kept]
    priority = {"shortest": lengths[sentence], "random": draw, "first": sentence}[config.pick]
    chosen = _first_of_each(unit, priority, config.per_unit)
    unit, sentence = unit[chosen], sentence[chosen]
    order = np.lexsort((unit, sentence))
    sentences, starts = np.unique(sentence[order], return_index=True)
    offsets = np.append(starts, len(order)).astype(np.int64)
    return Contexts(sentences, unit[order].astype(np.int32), offsets)


def _first_of_each(group: np.ndarray, priority: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the ``most`` entries of lowest priority in each group (ties: the earlier entry)."""
    order = np.lexsort((priority, group))
    ordered = group[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return order[rank < most]
