"""Bitext whose every record stays as it stands: what scoring appends to and filtering passes on.

The readers of :mod:`xswe.corpus.formats` give texts; these give each pair's texts with the record that holds them: a line
with its other columns and its line end, an object with its other fields, a unit of a translation memory with its
attributes and properties.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO, TextIOWrapper
from itertools import count, zip_longest
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from xswe.corpus.documents import units_of
from xswe.errors import ConfigError, InputError
from xswe.io.archives import damage, without_packing
from xswe.io.lines import MAX_LINE_BYTES, OnError, Skipped, damaged_archive, open_binary

Kind = Literal["tsv", "moses", "csv", "jsonl", "tmx"]
_SUFFIXES: dict[str, Kind] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".tmx": "tmx"}
_FOREIGN = (".mo", ".parquet", ".po", ".xlf", ".xliff", ".xlsx", ".zip")


class Record(NamedTuple):
    """A pair as it stands in its file.

    Attributes:
        raw: its bytes without the line end.
        end: the line end, empty for a last line without one.
        texts: both sides, None if the record is damaged.
    """

    raw: bytes
    end: bytes
    texts: tuple[str, str] | None


@dataclass(frozen=True)
class RecordFile:
    """A bitext to be read record by record.

    Attributes:
        paths: the file, or source and target (Moses); ``-`` for standard input.
        columns: 0-based source and target column of separated text, or names of columns or fields.
        languages: source and target language, for translation memories.
        on_error: what a damaged record does: ``raise``, or ``skip`` (its texts are None).
    """

    paths: tuple[str, ...]
    columns: tuple[int | str, ...] = (0, 1)
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"

    def __post_init__(self) -> None:
        if len(self.columns) != 2 or not all(isinstance(c, str) or (type(c) is int and c >= 0) for c in self.columns):
            raise ConfigError(f"columns={list(self.columns)!r}: name two columns, the source's first, counted from 0")
        suffix = without_packing(self.paths[0]).suffix.lower()
        if len(self.paths) == 1 and suffix in _FOREIGN:
            raise ConfigError(f"{self.paths[0]}: {suffix} files are not read record by record; convert to .tsv or .tmx")
        if self.kind in ("tmx", "jsonl") and not self._named and len(self.languages) != 2:
            wanted = "set languages, as in languages=[en,ja]"
            raise ConfigError(f"{self.paths[0]}: which texts are source and target? {wanted}")
        if self.kind == "tsv" and not all(isinstance(column, int) for column in self.columns):
            raise ConfigError(f"columns={list(self.columns)}: columns of tab-separated text are counted from 0")

    @property
    def _named(self) -> bool:
        return all(isinstance(column, str) for column in self.columns)

    @property
    def kind(self) -> Kind:
        """How the file is laid out, by its name."""
        if len(self.paths) == 2:
            return "moses"
        return _SUFFIXES.get(without_packing(self.paths[0]).suffix.lower(), "tsv")

    def spooled(self, folder: Path) -> RecordFile:
        """Return the same bitext with standard input, which can be read once only, kept in a folder."""
        if "-" not in self.paths:
            return self
        with open(folder / "input", "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        return replace(self, paths=tuple(str(folder / "input") if path == "-" else path for path in self.paths))

    def read(self) -> Iterator[Record]:
        """Stream the records.

        Raises:
            InputError: with file and line: (unless skipping) a record is damaged; sides of unequal length.
        """
        if self.kind == "moses":
            return self._moses()
        return {"tsv": self._tsv, "csv": self._csv, "jsonl": self._jsonl, "tmx": self._tmx}[self.kind]()

    def read_raw(self) -> Iterator[Record]:
        """Stream the records a second time, without a look at the texts of lines."""
        if self.kind in ("csv", "tmx"):
            return self.read()
        if self.kind == "moses":
            sides = zip(*map(_raw_lines, self.paths), strict=True)
            return (Record(left[0] + b"\t" + right[0], left[1], None) for left, right in sides)
        return (Record(raw, end, None) for raw, end in _raw_lines(self.paths[0]))

    def frame(self) -> tuple[bytes, bytes]:
        """Return what stands before and after the records: a header of columns, or of a memory."""
        if self.kind == "tmx":
            return _memory_frame(self.paths[0])
        if self.kind == "csv":
            with open_binary(self.paths[0]) as stream:
                return stream.readline(MAX_LINE_BYTES), b""
        return b"", b""

    def scored(self, record: Record, score: float) -> bytes:
        """Return a record with a score added: a column, a field, a property."""
        if self.kind == "jsonl":
            value = None if score != score else round(score, 6)
            return json.dumps({**json.loads(record.raw or b"{}"), "score": value}, ensure_ascii=False).encode()
        if self.kind == "tmx":
            start = record.raw.index(b">") + 1
            return b'%s<prop type="x-score">%.6f</prop>%s' % (record.raw[:start], score, record.raw[start:])
        return record.raw + (b"," if self.kind == "csv" else b"\t") + b"%.6f" % score

    def _tsv(self) -> Iterator[Record]:
        path, (a, b) = self.paths[0], self.columns
        assert isinstance(a, int)
        assert isinstance(b, int)
        need = max(a, b) + 1
        for number, (raw, end) in enumerate(_raw_lines(path), 1):
            fields = raw.split(b"\t")
            if len(fields) >= need:
                yield Record(raw, end, self._texts((fields[a], fields[b]), (path, path), number))
            elif self.on_error == "skip":
                yield Record(raw, end, None)
            else:
                found = f"{len(fields)} tab-separated columns where columns {list(self.columns)} need {need}"
                raise InputError(path, found, "set columns (counted from 0), or on_error=skip", number)

    def _moses(self) -> Iterator[Record]:
        source, target = self.paths
        for number, (left, right) in enumerate(zip_longest(_raw_lines(source), _raw_lines(target)), 1):
            if left is None or right is None:
                short = source if left is None else target
                raise InputError(short, f"ends before line {number}", "the two files must be aligned line by line", number)
            yield Record(left[0] + b"\t" + right[0], left[1], self._texts((left[0], right[0]), (source, target), number))

    def _texts(self, fields: Sequence[bytes], paths: Sequence[str], number: int) -> tuple[str, str] | None:
        """Decode a pair; ``paths`` says which file each side is from."""
        texts = []
        for side, path in zip(fields, paths, strict=True):
            try:
                text = side.decode("utf-8").strip()
            except UnicodeDecodeError:
                if self.on_error == "raise":
                    cure = "convert the file with iconv, or set on_error=skip to pass over it"
                    raise InputError(path, "not UTF-8", cure, number) from None
                return None
            texts.append(text.removeprefix("\ufeff") if number == 1 else text)
        return texts[0], texts[1]

    def _csv(self) -> Iterator[Record]:
        """Records of comma-separated values with a header; a quoted field may hold line ends."""
        path = self.paths[0]
        with open_binary(path) as raw:
            reader = csv.reader(TextIOWrapper(BytesIO(raw.read()) if path == "-" else raw, "utf-8-sig", newline=""))
            try:
                header = next(reader, [])
                a, b = (self._place(header, column) for column in self.columns)
                for row in reader:
                    if len(row) != len(header) and self.on_error == "raise":
                        found = f"{len(row)} values under {len(header)} columns"
                        raise InputError(path, found, "mend the line, or set on_error=skip", reader.line_num)
                    texts = (row[a].strip(), row[b].strip()) if len(row) == len(header) else None
                    yield Record(_csv_line(row), b"\n", texts)
            except (csv.Error, UnicodeDecodeError) as error:
                raise InputError(path, f"not comma-separated UTF-8 ({error})", "mend the line", reader.line_num) from None

    def _place(self, header: Sequence[str], column: int | str) -> int:
        if isinstance(column, str) and column in header:
            return header.index(column)
        if isinstance(column, int) and column < len(header):
            return column
        raise InputError(self.paths[0], f"there is no column {column!r}", f"its columns are {', '.join(header)}", 1)

    def _jsonl(self) -> Iterator[Record]:
        path, names = self.paths[0], self.columns if self._named else self.languages
        for number, (raw, end) in enumerate(_raw_lines(path), 1):
            texts: tuple[str, str] | None = None
            try:
                found = json.loads(raw)
                found = found.get("translation", found) if isinstance(found, dict) else {}
                values = [found.get(name) for name in names]
                if isinstance(values[0], str) and isinstance(values[1], str):
                    texts = values[0].strip(), values[1].strip()
            except ValueError:
                pass
            if texts is None and self.on_error == "raise":
                cure = f"name the fields, as in columns=[source,target] (looked for: {', '.join(map(str, names))})"
                raise InputError(path, "no object with two texts", cure, number)
            yield Record(raw, end, texts)

    def _tmx(self) -> Iterator[Record]:
        languages = (self.languages[0], self.languages[1])
        for unit, texts in units_of(self.paths[0], languages, on_error=self.on_error, skipped=Skipped()):
            unit.tail = None
            yield Record(ElementTree.tostring(unit, encoding="unicode").encode(), b"\n", texts)


def _csv_line(row: Sequence[str]) -> bytes:
    stream = StringIO()
    csv.writer(stream, lineterminator="").writerow(row)
    return stream.getvalue().encode()


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


def _raw_lines(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over (line, its end), both as they are."""
    with open_binary(path) as stream:
        for number in count(1):
            try:
                line = stream.readline(MAX_LINE_BYTES + 1)
            except damage() as error:
                raise damaged_archive(path, error, number, "fetch it again") from None
            if not line:
                return
            body = line.removesuffix(b"\n")
            if len(line) > MAX_LINE_BYTES and body is line:
                raise InputError(path, f"a line of over {MAX_LINE_BYTES >> 20} MiB", "cut the file into lines", number)
            body = body.removesuffix(b"\r") if body is not line else body
            yield body, line[len(body) :]
