"""Span-max training of static vectors (SLICE 3.1): the span that says a phrase is to be its nearest.

Triplets come from bitext: a sentence is the phrase, its translation hidden between sentences of its own side is the passage
that says it, and other sentences of that side are the passage that does not. Either side is the phrase's half of the time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from xswe.embedding.pooling import pool
from xswe.errors import ConfigError
from xswe.language.bags import Bags, concatenate
from xswe.language.cuts import Cut, join_cuts
from xswe.parallel import over_blocks, single_threaded_blas
from xswe.progress import track
from xswe.training.losses import through_norm
from xswe.training.optimisers import Adam
from xswe.training.schedule import Schedule
from xswe.training.span_loss import best_spans, span_max_loss

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpanTraining:
    """Settings of the span-max training.

    Attributes:
        steps: steps taken.
        batch: triplets a batch.
        rate: Adam's learning rate; it falls linearly to zero over the second half.
        scale: lambda (SLICE: 30).
        min_size: words of the shortest span.
        max_size: words of the longest; pairs with a longer side are left out.
        around: most sentences put before, and after, the hidden one.
        neighbours: fraction of the passages that are cut from the bitext as it stands, the others join sentences from
            anywhere in it; set it to 0 for a bitext that is no running text.
        hard: how many passages of other triplets of the batch are tried as the one that does not hold the phrase; the
            nearest is taken, for random ones soon teach nothing. 0 takes the random ones (SLICE).
        optimiser: ``lazy`` or ``dense``.
        evaluate_every: steps between looks at the development pairs; the best table seen is the result.
        seed: decides the triplets.
        threads: how many threads share a step.
    """

    steps: int = 1000
    batch: int = 512
    rate: float = 2e-4
    scale: float = 30.0
    min_size: int = 1
    max_size: int = 20
    around: int = 2
    neighbours: float = 0.5
    hard: int = 8
    optimiser: Literal["lazy", "dense"] = "lazy"
    evaluate_every: int = 100
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.steps < 0 or self.batch < 2 or self.around < 1 or not 0 <= self.neighbours <= 1:
            raise ConfigError("spans needs steps >= 0, batch >= 2, around >= 1 and 0 <= neighbours <= 1")
        if not 1 <= self.min_size <= self.max_size or self.evaluate_every < 1:
            raise ConfigError("spans needs 1 <= min_size <= max_size and evaluate_every >= 1")


@dataclass(frozen=True, eq=False)
class ParallelWords:
    """A bitext cut into words; row i of one side is the translation of row i of the other.

    Attributes:
        source: n sentences.
        target: n sentences.
    """

    source: Cut
    target: Cut

    def usable(self, min_size: int, max_size: int) -> np.ndarray:
        """Return the pairs both of whose sides have a length that a span can have."""
        sizes = [np.diff(side.texts) for side in (self.source, self.target)]
        return np.flatnonzero(np.logical_and.reduce([(min_size <= size) & (size <= max_size) for size in sizes]))


@dataclass(frozen=True, eq=False)
class Triplets:
    """Phrases, and for each a passage that says it and one that does not.

    Attributes:
        phrases: n bags.
        true: n passages.
        false: n passages.
    """

    phrases: Bags
    true: Cut
    false: Cut


def make_triplets(bitext: ParallelWords, rows: np.ndarray, config: SpanTraining, key: Sequence[int]) -> Triplets:
    """Hide the translations of pairs among other sentences.

    Args:
        bitext: the pairs.
        rows: int64 (n,), the pairs whose one side is the phrase.
        config: the settings.
        key: decides every choice, with the seed.

    Returns:
        Triplets; the phrase is the source side for about half of them, and the target side for the others.
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
    return Triplets(concatenate(phrases), join_cuts(true), join_cuts(false))


def _joined(side: Cut, groups: Sequence[Sequence[int]]) -> Cut:
    """Return each group of sentences, one after the other, as one text."""
    sentences = side.take(np.array([row for group in groups for row in group], np.int64))
    return Cut(sentences.ids, sentences.words, sentences.texts[np.cumsum([0, *map(len, groups)])])


