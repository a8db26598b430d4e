"""A bitext judged by many processes: the order of its records matters to repetitions alone, and these are told between.

Two stages over the same shards of the text. The first cleans and leaves what repetitions are told by; one process goes
through that in the order of the file. The second compares the sides of what is left. Blocks end where windows of the file
do, so that each pair has the decoy that it has in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.cleaning import Cleaned
from xswe.corpus.records import RecordBlock, RecordFile
from xswe.corpus.rows import Rows
from xswe.errors import ConfigError
from xswe.io.execution import ExecutionConfig, once, run_shards
from xswe.io.files import fingerprint, whole_file
from xswe.io.ragged import Texts
from xswe.io.shards import Stage, TextPlan
from xswe.mining.verdicts import BitextFilter, Judge
from xswe.model.ensemble import AnyModel, load_any


@dataclass(frozen=True)
class FilterWork:
    """What both stages do their shards with."""

    file: RecordFile  # the bitext
    plan: TextPlan  # how it is cut
    model: Path  # folder of the model
    config: BitextFilter  # which pairs stay
    languages: tuple[str, ...]  # of source and target; empty if they are not known
    block: int  # records a block, at most
    window: int  # bytes of the file at whose multiples a block ends
    heavy = False

    def open(self) -> Judge:
        """Load the model."""
        return Judge(load_any(self.model), self.config, self.languages, 1)

    def blocks(self, shard: int) -> Iterator[RecordBlock]:
        """Iterate over the blocks of a shard."""
        span = self.plan.shard(shard)[1] if self.plan.sizes[0] is not None else None
        return replace(self.file, span=span).blocks(self.block, self.window)

    def files(self, output: Path) -> Sequence[Path]:
        """Return the file of arrays."""
        return [output]


@dataclass(frozen=True)
class CleanJob(FilterWork):
    """Find what can be said of each pair of a shard by itself, and what repetitions are told by."""

    def run(self, opened: Judge, shard: int, output: Path) -> dict[str, Any]:
        """Write the arrays of :class:`xswe.corpus.cleaning.Cleaned`, and which records are damaged."""
        found = [(opened.cleaned(block), block.damaged) for block in self.blocks(shard)]
        return _save(output, [(one.reason, one.keys, one.near, one.sides, damaged) for one, damaged in found])


@dataclass(frozen=True)
class CompareJob(FilterWork):
    """Compare the sides of the pairs of a shard that have no reason yet."""

    told: Path = Path()  # folder with the reasons of all records, and where in them each shard begins

    def run(self, opened: Judge, shard: int, output: Path) -> dict[str, Any]:
        """Write reasons, cosines and those of decoys."""
        reasons = np.load(self.told / "reasons.npy", mmap_mode="r")
        row, parts = int(np.load(self.told / "starts.npy")[shard]), []
        for block in self.blocks(shard):
            parts.append(opened.compared(block, np.array(reasons[row : row + len(block)])))
            row += len(block)
        return _save(output, parts)


def _save(output: Path, blocks: Iterable[tuple[np.ndarray, ...]]) -> dict[str, Any]:
    """Write the arrays of all blocks of a shard, each in one; return how many records it has."""
    arrays = [np.concatenate(part) for part in zip(*blocks, strict=True)]
    with whole_file(output, crowded=True) as temporary, temporary.open("wb") as stream:
        np.savez(stream, *arrays)
    return {"lines": len(arrays[0]) if arrays else 0}


def _read(path: Path) -> list[np.ndarray]:
    """Return the arrays of a shard; none where it has no records."""
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


@dataclass(frozen=True)
class FilterShards:
    """A bitext, and who judges it."""

    model: AnyModel  # what compares
    file: RecordFile  # the bitext
    config: BitextFilter  # which pairs stay
    languages: tuple[str, ...]  # of source and target
    folder: Path  # for the shards, which all can write
    execution: ExecutionConfig  # who does it
    threads: int  # of this process

    def judged(self, block: int, window: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over the shards: reasons uint8 (n,), cosines float32 (n,), and those of decoys, one a pair compared.

        Args:
            block: records a block, at most.
            window: bytes of the file at whose multiples a block ends.

        Raises:
            ConfigError: the bitext is standard input.
            XsweError: shards failed.
            Unfinished: with ``execution=array``, the others are not done yet.
        """
        if "-" in self.file.paths:
            raise ConfigError("standard input cannot be cut into shards: give a file, or leave execution=local")
        plan, stamps = TextPlan.of(self.file.paths, max(self.execution.shard, window), window)
        file = replace(self.file, paths=plan.files)
        if self.file.kind != "tsv":  # records that are no lines, and two files in step, are read from the beginning
            plan = replace(plan, files=plan.files[:1], sizes=(None,))
        plain = replace(self.config, threshold=None, precision=None, evidence=False, rerank_share=1.0)
        decided = [self.model.identity, asdict(plain), list(self.languages), list(map(str, self.file.columns))]
        identity = fingerprint([*decided, stamps, plan.shard_bytes, block, window])
        folder = self.folder.absolute()
        if self.execution.kind == "ray":
            once(folder / "model", self.model.identity, lambda place: self.model.save(place / "model"))
        work = (file, plan, folder / "model" / "model", plain, self.languages, block, window)
        opened = Judge(self.model, self.config, self.languages, 1)
        clean = self._stage(folder, "clean", plan.count, CleanJob(*work), identity)
        run_shards(clean, self.execution, self.threads, opened)
        told = folder / f"reasons-{identity}"
        once(told, identity, partial(self._tell, clean, opened))
        compare = self._stage(folder, "compare", plan.count, CompareJob(*work, told), identity)
        run_shards(compare, self.execution, self.threads, opened)
        for shard in range(plan.count):
            if arrays := _read(compare.path(shard)):
                yield arrays[0], arrays[1], arrays[2]

    def _stage(self, folder: Path, name: str, count: int, job: CleanJob | CompareJob, identity: str) -> Stage:
        stage = Stage(folder / f"{name}-{identity}", name, count, ".npz", job, identity)
        stage.begin()
        return stage

    def _tell(self, clean: Stage, judge: Judge, place: Path) -> None:
        """Write why each record is dropped that was there before, or for what it is by itself."""
        parts, starts, nothing = [np.zeros(0, np.uint8)], [0], Texts.of([])
        for shard in range(clean.count):
            if arrays := _read(clean.path(shard)):
                reason, keys, near, sides, damaged = arrays
                parts.append(judge.first_reasons(Cleaned(Rows(nothing, nothing), reason, keys, near, sides), damaged))
            starts.append(starts[-1] + (len(parts[-1]) if arrays else 0))
        np.save(place / "reasons.npy", np.concatenate(parts))
        np.save(place / "starts.npy", np.array(starts))
