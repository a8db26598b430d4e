"""Conversion of bitext between formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from xswe.bitext.catalogues import catalogue_codes, entry_notes
from xswe.bitext.formats import BY_SUFFIX, FORMATS
from xswe.bitext.memories import Unit, named_codes, unit_notes, unit_properties
from xswe.bitext.output import MEMORIES, TABLES, one_line, output_format
from xswe.bitext.records import Record
from xswe.bitext.source import BYTE_ORDER_MARK, Source
from xswe.bitext.tables import column_names
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.results import write_table, write_text
from xswe.text.languages import base_language

_EXTRAS = ("id", "notes", "score", "status", "lines")  # of a table, after the two texts
_SCORE = re.compile(r"score (-?[\d.]+)(?:, (\w+))?")


@dataclass(frozen=True)
class Rewritten:
    """The result of writing a bitext in another format.

    Attributes:
        pairs: how many were written.
        languages: codes of source and target, with locales, as the files name them.
        left_out: counts of what was damaged or the new format cannot hold.
        output: the file.
    """

    pairs: int
    languages: tuple[str, str]
    output: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.pairs:,} pairs ({'-'.join(self.languages)}): {self.output}{left_out_of(self.left_out)}"


def rewrite_bitext(
    paths: Sequence[str | Path],
    output: str | Path,
    languages: Sequence[str],
    *,
    columns: Sequence[int | str] = (0, 1),
    on_error: OnError = "raise",
    date: str | None = None,
) -> Rewritten:
    """Write the pairs of files in the output's format, with texts, locales, ids, notes, scores and statuses.

    The locales in the files' own codes (``en-GB``) are kept; ``date`` becomes the creation date of a memory's units.
    ConfigError: the output's format is not one for pairs. InputError: a file is missing or damaged.
    """
    check_output(output, list(paths))
    kind = output_format("auto", str(output), tuple(languages))
    if kind != "laser" and kind not in MEMORIES and TABLES.get(kind) not in BY_SUFFIX:
        raise ConfigError(f"output={output}: pairs written so cannot be read again; use .tsv, .csv, .tmx, …")
    pair = (languages[0], languages[1])
    files = [Source((str(path),), tuple(columns), pair, on_error) for path in paths]
    named = next((_locales(file) for file in files if FORMATS[file.kind].family != "lines"), pair)
    left, counted = Skipped(), Counter[str]()

    def units() -> Iterator[Unit]:
        for unit in chain.from_iterable(read_units(file, left) for file in files):
            if unit is not None:
                counted["pairs"] += 1
                yield unit

    _write(str(output), kind, units(), named, date, left)
    return Rewritten(counted["pairs"], named, str(output), left.counts)


def _write(
    output: str, kind: str, units: Iterator[Unit], languages: tuple[str, str], date: str | None, left: Skipped
) -> None:
    if kind in MEMORIES:
        write_text(output, MEMORIES[kind](units, languages, date))
    elif kind == "jsonl":
        write_text(output, (json.dumps(_as_object(unit, languages), ensure_ascii=False) + "\n" for unit in units))
    elif kind in TABLES:
        rows = ((unit.source, unit.target, *_extras(unit)) for unit in units)
        write_table(output, TABLES[kind], [*languages, *_EXTRAS], rows, {"score": "float32"})
    else:
        write_text(output, _lines(units, left))


def _lines(units: Iterable[Unit], left: Skipped) -> Iterator[str]:
    """Yield tab-separated pairs, and count the properties that this format cannot hold."""
    for unit in units:
        for what, value in zip(("ids", "notes", "scores", "statuses"), _extras(unit), strict=False):
            left.add(what, value not in ("", None))
        sides = [one_line(unit.source), one_line(unit.target)]
        left.add("line breaks and tabs within texts", sides != [unit.source, unit.target])
        yield "\t".join(sides) + "\n"


def _extras(unit: Unit) -> tuple[Any, ...]:
    return unit.id, unit.notes, unit.score, unit.status, unit.lines


def _as_object(unit: Unit, languages: tuple[str, str]) -> dict[str, Any]:
    beside = {name: value for name, value in zip(_EXTRAS, _extras(unit), strict=True) if value not in ("", None)}
    return {languages[0]: unit.source, languages[1]: unit.target, **beside}


def _locales(source: Source) -> tuple[str, str]:
    """Return a file's own codes, with locales, of source and target."""
    path, kind = source.paths[0], source.kind
    read = named_codes if FORMATS[kind].names_languages else catalogue_codes if kind == "catalogue" else None
    codes = [code.replace("_", "-") for code in (read(path) if read else column_names(source))]
    a, b = (next((code for code in codes if base_language(code) == one), one) for one in source.languages)
    return a, b


def read_units(source: Source, left_out: Skipped) -> Iterator[Unit | None]:
    """Yield the units of a file; for one that is damaged or lacks a language, count it and yield None."""
    if FORMATS[source.kind].family == "lines":
        records = ((record.texts, _scored(source, record)) for record in source.read(left_out))
        return (None if texts is None else _unit(texts, beside=score) for texts, score in records)
    read_beside = _PROPERTY_READERS[source.kind]
    return (
        None if isinstance(pair, str) else _unit((pair[0], pair[1]), *read_beside(beside))
        for _, beside, pair in source.units(left_out)
    )


def _scored(source: Source, record: Record) -> dict[str, bytes]:
    """Return the score of a line, if the source names its column."""
    column = source.score
    return {"score": record.raw.removeprefix(BYTE_ORDER_MARK).split(b"\t")[column]} if isinstance(column, int) else {}


def _columns(found: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the id, the notes and all columns of a row, with lower-case names."""
    beside = {name.lower(): value for name, value in found.items() if isinstance(value, (str, int, float))}
    return str(beside.get("id", "")), str(beside.get("notes", beside.get("note", ""))), beside


def _note_properties(found: tuple[str, list[str]]) -> tuple[str, str, dict[str, str]]:
    """Return an id, notes, and the score and status in the first note, if this library wrote it."""
    name, notes = found
    first = _SCORE.fullmatch(notes[0]) if notes else None
    if first is None:
        return name, "\n".join(notes), {}
    return name, "\n".join(notes[1:]), {"score": first[1], "status": first[2] or ""}


def _unit(pair: tuple[str, str], name: str = "", notes: str = "", beside: Mapping[str, Any] | None = None) -> Unit:
    beside = beside or {}
    try:
        score = float(beside.get("score", ""))
    except ValueError:
        score = None
    status, lines = (str(beside.get(key) or "") for key in ("status", "lines"))
    return Unit(score, pair[0], pair[1], lines, status, notes, name)


# By format, from the reader's own object: the id and notes of a unit, and the other properties that this library wrote.
_PROPERTY_READERS: dict[str, Callable[[Any], tuple[str, str, Mapping[str, Any]]]] = {
    "catalogue": lambda entry: _note_properties(entry_notes(entry)),
    "csv": lambda row: _columns(dict(zip(*row, strict=False))),
    "jsonl": lambda line: _columns(json.loads(line[0])),
    "parquet": lambda row: _columns(row[2]),
    "tmx": unit_properties,
    "xliff": lambda segment: _note_properties(unit_notes(segment)),
    "xlsx": lambda row: _columns(dict(zip(*row, strict=False))),
}
