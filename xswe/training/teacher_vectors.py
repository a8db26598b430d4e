"""A teacher's vectors for distillation; each distinct text is encoded once, in shards."""

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
_SHARD = 16_384  # texts per shard
_SAMPLE_SIZE = 100_000  # sample size for the mean vector
_MAX_MEAN_COSINE = 0.5  # mean cosine of two texts above which imitation was seen to harm the table


@dataclass(frozen=True, eq=False)
class RowVectors:
    """Vectors of many texts, stored once for equal texts."""

    vectors: np.ndarray  # float16 (distinct texts, e), unit vectors
    index: np.ndarray  # int64 (n,), the vector of each text
    # float32 (e,), subtracted from each vector before it is normalised again; None for nothing
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
        """Return the mean of the distinct texts' vectors, or of an evenly spaced sample of very many, float32 (e,)."""
        step = -(-len(self.vectors) // _SAMPLE_SIZE) or 1
        return np.asarray(np.mean(self.vectors[::step], axis=0, dtype=np.float64), np.float32)


def as_imitated(vectors: Mapping[str, Sequence[RowVectors]], centred: bool) -> dict[str, list[RowVectors]]:
    """Return a teacher's vectors to imitate, by part of the corpus, minus their mean if ``centred``."""
    if not (example := next((one for part in vectors.values() for one in part), None)):
        return {}
    mean = example.mean()
    if not centred:
        if (cosine := float(mean @ mean)) > _MAX_MEAN_COSINE:
            logger.warning(
                "the imitated encoder finds any two sentences alike (mean cosine %.2f); the table will imitate that and be "
                "the worse for it: try objective.distillation_centred=true",
                cosine,
            )
        return {part: list(of_part) for part, of_part in vectors.items()}
    return {part: [replace(one, centre=mean) for one in of_part] for part, of_part in vectors.items()}


def distinct_texts(texts: Texts) -> tuple[Texts, np.ndarray]:
    """Return the distinct texts, shortest first (ties in byte order), and the index of each text among them."""
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
    size: int  # texts per shard
    heavy = True

    def open(self) -> tuple[Teacher, Texts]:
        """Load the teacher, and memory-map the texts."""
        return self.teacher.load(), Texts.open(self.folder / OPENED, "texts")

    def share(self, opened: tuple[Teacher, Texts]) -> None:
        """Write the texts."""
        self.teacher.check()
        once(self.folder / OPENED, self.teacher.identity, lambda place: opened[1].save(place, "texts"))

    def compute(self, opened: tuple[Teacher, Texts], shard: int) -> Made:
        """Return the vectors of the shard, float16 (texts, e)."""
        teacher, texts = opened
        block = texts[shard * self.size : (shard + 1) * self.size]
        return {"vectors": teacher.vectors(list(block)).astype(np.float16)}, {"lines": len(block), "texts": len(block)}


def _by_shard(
    teacher: Teacher, texts: Texts, folder: Path, execution: ExecutionConfig
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the vectors of each shard of distinct texts; see :func:`xswe.work.run.map_shards`."""
    folder, shared, size = folder.absolute(), SharedTeacher.of(teacher, execution), _SHARD

    identity = fingerprint(teacher.identity, len(texts), int(texts.offsets[-1]), size)
    name, count = f"encode with {Path(teacher.name).name}", -(-len(texts) // size)
    stage = Stage(folder, name, count, ".safetensors", VectorsJob(folder, shared, size), identity)
    bounds = texts.offsets[np.minimum(np.arange(count + 1) * size, len(texts))]
    how = {"opened": (teacher, texts), "progress": ("text", len(texts)), "costs": np.diff(bounds).tolist()}
    return map_shards(stage, execution, **how)


def vectors_stage(stages: Stages, inputs: Sequence[object], teacher: Teacher, sides: Sequence[Texts]) -> list[RowVectors]:
    """Stage ``vectors``: a teacher's vectors of each side's texts, encoding each distinct text once.

    ConfigError: the workers of a cluster cannot load the teacher. Unfinished: with ``execution=array``, the other tasks are
    not done yet.
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
    # In memory, because batches read rows at random, which is slow in a memory-mapped file of this size.
    vectors = np.load(folder / "vectors.npy")
    cuts = np.cumsum([len(side) for side in sides])[:-1]
    return [RowVectors(vectors, part) for part in np.split(index, cuts)]
