"""Tables of pairs: comma-separated values, JSON lines, workbooks, Parquet, and data sets of the hub."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import TextIOWrapper
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.formats import Described
from xswe.bitext.lines import bodies, line_blocks
from xswe.bitext.rows import Negatives, one_line_each
from xswe.errors import InputError, brief, needs
from xswe.io.files import check_input
from xswe.io.inputs import steady
from xswe.io.lines import (
    MAX_LINE_BYTES,
    RAISES,
    RETURNS_ALONE,
    Skipped,
    damaged_archive,
    decode_line,
    nul_byte,
    open_binary,
    read_lines,
)
from xswe.io.ragged import Texts
from xswe.io.results import write_table
from xswe.io.sources import damage
from xswe.text.languages import LANGUAGES, base_language

logger = logging.getLogger(__name__)
_BATCH = 16_384
# A row: number from 1, the reader's own object, and the texts (two, then negatives) or the reason for having none.
TableUnit = tuple[int, Any, tuple[str, ...] | str]
Batch = tuple[Any, tuple[Texts, Texts], Negatives | None]  # of rows: all columns, both texts, and negatives


def find_columns(
    names: Sequence[str], columns: Sequence[int | str], languages: Sequence[str], by_number: bool = True
) -> list[int] | None:
    """Return the columns of source, target and any negatives; None if they are missing.

    ``columns`` are names or 0-based numbers. (0, 1) means the usual names: those of the two languages, with or without a
    locale, or if no languages are given, of two supported ones; else for pairs in one language, ``anchor`` (or ``query``),
    ``positive`` and all that begin with ``negative``; else ``source`` and ``target``. Without ``by_number``, all numbers
    mean that.
    """
    if any(isinstance(column, str) for column in columns) or (by_number and tuple(columns[:2]) != (0, 1)):
        found = [
            names.index(str(one)) if one in names else one if isinstance(one, int) and one < len(names) else None
            for one in columns
        ]
        return None if None in found else [place for place in found if place is not None]
    by_language = {base_language(name): name for name in names if base_language(name) in LANGUAGES}
    wanted = list(by_language.values()) if not languages and len(by_language) == 2 else []
    if len(languages) == 2 and languages[0] != languages[1]:
        found_names = [next((name for name in names if base_language(name) == code), "") for code in languages]
        wanted = [code if code in names else name for code, name in zip(languages, found_names, strict=True)]
    elif not wanted and "positive" in names:
        wanted = ["query" if "query" in names and "anchor" not in names else "anchor", "positive"]
        wanted += sorted(name for name in names if name.startswith("negative"))
    wanted = wanted if wanted and set(wanted) <= set(names) else ["source", "target"]
    return [names.index(name) for name in wanted] if set(wanted) <= set(names) else None


def _hint(source: Described, names: Sequence[str] = ()) -> str:
    """Return a hint for missing columns."""
    a, b = source.columns[:2]
    if isinstance(a, int) or isinstance(b, int):
        two = len(source.languages) == 2 and source.languages[0] != source.languages[1]
        a, b = source.languages if two else ("anchor", "positive")
    further = f" (or columns=[{','.join(names[-2:])}])" if len(names) > 1 else ""
    return f"name its fields, as in {{path: ..., fields: [{a}, {b}]}}{further}"


def _no_columns(source: Described, names: Sequence[str], what: str = "columns", line: int | None = None) -> InputError:
    problem = f"it has the {what} {', '.join(names)}"
    return InputError(str(source.hub or source.paths[0]), problem, _hint(source, names), line)


def _listed(value: Any) -> list[str] | None:
    """Return the texts in a field of negatives: one, a list, or none; None for anything else."""
    texts = [] if value is None else [value] if isinstance(value, str) else value
    return list(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def jsonl_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[TableUnit]:
    """Yield the objects of a JSON lines file, each with the unchanged line and its end.

    The texts are in the fields that :func:`find_columns` finds, of the object or of its ``translation``.
    """
    path, raises, names, keys = source.paths[0], RAISES[source.on_error], list[str](), list[str]()
    named = list(map(str, source.columns)) if source.by_name else []
    simple = bool(named) or not source.with_negatives
    lines: Iterator[tuple[int, Any, bytes]]
    if exact:
        blocks = line_blocks(source.paths, exact=True)
        raw = (line for block in blocks for line in bodies(block.lines[0]))
        lines = ((number, line, end) for number, (line, end) in enumerate(raw, 1))
    else:
        lines = ((n, line, b"") for n, line in read_lines(path, on_error=source.on_error, skipped=skipped))
    for number, line, end in lines:
        if line is None or not line.strip():
            yield number, (line, end), ""
            continue
        if len(line) > MAX_LINE_BYTES:  # of those read as they are
            decode_line(line, path, number, source.on_error, Skipped())
            yield number, (line, end), "line too long"
            continue
        texts, problem = list[str](), ""
        try:
            record = fields_within(json.loads(line))
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({brief(error)})"
        else:
            if simple and len(keys) == 2:  # most files have the same keys in every line
                a, b = record.get(keys[0]), record.get(keys[1])
                if isinstance(a, str) and isinstance(b, str):
                    yield number, (line, end), (a.strip(), b.strip())
                    continue
            if list(record) != names:
                names = list(record)
                places = find_columns(names, source.columns, source.languages, by_number=False)
                keys = named or [names[place] for place in places or ()]
            texts, problem = _texts_of(record, keys) if keys else ([], _no_text(source))
        if problem and raises:
            raise InputError(path, problem, f"{_hint(source)}, or set on_error=skip", number)
        yield number, (line, end), problem.partition(" (")[0] or tuple(texts)


def _no_text(source: Described) -> str:
    codes = source.languages
    a, b = codes if len(codes) == 2 and codes[0] != codes[1] else ("anchor", "positive")
    return f"no text under {a!r} and {b!r}"


def csv_separator(header: str) -> str:
    """Return the separator of a ``.csv``; spreadsheets use semicolons in locales with decimal commas."""
    return max(",;\t", key=re.sub('"[^"]*"', "", header).count)


_SENTENCE = re.compile(r".*\w.*[.!?。！？]|\S+(?:\s+\S+){5,}|.{60,}", re.DOTALL)  # unlike any column name


@lru_cache
def _warn_of_no_header(path: str | Path) -> None:
    """Warn, once even if a file is read several times, of a first line of texts that is taken for a header."""
    logger.warning(
        "%s:1: it looks like texts, and is taken for names of columns; if they are texts, put names before it", path
    )


@lru_cache
def _warn_of_others(path: str | Path, read: str, hint: str) -> None:
    """Warn, once even if a file is read several times, that two columns are read where none has a usual name."""
    logger.warning("%s:1: the columns %s are read; if the texts are in others, %s", path, read, hint)


def csv_rows(path: str | Path, separator: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of comma-separated values, the header first, each with the number of its first line.

    Without a ``separator``, the header decides which it is.

    InputError, with file and line: there is no header, or a row is not valid text.
    """
    with open_binary(path) as raw:
        text = TextIOWrapper(raw, "utf-8-sig", newline="")
        number = 1
        try:
            header = text.readline(MAX_LINE_BYTES)
            if not header.strip():
                raise InputError(path, "no names of columns", "begin the file with a line of them, as in source,target", 1)
            if header.endswith("\r"):
                raise InputError(path, *RETURNS_ALONE)
            reader = csv.reader(chain([header], text), delimiter=separator or csv_separator(header))
            for row in reader:
                if any("\0" in value for value in row):
                    raise nul_byte(path, number, b"\0")
                if number == 1 and any(map(_SENTENCE.fullmatch, row)):
                    _warn_of_no_header(path)
                yield number, row
                number = reader.line_num + 1
        except damage() as error:
            raise damaged_archive(path, error, number, "fetch it again") from None
        except UnicodeDecodeError:
            deque(read_lines(path), 0)  # raises an error that names the line
            raise
        except csv.Error as error:
            raise InputError(path, f"not comma-separated ({error})", "mend the line", number) from None


