"""A cleaned bitext as flat arrays, and a report of what was dropped.

Rows are sampled out of very many in memory that hardly grows with them: a bit a row. ``Generator.permutation`` takes
eight bytes a row. Its shuffle swaps the last place with a random one, then the one before, and so on; to learn only what
ends up in the first places one can go back through the swaps instead. The random numbers are generated twice, block by
block: once forwards, to know the generator's state before each block, and once from the last block on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import call
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from xswe.bitext.lines import Spans
from xswe.bitext.rows import Negatives, Rows, copied
from xswe.bitext.seen import Admission, KeySet, text_hashes
from xswe.bitext.source import Source, check_columns
from xswe.corpus.cards import digest_of, entries_of, find_sources, is_card
from xswe.corpus.cleaning import (
    DUPLICATE,
    HUB,
    NEAR,
    REASONS,
    CleanConfig,
    Cleaned,
    Cleaner,
    EvaluationTexts,
    evaluation_identity,
)
from xswe.errors import ConfigError
from xswe.io.lines import OnError
from xswe.io.parallel import in_order
from xswe.io.ragged import Texts, TextView
from xswe.io.settings import check_choice
from xswe.text.languages import detector

logger = logging.getLogger(__name__)
_NAMES = list(REASONS)


@dataclass(frozen=True)
class CorpusConfig:
    """What to read and what to drop.

    Attributes:
        paths: corpus cards (``{card: ccmatrix}``, ``python -m xswe corpus list``), whose files are fetched, and files,
            folders or patterns; see :func:`xswe.corpus.cards.find_sources`. For files of more than one language pair
            a mapping from ``en-de`` and the like to such a list.
        cache: folder of fetched and converted corpora; "" for ``XSWE_CACHE``, else ``~/.cache/xswe``.
        offline: never ask the network; files must be in the cache.
        columns: 0-based source and target column of tab-separated files, and any columns of negatives.
        split: cut plain text of one language, a paragraph a line, into sentences
            (:func:`xswe.text.sentences.split_sentences`).
        on_error: what a damaged line does: ``raise`` or ``skip`` (and count).
        max_characters: longer sides are dropped.
        min_score: pairs whose score in the corpus is lower are dropped; None reads no scores. An entry of ``paths`` may
            have its own.
        clean: filters beyond blank, over-long and repeated pairs.
        decontaminate: evaluation files or folders; pairs with a side that occurs in them are dropped.
        held_out: fraction of the pairs kept from training for the table at the end, at most ``max_held_out`` pairs.
        development: fraction kept from training for early stopping, at most ``max_development`` pairs.
        max_held_out: see ``held_out``.
        max_development: see ``development``.
        limit: use at most this many pairs (drawn at random), 0 for all.
    """

    paths: Any = None
    cache: str = ""
    offline: bool = False
    columns: tuple[int, ...] = (0, 1)
    split: bool = False
    on_error: OnError = "raise"
    max_characters: int = 1000
    min_score: float | None = None
    clean: CleanConfig = field(default_factory=CleanConfig)
    decontaminate: tuple[str, ...] = ()
    held_out: float = 0.01
    development: float = 0.01
    max_held_out: int = 1000
    max_development: int = 1000
    limit: int = 0

    def __post_init__(self) -> None:
        check_choice("corpus.on_error", self.on_error, OnError)
        if not 0 <= self.held_out < 1 or not 0 <= self.development < 1 or self.held_out + self.development >= 1:
            raise ConfigError("corpus.held_out and corpus.development are fractions whose sum is below 1")
        check_columns(self.columns, "corpus.columns")


@dataclass
class CorpusReport:
    """How many pairs were read, and where the rest went."""

    read: int = 0  # pairs read
    kept: int = 0  # pairs kept
    # counts by reason (see ``xswe.corpus.cleaning.REASONS``, and what ``on_error=skip`` skipped)
    dropped: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)  # SHA-256 of each file read, by its path as given

    def add(self, rows: int, reasons: np.ndarray, skipped: dict[str, int]) -> None:
        """Count one block: its pairs, the numbers of the reasons to drop some of them, and what was skipped."""
        self.read += rows
        counts = np.bincount(reasons, minlength=len(REASONS) + 1)
        self.kept += int(counts[0])
        found = {_NAMES[number - 1]: int(counts[number]) for number in np.flatnonzero(counts[1:]) + 1}
        for reason, count in [*found.items(), *skipped.items()]:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def summary(self, limit: int = 0, what: str = "pairs") -> str:
        """Return one line for the log on what became of the pairs (``what``); ``limit`` is ``corpus.limit``."""
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.dropped.items())) or "none"
        used = f", of which corpus.limit draws {limit:,}" if 0 < limit < self.kept else ""
        return f"{self.read:,} {what} read, {self.kept:,} kept{used}; dropped: {dropped}"


@dataclass(frozen=True, eq=False)
class Bitext:
    """Translation pairs of two languages."""

    languages: tuple[str, str]  # source and target code
    source: Texts | TextView  # n texts
    target: Texts | TextView  # n texts, row i the translation of source i
    negatives: Negatives | None = None  # texts of the target's language that say something else; None where no pair has any

    def __len__(self) -> int:
        return len(self.source)

    @property
    def name(self) -> str:
        """The pair's name, ``en-ja``."""
        return "-".join(self.languages)

    def take(self, rows: np.ndarray) -> Bitext:
        """Return the pairs ``rows``."""
        negatives = None if self.negatives is None else self.negatives.take(rows)
        return Bitext(self.languages, self.source.take(rows), self.target.take(rows), negatives)

    def save(self, folder: Path) -> None:
        """Write both sides into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source[:].save(folder, f"{self.name}.source")
        self.target[:].save(folder, f"{self.name}.target")
        if self.negatives is not None:
            self.negatives.save(folder, self.name)

    @classmethod
    def open(cls, folder: Path, languages: tuple[str, str]) -> Bitext:
        """Memory-map what :meth:`save` wrote."""
        name = "-".join(languages)
        sides = Texts.open(folder, f"{name}.source"), Texts.open(folder, f"{name}.target")
        return cls(languages, *sides, Negatives.open(folder, name))


def make_admission(config: CorpusConfig, folder: Path | None = None) -> Admission:
    """Return the filter of repeated pairs; ``folder`` receives, hidden, the hashes for which memory has no room."""
    return Admission(config.clean.hubs, (DUPLICATE, NEAR, HUB), folder)


def reasons_of(block: Cleaned, admission: Admission) -> np.ndarray:
    """Return the number of the reason to drop each pair of a block, 0 for those kept, uint8 (n,)."""
    return admission(block.keys, block.near, block.sides, block.reason)


def make_cleaner(languages: tuple[str, str], config: CorpusConfig, threads: int = 1) -> Cleaner:
    """Return the cleaner that a configuration describes."""
    evaluation = EvaluationTexts(config.decontaminate) if config.decontaminate else None
    return Cleaner(languages, config.clean, config.max_characters, evaluation, threads)


def clean_jobs(
    file: Source, config: CorpusConfig, cleaner: Cleaner, spans: Spans | None = None
) -> Iterator[Callable[[], Cleaned]]:
    """Yield what makes a file's cleaned blocks, in order; of spans of it (see ``Source.jobs``) or of all."""
    least = config.min_score if file.min_score is None else file.min_score
    for job in replace(file, on_error=config.on_error).jobs(scores=least is not None, spans=spans):
        yield partial(_cleaned, cleaner, job, least)


