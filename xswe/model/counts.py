"""Counts of units in each language of the training data.

The script tells Japanese kana from German, but not German from English, nor Japanese Han from Chinese. There the word's
frequency in each language, relative to all units of its text, decides.
"""

from __future__ import annotations

import numpy as np

from xswe.errors import ModelError

# A word belongs to a language if its relative frequency there is at least this fraction of that in the language that uses
# it most. Quoted foreign words ("the" in German manuals) stay below, words that two languages share stay above.
OWN = 0.1


def narrow_counts(counts: np.ndarray) -> np.ndarray:
    """Return counts in the smallest unsigned integer type that fits; those beyond 32 bits are clipped."""
    highest = int(counts.max(initial=0))
    kind = next((kind for kind in (np.uint8, np.uint16) if highest <= np.iinfo(kind).max), np.uint32)
    return np.ascontiguousarray(np.minimum(counts, np.array(np.iinfo(kind).max, counts.dtype)), kind)


def check_counts(counts: np.ndarray, languages: int, units: int) -> None:
    """Raise ModelError unless the counts are unsigned integers of shape (languages, units)."""
    if counts.dtype.kind != "u" or counts.shape != (languages, units):
        wanted = f"unsigned integers ({languages}, {units}), a row for each language"
        raise ModelError(f"the counts are {counts.dtype} {counts.shape}, expected {wanted}")


def languages_of_units(counts: np.ndarray) -> np.ndarray:
    """Return the languages that units belong to, bool (languages, units), given their counts in each language's text.

    A unit that never occurred belongs to none, a word that languages share to several.
    """
    rates = counts / np.maximum(counts.sum(axis=1, keepdims=True, dtype=np.int64), 1)
    return (counts > 0) & (rates >= OWN * rates.max(axis=0, initial=0.0))
