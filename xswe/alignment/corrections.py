"""Corrections of an alignment: pairs that are right, lines without a counterpart, and pairs that are rejected."""

from __future__ import annotations

import json
import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xswe.alignment.beads import Constraints
from xswe.corpus.documents import languages_of, units_of
from xswe.errors import ConfigError, InputError, XsweError
from xswe.io.lines import Skipped, open_binary, read_lines
from xswe.io.sources import suffix_of

logger = logging.getLogger(__name__)

Correction = tuple[Sequence[int], Sequence[int]] | tuple[Sequence[int], Sequence[int], str]
Given = str | Path | Sequence[Correction]  # the file, or the list, that ``fixed=`` and ``uncorrected=`` name
Run = tuple[int, ...]  # lines of one side, from 0
SUFFIXES = (".ladder", ".jsonl", ".tmx")
_REJECTED = "rejected"  # the status of a pair that must not be found again
_SIDES = ("source", "target")
_RUNG = re.compile(r"\[([\d,\s]*)\]\s*:\s*\[([\d,\s]*)\](?::(.*))?")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|[-+]?inf", re.IGNORECASE)
_UNIT = re.compile(rb"<tu[\s>]")


class _Entry(NamedTuple):
    """What a file, or a list, says of some lines of both sides; with those of one side only, that they are in a gap."""

    lines: tuple[Run, Run]
    rejected: bool
    number: int  # of the line or the unit from 1, of the place in a list from 0


class _Unit(NamedTuple):
    """A unit of a translation memory, and where its writer said that it stands."""

    texts: tuple[str, str]
    hint: Run
    rejected: bool
    number: int


def find_constraints(
    fixed: Given | None,
    uncorrected: Given | None,
    source: Sequence[str],
    target: Sequence[str],
    languages: tuple[str, ...],
) -> Constraints:
    """Return what is known of two texts from the corrections of an earlier alignment.

    Args:
        fixed: a ladder, JSON lines or a TMX file, whose units are sought in the texts; or lines from 0. A pair is a known
            bead; or it is rejected, if that is its status. Lines of one side alone have no counterpart.
        uncorrected: the same before it was corrected: its pairs that ``fixed`` has no more are rejected.
        source: the source's lines.
        target: the target's lines.
        languages: of both, for TMX; empty to take a file's own two.

    Raises:
        ConfigError: a TMX file has more than two languages, and none are given; lines in a list are not there, not in a
            run, or crossed; or two entries of it contradict each other.
        InputError: the same of a file; nothing of the TMX file is found in the texts, or a line is no pair.
    """
    if fixed is None:
        if uncorrected is not None:
            raise ConfigError(f"uncorrected={uncorrected}: is what fixed= was made of; give fixed=")
        return Constraints()
    reader = _Reader(source, target, languages)
    entries, edited = reader.read(fixed, "fixed")
    beads = _in_order([entry for entry in entries if all(entry.lines) and not entry.rejected], fixed)
    gaps = [sorted({line for entry in entries if not entry.lines[1 - k] for line in entry.lines[k]}) for k in (0, 1)]
    _check_apart(entries, beads, fixed)
    rejected = {entry.lines for entry in entries if entry.rejected}
    if uncorrected is not None:
        found = reader.read(uncorrected, "uncorrected")[0]
        removed = [entry.lines for entry in found if all(entry.lines) and not entry.rejected]
        holders = _Holders(beads)
        rejected |= {pair for pair in removed if not holders.of(pair) and not _is_edited(pair, edited)}
    boxes = sorted((a[-1] + 1, a[0], b[0], b[-1] + 1) for a, b in rejected)
    return Constraints(
        tuple(((a[0], b[0]), (a[-1] + 1, b[-1] + 1)) for a, b in (entry.lines for entry in beads)),
        np.array(gaps[0], np.int64),
        np.array(gaps[1], np.int64),
        np.array([(begin, end, low, high) for end, begin, low, high in boxes], np.int64).reshape(-1, 4),
    )


