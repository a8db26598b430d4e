"""Wrong pairs made from right ones, of every kind found in bitext from the web, to train a filter on.

They are made from the pairs of one bitext, so that a filter learns its lengths, words and style. The random draws depend on
the order of the pairs: sorted by content, they give the same wrong pairs in any order of the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from xswe.io.products import products
from xswe.mining.names import NameUsage

Pair = tuple[str, str]
KINDS = (
    "other sentence",
    "truncated",
    "added text",
    "wrong language",
    "partly copied",
    "word salad",
    "other numbers",
    "other names",
    "damaged encoding",
)
_NEAREST = 8  # neighbours of a target, one of which replaces it
_TRIES = 3  # for a change that leaves a pair as it was
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][A-Za-zÀ-ÿ]{2,}|[ァ-ヴー]{3,}|(?<=[ぁ-ヿ一-鿿])[A-Z][A-Za-z]{2,}")
_NOUN_RATIO = 1.8  # from this ratio of capitalised words to the other side's they are nouns; names are those on both sides
_ENCODINGS = ("latin-1", "cp1252", "gb18030", "shift_jis", "euc_jp")


def words_of(text: str) -> tuple[list[str], str]:
    """Return the words of a text and their separator; for text without blanks, its characters."""
    words = text.split(" ")
    return (words, " ") if len(words) > 1 + len(text) // 20 else (list(text), "")


@dataclass
class WrongPairs:
    """Makes wrong pairs from right ones.

    Attributes:
        pairs: the right pairs.
        vectors: of their targets, float32 (n, d), for finding near targets.
        foreign: for each side, texts in other languages to draw from.
        seed: random seed.
        usage: how the pairs translate their names; those that they translate regularly are changed, too.
        possible: for each kind made so far, the share of the pairs that allow it.
    """

    pairs: Sequence[Pair]
    vectors: np.ndarray
    foreign: tuple[Sequence[str], Sequence[str]] = ((), ())
    seed: int = 0
    usage: NameUsage | None = None
    possible: dict[str, float] = field(default_factory=dict, init=False)
    _names: list[list[str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._draw = np.random.default_rng(self.seed)
        names = [[_NAME.findall(pair[side]) for pair in self.pairs] for side in (0, 1)]
        counts = [sum(map(len, own)) for own in names]
        self._regular = self.usage.regular if self.usage else (frozenset[str](), frozenset[str]())
        self._nouns = [counts[side] > _NOUN_RATIO * counts[1 - side] for side in (0, 1)]
        self._names = [
            [
                name
                for row, found in enumerate(own)
                for name in found
                if not self._nouns[side] or self._is_seen(name, row, side)
            ]
            for side, own in enumerate(names)
        ]

    def of_kind(self, kind: str, most: int | None = None) -> tuple[list[Pair], np.ndarray]:
        """Return at most ``most`` wrong pairs of a kind, and the row of the right pair that each is made from, int64 (m,).

        Pairs with nothing to change are left out.
        """
        make: dict[str, Callable[[int], Pair]] = {
            "truncated": self._truncated,
            "added text": self._added,
            "wrong language": self._wrong_language,
            "partly copied": self._copied,
            "word salad": self._salad,
            "other numbers": self._numbers,
            "other names": self._renamed,
            "damaged encoding": self._damaged,
        }
        rows = np.arange(len(self.pairs)) if most is None else self._draw.permutation(len(self.pairs))
        nearest = self._nearest(rows) if kind == "other sentence" else rows
        made, origins, place = [], [], -1
        for place, row in enumerate(rows.tolist()):
            for _ in range(_TRIES):
                new = (self.pairs[row][0], self.pairs[nearest[place]][1]) if kind == "other sentence" else make[kind](row)
                if all(new) and new != self.pairs[row]:
                    made.append(new)
                    origins.append(row)
                    break
            if len(made) == most:
                break
        self.possible[kind] = len(made) / (place + 1) if len(rows) else 0.0
        return made, np.array(origins, np.int64)

    def _draw_below(self, count: int) -> int:
        return int(self._draw.integers(max(1, count)))

    def _draw_other(self, row: int) -> int:
        """Draw the row of another pair."""
        return (row + 1 + self._draw_below(len(self.pairs) - 1)) % len(self.pairs)

    def _draw_side(self) -> int:
        """Draw the side to change, the target twice as often."""
        return int(self._draw.random() < 2 / 3)

    def _changed(self, row: int, side: int, text: str) -> Pair:
        source, target = self.pairs[row]
        return (source, text) if side else (text, target)

    def _nearest(self, rows: np.ndarray) -> np.ndarray:
        """Draw another pair for each row: for three quarters of them one with a near target, else any."""
        found = np.array([self._draw_other(row) for row in rows.tolist()], np.int64)
        near = np.flatnonzero(self._draw.random(len(rows)) < 0.75)
        for start in range(0, len(near), 1024):
            part = near[start : start + 1024]
            cosines = products(self.vectors[rows[part]], self.vectors)
            cosines[cosines > 0.95] = -1.0  # the pair itself, and near-duplicates
            order = np.argsort(-cosines, axis=1, kind="stable")[:, :_NEAREST]
            found[part] = order[np.arange(len(part)), self._draw.integers(order.shape[1], size=len(part))]
        return found

    def _truncated(self, row: int) -> Pair:
        side = self._draw_side()
        words, between = words_of(self.pairs[row][side])
        kept = max(1, int(len(words) * self._draw.uniform(0.25, 0.8)))
        start = 0 if self._draw.random() < 0.75 else len(words) - kept
        return self._changed(row, side, between.join(words[start : start + kept]).strip())

    def _added(self, row: int) -> Pair:
        side = self._draw_side()
        text = self.pairs[row][side]
        more, between = words_of(self.pairs[self._draw_other(row)][side])
        count = max(1, int(len(more) * self._draw.uniform(0.4, 1.0)))
        parts = [text, between.join(more[:count])]
        if self._draw.random() < 0.25:
            parts.reverse()
        return self._changed(row, side, (" " if between else "").join(parts))

    def _wrong_language(self, row: int) -> Pair:
        side = self._draw_side() if self.foreign[0] and self.foreign[1] else int(bool(self.foreign[1]))
        texts = self.foreign[side]
        return self._changed(row, side, texts[self._draw_below(len(texts))]) if texts else self.pairs[row]

    def _copied(self, row: int) -> Pair:
        """Leave a part of the target untranslated."""
        source, (target, between) = words_of(self.pairs[row][0])[0], words_of(self.pairs[row][1])
        share = self._draw.uniform(0.35, 0.9)
        kept = target[: int(len(target) * (1 - share))]
        copied = source[int(len(source) * (1 - share)) :]
        gap = " " if between or " " in self.pairs[row][0] else ""
        return self.pairs[row][0], f"{between.join(kept)}{gap}{gap.join(copied)}".strip()

    def _salad(self, row: int) -> Pair:
        words, between = words_of(self.pairs[row][1])
        step = 1 if between else 2
        made = []
        for _ in range(0, len(words), step):
            other, _ = words_of(self.pairs[self._draw_other(row)][1])
            place = self._draw_below(max(1, len(other) - step + 1))
            made += other[place : place + step]
        return self.pairs[row][0], between.join(made)

    def _numbers(self, row: int) -> Pair:
        side = self._draw_side()
        text = self.pairs[row][side]
        found = list(_NUMBER.finditer(text))
        if not found:
            return self.pairs[row]
        chosen = found[self._draw_below(len(found))]
        digits = list(chosen[0])
        if len(digits) > 2 and self._draw.random() < 0.3:
            digits.pop(self._draw_below(len(digits)))
        else:
            place = self._draw_below(len(digits))
            digits[place] = str((int(digits[place]) + 1 + self._draw_below(9)) % 10)
        return self._changed(row, side, text[: chosen.start()] + "".join(digits) + text[chosen.end() :])

    def _renamed(self, row: int) -> Pair:
        side = self._draw_side()
        if not (found := self._names_in(row, side)):
            side = 1 - side
            found = self._names_in(row, side)
        text = self.pairs[row][side]
        if not found or not self._names[side]:
            return self.pairs[row]
        chosen = found[self._draw_below(len(found))]
        name = self._names[side][self._draw_below(len(self._names[side]))]
        if name in text or name.isascii() != chosen[0].isascii():
            return self.pairs[row]
        return self._changed(row, side, text[: chosen.start()] + name + text[chosen.end() :])

    def _names_in(self, row: int, side: int) -> list[re.Match[str]]:
        """Find the names on a side: those that the other side has too; if none, the regularly translated ones or all.

        All are taken only where capitals do not mark nouns.
        """
        text, other = self.pairs[row][side], self.pairs[row][1 - side]
        found = list(_NAME.finditer(text))
        spelt = [match for match in found if match[0] in other]
        return spelt or ([match for match in found if match[0] in self._regular[side]] if self._nouns[side] else found)

    def _is_seen(self, name: str, row: int, side: int) -> bool:
        """Return True if the other side shows whether a name is right: it has it, too, or translates it regularly."""
        return name in self.pairs[row][1 - side] or name in self._regular[side]

    def _damaged(self, row: int) -> Pair:
        side = self._draw_side()
        if self.pairs[row][side].isascii():
            side = 1 - side
        text = self.pairs[row][side]
        draw = self._draw.random()
        if draw < 0.15:
            return self._changed(row, side, re.sub(r"[^\x00-\x7f]", "?", text))
        if draw < 0.3:
            return self._changed(row, side, re.sub(r"[^\x00-\x7f]", "\ufffd", text))
        encoding = _ENCODINGS[self._draw_below(2 if draw < 0.75 else len(_ENCODINGS))]
        return self._changed(row, side, text.encode("utf-8").decode(encoding, "replace").strip())
