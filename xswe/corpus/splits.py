"""Training, development and held-out parts of a bitext, drawn at random and kept apart text by text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.drawing import RowSet, draw
from xswe.corpus.rows import text_hashes
from xswe.corpus.seen import KeySet
from xswe.corpus.views import TextView
from xswe.language.texts import Texts

_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class SplitRows:
    """A bitext cut in three, as ascending rows.

    Attributes:
        training: what is learnt from, a bit a row.
        development: decides when to stop.
        held_out: reported on, and used for nothing else.
    """

    training: RowSet
    development: np.ndarray
    held_out: np.ndarray

    @property
    def train(self) -> np.ndarray:
        """What is learnt from, int64: eight bytes a row."""
        return self.training.rows()


def split_rows(bitext: Bitext, config: CorpusConfig, seed: int) -> SplitRows:
    """Cut a bitext at random: corpora are sorted by score or by document, so neither end is a fair sample.

    A text that is held out is never trained on: training pairs that share a side with a held-out pair are left out.
    """
    size = min(config.limit, len(bitext)) if config.limit else len(bitext)
    held_out = min(config.max_held_out, int(size * config.held_out))
    development = min(config.max_development, int(size * config.development))
    some = size if size < len(bitext) else 0
    apart, train = draw([seed, 7], len(bitext), held_out + development, some)
    if not some:
        train = RowSet(len(bitext), full=True)
    train.set(apart, False)
    train.set(_sharing_a_text(bitext, bitext.take(apart)), False)
    return SplitRows(train, np.sort(apart[held_out:]), np.sort(apart[:held_out]))


def _sharing_a_text(bitext: Bitext, apart: Bitext) -> np.ndarray:
    """Return the rows with a side that is a text of ``apart``: found by hash, then compared as they are."""
    keys = KeySet()
    for side in (apart.source, apart.target):
        keys.add(text_hashes(side[:]))
    known = set(apart.source) | set(apart.target)
    rows: list[np.ndarray] = []
    for side in (bitext.source, bitext.target):
        found = _rows_with(side, keys)
        rows.append(np.array([row for row in found if side[int(row)] in known], np.int64))
    return np.concatenate(rows)


def _rows_with(side: Texts | TextView, keys: KeySet) -> np.ndarray:
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(side), _BLOCK):
        found.append(start + np.flatnonzero(keys.has(text_hashes(side[start : start + _BLOCK]))))
        side.release()
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Split:
    """A bitext cut in three at random; the parts are those of :class:`SplitRows`.

    Attributes:
        train: what is learnt from; a view of the bitext.
        development: decides when to stop.
        held_out: reported on, and used for nothing else.
    """

    train: Bitext
    development: Bitext
    held_out: Bitext


def split(bitext: Bitext, config: CorpusConfig, seed: int) -> Split:
    """Cut a bitext in three; see :func:`split_rows`."""
    rows = split_rows(bitext, config, seed)
    return Split(part_of(bitext, rows.train), bitext.take(rows.development), bitext.take(rows.held_out))


def part_of(bitext: Bitext, rows: np.ndarray) -> Bitext:
    """Return ascending rows of a bitext as a view, without a copy of its texts."""
    sides = []
    for side in (bitext.source, bitext.target):
        assert isinstance(side, Texts)
        sides.append(TextView([(side, rows)]))
    negatives = None if bitext.negatives is None else bitext.negatives.view(rows)
    return Bitext(bitext.languages, sides[0], sides[1], negatives)
