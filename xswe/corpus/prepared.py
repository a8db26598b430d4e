"""The corpus as a training run finds it: converted once, cut in three by rows, memory-mapped."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from xswe.corpus.bitext import Bitext, CorpusConfig, CorpusReport
from xswe.corpus.convert import convert, identity_of
from xswe.corpus.pairs import PairFile
from xswe.corpus.sources import cache_folder, card_names, entries_of, is_card
from xswe.corpus.splits import part_of, split_rows
from xswe.corpus.store import GrowingArray
from xswe.errors import InputError
from xswe.files import read_json, write_json

logger = logging.getLogger(__name__)


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
