"""Location of the rows of a corrected file in two texts, after merging, splitting, moving and editing.

A row's text is first sought as whole lines: at its line numbers, then where it occurs only once, then between the rows
around it. A text not found as whole lines may be part of a line, completed by the next rows; otherwise it was edited, and
is placed at the most similar lines that no other row has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from xswe.alignment.rows import OPEN, REJECTED, EditedRow, Run

_KEY_LENGTH = 8  # characters, without whitespace, by which lines are looked up
_MAX_PARTS = 8  # rows that one line may be split into
_MAX_RUN = 6  # lines that an edited text may have
_MIN_SIMILARITY = 0.6  # of an edited text and its lines
_MAX_COMPARED = 2000  # characters compared
_MAX_EDITED = 1000  # rows that may all have been edited; in a longer file, some must be unchanged


class Placed(NamedTuple):
    """Rows that belong together, and their lines.

    Attributes:
        lines: of source and target, either of which may be empty.
        rows: row numbers, from 0; several if a line was split.
    """

    lines: tuple[Run, Run]
    rows: tuple[int, ...]


def place_rows(rows: Sequence[EditedRow], texts: tuple[Sequence[str], Sequence[str]]) -> tuple[list[Placed], list[int]]:
    """Find the lines of rows that have text on at least one side.

    Returns the rows with lines, and the rows that are not found: all rows, if no text of any row is found.
    """
    sides = [_Side(rows, side, texts[side]) for side in (0, 1)]
    group = list(range(len(rows)))  # first row of each group
    for side in sides:
        side.find_whole()
        for first, last in side.find_parts():
            for row in range(first, last + 1):
                group[row] = min(group[first], group[row])
    if len(rows) > _MAX_EDITED and not any(found for side in sides for found in side.found):
        return [], list(range(len(rows)))  # a file of other texts
    for side in sides:
        side.find_alike()
    if not any(found for side in sides for found in side.found):
        return [], list(range(len(rows)))
    together: dict[int, list[int]] = defaultdict(list)
    for row in range(len(rows)):
        together[group[group[row]]].append(row)
    placed: list[Placed] = []
    lost: list[int] = []
    for own in together.values():
        lines = [tuple(sorted({line for row in own for line in side.runs[row] or ()})) for side in sides]
        if any(lines):
            placed.append(Placed((lines[0], lines[1]), tuple(own)))
        else:
            lost += own
    return placed, lost


class _Side:
    """The texts of all rows on one side, and the lines where they were found.

    Attributes:
        runs: lines of each row; empty for an empty text, None while not found.
        found: whether the row's text equals, or resembles, that of its lines.
    """

    def __init__(self, rows: Sequence[EditedRow], side: int, lines: Sequence[str]) -> None:
        self._lines = Lines(lines)
        self._texts = [bare(row.texts[side]) for row in rows]
        self._hints = [row.lines[side] or row.either for row in rows]
        self._sure = [row.lines[side] for row in rows]
        self._stands = [row.status not in REJECTED and row.status != OPEN for row in rows]
        self.runs: list[Run | None] = [None if text else () for text in self._texts]
        self.found = [False] * len(rows)
        self._taken = [False] * len(lines)

    def _take(self, row: int, run: Run, found: bool = True) -> None:
        self.runs[row], self.found[row] = run, found and bool(run)
        if self._stands[row]:
            for line in run:
                self._taken[line] = True

    def _free(self, row: int, run: Run) -> bool:
        return not self._stands[row] or not any(self._taken[line] for line in run)

    def _missing(self) -> list[int]:
        return [row for row, run in enumerate(self.runs) if run is None]

    def _bounds(self) -> list[tuple[int, int]]:
        """Return, for each row, the end of the previous placed row and the start of the next one."""
        count = len(self._lines)
        before, after = [0] * len(self.runs), [count] * len(self.runs)
        for places, order in ((before, range(len(self.runs))), (after, range(len(self.runs) - 1, -1, -1))):
            last = 0 if places is before else count
            for row in order:
                places[row] = last
                if (run := self.runs[row]) and self._stands[row]:
                    last = run[-1] + 1 if places is before else run[0]
        return list(zip(before, after, strict=True))

    def find_whole(self) -> None:
        """Place texts that are whole lines."""
        for row in self._missing():
            at_hints = (self._lines.at(line, self._texts[row]) for line in self._hints[row])
            if named := next((run for run in at_hints if run), None):
                self._take(row, named)
        for row in self._missing():
            found = self._lines.runs_of(self._texts[row])
            if len(found) == 1 and self._free(row, found[0]):
                self._take(row, found[0])
        for within in (True, False):
            self._find_between(within)

    def _find_between(self, within: bool) -> None:
        """Place texts that occur several times: between the neighbouring rows, or else as near to them as possible."""
        ends, bounds = 0, self._bounds()
        for row in self._missing():
            low, high = bounds[row]
            low = max(low, ends) if within and self._stands[row] else low
            found = [run for run in self._lines.runs_of(self._texts[row]) if self._free(row, run)]
            chosen = [run for run in found if low <= run[0] and run[-1] < high]
            if not chosen and not within:
                chosen = sorted(found, key=lambda run: abs(run[0] - bounds[row][0]))
            if chosen:
                self._take(row, chosen[0])
                ends = chosen[0][-1] + 1 if self._stands[row] else ends

    def find_parts(self) -> Iterator[tuple[int, int]]:
        """Find lines that were split: yield the first and last of the rows that together make up whole lines."""
        missing, bounds = self._missing(), self._bounds()
        for row in missing:
            if self.runs[row] is not None:
                continue
            starts = [*self._hints[row], *self._lines.starting_with(self._texts[row]), bounds[row][0]]
            for start in dict.fromkeys(starts):
                if (end := self._last_part(row, start)) is not None:
                    yield row, end
                    break

    def _last_part(self, row: int, start: int) -> int | None:
        """Return the last of the rows whose texts make up whole lines from ``start``, and place all of them there."""
        whole = ""
        for last in range(row, min(row + _MAX_PARTS, len(self.runs))):
            run = self.runs[last]
            if run or not self._stands[last]:
                return None
            whole += self._texts[last]
            if not self._lines.begins(start, whole):
                return None
            found = self._lines.at(start, whole) if last > row else None
            if found and self._free(row, found):
                for part in range(row, last + 1):
                    self._take(part, found if self._texts[part] else ())
                return last
        return None

    def find_alike(self) -> None:
        """Place edited texts at the most similar lines that no row has, or else at their line numbers."""
        bounds = self._bounds()
        for row in self._missing():
            sure = tuple(line for line in self._sure[row] if line < len(self._lines) and not self._taken[line])
            low, high = bounds[row]
            if sure:
                low, high = (
                    min(sure[0], max(low, sure[0] - _MAX_RUN)),
                    max(sure[-1] + 1, min(high, sure[-1] + 1 + _MAX_RUN)),
                )
            open_lines = [line for line in range(low, high) if not self._taken[line]]
            runs = list(_runs_within(open_lines[: 4 * _MAX_RUN]))
            place, like = most_alike(self._texts[row], [self._lines.text(run) for run in runs])
            best = runs[place] if runs else ()
            if like >= _MIN_SIMILARITY:
                self._take(row, best)
            elif sure and sure == self._sure[row]:
                self._take(row, sure, False)
            elif not self._sure[row] and len(open_lines) == 1 and self._stands[row] and not self._hints[row]:
                self._take(row, tuple(open_lines) if like > 0.2 else ())
            else:
                self.runs[row] = ()


def _runs_within(lines: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of consecutive lines, up to a maximum length."""
    for first in range(len(lines)):
        for size in range(1, _MAX_RUN + 1):
            run = tuple(lines[first : first + size])
            if len(run) < size or run[-1] - run[0] != size - 1:
                break
            yield run