def _cleaned(cleaner: Cleaner, read: Callable[[], Rows], least: float | None) -> Cleaned:
    return cleaner(read(), least)


def clean_file(file: Source, config: CorpusConfig, cleaner: Cleaner, threads: int = 1) -> Iterator[Cleaned]:
    """Yield a file's cleaned blocks in order."""
    return in_order(call, clean_jobs(file, config, cleaner), threads)


def kept_rows(rows: Rows, reasons: np.ndarray) -> Rows:
    """Return the pairs that no reason drops."""
    kept = np.flatnonzero(reasons == 0)
    if len(kept) == len(rows):
        return rows
    sides = [copied(side.data, side.offsets[kept], side.offsets[kept + 1]) for side in (rows.source, rows.target)]
    return Rows(sides[0], sides[1], negatives=None if rows.negatives is None else rows.negatives.take(kept))


def content_settings(config: CorpusConfig) -> dict[str, Any]:
    """Return the settings that decide which pairs a corpus has, and their texts."""
    names = ("columns", "on_error", "max_characters", "min_score", "clean")
    settings = {name: value for name, value in asdict(config).items() if name in names}
    if settings["clean"].pop("language"):  # left out where it decides nothing
        settings["language"] = detector()
    if config.decontaminate:
        settings["decontaminate"] = evaluation_identity(config.decontaminate)
    return settings


def describe(config: CorpusConfig, files: Sequence[Source]) -> dict[str, Any]:
    """Return what decides the content of the bitext and its split: settings and the files' checksums."""
    splits = ("held_out", "development", "max_held_out", "max_development", "limit")
    settings = content_settings(config) | {name: getattr(config, name) for name in splits}
    return {"settings": settings, "files": describe_files(files)}


