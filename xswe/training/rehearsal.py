"""Estimates of the time, memory and disk that a run needs, without training.

Nothing is trained, no weights are loaded, and files of corpus cards are not fetched.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.source import Source
from xswe.corpus.bitext import CorpusConfig, clean_file, kept_rows, make_admission, make_cleaner, reasons_of
from xswe.corpus.cards import card_version, entries_of, find_card, find_sources, is_card, sample_sentences
from xswe.corpus.monolingual import sentence_files, sentences_of
from xswe.errors import ConfigError
from xswe.io.lines import Skipped
from xswe.io.parallel import available_memory
from xswe.io.results import table
from xswe.teacher.outline import Outline, load_outline
from xswe.teacher.protocol import TeacherConfig
from xswe.text.words import WordSplitter
from xswe.training.config import TrainConfig, check_settings
from xswe.training.corpus_stage import language_pairs
from xswe.training.pipeline import corpus_of

SAMPLE = 20_000  # pairs read from each file
_TIMED = 0.3  # seconds spent on timing products
_EFFICIENCY = 0.5  # fraction of the products' speed that an encoder reaches, with padding and everything else
_SIZES = {"float32": 4, "bfloat16": 2}
_FIT = 0.9  # usable fraction of memory and disk


@dataclass(frozen=True)
class Side:
    """The texts of one language."""

    language: str
    pairs: float  # estimated number of training pairs
    known: bool  # whether all were counted
    texts: list[str]  # a sample
    characters: float  # bytes per text


@dataclass(frozen=True)
class Rehearsal:
    """Estimates for a run, printed as a table with remarks."""

    rows: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    seconds: float  # of the teacher
    memory: float  # maximum bytes at a time
    disk: float  # bytes

    def __str__(self) -> str:
        return "\n".join([table(["what", "estimate"], [list(row) for row in self.rows]), *self.remarks])


def rehearse(config: TrainConfig, folder: Path) -> Rehearsal:
    """Check the settings of a run with its teacher and a sample of its corpus, and estimate time, memory and disk.

    Raise what the run itself would raise.
    """
    outlines = {name: _outline(one) for name, one in (("teacher", config.teacher), ("distilled", config.distilled))}
    teacher = outlines["teacher"]
    imitated = (outlines["distilled"] or teacher) if config.objective.imitating else None
    check_settings(config, teacher, imitated)  # type: ignore[arg-type] # reads only name and width
    sides = _sides(config)
    rows = [(f"sentences, {side.language}", _count(side.pairs, side.known)) for side in sides]
    units = {side.language: _units_of(config, side, teacher) for side in sides}
    total = sum(units.values()) if config.units.kind == "words" else max(units.values())
    rows.append(("units, at most", f"{total:,}"))
    seconds, passes = 0.0, 0.0
    if teacher is not None and config.teacher is not None:
        rate = operations_a_second(config.teacher, config.threads)
        for side in sides:
            lengths = teacher.lengths(side.texts)
            chosen = min(side.pairs, units[side.language] * float(config.contexts.per_unit))
            asked = chosen + (side.pairs if imitated is not None and side is sides[0] else 0.0)
            seconds += asked * float(np.mean([teacher.operations(n) for n in lengths])) / (rate * _EFFICIENCY)
            passes += asked
            spread = f"{lengths.mean():.0f} tokens each, the longest of {len(lengths):,} {lengths.max():,}"
            rows.append((f"teacher's sentences, {side.language}", f"at most {_round(asked)}; {spread}"))
        rows.append((f"teacher ({teacher.parameters / 1e6:,.0f} M parameters, {_place(config.teacher)})", _span(seconds)))
    memory, disk = _memory(config, teacher, total), _disk(config, teacher, total, sides)
    rows += [("memory at once", _bytes(memory)), ("disk", _bytes(disk))]
    return Rehearsal(tuple(rows), tuple(_remarks(config, sides, memory, disk, folder)), seconds, memory, disk)


def _outline(config: TeacherConfig | None) -> Outline | None:
    return None if config is None else load_outline(config)


def operations_a_second(config: TeacherConfig, threads: int) -> float:
    """Time products in the teacher's type on the device where it would run, in operations per second."""
    import torch

    from xswe.teacher.transformer import place_of, type_of

    device, size = place_of(config), 1024
    dtype = getattr(torch, type_of(config))
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rounds, start = 0, time.perf_counter()
        while rounds < 3 or time.perf_counter() - start < _TIMED:
            float((a @ b)[0, 0])  # makes a GPU finish
            rounds += 1
            start = time.perf_counter() if rounds == 2 else start  # the first ones initialise libraries
        return (rounds - 2) * 2.0 * size**3 / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)


