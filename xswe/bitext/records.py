"""Records of a bitext as they are in the file, with their texts: scoring appends to them, filtering passes them on.

A record is a line with all its columns and its line end, an object with all its fields, or a unit of a translation
memory with its attributes and properties.
"""

from __future__ import annotations

import csv
import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.bitext.catalogues import catalogue_head
from xswe.bitext.lines import bodies
from xswe.bitext.memories import copy_xliff
from xswe.bitext.rows import Rows, copied
from xswe.bitext.tables import copy_parquet, copy_sheet
from xswe.errors import InputError
from xswe.io.lines import open_binary
from xswe.io.ragged import Texts

_BODY = re.compile("<body[^>]*>")
_ENCODING = re.compile(r"""(<\?xml\s[^>]*\sencoding\s*=\s*["'])([\w.-]+)""")
_UTF_16 = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # by the first bytes


class Record(NamedTuple):
    """A pair as it is in its file."""

    raw: bytes  # its bytes without the line end; in binary formats, its columns as JSON
    end: bytes  # the line end, empty for a last line without one
    texts: tuple[str, str] | None  # both sides, None if the record is damaged
    row: Any = None  # what :meth:`Source.write` needs besides, in some formats


@dataclass(frozen=True, eq=False)
class RecordBlock:
    """Consecutive records of a file."""

    data: tuple[np.ndarray, np.ndarray]  # uint8, the bytes that contain the sources, and those that contain the targets
    spans: np.ndarray  # int (n, 4), start and end of each source, and of each target; empty spans if damaged
    damaged: np.ndarray  # bool (n,), which records are damaged
    # the unchanged lines of the file, or of both files; empty if records are not lines
    lines: tuple[Texts, ...] = ()
    place: int = 0  # the byte in the first file where its lines begin

    def __len__(self) -> int:
        return len(self.damaged)

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str] | None]) -> RecordBlock:
        """Make a block from the texts of records read one by one; None stands for a damaged one."""
        damaged = np.array([pair is None for pair in pairs], bool)
        texts = [pair or ("", "") for pair in pairs]
        sides = [Texts.of([pair[side] for pair in texts]) for side in range(2)]
        spans = np.stack([bounds for side in sides for bounds in (side.offsets[:-1], side.offsets[1:])], 1)
        return cls((sides[0].data, sides[1].data), spans, damaged)

    @property
    def places(self) -> np.ndarray:
        """Where its lines are in one file, int64 (1, 3): the first byte, the number of bytes, and of records."""
        return np.array([[self.place, self.lines[0].offsets[-1], len(self)]], np.int64)

    @cached_property
    def rows(self) -> Rows:
        """Both sides of all records; empty texts if damaged."""
        return self.take(slice(None))

    def take(self, rows: np.ndarray | slice) -> Rows:
        """Return both sides of some records, as copies."""
        spans = self.spans[rows]
        return Rows(copied(self.data[0], spans[:, 0], spans[:, 1]), copied(self.data[1], spans[:, 2], spans[:, 3]))

    def records(self) -> Iterator[Record]:
        """Iterate over records that are lines."""
        raw, rows = side_by_side(self.lines), zip(self.rows.source, self.rows.target, strict=True)
        for (body, end), damaged, texts in zip(bodies(raw), self.damaged.tolist(), rows, strict=True):
            yield Record(body, end, None if damaged else texts)


def raw_of(kind: str, number: int, beside: Any, pair: tuple[str, str] | None, separator: str) -> tuple[bytes, Any]:
    """Return the bytes of a record that is not a line, from its reader's object, and what its writer needs besides."""
    if kind == "jsonl":
        return beside[0], None
    if kind == "csv":
        return _csv_line(beside[1], separator), None
    if kind == "xlsx":
        return _as_json(dict(zip(map(str, beside[0]), beside[1], strict=False))), beside[1]
    if kind == "parquet":
        return _as_json(beside[2]), beside[:2]
    if kind == "xliff":
        return b"\t".join(text.encode() for text in pair or ()), number - 1
    if kind == "catalogue":
        return str(beside).encode(), None
    if kind == "tmx":
        from lxml.etree import tostring

        return tostring(beside, encoding="unicode", with_tail=False).encode(), None
    raise ValueError(kind)


def frame_of(kind: str, path: str) -> tuple[bytes, bytes]:
    """Return the bytes before and after the records of a memory; none for other formats."""
    if kind == "tmx":
        return _memory_frame(path)
    return (catalogue_head(path), b"") if kind == "catalogue" else (b"", b"")


def _as_json(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")


def _csv_line(row: Sequence[str], separator: str) -> bytes:
    stream = StringIO()
    # Lines are ended by \r\n: the writer quotes values that contain a part of its line end.
    csv.writer(stream, delimiter=separator).writerow(row)
    return stream.getvalue()[:-2].encode()


def _memory_frame(path: str) -> tuple[bytes, bytes]:
    """Return a TMX file's beginning, up to the first unit, and its end; both in UTF-8, as its units are written."""
    head = ""
    with open_binary(path) as stream:
        block = stream.read(1 << 10)
        declared = _ENCODING.search(block.decode("latin-1"))
        encoding = next((name for mark, name in _UTF_16.items() if block.startswith(mark)), declared[2] if declared else "")
        try:
            decoder = getincrementaldecoder(encoding or "utf-8")("replace")  # of damage within the first units
        except LookupError:  # the parser knows more encodings than Python
            raise InputError(path, f"Python does not know its encoding, {encoding}", "save it in UTF-8", 1) from None
        while (body := _BODY.search(head := head + decoder.decode(block))) is None:
            block = stream.read(1 << 16)
            if not block:
                raise InputError(path, "no <body>", "see that it is TMX")
    head = head[: body.end()]
    head = head if encoding.lower() == "utf-8" else _ENCODING.sub(r"\1UTF-8", head, count=1)
    return head.encode() + b"\n", b"</body>\n</tmx>\n"


WRITERS: dict[str, Callable[[str, Path, Iterable[tuple[Record, float]], bool], None]] = {
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


def side_by_side(lines: tuple[Texts, ...]) -> Texts:
    """Join the lines of two files with tabs; line ends are those of the first."""
    if len(lines) == 1:
        return lines[0]
    rows = [b"%b\t%b%b" % (left, right, end) for (left, end), (right, _) in zip(*map(bodies, lines), strict=True)]
    return Texts.packed(rows)
