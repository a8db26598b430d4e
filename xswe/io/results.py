"""Results: print as a table, convert to a data frame, or write in the format of a file's suffix."""

from __future__ import annotations

import csv
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast, overload
from unicodedata import east_asian_width

from xswe.errors import ConfigError, DependencyError
from xswe.io.files import open_output, whole_file
from xswe.io.sources import packing_of, suffix_of
from xswe.io.suffixes import TABLES

E = TypeVar("E")  # of entries
_BLOCK_ROWS = 65_536
_NOTEBOOK_ROWS = 10
STATUSES = ("right", "wrong", "open")  # judgements of a row
_WIDTH_SAMPLE, _MAX_WIDTH = 200, 60  # rows that decide the width of a column; its maximum in characters
_MAX_SHEET_ROWS, _MAX_CELL = 1_048_575, 32_767  # rows of a sheet without its header, characters of a cell
_TO_BLANK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # control characters, and what ends a line for some readers
# Marks of Markdown and of its common extensions. Python-Markdown knows no backslash before some: an entity does there, too.
_MARKS = re.compile(r"[\\`*{\[]|(?<![^\W_])_|[<~$^]|&(?=#?\w+;)|=(?==)|(?<==)=")
# A bracket or asterisk after the end of a row would be its argument; fonts have other signs in the place of some.
_TEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "`": r"\textasciigrave{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\symbol{34}", "[": "{[}", "*": "{*}"}
)


