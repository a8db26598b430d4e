"""The teacher's work by shards: its states of context sentences, summed, and its vectors of texts that are imitated.

Each worker loads the teacher, and is told by number which of the texts on the disk it is to encode.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.contexts import Contexts
from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json, save_tensors, whole_file, write_json
from xswe.io.ragged import Texts, concatenate
from xswe.model.folder import load_units
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.text.units import Units
from xswe.training.extract import ExtractConfig, Extraction, LanguageSample, RowVectors, harvest_batch, shards_of, summed
from xswe.training.stages import Stages
from xswe.work.config import ExecutionConfig
from xswe.work.once import once
from xswe.work.run import run_shards
from xswe.work.stage import Job, Stage

_INPUTS = "inputs"
_SHARD = 16_384  # texts


@dataclass
class _Opened:
    """What a worker holds: the teacher, the units, and the sentences, which stay on the disk."""

    folder: Path
    teacher: Teacher
    units: Units
    languages: int
    sums: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.sums = np.zeros((len(self.units.tokens), self.teacher.dim), np.float32)

    @cached_property
    def samples(self) -> list[tuple[Texts, Contexts, list[np.ndarray]]]:
        texts = [Texts.open(self.folder, f"{number}-texts") for number in range(self.languages)]
        return [
            (each, Contexts.open(self.folder, f"{n}-contexts"), self.teacher.batches(each)) for n, each in enumerate(texts)
        ]


@dataclass(frozen=True)
class _TeacherJob(Job):
    """What a teacher is needed for; a shard is one file.

    Attributes:
        folder: of the stage; its inputs are beside the shards.
        teacher: the encoder, which each worker loads; None where this process does all.
        place: the folder that its path is relative to, if it is.
    """

    folder: Path
    teacher: TeacherConfig | None
    place: str
    heavy = True

    def load(self) -> Teacher:
        """Load the teacher.

        Raises:
            ConfigError: the teacher of that name is another one here.
        """
        from xswe.teacher.transformer import load_teacher

        assert self.teacher is not None
        with chdir(self.place) if Path(self.place).is_dir() else nullcontext():
            teacher = load_teacher(self.teacher)
        if teacher.identity != read_json(self.folder / "manifest.json")["teacher"]:
            where = f"teacher.model={self.teacher.model}"
            raise ConfigError(f"{where}: the weights on this machine are others than the driver's; copy the folder again")
        return teacher


class ExtractJob(_TeacherJob):
    """Sum the states of the sentences of a shard."""

    def open(self) -> _Opened:
        """Load the teacher and the units."""
        languages = read_json(self.folder / "manifest.json")["languages"]
        return _Opened(self.folder / _INPUTS, self.load(), load_units(self.folder / _INPUTS), len(languages))

    def run(self, opened: _Opened, shard: int, output: Path) -> dict[str, Any]:
        """Write the sums and counts of the units that the shard holds."""
        language, (first, last) = self._place(opened, shard)
        texts, contexts, batches = opened.samples[language]
        counts = np.zeros(len(opened.sums), np.int64)
        opened.sums[:] = 0.0
        for states in opened.teacher.states(texts, batches[first:last]):
            harvest_batch(states, opened.units, texts, contexts, opened.sums, counts)
        found = np.flatnonzero(counts).astype(np.int32)
        save_tensors(output, {"units": found, "sums": opened.sums[found], "counts": counts[found]}, crowded=True)
        return {"lines": sum(len(rows) for rows in batches[first:last])}

    @staticmethod
    def _place(opened: _Opened, shard: int) -> tuple[int, tuple[int, int]]:
        for language, (_, _, batches) in enumerate(opened.samples):
            bounds = shards_of(batches)
            if shard < len(bounds):
                return language, bounds[shard]
            shard -= len(bounds)
        raise IndexError(shard)


def extract_by_shards(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    folder: Path,
    execution: ExecutionConfig,
) -> Extraction:
    """Average the teacher's states of every unit over its context sentences, by whoever takes part.

    Args:
        teacher: the encoder; the others load it by its settings.
        units: what gets a vector.
        samples: the context sentences of each language.
        config: the settings.
        folder: for the shards, see :func:`sums_by_shards`.
        execution: who does it.

    Returns:
        The vectors: the bytes of :func:`xswe.training.extract.extract`.

    Raises:
        ConfigError: the teacher is an object that no settings name.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    return summed(teacher, units, samples, config, sums_by_shards(teacher, units, samples, folder, execution))


