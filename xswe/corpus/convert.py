"""Conversion of a corpus of any size to flat memory-mapped arrays, split into its parts.

The arrays grow by blocks. Every few seconds they are flushed to the disk and the position is recorded: a killed conversion
continues from there and ends with the same bytes. The set of pairs kept so far is not saved: their hashes are computed
again from the text, at disk speed.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from xswe.bitext.rows import Negatives, Rows
from xswe.bitext.source import Source
from xswe.corpus.bitext import (
    Bitext,
    CorpusConfig,
    CorpusReport,
    content_settings,
    corpus_files,
    describe_files,
    kept_rows,
    make_admission,
    make_cleaner,
    reasons_of,
)
from xswe.corpus.cards import (
    SAMPLE,
    SENTENCES,
    Card,
    cache_folder,
    card_names,
    card_version,
    cards,
    entries_of,
    fetch_release,
    find_card,
    is_card,
    sample_folder,
)
from xswe.corpus.cleaned import CleanedBlocks, cleaned_ahead
from xswe.corpus.cleaning import REASONS, Cleaned, Cleaner
from xswe.corpus.fetch import digest_of
from xswe.corpus.splits import part_of, split_rows
from xswe.errors import ConfigError, InputError, Unfinished, XsweError
from xswe.io.files import check_folder, file_digest, fingerprint, read_json, write_json
from xswe.io.locks import locked
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import GrowingArray, Texts, append_texts, map_unfinished, text_writer
from xswe.io.results import table
from xswe.progress import bar, every
from xswe.version import __version__
from xswe.work import kept
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.parts import BEGINNING, Place
from xswe.work.records import Checksum

logger = logging.getLogger(__name__)
_STATE = "state.safetensors"
_PAIRS_PER_BLOCK = 1 << 16  # when a resumed conversion is read again


def identity_of(files: Sequence[Source], languages: tuple[str, str], config: CorpusConfig) -> str:
    """Return a fingerprint of everything that decides the content of a conversion."""
    return fingerprint("convert", list(languages), describe_files(files), content_settings(config))


def convert(
    files: Sequence[Source],
    languages: tuple[str, str],
    config: CorpusConfig,
    folder: Path,
    *,
    threads: int = 1,
    execution: ExecutionConfig = LOCAL,
) -> tuple[Bitext, CorpusReport]:
    """Convert files, in their order, to a memory-mapped folder, unless it exists.

    ``<folder>.partial`` keeps the work of a killed run. ConfigError: the folder exists and is something else; it is left
    alone. XsweError: shards failed. Unfinished: other tasks of the array are not done yet.
    """
    _check_place(folder)
    identity = identity_of(files, languages, config)
    if (folder / "signature.json").is_file():
        return _open(folder, languages, identity)
    try:
        with cleaned_ahead(files, languages, config, identity, folder, execution, threads) as cleaned:
            _convert(files, languages, config, folder, identity, cleaned, threads)
    except Unfinished:
        if not (folder / "signature.json").is_file():  # otherwise another task of the array has made it meanwhile
            raise
    return _open(folder, languages, identity)


def _convert(
    files: Sequence[Source],
    languages: tuple[str, str],
    config: CorpusConfig,
    folder: Path,
    identity: str,
    cleaned: CleanedBlocks,
    threads: int,
) -> None:
    """Join the cleaned blocks, after waiting for any other process that does so, unless that has finished."""
    partial = folder.with_name(f"{folder.name}.partial")
    with locked(partial):
        if (folder / "signature.json").is_file():
            shutil.rmtree(partial)
            return
        try:
            report = _Conversion(files, languages, config, partial, cleaned.identity).run(cleaned)
            facts = _signature(partial, files, languages, config, identity, report, threads)
            write_json(partial / "signature.json", facts)
            _put_in_place(partial, folder)
        except BaseException as error:
            # On a file system without locks, another process may have made the same meanwhile.
            made = isinstance(error, (OSError, XsweError)) and (folder / "signature.json").is_file()
            if made or not (partial / _STATE).is_file():  # without it, the next run starts over
                shutil.rmtree(partial, ignore_errors=True)
            if made:
                return
            raise
        kept.keep(folder / "signature.json", f"after the conversion of {'-'.join(languages)}")
        logger.info("%s: %s", "-".join(languages), report.summary(config.limit))


def _put_in_place(partial: Path, folder: Path) -> None:
    (partial / _STATE).unlink(missing_ok=True)
    (partial / ".lock").unlink(missing_ok=True)
    if folder.exists():
        folder.rmdir()  # it was empty; if it no longer is, this fails and nothing is removed
    os.replace(partial, folder)


def _check_place(folder: Path) -> None:
    """Raise ConfigError for a folder that contains anything but a conversion."""
    if not folder.name:
        raise ConfigError(f"output={folder}: give the name of a folder for the conversion to make")
    check_folder(folder)
    if (folder / "signature.json").is_file() or not (folder.exists() or folder.is_symlink()):
        return
    if not folder.is_dir() or folder.is_symlink() or any(folder.iterdir()):
        raise ConfigError(f"{folder}: exists and is no converted corpus; choose another name or move it away")


def _open(folder: Path, languages: tuple[str, str], identity: str) -> tuple[Bitext, CorpusReport]:
    signature = read_json(folder / "signature.json")
    if not {"identity", "report"} <= set(signature):
        raise ConfigError(f"{folder}: exists and is no converted corpus; choose another name or move it away")
    if signature["identity"] != identity:
        raise ConfigError(f"{folder}: it was made from other files or settings; remove it, and give the same command again")
    _check_sound(folder, signature)
    return Bitext.open(folder, languages), CorpusReport(**signature["report"])


def _check_sound(folder: Path, signature: Mapping[str, Any]) -> None:
    """Raise InputError if an array of a conversion is damaged; only files newer than the signature are read."""
    signed = (folder / "signature.json").stat().st_mtime_ns
    for name, written in signature["arrays"].items():
        if not _is_sound(folder / name, signed, **written):
            raise InputError(
                folder / name, "damaged since it was written", f"remove {folder}, and give the same command again"
            )


def _is_sound(path: Path, signed: int, bytes: int, sha256: str) -> bool:
    with suppress(OSError):
        state = path.stat()
        return state.st_size == bytes and (state.st_mtime_ns <= signed or file_digest(path) == sha256)
    return False


class _Conversion:
    """The arrays of a bitext, appended block by block; those of a killed run are continued."""

    def __init__(
        self, files: Sequence[Source], languages: tuple[str, str], config: CorpusConfig, folder: Path, identity: str
    ) -> None:
        self.files, self.folder, self.identity, self.name = files, folder, identity, "-".join(languages)
        self.parts = ["source", "target"] + ["negatives"] * any(file.with_negatives for file in files)
        state = self._kept()
        self.begin: Place = state["place"][0], state["place"][1]
        self.report = CorpusReport(**state["report"])
        self.texts = {part: text_writer(folder, f"{self.name}.{part}", tuple(state[part])) for part in self.parts}
        counts = folder / f"{self.name}.negatives.counts.npy"  # see :meth:`xswe.bitext.rows.Negatives.save`
        self.counts = GrowingArray(counts, np.int32, self.report.kept) if "negatives" in self.parts else None
        self.growing: list[Any] = [*self.texts.values(), *([self.counts] if self.counts else [])]
        self.admission = make_admission(config, folder)
        if self.begin != BEGINNING:
            self._remember(make_cleaner(languages, config))

    def _kept(self) -> dict[str, Any]:
        """Return the state that a killed run recorded, after verifying its files; else the initial state."""
        if (found := load_checkpoint(self.folder / _STATE, self.identity)) is not None:
            with suppress(OSError, ValueError):  # an array is too short
                self.sums = self._written(found[1])
                if _finished(self.sums) == found[1]["sums"]:
                    return found[1]
            logger.warning("%s: damaged since it was written; the conversion starts over", self.folder)
        (self.folder / _STATE).unlink(missing_ok=True)
        self.sums = {part: (Checksum(), Checksum()) for part in self.parts}
        return {"place": BEGINNING, "report": {}, **dict.fromkeys(self.parts, (0, 0))}

    def _written(self, state: Mapping[str, Any]) -> _Sums:
        """Return the checksums of the arrays on the disk."""
        found = {}
        for part in self.parts:
            texts = map_unfinished(self.folder, f"{self.name}.{part}", state[part])
            found[part] = Checksum(), Checksum()
            for start in range(0, len(texts), _PAIRS_PER_BLOCK):
                _update_sums(found[part], texts[start : start + _PAIRS_PER_BLOCK])
            texts.release()
        return found

    def _remember(self, cleaner: Cleaner) -> None:
        """Add the pairs kept by the killed run to the admission."""
        logger.info("going on after %s pairs", f"{self.report.read:,}")
        for one in self.growing:
            one.sync()
        source, target = (
            map_unfinished(self.folder, f"{self.name}.{part}", self.texts[part].state) for part in self.parts[:2]
        )
        for start in range(0, len(source), _PAIRS_PER_BLOCK):
            rows = Rows(source[start : start + _PAIRS_PER_BLOCK], target[start : start + _PAIRS_PER_BLOCK])
            reasons_of(cleaner.hashed(rows), self.admission)

    def run(self, cleaned: CleanedBlocks) -> CorpusReport:
        """Add all blocks; record the position now and then."""
        due = every(kept.BRIEF)
        with ExitStack() as stack:
            for one in self.growing:
                stack.enter_context(closing(one))
            progress = stack.enter_context(bar(f"convert {self.name}", unit="pair", initial=self.report.read))
            for place, block in cleaned.read(self.begin):
                self._add(block)
                progress.update(len(block.rows))
                if due():
                    self._note(place)
        if _finished(self._written(self._state())) != _finished(self.sums):
            (self.folder / _STATE).unlink(missing_ok=True)
            raise XsweError(f"{self.folder}: damaged while it was written; give the same command again")
        for path in (path for file in self.files for path in file.files):
            self.report.checksums[str(path)] = digest_of(path)
        self.report.dropped = dict(sorted(self.report.dropped.items()))  # in an order that does not depend on blocks
        return self.report

    def _add(self, block: Cleaned) -> None:
        """Append the kept pairs of a block."""
        reasons = reasons_of(block, self.admission)
        self.report.add(len(block.rows), reasons, block.rows.skipped)
        rows = kept_rows(block.rows, reasons)
        added = [rows.source, rows.target]
        if self.counts is not None:
            negatives = rows.negatives or Negatives(Texts.of([]), np.zeros(len(rows) + 1, np.int64))
            self.counts.append(negatives.counts)
            added.append(negatives.texts[:])
        for part, texts in zip(self.parts, added, strict=True):
            append_texts(self.texts[part], texts)
            _update_sums(self.sums[part], texts)

    def _state(self) -> dict[str, Any]:
        """Return the lengths of the arrays."""
        return {part: writer.state for part, writer in self.texts.items()}

    def _note(self, place: Place) -> None:
        """Flush everything to the disk, and record the position."""
        for one in self.growing:
            one.sync()
        state = {**self._state(), "place": place, "sums": _finished(self.sums), "report": asdict(self.report)}
        where = f"after {self.report.read:,} pairs of {self.name}"
        save_checkpoint(self.folder / _STATE, self.identity, {}, state, where)


_Sums = dict[str, tuple[Checksum, Checksum]]  # by part: of the bytes, and of the texts' lengths


def _update_sums(sums: tuple[Checksum, Checksum], texts: Texts) -> None:
    for checksum, numbers in zip(sums, (texts.data, texts.sizes), strict=True):
        checksum.add(numbers)


def _finished(sums: _Sums) -> dict[str, list[int]]:
    return {part: [checksum.finish() for checksum in both] for part, both in sums.items()}


def _signature(
    folder: Path,
    files: Sequence[Source],
    languages: tuple[str, str],
    config: CorpusConfig,
    identity: str,
    report: CorpusReport,
    threads: int,
) -> dict[str, Any]:
    """Return the signature of a conversion: everything that decides its result, and checksums of that."""
    arrays = sorted(folder.glob("*.npy"))
    return {
        "identity": identity,
        "languages": list(languages),
        "cards": [dict(entry) for entry in entries_of(config.paths, languages) if is_card(entry)],
        "files": [str(path) for file in files for path in ([file.hub] if file.hub else file.files)],
        "settings": content_settings(config),
        "report": asdict(report),
        "arrays": {
            path.name: {"bytes": path.stat().st_size, "sha256": digest}
            for path, digest in zip(arrays, in_order(file_digest, arrays, threads), strict=True)
        },
        "versions": {"xswe": __version__, "numpy": np.__version__, "python": sys.version.split()[0]},
        "command": sys.argv[1:],
    }


# The corpus for a training run: converted once, split in three by rows, memory-mapped.


def converted_folder(files: Sequence[Source], pair: tuple[str, str], config: CorpusConfig, own: Path) -> Path:
    """Return the folder of a pair's conversion: in the cache, for all runs, if all are corpus cards; else in ``own``."""
    names = _only_cards(config, pair)
    folder = cache_folder(config.cache) / "converted" if names else own
    return folder / f"{'+'.join(names) or 'text'}.{'-'.join(pair)}-{identity_of(files, pair, config)}"


