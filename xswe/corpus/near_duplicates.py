"""Near-duplicates: texts, or pairs, that share most of their character shingles with an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from xswe.bitext.kernels import sketch
from xswe.bitext.seen import KeySet, pair_hashes
from xswe.io.ragged import Texts

# Four bands of six find 95 % of the texts that share 90 % of their shingles, and 6 % of those that share 50 %.
_BANDS, _BAND_ROWS = 4, 6
_SAMPLE_SIZE = 100_000  # the first texts or pairs, among which near-duplicates are counted
_KEPT_SAMPLE = 20_000  # the first of those in a result, which are read again


def sketches(*sides: Texts, bands: int = _BANDS, rows: int = _BAND_ROWS) -> np.ndarray:
    """Sketch texts, or both sides of pairs, as uint64 (n, bands): near-duplicates most likely agree in a band."""
    factors = np.random.default_rng(29).integers(1, 1 << 63, bands * rows, np.uint64) | np.uint64(1)
    made = []
    for texts in sides:
        made.append(np.empty((len(texts), bands), np.uint64))
        sketch(*texts.frozen, factors, rows, np.empty_like(factors), made[-1])
    if len(made) == 1:
        return made[0]
    return pair_hashes(made[0].ravel(), made[1].ravel()).reshape(-1, bands)


@dataclass
class NearDuplicates:
    """Counts the near-duplicates among the first ``most`` lines or pairs, with all digits alike."""

    most: int = _SAMPLE_SIZE
    lines: int = 0
    repeated: int = 0
    _seen: KeySet = field(default_factory=KeySet)

    @property
    def room(self) -> int:
        """How many more are counted."""
        return self.most - self.lines

    def add(self, *sides: Texts) -> np.ndarray:
        """Count more lines or pairs, up to ``most``, and return the sketches of those."""
        rows = np.arange(min(len(sides[0]), self.room))
        return self.add_sketches(sketches(*(texts.take(rows) for texts in sides)))

    def add_pairs(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Count more pairs, up to ``most``, and return the sketches of those."""
        pairs = pairs[: self.room]
        return self.add(*(Texts.of([pair[side] for pair in pairs]) for side in (0, 1)))

    def add_sketches(self, bands: np.ndarray) -> np.ndarray:
        """Count lines or pairs by their sketches, of which there is room for all, and return these."""
        new = self._seen.add(bands.ravel()).reshape(bands.shape)  # no two bands have keys in common
        self.repeated += int((~new).any(axis=1).sum())
        self.lines += len(bands)
        return bands

    @property
    def share(self) -> float:
        """The share of near-duplicates; 0 without any lines."""
        return self.repeated / max(1, self.lines)


def share_among(kept: np.ndarray, texts: Callable[[np.ndarray], Sequence[tuple[str, str]]]) -> float:
    """Return the share of near-duplicates among the first kept pairs: ``kept`` is bool (n,), ``texts`` reads rows."""
    near = among_kept()
    near.add_pairs(texts(np.flatnonzero(kept)[: near.room]))
    return near.share


def among_kept() -> NearDuplicates:
    """Return a count of near-duplicates among the first pairs of results, whose texts are read again."""
    return NearDuplicates(_KEPT_SAMPLE)
