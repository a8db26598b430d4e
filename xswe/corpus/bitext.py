"""A cleaned bitext in memory, as flat arrays, with a record of what was dropped and of what it was made from."""

from __future__ import annotations

import hashlib
import logging
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.pairs import PairFile, find_pairs, read_pairs
from xswe.corpus.streams import OnError, Skipped
from xswe.errors import ConfigError
from xswe.files import file_digest
from xswe.language.texts import Texts
from xswe.progress import bar

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CorpusConfig:
    """What to read and what to drop.

    Attributes:
        paths: files, folders or patterns; see :func:`xswe.corpus.pairs.find_pairs`. For more than one language pair
            a mapping from ``en-de`` and the like to such a list.
        columns: 0-based source and target column of tab-separated files.
        on_error: what a damaged line does: ``raise`` or ``skip`` (and count).
        max_characters: longer sides are dropped.
        held_out: fraction of the pairs kept from training for the table at the end, at most ``max_held_out`` pairs.
        development: fraction kept from training for early stopping, at most ``max_development`` pairs.
        max_held_out: see ``held_out``.
        max_development: see ``development``.
        limit: use at most this many pairs (drawn at random), 0 for all.
    """

    paths: Any = ()
    columns: tuple[int, int] = (0, 1)
    on_error: OnError = "raise"
    max_characters: int = 1000
    held_out: float = 0.1
    development: float = 0.05
    max_held_out: int = 1000
    max_development: int = 1000
    limit: int = 0

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise ConfigError(f"corpus.on_error={self.on_error!r}: use 'raise' or 'skip'")
        if not 0 <= self.held_out < 1 or not 0 <= self.development < 1 or self.held_out + self.development >= 1:
            raise ConfigError("corpus.held_out and corpus.development are fractions whose sum is below 1")


@dataclass
class CorpusReport:
    """How many pairs were read, and where the rest went.

    Attributes:
        read: pairs read.
        kept: pairs kept.
        dropped: counts by reason (blank, too long, duplicate, and what ``on_error=skip`` skipped).
        checksums: SHA-256 of each file read.
    """

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)

    def summary(self) -> str:
        """One line for the log."""
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.dropped.items())) or "none"
        return f"{self.read:,} pairs read, {self.kept:,} kept; dropped: {dropped}"