def _only_cards(config: CorpusConfig, pair: tuple[str, str]) -> list[str]:
    """Return the names of a pair's corpus cards, or none if there are also files of the user's own."""
    entries = entries_of(config.paths, pair)
    return card_names(entries) if all(map(is_card, entries)) else []


def prepare(
    files: Sequence[Source],
    pair: tuple[str, str],
    config: CorpusConfig,
    seed: int,
    folder: Path,
    own: Path,
    threads: int = 1,
) -> tuple[CorpusReport, dict[str, int]]:
    """Convert a pair's files and split them in three; return the report, and the number of pairs in each part by name.

    ``seed`` decides the split. ``folder`` receives the development and held-out parts, the rows of the training part, and
    the path of its text; ``own`` is for conversions that belong to this run alone.
    """
    place = converted_folder(files, pair, config, own)
    bitext, report = convert(files, pair, config, place, threads=threads)
    rows = split_rows(bitext, config, seed)
    for part in ("development", "held_out"):
        bitext.take(getattr(rows, part)).save(folder / part)
    (folder / "train").mkdir(exist_ok=True)
    train = GrowingArray(folder / "train" / f"{bitext.name}.rows.npy", np.int64)
    with closing(train):
        for block in rows.training.blocks():
            train.append(block)
    # A run folder may be moved, so paths within it are relative.
    inside = not _only_cards(config, pair)
    write_json(
        folder / "train" / f"{bitext.name}.json",
        {"text": os.path.join("..", place.name) if inside else str(place.resolve()), "beside_stage": inside},
    )
    sizes = {"train": train.size, "development": len(rows.development), "held_out": len(rows.held_out)}
    logger.info("%s: %s", bitext.name, ", ".join(f"{size:,} {part.replace('_', ' ')}" for part, size in sizes.items()))
    return report, sizes


