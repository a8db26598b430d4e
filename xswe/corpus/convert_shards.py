"""A bitext cleaned by many processes: the order of its pairs matters to repetitions alone, which are found between.

Each shard of the text is read and cleaned by whoever takes it, and left block by block. One process goes through these
blocks in the order of the files, behind those that clean, as a conversion goes through the blocks that it cleans itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from xswe.bitext.lines import is_cut
from xswe.bitext.rows import Negatives, Rows
from xswe.bitext.source import PairFile
from xswe.corpus.bitext import CorpusConfig, clean_file, make_cleaner
from xswe.corpus.cleaning import Cleaned, Cleaner
from xswe.io.files import file_stamp, fingerprint, read_json, whole_file, write_json
from xswe.io.inputs import Inputs
from xswe.io.lines import lines_counted
from xswe.io.ragged import Texts, forget
from xswe.version import __version__
from xswe.work.config import ExecutionConfig
from xswe.work.once import once
from xswe.work.plan import TextPlan
from xswe.work.run import shards_ahead
from xswe.work.stage import Job, Stage

_CHUNK = 4 << 20  # bytes


@dataclass(frozen=True)
class CleanJob(Job):
    """Read and clean the pairs of a shard."""

    bitext: tuple[PairFile, ...]  # its files
    plan: TextPlan  # how they are cut
    cuts: Path  # where it is told how the second of two aligned files is cut
    languages: tuple[str, str]  # of source and target
    config: CorpusConfig  # what to drop

    def open(self) -> tuple[Cleaner, dict[str, list[int]]]:
        """Load what the filters need, and the cuts."""
        return make_cleaner(self.languages, self.config, 1), read_json(self.cuts / "cuts.json")

    def run(self, opened: tuple[Cleaner, dict[str, list[int]]], shard: int, output: Path) -> dict[str, Any]:
        """Write the cleaned blocks of a shard."""
        (cleaner, cuts), (number, span) = opened, self.plan.place(shard)
        file, lines, spans = self.bitext[number], 0, [span] if span else None
        if spans and file.target:
            first, last = (cuts[str(number)][shard - self.plan.shards_of(number).start + end] for end in (0, 1))
            spans.append((first, last))
        with (
            whole_file(output, crowded=True) as temporary,
            temporary.open("wb") as stream,
            lines_counted(file.source, span[0] if span else 0),
        ):
            for block in clean_file(file, self.config, cleaner, spans=spans):
                _write(stream, block)
                lines += len(block.rows)
        return {"lines": lines}


@dataclass(frozen=True)
class CleanedShards:
    """The cleaned blocks of a bitext, shard by shard as they are done."""

    stage: Stage  # what is done
    plan: TextPlan  # how the files are cut
    wait: Callable[[int], None]  # until a shard is done

    def blocks(self, file: int, skip: int = 0) -> Iterator[Cleaned]:
        """Iterate over the blocks of a file, counted from 0, but for the first ``skip``."""
        for shard in self.plan.shards_of(file):
            self.wait(shard)
            with self.stage.sound(shard).open("rb") as stream:
                while stream.peek(1):
                    block = _read(stream)
                    if skip == 0:
                        yield block
                    skip = max(0, skip - 1)
            forget(self.stage.path(shard))


@contextmanager
def clean_by_shards(
    files: Sequence[PairFile],
    languages: tuple[str, str],
    config: CorpusConfig,
    identity: str,
    folder: Path,
    execution: ExecutionConfig,
    threads: int,
) -> Iterator[CleanedShards]:
    """Clean files by whoever takes part; text by lines that is not packed is cut into shards, other files are one each.

    Args:
        files: what to read; all must see them.
        languages: source and target language.
        config: the settings.
        identity: of files and settings.
        folder: for the shards, which all can write.
        execution: who does it.
        threads: of this process.

    Raises:
        XsweError: shards failed.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    # Workers have working directories of their own.
    there = tuple(
        replace(file, source=file.source.absolute(), target=file.target and file.target.absolute())
        if file.hub is None
        else file
        for file in files
    )
    config = replace(config, paths=None, decontaminate=tuple(str(Path(name).absolute()) for name in config.decontaminate))
    place = folder.absolute() / "cuts"
    once(place, fingerprint(identity, execution.shard), partial(_write_cuts, there, execution.shard))
    cuts = read_json(place / "cuts.json")
    sizes = tuple(
        file.source.stat().st_size if is_cut(file) and (not file.target or str(number) in cuts) else None
        for number, file in enumerate(there)
    )
    plan = TextPlan(tuple(str(file.hub or file.source) for file in there), sizes, execution.shard)
    identity = fingerprint(__version__, identity, sizes, execution.shard)
    job = CleanJob(there, plan, place, languages, config)
    names = tuple(str(path) for file in there if file.hub is None for path in file.files)
    inputs = Inputs(names, tuple(map(file_stamp, names)))
    stage = Stage(folder.absolute() / f"clean-{identity}", "clean", plan.count, ".blocks", job, identity, inputs)
    stage.begin(plan=asdict(plan))
    with shards_ahead(stage, execution, threads) as wait:
        yield CleanedShards(stage, plan, wait)