def _sides(config: TrainConfig) -> list[Side]:
    """Return the texts of each language in all its bitexts."""
    codes, corpus = corpus_of(config)
    found: dict[str, list[tuple[float, bool, list[str]]]] = {}
    pairs: Sequence[tuple[str, ...]] = [codes] if len(codes) == 1 else language_pairs(codes, corpus.paths)
    for pair in pairs:
        for code, part in zip(pair, _sampled(corpus, pair, config.threads), strict=True):
            found.setdefault(code, []).append(part)
    out = []
    for code, parts in found.items():
        texts = [text for *_, some in parts for text in some]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts) / max(1, len(texts))
        out.append(Side(code, sum(count for count, *_ in parts), all(known for _, known, _ in parts), texts, size))
    return out


def _sampled(corpus: CorpusConfig, pair: tuple[str, ...], threads: int) -> list[tuple[float, bool, list[str]]]:
    """Return, for each side of a pair, the number of pairs, whether all were read, and some of the texts."""
    if len(pair) == 1:
        return [_alone(corpus, pair[0], threads)]
    both = (pair[0], pair[1])
    total, known = 0.0, True
    sides: tuple[list[str], list[str]] = ([], [])
    for entry in entries_of(corpus.paths, both):
        if is_card(entry):
            total, known = total + stated(entry, both), False
            continue
        for file in find_sources([entry], both, corpus.columns, corpus.cache, corpus.offline):
            count, whole = _read(file, corpus, both, threads, sides)
            total, known = total + count, known and whole
    if not sides[0]:  # only cards: assume sentences of the usual length
        sample = sample_sentences()
        sides = (sample.get(both[0], sample["en"]), sample.get(both[1], sample["en"]))
    if corpus.limit and corpus.limit < total:
        total, known = float(corpus.limit), True
    return [(total, known, side) for side in sides]


def _alone(corpus: CorpusConfig, language: str, threads: int) -> tuple[float, bool, list[str]]:
    """Do the same for the texts of a single language."""
    entries = entries_of(corpus.paths, (language,))
    if any(map(is_card, entries)):
        return float(corpus.limit or 1e6), False, sample_sentences().get(language, sample_sentences()["en"])
    found = sentence_files(corpus, language)
    texts = list(islice(filter(None, sentences_of(found, corpus.split, Skipped(), threads)), SAMPLE))
    files = [path for one in found for pairs in one.sources for path in pairs.files]
    read = sum(len(text.encode("utf-8", "replace")) + 1 for text in texts)
    whole = len(texts) < SAMPLE
    count = float(len(texts)) if whole else max(float(len(texts)), len(texts) * _bytes_of(files) / max(1, read))
    return (float(corpus.limit), True, texts) if 0 < corpus.limit < count else (count, whole, texts)


def _bytes_of(files: Sequence[Path]) -> float:
    """Return the uncompressed bytes of files, as text is compressed to about a third."""
    packed = (".gz", ".xz", ".zst", ".bz2", ".zip")
    return sum(path.stat().st_size * (3.0 if path.suffix in packed else 1.0) for path in files)


def _read(
    file: Source, corpus: CorpusConfig, pair: tuple[str, str], threads: int, sides: tuple[list[str], list[str]]
) -> tuple[float, bool]:
    """Read the first pairs of a file; return the number of pairs in it, and whether that is exact."""
    kept = taken = read = 0
    admission, whole = make_admission(corpus), True
    for block in clean_file(file, corpus, make_cleaner(pair, corpus, threads), threads):
        rows = kept_rows(block.rows, reasons_of(block, admission))
        kept, taken = kept + len(rows), taken + len(block.rows)
        read += sum(int(side.sizes.sum()) + len(side) for side in (block.rows.source, block.rows.target))
        for mine, texts in zip(sides, (rows.source, rows.target), strict=True):
            mine += list(texts[: SAMPLE - len(mine)]) if len(mine) < SAMPLE else []
        if taken >= SAMPLE:
            whole = False
            break
    return (float(kept), True) if whole else (max(float(kept), kept * _bytes_of(file.files) / max(1, read)), False)


