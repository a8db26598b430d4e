"""Span-max training of static vectors (SLICE 3.1): the span that says a phrase is to be its nearest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from xswe.errors import ConfigError
from xswe.io.files import fingerprint, load_checkpoint, save_checkpoint
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Bags, concatenate_bags
from xswe.model.static import pool
from xswe.text.spans import Cut, join_cuts
from xswe.training.loop import BestTable, Schedule, take_steps
from xswe.training.losses import best_spans, span_max_loss, through_norm
from xswe.training.optimisers import Adam
from xswe.training.pairs import equal_bags
from xswe.training.triplets import ParallelWords, SpanTraining, Triplets, WordTriples

logger = logging.getLogger(__name__)


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
        return concatenate_bags(bags), np.concatenate(units), np.concatenate(lengths)

    def harden(self, triplets: Triplets) -> Triplets:
        """Return the triplets with the false passage nearest to the phrase, of its own and those of ``hard`` others."""
        c, size = self.config, len(triplets.phrases)
        phrases, _ = self._vectors(triplets.phrases)
        # What says the phrase, or something that is asked for in the same words, is no passage that does not.
        asked, said = equal_bags(triplets.phrases), equal_bags(triplets.true.bags)
        every = np.arange(size)
        choice, nearest = every.copy(), np.full(size, -np.inf)
        for shift in range(min(c.hard, size - 1) + 1):
            rows = (every + shift) % size
            cut = triplets.true.take(rows) if shift else triplets.false
            _, scores = best_spans(self.matrix, cut.ids, cut.words, cut.texts, phrases, c.min_size, c.max_size, c.threads)
            better = scores > nearest
            if shift:
                better &= (asked[rows] != asked) & (said[rows] != said)
            choice[better], nearest[better] = (size + rows if shift else every)[better], scores[better]
        return Triplets(triplets.phrases, triplets.true, join_cuts([triplets.false, triplets.true]).take(choice))

    def loss(self, triplets: Triplets) -> float:
        """Mean loss of triplets."""
        _, unit, _ = self._forward(triplets)
        phrases, true, false = np.split(unit, 3)
        return span_max_loss(phrases, true, false, self.config.scale, self.config.similarity)[0]

    def step(self, triplets: Triplets, rate: float) -> float:
        """Take one optimiser step and return the loss before it."""
        bags, unit, norms = self._forward(triplets)
        phrases, true, false = np.split(unit, 3)
        loss, *gradients = span_max_loss(phrases, true, false, self.config.scale, self.config.similarity)
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
    bitexts: Sequence[ParallelWords | WordTriples],
    development: Sequence[ParallelWords | WordTriples],
    config: SpanTraining,
    *,
    checkpoint: Path | None = None,
    log: Callable[[list[dict[str, float]]], None] = lambda _: None,
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Train an embedding table for span search.

    Args:
        matrix: float32 (rows, d), the start; not changed.
        bitexts: training pairs, one entry a language pair, cut into words; or triples.
        development: held-out pairs or triples; may be empty, then the last table is the result.
        config: the settings.
        checkpoint: a file to save the state to now and then, and to resume from if it is there and fits.
        log: is given the history after each look.

    Returns:
        The table with the lowest development loss, and one row a look: step, loss, development loss. The same inputs
        give the same bytes, interrupted or not.

    Raises:
        ConfigError: no pair has sides as short as a span.
    """
    usable = [bitext.usable(config.min_size, config.max_size) for bitext in bitexts]
    if not any(map(len, usable)):
        raise ConfigError("no training pair has sides that a span can cover: raise max_size or give a larger corpus")
    trainer = SpanTrainer(np.array(matrix, np.float32, order="C"), config)
    fixed = [
        trainer.harden(bitext.triplets(rows[:1000], config, [2, k]))
        for k, bitext in enumerate(development)
        if len(rows := bitext.usable(config.min_size, config.max_size))
    ]
    schedule = Schedule(tuple(map(len, usable)), config.batch_size, config.seed)
    identity = fingerprint({**asdict(config), "threads": None, "triples": None}, schedule.sizes, list(matrix.shape))
    state = BestTable(trainer.matrix, trainer.optimiser)
    if found := load_checkpoint(checkpoint, identity):
        state.restore(*found)
        logger.info("resuming the span training at step %d", trainer.optimiser.steps)
    elif fixed:
        state.begin(_mean_loss(trainer, fixed))

    def take(step: int) -> float:
        which, rows = schedule.at(step)
        triplets = trainer.harden(bitexts[which].triplets(usable[which][rows], config, [1, step]))
        return trainer.step(triplets, config.learning_rate * min(1.0, 2.0 * (config.max_steps - step) / config.max_steps))

    take_steps(
        state,
        config,
        take,
        lambda: {"development_loss": _mean_loss(trainer, fixed)} if fixed else {},
        name="train spans",
        save=None if checkpoint is None else lambda: save_checkpoint(checkpoint, identity, *state.state()),
        log=log,
    )
    return state.best, state.history


def _mean_loss(trainer: SpanTrainer, triplets: Sequence[Triplets]) -> float:
    """Mean loss over development triplets."""
    sizes = [len(one.phrases) for one in triplets]
    return float(np.average([trainer.loss(one) for one in triplets], weights=sizes))