def _in_order(beads: list[_Entry], given: Given) -> list[_Entry]:
    """Return known beads in order, each once; refuse those that cross."""
    out: list[_Entry] = []
    for entry in sorted(beads):
        before = out[-1] if out else None
        if before is None or all(a[-1] < b[0] for a, b in zip(before.lines, entry.lines, strict=True)):
            out.append(entry)
        elif before.lines != entry.lines:
            problem = f"{_rung(entry)} cannot be a bead beside {_rung(before)} ({_place(given, before)})"
            raise _refusal(given, "fixed", entry, problem, "beads neither cross nor share lines: take one of them out")
    return out


def _check_apart(entries: list[_Entry], beads: list[_Entry], given: Given) -> None:
    """Refuse gaps, and rejected pairs, that are in a known bead."""
    holders, cure = _Holders(beads), "take one of them out"
    for entry in entries:
        if all(entry.lines):
            if entry.rejected and (bead := holders.of(entry.lines)):
                problem = f"{_rung(entry)} is rejected, and in the bead {_rung(bead)} ({_place(given, bead)})"
                raise _refusal(given, "fixed", entry, problem, cure)
            continue
        for side, lines in enumerate(entry.lines):
            for line in lines:
                if bead := holders.of_line(side, line):
                    where = f"in the bead {_rung(bead)} ({_place(given, bead)})"
                    problem = f"line {line} of the {_SIDES[side]} is without a counterpart, and {where}"
                    raise _refusal(given, "fixed", entry, problem, cure)


class _Holders:
    """Which known bead holds a line."""

    def __init__(self, beads: Iterable[_Entry]) -> None:
        self._beads = [{line: entry for entry in beads for line in entry.lines[k]} for k in (0, 1)]

    def of_line(self, side: int, line: int) -> _Entry | None:
        """Return the bead that holds a line."""
        return self._beads[side].get(line)

    def of(self, pair: tuple[Run, Run]) -> _Entry | None:
        """Return the bead that holds all lines of a pair."""
        bead = self._beads[0].get(pair[0][0])
        return bead if bead and all(set(part) <= set(whole) for part, whole in zip(pair, bead.lines, strict=True)) else None


def _rung(entry: _Entry) -> str:
    return ":".join(f"[{','.join(map(str, lines))}]" for lines in entry.lines)


def _place(given: Given, entry: _Entry) -> str:
    """Say where an entry stands in its own file or list."""
    if not isinstance(given, (str, Path)):
        return f"fixed[{entry.number}]"
    return f"line {_line_of(given, entry.number)}"


def _refusal(given: Given, name: str, entry: _Entry | _Unit, problem: str, cure: str) -> XsweError:
    """Return the error that says where an entry stands that cannot be obeyed."""
    if not isinstance(given, (str, Path)):
        return ConfigError(f"{name}[{entry.number}]: {problem}; {cure}")
    return InputError(given, problem, cure, _line_of(given, entry.number))


def _line_of(path: str | Path, number: int) -> int:
    """Return the line of an entry, from 1: of a memory that in which its unit begins."""
    if suffix_of(path) != ".tmx":
        return number
    with open_binary(path) as stream:
        for line, raw in enumerate(stream, 1):
            number -= len(_UNIT.findall(raw.replace(b"\0", b"")))  # UTF-16 has a zero byte beside each of these letters
            if number <= 0:
                return line
    return 1


def _is_edited(pair: tuple[Run, Run], edited: list[tuple[Run, Run, Run]]) -> bool:
    """Return True if a unit has no place because its text was edited, and the pair is what it was before."""
    return any(pair[0] == a or pair[1] == b or pair[0] + pair[1] == hint for a, b, hint in edited)


