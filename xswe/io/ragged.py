"""Ragged arrays: many texts, or many bags of unit ids, as one flat array and the offsets of its rows.

Mapped arrays keep no more in this process's memory than is in use. The system charges the pages of a mapped file to a
process once it has touched them, and loads many at a time: with large folios, two megabytes for one row of a kilobyte.
Code that walks through a mapped array releases its pages now and then (they stay in the system's cache); code that needs
single spans reads them from the file instead.
"""

from __future__ import annotations

import io
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from xswe.errors import XsweError, brief


def mapped(array: np.ndarray) -> bool:
    """Return True if an array is memory-mapped from a file."""
    return isinstance(array, np.memmap) and array.mode == "r" and array.size > 0


def release(*arrays: np.ndarray) -> None:
    """Release the pages of mapped arrays; they are read again from the system's cache when needed."""
    for array in arrays:
        if mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
            array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def forget(path: Path) -> None:
    """Evict a file that will not be read again from the page cache, to make room for writes."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Spans:
    """Reads spans of a mapped array from its file; the array is C-contiguous and :func:`mapped`, of any shape."""

    def __init__(self, array: np.memmap) -> None:
        whole = np.frombuffer(array._mmap, np.uint8)  # type: ignore[attr-defined]
        page = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # where in the file the mapping begins
        self._first = page + array.ctypes.data - whole.ctypes.data
        self._size = array.itemsize
        self._path = str(array.filename)
        self._file = open(self._path, "rb", buffering=0)  # noqa: SIM115 (closed with this object)

    @classmethod
    def of(cls, array: np.ndarray) -> Spans | None:
        """Return a reader of an array, or None if it is in memory or the system cannot read at file offsets."""
        if not mapped(array) or not array.flags.c_contiguous or not hasattr(os, "pread"):
            return None
        return cls(array)  # type: ignore[arg-type]

    def read(self, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        """Read ``out[places[i]:places[i + 1]] = array.ravel()[starts[i]:...]`` for every i; XsweError: the file shrank.

        ``starts`` (n,) and the ascending ``places`` (n + 1,) are int64 and count elements; ``out`` is C-contiguous, of
        the same type.
        """
        from xswe.io.compiler import read_spans  # loads compiled code, which small jobs do without

        into = out.reshape(-1).view(np.uint8)
        if not read_spans(self._file.fileno(), self._first + self._size * starts, self._size * places, into):
            raise XsweError(f"{self._path}: cannot be read to its end; it was changed while in use")

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def bounds_of(sizes: Any) -> np.ndarray:
    """Return the offsets, int64 (n + 1,), of consecutive spans of these sizes."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def _take(values: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a copy of the values of some rows, one after the other, and their offsets."""
    rows = np.asarray(rows, np.int64)
    starts = np.asarray(offsets)[rows]
    sizes = np.asarray(offsets)[rows + 1] - starts
    places = bounds_of(sizes)
    out, shifts = np.empty(places[-1], values.dtype), starts - places[:-1]
    for start in range(0, len(rows), 1 << 16):  # an index takes up to eight times the bytes it selects
        block = slice(start, start + (1 << 16))
        low, high = places[start], places[min(block.stop, len(rows))]
        source = np.repeat(shifts[block], sizes[block])
        source += np.arange(low, high)
        out[low:high] = values[source]
    return out, places


