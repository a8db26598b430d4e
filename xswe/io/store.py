"""Arrays on disk that grow block by block, and the state of unfinished work.

Flat arrays on disk that grow block by block, survive a kill, and are memory-mapped when they are whole.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from xswe.errors import XsweError
from xswe.io.files import whole_file
from xswe.io.ragged import Texts, id_type

HEADER = 128  # bytes of the .npy header of an array of one or two dimensions and simple type, whatever its length


class GrowingArray:
    """A ``.npy`` file under construction.

    Args:
        path: the file.
        dtype: of its values.
        size: rows to keep of what is there; the rest is cut off.
        row: the shape of a row.
    """

    def __init__(self, path: Path, dtype: Any, size: int = 0, row: tuple[int, ...] = ()) -> None:
        self._dtype, self._row, self.size = np.dtype(dtype), row, size
        self._stream = open(path, "r+b" if size else "w+b")  # noqa: SIM115 (closed by close)
        if not size:
            self._write_header()
        self._stream.truncate(HEADER + size * self._dtype.itemsize * math.prod(row))
        self._stream.seek(0, os.SEEK_END)

    def append(self, values: np.ndarray) -> None:
        """Add rows at the end."""
        values = np.ascontiguousarray(values, self._dtype)
        self._stream.write(values.data)
        self.size += len(values)

    def sync(self) -> None:
        """Bring what was added so far to the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Write the final length and close the file."""
        if not self._stream.closed:
            self._write_header()
            self.sync()
            self._stream.close()

    def _write_header(self) -> None:
        # numpy leaves room in the header for the length to grow.
        self._stream.seek(0)
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.size, *self._row)}
        np.lib.format.write_array_header_1_0(self._stream, description)


class FlatWriter:
    """Writes the two arrays of a ``Texts`` (``bytes``) or a ``Bags`` (``ids``) block by block.

    Args:
        folder: where to write.
        name: the files' name.
        part: ``bytes`` or ``ids``.
        dtype: of the values.
        state: rows and values to keep of what is there, as :attr:`state` gave them.
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
        """Add rows: all their values, and (n + 1,) where each starts."""
        self._offsets.append(np.asarray(offsets[1:]) + (self._values.size - int(offsets[0])))
        self._values.append(values)

    def sync(self) -> None:
        """Bring what was added so far to the disk."""
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
    """Memory-map texts under construction, whose headers do not tell their length yet."""
    rows, values = state
    data = np.memmap(folder / f"{name}.bytes.npy", np.uint8, "r", HEADER, (values,)) if values else np.zeros(0, np.uint8)
    return Texts(data, np.memmap(folder / f"{name}.offsets.npy", np.int64, "r", HEADER, (rows + 1,)))


# One file that holds all that a killed run needs to go on: arrays, and a few values in JSON.


def save_checkpoint(path: Path, identity: str, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: the file.
        identity: names everything that decides the run.
        arrays: what is large.
        values: what is small, as JSON values.
    """
    from safetensors.numpy import save_file

    with whole_file(path) as temporary:
        save_file(dict(arrays), temporary, {"identity": identity, "values": json.dumps(values)})


def load_checkpoint(path: Path | None, identity: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Read a checkpoint; None if there is none, or it is another run's.

    Raises:
        XsweError: the file is damaged.
    """
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    if path is None or not path.exists():
        return None
    try:
        with safe_open(path, "np") as opened:
            found = opened.metadata() or {}
        return (load_file(path), json.loads(found["values"])) if found.get("identity") == identity else None
    except SafetensorError as error:
        raise XsweError(f"{path}: damaged ({error}); remove the file to start again") from None
