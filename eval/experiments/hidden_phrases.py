"""Phrases hidden in running text: a set's own file, a builder for languages that have none, and the figures.

STS-B-Context (Orbach et al. 2024) asks how near a phrase is to the best span of a context that holds another phrase; people
scored the two phrases. Its file is read as it is; the builder makes the same task from any scored pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import Row, correlation_rows
from xswe.io.lines import read_lines

CLEARLY_THE_SAME = 4.0  # of 5: from here on STS's scale says that the phrases mean the same but for details
_FOUND = 0.5  # overlap from which a place counts as found


@dataclass(frozen=True)
class HiddenPhrase:
    """A phrase, and a context that holds another one.

    Attributes:
        phrase: what is sought.
        target: what the context holds.
        score: how near people found the two, 0 to 5.
        context: running text.
        start: where the target begins in the context, -1 if it is not there letter for letter.
    """

    phrase: str
    target: str
    score: float
    context: str
    start: int

    @property
    def end(self) -> int:
        """One past the target's last character."""
        return self.start + len(self.target)


def read_hidden_phrases(path: str | Path) -> list[HiddenPhrase]:
    """Read STS-B-Context's own format: origin phrase, target phrase, score, context, tab-separated; a header is skipped.

    Raises:
        InputError: a line has other columns or a score that is no finite number, or the file has none at all.
    """
    out = []
    for number, line in read_lines(path):
        fields = (line or "").split("\t")
        if not (line or "").strip():
            continue
        try:
            phrase, target, score, context = fields[0], fields[1], float(fields[2]), fields[3]
        except (ValueError, IndexError):
            if number == 1 and len(fields) >= 4:
                continue
            found = "not origin<TAB>target<TAB>score<TAB>context"
            raise InputError(path, found, "mend or remove the line", number) from None
        if not math.isfinite(score):
            raise InputError(path, f"the score is {fields[2]}", "mend or remove the line", number)
        out.append(HiddenPhrase(phrase, target, score, context, context.find(target)))
    if not out:
        raise InputError(path, "no line in it", "give a file of origin<TAB>target<TAB>score<TAB>context")
    return out


def hide_phrases(
    pairs: Sequence[tuple[float, str, str]], carriers: Sequence[str], *, seed: int, spaced: bool, around: int = 3
) -> list[HiddenPhrase]:
    """Hide the second text of each scored pair among sentences of another corpus.

    Args:
        pairs: (score, phrase, target).
        carriers: sentences of the targets' language, in the order of their corpus; neighbours stay neighbours.
        seed: decides the places.
        spaced: put a blank between sentences; false for Chinese and Japanese.
        around: most sentences before, and most after; at least one sentence is put beside every target.

    Raises:
        ConfigError: there are too few carriers.
    """
    if len(carriers) < 2 * around + 1:
        raise ConfigError(f"{len(carriers)} sentences to hide among; at least {2 * around + 1} are needed")
    generator = np.random.default_rng([seed, 23])
    blank = " " if spaced else ""
    out = []
    for score, phrase, target in pairs:
        before, after = (int(x) for x in generator.integers(0, around + 1, 2))
        if before + after == 0:
            after = 1
        first = int(generator.integers(0, len(carriers) - before - after + 1))
        left, right = carriers[first : first + before], carriers[first + before : first + before + after]
        prefix = "".join(text + blank for text in left)
        context = prefix + target + "".join(blank + text for text in right)
        out.append(HiddenPhrase(phrase, target, score, context, len(prefix)))
    return out


def overlap(start: int, end: int, found_start: int, found_end: int) -> float:
    """Intersection over union of two ranges of characters."""
    both = max(0, min(end, found_end) - max(start, found_start))
    either = (end - start) + (found_end - found_start) - both
    return both / either if either > 0 else 0.0


def phrase_rows(
    items: Sequence[HiddenPhrase],
    scores: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    task: str,
    subset: str,
) -> list[Row]:
    """Score what a method found.

    Args:
        items: the set.
        scores: float (n,), the score of the best span of each context.
        starts: int (n,), where it begins.
        ends: int (n,), where it ends.
        task: what the rows call the set.
        subset: its language or language pair.

    Returns:
        ``spearman`` and ``pearson`` of the scores, with a note instead of a value where there is none; over the pairs
        that clearly mean the same, ``iou``, the mean overlap of the found and the hidden span in characters, and
        ``found``, how often it is at least one half.
    """
    gold = np.array([item.score for item in items])
    rows = correlation_rows(scores, gold, task, subset, "all of the method's scores")
    overlaps = np.array(
        [
            overlap(item.start, item.end, int(a), int(b))
            for item, a, b in zip(items, starts, ends, strict=True)
            if item.score >= CLEARLY_THE_SAME and item.start >= 0
        ]
    )
    if len(overlaps):
        rows.append(Row(task, subset, "iou", float(overlaps.mean()), len(overlaps)))
        rows.append(Row(task, subset, "found", float((overlaps >= _FOUND).mean()), len(overlaps)))
    return rows
