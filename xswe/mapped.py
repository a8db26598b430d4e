"""Memory-mapped arrays of which no more stays in this process's memory than is in use.

The system counts the pages of a mapped file to a process once it has touched them, and brings many at a time: two
megabytes for one row of a kilobyte, with large folios. Whoever walks through a mapped array gives its pages back
now and then (they stay in the system's cache); whoever picks single spans reads them from the file instead.
"""

from __future__ import annotations

import mmap
import os

import numpy as np

from xswe.errors import XsweError


def mapped(array: np.ndarray) -> bool:
    """Tell whether an array is read from a file that is mapped into memory."""
    return isinstance(array, np.memmap) and array.mode == "r" and array.size > 0


def release(*arrays: np.ndarray) -> None:
    """Give back the pages of those arrays that are mapped; they are read again from the system's cache when needed."""
    for array in arrays:
        if mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
            array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class Spans:
    """Reads spans of a mapped array from its file.

    Args:
        array: C-contiguous and :func:`mapped`, of any shape.
    """

    def __init__(self, array: np.memmap) -> None:
        whole = np.frombuffer(array._mmap, np.uint8)  # type: ignore[attr-defined]
        page = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # where in the file the mapping begins
        self._first = page + array.ctypes.data - whole.ctypes.data
        self._size = array.itemsize
        self._path = str(array.filename)
        self._file = open(self._path, "rb", buffering=0)  # noqa: SIM115 (closed with this object)

    @classmethod
    def of(cls, array: np.ndarray) -> Spans | None:
        """Return a reader of an array, or None if it lies in memory or the system cannot read at a place of a file."""
        if not mapped(array) or not array.flags.c_contiguous or not hasattr(os, "pread"):
            return None
        return cls(array)  # type: ignore[arg-type]

    def read(self, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        """Read ``out[places[i]:places[i + 1]] = array.ravel()[starts[i]:...]`` for every i.

        Args:
            starts: int64 (n,), numbers of elements.
            places: int64 (n + 1,), numbers of elements, rising.
            out: C-contiguous, of the array's type.

        Raises:
            XsweError: the file became shorter.
        """
        from xswe.memory import read_spans  # compiled code, which small work starts without

        into = out.reshape(-1).view(np.uint8)
        if not read_spans(self._file.fileno(), self._first + self._size * starts, self._size * places, into):
            raise XsweError(f"{self._path}: cannot be read to its end; it was changed while in use")

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()