class SpanTrainer:
    """One table, one optimiser; :meth:`step` is all of training."""

    def __init__(self, matrix: np.ndarray, config: SpanTraining) -> None:
        self.matrix, self.config = matrix, config
        self.optimiser = Adam(matrix, config.optimiser, threads=config.threads)

    def _vectors(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors of bags, and the norms of their sums."""
        sums = pool(self.matrix, bags, normalise=False, threads=self.config.threads)
        sums *= bags.lengths[:, None].astype(np.float32)
        norms = np.linalg.norm(sums, axis=1)
        return sums / np.where(norms > 0, norms, 1.0)[:, None].astype(np.float32), norms

    def _forward(self, triplets: Triplets) -> tuple[Bags, np.ndarray, np.ndarray]:
        """Return the bags of the phrases and of the best spans (true, then false), their unit vectors and norms."""
        c = self.config
        phrases, norms = self._vectors(triplets.phrases)
        bags, units, lengths = [triplets.phrases], [phrases], [norms]
        for cut in (triplets.true, triplets.false):
            found, _ = best_spans(self.matrix, cut.ids, cut.words, cut.texts, phrases, c.min_size, c.max_size, c.threads)
            bags.append(_rows_of(cut, found))
            unit, norm = self._vectors(bags[-1])
            units.append(unit)
            lengths.append(norm)
        return concatenate(bags), np.concatenate(units), np.concatenate(lengths)

    def harden(self, triplets: Triplets) -> Triplets:
        """Return the triplets with the false passage nearest to the phrase, of its own and those of ``hard`` others."""
        c, size = self.config, len(triplets.phrases)
        phrases, _ = self._vectors(triplets.phrases)
        every = np.arange(size)
        choice, nearest = every.copy(), np.full(size, -np.inf)
        for shift in range(min(c.hard, size - 1) + 1):
            rows = (every + shift) % size
            cut = triplets.true.take(rows) if shift else triplets.false
            _, scores = best_spans(self.matrix, cut.ids, cut.words, cut.texts, phrases, c.min_size, c.max_size, c.threads)
            better = scores > nearest
            choice[better], nearest[better] = (size + rows if shift else every)[better], scores[better]
        return Triplets(triplets.phrases, triplets.true, join_cuts([triplets.false, triplets.true]).take(choice))

    def loss(self, triplets: Triplets) -> float:
        """Mean loss of triplets."""
        _, unit, _ = self._forward(triplets)
        phrases, true, false = np.split(unit, 3)
        return span_max_loss(phrases, true, false, self.config.scale)[0]

    def step(self, triplets: Triplets, rate: float) -> float:
        """Take one optimiser step and return the loss before it."""
        bags, unit, norms = self._forward(triplets)
        phrases, true, false = np.split(unit, 3)
        loss, *gradients = span_max_loss(phrases, true, false, self.config.scale)
        gradient = np.concatenate(gradients)
        over_blocks(lambda a, b: through_norm(unit[a:b], gradient[a:b], norms[a:b]), len(unit), self.config.threads)
        self.optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradient, rate)
        return loss


def _rows_of(cut: Cut, found: np.ndarray) -> Bags:
    """Return the rows of the words ``found[i, 0]`` to ``found[i, 1]`` as bags."""
    starts, stops = cut.words[found[:, 0]], cut.words[found[:, 1]]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])
    source = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return Bags(cut.ids[source], offsets)


def train_spans(
    matrix: np.ndarray,
    bitexts: Sequence[ParallelWords],
    development: Sequence[ParallelWords],
    config: SpanTraining,
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Train an embedding table for span search.

    Args:
        matrix: float32 (rows, d), the start; not changed.
        bitexts: training pairs, one entry a language pair, cut into words.
        development: held-out pairs; may be empty, then the last table is the result.
        config: the settings.

    Returns:
        The table with the lowest development loss, and one row a look: step, loss, development loss.

    Raises:
        ConfigError: no pair has sides as short as a span.
    """
    usable = [bitext.usable(config.min_size, config.max_size) for bitext in bitexts]
    if not any(len(rows) and len(bitext.source) > 1 for rows, bitext in zip(usable, bitexts, strict=True)):
        raise ConfigError("no training pair has sides that a span can cover: raise max_size or give a larger corpus")
    trainer = SpanTrainer(np.array(matrix, np.float32, order="C"), config)
    fixed = [
        trainer.harden(make_triplets(bitext, rows[:1000], config, [2, k]))
        for k, bitext in enumerate(development)
        if len(bitext.source) > 1 and len(rows := bitext.usable(config.min_size, config.max_size))
    ]
    schedule = Schedule(tuple(map(len, usable)), config.batch, config.seed)
    best, best_loss = trainer.matrix.copy(), _mean_loss(trainer, fixed)
    history: list[dict[str, Any]] = [{"step": 0, "development_loss": best_loss}] if fixed else []
    running: list[float] = []
    with single_threaded_blas():
        for step in track(range(config.steps), "train spans", unit="step"):
            which, rows = schedule.at(step)
            triplets = trainer.harden(make_triplets(bitexts[which], usable[which][rows], config, [1, step]))
            rate = config.rate * min(1.0, 2.0 * (config.steps - step) / config.steps)
            running.append(trainer.step(triplets, rate))
            if (step + 1) % config.evaluate_every == 0 or step + 1 == config.steps:
                row: dict[str, Any] = {"step": step + 1, "loss": float(np.mean(running))}
                running = []
                if fixed:
                    row["development_loss"] = _mean_loss(trainer, fixed)
                if not fixed or row["development_loss"] < best_loss:
                    best, best_loss = trainer.matrix.copy(), row.get("development_loss", 0.0)
                history.append(row)
                logger.info("spans: %s", row)
    return best, history


def _mean_loss(trainer: SpanTrainer, triplets: Sequence[Triplets]) -> float:
    """Mean loss over development triplets, infinite without any."""
    sizes = [len(one.phrases) for one in triplets]
    return float(np.average([trainer.loss(one) for one in triplets], weights=sizes)) if sizes else float("inf")
