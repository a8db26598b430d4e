"""Settings and results of searches.

Vectors are in memory or on the disk, in float32, float16 or int8, read block by block as float32 unit vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from xswe.errors import ConfigError, InputError
from xswe.io.arguments import check_encoded
from xswe.io.checksums import Blocks
from xswe.io.files import whole_file
from xswe.io.parallel import available_threads
from xswe.io.products import norms, row_products
from xswe.io.ragged import GrowingArray, Spans, Texts, release
from xswe.io.results import Result
from xswe.io.settings import check_choice, for_all, refuse_unused
from xswe.model.ensemble import AnyModel
from xswe.model.kernels import copy_rows, divide_rows
from xswe.progress import bar

logger = logging.getLogger(__name__)
Storage = Literal["float32", "float16", "int8"]
STORAGES: dict[str, type] = for_all(Storage, {"float32": np.float32, "float16": np.float16, "int8": np.int8})
_ENCODED = 16_384  # texts encoded at a time
_MOST_MAPPED = 1 << 26  # bytes of a mapped file that stay in this process's memory


def check_storage(storage: str) -> type:
    """Return numpy's type of a storage, or raise a ConfigError."""
    check_choice("storage", storage, Storage)
    return STORAGES[storage]


def quantise(vectors: np.ndarray, storage: Storage) -> np.ndarray:
    """Convert float32 (n, d) vectors for storage; int8 keeps the direction only, its largest coordinate at 127."""
    if check_storage(storage) is not np.int8:
        return vectors.astype(STORAGES[storage], copy=False)
    largest = np.abs(vectors).max(1, keepdims=True) if vectors.size else np.ones((len(vectors), 1), np.float32)
    return np.rint(vectors * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)


