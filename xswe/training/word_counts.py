"""How often each word of a vocabulary stands in each language's text, and which languages' own words it is among."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from xswe.errors import ModelError
from xswe.language.words import own_words

_FILE = "counts.safetensors"


@dataclass(frozen=True, eq=False)
class WordCounts:
    """What was counted for a vocabulary of words.

    Attributes:
        counts: int64 (languages, words), how often each of a language's own words stands in its training text; others: 0.
        own: bool (languages, words), whether it is among the language's own most frequent words.
    """

    counts: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, counts: Mapping[str, Counter[str]], sizes: Mapping[str, int], words: Sequence[str]) -> WordCounts:
        """Arrange the counts by language, in their order, and by word.

        Args:
            counts: of each language's words.
            sizes: how many words each language's own list has.
            words: the vocabulary made of these lists.
        """
        index, lists = {word: i for i, word in enumerate(words)}, own_words(counts, sizes)
        own = np.zeros((len(counts), len(words)), bool)
        for row, code in zip(own, counts, strict=True):
            row[[index[word] for word in lists[code]]] = True
        table = np.array([[counter[word] for word in words] for counter in counts.values()], np.int64)
        return cls(table.reshape(own.shape), own)

    def save(self, folder: Path) -> None:
        """Write ``counts.safetensors`` into ``folder``."""
        save_file({"counts": self.counts, "own": self.own}, folder / _FILE)

    @classmethod
    def open(cls, folder: Path) -> WordCounts:
        """Read what :meth:`save` wrote.

        Raises:
            ModelError: an earlier version made the folder, and counted nothing.
        """
        if not (folder / _FILE).is_file():
            raise ModelError(
                f"{folder}: there is no {_FILE}, which this version needs; remove {folder} and give the same command again"
            )
        found = load_file(folder / _FILE)
        return cls(found["counts"], found["own"])