@dataclass(frozen=True, eq=False)
class Bitext:
    """Translation pairs of two languages.

    Attributes:
        languages: source and target code.
        source: n texts.
        target: n texts, row i the translation of source i.
    """

    languages: tuple[str, str]
    source: Texts
    target: Texts

    def __len__(self) -> int:
        return len(self.source)

    @property
    def name(self) -> str:
        """The pair's name, ``en-ja``."""
        return "-".join(self.languages)

    def take(self, rows: np.ndarray) -> Bitext:
        """Return the pairs ``rows``."""
        return Bitext(self.languages, self.source.take(rows), self.target.take(rows))

    def save(self, folder: Path) -> None:
        """Write both sides into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source.save(folder, f"{self.name}.source")
        self.target.save(folder, f"{self.name}.target")

    @classmethod
    def open(cls, folder: Path, languages: tuple[str, str]) -> Bitext:
        """Memory-map what :meth:`save` wrote."""
        name = "-".join(languages)
        return cls(languages, Texts.open(folder, f"{name}.source"), Texts.open(folder, f"{name}.target"))


class _Packer:
    """Collects strings into the arrays of a ``Texts``, so that a corpus is never a list of Python strings."""

    def __init__(self) -> None:
        self._data, self._offsets = bytearray(), array("q", [0])

    def add(self, text: str) -> None:
        self._data += text.encode("utf-8")
        self._offsets.append(len(self._data))

    def texts(self) -> Texts:
        return Texts(np.frombuffer(self._data, np.uint8), np.frombuffer(self._offsets, np.int64))


def load_bitext(files: Sequence[PairFile], languages: tuple[str, str], config: CorpusConfig) -> tuple[Bitext, CorpusReport]:
    """Stream pairs from files, dropping blank, over-long and repeated ones.

    Returns:
        The bitext, in file order, and the report.
    """
    source, target, report, skipped = _Packer(), _Packer(), CorpusReport(), Skipped()
    seen: set[bytes] = set()
    with bar(f"read {'-'.join(languages)}", unit="pair") as progress:
        for file in files:
            for a, b in read_pairs(file, on_error=config.on_error, skipped=skipped):
                report.read += 1
                progress.update()
                if reason := _reason_to_drop(a, b, config, seen):
                    report.dropped[reason] = report.dropped.get(reason, 0) + 1
                    continue
                source.add(a)
                target.add(b)
            for path in file.files:
                report.checksums[path.name] = file_digest(path)
    for reason, count in skipped.counts.items():
        report.dropped[reason] = report.dropped.get(reason, 0) + count
    bitext = Bitext(languages, source.texts(), target.texts())
    report.kept = len(bitext)
    logger.info("%s: %s", bitext.name, report.summary())
    return bitext, report


def _reason_to_drop(a: str, b: str, config: CorpusConfig, seen: set[bytes]) -> str | None:
    if not a or not b:
        return "blank"
    if max(len(a), len(b)) > config.max_characters:
        return "too long"
    key = hashlib.blake2b(f"{a}\t{b}".encode(), digest_size=10).digest()
    if key in seen:
        return "duplicate"
    seen.add(key)
    return None


@dataclass(frozen=True, eq=False)
class Split:
    """A bitext cut in three at random.

    Attributes:
        train: what is learnt from.
        development: decides when to stop.
        held_out: reported on, and used for nothing else.
    """

    train: Bitext
    development: Bitext
    held_out: Bitext


def split(bitext: Bitext, config: CorpusConfig, seed: int) -> Split:
    """Cut a bitext at random: corpora are sorted by score or by document, so neither end is a fair sample.

    A text that is held out is never trained on: training pairs that share a side with a held-out pair are left out.
    """
    order = np.random.default_rng([seed, 7]).permutation(len(bitext))
    if config.limit:
        order = order[: config.limit]
    held_out = min(config.max_held_out, int(len(order) * config.held_out))
    development = min(config.max_development, int(len(order) * config.development))
    kept_apart = order[: held_out + development]
    rest = np.sort(order[held_out + development :])
    apart = bitext.take(kept_apart)
    known = set(apart.source) | set(apart.target)
    rest = (
        np.array([i for i in rest if bitext.source[i] not in known and bitext.target[i] not in known], np.int64)
        if known
        else rest
    )
    return Split(
        bitext.take(rest),
        bitext.take(np.sort(order[held_out : held_out + development])),
        bitext.take(np.sort(order[:held_out])),
    )


def describe(config: CorpusConfig, files: Sequence[PairFile]) -> dict[str, Any]:
    """Return what decides the content of the bitext: settings and the files' checksums."""
    settings = asdict(config)
    settings.pop("paths")
    return {"settings": settings, "files": [[file_digest(p) for p in f.files] + [f.columns] for f in files]}


def corpus_files(config: CorpusConfig, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[PairFile]]:
    """Find the files of each language pair.

    Raises:
        ConfigError: several pairs but no mapping from pair to paths, or a pair without paths.
    """
    paths = config.paths
    if not isinstance(paths, dict):
        if len(pairs) > 1:
            names = ", ".join("-".join(pair) for pair in pairs)
            raise ConfigError(f"the model has the pairs {names}: give corpus.paths={{{'-'.join(pairs[0])}:[...],...}}")
        paths = {"-".join(pairs[0]): paths}
    out = {}
    for pair in pairs:
        if (given := paths.get("-".join(pair))) is None:
            raise ConfigError(f"corpus.paths has no entry for {'-'.join(pair)} (it has {', '.join(paths) or 'none'})")
        out[pair] = find_pairs([given] if isinstance(given, str) else list(given), pair, config.columns)
    return out
