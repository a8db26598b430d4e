"""Tables of pairs: comma-separated values, JSON objects a line, Parquet, and data sets of the hub."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO, TextIOWrapper
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.rows import Negatives, Rows, one_line, one_line_each
from xswe.errors import InputError, brief, needs
from xswe.io.files import check_input
from xswe.io.inputs import steady
from xswe.io.lines import (
    MAX_LINE_BYTES,
    RAISES,
    RETURNS_ALONE,
    OnError,
    Skipped,
    damaged_archive,
    nul_byte,
    open_binary,
    read_lines,
)
from xswe.io.ragged import Texts
from xswe.io.results import write_table
from xswe.io.sources import damage
from xswe.text.languages import base_language

logger = logging.getLogger(__name__)
_BATCH = 16_384


@dataclass(frozen=True)
class HubSet:
    """A data set of the hub."""

    repo: str  # its name, or a local folder or file that ``datasets.load_dataset`` reads
    config: str = ""  # its configuration, or ""
    split: str = "train"  # its split
    revision: str | None = None  # the commit, tag or branch; None for the newest
    streaming: bool = True  # read while it downloads, and keep nothing of it on the disk

    def __str__(self) -> str:
        return "/".join(filter(None, (self.repo, self.config, self.split)))


@dataclass(frozen=True)
class Fields:
    """The fields of a record to read."""

    languages: tuple[str, str]  # source and target language; the same one twice for pairs of one language
    # names of the source's and the target's field; None for the language codes, or in pairs of one language for
    # ``anchor`` (or ``query``) and ``positive``
    pair: tuple[str, str] | None = None
    # names of the fields of the negatives, which hold a text, a list of texts, or null. Of pairs of one language whose
    # fields are not named, all whose names start with ``negative``
    negatives: tuple[str, ...] = ()

    @property
    def with_negatives(self) -> bool:
        """True if negatives are read where there are any."""
        return bool(self.negatives) or (self.pair is None and self.languages[0] == self.languages[1])

    def among(self, names: Collection[str]) -> tuple[tuple[str, str], list[str]]:
        """Return the fields of source and target, and those of the negatives, in a record with the fields ``names``."""
        if self.pair is not None:
            return self.pair, list(self.negatives)
        if self.languages[0] != self.languages[1]:
            there = set(self.languages) <= set(names) or "translation" in names
            return (not there and named_columns(names, self.languages)) or self.languages, list(self.negatives)
        anchor = "query" if "query" in names and "anchor" not in names else "anchor"
        return (anchor, "positive"), sorted(name for name in names if name.startswith("negative"))

    @property
    def cure(self) -> str:
        """What to do where they are missing."""
        example = self.among(())[0]
        return f"name its fields, as in {{path: ..., fields: [{example[0]}, {example[1]}]}}"


def _listed(value: Any) -> list[str] | None:
    """Return the texts of a field of negatives; None if it has something else."""
    texts = [] if value is None else [value] if isinstance(value, str) else value
    return list(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def read_jsonl(path: Path, fields: Fields, *, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, ...]]:
    """Yield pairs of a file of one JSON object a line, each followed by its negatives.

    An object has the two texts under the fields named, else under the language codes, else under those within
    ``translation``.
    """
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None or not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({brief(error)})"
        else:
            texts, problem = _texts_of(record, fields)
            if not problem:
                yield tuple(texts)
                continue
        if RAISES[on_error]:
            raise InputError(path, problem, f"{fields.cure}, or set on_error=skip", number)
        skipped.add(problem.partition(" (")[0])


def csv_separator(header: str) -> str:
    """Return the separator of a ``.csv``: a semicolon where spreadsheets write the comma in numbers."""
    return max(",;\t", key=re.sub('"[^"]*"', "", header).count)


_SENTENCE = re.compile(r".*\w.*[.!?。！？]|\S+(?:\s+\S+){5,}|.{60,}", re.DOTALL)  # and no name of a column


@lru_cache
def _warn_of_no_header(path: str | Path) -> None:
    """Warn, once even if a file is read several times, of a first line that is lost as a header."""
    logger.warning(
        "%s:1: it looks like texts, and is taken for names of columns; if they are texts, put names before it", path
    )


def csv_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of comma-separated values, the header first, each with the number of its first line.

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
            reader = csv.reader(chain([header], text), delimiter=csv_separator(header))
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
            deque(read_lines(path), 0)  # which says where
            raise
        except csv.Error as error:
            raise InputError(path, f"not comma-separated ({error})", "mend the line", number) from None


def uneven(path: str | Path, row: Sequence[str], header: Sequence[str], number: int) -> InputError:
    """Return the error of a row of a ``.csv`` that has more or fewer values than there are columns."""
    problem = f"{len(row)} values under {len(header)} columns"
    return InputError(path, problem, "mend the line, or set on_error=skip", number)


def named_columns(header: Collection[str], languages: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns that are called as two languages, with a locale or without, or ``source`` and ``target``."""
    if len(languages) == 2 and languages[0] != languages[1]:
        found = [next((name for name in header if base_language(name) == code), "") for code in languages]
        found = [code if code in header else name for code, name in zip(languages, found, strict=True)]
        if all(found):
            return found[0], found[1]
    return ("source", "target") if {"source", "target"} <= set(header) else None


