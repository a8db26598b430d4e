"""The formats that mined pairs are written in: one table of them, by the suffix of a name."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, cast, get_args
from xml.sax.saxutils import escape

from xswe.corpus.records import RecordFile
from xswe.errors import ConfigError, DependencyError
from xswe.io.archives import packing_of, without_packing
from xswe.io.files import whole_file
from xswe.io.ragged import Texts
from xswe.io.results import latex, markdown, write_sheet
from xswe.mining.margin import Pairs
from xswe.version import __version__


class Named(Protocol):
    """One side's lines, and what they are called."""

    @property
    def texts(self) -> Texts:
        """The lines."""

    def name(self, row: int) -> str:
        """Return the id, or the number, of a line."""


Format = Literal["auto", "laser", "bucc", "csv", "jsonl", "latex", "markdown", "parquet", "tmx", "xliff", "xlsx"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tex": "latex",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".xlsx": "xlsx",
}
# Names that promise a format which pairs are not written in.
_FOREIGN = (
    *(
        ".arrow",
        ".db",
        ".doc",
        ".docx",
        ".feather",
        ".htm",
        ".html",
        ".json",
        ".mo",
        ".npy",
        ".npz",
        ".ods",
        ".odt",
        ".pdf",
    ),
    *(".pickle", ".pkl", ".po", ".rtf", ".safetensors", ".sqlite", ".tbx", ".xls", ".xml", ".yaml", ".yml", ".zip"),
)
_LIBRARIES = {"parquet": ("pyarrow", "parquet"), "xlsx": ("xlsxwriter", "mine")}
_BLOCK = 65_536
_BLANKS = str.maketrans(dict.fromkeys("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COLUMNS = ("score", "source", "target", "source_id", "target_id", "rank")


class Row(NamedTuple):
    """A pair as it is written."""

    score: float
    source: str
    target: str
    source_id: str
    target_id: str
    rank: int


def output_format(wanted: str, output: str, languages: Sequence[str] = ()) -> Format:
    """Return the format: the wanted one, or for ``auto`` that of the file name (``laser`` if it says nothing).

    Raises:
        ConfigError: there is no such format, the name promises a format that pairs are not written in, or the format
            needs the languages, a file, or a file without packing.
        DependencyError: the library that writes it is not installed.
    """
    known = get_args(Format)
    if wanted not in known:
        raise ConfigError(f"format={wanted!r}: use one of {', '.join(known)}")
    suffix = without_packing(Path(output)).suffix.lower()
    if wanted == "auto" and suffix in _FOREIGN:
        raise ConfigError(f"{output}: pairs are not written as {suffix}; use .tsv, {', '.join(_SUFFIXES)}, or say format=")
    kind: Format = _SUFFIXES.get(suffix, "laser") if wanted == "auto" else wanted  # type: ignore[assignment]
    if kind in _LIBRARIES:
        if output == "-" or packing_of(output):
            raise ConfigError(f"format={kind} is not written packed or to standard output: give output=pairs.{kind}")
        module, extra = _LIBRARIES[kind]
        if find_spec(module) is None:
            raise DependencyError(module, extra, f"format={kind}")
    if kind in ("tmx", "xliff") and len(languages) != 2:
        raise ConfigError(f"format={kind} names the languages of its texts: set languages, as in languages=[en,ja]")
    return kind


def format_of(file: RecordFile) -> str:
    """Return the format in which the records of a bitext stay as they stand."""
    return "laser" if file.kind in ("tsv", "moses") else file.kind


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all, compressed by its suffix (.gz .xz .bz2 .zst); ``-`` is stdout."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as temporary, open(temporary, "wb") as raw, _compressed(raw, packing_of(path)) as stream:
        yield stream


@contextmanager
def _compressed(raw: BinaryIO, packing: str) -> Iterator[BinaryIO]:
    if packing == ".gz":
        stream: Any = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)  # the same bytes every time
    elif packing == ".xz":
        stream = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 (closed below)
    elif packing == ".bz2":
        stream = bz2.BZ2File(raw, "wb")
    elif packing:
        try:
            import zstandard
        except ImportError:
            raise DependencyError("zstandard", "mine", "writing .zst files") from None
        stream = zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
    else:
        yield raw
        return
    with stream:
        yield cast(BinaryIO, stream)


def one_line(text: str) -> str:
    """Replace what would end a field or a line by a blank."""
    return text.translate(_BLANKS)


def _rows(pairs: Pairs, source: Named, target: Named) -> Iterator[Row]:
    columns = (pairs.scores.tolist(), pairs.source.tolist(), pairs.target.tolist(), pairs.rank.tolist())
    for score, a, b, rank in zip(*columns, strict=True):
        yield Row(round(score, 6), source.texts[a], target.texts[b], source.name(a), target.name(b), rank)


def _laser(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    return (f"{row.score:.6f}\t{one_line(row.source)}\t{one_line(row.target)}\n" for row in rows)


def _bucc(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    return (f"{row.source_id}\t{row.target_id}\n" for row in rows)


def _jsonl(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    return (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)


def _csv(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in chain([_COLUMNS], rows):
        writer.writerow(row)
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()


def _table(lay_out: Callable[[Sequence[str], Iterable[Sequence[Any]]], str]) -> Writer:
    def write(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
        cells = ([f"{row.score:.4f}", one_line(row.source), one_line(row.target)] for row in rows)
        yield lay_out(_COLUMNS[:3], cells) + "\n"

    return write


def _xml(text: str) -> str:
    """Escape a text, and turn what XML 1.0 cannot hold into blanks."""
    return escape(_NOT_XML.sub(" ", text))


def write_tmx(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    """TMX 1.4, valid against its document type; scores and ids are properties of the units."""
    a, b = languages
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield f'<header creationtool="xswe" creationtoolversion="{__version__}" segtype="sentence" o-tmf="xswe" '
    yield f'adminlang="en" srclang="{a}" datatype="plaintext"/>\n<body>\n'
    for row in rows:
        ids = f"{_xml(row.source_id)}\t{_xml(row.target_id)}".replace("\t", " ")
        yield f'<tu><prop type="x-score">{row.score:.6f}</prop><prop type="x-lines">{ids}</prop>'
        yield f'<tuv xml:lang="{a}"><seg>{_xml(row.source)}</seg></tuv>'
        yield f'<tuv xml:lang="{b}"><seg>{_xml(row.target)}</seg></tuv></tu>\n'
    yield "</body>\n</tmx>\n"


def _xliff(rows: Iterator[Row], languages: Sequence[str]) -> Iterator[str]:
    """XLIFF 1.2, a unit a pair, its score in a note."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    yield f'<file original="xswe" datatype="plaintext" source-language="{languages[0]}" '
    yield f'target-language="{languages[1]}">\n<body>\n'
    for number, row in enumerate(rows, 1):
        yield f'<trans-unit id="{number}"><source>{_xml(row.source)}</source><target>{_xml(row.target)}</target>'
        yield f"<note>score {row.score:.6f}</note></trans-unit>\n"
    yield "</body>\n</file>\n</xliff>\n"


Writer = Callable[[Iterator[Row], Sequence[str]], Iterator[str]]
_WRITERS: dict[str, Writer] = {
    "bucc": _bucc,
    "csv": _csv,
    "jsonl": _jsonl,
    "laser": _laser,
    "latex": _table(latex),
    "markdown": _table(markdown),
    "tmx": write_tmx,
    "xliff": _xliff,
}


def _write_parquet(path: str, rows: Iterator[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("score", pa.float32()), *((name, pa.string()) for name in _COLUMNS[1:5]), ("rank", pa.int32())])
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        while block := [row._asdict() for row in islice(rows, _BLOCK)]:
            writer.write_table(pa.Table.from_pylist(block, schema))


def _write_sheet(path: str, rows: Iterator[Row]) -> None:
    with whole_file(path) as temporary:
        write_sheet(temporary, _COLUMNS, rows)


def write_pairs(path: str, kind: str, pairs: Pairs, source: Named, target: Named, languages: Sequence[str] = ()) -> None:
    """Write pairs in their order, whole or not at all.

    ``laser``: score<TAB>source<TAB>target, ``markdown`` and ``latex`` the same as a table (tabs and line ends within a text
    become blanks); ``bucc``: source id<TAB>target id; ``tmx`` and ``xliff``: translation memories; ``csv``, ``jsonl``,
    ``parquet`` and ``xlsx``: score, both texts as they are, ids (line numbers where a file has none), and the rank among
    the source's candidates.
    """
    write_rows(path, kind, _rows(pairs, source, target), languages)


def write_rows(path: str, kind: str, rows: Iterator[Row], languages: Sequence[str] = ()) -> None:
    """Write rows in a format of :func:`output_format`, whole or not at all."""
    if kind in _LIBRARIES:
        (_write_parquet if kind == "parquet" else _write_sheet)(path, rows)
        return
    with open_output(path) as stream:
        lines = _WRITERS[kind](rows, languages)
        while block := "".join(islice(lines, _BLOCK)):
            stream.write(block.encode("utf-8"))
