"""A corpus of any size, converted once to flat arrays and cut into its parts.

A corpus of any size, converted once to flat memory-mapped arrays.

The arrays grow by blocks. Every few hundred thousand pairs they are brought to the disk and the place reached is noted (a
shard): a conversion that was killed goes on after its last whole shard and ends with the same bytes. What was kept before
is not remembered in files of its own: its hashes are computed again from the text, at the speed of the disk.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.bitext import (
    Bitext,
    CorpusConfig,
    CorpusReport,
    clean_file,
    content_settings,
    describe_files,
    kept_rows,
    make_admission,
    make_cleaner,
    reasons_of,
)
from xswe.corpus.cards import cache_folder, card_names, digest_of, entries_of, is_card
from xswe.corpus.cleaning import Cleaner
from xswe.corpus.formats import PairFile
from xswe.corpus.rows import NegativesWriter, Rows
from xswe.corpus.splits import part_of, split_rows
from xswe.errors import ConfigError, InputError
from xswe.io.files import file_digest, fingerprint, held, read_json, write_json
from xswe.io.store import GrowingArray, append_texts, map_unfinished, text_writer
from xswe.progress import bar
from xswe.version import __version__

logger = logging.getLogger(__name__)
SHARD_PAIRS = 500_000
_REHASH = 1 << 16  # pairs at a time


def identity_of(files: Sequence[PairFile], languages: tuple[str, str], config: CorpusConfig) -> str:
    """Return a fingerprint of all that decides the content of a conversion."""
    return fingerprint("convert", list(languages), describe_files(files), content_settings(config))


def convert(
    files: Sequence[PairFile],
    languages: tuple[str, str],
    config: CorpusConfig,
    folder: Path,
    *,
    threads: int = 1,
    shard_pairs: int = SHARD_PAIRS,
) -> tuple[Bitext, CorpusReport]:
    """Convert files to a folder that is memory-mapped, unless it is there; in the order of the files.

    Args:
        files: what to read.
        languages: source and target language.
        config: the settings.
        folder: where it goes; ``<folder>.partial`` holds what a killed run left.
        threads: how many work at once; the result does not depend on it.
        shard_pairs: pairs read between two points from which a killed run goes on.

    Returns:
        The bitext, memory-mapped, and the report.

    Raises:
        ConfigError: there is something else of the folder's name, which is left alone.
    """
    _check_place(folder)
    identity = identity_of(files, languages, config)
    if (folder / "signature.json").is_file():
        return _open(folder, languages, identity)
    partial = folder.with_name(f"{folder.name}.partial")
    with held(partial, f"{partial}: another process is converting this corpus; wait for it"):
        if not (folder / "signature.json").is_file():
            report = _Conversion(files, languages, config, partial, identity, threads, shard_pairs).run()
            write_json(partial / "signature.json", _signature(partial, files, languages, config, identity, report))
            (partial / "progress.json").unlink()
            (partial / ".lock").unlink(missing_ok=True)
            if folder.exists():
                folder.rmdir()  # an empty one; this fails, and nothing is lost, if it is empty no longer
            os.replace(partial, folder)
            logger.info("%s: %s", "-".join(languages), report.summary(config.limit))
    return _open(folder, languages, identity)


def _check_place(folder: Path) -> None:
    """Refuse a folder that holds anything but a conversion."""
    if not folder.name:
        raise ConfigError(f"output={folder}: give the name of a folder for the conversion to make")
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
    return Bitext.open(folder, languages), CorpusReport(**signature["report"])


class _Conversion:
    """One pass over the files, or over what a killed pass left of them."""

    def __init__(
        self,
        files: Sequence[PairFile],
        languages: tuple[str, str],
        config: CorpusConfig,
        folder: Path,
        identity: str,
        threads: int,
        shard_pairs: int,
    ) -> None:
        self.files, self.languages, self.config, self.folder = files, languages, config, folder
        self.identity, self.threads, self.shard_pairs = identity, threads, shard_pairs
        state: dict[str, Any] = read_json(folder / "progress.json") if (folder / "progress.json").is_file() else {}
        if state.get("identity") != identity:
            state = {"file": 0, "block": 0, "source": (0, 0), "target": (0, 0), "report": {}}
        self.file, self.block = state["file"], state["block"]
        self.report = CorpusReport(**state["report"])
        name = "-".join(languages)
        self.source = text_writer(folder, f"{name}.source", tuple(state["source"]))
        self.target = text_writer(folder, f"{name}.target", tuple(state["target"]))
        begun = state.get("negatives", ((0, 0), 0))
        wanted = any(file.with_negatives for file in files)
        self.negatives = NegativesWriter(folder, name, *begun) if wanted else None
        self.cleaner: Cleaner = make_cleaner(languages, config, threads)
        self.admission = make_admission(config, folder)

    def run(self) -> CorpusReport:
        """Convert all files, from where the last run stopped."""
        with (
            self.source,
            self.target,
            self.negatives or nullcontext(),
            bar(f"convert {'-'.join(self.languages)}", unit="pair") as progress,
        ):
            self.remember()
            progress.update(self.report.read)
            for number in range(self.file, len(self.files)):
                since = 0
                file = self.files[number]
                for block in clean_file(file, self.config, self.cleaner, self.threads, skip=self.block):
                    reasons = reasons_of(block, self.admission)
                    self.report.add(len(block.rows), reasons, block.rows.skipped)
                    rows = kept_rows(block.rows, reasons)
                    append_texts(self.source, rows.source)
                    append_texts(self.target, rows.target)
                    if self.negatives is not None:
                        self.negatives.append(rows.negatives, len(rows))
                    self.block += 1
                    since += len(block.rows)
                    progress.update(len(block.rows))
                    if since >= self.shard_pairs:
                        self.note()
                        since = 0
                self.report.checksums |= {str(path): digest_of(path) for path in file.files}
                self.file, self.block = number + 1, 0
                self.note()
        return self.report

    def note(self) -> None:
        """Bring everything to the disk and note the place reached."""
        self.source.sync()
        self.target.sync()
        state = {
            "identity": self.identity,
            "file": self.file,
            "block": self.block,
            "source": self.source.state,
            "target": self.target.state,
            "report": asdict(self.report),
        }
        if self.negatives is not None:
            self.negatives.sync()
            state["negatives"] = self.negatives.state
        write_json(self.folder / "progress.json", state)

    def remember(self) -> None:
        """Show the admission what an earlier run kept."""
        if not self.source.state[0]:
            return
        self.source.sync()
        self.target.sync()
        logger.info("going on after %s pairs", f"{self.report.read:,}")
        kept = _unfinished(self.folder, self.languages, self.source.state, self.target.state)
        for start in range(0, len(kept), _REHASH):
            rows = Rows(kept.source[start : start + _REHASH], kept.target[start : start + _REHASH])
            reasons_of(self.cleaner.hashed(rows), self.admission)


def _unfinished(folder: Path, languages: tuple[str, str], source: tuple[int, int], target: tuple[int, int]) -> Bitext:
    """Memory-map arrays whose headers do not yet tell their length."""
    name = "-".join(languages)
    sides = [map_unfinished(folder, f"{name}.{side}", state) for side, state in (("source", source), ("target", target))]
    return Bitext(languages, sides[0], sides[1])


def _signature(
    folder: Path,
    files: Sequence[PairFile],
    languages: tuple[str, str],
    config: CorpusConfig,
    identity: str,
    report: CorpusReport,
) -> dict[str, Any]:
    """Describe a conversion so that it can be made again, and told from any other."""
    arrays = sorted(folder.glob("*.npy"))
    return {
        "identity": identity,
        "languages": list(languages),
        "cards": [dict(entry) for entry in entries_of(config.paths, languages) if is_card(entry)],
        "files": [str(file.hub or path) for file in files for path in ([file.source] if file.hub else file.files)],
        "settings": content_settings(config),
        "report": asdict(report),
        "arrays": {path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)} for path in arrays},
        "versions": {"xswe": __version__, "numpy": np.__version__, "python": sys.version.split()[0]},
        "command": sys.argv[1:],
    }


# The corpus as a training run finds it: converted once, cut in three by rows, memory-mapped.


def converted_folder(files: Sequence[PairFile], pair: tuple[str, str], config: CorpusConfig, own: Path) -> Path:
    """Return where a pair's conversion belongs: of corpus cards alone in the cache, for all runs; else in ``own``."""
    names = _only_cards(config, pair)
    folder = cache_folder(config.cache) / "converted" if names else own
    return folder / f"{'+'.join(names) or 'text'}.{'-'.join(pair)}-{identity_of(files, pair, config)}"