def open_training(stage: Path, pair: tuple[str, str]) -> Bitext:
    """Memory-map the training part that :func:`prepare` recorded.

    InputError: the converted corpus is no longer where it was.
    """
    name = "-".join(pair)
    where = read_json(stage / "train" / f"{name}.json")
    text = stage / where["text"] if where["beside_stage"] else Path(where["text"])
    if not (text / "signature.json").is_file():
        hint = f"remove {stage} and give the same command again, which converts it anew"
        raise InputError(text, "the converted corpus is not there any more", hint)
    _check_sound(text, read_json(text / "signature.json"))
    rows = np.load(stage / "train" / f"{name}.rows.npy", mmap_mode="r")
    return part_of(Bitext.open(text, pair), rows)


_SKIPPED = {
    "line too long": "a line of over a mebibyte",
    "not UTF-8": "a line that is not UTF-8",
    "NUL byte": "a line with a NUL byte",
    "too few columns": "a line without the columns asked for",
    "unequal length": "the end of the longer of two line-aligned files",
    "damaged archive": "all that came after the damage",
    "other languages": "a unit without one of the two languages",
    "not translated": "a unit without a translation",
    "fuzzy or obsolete": "a message whose translation is marked so",
}


@dataclass(frozen=True)
class ConvertedCorpus:
    """A converted corpus.

    Attributes:
        bitext: its pairs.
        report: how many pairs were read, kept and dropped.
        place: the folder.
        cards: the corpora it was made from.
        limit: how many pairs a training run draws; 0 for all.
    """

    bitext: Bitext
    report: CorpusReport
    place: Path
    cards: tuple[Card, ...]
    limit: int = 0

    def __str__(self) -> str:
        size = sum(path.stat().st_size for path in self.place.iterdir())
        lines = [_summary(self.report), "", f"{len(self.bitext):,} pairs, {size / 1e6:,.1f} MB: {self.place}"]
        if 0 < self.limit < len(self.bitext):
            lines.append(f"corpus.limit: a training run draws {self.limit:,} of them at random; all are converted")
        lines += [f"licence: {card.terms}; cite: {card.cite}" for card in self.cards]
        return "\n".join(lines)


