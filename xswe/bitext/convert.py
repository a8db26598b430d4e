"""One format of bitext into any other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from xswe.bitext.catalogues import catalogue_locales
from xswe.bitext.formats import FORMATS
from xswe.bitext.memories import (
    Unit,
    locales_of,
    parsed_unit,
    segments_of,
    unit_notes,
)
from xswe.bitext.output import MEMORIES, TABLES, one_line, output_format
from xswe.bitext.records import Record, RecordFile
from xswe.bitext.tables import csv_fields
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.lines import OnError, Skipped
from xswe.io.results import write_table, write_text
from xswe.text.languages import base_language

_BESIDE = ("id", "notes", "score", "status", "lines")  # columns of a table beside the two texts
_SCORE = re.compile(r"score (-?[\d.]+)(?:, (\w+))?")


@dataclass(frozen=True)
class Rewritten:
    """How a bitext was written in another format.

    Attributes:
        pairs: how many.
        languages: of source and target, as the files name them, with their locales.
        left_out: what the new format has no place for, or was damaged, counted.
        output: the file.
    """

    pairs: int
    languages: tuple[str, str]
    output: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lost = ", ".join(f"{count:,} {what}" for what, count in self.left_out.items())
        return f"{self.pairs:,} pairs ({'-'.join(self.languages)}): {self.output}" + (f"; left out: {lost}" if lost else "")


def rewrite_bitext(
    paths: Sequence[str | Path],
    output: str | Path,
    languages: Sequence[str],
    *,
    columns: Sequence[int | str] = (0, 1),
    on_error: OnError = "raise",
    date: str | None = None,
) -> Rewritten:
    """Write the pairs of files in the format that another name says: texts, locales, ids, notes, scores and statuses.

    Args:
        paths: files of any format of bitext, one after the other.
        output: file to write.
        languages: codes of source and target; the locales of the files' own codes (``en-GB``) stay.
        columns: of source and target in separated text, from 0, or their names.
        on_error: what a damaged record does: ``raise``, or ``skip`` (it is counted).
        date: when the units of a memory were made: ``now``, or in ISO 8601.

    Raises:
        ConfigError: pairs are not written so.
        InputError: a file is missing or damaged.
    """
    check_output(output, list(paths))
    kind = output_format("auto", str(output), tuple(languages))
    if kind in ("bucc", "latex", "markdown"):
        raise ConfigError(f"output={output}: pairs that are read again are not written so; use .tsv, .csv, .tmx, …")
    pair = (languages[0], languages[1])
    files = [RecordFile((str(path),), tuple(columns), pair, on_error) for path in paths]
    own = [locales_of(file.paths[0], pair) for file in files if FORMATS[file.kind].names_languages]
    own += [catalogue_locales(file.paths[0], pair) for file in files if file.kind == "catalogue"]
    own += [_header_locales(file, pair) for file in files if FORMATS[file.kind].family == "table"]
    named = next(iter(own), pair)
    left, counted = Counter[str](), Counter[str]()

    def units() -> Iterator[Unit]:
        for unit in chain.from_iterable(map(read_units, files)):
            if unit is None:
                left["damaged or of other languages"] += 1
                continue
            counted["pairs"] += 1
            yield unit

    _write(str(output), kind, units(), named, date, left)
    return Rewritten(counted["pairs"], named, str(output), {what: n for what, n in left.items() if n})


def _write(
    output: str, kind: str, units: Iterator[Unit], languages: tuple[str, str], date: str | None, left: Counter[str]
) -> None:
    if kind in MEMORIES:
        write_text(output, MEMORIES[kind](units, languages, date))
    elif kind == "jsonl":
        write_text(output, (json.dumps(_as_object(unit, languages), ensure_ascii=False) + "\n" for unit in units))
    elif kind in TABLES:
        rows = ((unit.source, unit.target, *_beside(unit)) for unit in units)
        write_table(output, TABLES[kind], [*languages, *_BESIDE], rows, {"score": "float32"})
    else:
        write_text(output, _lines(units, left))


def _lines(units: Iterable[Unit], left: Counter[str]) -> Iterator[str]:
    """Yield tab-separated pairs, and count what has no place in them."""
    for unit in units:
        for what, value in zip(("ids", "notes", "scores", "statuses"), _beside(unit), strict=False):
            left[what] += value not in ("", None)
        sides = [one_line(unit.source), one_line(unit.target)]
        left["line breaks and tabs within texts"] += sides != [unit.source, unit.target]
        yield "\t".join(sides) + "\n"


def _beside(unit: Unit) -> tuple[Any, ...]:
    return unit.id, unit.notes, unit.score, unit.status, unit.lines


def _as_object(unit: Unit, languages: tuple[str, str]) -> dict[str, Any]:
    beside = {name: value for name, value in zip(_BESIDE, _beside(unit), strict=True) if value not in ("", None)}
    return {languages[0]: unit.source, languages[1]: unit.target, **beside}


def _header_locales(file: RecordFile, languages: tuple[str, str]) -> tuple[str, str]:
    """Return the names of a table's columns that are codes of the languages with a locale."""
    first = next(iter(file.read()), None)
    names = list(_fields(file, first)) if first is not None else []
    found = [next((name for name in names if base_language(name) == code), code) for code in languages]
    return found[0], found[1]


def read_units(file: RecordFile) -> Iterator[Unit | None]:
    """Yield the units of a file, None for what is damaged or lacks a language."""
    if file.kind == "xliff":
        found = segments_of(file.paths[0], file.languages, on_error=file.on_error, skipped=Skipped())
        return (_unit(pair, *_noted(unit_notes(element))) for element, pair in found)
    return (None if record.texts is None else _of_record(file, record) for record in file.read())


def _of_record(file: RecordFile, record: Record) -> Unit:
    assert record.texts is not None
    if file.kind == "tmx":
        return _unit(record.texts, *parsed_unit(record.raw))
    if file.kind == "catalogue":
        lines = record.raw.decode().splitlines()
        context = next((line.removeprefix("msgctxt ")[1:-1] for line in lines if line.startswith("msgctxt ")), "")
        comments = [line[len(mark) :] for mark in ("#. ", "# ") for line in lines if line.startswith(mark)]
        return _unit(record.texts, *_noted((context, comments)))
    found = _fields(file, record)
    beside = {name.lower(): value for name, value in found.items() if isinstance(value, (str, int, float))}
    notes = str(beside.get("notes", beside.get("note", "")))
    return _unit(record.texts, str(beside.get("id", "")), notes, beside)


def _fields(file: RecordFile, record: Record) -> Mapping[str, Any]:
    """Return the columns of a record by their names; of lines there are none."""
    if file.kind == "csv":
        return csv_fields(file.frame()[0], record.raw)
    return json.loads(record.raw) if FORMATS[file.kind].family == "table" else {}


def _noted(found: tuple[str, list[str]]) -> tuple[str, str, dict[str, str]]:
    """Return an id, notes, and what a first note says that this library wrote: a score, and a status."""
    name, notes = found
    told = _SCORE.fullmatch(notes[0]) if notes else None
    if told is None:
        return name, "\n".join(notes), {}
    return name, "\n".join(notes[1:]), {"score": told[1], "status": told[2] or ""}


def _unit(pair: tuple[str, str], name: str = "", notes: str = "", beside: Mapping[str, Any] | None = None) -> Unit:
    beside = beside or {}
    try:
        score = float(beside.get("score", ""))
    except ValueError:
        score = None
    status, lines = (str(beside.get(key) or "") for key in ("status", "lines"))
    return Unit(score, pair[0], pair[1], lines, status, notes, name)