class _Reader:
    """Reads corrections of two texts."""

    def __init__(self, source: Sequence[str], target: Sequence[str], languages: tuple[str, ...]) -> None:
        self._texts, self._languages = (source, target), languages

    def read(self, given: Given, name: str) -> tuple[list[_Entry], list[tuple[Run, Run, Run]]]:
        """Read a file or a list.

        Returns:
            What it says; and of units whose texts are not in the two texts the lines of the source's and of the target's
            text, where one of them is there, and the lines that their writer named.
        """
        if isinstance(given, (str, Path)) and suffix_of(given) == ".tmx":
            units = list(self._units(Path(given)))
            entries, edited = self._placed(units, given)
        else:
            entries, edited = list(self._listed(given, name)), []
        for entry in entries:
            self._check(entry, given, name)
        return entries, edited

    def _check(self, entry: _Entry, given: Given, name: str) -> None:
        """Refuse lines that are not there, or of a pair those that do not follow each other."""
        for side, (lines, texts) in enumerate(zip(entry.lines, self._texts, strict=True)):
            ordered = not all(entry.lines) or list(lines) == list(range(lines[0], lines[-1] + 1))
            if not ordered or (lines and not 0 <= min(lines) <= max(lines) < len(texts)):
                what = "be a bead" if all(entry.lines) else "be in a gap"
                problem = f"lines {list(lines)} of the {_SIDES[side]}, which has {len(texts)}, cannot {what} here"
                raise _refusal(given, name, entry, problem, "a bead's lines follow each other, from 0")
        if entry.rejected and not all(entry.lines):
            problem, cure = f"{_rung(entry)} is a gap, and rejected", "give the pair that is right, or leave it out"
            raise _refusal(given, name, entry, problem, cure)

    def _listed(self, given: Given, name: str) -> Iterator[_Entry]:
        """Read a ladder, JSON lines, or a list."""
        if isinstance(given, (str, Path)):
            parse = _object if suffix_of(given) == ".jsonl" else _ladder
            found = ((number, parse(given, number, text)) for number, text in read_lines(given) if (text or "").strip())
        else:
            found = ((place, _pair(name, place, one)) for place, one in enumerate(given))
        for number, (source, target, status) in found:
            entry = _Entry((source, target), False, number)
            yield entry._replace(rejected=_is_rejected(given, name, entry, status))

    def _units(self, path: Path) -> Iterator[_Unit]:
        """Read the units of a translation memory that have both languages; one of them may be empty."""
        languages = self._languages or languages_of(path)
        found = units_of(path, (languages[0], languages[1]), on_error="raise", skipped=Skipped())
        for number, (element, pair) in enumerate(found, 1):
            if pair is None:
                continue
            properties = {one.get("type"): (one.text or "").strip() for one in element.iterfind("prop")}
            numbers = (properties.get("x-lines") or "").split()
            hint = tuple(int(one) - 1 for one in numbers) if all(map(str.isdecimal, numbers)) else ()
            unit = _Unit(pair, hint, False, number)
            yield unit._replace(rejected=_is_rejected(path, "", unit, properties.get("x-status") or ""))

    def _placed(self, units: list[_Unit], given: str | Path) -> tuple[list[_Entry], list[tuple[Run, Run, Run]]]:
        """Find units in the two texts: where their writer says, and else in the order of the file, between these."""
        sides = [_Places(texts) for texts in self._texts]
        places = [_by_hint(sides, unit) for unit in units]
        edited: list[tuple[Run, Run, Run]] = []
        lost = 0
        before = [0, 0]
        after = [_first_of_next(places, k, len(self._texts[k])) for k in (0, 1)]
        for row, unit in enumerate(units):
            if places[row] is None:
                bounds = [(0 if unit.rejected else before[k], after[k][row]) for k in (0, 1)]
                found = [side.find(text, *bound) for side, text, bound in zip(sides, unit.texts, bounds, strict=True)]
                if any(run is None for run in found):
                    lost += 1
                    edited.append((found[0] or (), found[1] or (), unit.hint))
                    continue
                places[row] = (found[0] or (), found[1] or ())
            if not unit.rejected:
                before = [run[-1] + 1 if run else start for run, start in zip(places[row] or (), before, strict=True)]
        entries = [
            _Entry(place, unit.rejected, unit.number)
            for unit, place in zip(units, places, strict=True)
            if place is not None and any(place)
        ]
        if not entries:
            raise InputError(
                given, "none of its units is in the two texts", "give the memory that was made from these files"
            )
        if lost:
            logger.warning("%s: %d units are not in the texts as whole lines, and fix nothing", given, lost)
        return entries, edited