def list_corpora() -> str:
    """Return a table of all cards, with their licences."""
    rows = []
    for card in cards().values():
        for release in card.versions:
            served = ", ".join(f"{pair} ({size})" if size else pair for pair, size in release.pairs.items())
            rows.append([card.name, release.version, card.kind, served or ", ".join(release.languages)])
        if not card.versions:
            rows.append([card.name, "-", card.kind, "any"])
    width = max(len(name) for name in cards())
    licences = "\n".join(f"{card.name.ljust(width)}  {card.terms}" for card in cards().values() if card.versions)
    return (
        table(["corpus", "version", "kind", "pairs or languages"], rows)
        + f"\n\nlicences, as their sources state them:\n{licences}\n\npython -m xswe corpus show corpus=ccmatrix"
    )


def show_corpora(config: CorpusConfig) -> str:
    """Return the text of the cards that a configuration names, or of ``local`` if it names none."""
    if config.paths == SAMPLE:
        return (sample_folder() / "card.yaml").read_text(encoding="utf-8").rstrip()
    return "\n\n".join(str(find_card(name)) for name in _cards(config, ()) or ["local"])


def _cards(config: CorpusConfig, languages: tuple[str, ...]) -> list[str]:
    """Return the names of the corpus cards of a language or pair, or of all without one."""
    if isinstance(config.paths, Mapping) and not languages:
        return list(dict.fromkeys(name for key in config.paths for name in _cards(config, tuple(key.split("-")))))
    return card_names(entries_of(config.paths, languages))