class _Ragged:
    """Base of texts and bags: one flat array, and the offset at which each row begins."""

    offsets: np.ndarray
    _flat: ClassVar[tuple[str, str]]  # the flat array's name as an attribute, and in file names

    if TYPE_CHECKING:

        def __init__(self, flat: np.ndarray, offsets: np.ndarray) -> None: ...

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The size of both arrays in bytes."""
        return int(getattr(self, self._flat[0]).nbytes + self.offsets.nbytes)

    def release(self) -> None:
        """Release the memory of mapped arrays until they are read again."""
        release(getattr(self, self._flat[0]), self.offsets)

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.bytes.npy`` (``ids`` of bags) and ``<name>.offsets.npy`` into ``folder``."""
        np.save(folder / f"{name}.{self._flat[1]}.npy", getattr(self, self._flat[0]))
        np.save(folder / f"{name}.offsets.npy", self.offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> Self:
        """Memory-map what :meth:`save` wrote."""
        return cls(*(np.load(folder / f"{name}.{kind}.npy", mmap_mode="r") for kind in (cls._flat[1], "offsets")))

    @classmethod
    def joined(cls, parts: Sequence[Self], kind: type[np.generic]) -> Self:
        """Concatenate several; ``kind`` is the array's type if there are none."""
        ends = np.cumsum([0, *(part.offsets[-1] - part.offsets[0] for part in parts)])
        offsets = [part.offsets[1:] - part.offsets[0] + end for part, end in zip(parts, ends, strict=False)]
        flat = [getattr(part, cls._flat[0]) for part in parts] or [np.zeros(0, kind)]
        return cls(np.concatenate(flat), np.concatenate([np.zeros(1, np.int64), *offsets]))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view: functions would be compiled once more for writable arrays."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Texts(_Ragged, Sequence[str]):
    """A sequence of strings, stored as one array of UTF-8 bytes: text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    A Python string costs some 50 bytes on top of its characters, and a pointer to follow; a million sentences as
    ``Texts`` are two arrays that can be memory-mapped and passed to compiled code as they are.
    """

    data: np.ndarray  # uint8 (bytes,)
    offsets: np.ndarray  # int64 (n + 1,)
    _flat: ClassVar[tuple[str, str]] = ("data", "bytes")

    @classmethod
    def of(cls, strings: Iterable[str]) -> Texts:
        """Pack strings; a lone surrogate (which UTF-8 cannot carry) becomes ``?``."""
        if isinstance(strings, Texts):
            return strings
        strings = strings if isinstance(strings, Sequence) else list(strings)
        try:
            packed = list(map(str.encode, strings))
        except UnicodeEncodeError:
            packed = [string.encode("utf-8", "replace") for string in strings]
        return cls.packed(packed)

    @classmethod
    def packed(cls, texts: Sequence[bytes]) -> Texts:
        """Store strings that are UTF-8 already."""
        return cls(np.frombuffer(b"".join(texts), np.uint8), bounds_of(np.fromiter(map(len, texts), np.int64, len(texts))))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            stop = max(start, stop)
            low, high = self.offsets[start], self.offsets[stop]
            return Texts(self.data[low:high], self.offsets[start : stop + 1] - low)
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        step = 4096
        for start in range(0, len(self), step):
            block = self[start : start + step]
            raw, bounds = block.data.tobytes(), block.offsets.tolist()
            for low, high in pairwise(bounds):
                yield raw[low:high].decode("utf-8")

    @property
    def frozen(self) -> tuple[np.ndarray, np.ndarray]:
        """Both arrays as read-only views: functions are then compiled once, wherever the texts come from."""
        return read_only(self.data), read_only(self.offsets)

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each text, int64 (n,)."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> Texts:
        """Return the texts of ``rows``, in that order, as a copy."""
        return Texts(*_take(self.data, self.offsets, rows))


def concatenate(parts: Sequence[Texts]) -> Texts:
    """Join several ``Texts`` into one."""
    return Texts.joined(parts, np.uint8)


_IDS_PER_COUNT = 1 << 22


def id_type(units: int) -> type[np.generic]:
    """Return the type in which the ids of ``units`` units are stored on the disk: uint16 if they fit, or int32."""
    return np.uint16 if units <= 1 << 16 else np.int32


@dataclass(frozen=True, eq=False)
class Bags(_Ragged):
    """Unit ids of ``n`` texts, in text order: text ``i`` has the units ``ids[offsets[i]:offsets[i + 1]]``."""

    ids: np.ndarray  # int32 (units,), or of the `id_type` of a file
    offsets: np.ndarray  # int64 (n + 1,)
    _flat: ClassVar[tuple[str, str]] = ("ids", "ids")

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Bags:
        """Flatten lists of ids."""
        offsets = bounds_of([len(one) for one in lists])
        ids = np.fromiter((i for one in lists for i in one), np.int32, count=int(offsets[-1]))
        return cls(ids, offsets)

    @property
    def lengths(self) -> np.ndarray:
        """Units of each text, int64 (n,)."""
        return np.diff(self.offsets)

    def block(self, start: int, stop: int) -> Bags:
        """Return texts ``start`` to ``stop`` as a view of the ids."""
        stop = min(stop, len(self))
        low, high = self.offsets[start], self.offsets[stop]
        return Bags(self.ids[low:high], self.offsets[start : stop + 1] - low)

    def take(self, rows: np.ndarray) -> Bags:
        """Return the bags of ``rows``, in that order, as a copy with ids of int32."""
        ids, offsets = _take(self.ids, self.offsets, rows)
        return Bags(ids.astype(np.int32, copy=False), offsets)

    def counts(self, size: int) -> np.ndarray:
        """Count the occurrences of each of ``size`` ids, int64 (size,)."""
        out = np.zeros(size, np.int64)
        for start in range(0, len(self.ids), _IDS_PER_COUNT):  # in blocks, as numpy makes a copy of eight bytes an id
            out += np.bincount(self.ids[start : start + _IDS_PER_COUNT], minlength=size)
            release(self.ids)
        return out


@dataclass(frozen=True, eq=False)
class LocatedBags:
    """Bags with the position of each unit in its text."""

    bags: Bags  # the unit ids
    starts: np.ndarray  # int32 (units,), first character of each unit in its original text
    ends: np.ndarray  # int32 (units,), one past its last character; never blank at either end


def concatenate_bags(parts: Sequence[Bags]) -> Bags:
    """Join several ``Bags`` into one; return a single one as it is."""
    return parts[0] if len(parts) == 1 else Bags.joined(parts, np.int32)


_ROWS_AT_A_TIME = 8192


class TextView(Sequence[str]):
    """Rows of one or several ``Texts``, one after the other; each part comes with its ascending rows, or None for all.

    It reads like ``Texts``: a slice is a ``Texts`` (a copy of its rows), an index a string.
    """

    def __init__(self, parts: Sequence[tuple[Texts, np.ndarray | None]]) -> None:
        self._parts = list(parts)
        sizes = [len(texts) if rows is None else len(rows) for texts, rows in self._parts]
        self._starts = bounds_of(sizes)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._range(start, max(start, stop)) if step == 1 else self.take(np.arange(start, stop, step))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        part = int(np.searchsorted(self._starts, index, "right")) - 1
        texts, rows = self._parts[part]
        place = index - int(self._starts[part])
        return texts[place if rows is None else int(rows[place])]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _ROWS_AT_A_TIME):
            yield from self[start : start + _ROWS_AT_A_TIME]

    def _range(self, start: int, stop: int) -> Texts:
        pieces = []
        for (texts, rows), first, last in zip(self._parts, self._starts[:-1], self._starts[1:], strict=True):
            low, high = max(start, int(first)) - int(first), min(stop, int(last)) - int(first)
            if low < high:
                pieces.append(texts[low:high] if rows is None else _rows_of(texts, rows[low:high]))
        return pieces[0] if len(pieces) == 1 else concatenate(pieces)

    def release(self) -> None:
        """Release the memory of mapped texts until they are read again."""
        for texts, rows in self._parts:
            texts.release()
            if rows is not None:
                release(rows)

    def take(self, rows: np.ndarray) -> Texts:
        """Return the texts of ``rows``, in that order, as a copy."""
        rows = np.asarray(rows, np.int64)
        part = np.searchsorted(self._starts, rows, "right") - 1
        pieces, order = [], []
        for number, (texts, chosen) in enumerate(self._parts):
            here = np.flatnonzero(part == number)
            places = rows[here] - self._starts[number]
            pieces.append(texts.take(places if chosen is None else np.asarray(chosen)[places]))
            order.append(here)
        if len(pieces) == 1:
            return pieces[0]
        inverse = np.empty(len(rows), np.int64)
        inverse[np.concatenate(order)] = np.arange(len(rows))
        return concatenate(pieces).take(inverse)