def describe_files(files: Sequence[Source]) -> list[Any]:
    """Return the files' checksums and layouts."""
    return [
        [list(map(digest_of, file.files)), str(file.hub), getattr(file.hub, "revision", None), file.layout]
        for file in files
    ]


def corpus_files(config: CorpusConfig, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Source]]:
    """Return the files of each language pair; those of corpus cards are fetched.

    ConfigError: ``split`` is set; several pairs and one's own files, but no mapping from pair to paths; or a pair without
    paths.
    """
    if config.split:
        raise ConfigError("corpus.split cuts plain text of one language; pairs of sentences cannot be cut: set it to false")
    paths = config.paths or ()
    names = ", ".join("-".join(pair) for pair in pairs)
    if isinstance(paths, Mapping):
        for pair in pairs:
            if "-".join(pair) not in paths:
                raise ConfigError(f"corpus.paths has no entry for {'-'.join(pair)} (it has {', '.join(paths) or 'none'})")
    elif len(pairs) > 1 and not all(map(is_card, entries_of(paths, ()))):
        raise ConfigError(f"the model has the pairs {names}: give corpus.paths={{{'-'.join(pairs[0])}:[...],...}}")
    out = {}
    for pair in pairs:
        entries = entries_of(paths, pair)
        out[pair] = find_sources(entries, pair, config.columns, config.cache, config.offline)
    return out


_NUMBERS = 1 << 20  # drawn at a time
_MOST_ROWS = 1 << 32  # beyond, the generator's shuffle draws numbers of 64 bits


