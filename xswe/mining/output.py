"""The formats that mined pairs are written in."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, cast

from xswe.errors import ConfigError, DependencyError
from xswe.io.archives import packing_of
from xswe.io.files import whole_file
from xswe.io.ragged import Texts
from xswe.mining.margin import Pairs


class Named(Protocol):
    """One side's lines, and what they are called."""

    @property
    def texts(self) -> Texts:
        """The lines."""

    def name(self, row: int) -> str:
        """Return the id, or the number, of a line."""


Format = Literal["auto", "laser", "bucc", "jsonl", "parquet"]
FORMATS = ("auto", "laser", "bucc", "jsonl", "parquet")
_BLOCK = 65_536
_BLANKS = str.maketrans(dict.fromkeys("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))


def output_format(wanted: str, output: str) -> str:
    """Return the format: the wanted one, or for ``auto`` that of the file name (``laser`` if it says nothing).

    Raises:
        ConfigError: there is no such format, or parquet to standard output.
    """
    if wanted not in FORMATS:
        raise ConfigError(f"format={wanted!r}: use one of {', '.join(FORMATS)}")
    suffixes = Path(output).suffixes
    if wanted == "auto":
        wanted = "parquet" if ".parquet" in suffixes else "jsonl" if ".jsonl" in suffixes else "laser"
    if wanted == "parquet" and output == "-":
        raise ConfigError("format=parquet cannot be written to standard output: give output=pairs.parquet")
    return wanted


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


def _laser(pairs: Pairs, source: Named, target: Named) -> Iterator[str]:
    for score, a, b in zip(pairs.scores.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True):
        yield f"{score:.6f}\t{one_line(source.texts[a])}\t{one_line(target.texts[b])}\n"


def _bucc(pairs: Pairs, source: Named, target: Named) -> Iterator[str]:
    for a, b in zip(pairs.source.tolist(), pairs.target.tolist(), strict=True):
        yield f"{source.name(a)}\t{target.name(b)}\n"


def _rows(pairs: Pairs, source: Named, target: Named) -> Iterator[dict[str, object]]:
    columns = (pairs.scores.tolist(), pairs.source.tolist(), pairs.target.tolist(), pairs.rank.tolist())
    for score, a, b, rank in zip(*columns, strict=True):
        yield {
            "score": round(score, 6),
            "source": source.texts[a],
            "target": target.texts[b],
            "source_id": source.name(a),
            "target_id": target.name(b),
            "rank": rank,
        }


def _jsonl(pairs: Pairs, source: Named, target: Named) -> Iterator[str]:
    for row in _rows(pairs, source, target):
        yield json.dumps(row, ensure_ascii=False) + "\n"


_WRITERS: dict[str, Callable[[Pairs, Named, Named], Iterator[str]]] = {"laser": _laser, "bucc": _bucc, "jsonl": _jsonl}


def _write_parquet(path: str, pairs: Pairs, source: Named, target: Named) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DependencyError("pyarrow", "mine", "format=parquet") from None
    names = ("source", "target", "source_id", "target_id")
    schema = pa.schema([("score", pa.float32()), *((name, pa.string()) for name in names), ("rank", pa.int32())])
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for start in range(0, len(pairs), _BLOCK):
            rows = list(_rows(pairs.take(slice(start, start + _BLOCK)), source, target))  # type: ignore[arg-type]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def write_pairs(path: str, kind: str, pairs: Pairs, source: Named, target: Named) -> None:
    """Write pairs in their order, whole or not at all.

    ``laser``: score<TAB>source<TAB>target (tabs and line ends within a text become blanks); ``bucc``: source id<TAB>target
    id; ``jsonl`` and ``parquet``: score, both texts as they are, ids (line numbers where a file has none), and the rank
    among the source's candidates.
    """
    if kind == "parquet":
        _write_parquet(path, pairs, source, target)
        return
    with open_output(path) as stream:
        lines = _WRITERS[kind](pairs, source, target)
        while block := "".join(line for _, line in zip(range(_BLOCK), lines)):  # noqa: B905 (cut to blocks)
            stream.write(block.encode("utf-8"))
