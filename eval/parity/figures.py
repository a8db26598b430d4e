"""What a comparison of ours with a plain reference, or with another library, has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Figure:
    """The largest difference on one thing.

    Attributes:
        component: the part of the method.
        beside: what it is compared with: ``written out`` for a plain program of the paper's formula, or a library.
        what: the quantity.
        difference: largest absolute difference; of counted things, how many are different.
        within: a test fails beyond this.
        n: numbers, or things, compared.
        counted: the difference is a number of things.
    """

    component: str
    beside: str
    what: str
    difference: float
    within: float
    n: int
    counted: bool = False


@dataclass(frozen=True)
class Inputs:
    """What comparisons are made on.

    Attributes:
        e5: a folder of multilingual-e5-small, as ``eval/experiments/convert_e5.py`` makes it.
        small: as little as a test needs.
    """

    e5: Path
    small: bool = False


def figure(component: str, beside: str, what: str, ours: Any, theirs: Any, within: float) -> Figure:
    """Compare two arrays of numbers, of the same shape.

    Raises:
        ValueError: they are of different shapes, all zero, or hold a NaN: such a comparison would show nothing.
    """
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if a.shape != b.shape or not b.any() or np.isnan(a).any() or np.isnan(b).any():
        raise ValueError(f"{component}, {what}: {a.shape} beside {b.shape}, all zero, or not all of them numbers")
    return Figure(component, beside, what, float(np.abs(a - b).max()), within, a.size)


def unit(generator: np.random.Generator, n: int, width: int) -> np.ndarray:
    """Draw n directions, float32 (n, width)."""
    drawn = generator.normal(size=(n, width)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def planted(n: int, width: int, noise: float = 0.9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw n directions and a noisy copy of each."""
    generator = np.random.default_rng(seed)
    a = generator.normal(size=(n, width)).astype(np.float32)
    b = (a + noise * generator.normal(size=a.shape)).astype(np.float32)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    return a, b


Figures = Iterator[Figure]
