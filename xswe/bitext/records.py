"""Bitext whose every record stays as it stands: what scoring appends to and filtering passes on.

The readers of :mod:`xswe.bitext.source` give texts; these give each pair's texts with the record that holds them: a line
with its other columns and its line end, an object with its other fields, a unit of a translation memory with its
attributes and properties.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from xswe.bitext import kernels
from xswe.bitext.catalogues import catalogue_entries, catalogue_head
from xswe.bitext.checks import JUDGED, check_columns_are_text, check_sides_are_text
from xswe.bitext.formats import FORMATS, PairFormat, format_by_name
from xswe.bitext.lines import complain, first_lines
from xswe.bitext.memories import copy_xliff, languages_of, segments_of, units_of
from xswe.bitext.rows import Rows, copied
from xswe.bitext.tables import (
    as_text,
    copy_parquet,
    copy_sheet,
    csv_rows,
    csv_separator,
    fields_within,
    named_columns,
    parquet_rows,
    sheet_rows,
    uneven,
)
from xswe.errors import ConfigError, InputError
from xswe.io.files import open_output, whole_file
from xswe.io.lines import (
    BLOCK_LINES,
    MAX_LINE_BYTES,
    RAISES,
    Lines,
    OnError,
    Skipped,
    Span,
    damaged_archive,
    lines_counted,
    open_binary,
    read_lines,
)
from xswe.io.ragged import Texts
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import spooled

_LINES = ("tsv", "moses", "jsonl")  # formats of which a record is a line
_MARK = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """A pair as it stands in its file."""

    raw: bytes  # its bytes without the line end; of formats that are no text, its columns as JSON
    end: bytes  # the line end, empty for a last line without one
    texts: tuple[str, str] | None  # both sides, None if the record is damaged
    row: Any = None  # of formats that are no text, what :meth:`RecordFile.write` needs of it


@dataclass(frozen=True, eq=False)
class RecordBlock:
    """Some records in the order of their file."""

    data: tuple[np.ndarray, np.ndarray]  # uint8, the bytes that hold the sources, and those that hold the targets
    spans: np.ndarray  # int (n, 4), where in them each source, and each target, starts and ends; nowhere if damaged
    damaged: np.ndarray  # bool (n,), which records are
    # those of the file, or of both, that the records are, as they stand; empty where a record is no line
    lines: tuple[Texts, ...] = ()
    place: int = 0  # of the first byte of the lines of one file

    def __len__(self) -> int:
        return len(self.damaged)

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordBlock:
        """Take records that were read one by one."""
        pairs = [record.texts or ("", "") for record in records]
        sides = [Texts.of([pair[side] for pair in pairs]) for side in range(2)]
        spans = np.stack([bounds for side in sides for bounds in (side.offsets[:-1], side.offsets[1:])], 1)
        damaged = np.array([record.texts is None for record in records], bool)
        return cls((sides[0].data, sides[1].data), spans, damaged)

    @property
    def places(self) -> np.ndarray:
        """Where its lines are in one file, int64 (1, 3): the first byte, how many there are, and of how many records."""
        return np.array([[self.place, self.lines[0].offsets[-1], len(self)]], np.int64)

    @cached_property
    def rows(self) -> Rows:
        """Both sides of all records; empty where one is damaged."""
        return self.take(slice(None))

    def take(self, rows: np.ndarray | slice) -> Rows:
        """Return both sides of some records, as copies."""
        spans = self.spans[rows]
        return Rows(copied(self.data[0], spans[:, 0], spans[:, 1]), copied(self.data[1], spans[:, 2], spans[:, 3]))

    def records(self) -> Iterator[Record]:
        """Iterate over records that are lines."""
        raw, rows = _side_by_side(self.lines), zip(self.rows.source, self.rows.target, strict=True)
        for (body, end), damaged, texts in zip(_bodies(raw), self.damaged.tolist(), rows, strict=True):
            yield Record(body, end, None if damaged else texts)


@dataclass(frozen=True)
class RecordFile:
    """A bitext to be read record by record."""

    paths: tuple[str, ...]  # the file, or source and target (Moses); ``-`` for standard input
    # 0-based source and target column of separated text, or names of columns or fields
    columns: tuple[int | str, ...] = (0, 1)
    # source and target language, for translation memories, and names of fields; empty to take a file's own two
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"  # what a damaged record does: ``raise``, or ``skip`` (its texts are None)
    # of tab-separated text that is not packed: only the lines whose first byte is one of these
    span: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if len(self.columns) != 2 or not all(isinstance(c, str) or (type(c) is int and c >= 0) for c in self.columns):
            raise ConfigError(f"columns={list(self.columns)!r}: name two columns, the source's first, counted from 0")
        if len(self.languages) != 2 and FORMATS[self.kind].names_languages:
            object.__setattr__(self, "languages", languages_of(self.paths[0]))
        if self.kind == "jsonl" and not self._named and len(self.languages) != 2:
            object.__setattr__(self, "columns", _fields_of(self.paths[0]))
        if self.kind == "tsv" and not all(isinstance(column, int) for column in self.columns):
            raise ConfigError(f"columns={list(self.columns)}: columns of tab-separated text are counted from 0")

    @property
    def _named(self) -> bool:
        return all(isinstance(column, str) for column in self.columns)

    @property
    def kind(self) -> PairFormat:
        """How the file is laid out, by its name."""
        return "moses" if len(self.paths) == 2 else format_by_name(self.paths[0])

    def spooled(self, folder: Path, execution: ExecutionConfig = LOCAL) -> RecordFile:
        """Return the same bitext with standard input kept in a folder, see :func:`xswe.work.folder.spooled`."""
        return replace(self, paths=tuple(spooled(path, folder, execution) for path in self.paths))

    def read(self) -> Iterator[Record]:
        """Stream the records.

        Raises:
            InputError: with file and line: (unless skipping) a record is damaged; sides of unequal length.
        """
        if self.kind in ("tsv", "moses"):
            return (record for block in self.blocks() for record in block.records())
        return getattr(self, f"_{self.kind}")()

    def blocks(self, most: int = BLOCK_LINES, window: int = 0) -> Iterator[RecordBlock]:
        """Stream the records, so many at a time; columns of text are cut by compiled code.

        Args:
            most: records a block.
            window: bytes. Of tab-separated text, a block ends where so many do, counted from the file's beginning: spans
                of whole windows have the same blocks as the file.

        Raises:
            InputError: as :meth:`read`.
        """
        if self.kind not in ("tsv", "moses"):
            records = self.read()
            while block := list(islice(records, most)):
                yield RecordBlock.of(block)
            return
        with lines_counted(self.paths[0], self.span[0] if self.span else 0):
            number = 1
            for place, lines in self._lines(most, window):
                found = [self._cut(part, path, number) for part, path in zip(lines, self.paths, strict=True)]
                damaged = np.logical_or.reduce([bad for _, bad in found])
                if number == 1:
                    self._check_columns(lines[0], np.flatnonzero(~damaged))
                spans = found[0][0] if len(found) == 1 else np.concatenate([one[:, :2] for one, _ in found], 1)
                spans[damaged] = 0
                yield RecordBlock((lines[0].data, lines[-1].data), spans, damaged, lines, place)
                number += len(damaged)

    def blocks_at(self, places: np.ndarray, spans: np.ndarray) -> Iterator[RecordBlock]:
        """Read blocks of a file once more, without another look at its lines; none counts as damaged.

        Args:
            places: int64 (blocks, 3), :attr:`RecordBlock.places` of each, one after the other.
            spans: int (records, 4), those of all their records.

        Raises:
            InputError: the file became shorter.
        """
        with open_binary(self.paths[0]) as stream:
            row = 0
            for begin, size, count in places.tolist():
                stream.seek(begin)
                data = np.frombuffer(stream.read(size), np.uint8)
                if len(data) < size:
                    raise InputError(
                        self.paths[0], "became shorter while it was read", "start again, with a file that stays"
                    )
                yield RecordBlock((data, data), spans[row : row + count], np.zeros(count, bool))
                row += count

    def read_raw(self) -> Iterator[Record]:
        """Stream the records a second time, without a look at the texts of lines."""
        blocks = self.raw_blocks()
        if blocks is None:
            return self.read()
        return (Record(body, end, None) for lines in blocks for body, end in _bodies(lines))

    def raw_blocks(self, most: int = BLOCK_LINES) -> Iterator[Texts] | None:
        """Stream the records with their line ends and without a look at their texts; None if they are no lines."""
        return (_side_by_side(lines) for _, lines in self._lines(most)) if self.kind in _LINES else None

    def write(self, output: str, records: Iterable[tuple[Record, float]], scored: bool = False) -> None:
        """Write some of the records in their order, as they stand, whole or not at all; with their scores if ``scored``.

        ConfigError: the format is read only.
        """
        if self.kind in _WRITERS:
            with whole_file(output) as temporary:
                _WRITERS[self.kind](self.paths[0], temporary, records, scored)
            return
        before, after = self.frame(scored)
        with open_output(output) as stream:
            stream.write(before)
            rest = iter(records)
            while block := list(islice(rest, BLOCK_LINES)):
                if scored:
                    stream.write(b"".join(self.scored(record, score) + record.end for record, score in block))
                else:
                    stream.write(b"".join(record.raw + (record.end or b"\n") for record, _ in block))
            stream.write(after)

    def frame(self, scored: bool = False) -> tuple[bytes, bytes]:
        """Return what stands before and after the records: a header of columns (and of their scores), or of a memory."""
        if self.kind == "tmx":
            return _memory_frame(self.paths[0])
        if self.kind == "catalogue":
            return catalogue_head(self.paths[0]), b""
        if self.kind == "csv":
            names = self._header.rstrip(b"\r\n")
            return (names + f"{self.separator}score".encode() if scored else names) + self._end, b""
        return b"", b""

    def scored(self, record: Record, score: float) -> bytes:
        """Return a record with a score added: a column, a field, a property."""
        if self.kind == "jsonl":
            value = None if score != score else round(score, 6)
            told = json.dumps({**json.loads(record.raw or b"{}"), "score": value}, ensure_ascii=False)
            return told.encode("utf-8", "backslashreplace")  # a lone surrogate, as it was written
        if self.kind == "tmx":
            start = record.raw.index(b">") + 1
            return b'%s<prop type="x-score">%.6f</prop>%s' % (record.raw[:start], score, record.raw[start:])
        if self.kind == "catalogue":
            return b"#. score %.6f\n" % score + record.raw
        return record.raw + (self.separator.encode() if self.kind == "csv" else b"\t") + b"%.6f" % score

    def _lines(self, most: int, window: int = 0) -> Iterator[tuple[int, tuple[Texts, ...]]]:
        """Stream the lines of the file, or of two in step, as they stand; and where those of the first file begin."""
        with ExitStack() as stack:
            opened, place = [stack.enter_context(open_binary(path)) for path in self.paths], 0
            if self.span is not None:
                opened = [cast(BinaryIO, span := Span(opened[0], *self.span))]
                place = span.at
            streams, number = [Lines(stream, exact=True) for stream in opened], 1
            while count := min(ready := [stream.ready(most) for stream in streams]):
                if window and len(streams) == 1:
                    count = streams[0].before(count, window - place % window)
                lines = tuple(stream.take(count) for stream in streams)
                for part, path in zip(lines, self.paths, strict=True):
                    ended = part.data[part.offsets[1:] - 1] == 0x0A
                    if (long := np.flatnonzero(part.sizes - ended > MAX_LINE_BYTES)).size:
                        found = f"a line of over {MAX_LINE_BYTES >> 20} MiB"
                        raise InputError(path, found, "cut the file into lines", number + int(long[0]))
                yield place, lines
                place, number = place + int(lines[0].offsets[-1]), number + count
        for stream, path in zip(streams, self.paths, strict=True):
            if stream.damage is not None:
                raise damaged_archive(path, stream.damage, number, "fetch it again")
        if max(ready):
            short = self.paths[ready.index(0)]
            raise InputError(short, f"ends before line {number}", "the two files must be aligned line by line", number)

    def _cut(self, lines: Texts, path: str, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return where the columns of lines start and end, int64 (n, 4), and which lines are damaged, bool (n,)."""
        columns = (-1, -1) if self.kind == "moses" else tuple(map(int, self.columns))
        spans, status = np.zeros((len(lines), 4), np.int64), np.zeros(len(lines), np.uint8)
        kernels.cut_lines(*lines.frozen, *columns, MAX_LINE_BYTES, spans, status)
        for row in np.flatnonzero(status == kernels.EMPTY).tolist():  # but a tab is two columns
            tabs = int((lines.data[lines.offsets[row] : lines.offsets[row + 1]] == 0x09).sum())
            status[row] = kernels.FINE if tabs >= max(columns) else kernels.FEW
        if number == 1 and not (self.span and self.span[0]) and lines.data[: len(_MARK)].tobytes() == _MARK:
            spans[0, ::2] = np.where(spans[0, ::2] == 0, np.minimum(len(_MARK), spans[0, 1::2]), spans[0, ::2])
        if RAISES[self.on_error]:
            complain(lines, status, path, number, columns)
        return spans, status != kernels.FINE

    def _check_columns(self, lines: Texts, fine: np.ndarray) -> None:
        """Refuse separated text whose first lines say that its columns are others, as those of mined pairs are."""
        if self.kind == "tsv" and self.columns[0] != self.columns[1] and not (self.span and self.span[0]):
            a, b = map(int, self.columns)
            spoken = (self.languages[0], self.languages[1]) if len(self.languages) == 2 else ("", "")
            check_columns_are_text(Path(self.paths[0]), (a, b), spoken, first_lines(lines, fine), False)

    def _csv(self) -> Iterator[Record]:
        """Records of comma-separated values with a header; a quoted field may hold line ends."""
        separator, end, rows = self.separator, self._end, csv_rows(self.paths[0])
        _, header = next(rows, (1, []))
        for row, pair in self._pairs(header, ((number, row, row) for number, row in rows)):
            yield Record(_csv_line(row, separator), end, pair)

    def _xlsx(self) -> Iterator[Record]:
        """Records of a workbook's first sheet, of which a cell may be a number or a date."""
        rows = sheet_rows(self.paths[0])
        _, header = next(rows, (1, ()))
        names = [as_text(name) for name in header]
        for row, pair in self._pairs(names, ((number, list(map(as_text, row)), row) for number, row in rows)):
            yield Record(_as_json(dict(zip(names, row, strict=False))), b"\n", pair, row)

    def _parquet(self) -> Iterator[Record]:
        """Records of a Parquet table; a column of another type is no text."""
        names, batches = parquet_rows(self.paths[0])
        nested = not {"source", "target", *self.languages} & set(names) and "translation" in names
        if nested:
            names = [*names, *self.languages]

        def rows() -> Iterator[tuple[int, list[str], Any]]:
            number = 0
            for batch in batches:
                for place, row in enumerate(batch.to_pylist()):
                    values = {**row, **fields_within(row)} if nested else row
                    number += 1
                    texts = [value if isinstance(value := values.get(name), str) else "" for name in names]
                    yield number, texts, (batch, place, row)

        for (batch, place, row), pair in self._pairs(names, rows()):
            yield Record(_as_json(row), b"\n", pair, (batch, place))

    def _pairs(
        self, header: Sequence[str], rows: Iterator[tuple[int, Sequence[str], Any]]
    ) -> Iterator[tuple[Any, tuple[str, str] | None]]:
        """Yield what stands beside the texts of each row with its pair, None for a row of another length."""
        path = self.paths[0]
        columns = self.columns
        if tuple(columns) == (0, 1):
            columns = named_columns(header, self.languages) or columns
        a, b = (self._place(header, column) for column in columns)
        first = list(islice(rows, JUDGED))
        if a != b:
            whole = [(number, row) for number, row, _ in first if len(row) == len(header)]
            source, target = ([row[place] for _, row in whole] for place in (a, b))
            cure = f"name two of its columns, as in columns=[{','.join(header[-2:])}]: {', '.join(header)}"
            spoken = (self.languages[0], self.languages[1]) if len(self.languages) == 2 else ("", "")
            check_sides_are_text(path, spoken, source, target, cure=cure, lines=[number for number, _ in whole])
        for number, row, beside in chain(first, rows):
            if len(row) != len(header) and RAISES[self.on_error]:
                raise uneven(path, row, header, number)
            yield beside, (row[a].strip(), row[b].strip()) if len(row) == len(header) else None

    @cached_property
    def _header(self) -> bytes:
        """The line with the names of the columns."""
        with open_binary(self.paths[0]) as stream:
            return stream.readline(MAX_LINE_BYTES)

    @property
    def _end(self) -> bytes:
        return b"\r\n" if self._header.endswith(b"\r\n") else b"\n"

    @cached_property
    def separator(self) -> str:
        """What stands between the columns of a ``.csv``."""
        return csv_separator(self._header.decode("utf-8", "replace"))

    def _place(self, header: Sequence[str], column: int | str) -> int:
        if isinstance(column, str) and column in header:
            return header.index(column)
        if isinstance(column, int) and column < len(header):
            return column
        raise InputError(self.paths[0], f"there is no column {column!r}", f"its columns are {', '.join(header)}", 1)

    def _jsonl(self) -> Iterator[Record]:
        path, names = self.paths[0], tuple(map(str, self.columns if self._named else self.languages))
        lines = (line for _, block in self._lines(BLOCK_LINES) for line in _bodies(block[0]))
        for number, (raw, end) in enumerate(lines, 1):
            texts: tuple[str, str] | None = None
            try:
                found = fields_within(json.loads(raw))
                if not self._named and names[0] not in found:
                    names = named_columns(found, self.languages) or names
                values = [found.get(name) for name in names]
                if isinstance(values[0], str) and isinstance(values[1], str):
                    texts = values[0].strip(), values[1].strip()
            except (ValueError, RecursionError):
                pass
            if texts is None and RAISES[self.on_error]:
                cure = f"name the fields, as in columns=[source,target] (looked for: {', '.join(names)})"
                raise InputError(path, "no object with two texts", cure, number)
            yield Record(raw, end, texts)

    def _xliff(self) -> Iterator[Record]:
        found = segments_of(self.paths[0], self.languages, on_error=self.on_error, skipped=Skipped())
        for number, (_, pair) in enumerate(found):
            yield Record(b"\t".join(text.encode() for text in pair), b"\n", pair, number)

    def _catalogue(self) -> Iterator[Record]:
        for raw, pair in catalogue_entries(Path(self.paths[0]), self.languages, on_error=self.on_error, skipped=Skipped()):
            yield Record(raw, b"\n", pair)

    def _tmx(self) -> Iterator[Record]:
        from lxml.etree import tostring

        languages = (self.languages[0], self.languages[1])
        for unit, texts in units_of(self.paths[0], languages, on_error=self.on_error, skipped=Skipped()):
            yield Record(tostring(unit, encoding="unicode", with_tail=False).encode(), b"\n", texts)