class RowSet:
    """A set of rows, a bit each, out of ``size``; ``full`` begins with all of them."""

    def __init__(self, size: int, full: bool = False) -> None:
        self.size = size
        self.bits = np.full(-(-size // 8), 0xFF if full else 0, np.uint8)

    def set(self, rows: np.ndarray, there: bool) -> None:
        """Add rows, or remove them."""
        _set(self.bits, np.asarray(rows, np.int64), there)

    def blocks(self, rows: int = 1 << 22) -> Iterator[np.ndarray]:
        """Yield the rows of the set in ascending order: int64 arrays, each of those among the next ``rows`` rows."""
        for start in range(0, self.size, rows):
            stop = min(start + rows, self.size)
            there = np.unpackbits(self.bits[start // 8 : -(-stop // 8)], count=stop - start, bitorder="little")
            yield start + np.flatnonzero(there)

    def __len__(self) -> int:
        return sum(map(len, self.blocks()))

    def rows(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return all rows of the set, ascending, int64; in ``out`` where it is given."""
        out, done = np.empty(len(self), np.int64) if out is None else out, 0
        for block in self.blocks():
            out[done : done + len(block)] = block
            done += len(block)
        return out


@njit(nogil=True, cache=True)
def _set(bits: np.ndarray, rows: np.ndarray, there: bool) -> None:
    for row in rows:
        mask = np.uint8(1 << (row & 7))
        bits[row >> 3] = bits[row >> 3] | mask if there else bits[row >> 3] & ~mask


@njit(nogil=True, cache=True)
def _go_back(bits: np.ndarray, partners: np.ndarray, last: int, swaps: np.ndarray) -> int:
    """Undo the swaps of places ``last``, ``last - 1``, ... with their partners, the latest first, in a set of places.

    Return how many of them moved a place of the set; ``swaps``, int64 (n, 2), receives these.
    """
    met = 0
    for k in range(len(partners) - 1, -1, -1):
        a, b = last - k, partners[k]
        has_a, has_b = (bits[a >> 3] >> (a & 7)) & 1, (bits[b >> 3] >> (b & 7)) & 1
        if has_a != has_b:
            bits[a >> 3] ^= np.uint8(1 << (a & 7))
            bits[b >> 3] ^= np.uint8(1 << (b & 7))
        if (has_a or has_b) and a != b and len(swaps):
            swaps[met, 0], swaps[met, 1] = a, b
            met += 1
    return met


def draw(seed: Sequence[int], size: int, ordered: int, members: int = 0) -> tuple[np.ndarray, RowSet]:
    """Return the first ``ordered`` of ``default_rng(seed).permutation(size)``, and the first ``members`` as a set.

    The ordered rows take memory for each, the set a bit a row. ConfigError: more rows than the shuffle numbers in 32
    bits.
    """
    if size > _MOST_ROWS:
        raise ConfigError(f"{size:,} rows to draw from, of at most {_MOST_ROWS:,}: give a smaller corpus")
    generator = np.random.default_rng(seed)
    ordered, members = min(ordered, size), min(members, size)
    begun: list[tuple[int, Any]] = []  # the last place that is not yet swapped, and the generator's state, of each block
    last = size - 1
    while last > 0:
        begun.append((last, generator.bit_generator.state))
        last -= len(_partners(_numbers(generator), last))
    first, drawn = RowSet(size), RowSet(size)
    for places, count in ((first, ordered), (drawn, members)):
        places.bits[: count // 8] = 0xFF
        places.set(np.arange(count // 8 * 8, count), True)
    which = {place: place for place in range(ordered)}
    swaps, none = np.empty((min(_NUMBERS, size), 2), np.int64), np.empty((0, 2), np.int64)
    for last, state in reversed(begun):
        generator.bit_generator.state = state
        partners = _partners(_numbers(generator), last)
        if members:
            _go_back(drawn.bits, partners, last, none)
        if ordered:
            met = _go_back(first.bits, partners, last, swaps)
            for a, b in swaps[:met].tolist():
                one, other = which.pop(a, None), which.pop(b, None)
                if one is not None:
                    which[b] = one
                if other is not None:
                    which[a] = other
    out = np.empty(ordered, np.int64)
    out[list(which.values())] = list(which)
    return out, drawn


def _numbers(generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, 1 << 32, _NUMBERS, np.uint32)


@njit(nogil=True, cache=True)
def _partners(numbers: np.ndarray, last: int) -> np.ndarray:
    """Return the places with which ``last``, ``last - 1``, ... down to 1 are swapped, as far as the numbers suffice.

    As in the generator's own shuffle, each number gives as many bits as the place has; if it is beyond, the next one is
    used.
    """
    out, met, mask = np.empty(len(numbers), np.int64), 0, 1
    while mask < last:
        mask = 2 * mask + 1
    for number in numbers:
        if last == 0:
            break
        while mask >> 1 >= last:
            mask >>= 1
        value = np.int64(number) & mask
        if value <= last:
            out[met] = value
            met, last = met + 1, last - 1
    return out[:met]


# Training, development and held-out parts of a bitext, drawn at random and kept apart text by text.


_HASHED_AT_A_TIME = 1 << 18


@dataclass(frozen=True, eq=False)
class SplitRows:
    """A bitext split in three, as ascending rows."""

    training: RowSet  # what is learnt from, a bit a row
    development: np.ndarray  # decides when to stop
    held_out: np.ndarray  # reported on, and used for nothing else

    @property
    def train(self) -> np.ndarray:
        """The training rows, int64: eight bytes a row."""
        return self.training.rows()


def split_rows(bitext: Bitext, config: CorpusConfig, seed: int) -> SplitRows:
    """Split a bitext at random: corpora are sorted by score or by document, so neither end is a fair sample.

    A held-out text is never trained on: training pairs that share a side with a held-out pair are left out.
    """
    size = min(config.limit, len(bitext)) if config.limit else len(bitext)
    held_out = min(config.max_held_out, int(size * config.held_out))
    development = min(config.max_development, int(size * config.development))
    some = size if size < len(bitext) else 0
    apart, train = draw([seed, 7], len(bitext), held_out + development, some)
    if not some:
        train = RowSet(len(bitext), full=True)
    train.set(apart, False)
    train.set(_sharing_a_text(bitext, bitext.take(apart)), False)
    return SplitRows(train, np.sort(apart[held_out:]), np.sort(apart[:held_out]))


def _sharing_a_text(bitext: Bitext, apart: Bitext) -> np.ndarray:
    """Return the rows with a side that is a text of ``apart``: found by hash, then compared as they are."""
    keys = KeySet()
    for side in (apart.source, apart.target):
        keys.add(text_hashes(side[:]))
    known = set(apart.source) | set(apart.target)
    rows = [np.zeros(0, np.int64)]
    for side in (bitext.source, bitext.target):
        for start in range(0, len(side), _HASHED_AT_A_TIME):
            block = side[start : start + _HASHED_AT_A_TIME]
            found = np.flatnonzero(keys.has(text_hashes(block))).tolist()
            rows.append(np.array([start + row for row in found if block[row] in known], np.int64))
            side.release()
    return np.concatenate(rows)


def part_of(bitext: Bitext, rows: np.ndarray) -> Bitext:
    """Return ascending rows of a bitext as a view, without a copy of its texts."""
    sides = []
    for side in (bitext.source, bitext.target):
        assert isinstance(side, Texts)
        sides.append(TextView([(side, rows)]))
    negatives = None if bitext.negatives is None else bitext.negatives.view(rows)
    return Bitext(bitext.languages, sides[0], sides[1], negatives)
