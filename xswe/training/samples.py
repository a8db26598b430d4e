"""Which pairs a refinement is drawn from, and how often each word stands in each language's text.

How often each word of a vocabulary stands in each language's text, and which languages' own words it is among.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from xswe.corpus.contexts import Contexts
from xswe.errors import ModelError
from xswe.io.ragged import Bags
from xswe.text.words import own_words
from xswe.training.pairs import equal_bags

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


# Pairs drawn from those whose sentences represent the units (EN paper 3.3: the sentences of 3.1, which are short).


logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PairRows:
    """Some pairs of a bitext (or sentences of one language) cut in two, as ascending rows.

    Attributes:
        train: what is learnt from.
        development: decides when to stop.
    """

    train: np.ndarray
    development: np.ndarray


def draw_pairs(
    pairs: Sequence[Sequence[str]],
    bitexts: Sequence[Sequence[Bags]],
    contexts: Mapping[str, Contexts],
    per_unit: int,
    development: Callable[[int], int],
    seed: int,
) -> list[PairRows]:
    """Draw the pairs of each bitext of which a side was chosen as a context of some unit.

    Args:
        pairs: the languages of each bitext, two or one.
        bitexts: their sides.
        contexts: of each language; the rows are those of its sides in all bitexts, one after the other.
        per_unit: pairs to train on are drawn by at most this many contexts of each unit; 0 for all.
        development: how many development pairs to take from so many.
        seed: decides what is drawn.

    Returns:
        The rows of each bitext.
    """
    sizes, made = [len(sides[0]) for sides in bitexts], []
    some = {code: one.drawn(per_unit, [seed, 23, k]) for k, (code, one) in enumerate(contexts.items())}
    for k, (codes, sides) in enumerate(zip(pairs, bitexts, strict=True)):
        chosen, drawn = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for code in codes:
            first = sum(size for size, other in zip(sizes[:k], pairs, strict=False) if code in other)
            for rows, out in ((contexts[code].sentences, chosen), (some[code], drawn)):
                low, high = np.searchsorted(rows, [first, first + sizes[k]])
                out.append(rows[low:high] - first)
        found, wanted = np.unique(np.concatenate(chosen)), np.unique(np.concatenate(drawn))
        cut = _cut(sides, found, wanted, development(len(found)), [seed, 29, k])
        what = "%s: %d pairs with a context sentence, %d of them to train on and %d to choose by"
        logger.info(what, "-".join(codes), len(found), len(cut.train), len(cut.development))
        made.append(cut)
    return made


def _cut(sides: Sequence[Bags], chosen: np.ndarray, drawn: np.ndarray, development: int, seed: Sequence[int]) -> PairRows:
    """Cut development pairs off at random, and leave out of the others what shares a side with one of them.

    Args:
        sides: the bitext's two sides, or the single side of one language.
        chosen: int64, ascending rows that development pairs are drawn from.
        drawn: int64, ascending rows to train on, before the development pairs are taken out.
        development: how many development pairs.
        seed: decides which.

    Returns:
        The rows of both parts.
    """
    apart = np.sort(np.random.default_rng(seed).permutation(chosen)[:development])
    rows = np.union1d(apart, drawn)
    is_apart = np.isin(rows, apart)
    train = np.isin(rows, drawn) & ~is_apart
    for side in sides:
        same = equal_bags(side.take(rows))
        train &= ~np.isin(same, same[is_apart])
    return PairRows(rows[train], apart)