def _fields_of(path: str) -> tuple[str, ...]:
    """Return the two fields of a first object that are texts, ``source`` and ``target`` of more, or raise an error."""
    first = next((line for _, line in read_lines(path, on_error="skip") if line and line.strip()), "{}")
    try:
        found = tuple(name for name, value in fields_within(json.loads(first)).items() if isinstance(value, str))
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"not JSON ({error})", "give a JSON object a line", 1) from None
    if {"source", "target"} <= set(found):
        return "source", "target"
    if len(found) != 2:
        names = f"its first object has {', '.join(found) or 'none'}"
        raise ConfigError(f"{path}: which texts are source and target? {names}: name two, as in columns=[source,target]")
    return found


def _as_json(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")


def _csv_line(row: Sequence[str], separator: str) -> bytes:
    stream = StringIO()
    csv.writer(stream, delimiter=separator).writerow(row)  # ended by \r\n, as it quotes what holds a part of its line's end
    return stream.getvalue()[:-2].encode()


def _memory_frame(path: str) -> tuple[bytes, bytes]:
    """Return a translation memory's beginning, to the first unit, and its end."""
    held = b""
    with open_binary(path) as stream:
        while (place := held.find(b"<body")) < 0:
            block = stream.read(1 << 16)
            if not block:
                raise InputError(path, "no <body>", "see that it is TMX")
            held += block
        while (stop := held.find(b">", place)) < 0:
            held += stream.read(1 << 16)
    return held[: stop + 1] + b"\n", b"</body>\n</tmx>\n"


_WRITERS: dict[str, Callable[[str, Path, Iterable[tuple[Record, float]], bool], None]] = {
    "parquet": lambda path, output, records, scored: copy_parquet(
        path, output, ((record.row, score) for record, score in records), scored
    ),
    "xlsx": lambda path, output, records, scored: copy_sheet(
        path, output, ((record.row, score) for record, score in records), scored
    ),
    "xliff": lambda path, output, records, scored: copy_xliff(
        path, output, {record.row: score for record, score in records}, scored
    ),
}


def _bodies(lines: Texts) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over (line, its end), both as they are."""
    data = lines.data.tobytes()
    for low, high in pairwise(lines.offsets.tolist()):
        line = data[low:high]
        body = line.removesuffix(b"\n")
        body = body.removesuffix(b"\r") if len(body) < len(line) else body
        yield body, line[len(body) :]


def _side_by_side(lines: tuple[Texts, ...]) -> Texts:
    """Join the lines of two files by a tab; the ends are those of the first."""
    if len(lines) == 1:
        return lines[0]
    rows = [b"%b\t%b%b" % (left, right, end) for (left, end), (right, _) in zip(*map(_bodies, lines), strict=True)]
    return Texts.packed(rows)
