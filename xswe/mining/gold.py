"""Gold pairs: hidden among the lines to be mined, to measure recall.

They say nothing about lines without a translation, so the expected precision still comes from mismatched neighbours
(:mod:`xswe.mining.threshold`).

In a filtered bitext they check every record that shares a side with a gold pair: it is right if it is a gold pair itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from xswe.bitext.rows import Rows
from xswe.bitext.seen import KeySet, pair_hashes, text_hashes
from xswe.bitext.source import Source, read_pairs
from xswe.errors import InputError
from xswe.io.ragged import Texts
from xswe.mining.margin import Score, Selection, score_candidates, select
from xswe.mining.side import Encode, Side
from xswe.mining.threshold import PrecisionEstimate
from xswe.mining.twins import Twins
from xswe.search.kernels import merge
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Vectors

_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class GoldSearch:
    """How gold pairs are searched, scored and selected: like the lines themselves."""

    search: SearchConfig
    score: Score
    k: int
    select: Selection


@dataclass(frozen=True, eq=False)
class Hidden:
    """Gold lines added to those of a side."""

    vectors: Vectors  # of gold texts that are not in the side already, float32 (g, d)
    hashes: np.ndarray  # of the side's texts, then of the added texts, uint64 (n + g,)


@dataclass(frozen=True, eq=False)
class _Joined:
    """The vectors of a side, followed by more vectors."""

    side: Vectors
    more: Vectors

    def __len__(self) -> int:
        return len(self.side) + len(self.more)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the given rows of the concatenation, float32 (n, d)."""
        old = rows < len(self.side)
        out = np.empty((len(rows), self.side.dim), np.float32)
        out[old], out[~old] = self.side.take(rows[old]), self.more.take(rows[~old] - len(self.side))
        return out


def read_gold(path: str | Path, languages: Sequence[str]) -> list[tuple[str, str]]:
    """Read gold pairs, any bitext with the source first; InputError: the file is missing or has no pair."""
    pairs = list(dict.fromkeys(read_pairs(Source((str(path),), languages=tuple(languages)), whole=True)))
    if not pairs:
        raise InputError(path, "no pair in it", "give a file of source<TAB>target lines")
    return pairs


def _hide(texts: list[str], side: Side, encode: Encode) -> Hidden:
    known = text_hashes(side.texts)
    distinct = list(dict.fromkeys(texts))
    hashes = text_hashes(Texts.of(distinct))
    new = np.flatnonzero(~np.isin(hashes, known))
    vectors = encode([distinct[i] for i in new]) if len(new) else np.zeros((0, side.vectors.dim), np.float32)
    return Hidden(Vectors(vectors), np.concatenate([known, hashes[new]]))