def row_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[TableUnit]:
    """Yield the rows of a ``.csv`` or of a workbook's first sheet, each with the header and the row itself."""
    path, raises = source.paths[0], RAISES[source.on_error]
    rows: Iterator[tuple[int, Any]] = iter(csv_rows(path) if source.kind == "csv" else sheet_rows(path))
    header = [as_text(name) for name in next(rows, (1, ()))[1]]
    places = find_columns(header, source.columns, source.languages)
    if places is None and (tuple(source.columns[:2]) != (0, 1) or len(header) < 2):
        raise _no_columns(source, header, line=1)
    if places is None and len(header) > 2:
        _warn_of_others(path, " and ".join(header[:2]), _hint(source, header))
    places = places or [0, 1]
    text_of: Callable[[Any], str] = str.strip if source.kind == "csv" else as_text
    texts_of = itemgetter(*places)
    for number, row in rows:
        if len(row) == len(header):
            yield number, (header, row), tuple(map(text_of, texts_of(row)))
            continue
        if row and raises:
            problem = f"{len(row)} values under {len(header)} columns"
            raise InputError(path, problem, "mend the line, or set on_error=skip", number)
        yield number, (header, row), "another number of columns" if row else ""


def fields_within(record: Any) -> Mapping[str, Any]:
    """Return the fields of a record, or of its ``translation``; none if it is not an object."""
    if not isinstance(record, dict):
        return {}
    return inner if isinstance(inner := record.get("translation"), dict) else record


