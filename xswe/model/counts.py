"""Which language a word belongs to: how often each unit occurred in each language of the training text.

Script tells Japanese kana from German, but not German from English, nor Han that is Japanese from Han that is Chinese. What
tells those apart is how often each language uses the word, per unit of its text.
"""

from __future__ import annotations

import numpy as np

from xswe.errors import ModelError

# A word is a language's own if it is at least this frequent there (per unit of text), beside the one that uses it most.
# Foreign words that are quoted ("the" in German manuals) stay below, words that two languages share stay above.
OWN = 0.1


def smallest(counts: np.ndarray) -> np.ndarray:
    """Return counts as the smallest unsigned integers that hold them; what is beyond 32 bits becomes the largest there."""
    highest = int(counts.max(initial=0))
    kind = next((kind for kind in (np.uint8, np.uint16) if highest <= np.iinfo(kind).max), np.uint32)
    return np.ascontiguousarray(np.minimum(counts, np.array(np.iinfo(kind).max, counts.dtype)), kind)


def check_counts(counts: np.ndarray, languages: int, units: int) -> None:
    """Raise ModelError unless the counts are unsigned integers of shape (languages, units)."""
    if counts.dtype.kind != "u" or counts.shape != (languages, units):
        wanted = f"unsigned integers ({languages}, {units}), a row for each language"
        raise ModelError(f"the counts are {counts.dtype} {counts.shape}, expected {wanted}")


def owners(counts: np.ndarray) -> np.ndarray:
    """Tell whose words units are.

    Args:
        counts: (languages, units), how often each unit occurs in each language's text.

    Returns:
        bool (languages, units); none is set for a unit that never occurred, several for a word that languages share.
    """
    rates = counts / np.maximum(counts.sum(axis=1, keepdims=True, dtype=np.int64), 1)
    return (counts > 0) & (rates >= OWN * rates.max(axis=0, initial=0.0))