def _rows_of(texts: Texts, rows: np.ndarray) -> Texts:
    """Return the texts of ascending rows, as a view if the rows have no gaps."""
    if int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return texts[int(rows[0]) : int(rows[-1]) + 1]
    return texts.take(rows)


def joined(sides: Sequence[Texts | TextView]) -> Texts | TextView:
    """Return several sides one after the other, without a copy."""
    if len(sides) == 1:
        return sides[0]
    return TextView([part for side in sides for part in (side._parts if isinstance(side, TextView) else [(side, None)])])


# Files of such arrays under construction.

HEADER = 128  # bytes of the .npy header of an array of one or two dimensions and simple type, whatever its length


def header_of(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the header of a ``.npy`` file; numpy leaves room in it for the length to grow."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def rows_in_header(path: Path, dtype: np.dtype, row: tuple[int, ...]) -> int:
    """Return the number of rows in the header of a ``.npy`` file; raise ValueError if its rows are of another kind."""
    with open(path, "rb") as stream:
        head = stream.read(HEADER)
    try:
        np.lib.format.read_magic(opened := io.BytesIO(head))
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(opened)
    except Exception as error:  # whatever numpy raises for a damaged header
        raise ValueError(f"its header is damaged: {brief(error, 80)}") from None
    if opened.tell() != HEADER or by_columns or kind != dtype or shape[1:] != row or not shape:
        raise ValueError(f"its header says {kind} {shape}")
    return int(shape[0])


class GrowingArray:
    """A ``.npy`` file under construction, with rows of the shape ``row``; the first ``size`` existing rows are kept."""

    def __init__(self, path: Path, dtype: Any, size: int = 0, row: tuple[int, ...] = ()) -> None:
        self._dtype, self._row, self.size = np.dtype(dtype), row, size
        self._stream = open(path, "r+b" if size else "w+b")  # noqa: SIM115 (closed by close)
        self._write_header()  # before cutting the file, so that the header never promises more rows than there are
        self._stream.truncate(HEADER + size * self._dtype.itemsize * math.prod(row))
        self._stream.seek(0, os.SEEK_END)

    def append(self, values: np.ndarray) -> None:
        """Add rows at the end."""
        values = np.ascontiguousarray(values, self._dtype)
        self._stream.write(values.data)
        self.size += len(values)

    def sync(self) -> None:
        """Flush the appended data to disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Write the final length and close the file."""
        if not self._stream.closed:
            self._write_header()
            self.sync()
            self._stream.close()

    def abandon(self) -> None:
        """Close the file, unless it is closed, without updating the length in its header."""
        self._stream.close()

    def _write_header(self) -> None:
        self._stream.seek(0)
        self._stream.write(header_of(self._dtype, (self.size, *self._row)))


class FlatWriter:
    """Writes the two arrays of a ``Texts`` (``bytes``) or a ``Bags`` (``ids``) block by block.

    ``state`` is how many existing rows and values to keep, as returned by :attr:`state`.
    """

    def __init__(self, folder: Path, name: str, part: str, dtype: Any, state: tuple[int, int] = (0, 0)) -> None:
        rows, values = state
        self._values = GrowingArray(folder / f"{name}.{part}.npy", dtype, values)
        self._offsets = GrowingArray(folder / f"{name}.offsets.npy", np.int64, rows + 1 if rows else 0)
        if not rows:
            self._offsets.append(np.zeros(1, np.int64))

    @property
    def state(self) -> tuple[int, int]:
        """Rows and values written."""
        return self._offsets.size - 1, self._values.size

    def append(self, values: np.ndarray, offsets: np.ndarray) -> None:
        """Add rows: all their values, and their offsets (n + 1,)."""
        self._offsets.append(np.asarray(offsets[1:]) + (self._values.size - int(offsets[0])))
        self._values.append(values)

    def sync(self) -> None:
        """Flush the appended data to disk."""
        self._values.sync()
        self._offsets.sync()

    def close(self) -> None:
        """Finish both files."""
        self._values.close()
        self._offsets.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def text_writer(folder: Path, name: str, state: tuple[int, int] = (0, 0)) -> FlatWriter:
    """Return a writer of the files that ``Texts.open`` maps."""
    return FlatWriter(folder, name, "bytes", np.uint8, state)


def bag_writer(folder: Path, name: str, units: int) -> FlatWriter:
    """Return a writer of the files that ``Bags.open`` maps, for ids below ``units``."""
    return FlatWriter(folder, name, "ids", id_type(units))


def append_texts(writer: FlatWriter, texts: Texts) -> None:
    """Add texts to a writer."""
    writer.append(texts.data, texts.offsets)


def map_unfinished(folder: Path, name: str, state: tuple[int, int]) -> Texts:
    """Memory-map texts under construction, whose headers do not have the length yet."""
    rows, values = state
    data = np.memmap(folder / f"{name}.bytes.npy", np.uint8, "r", HEADER, (values,)) if values else np.zeros(0, np.uint8)
    return Texts(data, np.memmap(folder / f"{name}.offsets.npy", np.int64, "r", HEADER, (rows + 1,)))