def sums_by_shards(
    teacher: Teacher, units: Units, samples: Sequence[LanguageSample], folder: Path, execution: ExecutionConfig
) -> Callable[[int], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Sum the teacher's states of every unit in each shard of its context sentences, by whoever takes part.

    Args:
        teacher: the encoder; the others load it by its settings.
        units: what gets a vector.
        samples: the context sentences of each language.
        folder: for the shards, which all share; what a killed run left there is used. Remove it once the vectors are kept.
        execution: who does it.

    Returns:
        What reads the sums of a language, shard by shard, as :func:`xswe.training.extract.summed` adds them.

    Raises:
        ConfigError: the teacher is an object that no settings name.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    settings = _settings(teacher, execution)
    batches = [teacher.batches(sample.texts) for sample in samples]
    bounds = [shards_of(each) for each in batches]
    codes = [sample.code for sample in samples]
    sizes = [[int(sample.texts.offsets[-1]), len(sample.contexts.units)] for sample in samples]
    identity = fingerprint(teacher.identity, units.identity, codes, sizes, list(map(len, bounds)))

    def write(place: Path) -> None:
        units.save(place)
        write_json(place / "config.json", {"units": units.settings})
        for number, sample in enumerate(samples):
            sample.texts.save(place, f"{number}-texts")
            sample.contexts.save(place, f"{number}-contexts")

    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    once(folder / _INPUTS, identity, write)
    stage = Stage(
        folder, "extract", sum(map(len, bounds)), ".safetensors", ExtractJob(folder, settings, os.getcwd()), identity
    )
    stage.begin(teacher=teacher.identity, languages=codes)
    # Batches come shortest first, so a language's last shard takes several times as long as its first.
    costs = [
        sum(int(sample.texts.sizes[rows].sum()) for rows in rows_of[first:last])
        for sample, rows_of, of_language in zip(samples, batches, bounds, strict=True)
        for first, last in of_language
    ]
    run_shards(stage, execution, opened=_Opened(folder / _INPUTS, teacher, units, len(samples)), costs=costs)

    def partial(language: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        from safetensors.numpy import load_file

        first = sum(map(len, bounds[:language]))
        for shard in range(first, first + len(bounds[language])):
            read = load_file(stage.sound(shard))
            yield read["units"], read["sums"], read["counts"]

    return partial


def _settings(teacher: Teacher, execution: ExecutionConfig) -> TeacherConfig | None:
    """Return the settings that the workers load the teacher by; None where there are no others."""
    if execution.kind == "local":
        return None
    settings = getattr(teacher, "config", None)
    if not isinstance(settings, TeacherConfig):
        raise ConfigError(
            f"execution={execution.kind}: every worker loads the teacher: give its name or folder, not an object"
        )
    return replace(settings, threads=max(1, int(execution.cpus))) if execution.kind == "ray" else settings


def distinct_texts(texts: Texts) -> tuple[Texts, np.ndarray]:
    """Return the distinct texts, shortest first (ties in byte order), and which of them each text is."""
    raw, bounds = texts.data.tobytes(), texts.offsets
    packed = [raw[bounds[i] : bounds[i + 1]] for i in range(len(texts))]
    order = sorted(set(packed), key=lambda one: (len(one), one))
    place = {one: i for i, one in enumerate(order)}
    index = np.fromiter((place[one] for one in packed), np.int64, len(packed))
    return Texts.of(one.decode("utf-8") for one in order), index


@dataclass(frozen=True)
class VectorsJob(_TeacherJob):
    """Encode the texts of a shard.

    Attributes:
        size: texts of a shard.
    """

    size: int

    def open(self) -> tuple[Teacher, Texts]:
        """Load the teacher, and map the texts."""
        return self.load(), Texts.open(self.folder / _INPUTS, "texts")

    def run(self, opened: tuple[Teacher, Texts], shard: int, output: Path) -> dict[str, Any]:
        """Write float16 (texts, e)."""
        teacher, texts = opened
        block = texts[shard * self.size : (shard + 1) * self.size]
        with whole_file(output, crowded=True) as temporary, open(temporary, "wb") as stream:
            np.save(stream, teacher.vectors(list(block)).astype(np.float16))
        return {"lines": len(block)}


def vectors_by_shards(teacher: Teacher, texts: Texts, folder: Path, execution: ExecutionConfig) -> Stage:
    """Encode texts, by whoever takes part.

    Args:
        teacher: the encoder; others load it by its settings.
        texts: distinct texts.
        folder: for the shards, which all share; what a killed run left there is used.
        execution: who does it.

    Returns:
        The stage, each shard of which is a ``.npy`` file of the next texts' vectors, float16 (n, e).

    Raises:
        ConfigError: others are to take part, and the teacher is an object that no settings name.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    folder, size = folder.absolute(), _SHARD
    job = VectorsJob(folder, _settings(teacher, execution), os.getcwd(), size)
    identity = fingerprint(teacher.identity, len(texts), int(texts.offsets[-1]), size)
    stage = Stage(folder, f"encode with {Path(teacher.name).name}", -(-len(texts) // size), ".npy", job, identity)
    stage.begin(teacher=teacher.identity)
    if execution.kind == "ray":
        once(folder / _INPUTS, identity, lambda place: texts.save(place, "texts"))
    bounds = texts.offsets[np.minimum(np.arange(stage.count + 1) * size, len(texts))]
    run_shards(stage, execution, opened=(teacher, texts), costs=np.diff(bounds).tolist())
    return stage


def vectors_stage(stages: Stages, inputs: Sequence[object], teacher: Teacher, sides: Sequence[Texts]) -> list[RowVectors]:
    """Stage ``vectors``: a teacher's vectors of texts, each distinct one encoded once.

    Args:
        stages: of the run, and who shares their work.
        inputs: what decides the texts, and the teacher's fingerprint.
        teacher: the encoder.
        sides: the texts.

    Returns:
        The vectors of each of ``sides``; all share one array. They are the same bytes, whoever encoded.

    Raises:
        ConfigError: others are to take part, and the teacher is an object that no settings name.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    distinct, index = distinct_texts(concatenate(sides))

    def share(shards: Path) -> Stage:
        return vectors_by_shards(teacher, distinct, shards, stages.execution)

    def make(folder: Path, _: str, shards: Path) -> None:
        """Join the shards."""
        done = share(shards)
        out = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float16, (len(distinct), teacher.dim))
        for shard in range(done.count):
            out[shard * _SHARD : (shard + 1) * _SHARD] = np.load(done.sound(shard))
        out.flush()

    folder, _ = stages.run_shared("vectors", inputs, share, make)
    # In memory: batches pick rows at random, which a memory-mapped file of this size answers slowly.
    vectors = np.load(folder / "vectors.npy")
    cuts = np.cumsum([len(side) for side in sides])[:-1]
    return [RowVectors(vectors, part) for part in np.split(index, cuts)]