def stated(entry: Mapping[str, Any], pair: tuple[str, str]) -> float:
    """Return the number of pairs that a corpus card states; a million if it states none."""
    name, version = card_version(entry)
    sizes = find_card(name).release_for(pair, version).pairs
    stated_size = next((size for key, size in sizes.items() if set(key.split("-")) == set(pair) and size), None)
    number, _, factor = (stated_size or "1 M").partition(" ")
    return float(number) * {"M": 1e6, "k": 1e3}.get(factor, 1.0)


def _units_of(config: TrainConfig, side: Side, teacher: Outline | None) -> int:
    """Return the maximum number of units of a language; split some words, so that a missing segmenter is noticed now."""
    units = config.units
    if units.kind == "words":
        pieces = None if teacher is None else teacher.tokenizer
        splitter = WordSplitter(config.languages, units.segmenters, pieces, units.folding, units.lowercase)
        if not any(True for text in side.texts[:100] for _ in splitter(text)):
            raise ConfigError(f"{side.language}: its first sentences have no word; check corpus.paths and the columns")
        return units.most_frequent.get(side.language, 150_000)
    if units.kind == "teacher" and teacher is not None:
        return teacher.vocabulary
    return units.size


def _memory(config: TrainConfig, teacher: Outline | None, units: int) -> float:
    """Return the maximum memory of extraction and refinement in bytes."""
    refining = 3.0 * (units + config.refine.bigrams) * config.pca.dim * 4 + 4.0 * config.refine.batch_size**2 * 2
    if teacher is None or config.teacher is None:
        return refining
    from xswe.teacher.transformer import type_of

    own = config.teacher
    weights = teacher.parameters * float(_SIZES[type_of(own)])
    batch = (own.batch_tokens or 16_384) * teacher.numbers_at_once(min(64, teacher.max_tokens)) * _SIZES[type_of(own)]
    return max(weights + batch + 3.0 * units * teacher.dim * 4, refining)


def _disk(config: TrainConfig, teacher: Outline | None, units: int, sides: Sequence[Side]) -> float:
    """Return the bytes of the run folder and the converted texts, including checkpoints and fetched weights."""
    texts = sum(side.pairs * (side.characters + 8) for side in sides)
    bags = sum(side.pairs * (4.0 * max(1.0, side.characters / 5) + 8) for side in sides)
    tables = 3.0 * (units + config.refine.bigrams) * config.pca.dim * 4
    if teacher is None:
        return texts + bags + tables
    fetched = 0.0 if config.teacher is None or Path(locate_of(config.teacher)).is_dir() else teacher.parameters * 4.0
    vectors = sides[0].pairs * teacher.dim * 2.0 if config.objective.imitating else 0.0
    return texts + bags + tables + fetched + vectors + 4.0 * units * teacher.dim * 4


def locate_of(config: TeacherConfig) -> str:
    """Return the folder or hub name of a teacher."""
    from xswe.teacher.transformer import locate

    return locate(config.model)


def _remarks(config: TrainConfig, sides: Sequence[Side], memory: float, disk: float, folder: Path) -> Iterator[str]:
    """Yield warnings to read before starting the run."""
    yield "times are right within a factor of about two, with this machine as busy as now; nothing was trained or written"
    have = available_memory()
    if have and memory > _FIT * have:
        yield f"memory: {_bytes(have)} are available; take fewer units, or a smaller teacher.batch_tokens"
    place = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(place).free
    if disk > _FIT * free:
        yield f"disk: {_bytes(free)} are free in {place}; set output= and XSWE_CACHE to a larger one, or corpus.limit"
    if not all(side.known for side in sides):
        yield "the corpus was not read to its end: counts are estimated from a sample, or stated by a corpus card"
    few = [side.language for side in sides if side.pairs < 10 * config.refine.batch_size and config.refine.trains]
    if few:
        yield f"{', '.join(few)}: fewer than ten batches; take more pairs, or a smaller refine.batch_size"


def _place(config: TeacherConfig) -> str:
    from xswe.teacher.transformer import place_of, type_of

    return f"{place_of(config)}, {type_of(config)}"


def _count(number: float, known: bool) -> str:
    return f"{number:,.0f}" if known else f"about {_round(number)}"


def _round(number: float) -> str:
    """Format a number with two significant digits."""
    if number < 100:
        return f"{number:,.0f}"
    digits = 10 ** (int(math.log10(number)) - 1)
    return f"{round(number / digits) * digits:,.0f}"


def _span(seconds: float) -> str:
    """Format a duration."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds"


def _bytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
