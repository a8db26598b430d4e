"""A cleaned bitext as flat arrays, and a report of the pairs dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import call
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.lines import Spans
from xswe.bitext.rows import Negatives, Rows, copied
from xswe.bitext.seen import Admission
from xswe.bitext.source import Source, check_columns
from xswe.corpus.cards import entries_of, find_sources, is_card
from xswe.corpus.cleaning import DUPLICATE, HUB, NEAR, REASONS, CleanConfig, Cleaned, Cleaner
from xswe.corpus.decontamination import EvaluationTexts, evaluation_identity
from xswe.corpus.fetch import digest_of
from xswe.errors import ConfigError
from xswe.io.lines import OnError
from xswe.io.parallel import in_order
from xswe.io.ragged import Texts, TextView
from xswe.io.settings import check_choice, check_least
from xswe.text.detection import detector

logger = logging.getLogger(__name__)
_NAMES = list(REASONS)


@dataclass(frozen=True)
class CorpusConfig:
    """Settings of a corpus: files, columns, cleaning, splits.

    Attributes:
        paths: corpus cards (``{card: ccmatrix}``, ``python -m xswe corpus list``), whose files are fetched, and files,
            folders or patterns; see :func:`xswe.corpus.cards.find_sources`. For files of more than one language pair, a
            mapping from ``en-de`` and the like to such a list.
        cache: folder of fetched and converted corpora; "" for ``XSWE_CACHE``, else ``~/.cache/xswe``.
        offline: never use the network; files must be in the cache.
        columns: 0-based source and target column of tab-separated files, and any columns of negatives.
        split: split plain text of one language, a paragraph a line, into sentences
            (:func:`xswe.text.sentences.split_sentences`).
        on_error: what a damaged line does: ``raise`` or ``skip`` (and count).
        max_characters: pairs with a longer side are dropped.
        min_score: pairs with a lower score in the corpus are dropped; None reads no scores. An entry of ``paths`` may
            have its own.
        clean: filters in addition to blank, over-long and repeated pairs.
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
        check_least(self, "corpus", max_characters=0, max_held_out=0, max_development=0, limit=0)
        check_columns(self.columns, "corpus.columns")


@dataclass
class CorpusReport:
    """Counts of the pairs read, kept and dropped."""

    read: int = 0  # pairs read
    kept: int = 0  # pairs kept
    # counts by reason (see ``xswe.corpus.cleaning.REASONS``), with the lines that ``on_error=skip`` skipped
    dropped: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)  # SHA-256 of each file read, by path as given

    def add(self, rows: int, reasons: np.ndarray, skipped: dict[str, int]) -> None:
        """Count one block: its pairs, the reasons to drop some, and skipped lines."""
        self.read += rows
        counts = np.bincount(reasons, minlength=len(REASONS) + 1)
        self.kept += int(counts[0])
        found = {_NAMES[number - 1]: int(counts[number]) for number in np.flatnonzero(counts[1:]) + 1}
        for reason, count in [*found.items(), *skipped.items()]:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def summary(self, limit: int = 0, what: str = "pairs") -> str:
        """Return a log line on how many pairs (``what``) were kept and dropped; ``limit`` is ``corpus.limit``."""
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.dropped.items())) or "none"
        used = f", of which corpus.limit draws {limit:,}" if 0 < limit < self.kept else ""
        return f"{self.read:,} {what} read, {self.kept:,} kept{used}; dropped: {dropped}"


@dataclass(frozen=True, eq=False)
class Bitext:
    """Translation pairs of two languages."""

    languages: tuple[str, str]  # source and target code
    source: Texts | TextView  # n texts
    target: Texts | TextView  # n texts, row i the translation of source i
    negatives: Negatives | None = None  # texts of the target's language that say something else; None if no pair has any

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
    """Return the filter of repeated pairs; hashes that do not fit into memory go to temporary files in ``folder``."""
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
    """Yield functions that make the cleaned blocks of a file, or spans of it (see ``Source.jobs``), in order."""
    least = config.min_score if file.min_score is None else file.min_score
    for job in replace(file, on_error=config.on_error).jobs(scores=least is not None, spans=spans):
        yield partial(_cleaned, cleaner, job, least)


def _cleaned(cleaner: Cleaner, read: Callable[[], Rows], least: float | None) -> Cleaned:
    return cleaner(read(), least)


def clean_file(file: Source, config: CorpusConfig, cleaner: Cleaner, threads: int = 1) -> Iterator[Cleaned]:
    """Yield a file's cleaned blocks in order."""
    return in_order(call, clean_jobs(file, config, cleaner), threads)


def kept_rows(rows: Rows, reasons: np.ndarray) -> Rows:
    """Return the pairs without a reason to drop them."""
    kept = np.flatnonzero(reasons == 0)
    if len(kept) == len(rows):
        return rows
    sides = [copied(side.data, side.offsets[kept], side.offsets[kept + 1]) for side in (rows.source, rows.target)]
    return Rows(sides[0], sides[1], negatives=None if rows.negatives is None else rows.negatives.take(kept))


def content_settings(config: CorpusConfig) -> dict[str, Any]:
    """Return the settings that decide the pairs of a corpus, and their texts."""
    names = ("columns", "on_error", "max_characters", "min_score", "clean")
    settings = {name: value for name, value in asdict(config).items() if name in names}
    if settings["clean"].pop("language"):  # left out unless it decides something
        settings["language"] = detector()
    if config.decontaminate:
        settings["decontaminate"] = evaluation_identity(config.decontaminate)
    return settings


def describe(config: CorpusConfig, files: Sequence[Source]) -> dict[str, Any]:
    """Return the settings and checksums that determine the bitext and its split."""
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

    ConfigError: ``split`` is set; there are several pairs and the user's own files without a mapping from pair to paths;
    or a pair has no paths.
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
