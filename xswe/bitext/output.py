"""The output formats of pairs, by the suffix of a file name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from xswe.bitext.catalogues import write_catalogue
from xswe.bitext.memories import Unit, write_tmx, write_xliff, write_xliff2
from xswe.bitext.source import Source
from xswe.errors import ConfigError
from xswe.io.results import BINARY, SHOWN, check_suffix, write_table, write_text
from xswe.io.settings import check_choice, for_all
from xswe.io.sources import packing_of, suffix_of
from xswe.io.suffixes import SUFFIXES, TableFormat

Format = Literal["auto", "laser", "bucc", "catalogue", "tmx", "xliff", "xliff2", TableFormat]
# Suffixes of general tables by format name; pairs write LASER's format as .tsv, and no .json.
TABLES = {one.table: suffix for suffix, one in SUFFIXES.items() if one.table and suffix not in (".json", ".tsv")}
_SUFFIXES: dict[str, str] = {
    **{suffix: kind for kind, suffix in TABLES.items()},
    ".ndjson": "jsonl",
    ".po": "catalogue",
    ".tmx": "tmx",
    ".tsv": "laser",
    ".xlf": "xliff",
    ".xliff": "xliff",
}
WRITTEN = frozenset(_SUFFIXES)  # suffixes of files of pairs
USUAL_SUFFIXES = {"xliff2": ".xlf", **{kind: suffix for suffix, kind in reversed(_SUFFIXES.items())}}  # by format
_TO_BLANKS = str.maketrans(dict.fromkeys("\0\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))


class Row(NamedTuple):
    """A pair to write."""

    score: float
    source: str
    target: str
    source_id: str
    target_id: str
    rank: int


def output_format(wanted: str, output: str, languages: Sequence[str] = (), further: Iterable[str] = ()) -> Format:
    """Return the format: the wanted one, or for ``auto`` that of the file name (``laser`` if its suffix is unknown).

    ``further`` are suffixes of other formats that the caller writes.

    ConfigError: there is no such format, the name's suffix means another one or one that pairs are not written in, or the
    format needs languages, a file, or an unpacked file. DependencyError: the library that writes it is not installed.
    """
    check_choice("format", wanted, Format)
    suffix = suffix_of(output)
    if wanted == "auto" and suffix in SUFFIXES and suffix not in (*WRITTEN, ".txt"):
        named = ", ".join((*_SUFFIXES, *further))
        raise ConfigError(f"{output}: pairs are not written as {suffix}; use {named}, or say format=")
    kind: Format = _SUFFIXES.get(suffix, "laser") if wanted == "auto" else wanted  # type: ignore[assignment]
    if kind != (named := _SUFFIXES.get(suffix, kind)) and (kind, named) != ("xliff2", "xliff"):
        raise ConfigError(f"format={kind}: {output} is the name of {named}; leave format= out, or give another name")
    if (written := TABLES.get(kind)) in BINARY:
        if output == "-" or packing_of(output):
            raise ConfigError(f"format={kind} is not written packed or to standard output: give output=pairs{written}")
        check_suffix(f"pairs{written}")  # that its library is installed
    if kind in MEMORIES and kind != "catalogue" and len(languages) != 2:
        raise ConfigError(f"format={kind} names the languages of its texts: set languages, as in languages=[en,ja]")
    return kind


def format_of(file: Source) -> str:
    """Return the output format that keeps the records of a bitext unchanged."""
    return "laser" if file.kind in ("tsv", "moses") else file.kind


def one_line(text: str) -> str:
    """Replace characters that would end a field or a line by blanks."""
    return text if text.isprintable() else text.translate(_TO_BLANKS)  # translate() takes ten times as long


def _laser(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    return (f"{row.score:.6f}\t{one_line(row.source)}\t{one_line(row.target)}\n" for row in rows)


def _bucc(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    return (f"{row.source_id}\t{row.target_id}\n" for row in rows)


def _unit(row: Row) -> Unit:
    return Unit(row.score, row.source, row.target, f"{row.source_id} {row.target_id}")


_LINES: dict[str, Callable[[Iterator[Row], Sequence[str]], Iterator[str]]] = {"bucc": _bucc, "laser": _laser}
# Formats of units: functions that write units, given the languages and a date.
MEMORIES: dict[str, Callable[..., Iterator[str]]] = {
    "catalogue": write_catalogue,
    "tmx": write_tmx,
    "xliff": write_xliff,
    "xliff2": write_xliff2,
}
for_all(Format, {"auto": None, **_LINES, **MEMORIES, **TABLES})  # each format has one writer


def write_rows(path: str, kind: str, rows: Iterator[Row], languages: Sequence[str] = ()) -> None:
    """Write rows atomically in a format of :func:`output_format`."""
    if kind in _LINES:
        write_text(path, _LINES[kind](rows, languages))
    elif kind in MEMORIES:
        write_text(path, MEMORIES[kind](map(_unit, rows), languages))
    elif TABLES[kind] in SHOWN:
        cells = ((f"{row.score:.4f}", row.source, row.target) for row in rows)
        write_table(path, TABLES[kind], Row._fields[:3], cells)
    else:
        write_table(path, TABLES[kind], Row._fields, rows, {"score": "float32", "rank": "int32"})