def cell(value: Any) -> str:
    """Format one cell: fractions of one as percentages with one decimal, None as a dash, texts on one line."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}" if isinstance(value, float) else str(value)
    return text if text.isprintable() else _encodable(_TO_BLANK.sub(" ", text))


def _encodable(value: Any) -> Any:
    """Escape lone surrogates, which UTF-8 cannot encode, like JSON does."""
    if isinstance(value, (tuple, list)):
        return [_encodable(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _in_markdown(text: str) -> str:
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};" if mark[0] in "<~$^&=" else f"\\{mark[0]}", text)


def _in_latex(text: str) -> str:
    return re.sub(r"([-',])(?=\1)", r"\1{}", text.translate(_TEX))  # two would be a dash or a quote


def _cells_and_alignment(
    header: Sequence[str], rows: Iterable[Sequence[Any]], escape: Callable[[str], str] = str
) -> tuple[list[list[str]], list[bool]]:
    """Return the header and the rows as escaped text, and which columns are right-aligned: all of numbers but the first."""
    cells = [list(map(cell, row)) for row in chain([header], rows)]
    columns = [[text for text in column if re.search(r"\w", text)] for column in zip(*cells[1:], strict=True)]
    is_number = [all(re.match(r"\W*\d", text) for text in column) for column in columns]
    return [list(map(escape, row)) for row in cells], [False, *(is_number or [False] * len(header))[1:]]


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows under a header; columns of numbers, except the first, are right-aligned."""
    cells, right = _cells_and_alignment(header, rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        """Return a row with its cells padded to the widths of the columns."""
        parts = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        return "  ".join(parts).rstrip()

    rims = [*widths[:-1], widths[-1] if right[-1] else len(cells[0][-1])]
    return "\n".join([line(cells[0]), line(["-" * width for width in rims]), *map(line, cells[1:])])


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]], escape: Callable[[str], str] = str) -> str:
    """Format rows as a Markdown table; columns of numbers, except the first, are right-aligned.

    Cells are Markdown, unless ``escape`` makes it of their texts.
    """
    (names, *cells), right = _cells_and_alignment(header, rows, lambda text: escape(text).replace("|", "\\|"))
    lines = [names, ["---:" if to_right else "---" for to_right in right], *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def latex(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as a LaTeX table in the style of the booktabs package; cells are texts."""
    cells, right = _cells_and_alignment(header, rows, _in_latex)
    first, *rest = (" & ".join(line) + r" \\" for line in cells)
    start = rf"\begin{{tabular}}{{{''.join('r' if to_right else 'l' for to_right in right)}}}"
    return "\n".join([start, r"\toprule", first, r"\midrule", *rest, r"\bottomrule", r"\end{tabular}"])


class Result(Sequence[E]):
    """Base class of results, each a sequence of entries.

    A subclass defines :meth:`columns` and :meth:`records`; the rest follows from them. Its class argument ``row``, a named
    tuple or names, gives the columns; ``entries`` names the field with the entries, which are the records, too, unless
    overridden.
    """

    _field: ClassVar[str] = ""
    _columns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, entries: str = "", row: Any = ()) -> None:
        cls._field, cls._columns = entries or cls._field, getattr(row, "_fields", row) or cls._columns
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign] # not that of a dataclass, which shows all fields

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} entries)"

    def __len__(self) -> int:
        return len(getattr(self, self._field)) if self._field else sum(1 for _ in self.records())

    def __iter__(self) -> Iterator[E]:
        return iter(cast(Iterable[E], getattr(self, self._field) if self._field else self.records()))

    @overload
    def __getitem__(self, place: int) -> E: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[E, ...]: ...
    def __getitem__(self, place: int | slice) -> E | tuple[E, ...]:
        if isinstance(place, slice):
            return tuple(map(self._at, range(len(self))[place]))
        return self._at(range(len(self))[place])

    def _at(self, place: int) -> E:
        """Return an entry by its non-negative index."""
        return cast(E, getattr(self, self._field)[place]) if self._field else next(islice(iter(self), place, None))

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self._columns

    def records(self) -> Iterable[Sequence[Any]]:
        """Return the rows, with one value per column."""
        return cast(Iterable[Sequence[Any]], getattr(self, self._field) if self._field else iter(self))

    def layout(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return header and rows of the table for people: scores with four decimals, texts on one line."""
        return self.columns(), ([_shown(value) for value in row] for row in self.records())

    def as_json(self) -> Any:
        """Return plain JSON values: one object per row, null for non-finite values."""
        return [_object(self.columns(), row) for row in self.records()]

    def _repr_html_(self) -> str:
        """Return the first rows as a table for notebooks."""
        header, rows = self.layout()
        lines = ["".join(f"<th>{html.escape(name)}</th>" for name in header)]
        lines += ["".join(f"<td>{html.escape(cell(value))}</td>" for value in row) for row in islice(rows, _NOTEBOOK_ROWS)]
        return f"<p>{html.escape(repr(self))}</p><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    def to_pandas(self) -> Any:
        """Return a pandas data frame; pandas must be installed."""
        return _library("pandas").DataFrame(list(map(tuple, self.records())), columns=list(self.columns()))

    def to_polars(self) -> Any:
        """Return a polars data frame; polars must be installed."""
        columns = self.columns()
        return _library("polars").DataFrame(list(map(tuple, self.records())), schema=list(columns), orient="row")

    def types(self) -> dict[str, str]:
        """Return the pyarrow types, such as ``float32``, of columns whose type is not Python's own."""
        return {}

    def write(self, path: str | Path) -> None:
        """Write the result atomically.

        Args:
            path: file, whose suffix decides the format; text may be packed as ``.gz`` or another of
                :data:`xswe.io.sources.PACKED`; ``-`` for ``.tsv`` on standard output.

        Raises:
            ConfigError: no format has this suffix.
            DependencyError: the library that writes the format is not installed.
        """
        suffix = check_suffix(path)
        if suffix == ".json":
            write_text(path, [json.dumps(self.as_json(), ensure_ascii=False, indent=2) + "\n"])
        elif suffix in SHOWN:
            write_table(path, suffix, *self.layout())
        else:
            write_table(path, suffix, self.columns(), self.records(), self.types())


@dataclass(frozen=True)
class Rows(Result[Sequence[Any]], entries="rows"):
    """A plain result: the ``names`` of the columns, and rows with one value per column."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self.names


def check_suffix(path: str | Path) -> str:
    """Return the suffix of an output file, without that of its compression.

    Raises ConfigError for a format that is not written, DependencyError if the library that writes it is not installed.
    """
    suffix = ".tsv" if str(path) == "-" else suffix_of(path)
    if suffix in BINARY:
        module, extra, _ = BINARY[suffix]
        if packing_of(path):
            raise ConfigError(f"{path}: {suffix} is not written packed; leave {packing_of(path)} out")
        if find_spec(module) is None:
            raise DependencyError(module, extra, f"writing {suffix}")
    elif suffix not in TABLES:
        raise ConfigError(f"{path}: the suffix says the format: use {', '.join(TABLES)}")
    return suffix


def _flat(value: Any) -> Any:
    """Return a value for a cell, joining several texts or numbers as ``a | b``."""
    return " | ".join(map(str, value)) if isinstance(value, (tuple, list)) else value


def _shown(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float) else _flat(value)


def _library(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise DependencyError(name, "frames", f"to_{name}()") from None


def write_text(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines of text atomically, block by block; compressed by the suffix, ``-`` to standard output."""
    rest = iter(lines)
    with open_output(path) as stream:
        while block := "".join(islice(rest, _BLOCK_ROWS)):
            stream.write(block.encode("utf-8", "backslashreplace"))  # escapes a lone surrogate like JSON


def write_table(
    path: str | Path,
    suffix: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    types: Mapping[str, str] | None = None,
    bom: bool = False,
) -> None:
    """Write rows under a header atomically, block by block; ``-`` is standard output.

    ``suffix`` is the format, as returned by :func:`check_suffix`, except ``.json``; ``types`` are the pyarrow types of
    columns whose type is not Python's own; ``bom`` starts a text with a byte-order mark, which Excel needs to recognise
    UTF-8.
    """
    if suffix in _TEXT_WRITERS:
        write_text(path, chain(["\ufeff"] if bom else [], _TEXT_WRITERS[suffix](names, rows)))
        return
    with whole_file(path) as temporary:
        BINARY[suffix][2](temporary, names, rows, types or {})


def _write_sheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], _types: Mapping[str, str]) -> None:
    """Write an XLSX sheet for people to read; the same rows give the same bytes.

    The header is frozen and filters; columns are as wide as their first texts, and wrap long ones; scores are coloured from
    red (0) to green (1), and empty sides of a pair grey.
    """
    import xlsxwriter

    rest = iter(rows)
    first = list(islice(rest, _BLOCK_ROWS))
    with xlsxwriter.Workbook(str(path), {"constant_memory": True}) as book:
        book.set_properties({"created": datetime(2000, 1, 1)})
        sheet = book.add_worksheet("xswe")
        sheet.freeze_panes(1, 0)
        bold = book.add_format({"bold": True, "bottom": 1})
        _set_columns(book, sheet, names, first)
        number = 0
        for number, row in enumerate(chain([names], first, rest)):
            if number > _MAX_SHEET_ROWS:
                raise ConfigError(f"{path}: over {_MAX_SHEET_ROWS:,} rows do not fit a sheet; write .tsv, .csv or .parquet")
            for column, value in enumerate(map(_flat, row)):
                if isinstance(value, str) and value:
                    sheet.write_string(number, column, _encodable(value)[:_MAX_CELL], *([] if number else [bold]))
                elif isinstance(value, (int, float)) and math.isfinite(value):
                    sheet.write_number(number, column, value)
        sheet.autofilter(0, 0, max(1, number), len(names) - 1)
        _set_colours(book, sheet, names, max(1, number))