def fetch_corpora(config: CorpusConfig, languages: tuple[str, ...]) -> str:
    """Fetch the files of the cards that a configuration names, or find the sample; return their paths and licences.

    ConfigError: it names no card, or one whose pairs are read from the hub. InputError: the corpus cannot be fetched, or is
    not as its card says.
    """
    if config.paths == SAMPLE:
        return f"{sample_folder() / SENTENCES}\nlicence: {yaml.safe_load(show_corpora(config))['licence']}"
    entries = [entry for entry in entries_of(config.paths, languages) if is_card(entry)]
    if not entries:
        raise ConfigError("name the corpus to fetch, as in  python -m xswe corpus fetch corpus=ccmatrix pair=en-ja")
    lines = []
    for name, version in map(card_version, entries):
        card = find_card(name)
        release = card.release_for(languages, version)
        if release.format == "hub":
            raise ConfigError(f"corpus {card.name} {release.version} is read from the hub while it is converted")
        paths = fetch_release(card, release, languages, config.cache, config.offline)
        lines += [*map(str, paths), f"licence: {card.terms}"]
    return "\n".join(lines)


def convert_corpus(
    config: CorpusConfig,
    languages: tuple[str, ...],
    output: str | Path | None = None,
    threads: int | None = None,
    execution: ExecutionConfig = LOCAL,
) -> ConvertedCorpus:
    """Read, clean and convert a bitext for training, into ``output`` or the cache; see :func:`convert`."""
    threads = available_threads(threads)
    if len(languages) != 2:
        raise ConfigError(f"a corpus has two languages, not {len(languages)}: pair=en-ja")
    pair = (languages[0], languages[1])
    files = corpus_files(config, [pair])[pair]
    place = Path(output) if output else converted_folder(files, pair, config, cache_folder(config.cache) / "converted")
    bitext, report = convert(files, pair, config, place, threads=threads, execution=execution)
    return ConvertedCorpus(bitext, report, place, tuple(map(find_card, _cards(config, pair))), config.limit)


def _summary(report: CorpusReport) -> str:
    """Format the counts of dropped pairs, with the meaning of each reason."""
    explained = {**_SKIPPED, **REASONS}
    counted: Sequence[tuple[str, int]] = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
    rows = [["read", f"{report.read:,}", ""]]
    rows += [[reason, f"{count:,}", explained.get(reason, "")] for reason, count in counted]
    return table(["pairs", "count", ""], [*rows, ["kept", f"{report.kept:,}", ""]])
