"""Mined pairs as they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from xswe.bitext.output import Row, write_rows
from xswe.io.ragged import Texts
from xswe.mining.margin import Pairs

_BLOCK = 4096  # rows whose texts are read at a time


class Named(Protocol):
    """One side's lines, and what they are called."""

    @property
    def texts(self) -> Texts:
        """The lines."""

    def names(self, rows: np.ndarray) -> Iterable[str]:
        """Return the ids, or the numbers, of lines."""


def _rows(pairs: Pairs, source: Named, target: Named) -> Iterator[Row]:
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows = [(source, pairs.source[block]), (target, pairs.target[block])]
        scores = (round(score, 6) for score in pairs.scores[block].tolist())
        texts = (side.texts.take(chosen) for side, chosen in rows)
        names = (side.names(chosen) for side, chosen in rows)
        yield from map(Row, scores, *texts, *names, pairs.rank[block].tolist())


def write_pairs(path: str, kind: str, pairs: Pairs, source: Named, target: Named, languages: Sequence[str] = ()) -> None:
    """Write pairs in their order, whole or not at all.

    ``laser``: score<TAB>source<TAB>target, ``markdown`` and ``latex`` the same as a table (tabs and line ends within a text
    become blanks); ``bucc``: source id<TAB>target id; ``tmx``, ``xliff`` and ``xliff2``: translation memories; ``csv``,
    ``jsonl``, ``parquet`` and ``xlsx``: score, both texts as they are, ids (line numbers where a file has none), and the
    rank among the source's candidates.
    """
    write_rows(path, kind, _rows(pairs, source, target), languages)
