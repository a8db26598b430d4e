"""Files of sentence vectors, written block by block by several threads, and taken up again after a kill.

The rows go straight to their places in a partial file beside the output, behind room for a header, so that memory does
not grow with them. A journal says how many rows are safely on the disk, and a digest of the lines they came from. At the
end the header is filled in and the file renamed (``.npy``, ``.safetensors``), or its rows are copied into ``.parquet``.

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
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xswe.errors import ConfigError, InputError, needs, no_room
from xswe.io.files import let_go, lock, sibling, whole_file
from xswe.io.ragged import Texts
from xswe.model.folder import PRECISIONS, check_precision, convert
from xswe.progress import every
from xswe.work import kept
from xswe.work.records import Checksum, sound_record, write_record

logger = logging.getLogger(__name__)
SUFFIXES = (".npy", ".safetensors", ".parquet")
_turn = threading.Lock()  # of the threads that write, where the system cannot write at a place of a file
_HEADER = 512  # bytes before the first row
_STEP = 0x9E3779B97F4A7C15  # between the factors of rows, nearly
_GROUP = 1 << 16  # rows of a row group
_NUMPY = dict(zip(PRECISIONS, ("<f4", "<f2", "|i1"), strict=True))
_SAFETENSORS = dict(zip(PRECISIONS, ("F32", "F16", "I8"), strict=True))


@dataclass(frozen=True)
class VectorFile:
    """What is to be written.

    Attributes:
        path: where; the suffix chooses the format.
        width: dimensions of a row.
        dtype: the precision.
        own: whether each process has an unfinished file of its own, which none goes on with.
    """

    path: Path
    width: int
    dtype: str
    own: bool = False

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
        """The rows written so far."""
        return sibling(self.path, crowded=True) if self.own else self.path.with_name(f".{self.path.name}.partial")

    @property
    def partial_scales(self) -> Path:
        """Their scales."""
        own = sibling(self.scales, crowded=True) if self.own else None
        return own or self.path.with_name(f".{self.path.name}.scales.partial")

    @property
    def journal(self) -> Path:
        """What is known to be on the disk."""
        return self.path.with_name(f".{self.path.name}.journal.json")

    @property
    def scales(self) -> Path:
        """Where the scales of an int8 ``.npy`` are."""
        return self.path.with_name(f"{self.path.stem}.scales.npy")

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.width * np.dtype(_NUMPY[self.dtype]).itemsize


class VectorWriter:
    """An open partial file; made by :func:`open_writer`.

    Attributes:
        kept: rows that an earlier, killed run wrote; the input's first ``kept`` lines need no encoding.
        rows: rows whose place is taken so far.
    """

    def __init__(self, file: VectorFile, signature: str, rows: BinaryIO, scales: BinaryIO) -> None:
        self.file, self._signature, self._rows, self._scales = file, signature, rows, scales
        self._notes = _sound_notes(file, signature)
        self.kept, self._kept_digest, self._checksum = self._notes[-1] if self._notes else (0, "", 0)
        if self.kept:
            kept.keep(file.journal, f"after {self.kept:,} lines")
        self.rows, self._digest = 0, b""
        self._due = every(kept.BRIEF)

    def admit(self, texts: Texts, source: str) -> tuple[int, str] | None:
        """Take the next block of lines in; call this for all blocks, in order, on one thread.

        Returns:
            The first row of the block and the digest of all lines up to its end, or None if the block is there already.

        Raises:
            InputError: the lines are not those that the killed run had read.
        """
        first, self.rows = self.rows, self.rows + len(texts)
        state = blake2b(self._digest, digest_size=16)
        state.update(texts.data.tobytes())
        state.update(texts.sizes.tobytes())
        self._digest = state.digest()
        if first >= self.kept:
            return first, self._digest.hex()
        if self.rows >= self.kept and (self.rows > self.kept or self._digest.hex() != self._kept_digest):
            raise InputError(
                source,
                f"is not the text that the interrupted run of {self.file.path} had read",
                f"give the same text, or remove {self.file.journal} to start anew",
            )
        return None

    def write(self, first: int, vectors: np.ndarray) -> int:
        """Write float32 rows from row ``first`` on; threads may call this at the same time. Return their checksum."""
        numbers, scales = convert(vectors, self.file.dtype)
        _write_at(self._rows, numbers, _HEADER + first * self.file.row_bytes)
        if scales is None:
            return _checksum(numbers, first)
        _write_at(self._scales, scales, _HEADER + first * scales.itemsize)
        return _checksum(numbers, first) + _checksum(scales, first)

    def append(self, part: VectorFile) -> dict[Path, int]:
        """Copy the rows of another file of vectors, an ``.npy`` that :func:`open_writer` made.

        Returns:
            The checksum of each of its files, as it was read.
        """
        rows, found = (part.path.stat().st_size - _HEADER) // max(1, self.file.row_bytes), {}
        pairs = [(part.path, self._rows, self.file.row_bytes)]
        if self.file.dtype == "int8":
            pairs.append((part.scales, self._scales, 4))
        for path, stream, size in pairs:
            with path.open("rb", buffering=0) as source:
                found[path] = _copy(source, stream, _HEADER + self.rows * size)
        self.rows += rows
        return found

    def save(self, rows: int, digest: str, checksum: int) -> None:
        """Note now and then that all rows before ``rows`` are written, the last of them of this checksum."""
        self._checksum = (self._checksum + checksum) % 2**64
        if self._due():
            os.fsync(self._rows.fileno())
            os.fsync(self._scales.fileno())
            self._notes.append((rows, digest, self._checksum))
            write_record(self.file.journal, self._signature, notes=self._notes)
            kept.keep(self.file.journal, f"after {rows:,} lines")

    def finish(self) -> None:
        """Make the output of the partial files; it appears whole."""
        if self.rows < self.kept:
            raise ConfigError(
                f"the input has {self.rows:,} lines, and the interrupted run of {self.file.path} had read {self.kept:,}; "
                f"give the same text, or remove {self.file.journal} to start anew"
            )
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


@contextmanager
def open_writer(file: VectorFile, signature: str) -> Iterator[VectorWriter]:
    """Open a file of vectors, or take up what a killed run left of it.

    When the block ends the output is there. When it raises, the partial file and the journal stay for the next run, unless
    they are this process's own or its signature is another; it names all that the vectors depend on but the lines.

    Raises:
        ConfigError: another process is writing the same output.
    """
    file.path.parent.mkdir(parents=True, exist_ok=True)
    for path in (file.partial, file.partial_scales):
        path.touch()
    with file.partial.open("r+b") as rows, file.partial_scales.open("r+b") as scales:
        lock(rows, f"output={file.path}: another process is writing it; wait, or give another name")
        writer = VectorWriter(file, signature, rows, scales)
        rows.truncate(_HEADER + writer.kept * file.row_bytes)
        scales.truncate(_HEADER + writer.kept * 4)
        over = file.own
        try:
            yield writer
            writer.finish()
            over = True
        finally:
            if over:
                let_go(rows, scales)
                for path in (file.journal, file.partial, file.partial_scales):
                    path.unlink(missing_ok=True)


def _sound_notes(file: VectorFile, signature: str) -> list[tuple[int, str, int]]:
    """Return the notes of an earlier run up to the last row that is what it wrote: rows, digest of lines, checksum."""
    found, checksum, first = list[tuple[int, str, int]](), 0, 0
    noted = None if file.own else sound_record(file.journal, signature)
    for rows, digest, expected in noted["notes"] if noted else ():
        checksum = (checksum + _read_checksum(file, first, rows)) % 2**64
        if checksum != expected:
            logger.warning("%s: damaged since it was written; going on after row %d", file.partial, first)
            break
        found.append((rows, digest, expected))
        first = rows
    if not found:
        file.journal.unlink(missing_ok=True)
    return found


def _read_checksum(file: VectorFile, first: int, last: int) -> int:
    """Return the checksum of some rows of an unfinished file; any other number where it ends before them."""
    total, kind = 0, np.dtype(_NUMPY[file.dtype])
    parts = [(file.partial, kind, file.width)] + [(file.partial_scales, np.dtype(np.float32), 1)] * (file.dtype == "int8")
    for path, of, width in parts:
        with path.open("rb") as stream:
            stream.seek(_HEADER + first * of.itemsize * width)
            for start in range(first, last, _GROUP):
                stop = min(last, start + _GROUP)
                data = stream.read((stop - start) * of.itemsize * width)
                if len(data) < (stop - start) * of.itemsize * width:
                    return -1
                total += _checksum(np.frombuffer(data, of).reshape(stop - start, width), start)
    return total


def _checksum(rows: np.ndarray, first: int) -> int:
    """Return a checksum of rows, of which those before them are left out: sums of parts are the checksum of the whole.

    It is the sum of each row's numbers, as integers, times an odd factor of its own, modulo 2^64: a change of any number
    changes it, and so do rows that were exchanged. It takes a hundredth of the time of encoding.
    """
    data = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    kind = next(kind for kind in ("u8", "u4", "u2", "u1") if data.shape[1] % int(kind[1]) == 0)
    factors = np.arange(first, first + len(rows), dtype=np.uint64) * np.uint64(_STEP) | np.uint64(1)
    return int((data.view(kind).sum(1, dtype=np.uint64) * factors).sum())


def _write_at(stream: BinaryIO, data: Any, place: int) -> None:
    """Write all bytes of an array (or bytes) at a place, without moving the stream."""
    left = data.reshape(-1).view(np.uint8).data if isinstance(data, np.ndarray) else memoryview(data)
    if not hasattr(os, "pwrite"):
        with _turn:
            stream.seek(place)
            stream.write(left)
            stream.flush()
        return
    while len(left):
        done = os.pwrite(stream.fileno(), left, place)
        left, place = left[done:], place + done


def _copy(source: BinaryIO, stream: BinaryIO, place: int) -> int:
    """Copy all behind a header to a place of another file; returns the checksum of all that was read.

    A storage of several machines copies by itself, where it can. On a disk of this one the system's own copy takes nearly
    twice the processor time of large pieces that go through memory into room that was asked for before. What was read is
    not kept in memory, so that what is written need not take fresh pages, which cost as much as the copy itself.
    """
    done, size, sink = _HEADER, os.fstat(source.fileno()).st_size, stream.fileno()
    own = not hasattr(os, "major") or os.major(os.fstat(sink).st_dev) > 0  # 0: no device, as of what a network serves
    try:
        if own and done < size:
            os.posix_fallocate(sink, place, size - done)
        while not own and done < size:
            moved = os.copy_file_range(source.fileno(), sink, size - done, done, place)
            done, place = done + moved, place + moved
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and no_room(error):
            raise
    source.seek(0)
    checksum, begin, behind = Checksum(), 0, done  # what a storage copied by itself is only read
    while read := source.readinto(room := checksum.room()):  # type: ignore[attr-defined]
        if begin + read > behind:
            skipped = max(0, behind - begin)
            _write_at(stream, room[skipped:read], place)
            place += read - skipped
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(source.fileno(), begin, read, os.POSIX_FADV_DONTNEED)
        checksum.added(read)
        begin += read
    return checksum.finish()


def _rename(stream: BinaryIO, partial: Path, path: Path) -> None:
    os.fsync(stream.fileno())
    let_go(stream)
    os.replace(partial, path)


def _npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return an array header of numpy's format 1.0, filled up to the room there is."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode("ascii")
    size = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1) + b"\n"


def _safetensors_header(file: VectorFile, rows: int) -> bytes:
    """Return a safetensors header, filled up to the room there is."""
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
