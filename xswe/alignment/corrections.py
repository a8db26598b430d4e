"""Corrections of an alignment: right and rejected pairs, lines without a counterpart, edited texts."""

from __future__ import annotations

import json
import logging
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xswe.alignment.beads import Constraints
from xswe.alignment.formats import joined
from xswe.alignment.places import Placed, bare, place_rows
from xswe.alignment.rows import OPEN, REJECTED, STANDS, EditedRow, Run, is_score, line_of, read_rows
from xswe.alignment.rows import SUFFIXES as _TABLES
from xswe.errors import ConfigError, InputError, XsweError
from xswe.io.lines import read_lines
from xswe.io.sources import suffix_of

logger = logging.getLogger(__name__)

Correction = tuple[Sequence[int], Sequence[int]] | tuple[Sequence[int], Sequence[int], str]
Given = str | Path | Sequence[Correction]  # what ``fixed=`` and ``uncorrected=`` accept: a file or a list
Pair = tuple[Run, Run]
SUFFIXES = (".ladder", ".jsonl", *_TABLES)
_SIDES = ("source", "target")
_RUNG = re.compile(r"\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\](?::(.*))?")


class Said(NamedTuple):
    """A person's text and notes for a bead, or for part of one."""

    source: str
    target: str
    notes: str = ""


class _Entry(NamedTuple):
    """An entry of a file or list, about lines of both sides; lines of one side only are a gap."""

    lines: Pair
    status: str
    number: int  # of the line or unit from 1, or the index in a list from 0
    said: tuple[Said, ...] = ()  # only where it differs from the lines

    @property
    def rejected(self) -> bool:
        """Whether the pair must not be found again."""
        return self.status in REJECTED

    @property
    def stands(self) -> bool:
        """Whether the entry is kept, neither rejected nor open."""
        return self.status not in REJECTED and self.status != OPEN


@dataclass(frozen=True, eq=False)
class Corrections:
    """The contents of a corrected file, for two texts.

    Attributes:
        constraints: on the path through both texts.
        apart: int64 (k, 4), beads off that path, either out of order or with a text that a person wrote for lines without
            a counterpart: begin and end in the source, begin and end in the target.
        said: a person's texts and notes for beads, by their lines.
        changes: number of rows for each kind of change, in the order of the summary.
    """

    constraints: Constraints = field(default_factory=Constraints)
    apart: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    said: Mapping[Pair, tuple[Said, ...]] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {what}" for what, count in self.changes.items() if count)


def read_corrections(
    fixed: Given | None,
    uncorrected: Given | None,
    source: Sequence[str],
    target: Sequence[str],
    languages: tuple[str, ...],
) -> Corrections:
    """Read the corrections of an earlier alignment of two texts.

    ``fixed`` is an output of ``align`` corrected by hand (a table or memory, whose rows are looked up in the two texts by
    their own texts; a ladder; or JSON lines), or a list of line numbers from 0. A pair is a known bead, or rejected if its
    status says so. Lines given on one side only have no counterpart; nor do lines removed from a table that held every
    line. ``uncorrected`` is the same file before correction: pairs no longer in ``fixed`` are rejected. TMX without
    ``languages`` has its own two.

    ConfigError, or InputError for a file: the languages are not known, lines do not exist or are not consecutive, two
    entries contradict each other, or nothing of the file is found in the texts.
    """
    if fixed is None:
        if uncorrected is not None:
            raise ConfigError(f"uncorrected={uncorrected}: this is what fixed= was made from; give fixed= too")
        return Corrections()
    reader = _Reader(source, target, languages)
    found = reader.read(fixed, "fixed")
    pairs = [entry for entry in found.entries if all(entry.lines) and entry.stands]
    _check_apart(found.entries, _by_line(pairs, fixed), fixed)
    in_order, moved = _in_order(pairs)
    moved += [entry for entry in found.entries if not all(entry.lines) and entry.said]
    gaps = [_gaps(found, moved, side, len(texts)) for side, texts in enumerate((source, target))]
    rejected = {entry.lines for entry in found.entries if entry.rejected}
    changes = dict(found.changes)
    if uncorrected is not None:
        removed = _removed(reader.read(uncorrected, "uncorrected").entries, found.entries, pairs)
        changes["taken out"] = len(removed)
        rejected |= removed
    boxes = sorted((a[-1] + 1, a[0], b[0], b[-1] + 1) for a, b in rejected)
    constraints = Constraints(
        tuple(((a[0], b[0]), (a[-1] + 1, b[-1] + 1)) for a, b in (entry.lines for entry in in_order)),
        np.array(gaps[0], np.int64),
        np.array(gaps[1], np.int64),
        np.array([(begin, end, low, high) for end, begin, low, high in boxes], np.int64).reshape(-1, 4),
    )
    spans = [[end for run in entry.lines for end in ((run[0], run[-1] + 1) if run else (0, 0))] for entry in moved]
    said = {entry.lines: entry.said for entry in found.entries if entry.said and entry.stands}
    return Corrections(constraints, np.array(spans, np.int64).reshape(-1, 4), said, changes)


