"""Files of sentence vectors, written block by block, and resumed after a kill.

The rows go straight to a partial file beside the output, after room for a header, so that memory does not grow with them.
A checkpoint records how many of them are safely on the disk, and which part of the text comes next. At the end, the header
is filled in and the file renamed (``.npy``, ``.safetensors``), or its rows are copied into ``.parquet``.

| suffix | float32, float16 | int8: row ``i`` is ``numbers[i] * scales[i]`` |
|---|---|---|
| ``.npy`` | one array (n, d) | also ``<name>.scales.npy``, float32 (n,) |
| ``.safetensors`` | tensor ``embeddings`` (n, d) | also tensor ``scales``, float32 (n,) |
| ``.parquet`` | column ``embedding``, fixed-size lists | also column ``scale``, float32 |
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xswe.errors import ConfigError, needs
from xswe.io.files import sibling, whole_file
from xswe.io.locks import lock, unlock_for_rename
from xswe.model.precision import PRECISIONS, check_precision, convert
from xswe.progress import every
from xswe.work import kept
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.parts import BEGINNING, Part, Place

logger = logging.getLogger(__name__)
SUFFIXES = (".npy", ".safetensors", ".parquet")
_HEADER = 512  # bytes before the first row
_STEP = 0x9E3779B97F4A7C15  # difference of the factors of consecutive rows, before their lowest bit is set
_GROUP = 1 << 16  # rows of a row group
_NUMPY = dict(zip(PRECISIONS, ("<f4", "<f2", "|i1"), strict=True))
_SAFETENSORS = dict(zip(PRECISIONS, ("F32", "F16", "I8"), strict=True))


@dataclass(frozen=True)
class VectorFile:
    """A file of vectors to be written."""

    path: Path  # the suffix chooses the format
    width: int  # dimensions of a row
    dtype: str
    own: bool = False  # whether each process has its own partial file, which is never resumed

    def __post_init__(self) -> None:
        check_precision(self.dtype)
        if self.path.suffix not in SUFFIXES:
            raise ConfigError(f"output={self.path}: give a name that ends in {', '.join(SUFFIXES)}")
        if self.path.is_dir():
            raise ConfigError(f"output={self.path}: is a folder; give the name of a file")
        if self.path.suffix == ".parquet":
            _pyarrow()

    @property
    def partial(self) -> Path:
        """The file of the rows written so far."""
        return sibling(self.path, crowded=True) if self.own else self.path.with_name(f".{self.path.name}.partial")

    @property
    def partial_scales(self) -> Path:
        """The file of their scales."""
        own = sibling(self.scales, crowded=True) if self.own else None
        return own or self.path.with_name(f".{self.path.name}.scales.partial")

    @property
    def checkpoint(self) -> Path:
        """The file of the recorded state."""
        return self.path.with_name(f".{self.path.name}.checkpoint")

    @property
    def scales(self) -> Path:
        """The file of the scales of an int8 ``.npy``."""
        return self.path.with_name(f"{self.path.stem}.scales.npy")

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.width * np.dtype(_NUMPY[self.dtype]).itemsize


class VectorWriter:
    """An open partial file (see :func:`open_writer`) with ``rows`` rows, up to the part of the text at ``place``."""

    def __init__(self, file: VectorFile, identity: str, rows: BinaryIO, scales: BinaryIO) -> None:
        self.file, self._identity, self._rows, self._scales = file, identity, rows, scales
        self.rows, self.place, self._checksum = 0, BEGINNING, 0
        self._due = every(kept.BRIEF)
        if file.own:
            return
        if found := load_checkpoint(file.checkpoint, identity):
            count, checksum = found[1]["rows"], found[1]["checksum"]
            if _read_checksum(file, count) == checksum:
                self.rows, self.place, self._checksum = count, tuple(found[1]["place"]), checksum
                return
            logger.warning("%s: damaged since it was written; starting over", file.partial)
        file.checkpoint.unlink(missing_ok=True)

    def append(self, part: Part) -> int:
        """Append rows, as :func:`part_of` returns them; return how many."""
        numbers, scales = part["numbers"], part.get("scales")
        written = [(self._rows, numbers, self.file.row_bytes)]
        if scales is not None:
            written.append((self._scales, scales, scales.itemsize))
        for stream, rows, size in written:
            _write_at(stream, rows, _HEADER + self.rows * size)
            if not self.file.own:
                self._checksum += _checksum(rows, self.rows)
        self.rows += len(numbers)
        return len(numbers)

    def save(self, place: Place) -> None:
        """Record, now and then, up to which part of the text vectors are written."""
        if self._due():
            os.fsync(self._rows.fileno())
            os.fsync(self._scales.fileno())
            state = {"rows": self.rows, "checksum": self._checksum % 2**64, "place": place}
            save_checkpoint(self.file.checkpoint, self._identity, {}, state, f"after {self.rows:,} lines")

    def finish(self) -> None:
        """Turn the partial files into the output, which appears whole."""
        file, rows = self.file, self.rows
        self._rows.truncate(_HEADER + rows * file.row_bytes)
        self._scales.truncate(_HEADER + rows * 4)
        if file.path.suffix == ".parquet":
            _write_parquet(file, rows)
        elif file.path.suffix == ".safetensors":
            _write_at(self._rows, _safetensors_header(file, rows), 0)
            if file.dtype == "int8":
                scales = np.memmap(file.partial_scales, np.float32, "r", _HEADER, (rows,)) if rows else np.zeros(0)
                _write_at(self._rows, scales, _HEADER + rows * file.row_bytes)
            _rename(self._rows, file.partial, file.path)
        else:
            if file.dtype == "int8":
                _write_at(self._scales, _npy_header("<f4", (rows,)), 0)
                _rename(self._scales, file.partial_scales, file.scales)
            _write_at(self._rows, _npy_header(_NUMPY[file.dtype], (rows, file.width)), 0)
            _rename(self._rows, file.partial, file.path)


def part_of(vectors: np.ndarray, dtype: str) -> Part:
    """Convert float32 rows to the form in which they are written."""
    numbers, scales = convert(vectors, dtype)
    return {"numbers": numbers} if scales is None else {"numbers": numbers, "scales": scales}


@contextmanager
def open_writer(file: VectorFile, identity: str = "") -> Iterator[VectorWriter]:
    """Open a file of vectors, or resume that of a killed run with the same identity.

    When the block ends, the output exists. If it raises, the rows that a checkpoint records are kept for the next run.
    ConfigError: another process is writing the same output.
    """
    file.path.parent.mkdir(parents=True, exist_ok=True)
    partial, partial_scales = file.partial, file.partial_scales
    for path in (partial, partial_scales):
        path.touch()
    with partial.open("r+b") as rows, partial_scales.open("r+b") as scales:
        lock(rows, f"output={file.path}: another process is writing it; wait, or give another name")
        writer = VectorWriter(file, identity, rows, scales)
        rows.truncate(_HEADER + writer.rows * file.row_bytes)
        scales.truncate(_HEADER + writer.rows * 4)
        try:
            yield writer
            writer.finish()
            file.checkpoint.unlink(missing_ok=True)
        finally:
            if file.own or not file.checkpoint.exists():
                unlock_for_rename(rows, scales)
                for path in (partial, partial_scales):
                    path.unlink(missing_ok=True)


def _read_checksum(file: VectorFile, rows: int) -> int:
    """Return the checksum of the first ``rows`` rows of a partial file, -1 if it has fewer."""
    total, kind = 0, np.dtype(_NUMPY[file.dtype])
    parts = [(file.partial, kind, file.width)] + [(file.partial_scales, np.dtype(np.float32), 1)] * (file.dtype == "int8")
    for path, of, width in parts:
        with path.open("rb") as stream:
            stream.seek(_HEADER)
            for start in range(0, rows, _GROUP):
                stop = min(rows, start + _GROUP)
                data = stream.read((stop - start) * of.itemsize * width)
                if len(data) < (stop - start) * of.itemsize * width:
                    return -1
                total += _checksum(np.frombuffer(data, of).reshape(stop - start, width), start)
    return total % 2**64


def _checksum(rows: np.ndarray, first: int) -> int:
    """Return a checksum of rows, of which ``first`` is the number of the first; checksums of parts add up to the whole's.

    It is the sum of each row's numbers, as integers, times an odd factor per row, modulo 2^64: it changes with any number,
    and with swapped rows. It takes a hundredth of the time of encoding.
    """
    data = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    kind = next(kind for kind in ("u8", "u4", "u2", "u1") if data.shape[1] % int(kind[1]) == 0)
    factors = np.arange(first, first + len(rows), dtype=np.uint64) * np.uint64(_STEP) | np.uint64(1)
    return int((data.view(kind).sum(1, dtype=np.uint64) * factors).sum())


def _write_at(stream: BinaryIO, data: Any, place: int) -> None:
    """Write all bytes of an array (or bytes) at a place."""
    stream.seek(place)
    stream.write(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data if isinstance(data, np.ndarray) else data)
    stream.flush()


def _rename(stream: BinaryIO, partial: Path, path: Path) -> None:
    os.fsync(stream.fileno())
    unlock_for_rename(stream)
    os.replace(partial, path)


def _npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return an array header of numpy's format 1.0, padded to ``_HEADER`` bytes."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode("ascii")
    size = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1) + b"\n"


def _safetensors_header(file: VectorFile, rows: int) -> bytes:
    """Return a safetensors header, padded to ``_HEADER`` bytes."""
    stop = rows * file.row_bytes
    header: dict[str, Any] = {
        "embeddings": {"dtype": _SAFETENSORS[file.dtype], "shape": [rows, file.width], "data_offsets": [0, stop]}
    }
    if file.dtype == "int8":
        header["scales"] = {"dtype": "F32", "shape": [rows], "data_offsets": [stop, stop + 4 * rows]}
    return (_HEADER - 8).to_bytes(8, "little") + json.dumps(header).encode("ascii").ljust(_HEADER - 8)


def _pyarrow() -> Any:
    with needs("pyarrow", "parquet", "writing .parquet files"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def _write_parquet(file: VectorFile, rows: int) -> None:
    """Copy the partial file's rows into a parquet file, a row group at a time."""
    pa = _pyarrow()
    numbers = {"float32": pa.float32(), "float16": pa.float16(), "int8": pa.int8()}[file.dtype]
    fields = [pa.field("embedding", pa.list_(numbers, file.width), nullable=False)]
    if file.dtype == "int8":
        fields.append(pa.field("scale", pa.float32(), nullable=False))
    schema = pa.schema(fields)
    dtype = np.dtype(_NUMPY[file.dtype])
    with (
        whole_file(file.path) as temporary,
        file.partial.open("rb") as source,
        file.partial_scales.open("rb") as scales,
        pa.parquet.ParquetWriter(temporary, schema, compression="none", use_dictionary=False) as writer,
    ):
        source.seek(_HEADER)
        scales.seek(_HEADER)
        for start in range(0, rows, _GROUP):
            count = min(_GROUP, rows - start)
            flat = np.frombuffer(source.read(count * file.row_bytes), dtype)
            columns = [pa.FixedSizeListArray.from_arrays(pa.array(flat), type=fields[0].type)]
            if file.dtype == "int8":
                columns.append(pa.array(np.frombuffer(scales.read(count * 4), np.float32)))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
