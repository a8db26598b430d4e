"""A teacher's vectors for distillation: each distinct text is encoded once, in shards."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xswe.io.files import fingerprint
from xswe.io.ragged import Texts, concatenate
from xswe.teacher.protocol import Teacher
from xswe.training.shared_teacher import SharedTeacher
from xswe.training.stages import Stages
from xswe.work.config import ExecutionConfig
from xswe.work.once import once
from xswe.work.run import OPENED, map_shards
from xswe.work.stage import Job, Made, Stage

logger = logging.getLogger(__name__)
_SHARD = 16_384  # texts
_TELLING = 100_000  # texts from whose vectors the mean of all is estimated
_NARROW = 0.5  # mean cosine of two texts from which on a table that imitates it was seen to lose


@dataclass(frozen=True, eq=False)
class RowVectors:
    """Vectors of many texts, some of them equal, each distinct one stored once."""

    vectors: np.ndarray  # float16 (distinct texts, e), unit vectors
    index: np.ndarray  # int64 (n,), which of them each text has
    # float32 (e,), what is taken off each vector before it is given norm 1 again; None for nothing
    centre: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        found = np.asarray(self.vectors[self.index[rows]], np.float32)
        if self.centre is None:
            return found
        found -= self.centre
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-12))
        return found

    def mean(self) -> np.ndarray:
        """Return the mean of the distinct texts' vectors, or of evenly spread ones of very many, float32 (e,)."""
        step = -(-len(self.vectors) // _TELLING) or 1
        return np.asarray(np.mean(self.vectors[::step], axis=0, dtype=np.float64), np.float32)


def as_imitated(vectors: Mapping[str, Sequence[RowVectors]], centred: bool) -> dict[str, list[RowVectors]]:
    """Return a teacher's vectors, by part of the corpus, as they are imitated: less their mean, if ``centred``."""
    if not (some := next((one for part in vectors.values() for one in part), None)):
        return {}
    mean = some.mean()
    if not centred:
        if (cosine := float(mean @ mean)) > _NARROW:
            logger.warning(
                "the imitated encoder finds any two sentences alike (cosine %.2f on average); so will the table, and be "
                "the worse for it: try objective.distillation_centred=true",
                cosine,
            )
        return {part: list(of_part) for part, of_part in vectors.items()}
    return {part: [replace(one, centre=mean) for one in of_part] for part, of_part in vectors.items()}


def distinct_texts(texts: Texts) -> tuple[Texts, np.ndarray]:
    """Return the distinct texts, shortest first (ties in byte order), and which of them each text is."""
    raw, bounds = texts.data.tobytes(), texts.offsets
    packed = [raw[bounds[i] : bounds[i + 1]] for i in range(len(texts))]
    order = sorted(set(packed), key=lambda one: (len(one), one))
    place = {one: i for i, one in enumerate(order)}
    index = np.fromiter((place[one] for one in packed), np.int64, len(packed))
    return Texts.of(one.decode("utf-8") for one in order), index


@dataclass(frozen=True)
class VectorsJob(Job):
    """Encode the texts of a shard."""

    folder: Path  # of the stage
    teacher: SharedTeacher
    size: int  # texts of a shard
    heavy = True

    def open(self) -> tuple[Teacher, Texts]:
        """Load the teacher, and map the texts."""
        return self.teacher.load(), Texts.open(self.folder / OPENED, "texts")

    def share(self, opened: tuple[Teacher, Texts]) -> None:
        """Write the texts."""
        self.teacher.check()
        once(self.folder / OPENED, self.teacher.identity, lambda place: opened[1].save(place, "texts"))

    def compute(self, opened: tuple[Teacher, Texts], shard: int) -> Made:
        """Return float16 (texts, e)."""
        teacher, texts = opened
        block = texts[shard * self.size : (shard + 1) * self.size]
        return {"vectors": teacher.vectors(list(block)).astype(np.float16)}, {"lines": len(block), "texts": len(block)}


def _by_shard(
    teacher: Teacher, texts: Texts, folder: Path, execution: ExecutionConfig
) -> Iterator[Mapping[str, np.ndarray]]:
    """Return the vectors of each shard of distinct texts, as :func:`xswe.work.run.map_shards` does."""
    folder, shared, size = folder.absolute(), SharedTeacher.of(teacher, execution), _SHARD

    identity = fingerprint(teacher.identity, len(texts), int(texts.offsets[-1]), size)
    name, count = f"encode with {Path(teacher.name).name}", -(-len(texts) // size)
    stage = Stage(folder, name, count, ".safetensors", VectorsJob(folder, shared, size), identity)
    bounds = texts.offsets[np.minimum(np.arange(count + 1) * size, len(texts))]
    how = {"opened": (teacher, texts), "progress": ("text", len(texts)), "costs": np.diff(bounds).tolist()}
    return map_shards(stage, execution, **how)


def vectors_stage(stages: Stages, inputs: Sequence[object], teacher: Teacher, sides: Sequence[Texts]) -> list[RowVectors]:
    """Stage ``vectors``: a teacher's vectors of the texts of each side, each distinct one encoded once.

    ConfigError: the workers of a cluster cannot load the teacher. Unfinished: with ``execution=array``, the others are not
    done yet.
    """
    distinct, index = distinct_texts(concatenate(sides))

    def share(shards: Path) -> Iterator[Mapping[str, np.ndarray]]:
        return _by_shard(teacher, distinct, shards, stages.execution)

    def make(folder: Path, shards: Iterator[Mapping[str, np.ndarray]]) -> None:
        """Join the shards."""
        out = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float16, (len(distinct), teacher.dim))
        for shard, arrays in enumerate(shards):
            out[shard * _SHARD : (shard + 1) * _SHARD] = arrays["vectors"]
        out.flush()

    folder, _ = stages.run_shared("vectors", inputs, share, make)
    # In memory: batches pick rows at random, which a memory-mapped file of this size answers slowly.
    vectors = np.load(folder / "vectors.npy")
    cuts = np.cumsum([len(side) for side in sides])[:-1]
    return [RowVectors(vectors, part) for part in np.split(index, cuts)]