def _texts_of(record: Mapping[str, Any], keys: Sequence[str]) -> tuple[list[str], str]:
    """Return the texts of a record, or what is wrong with it."""
    texts: list[Any] = [record.get(key) for key in keys[:2]]
    if not all(isinstance(text, str) for text in texts):
        return [], f"no text under {keys[0]!r} and {keys[1]!r}"
    for key in keys[2:]:
        found = _listed(record[key]) if key in record else None
        if found is None:
            return [], f"no text, nor list of texts, under {key!r}"
        texts += found
    return [text.strip() for text in texts], ""


def parquet_blocks(source: Described, exact: bool = False) -> Iterator[Batch]:
    """Yield a Parquet file in batches of rows, without making Python strings of its texts; all columns if ``exact``.

    InputError: the file is damaged, or lacks the text columns.
    """
    with needs("pyarrow", "corpora", "reading Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    path = source.paths[0]
    check_input(path)
    try:
        with steady(path), pq.ParquetFile(path) as table:
            schema = table.schema_arrow
            names, inner = list(schema.names), list[str]()
            if (places := find_columns(names, source.columns, source.languages)) is None and "translation" in names:
                kind = schema.field("translation").type
                inner = [kind.field(i).name for i in range(kind.num_fields)]
                places = find_columns(inner, source.columns, source.languages)
            if places is None:
                raise _no_columns(source, names)
            wanted = ["translation"] if inner else [names[place] for place in places]
            for batch in table.iter_batches(_BATCH, columns=None if exact else wanted):
                whole = batch.column("translation").flatten() if inner else [batch.column(name) for name in wanted]
                columns = [whole[place] for place in places] if inner else whole
                sides = [column.cast(pa.large_string()) for column in columns[:2]]
                for side in sides:  # nothing else checks that text is UTF-8, and compiled code relies on it
                    side.validate(full=True)
                further = [column.to_pylist() for column in columns[2:]]
                yield batch, (_texts(sides[0]), _texts(sides[1])), _negatives(further, source)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(path, error) from None


def batch_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[TableUnit]:
    """Yield the rows of a Parquet file, each with its batch, its place in that, and the row itself."""
    number = 0
    for batch, sides, _ in parquet_blocks(source, exact):
        for place, (row, a, b) in enumerate(zip(batch.to_pylist(), *sides, strict=True)):
            number += 1
            yield number, (batch, place, row), (a.strip(), b.strip())


def _no_parquet(path: str | Path, error: Exception) -> InputError:
    return InputError(path, f"not a Parquet file of texts ({brief(error)[:200]})", "fetch it again")


def _negatives(columns: Sequence[Sequence[Any]], source: Described) -> Negatives | None:
    """Return the negatives of a block of records from the values of each field; None if there are no fields."""
    if not columns:
        return None
    lists: list[list[str]] = []
    for values in zip(*columns, strict=True):
        found = [_listed(value) for value in values]
        if None in found:
            problem = "a negative is neither a text nor a list of texts"
            raise InputError(str(source.hub or source.paths[0]), problem, _hint(source))
        lists.append([text for one in found for text in one or ()])
    return one_line_each(Negatives.of(lists))


def _texts(column: Any) -> Texts:
    """Wrap the buffers of an Arrow ``large_string`` column; a missing value is an empty text."""
    import pyarrow.compute as pc

    if column.null_count:
        column = pc.fill_null(column, "")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Texts(raw[bounds[0] : bounds[-1]], bounds - bounds[0])


def hub_blocks(source: Described) -> Iterator[Batch]:
    """Yield a data set, read by ``datasets`` without remote code; InputError: not available, or no such fields."""
    with needs("datasets", "corpora", "reading data sets of the hub"):
        import datasets
    data = source.hub
    assert data is not None
    try:
        opened = datasets.load_dataset(
            data.repo, data.config or None, split=data.split, revision=data.revision, streaming=data.streaming
        )
        for batch in opened.iter(batch_size=_BATCH):
            names, columns = list(batch), batch
            if (places := find_columns(names, source.columns, source.languages)) is None and "translation" in names:
                names = list(batch["translation"][0])
                columns = {name: [record.get(name) for record in batch["translation"]] for name in names}
                places = find_columns(names, source.columns, source.languages)
            if places is None:
                raise _no_columns(source, list(batch), "fields")
            keys = [names[place] for place in places]
            sides = [["" if text is None else text for text in columns[key]] for key in keys[:2]]
            if not all(isinstance(text, str) for side in sides for text in side):
                raise InputError(str(data), f"no text under {keys[0]!r} and {keys[1]!r}", _hint(source))
            further = _negatives([columns[key] for key in keys[2:]], source)
            yield batch, (Texts.of(sides[0]), Texts.of(sides[1])), further
    except (OSError, ValueError, RuntimeError) as error:
        problem = brief(error)
        hint = "see that the network and the name are right, or fetch its files by hand and give corpus.paths=[...]"
        raise InputError(str(data), f"cannot be read ({type(error).__name__}: {problem[:200]})", hint) from None


# Rows with all columns, for verbs that pass them through.


def as_text(value: Any) -> str:
    """Return the value of a cell as text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


_CONTROL = re.compile("_x(005F|00[01][0-9A-F])_")  # in a workbook, and an underscore before what only looks like one


def _unescaped(value: Any) -> Any:
    return _CONTROL.sub(lambda found: chr(int(found[1], 16)), value) if isinstance(value, str) else value


def sheet_rows(path: str | Path) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the rows of a workbook's first sheet with their numbers from 1, without empty rows."""
    with needs("openpyxl", "mine", "reading .xlsx"):
        import openpyxl
    check_input(path)
    try:
        with steady(path):
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            for number, row in enumerate(book.worksheets[0].iter_rows(values_only=True), 1):
                if any(value is not None for value in row):
                    yield number, tuple(_unescaped(value) for value in row)
            book.close()
    except damage(ValueError, KeyError, IndexError, SyntaxError, TypeError) as error:
        raise InputError(path, f"no workbook of .xlsx ({type(error).__name__})", "save it again as .xlsx") from None


def copy_sheet(path: str, output: Path, rows: Iterable[tuple[tuple[Any, ...], float]], scored: bool) -> None:
    """Write rows of a workbook under its header; with their scores if ``scored``."""
    _, header = next(sheet_rows(path), (1, ()))
    names = [as_text(name) for name in header] + ["score"] * scored
    write_table(output, ".xlsx", names, ((*row, *([score] if scored else [])) for row, score in rows))


def parquet_rows(path: str | Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows of a Parquet file, the column names first, each with its number."""
    with needs("pyarrow", "corpora", "reading Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    check_input(path)
    try:
        with steady(path), pq.ParquetFile(path) as table:
            yield 1, list(table.schema_arrow.names)
            rows = (row for batch in table.iter_batches(_BATCH) for row in batch.to_pylist())
            for number, row in enumerate(rows, 2):
                yield number, list(row.values())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(path, error) from None


_ROWS: dict[str, Callable[[str | Path], Iterator[tuple[int, Any]]]]
_ROWS = {"csv": csv_rows, "parquet": parquet_rows, "xlsx": sheet_rows}


def table_texts(path: str | Path, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table as texts, the column names first, each with its number."""
    return ((number, list(map(as_text, row))) for number, row in table_rows(path, kind))


def table_rows(path: str | Path, kind: str) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the rows of a table as they are, the column names first, each with its number."""
    return _ROWS[kind](path)


def column_names(source: Described) -> list[str]:
    """Return the names of a table's columns, or of the fields of its first object with texts; none for other formats."""
    path, kind = source.paths[0], source.kind
    if kind == "jsonl":
        found = (line for _, (line, _), texts in jsonl_units(source, True, Skipped()) if isinstance(texts, tuple))
        return list(fields_within(json.loads(next(found, "{}"))))
    return next(table_texts(path, kind), (1, []))[1] if kind in _ROWS else []


def copy_parquet(path: str, output: Path, rows: Iterable[tuple[Any, float]], scored: bool) -> None:
    """Write rows (batch, place) of a Parquet file with all their columns; with their scores if ``scored``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    if scored and "score" in schema.names:
        schema = schema.remove(schema.names.index("score"))
    full = schema.append(pa.field("score", pa.float32())) if scored else schema
    with pq.ParquetWriter(output, full) as writer:
        for _, group in groupby(rows, key=lambda one: id(one[0][0])):
            found = list(group)
            batch = found[0][0][0].take(pa.array([place for (_, place), _ in found], pa.int64())).select(schema.names)
            columns = batch.columns + ([pa.array([score for _, score in found], pa.float32())] if scored else [])
            writer.write_batch(pa.record_batch(columns, schema=full))