def _joined(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], offset: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge two sets of lists row by row, adding ``offset`` to the ids of the second."""
    scores, ids = first[0].copy(), first[1].copy()
    merge(scores, ids, _NO_ROWS, second[0], np.where(second[1] >= 0, second[1] + np.int32(offset), -1), _NO_ROWS)
    return scores, ids


def with_hidden(
    lists: Neighbours, source: Vectors, target: Vectors, more: tuple[Vectors, Vectors], config: SearchConfig
) -> Neighbours:
    """Return the neighbours as if more vectors had been at the end of both sides from the start."""
    n, m = len(source), len(target)
    search = partial(find_neighbours, k=lists.k, config=config)
    down, across, corner = search(more[0], target), search(source, more[1]), search(*more)
    old_sources = _joined((lists.forward, lists.forward_ids), (across.forward, across.forward_ids), m)
    new_sources = _joined((down.forward, down.forward_ids), (corner.forward, corner.forward_ids), m)
    old_targets = _joined((lists.backward, lists.backward_ids), (down.backward, down.backward_ids), n)
    new_targets = _joined((across.backward, across.backward_ids), (corner.backward, corner.backward_ids), n)
    forward = (np.concatenate(parts) for parts in zip(old_sources, new_sources, strict=True))
    backward = (np.concatenate(parts) for parts in zip(old_targets, new_targets, strict=True))
    return Neighbours(*forward, *backward)


def gold_scores(
    gold: list[tuple[str, str]], sides: tuple[Side, Side], lists: Neighbours, encode: Encode, how: GoldSearch
) -> np.ndarray:
    """Hide gold pairs among the lines of both sides, select pairs, and return each gold pair's score, -inf if not selected.

    Gold texts that a side already holds are not added again. The mined pairs do not change.
    """
    hidden = tuple(_hide([pair[k] for pair in gold], side, encode) for k, side in enumerate(sides))
    all_lists = with_hidden(lists, sides[0].vectors, sides[1].vectors, (hidden[0].vectors, hidden[1].vectors), how.search)
    twins = Twins.of(all_lists, *(_Joined(side.vectors, own.vectors) for side, own in zip(sides, hidden, strict=True)))
    pairs = select(score_candidates(all_lists, how.score, how.k, among=twins.left_out(all_lists)), how.select)
    a, b = hidden[0].hashes[pairs.source], hidden[1].hashes[pairs.target]
    found = dict(zip(zip(a.tolist(), b.tolist(), strict=True), pairs.scores.tolist(), strict=True))
    gold_a, gold_b = (text_hashes(Texts.of([pair[k] for pair in gold])).tolist() for k in (0, 1))
    wanted = dict.fromkeys(zip(gold_a, gold_b, strict=True))
    return np.array([found.get(key, -np.inf) for key in wanted], np.float64)


def on_gold(expected: PrecisionEstimate, scores: np.ndarray, precision: float | None) -> float:
    """Choose a threshold by the expected precision and the recall of gold pairs; see :meth:`PrecisionEstimate.choose`.

    ``scores`` of the gold pairs are float64 (g,), -inf if not selected.
    """
    gold = np.sort(scores)
    reached = (len(gold) - np.searchsorted(gold, expected.falling, "left")) / max(len(gold), 1)
    return expected.choose(reached, precision)


@dataclass(frozen=True)
class GoldCheck:
    """Precision and recall of a filter on gold pairs.

    Attributes:
        checked: kept records that share a side with a gold pair.
        precision: the share of checked records that are gold pairs; NaN if none was checked.
        pairs: gold pairs in the bitext.
        recall: the share of them that is kept; NaN if there are none.
    """

    checked: int
    precision: float
    pairs: int
    recall: float

    def __str__(self) -> str:
        if not self.pairs and not self.checked:
            return "on gold: none of its texts is in the bitext"
        kept = f"precision {100 * self.precision:.1f} % of {self.checked:,} kept pairs with a side in gold"
        found = f"recall {100 * self.recall:.1f} % of {self.pairs:,} gold pairs in the bitext"
        return f"on gold: {', '.join([kept] * (self.checked > 0) + [found] * (self.pairs > 0))}"


def check_gold(gold: list[tuple[str, str]], bitext: Iterable[Rows], kept: np.ndarray) -> GoldCheck:
    """Check with gold pairs which records of a bitext a filter kept; ``kept`` is bool (n,)."""
    of_side, both, found, reached = (KeySet(), KeySet()), KeySet(), KeySet(), KeySet()
    sides = [text_hashes(Texts.of([pair[side] for pair in gold])) for side in (0, 1)]
    both.add(pair_hashes(*sides))
    for keys, own in zip(sides, of_side, strict=True):
        own.add(keys)
    start, checked, right = 0, 0, 0
    for rows in bitext:
        sides = [text_hashes(rows.source), text_hashes(rows.target)]
        keys, stays = pair_hashes(*sides), kept[start : start + len(rows.source)]
        is_gold, start = both.has(keys), start + len(keys)
        checked += int(((of_side[0].has(sides[0]) | of_side[1].has(sides[1])) & stays).sum())
        right += int((is_gold & stays).sum())
        found.add(keys[is_gold])
        reached.add(keys[is_gold & stays])
    recall = len(reached) / len(found) if len(found) else np.nan
    return GoldCheck(checked, right / checked if checked else np.nan, len(found), recall)