def _ladder(path: str | Path, number: int, text: str | None) -> tuple[Run, Run, str]:
    """Read a rung: ``[0]:[0,1]``, and behind another colon a score or a status."""
    found = _RUNG.fullmatch((text or "").strip())
    if found is None:
        cure = "write [0]:[0,1], [0]:[0,1]:score, [0]:[] or [0]:[0,1]:rejected"
        raise InputError(path, f"{(text or '')[:60]!r} is no rung", cure, number)
    source, target = (tuple(int(line) for line in side.split(",") if line.strip()) for side in found.groups()[:2])
    return source, target, found[3] or ""


def _object(path: str | Path, number: int, text: str | None) -> tuple[Run, Run, str]:
    """Read an object with the lines of both sides, and perhaps a status."""
    try:
        value = json.loads(text or "")
        source, target = ([int(line) for line in value[f"{side}_lines"]] for side in _SIDES)
        return tuple(source), tuple(target), str(value.get("status") or "")
    except (ValueError, TypeError, KeyError, AttributeError):
        cure = 'write {"source_lines": [0], "target_lines": [0, 1]}, and perhaps "status": "rejected"'
        raise InputError(path, f"{(text or '')[:60]!r} is no pair", cure, number) from None


def _pair(name: str, place: int, given: Correction) -> tuple[Run, Run, str]:
    """Read an entry of a list."""
    try:
        source, target, *status = given
        return tuple(map(int, source)), tuple(map(int, target)), str(*status)
    except (ValueError, TypeError):
        raise ConfigError(f"{name}[{place}]: {given!r} is no pair; write ((0,), (0, 1)), lines from 0") from None


def _is_rejected(given: Given, name: str, entry: _Entry | _Unit, status: str) -> bool:
    """Return True if a pair is rejected; what stands in the place of the status may be a score."""
    status = status.strip()
    if status and status != _REJECTED and not _NUMBER.fullmatch(status):
        raise _refusal(given, name, entry, f"there is no status {status[:60]!r}", f"write {_REJECTED}, or nothing")
    return status == _REJECTED


def _by_hint(sides: list[_Places], unit: _Unit) -> tuple[Run, Run] | None:
    """Return the lines of a unit whose texts begin where its writer says, None if they do not.

    The lines of both sides were named one after another, so that those of the target begin somewhere behind the first; with
    an empty text, those that remain may begin with any.
    """
    starts = unit.hint[:1], unit.hint[1:]
    if not all(unit.texts):
        starts = unit.hint, unit.hint
    found: list[Run] = []
    for side, text, lines in zip(sides, unit.texts, starts, strict=True):
        runs = (side.at(line, text) for line in lines)
        run = next((run for run in runs if run), None) if text.strip() else ()
        if run is None:
            return None
        found.append(run)
    return (found[0], found[1]) if any(found) else None


def _first_of_next(places: list[tuple[Run, Run] | None], side: int, count: int) -> list[int]:
    """Return for each unit the first line of the next one that has a place, ``count`` behind the last."""
    out = []
    for place in reversed(places):
        out.append(count)
        if place and place[side]:
            count = place[side][0]
    return out[::-1]


class _Places:
    """Where runs of lines stand in a text without blanks."""

    def __init__(self, lines: Sequence[str]) -> None:
        bare = ["".join(line.split()) for line in lines]
        self._text = "".join(bare)
        self._ends = [0, *accumulate(map(len, bare))]

    def at(self, line: int, text: str) -> Run | None:
        """Return the lines from this one on that are together a text; None if they are not."""
        wanted = "".join(text.split())
        if not 0 <= line < len(self._ends) - 1 or not self._text.startswith(wanted, self._ends[line]):
            return None
        end = self._ends[line] + len(wanted)
        last = bisect_left(self._ends, end, line)
        return tuple(range(line, last)) if self._ends[last] == end else None

    def find(self, text: str, first: int, last: int) -> Run | None:
        """Return the lines between two that are together a text, ``()`` for an empty text; None if there are none."""
        wanted = "".join(text.split())
        if not wanted:
            return ()
        if first >= last:
            return None
        place = self._text.find(wanted, self._ends[first], self._ends[last])
        while place >= 0:
            start, end = bisect_right(self._ends, place) - 1, place + len(wanted)  # without empty lines before
            stop = bisect_left(self._ends, end)
            if self._ends[start] == place and self._ends[stop] == end:
                return tuple(range(start, stop))
            place = self._text.find(wanted, place + 1, self._ends[last])
        return None
