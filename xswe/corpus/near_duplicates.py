"""Near-duplicates: texts, or pairs, most of whose shingles of characters an earlier one had."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from xswe.bitext.kernels import sketch
from xswe.bitext.seen import KeySet, pair_hashes
from xswe.io.ragged import Texts

# Four bands of six: of pairs with 90 % of their shingles in common 95 % are found, of those with 50 % in common 6 %.
_BANDS, _BAND_ROWS = 4, 6
_SKETCHED = 100_000  # texts or pairs, the first ones, among which near-duplicates are counted


def sketches(*sides: Texts, bands: int = _BANDS, rows: int = _BAND_ROWS) -> np.ndarray:
    """Sketch texts, uint64 (n, bands): two texts that share most of their shingles share a band; of pairs, both sides."""
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
    """Counts, of the first ``most`` lines or pairs, those that share most shingles with an earlier one, digits ignored."""

    most: int = _SKETCHED
    lines: int = 0
    repeated: int = 0
    _seen: KeySet = field(default_factory=KeySet)

    def add(self, *sides: Texts) -> None:
        """Look at some more, unless enough were."""
        if rows := min(len(sides[0]), self.most - self.lines):
            bands = sketches(*(texts.take(np.arange(rows)) for texts in sides))
            new = self._seen.add(bands.ravel()).reshape(bands.shape)  # the keys of a band are of no other
            self.repeated += int((~new).any(axis=1).sum())
            self.lines += rows

    @property
    def share(self) -> float:
        """The share of these; 0 without any."""
        return self.repeated / max(1, self.lines)
