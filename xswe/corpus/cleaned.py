"""Cleaning of a bitext in shards; only the removal of duplicates depends on the order of the pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from xswe.bitext.rows import Negatives, Rows
from xswe.bitext.source import Source
from xswe.corpus.bitext import CorpusConfig, clean_jobs, make_cleaner
from xswe.corpus.cleaning import Cleaned, Cleaner
from xswe.io.files import file_stamp, fingerprint, read_json, write_json
from xswe.io.inputs import Inputs
from xswe.io.lines import lines_counted
from xswe.io.ragged import Texts
from xswe.version import __version__
from xswe.work.config import ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import once
from xswe.work.parts import Part, PartsJob, Place, parts_ahead
from xswe.work.plan import TextPlan
from xswe.work.stage import NOWHERE, Stage

_CHUNK = 4 << 20  # bytes
Cuts = dict[str, list[int]]  # by the number of a line-aligned source: where its second file is cut


@dataclass(frozen=True)
class CleanJob(PartsJob):
    """Read and clean the pairs of a shard, block by block."""

    bitext: tuple[Source, ...]  # its files
    plan: TextPlan  # how they are cut
    cuts: Path  # the folder of ``cuts.json``, see `Cuts`
    languages: tuple[str, str]  # of source and target
    config: CorpusConfig  # what to drop

    def open(self) -> tuple[Cleaner, Cuts]:
        """Load the filters' resources, and the cuts."""
        return make_cleaner(self.languages, self.config, 1), read_json(self.cuts / "cuts.json")

    def parts(self, opened: tuple[Cleaner, Cuts], shard: int) -> Iterator[Callable[[], Part]]:
        """Yield functions that read and clean the blocks of a shard."""
        (cleaner, cuts), (number, span) = opened, self.plan.place(shard)
        file, spans = self.bitext[number], [span] if span else None
        if spans and len(file.paths) > 1:
            first, last = (cuts[str(number)][shard - self.plan.shards_of(number).start + end] for end in (0, 1))
            spans.append((first, last))
        counted = lines_counted(file.name, span[0] if span else 0)
        with lines_counted(file.name, span[0] if span else 0):
            for job in clean_jobs(file, self.config, cleaner, spans):
                yield counted(lambda job=job: _arrays(job()))


@dataclass(frozen=True)
class CleanedBlocks:
    """The cleaned blocks of a bitext."""

    identity: str  # of their input, and how it is cut
    parts: Callable[[Place], Iterator[tuple[Place, Part]]]

    def read(self, begin: Place) -> Iterator[tuple[Place, Cleaned]]:
        """Iterate over the blocks, starting at a place, each with the place after it."""
        return ((place, _block(part)) for place, part in self.parts(begin))


@contextmanager
def cleaned_ahead(
    files: Sequence[Source],
    languages: tuple[str, str],
    config: CorpusConfig,
    identity: str,
    output: Path,
    execution: ExecutionConfig,
    threads: int,
) -> Iterator[CleanedBlocks]:
    """Provide the cleaned blocks of files, in their order, while further ones are being made.

    Alone, this process reads file after file. Otherwise files of unpacked lines are cut into shards, and any other file is
    one shard. ``identity`` is that of files and settings; the shards are beside ``output``. XsweError: shards failed.
    Unfinished: other tasks of the array are not done yet.
    """
    # Absolute, as workers have their own working directories.
    located = tuple(replace(file, paths=tuple(str(Path(path).absolute()) for path in file.paths)) for file in files)
    opened, alone = None, execution.alone
    with nullcontext(NOWHERE) if alone else work_folder(str(output), execution, leave=()) as folder:
        place, cuts = folder.absolute() / "cuts", Cuts()
        if alone:
            opened = make_cleaner(languages, config, threads), cuts
        else:
            once(place, fingerprint(identity, execution.shard), partial(_write_cuts, located, execution.shard))
            cuts = read_json(place / "cuts.json")
            config = replace(config, paths=None, decontaminate=tuple(str(Path(p).absolute()) for p in config.decontaminate))
        sizes = tuple(
            file.files[0].stat().st_size
            if not alone and file.is_cut and (len(file.paths) == 1 or str(row) in cuts)
            else None
            for row, file in enumerate(located)
        )
        plan = TextPlan(tuple(file.name for file in located), sizes, execution.shard)
        identity = fingerprint(__version__, identity, sizes, execution.shard)
        names = tuple(str(path) for file in located for path in file.files)
        inputs, job = Inputs(names, tuple(map(file_stamp, names))), CleanJob(located, plan, place, languages, config)
        stage = Stage(folder.absolute() / f"clean-{identity}", "clean", plan.count, ".blocks", job, identity, inputs)
        with parts_ahead(stage, execution, threads, opened, plan=asdict(plan)) as parts:
            yield CleanedBlocks(identity, parts)