def _in_order(pairs: list[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """Split pairs that share no lines into the most that can be in order, each once, and those that cross them."""
    every = sorted({entry.lines: entry for entry in reversed(pairs)}.values())
    ends: list[int] = []  # for each length of a chain in order, the lowest last line of the target it can end with
    places: list[int] = []  # the pair that ends that chain
    before: list[int] = []
    for place, entry in enumerate(every):
        size = bisect_left(ends, entry.lines[1][-1])
        ends[size : size + 1], places[size : size + 1] = [entry.lines[1][-1]], [place]
        before.append(places[size - 1] if size else -1)
    chosen: set[int] = set()
    place = places[-1] if places else -1
    while place >= 0:
        chosen.add(place)
        place = before[place]
    sides: tuple[list[_Entry], list[_Entry]] = ([], [])
    for place, entry in enumerate(every):
        sides[place not in chosen].append(entry)
    return sides


def _gaps(found: _Found, moved: list[_Entry], side: int, count: int) -> list[int]:
    """Return the lines of a side that are in no bead on the path."""
    alone = {line for entry in found.entries if not entry.lines[1 - side] and entry.stands for line in entry.lines[side]}
    alone |= {line for entry in moved for line in entry.lines[side]}
    if found.whole:
        alone |= set(range(count)) - {line for entry in found.entries for line in entry.lines[side]}
    return sorted(alone)


def _removed(before: list[_Entry], after: list[_Entry], pairs: list[_Entry]) -> set[Pair]:
    """Return the pairs that a correction removed from a file, except those of edited rows."""
    holders = [{line: entry.lines for entry in pairs for line in entry.lines[side]} for side in (0, 1)]
    edited = [entry for entry in after if entry.said and not all(entry.lines)]
    out = set()
    for pair in (entry.lines for entry in before if all(entry.lines) and entry.stands):
        bead = holders[0].get(pair[0][0])
        kept = bead and all(set(part) <= set(whole) for part, whole in zip(pair, bead, strict=True))
        if not kept and not any(set(entry.lines[k]) & set(pair[k]) for entry in edited for k in (0, 1)):
            out.add(pair)
    return out


def _by_line(pairs: list[_Entry], given: Given) -> list[dict[int, _Entry]]:
    """Map the lines of either side to their pairs; refuse pairs that share a line."""
    holders: list[dict[int, _Entry]] = [{}, {}]
    for entry in sorted(pairs, key=lambda entry: entry.number):
        for holder, lines in zip(holders, entry.lines, strict=True):
            for line in lines:
                if (before := holder.setdefault(line, entry)).lines != entry.lines:
                    problem = f"{_rung(entry)} cannot be a bead beside {_rung(before)} ({_place(given, before)})"
                    raise _refusal(given, "fixed", entry, problem, "beads share no lines: remove one of them")
    return holders


def _check_apart(entries: list[_Entry], holders: list[dict[int, _Entry]], given: Given) -> None:
    """Refuse gaps and rejected pairs within a fixed bead."""
    hint = "remove one of them"
    for entry in entries:
        if all(entry.lines):
            bead = holders[0].get(entry.lines[0][0]) if entry.rejected else None
            if bead and all(set(part) <= set(whole) for part, whole in zip(entry.lines, bead.lines, strict=True)):
                problem = f"{_rung(entry)} is rejected, but within the bead {_rung(bead)} ({_place(given, bead)})"
                raise _refusal(given, "fixed", entry, problem, hint)
            continue
        for side, lines in enumerate(entry.lines):
            for line in lines if entry.stands else ():
                if bead := holders[side].get(line):
                    where = f"in the bead {_rung(bead)} ({_place(given, bead)})"
                    problem = f"line {line} of the {_SIDES[side]} has no counterpart, but is {where}"
                    raise _refusal(given, "fixed", entry, problem, hint)


def _rung(entry: _Entry) -> str:
    return ":".join(f"[{','.join(map(str, lines))}]" for lines in entry.lines)


def _place(given: Given, entry: _Entry) -> str:
    """Describe where an entry stands in its file or list."""
    if not isinstance(given, (str, Path)):
        return f"fixed[{entry.number}]"
    return f"line {line_of(given, entry.number)}"


def _refusal(given: Given, name: str, entry: _Entry | EditedRow, problem: str, hint: str) -> XsweError:
    """Return the error for an invalid entry, with its place."""
    if not isinstance(given, (str, Path)):
        return ConfigError(f"{name}[{entry.number}]: {problem}; {hint}")
    return InputError(given, problem, hint, line_of(given, entry.number))


class _Found(NamedTuple):
    """The entries of a file, whether it is a table that held every line of both texts, and its changes, counted."""

    entries: list[_Entry]
    whole: bool
    changes: dict[str, int]


class _Reader:
    """Reader of corrections to two texts."""

    def __init__(self, source: Sequence[str], target: Sequence[str], languages: tuple[str, ...]) -> None:
        self._texts, self._languages = (source, target), languages

    def read(self, given: Given, name: str) -> _Found:
        """Read a file or a list."""
        if isinstance(given, (str, Path)) and suffix_of(given) not in SUFFIXES:
            raise ConfigError(f"{name}={given}: corrections are read from {', '.join(SUFFIXES)}")
        if isinstance(given, (str, Path)) and suffix_of(given) in _TABLES:
            found = self._of_rows(Path(given))
            for entry in found.entries:
                self._check(entry, given, name)
            return found
        entries = list(self._listed(given, name))
        counts = Counter(_change_of(entry, entry.lines) for entry in entries)
        return _Found(entries, False, {what: counts[what] for what in _CHANGES})

    def _check(self, entry: _Entry, given: Given, name: str) -> None:
        """Refuse lines that do not exist, and pairs whose lines are not consecutive."""
        for side, (lines, texts) in enumerate(zip(entry.lines, self._texts, strict=True)):
            ordered = not all(entry.lines) or list(lines) == list(range(lines[0], lines[-1] + 1))
            if not ordered or (lines and not 0 <= min(lines) <= max(lines) < len(texts)):
                what = "be a bead" if all(entry.lines) else "be in a gap"
                problem = f"lines {list(lines)} of the {_SIDES[side]}, which has {len(texts)}, cannot {what} here"
                raise _refusal(given, name, entry, problem, "a bead's lines follow each other, from 0")
        if entry.rejected and not all(entry.lines):
            problem, hint = f"{_rung(entry)} is a gap, and rejected", "give the pair that is right, or leave it out"
            raise _refusal(given, name, entry, problem, hint)

    def _listed(self, given: Given, name: str) -> Iterator[_Entry]:
        """Read a ladder, JSON lines, or a list."""
        if isinstance(given, (str, Path)):
            parse = _object if suffix_of(given) == ".jsonl" else _ladder
            found = ((number, parse(given, number, text)) for number, text in read_lines(given) if (text or "").strip())
        else:
            found = ((place, _pair(name, place, one)) for place, one in enumerate(given))
        for number, (source, target, status, notes) in found:
            entry = _Entry((source, target), "", number)
            entry = entry._replace(status=_status(given, name, entry, status))
            self._check(entry, given, name)
            yield entry._replace(said=(Said(*self._own(entry.lines), notes),)) if notes else entry

    def _own(self, lines: Pair) -> tuple[str, str]:
        """Return the texts of lines."""
        source, target = (joined([side[line] for line in run]) for side, run in zip(self._texts, lines, strict=True))
        return source, target

    def _said(self, rows: Sequence[Said], lines: Pair) -> tuple[Said, ...]:
        """Return a person's texts and notes; empty if the texts are those of the lines and there are no notes."""
        if len(rows) > 1:
            return tuple(rows)
        own = self._own(lines)
        texts = [_kept(text, side, len(run) > 1) for text, side, run in zip(rows[0][:2], own, lines, strict=True)]
        return (Said(texts[0], texts[1], rows[0].notes),) if texts != list(own) or rows[0].notes else ()

    def _of_rows(self, path: Path) -> _Found:
        """Read the rows of a table and find them in the two texts."""
        rows, whole = read_rows(path, self._languages)
        rows = [row for row in rows if any(map(bare, row.texts))]
        for row in rows:
            _status(path, "", row, row.status)
        placed, lost = place_rows(rows, self._texts)
        if not placed:
            raise InputError(path, "none of its rows is in the two texts", "give a file made from these texts")
        if len(lost) > len(placed):
            logger.warning("%s: %d rows are not in the texts and are ignored", path, len(lost))
        else:
            placed = _with_new(placed, [row for row in lost if rows[row].status in STANDS or is_score(rows[row].status)])
            lost = [row for row in lost if rows[row].status in REJECTED or rows[row].status == OPEN]
        entries = []
        counts: Counter[str] = Counter({"not found": len(lost)})
        for one in placed:
            own = [Said(*rows[row].texts, rows[row].notes) for row in one.rows]
            first = rows[one.rows[0]]
            entry = _Entry(one.lines, _status(path, "", first, first.status), first.number, self._said(own, one.lines))
            if entry.rejected and not all(entry.lines):
                counts["not found"] += 1
                continue
            entries.append(entry)
            known = len(one.rows) == 1 and any(first.lines)
            typed = bool(entry.said) and [said[:2] for said in entry.said] != [self._own(entry.lines)]
            counts[_change_of(entry, first.lines if known or len(one.rows) > 1 else one.lines, typed)] += 1
        if whole:
            placed_lines = [len({line for entry in entries for line in entry.lines[side]}) for side in (0, 1)]
            counts["lines taken out"] = sum(map(len, self._texts)) - sum(placed_lines)
            if 2 * counts["lines taken out"] > sum(map(len, self._texts)):
                hint = "if this is only part of a table, remove the columns source_lines and target_lines"
                logger.warning("%s: most lines are in none of its rows, and now have no counterpart; %s", path, hint)
        return _Found(entries, whole, {what: counts[what] for what in _CHANGES})


_CHANGES = (
    *("as they were", "with other lines", "typed over", "rejected"),
    *("to be aligned anew", "not found", "lines taken out"),
)


def _change_of(entry: _Entry, before: Pair, typed: bool = False) -> str:
    """Return the kind of change that an entry is."""
    if not entry.stands:
        return "rejected" if entry.rejected else "to be aligned anew"
    if entry.lines != before:
        return "with other lines"
    return "typed over" if typed else "as they were"


def _with_new(placed: list[Placed], new: list[int]) -> list[Placed]:
    """Attach rows that a person added to the rows before them."""
    out = {one.rows[0]: one for one in placed}
    firsts = sorted(out)
    for row in new:
        beside = firsts[max(0, bisect_left(firsts, row) - 1)]
        out[beside] = out[beside]._replace(rows=tuple(sorted((*out[beside].rows, row))))
    return list(out.values())


def _kept(text: str, own: str, several: bool) -> str:
    """Return the text of the lines if the given text differs only in whitespace, else the given text."""
    same = bare(text) == bare(own) if several else text.split() == own.split()
    return own if same else text.strip()


def _status(given: Given, name: str, entry: _Entry | EditedRow, status: str) -> str:
    """Return the checked status of an entry; a score may stand in its place."""
    status = status.strip()
    if status not in STANDS and status not in REJECTED and status != OPEN and not is_score(status):
        hint = "write rejected, right, open, or nothing"
        raise _refusal(given, name, entry, f"there is no status {status[:60]!r}", hint)
    return status


_Read = tuple[Run, Run, str, str]  # lines of both sides, status, notes


def _ladder(path: str | Path, number: int, text: str | None) -> _Read:
    """Read a rung: ``[0]:[0,1]``, optionally followed by another colon and a score or a status."""
    found = _RUNG.fullmatch((text or "").strip())
    if found is None:
        hint = "write [0]:[0,1], [0]:[0,1]:score, [0]:[] or [0]:[0,1]:rejected"
        raise InputError(path, f"{(text or '')[:60]!r} is no rung", hint, number)
    source, target = (tuple(int(line) for line in side.split(",") if line.strip()) for side in found.groups()[:2])
    return source, target, found[3] or "", ""


def _object(path: str | Path, number: int, text: str | None) -> _Read:
    """Read an object with the lines of both sides, and optionally a status and notes."""
    try:
        value = json.loads(text or "")
        source, target = ([int(line) for line in value[f"{side}_lines"]] for side in _SIDES)
        status, notes = (str(value.get(name) or "") for name in ("status", "notes"))
        return tuple(source), tuple(target), status, notes
    except (ValueError, TypeError, KeyError, AttributeError):
        hint = 'write {"source_lines": [0], "target_lines": [0, 1]}, and optionally "status": "rejected"'
        raise InputError(path, f"{(text or '')[:60]!r} is no pair", hint, number) from None


def _pair(name: str, place: int, given: Correction) -> _Read:
    """Read an item of a list."""
    try:
        source, target, *status = given
        return tuple(map(int, source)), tuple(map(int, target)), str(*status), ""
    except (ValueError, TypeError):
        raise ConfigError(f"{name}[{place}]: {given!r} is no pair; write ((0,), (0, 1)), lines from 0") from None
