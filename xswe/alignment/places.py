"""Location of the rows of a corrected file in two texts, after merging, cutting, moving and typing over.

A text is sought as whole lines: where the row's writer said, then where it stands only once, then between the rows around
it. What is not there as whole lines is a part of a line, which with the parts in the next rows makes up the line; or it was
typed over, and is put where the lines that no other row has are most like it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from xswe.alignment.rows import OPEN, REJECTED, EditedRow, Run

_KEY = 8  # characters without blanks by which lines are looked up
_PARTS = 8  # rows that one line may be cut into
_MOST = 6  # lines that a text which was typed over may have
_ALIKE = 0.6  # of what was typed over and a run of lines, from which it is put there
_LONG = 2000  # characters that are compared
_FEW = 1000  # rows that may all have been typed over


class Placed(NamedTuple):
    """Rows that belong together, and the lines that they have.

    Attributes:
        lines: of source and target, either of which may be empty.
        rows: which rows, from 0; several where a line was cut.
    """

    lines: tuple[Run, Run]
    rows: tuple[int, ...]


def place_rows(rows: Sequence[EditedRow], texts: tuple[Sequence[str], Sequence[str]]) -> tuple[list[Placed], list[int]]:
    """Find the lines of rows, none of which is empty on both sides.

    Returns the rows that have lines, and those of which nothing is found: all, if there is none that has a text of the
    lines that its writer named.
    """
    sides = [_Side(rows, side, texts[side]) for side in (0, 1)]
    group = list(range(len(rows)))  # the first row of those that belong together
    for side in sides:
        side.find_whole()
        for first, last in side.find_parts():
            for row in range(first, last + 1):
                group[row] = min(group[first], group[row])
    if len(rows) > _FEW and not any(found for side in sides for found in side.found):
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
    """One side's texts of all rows, and the lines that they were found in.

    Attributes:
        runs: lines of each row; empty for an empty text, None for one that was not found yet.
        found: whether the row's text is, or is like, that of its lines.
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
        """Return for each row the end of the one before it that has a place, and the begin of the next one."""
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
        """Find texts that are whole lines."""
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
        """Find texts that stand in several places: between the rows around, or anywhere, near to these."""
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
        """Find lines that were cut: yield the first and the last of the rows that make up whole lines together."""
        missing, bounds = self._missing(), self._bounds()
        for row in missing:
            if self.runs[row] is not None:
                continue
            starts = [*self._hints[row], *self._lines.starting_with(self._texts[row])]
            starts += [bounds[row][0]] if bounds[row][0] < len(self._lines) else []
            for start in dict.fromkeys(starts):
                if (end := self._last_part(row, start)) is not None:
                    yield row, end
                    break

    def _last_part(self, row: int, start: int) -> int | None:
        """Return the last of the rows whose texts are together the lines from one on, and give these to all of them."""
        whole = ""
        for last in range(row, min(row + _PARTS, len(self.runs))):
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
        """Place overwritten texts at the most similar lines that no row has, or else where the row says."""
        bounds = self._bounds()
        for row in self._missing():
            sure = tuple(line for line in self._sure[row] if line < len(self._lines) and not self._taken[line])
            low, high = bounds[row]
            if sure:
                low, high = min(sure[0], max(low, sure[0] - _MOST)), max(sure[-1] + 1, min(high, sure[-1] + 1 + _MOST))
            open_lines = [line for line in range(low, high) if not self._taken[line]]
            runs = list(_runs_within(open_lines[: 4 * _MOST]))
            place, like = most_alike(self._texts[row], [self._lines.text(run) for run in runs])
            best = runs[place] if runs else ()
            if like >= _ALIKE:
                self._take(row, best)
            elif sure and sure == self._sure[row]:
                self._take(row, sure, False)
            elif not self._sure[row] and len(open_lines) == 1 and self._stands[row] and not self._hints[row]:
                self._take(row, tuple(open_lines) if like > 0.2 else ())
            else:
                self.runs[row] = ()


def _runs_within(lines: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of lines that follow each other, of up to some lines."""
    for first in range(len(lines)):
        for size in range(1, _MOST + 1):
            run = tuple(lines[first : first + size])
            if len(run) < size or run[-1] - run[0] != size - 1:
                break
            yield run


def bare(text: str) -> str:
    """Return a text without blanks."""
    return "".join(text.split())


def most_alike(text: str, others: Sequence[str]) -> tuple[int, float]:
    """Return which text is most like another, and from 0 to 1 how much; long ones are compared by their beginnings."""
    matcher = SequenceMatcher(None, b=text[:_LONG], autojunk=False)  # what is compared with is looked through once
    place, most = 0, 0.0
    for number, other in enumerate(others):
        if min(len(text), len(other)) < _ALIKE / 2 * max(len(text), len(other)):
            continue
        matcher.set_seq1(other[:_LONG])
        if matcher.quick_ratio() > most and (share := matcher.ratio()) > most:
            place, most = number, share
    return place, most


class Lines:
    """The lines of a text without blanks, and where a text stands in them."""

    def __init__(self, lines: Sequence[str]) -> None:
        own = [bare(line) for line in lines]
        self._text = "".join(own)
        self._ends = [0, *accumulate(map(len, own))]
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._short: dict[str, list[int]] = defaultdict(list)
        for line, text in enumerate(own):
            start = self._ends[line]
            if text:
                self._by_key[self._text[start : start + _KEY]].append(line)
            if 0 < len(text) < _KEY:
                self._short[text].append(line)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def at(self, line: int, text: str) -> Run | None:
        """Return the lines from this one on that are together a text without blanks; None if they are not."""
        if not self.begins(line, text):
            return None
        end = self._ends[line] + len(text)
        last = bisect_left(self._ends, end, line)
        return tuple(range(line, last)) if self._ends[last] == end else None

    def begins(self, line: int, text: str) -> bool:
        """Return True if the lines from this one on begin with a text without blanks."""
        return 0 <= line < len(self) and self._text.startswith(text, self._ends[line])

    def starting_with(self, text: str) -> list[int]:
        """Return the lines that begin with a text without blanks, of some characters at least."""
        found = self._by_key.get(text[:_KEY], []) if len(text) >= _KEY else self._short.get(text, [])
        return [line for line in found if self.begins(line, text)]

    def runs_of(self, text: str) -> list[Run]:
        """Return where lines are together a text without blanks, in order."""
        return [run for line in self.starting_with(text) if (run := self.at(line, text))]

    def text(self, run: Run) -> str:
        """Return the text of lines that follow each other, without blanks."""
        return self._text[self._ends[run[0]] : self._ends[run[-1] + 1]]
