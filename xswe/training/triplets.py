"""Triplets for span-max training (SLICE 3.1): a phrase, a positive passage that expresses it, and a negative one.

They are read from files (such as MS MARCO's), or made from bitext: a sentence is the phrase, its translation hidden among
other sentences of the same side is the positive passage, and other sentences of that side are the negative one. The phrase
comes from either side half of the time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xswe.bitext.rows import Rows
from xswe.bitext.source import Source, find_pairs
from xswe.corpus.bitext import CorpusConfig, describe_files
from xswe.corpus.decontamination import EvaluationTexts, evaluation_identity
from xswe.errors import ConfigError
from xswe.io.ragged import Bags, Texts, concatenate, concatenate_bags
from xswe.io.settings import check_choice, check_least
from xswe.text.spans import Cut, join_cuts
from xswe.training.losses import Similarity
from xswe.training.optimisers import Optimiser
from xswe.training.pairs import equal_bags

logger = logging.getLogger(__name__)
_RUN = 64  # consecutive rows of a sample of a bitext


@dataclass(frozen=True)
class SpanTraining:
    """Settings of the span-max training.

    Attributes:
        max_steps: number of steps, 0 for none.
        batch_size: triplets per batch.
        learning_rate: Adam's learning rate; it falls linearly to zero over the second half.
        scale: lambda (SLICE: 30).
        similarity: of a phrase and a span: the cosine ``normalised`` to [0, 1] (SLICE), or the plain ``cosine``, which is
            as sharp at half the scale.
        min_size: minimum words of a span.
        max_size: maximum words of a span (SLICE: 10 in training, 20 at test); pairs with a longer side are left out.
        around: maximum number of sentences before, and after, the hidden one.
        neighbours: fraction of the passages that are running text of the bitext; the others join sentences from anywhere
            in it. Set it to 0 for a bitext that is not running text.
        hard: number of other triplets' passages in the batch to try as the negative passage; the nearest is taken, because
            random ones soon teach nothing. 0 for random ones (SLICE).
        optimiser: ``lazy`` or ``dense``.
        pairs: maximum number of pairs from each bitext, in runs from all over it, and of triples, drawn at random; 0 leaves
            out the bitexts, and takes all triples.
        triples: files or data sets of (phrase, positive passage, negative passage), named like those of ``corpus.paths``;
            see :func:`xswe.training.triplets.find_triples`.
        eval_steps: steps between evaluations on the development pairs; the best table seen is the result.
        seed: decides the triplets.
        threads: threads that share a step.
    """

    max_steps: int = 0
    batch_size: int = 512
    learning_rate: float = 2e-4
    scale: float = 30.0
    similarity: Similarity = "normalised"
    min_size: int = 1
    max_size: int = 10
    around: int = 2
    neighbours: float = 0.5
    hard: int = 8
    optimiser: Optimiser = "lazy"
    pairs: int = 200_000
    triples: tuple[Any, ...] = ()
    eval_steps: int = 100
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.max_steps < 0 or self.batch_size < 2 or self.around < 1 or not 0 <= self.neighbours <= 1:
            raise ConfigError("spans needs max_steps >= 0, batch_size >= 2, around >= 1 and 0 <= neighbours <= 1")
        check_choice("spans.similarity", self.similarity, Similarity)
        check_least(self, "spans", seed=0, threads=1)
        if not 1 <= self.min_size <= self.max_size or self.eval_steps < 1:
            raise ConfigError("spans needs 1 <= min_size <= max_size and eval_steps >= 1")
        if self.pairs < (0 if self.triples else 2):
            raise ConfigError(f"spans.pairs={self.pairs}: give at least 2, or 0 with spans.triples=[...]")
        if not 0 < self.learning_rate < math.inf or not 0 < self.scale < math.inf or self.hard < 0:
            raise ConfigError("spans needs learning_rate > 0, scale > 0 and hard >= 0")


@dataclass(frozen=True, eq=False)
class ParallelWords:
    """A bitext split into words; row i of one side is the translation of row i of the other."""

    source: Cut  # n sentences
    target: Cut  # n sentences

    def __len__(self) -> int:
        return len(self.source)

    def triplets(self, rows: np.ndarray, config: SpanTraining, key: Sequence[int]) -> Triplets:
        """Hide the translations of the pairs ``rows``; see :func:`make_triplets`."""
        return make_triplets(self, rows, config, key)

    def usable(self, min_size: int, max_size: int) -> np.ndarray:
        """Return the pairs whose sides both have the length of a span; none if there is only one pair."""
        if len(self.source) < 2:
            return np.zeros(0, np.int64)
        sizes = [np.diff(side.texts) for side in (self.source, self.target)]
        return np.flatnonzero(np.logical_and.reduce([(min_size <= size) & (size <= max_size) for size in sizes]))


@dataclass(frozen=True, eq=False)
class Triplets:
    """Phrases, each with a positive and a negative passage."""

    phrases: Bags  # n bags
    true: Cut  # n passages
    false: Cut  # n passages


@dataclass(frozen=True, eq=False)
class WordTriples:
    """Triples of files, split into words."""

    phrases: Cut  # n phrases
    true: Cut  # n positive passages
    false: Cut  # n negative passages

    def __len__(self) -> int:
        return len(self.phrases)

    def take(self, rows: np.ndarray) -> WordTriples:
        """Return the triples ``rows``."""
        return WordTriples(self.phrases.take(rows), self.true.take(rows), self.false.take(rows))

    def usable(self, min_size: int, max_size: int) -> np.ndarray:
        """Return the triples with a known unit in the phrase, and at least ``min_size`` words in both passages."""
        least = {"phrases": 1, "true": min_size, "false": min_size}
        enough = [np.diff(getattr(self, name).texts) >= words for name, words in least.items()]
        return np.flatnonzero(np.logical_and.reduce([*enough, self.phrases.bags.lengths > 0]))

    def triplets(self, rows: np.ndarray, config: SpanTraining, key: Sequence[int]) -> Triplets:
        """Return the triples ``rows``."""
        taken = self.take(rows)
        return Triplets(taken.phrases.bags, taken.true, taken.false)


def make_triplets(bitext: ParallelWords, rows: np.ndarray, config: SpanTraining, key: Sequence[int]) -> Triplets:
    """Hide the translations of the pairs ``rows``, int64 (n,), among other sentences.

    The phrase is the source side of about half of them, and the target side of the others. The seed and ``key`` determine
    every choice.
    """
    generator = np.random.default_rng([config.seed, *key])
    size, most = len(bitext.source), 2 * config.around + 1
    flipped = generator.random(len(rows)) < 0.5
    near = generator.random(len(rows)) < config.neighbours
    before = generator.integers(0, config.around + 1, len(rows))
    after = generator.integers(1, config.around + 1, len(rows))
    strangers = generator.integers(0, size - 1, (len(rows), 2 * most))
    strangers += strangers >= rows[:, None]  # never the pair itself
    parts = []
    for side in (False, True):
        own, other = (bitext.target, bitext.source) if side else (bitext.source, bitext.target)
        chosen = np.flatnonzero(flipped == side)
        hidden, strange = [], []
        for i in chosen.tolist():
            row, a, b = int(rows[i]), int(before[i]), int(after[i])
            if near[i]:
                a = max(a, 1) if row + 1 == size else a  # never alone
                around = range(max(0, row - a), row), range(row + 1, min(row + 1 + b, size))
            else:
                around = strangers[i, :a].tolist(), strangers[i, a : a + b].tolist()
            hidden.append([*around[0], row, *around[1]])
            strange.append(strangers[i, most : most + a + b + 1].tolist())
        parts.append((own.take(rows[chosen]).bags, _joined(other, hidden), _joined(other, strange)))
    phrases, true, false = zip(*parts, strict=True)
    return Triplets(concatenate_bags(phrases), join_cuts(true), join_cuts(false))


def _joined(side: Cut, groups: Sequence[Sequence[int]]) -> Cut:
    """Return each group of sentences, concatenated, as one text."""
    sentences = side.take(np.array([row for group in groups for row in group], np.int64))
    return Cut(sentences.ids, sentences.words, sentences.texts[np.cumsum([0, *map(len, groups)])])


def runs_of(size: int, most: int, seed: int) -> np.ndarray:
    """Return up to ``most`` of ``size`` rows, sorted int64, in whole runs of consecutive rows sampled from everywhere."""
    if size <= most:
        return np.arange(size)
    starts = np.sort(np.random.default_rng([seed, 23]).permutation(-(-size // _RUN))[: max(1, most // _RUN)]) * _RUN
    rows = (starts[:, None] + np.arange(_RUN)).ravel()
    return rows[rows < size]


def find_triples(entries: Sequence[Any]) -> list[Source]:
    """Resolve the entries of ``spans.triples``, as :func:`xswe.bitext.source.find_pairs` accepts them, to files.

    Tab-separated files are read by columns 0, 1 and 2, records by the fields ``query`` (or ``anchor``), ``positive`` and
    all whose names start with ``negative``; an entry may name others, as in ``{path: ..., fields: [question, answer,
    other]}``. ConfigError: an entry names no negative passage. InputError: a file is missing.
    """
    files = find_pairs([entries] if isinstance(entries, str) else list(entries), ("", ""), (0, 1, 2))
    for file in files:
        if not file.with_negatives:
            raise ConfigError(
                f"spans.triples: {file.name}: name a phrase, a positive and a negative passage, as in "
                "{path: ..., columns: [0, 1, 2]} or {path: ..., fields: [query, positive, negative]}"
            )
    return files


def describe_triples(files: Sequence[Source], config: CorpusConfig) -> list[Any]:
    """Return the settings that determine which triples are read."""
    clean = evaluation_identity(config.decontaminate) if config.decontaminate else None
    return [describe_files(files), config.on_error, config.max_characters, clean]


def read_triples(files: Sequence[Source], config: CorpusConfig, most: int, seed: int) -> tuple[Texts, Texts, Texts]:
    """Return ``most`` triples (0: all) sampled from files: phrases, positive passages and negative ones, n texts each.

    A phrase with several negative passages gives a triple with each. ``config`` says how to treat damaged lines, texts that
    are too long, and evaluation texts. ConfigError: there is no triple at all.
    """
    evaluation = EvaluationTexts(config.decontaminate) if config.decontaminate else None
    generator = np.random.default_rng([seed, 31])
    columns, chance = [Texts.of([]) for _ in range(3)], np.zeros(0)
    read = dropped = 0
    for file in files:
        for job in replace(file, on_error=config.on_error).jobs():
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
    """Keep the ``most`` rows with the smallest numbers, in order."""
    rows = np.sort(np.argpartition(chance, most)[:most])
    return [texts.take(rows) for texts in columns], chance[rows]


def _triples_of(rows: Rows, longest: int, evaluation: EvaluationTexts | None) -> tuple[list[Texts], int]:
    """Return the usable triples of a block, and the number of all its triples."""
    if rows.negatives is None:
        return [Texts.of([]) for _ in range(3)], 0
    own = np.repeat(np.arange(len(rows)), rows.negatives.counts)
    columns = [rows.source.take(own), rows.target.take(own), rows.negatives.texts[:]]
    fine = np.ones(len(own), bool)
    for texts in columns:
        # A text has at most as many characters as bytes, so only texts with too many bytes need counting.
        fine &= texts.sizes > 0
        for row in np.flatnonzero(texts.sizes > longest):
            fine[row] &= len(texts[int(row)]) <= longest
        if evaluation is not None:
            fine &= ~np.logical_or(*evaluation.known(texts))
    kept = np.flatnonzero(fine)
    return [texts.take(kept) for texts in columns], len(own)


def split_triples(triples: WordTriples, share: float, most: int, seed: int) -> tuple[WordTriples, WordTriples]:
    """Split triples by their distinct phrases, at random, into training and development triples.

    The latter have ``share`` of the phrases, at most ``most``.
    """
    numbers = equal_bags(triples.phrases.bags)
    distinct = int(numbers.max(initial=-1)) + 1
    chosen = np.random.default_rng([seed, 37]).permutation(distinct)[: min(most, int(share * distinct))]
    apart = np.isin(numbers, chosen)
    return triples.take(np.flatnonzero(~apart)), triples.take(np.flatnonzero(apart))
