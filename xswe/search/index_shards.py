"""The numbers that an index keeps of its sentences: of a block of texts, or of a file by shards, by whoever takes part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.io.files import fingerprint, read_json, whole_file
from xswe.io.lines import read_blocks
from xswe.io.ragged import GrowingArray, Texts, forget, release
from xswe.model.ensemble import AnyModel, load_any, share_model
from xswe.search.kernels import make_codes
from xswe.search.types import STORAGES, Storage
from xswe.version import __version__
from xswe.work.config import ExecutionConfig
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.run import shards_ahead
from xswe.work.stage import Job, Stage

BLOCK = 8192  # sentences encoded at a time
_TEXTS: dict[str, tuple[type, tuple[int, ...]]] = {"bytes": (np.uint8, ()), "offsets": (np.int64, ())}


class Numbers(NamedTuple):
    """What an index keeps of some sentences."""

    arrays: dict[str, np.ndarray]  # those of :func:`columns_of`, n rows each
    error: float  # the largest distance of a row of the codes from its vector; 0 where the codes are the vectors


def columns_of(storage: Storage, dim: int) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Return the type, and the shape of a row, of each array of an index."""
    columns: dict[str, tuple[type, tuple[int, ...]]] = {"codes": (np.int8, (dim,)), "scales": (np.float32, ())}
    return columns if storage == "int8" else columns | {"vectors": (STORAGES[storage], (dim,))}


def numbers_of(model: AnyModel, texts: Texts, storage: Storage) -> Numbers:
    """Encode sentences."""
    vectors = np.empty((len(texts), model.dim), np.float32)
    model.encode_into(texts, vectors)
    codes, scales, error = make_codes(vectors)
    arrays = {"codes": codes, "scales": scales}
    if storage == "int8":
        return Numbers(arrays, 0.0)
    return Numbers(arrays | {"vectors": vectors.astype(STORAGES[storage], copy=False)}, error)


@dataclass(frozen=True)
class NumbersJob(Job):
    """Encode the sentences of a shard of text, of the stage in ``folder``, whose manifest holds the plan."""

    folder: Path
    model: Path
    storage: Storage

    def open(self) -> tuple[AnyModel, TextPlan]:
        """Load the model and the plan."""
        return load_any(self.model), TextPlan.read(self.folder)

    def share(self, opened: tuple[AnyModel, TextPlan]) -> None:
        """Write the model for others to load."""
        share_model(opened[0], self.model)

    def run(self, opened: tuple[AnyModel, TextPlan], shard: int, output: Path) -> dict[str, Any]:
        """Write a file an array, and the texts, so that nobody reads them from their file again."""
        model, plan = opened
        source, span = plan.shard(shard)
        rows, error = 0, 0.0
        with ExitStack() as stack:
            columns = {}
            for name, (kind, row) in (columns_of(self.storage, model.dim) | _TEXTS).items():
                temporary = stack.enter_context(whole_file(array_file(output, name), crowded=True))
                columns[name] = GrowingArray(temporary, kind, row=row)
                stack.callback(columns[name].abandon)
            columns["offsets"].append(np.zeros(1, np.int64))
            for texts in read_blocks(source, BLOCK, span):
                found = numbers_of(model, texts, self.storage)
                ends = columns["bytes"].size + texts.offsets[1:]
                for name, array in (found.arrays | {"bytes": texts.data, "offsets": ends}).items():
                    columns[name].append(array)
                rows, error = rows + len(texts), max(error, found.error)
            for column in columns.values():
                column.close()
        return {"lines": rows, "worst": error}

    def files(self, output: Path) -> list[Path]:
        """Return the files of all arrays."""
        return [array_file(output, name) for name in columns_of(self.storage, 0) | _TEXTS]


def array_file(codes: Path, name: str) -> Path:
    """Return the file of another array of a shard, given that of its codes."""
    return codes.with_name(f"{codes.name.partition('.')[0]}.{name}.npy")


@contextmanager
def numbers_ahead(
    model: AnyModel, file: str, folder: Path, storage: Storage, execution: ExecutionConfig, threads: int | None
) -> Iterator[Callable[[], Iterator[tuple[Texts, Numbers]]]]:
    """Encode the lines of a file by shards into a folder, while the block reads those that a cluster has encoded.

    Yields:
        What iterates over blocks of texts, and their numbers.
    """
    plan, inputs = TextPlan.of([file], execution.shard)
    folder, models = folder.absolute(), folder.absolute() / ".model"
    identity = fingerprint(__version__, model.identity, storage, plan_identity(plan, inputs))
    job = NumbersJob(folder, models / "model", storage)
    stage = Stage(folder, "encode", plan.count, ".codes.npy", job, identity, inputs)
    stage.begin(plan=asdict(plan))
    with shards_ahead(stage, execution, threads, (model, plan)) as wait:
        yield partial(_numbers, stage, list(columns_of(storage, model.dim)), wait)


def _numbers(stage: Stage, names: Sequence[str], wait: Callable[[int], None]) -> Iterator[tuple[Texts, Numbers]]:
    """Iterate over the blocks of all shards, in their order."""
    for shard in range(stage.count):
        wait(shard)
        stage.sound(shard)
        error = read_json(stage.side_car(shard))["counts"]["worst"]
        texts = Texts.open(stage.folder, stage.path(shard).name.partition(".")[0])
        arrays = {name: np.load(array_file(stage.path(shard), name), mmap_mode="r") for name in names}
        for start in range(0, len(texts), BLOCK):
            block = slice(start, start + BLOCK)
            yield texts[block], Numbers({name: array[block] for name, array in arrays.items()}, error)
        release(texts.data, texts.offsets, *arrays.values())
        for path in stage.job.files(stage.path(shard)):
            forget(path)