def bare(text: str) -> str:
    """Remove all whitespace from a text."""
    return "".join(text.split())


def most_alike(text: str, others: Sequence[str]) -> tuple[int, float]:
    """Return the index of the most similar text, and its similarity from 0 to 1; only beginnings are compared."""
    matcher = SequenceMatcher(None, b=text[:_MAX_COMPARED], autojunk=False)  # indexes ``b`` only once
    place, most = 0, 0.0
    for number, other in enumerate(others):
        if min(len(text), len(other)) < _MIN_SIMILARITY / 2 * max(len(text), len(other)):
            continue
        matcher.set_seq1(other[:_MAX_COMPARED])
        if matcher.quick_ratio() > most and (share := matcher.ratio()) > most:
            place, most = number, share
    return place, most


class Lines:
    """The lines of a text without whitespace, for look-up of texts in them."""

    def __init__(self, lines: Sequence[str]) -> None:
        own = [bare(line) for line in lines]
        self._text = "".join(own)
        self._ends = [0, *accumulate(map(len, own))]
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._short: dict[str, list[int]] = defaultdict(list)
        for line, text in enumerate(own):
            start = self._ends[line]
            if text:
                self._by_key[self._text[start : start + _KEY_LENGTH]].append(line)
            if 0 < len(text) < _KEY_LENGTH:
                self._short[text].append(line)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def at(self, line: int, text: str) -> Run | None:
        """Return the lines from this one that together make up a text without whitespace; None if they do not."""
        if not self.begins(line, text):
            return None
        end = self._ends[line] + len(text)
        last = bisect_left(self._ends, end, line)
        return tuple(range(line, last)) if self._ends[last] == end else None

    def begins(self, line: int, text: str) -> bool:
        """Return True if the text from this line begins with a text without whitespace."""
        return 0 <= line < len(self) and self._text.startswith(text, self._ends[line])

    def starting_with(self, text: str) -> list[int]:
        """Return the lines that begin with a text without whitespace; a text shorter than the key must be a whole line."""
        found = self._by_key.get(text[:_KEY_LENGTH], []) if len(text) >= _KEY_LENGTH else self._short.get(text, [])
        return [line for line in found if self.begins(line, text)]

    def runs_of(self, text: str) -> list[Run]:
        """Return the runs of lines that make up a text without whitespace, in order."""
        return [run for line in self.starting_with(text) if (run := self.at(line, text))]

    def text(self, run: Run) -> str:
        """Return the text of consecutive lines, without whitespace."""
        return self._text[self._ends[run[0]] : self._ends[run[-1] + 1]]