def _write_cuts(files: Sequence[PairFile], shard: int, folder: Path) -> None:
    """Write where the second of two aligned files is to be cut, of each that has as many lines as the first.

    Others are not cut: only who reads them from the beginning finds where one of them ends too early.
    """
    found = {}
    for number, file in enumerate(files):
        if file.target and is_cut(file):
            plan = TextPlan(("",), (file.source.stat().st_size,), shard)
            ends = [cast(tuple[int, int], plan.place(one)[1])[1] for one in range(plan.count)]
            lines, total = _lines_before(file.source, ends)
            places, others = _places_of(file.target, lines[:-1])
            if min(size := file.target.stat().st_size, len(ends)) and total == others:
                found[str(number)] = [0, *places, size]
    write_json(folder / "cuts.json", found)


def _starts(path: Path) -> Iterator[np.ndarray]:
    """Yield, chunk by chunk, where the lines of a file begin, but for the first; a line feed at the end begins one more."""
    place = 0
    with path.open("rb") as stream:
        while data := stream.read(_CHUNK):
            yield place + 1 + np.flatnonzero(np.frombuffer(data, np.uint8) == 0x0A)
            place += len(data)


def _lines_before(path: Path, ends: Sequence[int]) -> tuple[list[int], int]:
    """Return how many lines begin before each of some places in a file, and how many there are."""
    counted, size = np.ones(len(ends) + 1, np.int64), path.stat().st_size
    for starts in _starts(path):
        counted += np.searchsorted(starts, [*ends, size])
    return counted[:-1].tolist(), int(counted[-1])


def _places_of(path: Path, lines: Sequence[int]) -> tuple[list[int], int]:
    """Return where some lines of a file begin, counted from 0 (one that it lacks: at its end), and how many there are."""
    before, total, places, size = 1, 1, list[int](), path.stat().st_size
    for starts in _starts(path):
        while len(places) < len(lines) and lines[len(places)] < before + len(starts):
            places.append(int(starts[lines[len(places)] - before]))
        before, total = before + len(starts), total + int(np.searchsorted(starts, size))
    return [*places, *[size] * (len(lines) - len(places))], total


def _write(stream: BinaryIO, block: Cleaned) -> None:
    """Write a block as arrays of numpy's format, one after the other."""
    rows, none = block.rows, Texts.of([])
    negatives = rows.negatives or Negatives(none, np.zeros(0, np.int64))
    skipped = np.frombuffer(json.dumps(rows.skipped).encode(), np.uint8)
    for array in (skipped, block.reason, block.keys, block.near, block.sides, negatives.bounds):
        np.save(stream, array)
    for texts in (rows.source, rows.target, negatives.texts[:]):
        np.save(stream, texts.data)
        np.save(stream, texts.offsets)


def _read(stream: BinaryIO) -> Cleaned:
    skipped, reason, keys, near, sides, bounds = (np.load(stream) for _ in range(6))
    source, target, further = (Texts(np.load(stream), np.load(stream)) for _ in range(3))
    negatives = Negatives(further, bounds) if len(bounds) else None
    return Cleaned(Rows(source, target, None, json.loads(skipped.tobytes()), negatives), reason, keys, near, sides)
