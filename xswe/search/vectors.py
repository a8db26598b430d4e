"""Vectors to search, in memory or on disk, stored as float32, float16 or int8, read in blocks of float32 unit vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np

from xswe.errors import ConfigError, InputError
from xswe.io.checksums import Blocks
from xswe.io.files import whole_file
from xswe.io.products import norms
from xswe.io.ragged import GrowingArray, Spans, Texts, read_only, release
from xswe.io.settings import check_choice, for_all
from xswe.model.ensemble import AnyModel
from xswe.model.kernels import copy_rows, divide_rows
from xswe.progress import bar

Storage = Literal["float32", "float16", "int8"]
STORAGES: dict[str, type] = for_all(Storage, {"float32": np.float32, "float16": np.float16, "int8": np.int8})
_ENCODED = 16_384  # texts encoded at a time
_MAX_MAPPED = 1 << 26  # bytes of a mapped file to keep in this process's memory


def check_storage(storage: str) -> type:
    """Return the numpy type of a storage, or raise ConfigError."""
    check_choice("storage", storage, Storage)
    return STORAGES[storage]


def quantise(vectors: np.ndarray, storage: Storage) -> np.ndarray:
    """Convert float32 (n, d) vectors for storage; int8 keeps only the direction, scaling the largest coordinate to 127."""
    if check_storage(storage) is not np.int8:
        return vectors.astype(STORAGES[storage], copy=False)
    largest = np.abs(vectors).max(1, keepdims=True) if vectors.size else np.ones((len(vectors), 1), np.float32)
    return np.rint(vectors * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)


class Vectors:
    """Unit vectors that may be larger than memory.

    Args:
        array: (n, d) of float32, float16 or int8, in memory or memory-mapped. Rows of float32 are used as they are (unit
            vectors, or zero); rows of float16 and int8 are scaled to norm 1 when they are read.

    Raises:
        ConfigError: the array has another shape or type.
    """

    def __init__(self, array: np.ndarray) -> None:
        if array.ndim != 2 or array.dtype.type not in STORAGES.values():
            raise ConfigError(f"vectors are {array.dtype} {array.shape}: expected (n, d) of {', '.join(STORAGES)}")
        self.array = array
        self._spans = Spans.of(array)
        self._touched = 0

    @classmethod
    def open(cls, path: str | Path) -> Vectors:
        """Memory-map a ``.npy`` file, or raise InputError."""
        try:
            return cls(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise InputError(path, f"no array of vectors ({error})", "give a .npy file of vectors") from None

    def __len__(self) -> int:
        return len(self.array)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.array.shape[1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start`` to ``stop`` as float32 (n, d), a view if the array is float32 in memory."""
        part = self.array[start:stop]
        if self._spans is None:
            return self._unit(part)
        out = self._unit(np.array(part))
        self._touched += part.nbytes
        if self._touched >= _MAX_MAPPED:
            release(self.array)
            self._touched = 0
        return out

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the given rows as float32 (n, d)."""
        if self._spans is not None:
            found = np.empty((len(rows), self.dim), self.array.dtype)
            self._spans.read(rows.astype(np.int64) * self.dim, np.arange(len(rows) + 1) * self.dim, found)
            return self._unit(found)
        if self.array.dtype == np.float32 and self.array.flags.c_contiguous:
            out = np.empty((len(rows), self.dim), np.float32)
            copy_rows(read_only(self.array), rows.astype(np.int64, copy=False), out)
            return out
        return self._unit(self.array[rows])

    def at_hand(self) -> Vectors:
        """Return the same vectors for repeated reading; those of a file stay mapped, in pages that processes share."""
        return Vectors(np.asarray(self.array))

    @staticmethod
    def _unit(rows: np.ndarray) -> np.ndarray:
        """Convert rows of any storage to float32 unit vectors."""
        if rows.dtype == np.float32:
            return np.ascontiguousarray(rows)
        out = rows.astype(np.float32, order="C")
        divide_rows(out, norms(out))
        return out

    def blocks(self, rows: int = 16_384) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, block of rows as float32)."""
        for start in range(0, len(self), rows):
            yield start, self.read(start, start + rows)

    def digest(self) -> str:
        """Return a fingerprint of the shape and the numbers."""
        state = blake2b(repr(self.array.shape).encode(), digest_size=16)
        for _, block in self.blocks():
            state.update(block.data)
        return state.hexdigest()


class CheckedVectors(Vectors):
    """Vectors of a file whose blocks are checked against their checksums when first read.

    Args:
        array: see :class:`Vectors`.
        blocks: the checksums of its blocks.
    """

    def __init__(self, array: np.ndarray, blocks: Blocks) -> None:
        super().__init__(array)
        self._blocks = blocks

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows as :meth:`Vectors.read` does, or raise ModelError if they are damaged."""
        self._blocks.check_rows(np.arange(start, min(stop, len(self))), self.array.strides[0])
        return super().read(start, stop)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as :meth:`Vectors.take` does, or raise ModelError if they are damaged."""
        self._blocks.check_rows(rows, self.array.strides[0])
        return super().take(rows)


def as_vectors(given: Vectors | np.ndarray | str | Path) -> Vectors:
    """Return vectors, given as such, as an array or as the path of a ``.npy`` file."""
    if isinstance(given, Vectors):
        return given
    return Vectors(given) if isinstance(given, np.ndarray) else Vectors.open(given)


class VectorWriter(GrowingArray):
    """A growing ``.npy`` file of vectors in one of the storages, which are appended as float32 (n, d)."""

    def __init__(self, path: Path, dim: int, storage: Storage) -> None:
        self._storage = storage
        super().__init__(path, STORAGES[storage], row=(dim,))

    def append(self, values: np.ndarray) -> None:
        """Add vectors at the end."""
        super().append(quantise(values, self._storage))


def encoded_to(
    path: Path, model: AnyModel, texts: Texts, storage: Storage, threads: int, rows: np.ndarray | None = None
) -> Vectors:
    """Encode texts, or only some rows of them, into a file and memory-map it; memory does not grow with their number."""
    rows = np.arange(len(texts)) if rows is None else rows
    with (
        whole_file(path) as temporary,  # without working locks another process may be writing the same
        closing(VectorWriter(temporary, model.dim, storage)) as writer,
        bar("encode", len(rows), unit="line") as progress,
    ):
        for start in range(0, len(rows), _ENCODED):
            part = rows[start : start + _ENCODED]
            writer.append(model.encode(texts.take(part), threads=threads))
            progress.update(len(part))
    return Vectors.open(path)
