"""A teacher's sentence vectors, computed once for each distinct text, kept on disk, and resumed where a run was killed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xswe.io.files import whole_file
from xswe.io.ragged import Texts, concatenate
from xswe.progress import bar
from xswe.teacher.protocol import Teacher
from xswe.training.stages import Stages

logger = logging.getLogger(__name__)
_SHARD = 16_384
_TELLING = 100_000  # texts whose vectors tell the mean of all
_NARROW = 0.5  # mean cosine of two texts from which on a table that imitates it was seen to lose


@dataclass(frozen=True, eq=False)
class RowVectors:
    """Vectors of many texts of which some are equal.

    Attributes:
        vectors: float16 (distinct texts, e), unit vectors.
        index: int64 (n,), which of them each text has.
        centre: float32 (e,), what is taken off each vector before it is given norm 1 again; None for nothing.
    """

    vectors: np.ndarray
    index: np.ndarray
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


def distinct_texts(texts: Texts) -> tuple[Texts, np.ndarray]:
    """Return the distinct texts, shortest first (ties in byte order), and which of them each text is."""
    raw, bounds = texts.data.tobytes(), texts.offsets
    packed = [raw[bounds[i] : bounds[i + 1]] for i in range(len(texts))]
    order = sorted(set(packed), key=lambda one: (len(one), one))
    place = {one: i for i, one in enumerate(order)}
    index = np.fromiter((place[one] for one in packed), np.int64, len(packed))
    return Texts.of(one.decode("utf-8") for one in order), index


def sentence_vectors(teacher: Teacher, texts: Texts, shards: Path, target: Path) -> None:
    """Encode texts into one float16 ``.npy`` file (n, e).

    Args:
        teacher: the encoder.
        texts: distinct texts.
        shards: a folder for finished parts; those already there are not computed again.
        target: the file to write at the end.
    """
    shards.mkdir(parents=True, exist_ok=True)
    starts = range(0, len(texts), _SHARD)
    parts = [shards / f"{start:010d}.npy" for start in starts]
    done = sum(min(_SHARD, len(texts) - start) for start, part in zip(starts, parts, strict=True) if part.exists())
    with bar(f"encode with {Path(teacher.name).name}", len(texts), "text", done) as progress:
        for start, part in zip(starts, parts, strict=True):
            if part.exists():
                continue
            block = texts[start : start + _SHARD]
            with whole_file(part) as temporary, open(temporary, "wb") as stream:
                np.save(stream, teacher.vectors(list(block)).astype(np.float16))
            progress.update(len(block))
    out = np.lib.format.open_memmap(target, "w+", np.float16, (len(texts), teacher.dim))
    for start, part in zip(starts, parts, strict=True):
        out[start : start + _SHARD] = np.load(part)
    out.flush()


def vectors_stage(stages: Stages, inputs: Sequence[object], teacher: Teacher, sides: Sequence[Texts]) -> list[RowVectors]:
    """Stage ``vectors``: a teacher's vectors of texts, each distinct one encoded once.

    Args:
        stages: of the run.
        inputs: what decides the texts, and the teacher's fingerprint.
        teacher: the encoder.
        sides: the texts.

    Returns:
        The vectors of each of ``sides``; all share one array.
    """
    distinct, index = distinct_texts(concatenate(sides))
    shards: list[Path] = []

    def make(folder: Path, identity: str) -> None:
        shards.append(stages.folder / f"vectors-{identity}.shards")
        sentence_vectors(teacher, distinct, shards[0], folder / "vectors.npy")

    folder, _ = stages.run("vectors", inputs, make)
    for finished in shards:
        shutil.rmtree(finished, ignore_errors=True)
    # In memory: batches pick rows at random, which a memory-mapped file of this size answers slowly.
    vectors = np.load(folder / "vectors.npy")
    cuts = np.cumsum([len(side) for side in sides])[:-1]
    return [RowVectors(vectors, part) for part in np.split(index, cuts)]


def as_imitated(vectors: Mapping[str, Sequence[RowVectors]], centred: bool) -> dict[str, list[RowVectors]]:
    """Return a teacher's vectors as they are imitated: with their mean taken off, if ``centred``.

    Args:
        vectors: by part of the corpus; all share one array.
        centred: see :class:`~xswe.training.objective.Objective`.
    """
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
