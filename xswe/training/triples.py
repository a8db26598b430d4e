"""Triples for span-max training from files: a phrase, a passage that says it, and one that does not (as MS MARCO's)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from xswe.corpus.bitext import CorpusConfig, describe_files
from xswe.corpus.blocks import read_jobs
from xswe.corpus.decontamination import EvaluationTexts, evaluation_identity
from xswe.corpus.pairs import PairFile, find_pairs
from xswe.corpus.rows import Rows
from xswe.errors import ConfigError
from xswe.language.cuts import Cutter, cut_texts
from xswe.language.texts import Texts, concatenate
from xswe.training.pairs import equal_bags
from xswe.training.triplets import WordTriples

logger = logging.getLogger(__name__)


def find_triples(entries: Sequence[Any]) -> list[PairFile]:
    """Resolve the entries of ``spans.triples`` to files.

    Args:
        entries: as :func:`xswe.corpus.pairs.find_pairs` knows them. Of tab-separated files the columns are 0, 1 and 2, of
            records the fields ``query`` (or ``anchor``), ``positive`` and all whose names start with ``negative``; an entry
            may name its own, ``{path: ..., fields: [question, answer, other]}``.

    Raises:
        ConfigError: an entry names no passage that does not say the phrase.
        InputError: nothing is there.
    """
    files = find_pairs([entries] if isinstance(entries, str) else list(entries), ("", ""), (0, 1, 2))
    for file in files:
        if not file.with_negatives:
            raise ConfigError(
                f"spans.triples: {file.source}: name a phrase, a passage that says it and one that does not, as in "
                "{path: ..., columns: [0, 1, 2]} or {path: ..., fields: [query, positive, negative]}"
            )
    return files


def describe_triples(files: Sequence[PairFile], config: CorpusConfig) -> list[Any]:
    """Return what decides which triples are read."""
    clean = evaluation_identity(config.decontaminate) if config.decontaminate else None
    return [describe_files(files), config.on_error, config.max_characters, clean]


def read_triples(files: Sequence[PairFile], config: CorpusConfig, most: int, seed: int) -> tuple[Texts, Texts, Texts]:
    """Read triples; a phrase with several passages that do not say it makes a triple with each.

    Args:
        files: where they are.
        config: how damaged lines, over-long texts and evaluation texts are treated.
        most: keep so many, drawn at random; 0 for all.
        seed: decides which.

    Returns:
        Phrases, passages that say them, and passages that do not: n texts each.

    Raises:
        ConfigError: there is none.
    """
    evaluation = EvaluationTexts(config.decontaminate) if config.decontaminate else None
    generator = np.random.default_rng([seed, 31])
    columns, chance = [Texts.of([]) for _ in range(3)], np.zeros(0)
    read = dropped = 0
    for file in files:
        for job in read_jobs(file, on_error=config.on_error):
            block, given = _triples_of(job(), config.max_characters, evaluation)
            read, dropped = read + given, dropped + given - len(block[0])
            columns = [concatenate([kept, new]) for kept, new in zip(columns, block, strict=True)]
            chance = np.concatenate([chance, generator.random(len(block[0]))])
            if most and len(chance) > 2 * most:
                columns, chance = _thinned(columns, chance, most)
    if most and len(chance) > most:
        columns, chance = _thinned(columns, chance, most)
    logger.info("triples: %d read, %d dropped (blank, too long, or evaluation texts), %d kept", read, dropped, len(chance))
    if not len(chance):
        raise ConfigError("spans.triples: there is no triple of three texts in these files")
    return columns[0], columns[1], columns[2]


def _thinned(columns: Sequence[Texts], chance: np.ndarray, most: int) -> tuple[list[Texts], np.ndarray]:
    """Keep the rows with the ``most`` least numbers, in order."""
    rows = np.sort(np.argpartition(chance, most)[:most])
    return [texts.take(rows) for texts in columns], chance[rows]


def _triples_of(rows: Rows, longest: int, evaluation: EvaluationTexts | None) -> tuple[list[Texts], int]:
    """Return the triples of a block that can be trained on, and how many there were."""
    if rows.negatives is None:
        return [Texts.of([]) for _ in range(3)], 0
    own = np.repeat(np.arange(len(rows)), rows.negatives.counts)
    columns = [rows.source.take(own), rows.target.take(own), rows.negatives.texts[:]]
    fine = np.ones(len(own), bool)
    for texts in columns:
        # A text has no more characters than bytes; only of those that may be too long they are counted.
        fine &= texts.sizes > 0
        for row in np.flatnonzero(texts.sizes > longest):
            fine[row] &= len(texts[int(row)]) <= longest
        if evaluation is not None:
            fine &= ~np.logical_or(*evaluation.known(texts))
    kept = np.flatnonzero(fine)
    return [texts.take(kept) for texts in columns], len(own)


def cut_triples(columns: Sequence[Texts], cutter: Cutter, threads: int = 1) -> WordTriples:
    """Cut triples into words."""
    phrases, true, false = (cut_texts(cutter, texts, threads) for texts in columns)
    return WordTriples(phrases, true, false)


def split_triples(triples: WordTriples, share: float, most: int, seed: int) -> tuple[WordTriples, WordTriples]:
    """Cut triples in two by their phrases, at random: for training, and for development ``share`` of the phrases.

    Args:
        triples: what is cut.
        share: of the distinct phrases.
        most: phrases at most.
        seed: decides which.
    """
    numbers = equal_bags(triples.phrases.bags)
    distinct = int(numbers.max(initial=-1)) + 1
    chosen = np.random.default_rng([seed, 37]).permutation(distinct)[: min(most, int(share * distinct))]
    apart = np.isin(numbers, chosen)
    return triples.take(np.flatnonzero(~apart)), triples.take(np.flatnonzero(apart))
