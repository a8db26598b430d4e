"""The most frequent words of texts that are in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from xswe.text.counting import COUNTED, WordCounter, most_frequent_of
from xswe.text.words import WordSplitter


def frequent_words(texts: Sequence[str], splitter: WordSplitter, most: int, threads: int = 1) -> Counter[str]:
    """Count the words of texts, and return the most frequent ones; of equally frequent words the first in the alphabet."""
    with TemporaryDirectory() as folder:
        output = Path(folder) / f"words{COUNTED}"
        WordCounter(splitter).count(texts, output, threads)
        return most_frequent_of([output], most)