def _only_cards(config: CorpusConfig, pair: tuple[str, str]) -> list[str]:
    """Return the names of a pair's corpus cards, or none where there are files of one's own beside them."""
    entries = entries_of(config.paths, pair)
    return card_names(entries) if all(map(is_card, entries)) else []


def prepare(
    files: Sequence[PairFile],
    pair: tuple[str, str],
    config: CorpusConfig,
    seed: int,
    folder: Path,
    own: Path,
    threads: int = 1,
) -> tuple[CorpusReport, dict[str, int]]:
    """Convert a pair's files and cut them in three.

    Args:
        files: what to read.
        pair: its languages.
        config: the settings.
        seed: decides the cut.
        folder: receives the development and held-out parts, the rows of the training part, and where its text is.
        own: folder of conversions that belong to this run alone.
        threads: how many work at once.

    Returns:
        The report, and the pairs of each part by its name.
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
    # A run folder may move; what lies within it is found from within.
    inside = not _only_cards(config, pair)
    write_json(
        folder / "train" / f"{bitext.name}.json",
        {"text": os.path.join("..", place.name) if inside else str(place.resolve()), "beside_stage": inside},
    )
    sizes = {"train": train.size, "development": len(rows.development), "held_out": len(rows.held_out)}
    logger.info("%s: %s", bitext.name, ", ".join(f"{size:,} {part.replace('_', ' ')}" for part, size in sizes.items()))
    return report, sizes


def open_training(stage: Path, pair: tuple[str, str]) -> Bitext:
    """Memory-map the training part that :func:`prepare` noted.

    Raises:
        InputError: the converted corpus is no longer where it was.
    """
    name = "-".join(pair)
    where = read_json(stage / "train" / f"{name}.json")
    text = stage / where["text"] if where["beside_stage"] else Path(where["text"])
    if not (text / "signature.json").is_file():
        cure = f"remove {stage} and give the same command again, which converts it anew"
        raise InputError(text, "the converted corpus is not there any more", cure)
    rows = np.load(stage / "train" / f"{name}.rows.npy", mmap_mode="r")
    return part_of(Bitext.open(text, pair), rows)