def _write_cuts(files: Sequence[Source], shard: int, folder: Path) -> None:
    """Write where to cut the second of two line-aligned files, if both have equally many lines.

    Others are not cut: only a reader that starts at the beginning finds where one of them ends too early.
    """
    found = {}
    for number, file in enumerate(files):
        if len(file.paths) == 2 and file.is_cut:
            first, second = file.files
            plan = TextPlan(("",), (first.stat().st_size,), shard)
            ends = [cast(tuple[int, int], plan.place(one)[1])[1] for one in range(plan.count)]
            lines, total = _lines_before(first, ends)
            places, others = _places_of(second, lines[:-1])
            if min(size := second.stat().st_size, len(ends)) and total == others:
                found[str(number)] = [0, *places, size]
    write_json(folder / "cuts.json", found)


def _starts(path: Path) -> Iterator[np.ndarray]:
    """Yield, chunk by chunk, where the lines of a file begin, except the first; a final line feed begins one more."""
    place = 0
    with path.open("rb") as stream:
        while data := stream.read(_CHUNK):
            yield place + 1 + np.flatnonzero(np.frombuffer(data, np.uint8) == 0x0A)
            place += len(data)


def _lines_before(path: Path, ends: Sequence[int]) -> tuple[list[int], int]:
    """Return how many lines begin before each of some places in a file, and how many there are in all."""
    counted, size = np.ones(len(ends) + 1, np.int64), path.stat().st_size
    for starts in _starts(path):
        counted += np.searchsorted(starts, [*ends, size])
    return counted[:-1].tolist(), int(counted[-1])


def _places_of(path: Path, lines: Sequence[int]) -> tuple[list[int], int]:
    """Return where some lines (0-based; missing ones: the file's end) of a file begin, and how many there are in all."""
    before, total, places, size = 1, 1, list[int](), path.stat().st_size
    for starts in _starts(path):
        while len(places) < len(lines) and lines[len(places)] < before + len(starts):
            places.append(int(starts[lines[len(places)] - before]))
        before, total = before + len(starts), total + int(np.searchsorted(starts, size))
    return [*places, *[size] * (len(lines) - len(places))], total


def _arrays(block: Cleaned) -> Part:
    rows, none = block.rows, Texts.of([])
    negatives = rows.negatives or Negatives(none, np.zeros(0, np.int64))
    arrays = {"reason": block.reason, "keys": block.keys, "near": block.near, "sides": block.sides}
    arrays |= {"bounds": negatives.bounds, "skipped": np.frombuffer(json.dumps(rows.skipped).encode(), np.uint8)}
    for name, texts in (("source", rows.source), ("target", rows.target), ("negatives", negatives.texts[:])):
        arrays |= {f"{name}.bytes": texts.data, f"{name}.offsets": texts.offsets}
    return arrays


def _block(part: Part) -> Cleaned:
    source, target, further = (
        Texts(part[f"{name}.bytes"], part[f"{name}.offsets"]) for name in ("source", "target", "negatives")
    )
    negatives = Negatives(further, part["bounds"]) if len(part["bounds"]) else None
    rows = Rows(source, target, None, json.loads(part["skipped"].tobytes()), negatives)
    return Cleaned(rows, part["reason"], part["keys"], part["near"], part["sides"])