def _set_columns(book: Any, sheet: Any, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Fit columns to the texts of their first rows; Chinese and Japanese characters count as two."""
    for column, name in enumerate(names):
        found = [_flat(row[column]) for row in rows[:_WIDTH_SAMPLE]]
        sizes = [sum(1 + (east_asian_width(c) in "WF") for c in one) if isinstance(one, str) else 9 for one in found]
        look: dict[str, Any] = {"valign": "top", "text_wrap": max(sizes, default=0) > _MAX_WIDTH}
        if any(isinstance(one, float) for one in found):
            look["num_format"] = "0.000"
        sheet.set_column(column, column, min(_MAX_WIDTH, max(len(name) + 4, *sizes, 0)), book.add_format(look))


def _set_colours(book: Any, sheet: Any, names: Sequence[str], last: int) -> None:
    """Colour scores and empty sides, and offer the statuses to choose from."""
    if "score" in names:
        column = names.index("score")
        scale = {"type": "3_color_scale", "min_type": "num", "mid_type": "num", "max_type": "num", "mid_value": 0.5}
        colours = {"min_value": 0, "max_value": 1, "min_color": "#F4B6AC", "mid_color": "#FBE9A9", "max_color": "#B7DDBF"}
        sheet.conditional_format(1, column, last, column, scale | colours)
    for column in (names.index(side) for side in ("source", "target") if {"source", "target"} <= set(names)):
        grey = book.add_format({"bg_color": "#D9D9D9"})
        sheet.conditional_format(1, column, last, column, {"type": "blanks", "format": grey})
    if "status" in names:
        column = names.index("status")
        sheet.data_validation(
            1, column, last, column, {"validate": "list", "source": list(STATUSES), "error_type": "warning"}
        )


def _write_parquet(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], types: Mapping[str, str]) -> None:
    """Write a Parquet table with the column types of the first block; columns without values there are text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def arrays(block: Sequence[Sequence[Any]], kinds: Sequence[Any]) -> list[Any]:
        columns = zip(*block, strict=True) if block else [()] * len(names)
        return [array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]

    def array(values: list[Any], kind: Any) -> Any:
        try:
            return pa.array(values, kind)
        except UnicodeEncodeError:
            return pa.array(_encodable(values), kind)

    rest = iter(rows)
    block = list(islice(rest, _BLOCK_ROWS))
    declared = [pa.type_for_alias(types[name]) if name in types else None for name in names]
    found = [column.type if column.type != pa.null() else pa.string() for column in arrays(block, declared)]
    schema = pa.schema(list(zip(names, found, strict=True)))
    with pq.ParquetWriter(path, schema) as writer:
        while block:
            writer.write_table(pa.Table.from_arrays(arrays(block, found), schema=schema))
            block = list(islice(rest, _BLOCK_ROWS))


def _separated(delimiter: str) -> Writer:
    def write(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
        """Yield the header and the rows as lines that end in a line feed alone."""
        stream = StringIO()
        writer = csv.writer(stream, delimiter=delimiter)  # with \r\n, as it quotes fields that hold either character
        for row in chain([names], rows):
            writer.writerow(map(_flat, row))
            yield stream.getvalue()[:-2] + "\n"
            stream.seek(0)
            stream.truncate()

    return write


def _objects(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    return (json.dumps(_object(names, row), ensure_ascii=False) + "\n" for row in rows)


def _object(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """Return a row as a JSON object, which has neither NaN nor infinity."""
    values = (None if isinstance(value, float) and not math.isfinite(value) else value for value in row)
    return dict(zip(names, values, strict=True))


Writer = Callable[[Sequence[str], Iterable[Sequence[Any]]], Iterator[str]]
# Tables for people: rounded, without columns that only programs need, never read back.
SHOWN: dict[str, Writer] = {
    ".md": lambda names, rows: iter([markdown(names, rows, _in_markdown) + "\n"]),
    ".tex": lambda names, rows: iter([latex(names, rows) + "\n"]),
}
_TEXT_WRITERS: dict[str, Writer] = {".csv": _separated(","), ".tsv": _separated("\t"), ".jsonl": _objects, **SHOWN}
# Binary formats: the library that writes each, the extra that installs it, and the writer.
BINARY: dict[str, tuple[str, str, Callable[[Path, Sequence[str], Iterable[Sequence[Any]], Mapping[str, str]], None]]] = {
    ".parquet": ("pyarrow", "parquet", _write_parquet),
    ".xlsx": ("xlsxwriter", "mine", _write_sheet),
}
if {*_TEXT_WRITERS, *BINARY, ".json"} != set(TABLES):
    raise TypeError(f"the tables of xswe.io.suffixes are {', '.join(TABLES)}: each needs a writer, and no other has one")
