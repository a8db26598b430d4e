"""The numbers that an index stores for sentences, computed from blocks of texts or, in shards, from a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from xswe.bitext.texts import TextSource
from xswe.io.arguments import no_text
from xswe.io.files import fingerprint, scratch
from xswe.io.lines import Skipped, read_blocks
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Texts
from xswe.model.encode_file import TextJob
from xswe.model.ensemble import AnyModel
from xswe.search.kernels import make_codes
from xswe.search.vectors import STORAGES, Storage
from xswe.version import __version__
from xswe.work.config import ExecutionConfig
from xswe.work.parts import BEGINNING, PARTS, Part, Parts, Place, parts_ahead
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.stage import Stage

BLOCK = 8192  # sentences encoded at a time


class Numbers(NamedTuple):
    """The arrays of some sentences of an index."""

    arrays: dict[str, np.ndarray]  # the arrays of :func:`columns_of`, n rows each
    error: float  # the largest distance between a vector and its codes; 0 if the codes are the vectors


def columns_of(storage: Storage, dim: int) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Return the type and row shape of each array of an index."""
    columns: dict[str, tuple[type, tuple[int, ...]]] = {"codes": (np.int8, (dim,)), "scales": (np.float32, ())}
    return columns if storage == "int8" else columns | {"vectors": (STORAGES[storage], (dim,))}


def numbers_of(model: AnyModel, texts: Texts, storage: Storage) -> Numbers:
    """Encode sentences into the arrays of an index."""
    vectors = np.empty((len(texts), model.dim), np.float32)
    model.encode_into(texts, vectors)
    codes, scales, error = make_codes(vectors)
    arrays = {"codes": codes, "scales": scales}
    if storage == "int8":
        return Numbers(arrays, 0.0)
    return Numbers(arrays | {"vectors": vectors.astype(STORAGES[storage], copy=False)}, error)


def encoded(
    model: AnyModel, texts: str | Path | Iterable[str], storage: Storage, threads: int | None
) -> Iterator[tuple[Texts, Numbers]]:
    """Encode texts, or those of a file, block by block; TypeError names an item that is not a str."""
    texts = TextSource(str(texts)) if isinstance(texts, (str, Path)) else texts
    blocks = _read(texts) if isinstance(texts, TextSource) else _packed(texts)
    return in_order(lambda block: (block, numbers_of(model, block, storage)), blocks, available_threads(threads))


def _read(texts: TextSource) -> Iterator[Texts]:
    with scratch("xswe-texts-") as folder:
        yield from read_blocks(texts.lines(Path(folder), Skipped()), BLOCK)


def _packed(texts: Iterable[str]) -> Iterator[Texts]:
    rows, first = iter(texts), 0
    while block := list(islice(rows, BLOCK)):
        try:
            yield Texts.of(block)
        except (TypeError, AttributeError) as error:
            raise (no_text(block, first) or error) from None
        first += len(block)


@dataclass(frozen=True)
class NumbersJob(TextJob):
    """Compute the numbers of a shard's sentences, and keep them with the texts, which need not be read again."""

    storage: Storage
    lines: ClassVar[int] = BLOCK

    def part(self, model: AnyModel, texts: Texts) -> Part:
        """Encode a block."""
        found = numbers_of(model, texts, self.storage)
        return {**found.arrays, "bytes": texts.data, "offsets": texts.offsets, "error": np.array([found.error])}


class NumbersAhead(NamedTuple):
    """The numbers of a file's lines, some of which other processes may still be computing."""

    identity: str  # of everything that decides them, and of how the file is cut into shards
    parts: Parts

    def read(self, begin: Place = BEGINNING) -> Iterator[tuple[Place, tuple[Texts, Numbers]]]:
        """Yield blocks of texts and their numbers, starting at a place, each with the place after it."""
        return ((place, _numbers(dict(part))) for place, part in self.parts(begin))


@contextmanager
def numbers_ahead(
    model: AnyModel, file: str, folder: Path, storage: Storage, execution: ExecutionConfig, threads: int | None
) -> Iterator[NumbersAhead]:
    """Compute the numbers of a file's lines in the background while the caller reads them."""
    plan, inputs = TextPlan.of([file], execution.shard)
    folder, models = folder.absolute(), folder.absolute() / ".model"
    identity = fingerprint(__version__, model.identity, storage, plan_identity(plan, inputs))
    job = NumbersJob(folder, models / "model", storage)
    stage = Stage(folder, "encode", plan.count, PARTS, job, identity, inputs)
    with parts_ahead(stage, execution, threads, (model, plan), plan=asdict(plan)) as parts:
        yield NumbersAhead(identity, parts)


def _numbers(part: dict[str, np.ndarray]) -> tuple[Texts, Numbers]:
    texts, error = Texts(part.pop("bytes"), part.pop("offsets")), float(part.pop("error")[0])
    return texts, Numbers(part, error)