class Vectors:
    """Unit vectors that may be larger than the memory.

    Args:
        array: (n, d) of float32, float16 or int8, in memory or memory-mapped. Rows of float32 are taken as they are (unit
            vectors, or zero); those of float16 and int8 are scaled to norm 1 again when they are read.

    Raises:
        ConfigError: an array of another shape or type.
    """

    def __init__(self, array: np.ndarray) -> None:
        if array.ndim != 2 or array.dtype.type not in STORAGES.values():
            raise ConfigError(f"vectors are {array.dtype} {array.shape}: expected (n, d) of {', '.join(STORAGES)}")
        self.array = array
        self._spans = Spans.of(array)
        self._touched = 0

    @classmethod
    def open(cls, path: str | Path) -> Vectors:
        """Memory-map a ``.npy`` file, or raise an InputError."""
        try:
            return cls(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise InputError(path, f"no array of vectors ({error})", "give a .npy file of vectors") from None

    def __len__(self) -> int:
        return len(self.array)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.array.shape[1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows ``start`` to ``stop`` as float32 (n, d); a view where the array is float32 in memory."""
        part = self.array[start:stop]
        if self._spans is None:
            return self._unit(part)
        out = self._unit(np.array(part))
        self._touched += part.nbytes
        if self._touched >= _MOST_MAPPED:
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
            copy_rows(self.array, rows, out)
            return out
        return self._unit(self.array[rows])

    def at_hand(self) -> Vectors:
        """Return the same vectors for rows that are read many times: of a file the pages, which processes share."""
        return Vectors(np.asarray(self.array))

    @staticmethod
    def _unit(rows: np.ndarray) -> np.ndarray:
        """Convert rows of any storage."""
        if rows.dtype == np.float32:
            return np.ascontiguousarray(rows)
        out = rows.astype(np.float32, order="C")
        divide_rows(out, norms(out))
        return out

    def blocks(self, rows: int = 16_384) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over (first row, block of rows as float32)."""
        for start in range(0, len(self), rows):
            yield start, self.read(start, start + rows)

    def digest(self) -> str:
        """Return a fingerprint of shape and numbers."""
        state = blake2b(repr(self.array.shape).encode(), digest_size=16)
        for _, block in self.blocks():
            state.update(block.data)
        return state.hexdigest()


class CheckedVectors(Vectors):
    """Vectors of a file whose blocks are compared with their checksums when they are first read.

    Args:
        array: see :class:`Vectors`.
        blocks: of its rows.
    """

    def __init__(self, array: np.ndarray, blocks: Blocks) -> None:
        super().__init__(array)
        self._blocks = blocks

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows as :meth:`Vectors.read` does, or raise a ModelError where they are damaged."""
        self._blocks.check_rows(np.arange(start, min(stop, len(self))), self.array.strides[0])
        return super().read(start, stop)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as :meth:`Vectors.take` does, or raise a ModelError where they are damaged."""
        self._blocks.check_rows(rows, self.array.strides[0])
        return super().take(rows)


def as_vectors(given: Vectors | np.ndarray | str | Path) -> Vectors:
    """Accept vectors, an array or the path of a ``.npy`` file."""
    if isinstance(given, Vectors):
        return given
    return Vectors(given) if isinstance(given, np.ndarray) else Vectors.open(given)


class VectorWriter(GrowingArray):
    """A ``.npy`` of vectors under construction, in one of the storages; its rows are given as float32 (n, d)."""

    def __init__(self, path: Path, dim: int, storage: Storage) -> None:
        self._storage = storage
        super().__init__(path, STORAGES[storage], row=(dim,))

    def append(self, values: np.ndarray) -> None:
        """Add vectors at the end."""
        super().append(quantise(values, self._storage))


def encoded_to(
    path: Path, model: AnyModel, texts: Texts, storage: Storage, threads: int, rows: np.ndarray | None = None
) -> Vectors:
    """Encode texts, or those of some rows, into a file that is memory-mapped; memory does not grow with them."""
    rows = np.arange(len(texts)) if rows is None else rows
    with (
        whole_file(path) as temporary,  # where locks do nothing, another process may be making the same
        closing(VectorWriter(temporary, model.dim, storage)) as writer,
        bar("encode", len(rows), unit="line") as progress,
    ):
        for start in range(0, len(rows), _ENCODED):
            part = rows[start : start + _ENCODED]
            writer.append(model.encode(texts.take(part), threads=threads))
            progress.update(len(part))
    return Vectors.open(path)


Method = Literal["exact", "clusters"]

NONE = -1  # the id of an empty place, whose score is -inf


def empty_lists(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, float32 (rows, k) all -inf, and ids, int32 (rows, k) all ``NONE``."""
    return np.full((rows, k), -np.inf, np.float32), np.full((rows, k), NONE, np.int32)


@dataclass(frozen=True)
class SearchConfig:
    """How neighbours are sought.

    Attributes:
        method: ``exact``; ``clusters`` (exact products within overlapping clusters of both sides).
        memory: GiB that blocks of vectors and the lists of the current block may take.
        clusters: number of clusters; 0 for a number that suits the sizes.
        probes: clusters that a vector belongs to.
        device: ``cpu``, or ``cuda`` for the exact method on a graphics card (through torch).
        seed: of the sample that the clusters are made from.
        threads: null for all processors.
    """

    method: Method = "exact"
    memory: float = 2.0
    clusters: int = 0
    probes: int = 8
    device: str = "cpu"
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        if not 0 < self.memory < float("inf"):
            raise ConfigError(f"memory={self.memory}: give GiB, as in memory=2")
        if self.probes < 1:
            raise ConfigError(f"probes={self.probes}: must be at least 1")
        if self.clusters < 0:
            raise ConfigError(f"clusters={self.clusters}: give a number, or 0 for one that suits the sizes")
        if self.threads is not None and self.threads < 0:
            raise ConfigError(f"threads={self.threads}: give a number, or null for all processors")
        if self.device != "cpu" and self.method != "exact":
            raise ConfigError(f"device={self.device}: only method=exact runs on a device")
        unused = () if self.method == "clusters" else ("clusters", "probes", "seed")
        refuse_unused(self, {"without method=clusters": unused}, "neighbours")

    @property
    def workers(self) -> int:
        """Number of threads."""
        return self.threads or available_threads()

    @property
    def bytes(self) -> int:
        """The memory in bytes."""
        return int(self.memory * 2**30)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest of each vector on the other side, best first; equal cosines by rising row."""

    forward: np.ndarray  # cosines of each source's nearest targets, float32 (sources, k); -inf where there are fewer
    forward_ids: np.ndarray  # their rows, int32 (sources, k); -1 where there are fewer
    backward: np.ndarray  # cosines of each target's nearest sources, float32 (targets, k)
    backward_ids: np.ndarray  # their rows, int32 (targets, k)

    @classmethod
    def empty(cls, sources: int, targets: int, k: int) -> Neighbours:
        """Return lists with nothing in them."""
        return cls(*empty_lists(sources, k), *empty_lists(targets, k))

    @property
    def k(self) -> int:
        """Length of the lists."""
        return int(self.forward.shape[1])

    def save(self, folder: Path) -> None:
        """Write the four arrays into ``folder``."""
        for name in ("forward", "forward_ids", "backward", "backward_ids"):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def open(cls, folder: Path) -> Neighbours:
        """Read what :meth:`save` wrote."""
        names = ("forward", "forward_ids", "backward", "backward_ids")
        return cls(*(np.load(folder / f"{name}.npy", allow_pickle=False) for name in names))

    def reversed(self) -> Neighbours:
        """Return the same with the sides exchanged."""
        return Neighbours(self.backward, self.backward_ids, self.forward, self.forward_ids)


class Hit(NamedTuple):
    """A sentence that was found: its cosine with the query, its text, its number, and what was said of it."""

    score: float
    text: str
    row: int
    metadata: Any = None


@dataclass(frozen=True)
class Hits(Result[Hit], row=Hit, held="hits"):
    """What was found for one query, best first; a sequence of :class:`Hit`.

    Attributes:
        query: its text; None where a vector was asked for.
        hits: what was found.
    """

    query: str | None
    hits: tuple[Hit, ...]

    def __repr__(self) -> str:
        return f"Hits({self.query!r}, {len(self)})"

    def __str__(self) -> str:
        return "\n".join(f"{hit.score:.4f}  {' '.join(hit.text.split())}" for hit in self) or "nothing found"

    def with_texts(self, texts: Iterable[str]) -> Hits:
        """Return the hits with other texts, as many."""
        return Hits(self.query, tuple(hit._replace(text=text) for hit, text in zip(self.hits, texts, strict=True)))


_BATCH = 256


class Encoder(Protocol):
    """Whatever makes sentence vectors."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 (n, d)."""


def judged_vectors(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """Encode texts in batches of about the same length, float32 (n, d)."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    parts = []
    with bar("judge", len(texts), unit="line") as progress:
        for start in range(0, len(order), _BATCH):
            batch = [texts[i] for i in order[start : start + _BATCH].tolist()]
            parts.append(check_encoded(np.asarray(encoder.encode(batch), np.float32), len(batch)))
            progress.update(len(parts[-1]))
    out = np.concatenate(parts)
    out[order] = out.copy()
    logger.info("the judge encoded %d texts", len(texts))
    return out


def combined(own: np.ndarray, judged: np.ndarray, of: int | None = None) -> np.ndarray:
    """Add both models' scores, float64 (n,), each less its mean and over its deviation, of the first ``of`` or of all."""
    out = np.zeros(len(own))
    for scores in (own.astype(np.float64), judged.astype(np.float64)):
        out += (scores - scores[:of].mean()) / max(float(scores[:of].std()), 1e-9)
    return out


def rerank_hits(found: Sequence[Hits], encoder: Encoder, k: int) -> list[Hits]:
    """Order the hits of each query by both models, and keep the best ``k``.

    A score is then the middle of both models' opinions, in the measure of the static vectors' cosines.
    """
    texts = list(dict.fromkeys(text for hits in found for text in (hits.query or "", *(hit.text for hit in hits))))
    vectors = judged_vectors(encoder, texts) if texts else np.zeros((0, 1), np.float32)
    place = {text: row for row, text in enumerate(texts)}
    out = []
    for hits in found:
        if not hits.hits:
            out.append(hits)
            continue
        own = np.array([hit.score for hit in hits])
        judged = row_products(vectors[[place[hit.text] for hit in hits]], vectors[place[hits.query or ""]])
        scores = own.mean() + own.std() * combined(own, judged) / 2
        order = np.argsort(-scores, kind="stable")[:k].tolist()
        out.append(Hits(hits.query, tuple(hits[row]._replace(score=float(scores[row])) for row in order)))
    return out
