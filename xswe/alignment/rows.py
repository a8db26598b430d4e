"""The rows of a corrected file of beads: a spreadsheet, a table with or without a header, or a memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from xswe.bitext.convert import read_units
from xswe.bitext.formats import BY_SUFFIX, FORMATS, format_by_name
from xswe.bitext.source import Source
from xswe.bitext.tables import csv_rows, csv_separator, find_columns, table_texts
from xswe.errors import InputError
from xswe.io.lines import Skipped, open_binary, read_lines
from xswe.io.sources import suffix_of

Run = tuple[int, ...]  # lines of one side, from 0
SUFFIXES = tuple(sorted({*BY_SUFFIX} - {".jsonl", ".ndjson", ".txt"}))
STANDS = frozenset(("", "fixed", "moved", "ok", "right"))  # statuses of entries to keep
REJECTED = frozenset(("rejected", "wrong"))  # statuses of pairs that must not be found again
OPEN = "open"  # status of lines to align again
_NUMBER = re.compile(r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[-+]?\d+)?|nan|[-+]?inf", re.IGNORECASE)
_UNIT = re.compile(rb"<tu[\s>]")
_NAMES = {
    "source": "source",
    "target": "target",
    "status": "status",
    "notes": "notes",
    "note": "notes",
    "source_lines": "source_lines",
    "target_lines": "target_lines",
    "source_id": "source_lines",
    "target_id": "target_lines",
}


class EditedRow(NamedTuple):
    """A row, or a unit of a memory, and the line numbers in it.

    Attributes:
        texts: of source and target, either of which may be empty.
        lines: of both sides; empty if the file does not say.
        either: lines of an unknown side, as in memories of mined pairs and of earlier versions.
        status: a person's verdict.
        notes: a person's notes.
        number: of the row, line or unit, from 1.
    """

    texts: tuple[str, str]
    lines: tuple[Run, Run]
    either: Run
    status: str
    notes: str
    number: int


class EditedFile(NamedTuple):
    """The rows of a file, and whether the file originally held every line of both texts."""

    rows: list[EditedRow]
    whole: bool


def read_rows(path: Path, languages: tuple[str, ...]) -> EditedFile:
    """Read the rows of a corrected table or memory, by its suffix; a memory without ``languages`` has its own two.

    InputError: the file is damaged, or the columns of the texts are unknown. ConfigError: a memory has more than two
    languages, and none are given.
    """
    kind = format_by_name(path)
    if FORMATS[kind].family == "memory":
        return EditedFile(list(_units(path, languages)), False)
    return _table(path, _separated(path) if kind == "tsv" else table_texts(path, kind), languages)


def line_of(path: str | Path, number: int) -> int:
    """Return the line number of a row, from 1; of a memory, the line where its unit begins."""
    if suffix_of(path) != ".tmx":
        return number
    with open_binary(path) as stream:
        for line, raw in enumerate(stream, 1):
            number -= len(_UNIT.findall(raw.replace(b"\0", b"")))  # UTF-16 has a zero byte beside each ASCII letter
            if number <= 0:
                return line
    return 1


def is_score(status: str) -> bool:
    """Return True if a status is a number, that is, a score."""
    return _NUMBER.fullmatch(status) is not None


def _units(path: Path, languages: tuple[str, ...]) -> Iterator[EditedRow]:
    """Read the units of a translation memory that have both languages; one text may be empty."""
    for number, unit in enumerate(read_units(Source((str(path),), languages=languages), Skipped()), 1):
        if unit is None:
            continue
        sides = [_numbers(side) for side in unit.lines.split("|")]
        lines, either = ((sides[0], sides[1]), ()) if len(sides) == 2 else (((), ()), _numbers(unit.lines))
        notes = unit.notes.replace("\n", " ")
        yield EditedRow((unit.source, unit.target), lines, either, unit.status.lower(), notes, number)


def _numbers(text: str) -> Run:
    """Read line numbers that count from 1; return none if the text is anything else."""
    found = text.replace(",", " ").split()
    return tuple(int(one) - 1 for one in found) if all(map(str.isdecimal, found)) else ()


def _separated(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a tab-separated table; a spreadsheet may have changed the separator."""
    first = next((text for _, text in read_lines(path)), "") or ""
    separator = csv_separator(first) if "\t" not in first and set(",;") & set(first) else "\t"
    if separator != "\t" or {"source", "target"} <= set(_header(first.split("\t"))):
        yield from ((number, [field.strip() for field in row]) for number, row in csv_rows(path, separator))
        return
    for number, line in read_lines(path):  # as xswe writes it: quotes are part of the text
        yield number, [_unquoted(field) for field in (line or "").split("\t")]


def _unquoted(field: str) -> str:
    """Undo the quoting of a field by a spreadsheet."""
    inner = field[1:-1]
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return (inner.replace('""', '"') if quoted else field).strip()


def _header(row: Sequence[str]) -> list[str]:
    """Return the canonical names of the fields of a header, empty for unknown ones."""
    return [_NAMES.get(name.strip().lower().replace(" ", "_"), "") for name in row]


def _table(path: Path, rows: Iterable[tuple[int, list[str]]], languages: tuple[str, ...]) -> EditedFile:
    """Return the rows of a table with a header, or without one: two texts, optionally with a score before or after them."""
    found = [(number, row) for number, row in rows if any(row)]
    names = _header(found[0][1]) if found else []
    if found and not {"source", "target"} <= set(names) and (places := find_columns(found[0][1], (0, 1), languages)):
        for place, side in zip(places[:2], ("source", "target"), strict=True):
            names[place] = side
    if {"source", "target"} <= set(names):
        whole = "source_lines" in [name.strip().lower() for name in found[0][1]] and "target_lines" in names
        columns = {name: names.index(name) for name in dict.fromkeys(names) if name}
        return EditedFile([_of_fields(number, row, columns) for number, row in found[1:]], whole)
    if suffix_of(path) != ".tsv":
        shown = ", ".join(filter(None, found[0][1])) if found else "none"
        raise InputError(path, f"its columns are {shown}", "name them source and target, as align writes them", 1)
    sample = [row for _, row in found[:1000]]
    place = 1 if all(is_score(row[0]) for row in sample) and all(len(row) > 2 for row in sample) else 0
    if short := next((number for number, row in found if len(row) < place + 2), 0):
        raise InputError(path, "no two texts with a tab between them", "write score<TAB>source<TAB>target", short)
    return EditedFile([_of_fields(n, row, {"source": place, "target": place + 1}) for n, row in found], False)


def _of_fields(number: int, row: Sequence[str], columns: dict[str, int]) -> EditedRow:
    fields = {name: row[place] if place < len(row) else "" for name, place in columns.items()}
    lines = _numbers(fields.get("source_lines", "")), _numbers(fields.get("target_lines", ""))
    texts = fields["source"].replace("\r\n", "\n"), fields["target"].replace("\r\n", "\n")
    return EditedRow(texts, lines, (), fields.get("status", "").lower(), fields.get("notes", ""), number)