def csv_fields(header: bytes, raw: bytes) -> dict[str, str]:
    """Return the columns of a line of comma-separated values by the names in the header."""
    first = header.decode("utf-8-sig")
    rows = [next(csv.reader(StringIO(text), delimiter=csv_separator(first)), []) for text in (first, raw.decode())]
    return dict(zip(*rows, strict=False))


def sheet_texts(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a workbook's first sheet as texts, the header first, each with its number."""
    return ((number, list(map(as_text, row))) for number, row in sheet_rows(path))


def read_rows(
    rows: Iterator[tuple[int, list[str]]],
    path: Path,
    fields: Fields,
    columns: Sequence[int],
    *,
    on_error: OnError,
    skipped: Skipped,
) -> Iterator[tuple[str, ...]]:
    """Yield pairs of a file's rows of texts, whose first one is the header, each followed by its negatives.

    The columns are those of the fields named, else the ``columns`` asked for, else those named after the language codes,
    else ``source`` and ``target``, else the first two.
    """
    _, header = next(rows, (1, []))
    keys, negatives = fields.among(header)
    named = fields.pair is not None or (tuple(columns[:2]) == (0, 1) and set(keys) <= set(header))
    if not set([*keys, *negatives] if named else negatives) <= set(header) or (not named and max(columns) >= len(header)):
        raise InputError(path, f"it has the columns {', '.join(header)}", fields.cure, 1)
    places = [header.index(name) for name in keys] if named else list(columns[:2])
    places += [header.index(name) for name in negatives]
    for number, row in rows:
        if len(row) == len(header):
            yield tuple(row[place].strip() for place in places)
        elif row:
            if RAISES[on_error]:
                raise uneven(path, row, header, number)
            skipped.add("another number of columns")


def fields_within(record: Any) -> Mapping[str, Any]:
    """Return the fields of a record, which may be those within ``translation``; none where it is not an object."""
    inner = record.get("translation") if isinstance(record, Mapping) else None
    return inner if isinstance(inner, Mapping) else record if isinstance(record, Mapping) else {}


def _texts_of(record: Any, fields: Fields) -> tuple[list[str], str]:
    """Return the texts of a record, or what is wrong with it."""
    record = fields_within(record)
    keys, negatives = fields.among(record)
    texts = [record.get(key) for key in keys]
    if not all(isinstance(text, str) for text in texts):
        return [], f"no text under {keys[0]!r} and {keys[1]!r}"
    for key in negatives:
        found = _listed(record[key]) if key in record else None
        if found is None:
            return [], f"no text, nor list of texts, under {key!r}"
        texts += found
    return texts, ""


def read_parquet(path: Path, fields: Fields) -> Iterator[Rows]:
    """Yield the pairs of a Parquet file by row groups, without making Python strings of its texts.

    InputError: the file is damaged, or has no such columns of text.
    """
    with needs("pyarrow", "corpora", "reading Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    check_input(path)
    try:
        with steady(path), pq.ParquetFile(path) as table:
            names = table.schema_arrow.names
            keys, negatives = fields.among(names)
            nested = "translation" in names and not set(keys) <= set(names)
            if not set(negatives) <= set(names) or (not nested and not set(keys) <= set(names)):
                raise InputError(path, f"it has the columns {', '.join(names)}", fields.cure)
            wanted = ["translation"] if nested else list(keys)
            for batch in table.iter_batches(_BATCH, columns=[*wanted, *negatives]):
                columns = batch.column("translation").flatten() if nested else None
                if columns is not None:
                    kind = batch.schema.field("translation").type
                    inner = [kind.field(i).name for i in range(kind.num_fields)]
                    sides = [columns[inner.index(key)] for key in keys]
                else:
                    sides = [batch.column(key) for key in keys]
                sides = [side.cast(pa.large_string()) for side in sides]
                for side in sides:  # nothing else looks whether text is UTF-8, and compiled code trusts that it is
                    side.validate(full=True)
                source, target = (one_line(_texts(side)) for side in sides)
                further = [batch.column(key).to_pylist() for key in negatives]
                yield Rows(source, target, negatives=_negatives(further, path, fields))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(path, error) from None


def _no_parquet(path: str | Path, error: Exception) -> InputError:
    return InputError(path, f"not a Parquet file of texts ({brief(error)[:200]})", "fetch it again")


def _negatives(columns: Sequence[Sequence[Any]], source: str | Path, fields: Fields) -> Negatives | None:
    """Return the negatives of a block of records, given field by field; None where none are asked for."""
    if not columns:
        return None
    lists: list[list[str]] = []
    for values in zip(*columns, strict=True):
        found = [_listed(value) for value in values]
        if None in found:
            raise InputError(source, "a negative is neither a text nor a list of texts", fields.cure)
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


def read_hub(data: HubSet, fields: Fields) -> Iterator[Rows]:
    """Yield the pairs of a data set by ``datasets``, without remote code; InputError: not available, or no such fields."""
    with needs("datasets", "corpora", "reading data sets of the hub"):
        import datasets
    try:
        opened = datasets.load_dataset(
            data.repo, data.config or None, split=data.split, revision=data.revision, streaming=data.streaming
        )
        for batch in opened.iter(batch_size=_BATCH):
            keys, negatives = fields.among(batch)
            there = set(keys) <= set(batch)
            if not set(negatives) <= set(batch) or not (there or "translation" in batch):
                raise InputError(str(data), f"it has the fields {', '.join(batch)}", fields.cure)
            records = batch["translation"] if not there else ()
            sides = [batch[key] if there else [record.get(key) for record in records] for key in keys]
            sides = [["" if text is None else text for text in side] for side in sides]
            if not all(isinstance(text, str) for side in sides for text in side):
                raise InputError(str(data), f"no text under {keys[0]!r} and {keys[1]!r}", fields.cure)
            further = _negatives([batch[key] for key in negatives], str(data), fields)
            yield Rows(one_line(Texts.of(sides[0])), one_line(Texts.of(sides[1])), negatives=further)
    except (OSError, ValueError, RuntimeError) as error:
        problem = brief(error)
        cure = "see that the network and the name are right, or fetch its files by hand and give corpus.paths=[...]"
        raise InputError(str(data), f"cannot be read ({type(error).__name__}: {problem[:200]})", cure) from None


# Rows with all their columns, for verbs that pass them through.


def as_text(value: Any) -> str:
    """Return what stands in a cell of a sheet as a text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def sheet_rows(path: str | Path) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the rows of a workbook's first sheet with their numbers from 1, those without anything left out."""
    with needs("openpyxl", "mine", "reading .xlsx"):
        import openpyxl
    check_input(path)
    try:
        with steady(path):
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            for number, row in enumerate(book.worksheets[0].iter_rows(values_only=True), 1):
                if any(value is not None for value in row):
                    yield number, row
            book.close()
    except damage(ValueError, KeyError, IndexError, SyntaxError, TypeError) as error:
        raise InputError(path, f"no workbook of .xlsx ({type(error).__name__})", "save it again as .xlsx") from None


def copy_sheet(path: str, output: Path, rows: Iterable[tuple[tuple[Any, ...], float]], scored: bool) -> None:
    """Write rows of a workbook under its header; with their scores if ``scored``."""
    _, header = next(sheet_rows(path), (1, ()))
    names = [as_text(name) for name in header] + ["score"] * scored
    write_table(output, ".xlsx", names, ((*row, *([score] if scored else [])) for row, score in rows))


def parquet_rows(path: str) -> tuple[list[str], Iterator[Any]]:
    """Return the names of a Parquet file's columns, and its batches of rows."""
    with needs("pyarrow", "corpora", "reading Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    check_input(path)

    def batches() -> Iterator[Any]:
        try:
            with steady(path), pq.ParquetFile(path) as table:
                yield from table.iter_batches(_BATCH)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _no_parquet(path, error) from None

    try:
        return list(pq.read_schema(path).names), batches()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(path, error) from None


def parquet_texts(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a Parquet file as texts, the names of its columns first, each with its number."""
    names, batches = parquet_rows(str(path))
    yield 1, names
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, row in enumerate(rows, 2):
        yield number, [as_text(row[name]) for name in names]


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
