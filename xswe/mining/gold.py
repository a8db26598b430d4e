"""Calibration on gold pairs: they are hidden among the lines of the corpora, and the search tells where to cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.corpus.pairs import PairFile, read_pairs
from xswe.corpus.rows import text_hashes
from xswe.errors import InputError
from xswe.language.texts import Texts
from xswe.mining.calibrate import Threshold, from_gold
from xswe.mining.exact import search_exact
from xswe.mining.margin import Score, score_candidates
from xswe.mining.select import Selection, select
from xswe.mining.side import Encode, Side
from xswe.mining.topk import merge
from xswe.mining.types import Neighbours, SearchConfig
from xswe.mining.vectors import Vectors

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Hidden:
    """Lines put beside those of a side.

    Attributes:
        vectors: of the gold texts that the side does not hold already, float32 (g, d).
        hashes: of the side's texts and then of these, uint64 (n + g,).
    """

    vectors: Vectors
    hashes: np.ndarray


def read_gold(path: str | Path) -> list[tuple[str, str]]:
    """Read gold pairs, ``source<TAB>target``.

    Raises:
        InputError: the file is missing or has no pair.
    """
    pairs = list(dict.fromkeys(pair for pair in read_pairs(PairFile(Path(path))) if all(pair)))
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
    """Merge two sets of lists row by row; the second's ids start at ``offset``."""
    scores, ids = first[0].copy(), first[1].copy()
    merge(scores, ids, _NOTHING, second[0], np.where(second[1] >= 0, second[1] + np.int32(offset), -1), _NOTHING)
    return scores, ids


def with_hidden(
    lists: Neighbours, source: Vectors, target: Vectors, more: tuple[Vectors, Vectors], config: SearchConfig
) -> Neighbours:
    """Return the neighbours as they would be, had more vectors stood at the end of both sides from the start."""
    k, (n, m) = lists.k, (len(source), len(target))
    empty = Neighbours.empty

    def search(left: Vectors, right: Vectors) -> Neighbours:
        return search_exact(left, right, k, config) if len(left) and len(right) else empty(len(left), len(right), k)

    down, across, corner = search(more[0], target), search(source, more[1]), search(*more)
    old_sources = _joined((lists.forward, lists.forward_ids), (across.forward, across.forward_ids), m)
    new_sources = _joined((down.forward, down.forward_ids), (corner.forward, corner.forward_ids), m)
    old_targets = _joined((lists.backward, lists.backward_ids), (down.backward, down.backward_ids), n)
    new_targets = _joined((across.backward, across.backward_ids), (corner.backward, corner.backward_ids), n)
    forward = (np.concatenate(parts) for parts in zip(old_sources, new_sources, strict=True))
    backward = (np.concatenate(parts) for parts in zip(old_targets, new_targets, strict=True))
    return Neighbours(*forward, *backward)


def calibrate_on_gold(
    gold: list[tuple[str, str]],
    sides: tuple[Side, Side],
    lists: Neighbours,
    encode: Encode,
    search: SearchConfig,
    score: Score,
    k: int,
    how: Selection,
    precision: float | None = None,
) -> Threshold:
    """Hide gold pairs among the lines of both sides, select pairs, and find the best threshold on those that touch one.

    Gold texts that a side holds already are used where they are. The pairs that are mined do not change.
    """
    source, target = sides
    hidden = tuple(_hide([pair[k] for pair in gold], side, encode) for k, side in enumerate(sides))
    all_lists = with_hidden(lists, source.vectors, target.vectors, (hidden[0].vectors, hidden[1].vectors), search)
    pairs = select(score_candidates(all_lists, score, k), how)
    a, b = hidden[0].hashes[pairs.source], hidden[1].hashes[pairs.target]
    gold_a, gold_b = (text_hashes(Texts.of([pair[k] for pair in gold])) for k in (0, 1))
    touches = np.isin(a, gold_a) | np.isin(b, gold_b)
    right = set(zip(gold_a.tolist(), gold_b.tolist(), strict=True))
    correct = np.array([key in right for key in zip(a[touches].tolist(), b[touches].tolist(), strict=True)], bool)
    return from_gold(pairs.scores[touches], correct, len(right), precision)
