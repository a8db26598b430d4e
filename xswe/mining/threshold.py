"""Where to cut, by mismatched neighbours or by gold pairs.

Where to cut: a threshold, and what precision to expect above it.

Scores of different models are not comparable, so neither are thresholds. Two ways to find one:

- **From mismatched neighbours**, without any gold. Every line's best neighbour is struck out and pairs are selected one to
  one among the others: what is found are pairs as they come about where there is no translation. Their scores, scaled by
  the fraction of lines without a translation (estimated where only wrong pairs score, below the median of the mismatches),
  say how many of the real pairs above any score are wrong. A line without a translation loses its best wrong neighbour,
  too, so the mismatches score a little low: for scores that keep this gap (:data:`RISE`) they are raised by a multiple of
  what a second striking costs. Where hardly any line has a translation the precision is still expected somewhat too high.
- **On gold pairs**, by the best F1. Every gold line has a translation: where few lines of the corpora have one, the
  threshold comes out low.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.corpus.formats import PairFile, read_pairs
from xswe.corpus.rows import text_hashes
from xswe.errors import InputError
from xswe.io.ragged import Texts
from xswe.mining.margin import Score, Selection, score_candidates, select
from xswe.mining.side import Encode, Side
from xswe.search.exact import search_exact
from xswe.search.kernels import merge
from xswe.search.types import Neighbours, SearchConfig
from xswe.search.vectors import Vectors

# How much higher the best of many wrong scores lies than the second best, in steps from the second to the third best: two
# for cosines (the largest of many draws with an exponential tail are spaced 1, 1/2, 1/3, ...). A margin's neighbourhoods
# fall with the scores and take half of it (difference) or all of it (ratio) off, as measured on corpora of 1 to 50 % pairs.
# A step more expects less where one line in a hundred has a translation, but keeps next to nothing of 100,000 lines
# (cosine) or sees translations where there is none (ratio).
RISE = {"cosine": 2.0, "absolute": 2.0, "distance": 1.0, "csls": 1.0, "ratio": 0.0}


@dataclass(frozen=True)
class Threshold:
    """A threshold and where it comes from.

    Attributes:
        value: pairs that score at least this are kept; -inf for all.
        origin: ``mismatched neighbours``, ``gold pairs``, ``given`` or ``none``.
        precision: the fraction of the kept pairs expected to be right (on gold: the fraction that were), None if unknown.
        recall: the same of the findable pairs that are kept.
    """

    value: float
    origin: str
    precision: float | None = None
    recall: float | None = None

    def sentence(self) -> str:
        """One sentence for the report."""
        if self.origin == "none":
            return "threshold: none, all pairs are kept"
        line = f"threshold: {self.value:.4f} ({self.origin})"
        if self.precision is None:
            return line
        verb = "measured" if self.origin == "gold pairs" else "expected"
        return f"{line}, {verb} precision {100 * self.precision:.1f} %, recall {100 * (self.recall or 0):.1f} %"


def wrong_fraction(scores: np.ndarray, mismatches: np.ndarray) -> float:
    """Estimate the fraction of wrong pairs that there would be without a threshold, relative to the mismatches.

    Below the median score of the mismatches hardly any right pair scores, so the ratio of the counts there is the ratio of
    all wrong pairs to all mismatches (the reasoning of false-discovery rates, Storey 2002); at most 1.
    """
    if not len(mismatches):
        return 0.0
    middle = np.median(mismatches)
    return min(1.0, float((scores < middle).sum()) / max(1, int((mismatches < middle).sum())))


def raised(mismatches: np.ndarray, further: np.ndarray, weight: float) -> np.ndarray:
    """Raise mismatched scores, quantile by quantile, by ``weight`` times what a further striking took off."""
    if not weight or not len(mismatches) or not len(further):
        return mismatches
    points = np.linspace(0, 1, len(mismatches))
    ordered = np.sort(mismatches)
    return (ordered + weight * np.maximum(ordered - np.quantile(further, points), 0)).astype(np.float32)


def _at(place: int, falling: np.ndarray) -> float:
    """Return the threshold that keeps the first ``place + 1`` scores: halfway to the next lower one."""
    if place + 1 >= len(falling):
        return float(falling[-1])
    return (float(falling[place]) + float(falling[place + 1])) / 2


def _choose(falling: np.ndarray, right: np.ndarray, total: float, precision: float | None, origin: str) -> Threshold:
    """Choose a place in falling scores, given the (expected) number of right pairs down to each."""
    kept = np.arange(1, len(falling) + 1)
    last = np.append(falling[1:] < falling[:-1], True)  # equal scores are kept or dropped together
    shares = right / kept
    f1 = np.where(last, 2 * right / (kept + total), -1.0)
    place = int(f1.argmax())
    if precision is not None:
        enough = np.flatnonzero(last & (shares >= precision))
        place = int(enough[-1]) if len(enough) else int(np.where(last, shares, -1.0).argmax())
    recall = float(right[place]) / total if total > 0 else 0.0
    return Threshold(_at(place, falling), origin, float(shares[place]), min(1.0, recall))


def from_mismatches(
    scores: np.ndarray,
    mismatches: np.ndarray,
    precision: float | None = None,
    further: np.ndarray | None = None,
    rise: float = 0.0,
) -> Threshold:
    """Estimate the threshold of the best expected F1 from the scores of mismatched pairs.

    Args:
        scores: float32 (n,), of the selected pairs.
        mismatches: float32 (m,), of the pairs selected in the same way once every line's best neighbour is struck out.
        precision: take the lowest threshold of at least this expected precision instead (if none reaches it, that of
            the highest).
        further: float32, of the pairs selected once every line's *two* best neighbours are struck out.
        rise: of the score, see :data:`RISE`; where not 0, ``further`` is needed.
    """
    if rise and further is not None:
        mismatches = raised(mismatches, further, rise * wrong_fraction(scores, mismatches))
    origin = "mismatched neighbours"
    if not len(scores):
        return Threshold(-np.inf, origin, None, None)
    falling = np.sort(scores.astype(np.float64))[::-1]
    wrong = np.sort(mismatches.astype(np.float64))
    above = len(wrong) - np.searchsorted(wrong, falling, "left")
    false = wrong_fraction(scores, mismatches) * above
    right = np.maximum(np.arange(1, len(falling) + 1) - false, 0)
    right = np.maximum.accumulate(right)  # the number of right pairs cannot fall as the threshold does
    if right[-1] <= 0:
        return Threshold(float(np.nextafter(falling[0], np.inf)), origin, 0.0, 0.0)
    right = np.minimum(right, np.arange(1, len(falling) + 1))
    return _choose(falling, right, float(right[-1]), precision, origin)


def from_gold(scores: np.ndarray, correct: np.ndarray, total: int, precision: float | None = None) -> Threshold:
    """Choose the threshold of the best F1 on pairs that are known to be right or wrong.

    Args:
        scores: float32 (n,), of found pairs.
        correct: bool (n,), which of them are gold pairs.
        total: number of gold pairs.
        precision: take the lowest threshold of at least this precision instead.
    """
    if not len(scores):
        return Threshold(-np.inf, "gold pairs", None, None)
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    falling = scores[order].astype(np.float64)
    return _choose(falling, np.cumsum(correct[order]).astype(np.float64), float(total), precision, "gold pairs")


def precision_recall_f1(found: int, correct: int, total: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of a set of pairs against a set of gold pairs; 0 where undefined."""
    precision, recall = correct / found if found else 0.0, correct / total if total else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


# Calibration on gold pairs: they are hidden among the lines of the corpora, and the search tells where to cut.


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
