"""Refinement of an embedding table: contrastive on parallel text, by distillation on any text (EN paper 3.3).

The texts are tokenised once, beforehand; a step gathers the rows of a batch, sums them, compares the sums, and updates only
those rows. Nothing here depends on where the vectors came from; random ones are refined in the same way. Also training on
spans of a text (SLICE).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from xswe.errors import ConfigError
from xswe.io.files import fingerprint
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Bags, bounds_of, concatenate_bags
from xswe.io.settings import check_choice, check_least, for_all
from xswe.model.bigrams import MOST, Bigrams
from xswe.model.kernels import divide_rows, row_norms, sum_rows
from xswe.model.static import pool
from xswe.text.spans import Cut, join_cuts
from xswe.training.graded import GradedLoss
from xswe.training.loop import BestTable, Schedule, Training, take_steps
from xswe.training.losses import best_spans, span_max_loss, through_norm
from xswe.training.objective import Objective
from xswe.training.optimisers import Adam, Optimiser
from xswe.training.pairs import ParallelBags, equal_bags, grouped
from xswe.training.stages import OMIT_DEFAULT, fingerprint_fields
from xswe.training.triplets import ParallelWords, SpanTraining, Triplets, WordTriples

logger = logging.getLogger(__name__)
_SOURCES_AT_A_TIME = 1024  # sources compared with all targets at a time

Duplicates = Literal["mask", "drop", "keep"]
_MASKS = for_all(Duplicates, {"mask": True, "drop": True, "keep": False})  # with drop a batch has none
_DROPS = for_all(Duplicates, {"mask": False, "drop": True, "keep": False})
SampledFrom = Literal["corpus", "contexts"]
OF_CONTEXTS = for_all(SampledFrom, {"corpus": False, "contexts": True})
Falling = Literal["linear", "cosine"]
# The learning rate from its maximum, the steps since it began to fall, the steps left, and the steps of the whole fall.
_RATES: dict[str, Callable[[float, float, float, float], float]] = for_all(
    Falling,
    {
        "linear": lambda rate, _since, left, over: rate * left / over,
        "cosine": lambda rate, since, _left, over: rate * 0.5 * (1.0 + math.cos(math.pi * since / over)),
    },
)


@dataclass(frozen=True)
class RefineConfig:
    """Settings of the refinement; values of the EN paper are given where they differ from the defaults.

    Attributes:
        max_steps: maximum number of steps (paper: 30,000).
        batch_size: translation pairs per batch (JA paper and code: 128).
        learning_rate: Adam's learning rate (paper: 1e-3).
        decay_start: fraction of the steps before the rate begins to fall to zero (paper: 1.0, never).
        optimiser: ``lazy`` or ``dense`` (paper).
        max_grad_norm: maximum gradient norm, 0 for no limit (reference code: 5.0).
        eval_steps: steps between evaluations on the development pairs (reference code: 40).
        patience: evaluations without improvement before stopping early (reference code: 5); 0 for never.
        patience_epochs: passes over the training pairs without improvement before stopping early, whatever the number of
            evaluations, which on a small corpus are many passes apart. 0 for never.
        seed: decides the batches.
        threads: threads that share a step.
        duplicates: how to treat equal sentences: they are not negatives of each other (``mask``); no batch has a sentence
            twice, but the second pair waits for a later batch and another is drawn (``drop``); or they are treated like
            any others (``keep``, paper).
        neighbours: number of pairs to draw together because the table finds them similar at the start of an epoch, so each
            is a hard negative of the others. 0 for batches drawn at random.
        sample_from: training and development pairs are those of the ``corpus``, or drawn from those with a sentence chosen
            as one of the ``contexts`` (paper); ``corpus.development`` and ``corpus.max_development`` then refer to these.
        per_unit: with ``contexts``, draw pairs by at most this many sentences of each unit (reference code, one language:
            2); 0 for all.
        epochs: passes over the training pairs, instead of ``max_steps``; 0 to use ``max_steps``.
        warmup: fraction of the steps, at the start, over which the rate rises linearly from zero.
        schedule: how the rate falls, after ``warmup`` and ``decay_start``: ``linear`` or ``cosine``.
        weight_decay: weight decay of AdamW, decoupled from the gradient; with ``lazy`` only the rows of a batch decay.
        start: a model to start from, instead of a teacher's or random vectors: a folder, ``mini``, or ``user/repository``
            on the hub, with the units of the run (``units.vocabulary=FOLDER/tokenizer.json``).
        bigrams: number of most frequent pairs of neighbouring units that get rows, too, zero at the start; 0 for none.
            Such a model is better and larger, but encodes more slowly, and other libraries cannot open it.
    """

    max_steps: int = 2500
    batch_size: int = 1024
    learning_rate: float = 2e-3
    decay_start: float = 0.5
    optimiser: Optimiser = "lazy"
    max_grad_norm: float = 0.0
    eval_steps: int = 100
    patience: int = 10
    seed: int = 0
    threads: int = 1
    duplicates: Duplicates = field(default="mask", metadata=OMIT_DEFAULT)
    neighbours: int = field(default=0, metadata=OMIT_DEFAULT)
    sample_from: SampledFrom = field(default="corpus", metadata=OMIT_DEFAULT)
    per_unit: int = field(default=0, metadata=OMIT_DEFAULT)
    epochs: float = field(default=0.0, metadata=OMIT_DEFAULT)
    warmup: float = field(default=0.0, metadata=OMIT_DEFAULT)
    schedule: Falling = field(default="linear", metadata=OMIT_DEFAULT)
    weight_decay: float = field(default=0.0, metadata=OMIT_DEFAULT)
    patience_epochs: float = field(default=0.0, metadata=OMIT_DEFAULT)
    start: str = field(default="", metadata=OMIT_DEFAULT)
    bigrams: int = field(default=0, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        check_choice("refine.duplicates", self.duplicates, Duplicates)
        check_choice("refine.sample_from", self.sample_from, SampledFrom)
        check_choice("refine.optimiser", self.optimiser, Optimiser)
        check_choice("refine.schedule", self.schedule, Falling)
        check_least(self, "refine", seed=0, threads=1)
        if self.per_unit < 0 or (self.per_unit and not OF_CONTEXTS[self.sample_from]):
            raise ConfigError("refine.per_unit counts contexts of a unit: set refine.sample_from=contexts, or 0")
        if not 0 <= self.neighbours <= self.batch_size:
            raise ConfigError("refine needs 0 <= neighbours <= batch_size")
        if self.batch_size < 2 or self.max_steps < 0 or self.eval_steps < 1 or not 0 <= self.decay_start <= 1:
            raise ConfigError("refine needs batch_size >= 2, max_steps >= 0, eval_steps >= 1 and 0 <= decay_start <= 1")

        if not 0 <= self.bigrams <= MOST:
            raise ConfigError(f"refine needs 0 <= bigrams <= {MOST}")
        if not 0 <= self.patience_epochs < math.inf:
            raise ConfigError("refine needs patience_epochs >= 0")
        if not 0 < self.learning_rate < math.inf or not 0 <= self.max_grad_norm < math.inf or self.patience < 0:
            raise ConfigError("refine needs learning_rate > 0, max_grad_norm >= 0 and patience >= 0")
        if (
            not 0 <= self.epochs < math.inf
            or not 0 <= self.warmup <= 1
            or not 0 <= self.weight_decay * self.learning_rate < 1
        ):
            raise ConfigError(
                "refine needs epochs >= 0, 0 <= warmup <= 1, weight_decay >= 0 and weight_decay * learning_rate < 1"
            )

    @property
    def trains(self) -> bool:
        """Whether there are steps to take."""
        return self.max_steps > 0 or self.epochs > 0

    def for_corpus(self, per_epoch: int) -> RefineConfig:
        """Return the settings with epochs converted to steps, ``per_epoch`` each."""
        return replace(self, max_steps=math.ceil(self.epochs * per_epoch), epochs=0.0) if self.epochs else self

    def waited(self, steps: int, per_epoch: int) -> bool:
        """Return True if training should stop after ``steps`` without improvement; an epoch has ``per_epoch``."""
        looks, epochs = steps // self.eval_steps, steps / per_epoch
        return 0 < self.patience <= looks or 0 < self.patience_epochs <= epochs

    def rate_at(self, step: int) -> float:
        """Return the learning rate of ``step``, counted from 0."""
        rising = math.ceil(self.warmup * self.max_steps)
        if step < rising:
            return self.learning_rate * step / rising
        start = max(self.decay_start * self.max_steps, rising)
        if step < start:
            return self.learning_rate
        over = max(1.0, self.max_steps - start)
        return _RATES[self.schedule](self.learning_rate, step - start, self.max_steps - step, over)


@dataclass
class RefineResult:
    """The result of :func:`refine`."""

    matrix: np.ndarray  # float32 (rows, d), the table with the lowest development loss
    steps: int  # steps taken
    best_step: int  # the step of that table
    history: list[dict[str, float]]  # one row per evaluation: step, training loss, development loss


class Trainer:
    """Trains one table with one optimiser and one objective, by :meth:`step`."""

    def __init__(
        self,
        matrix: np.ndarray,
        config: RefineConfig,
        objective: Objective,
        graded: GradedLoss | None = None,
        bigrams: Bigrams | None = None,
    ) -> None:
        self.config, self.objective, self.graded, self.bigrams = config, objective, graded, bigrams
        self.matrix = matrix
        self.optimiser = Adam(matrix, config.optimiser, config.max_grad_norm, config.threads, decay=config.weight_decay)

    def widen(self, bags: Bags) -> Bags:
        """Return bags of units extended by the rows of their bigrams, if there are bigrams."""
        return bags if self.bigrams is None else self.bigrams.widen(bags)

    def vectors(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        """Return the unit vectors of bags and the norms of their sums, float32 (n, d) and (n,)."""
        return self._pooled(self.widen(bags))

    def _pooled(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        out, norms = np.empty((len(bags), self.matrix.shape[1]), np.float32), np.empty(len(bags), np.float32)

        def work(a: int, b: int) -> None:
            sum_rows(self.matrix, bags.ids, bags.offsets[a:b], bags.offsets[a + 1 : b + 1], out[a:b])
            row_norms(out[a:b], norms[a:b])
            divide_rows(out[a:b], norms[a:b])

        over_blocks(work, len(bags), self.config.threads)
        return out, norms

    def same(self, bitext: ParallelBags, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return numbers that are equal for equal sources and for equal targets of a batch, or distinct for all."""
        found = bitext.same(rows)
        return found if _MASKS[self.config.duplicates] else tuple(np.arange(len(numbers)) for numbers in found[:2])

    def measure(self, bitext: ParallelBags, rows: np.ndarray) -> tuple[float, float | None]:
        """Return a batch's loss, without gradient, and the fraction of its pairs whose nearest target is the true one.

        The latter is None for sentences of a single language.
        """
        unit, _ = self.vectors(bitext.batch(rows))
        source, target = unit[: len(rows)], unit[len(rows) :]
        targets = self.same(bitext, rows), bitext.teacher_of(rows), self.config.threads
        loss = self.objective(source, target, *targets, gradient=False)[0]
        if not len(target):
            return loss, None
        nearest = [
            (source[at : at + _SOURCES_AT_A_TIME] @ target.T).argmax(1) for at in range(0, len(rows), _SOURCES_AT_A_TIME)
        ]
        return loss, float((np.concatenate(nearest) == np.arange(len(rows))).mean())

    def step(self, bitext: ParallelBags, rows: np.ndarray, rate: float) -> float:
        """Take one optimiser step on the pairs (or sentences) ``rows`` and return the loss before it.

        Graded pairs, if any, are part of the same batch, with one look-up and one update of each row.
        """
        threads, bags = self.config.threads, bitext.batch(rows)
        own, scores = len(bags), np.zeros(0)
        if self.graded is not None:
            pairs, scores = self.graded.draw(self.optimiser.steps)
            bags = concatenate_bags([bags, pairs])
        bags = self.widen(bags)
        unit, norms = self._pooled(bags)
        halves = unit[: len(rows)], unit[len(rows) : own]
        loss, *gradients = self.objective(*halves, self.same(bitext, rows), bitext.teacher_of(rows), threads)
        if self.graded is not None:
            value, further = self.graded(unit[own:], scores)
            loss, gradients = loss + value, [*gradients, further]
        gradient = np.concatenate(gradients)
        over_blocks(lambda a, b: through_norm(unit[a:b], gradient[a:b], norms[a:b]), len(unit), threads)
        self.optimiser.step(bags.ids, bags.offsets[:-1], bags.offsets[1:], gradient, rate)
        return loss


def _measured(trainer: Trainer, development: list[ParallelBags]) -> dict[str, float]:
    """Return the mean loss on development data, and the accuracy if it has pairs, in batches as in training."""
    totals: dict[str, tuple[float, int]] = {"development_loss": (0.0, 0)}
    for bitext in development:
        for start in range(0, len(bitext), trainer.config.batch_size):
            rows = np.arange(start, min(start + trainer.config.batch_size, len(bitext)))
            for name, value in zip(
                ("development_loss", "development_accuracy"), trainer.measure(bitext, rows), strict=True
            ):
                if value is not None:
                    total, count = totals.get(name, (0.0, 0))
                    totals[name] = total + value * len(rows), count + len(rows)
    return {name: total / max(1, count) for name, (total, count) in totals.items()}


def refine(
    matrix: np.ndarray,
    bitexts: list[ParallelBags],
    development: list[ParallelBags],
    config: RefineConfig,
    objective: Objective,
    graded: GradedLoss | None = None,
    *,
    bigrams: Bigrams | None = None,
    checkpoint: Path | None = None,
    log: Callable[[list[dict[str, float]]], None] = lambda _: None,
) -> RefineResult:
    """Refine an embedding table, float32 (units, d), which is not changed, on pairs or sentences of one language.

    ``bitexts`` has an entry per language pair, and so has ``development``, the development pairs for early stopping;
    without any the last table is the result. The development loss excludes ``graded`` pairs. The rows of ``bigrams``, zero
    at the start, follow those of the units. The state is saved at intervals to ``checkpoint``, and resumed from there if it
    fits; ``log`` gets the history after each evaluation. The same inputs give the same bytes, interrupted or not.
    """
    if not any(len(b) for b in bitexts):
        raise ConfigError("there is no training pair: give a larger corpus, or a smaller corpus.held_out")
    schedule = Schedule(tuple(len(b) for b in bitexts), config.batch_size, config.seed, config.neighbours)
    if _DROPS[config.duplicates]:
        schedule.texts = [bitext.texts() for bitext in bitexts]
    config = config.for_corpus(schedule.per_epoch)
    new = np.zeros((len(bigrams or ()), matrix.shape[1]), np.float32)
    trainer = Trainer(np.ascontiguousarray(np.concatenate([matrix, new]), np.float32), config, objective, graded, bigrams)
    further = [fingerprint_fields(graded.config), [len(file) for file in graded.files]] if graded is not None else []
    further = [schedule.sizes, list(trainer.matrix.shape), *further]
    identity = fingerprint({**fingerprint_fields(config), "threads": None}, fingerprint_fields(objective), *further)
    state = BestTable(trainer.matrix, trainer.optimiser)

    def take(step: int) -> float:
        if config.neighbours:
            _regroup(trainer, schedule, bitexts, step)
        which, rows = schedule.at(step)
        return trainer.step(bitexts[which], rows, config.rate_at(step))

    take_steps(
        Training("refinement", state, schedule, config, checkpoint, identity),
        take,
        lambda: _measured(trainer, development) if development else {},
        log=log,
        enough=lambda steps: bool(development) and config.waited(steps, schedule.per_epoch),
    )
    return RefineResult(state.best, trainer.optimiser.steps, state.step, state.history)


def _regroup(trainer: Trainer, schedule: Schedule, bitexts: list[ParallelBags], step: int) -> None:
    """At the start of an epoch, group pairs that are near each other in the current table."""
    if schedule.groups_epoch != schedule.epoch_of(step):
        c = trainer.config
        schedule.regroup(step, [grouped(trainer.vectors, bitext, c.neighbours, c.seed) for bitext in bitexts])


class SpanTrainer:
    """Trains one table for span search with one optimiser, by :meth:`step`."""

    def __init__(self, matrix: np.ndarray, config: SpanTraining) -> None:
        self.matrix, self.config = matrix, config
        self.optimiser = Adam(matrix, config.optimiser, threads=config.threads)

    def _vectors(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        """Return the unit vectors of bags, and the norms of their sums."""
        sums = pool(self.matrix, bags, normalise=False, threads=self.config.threads)
        sums *= bags.lengths[:, None].astype(np.float32)
        norms = np.linalg.norm(sums, axis=1)
        return sums / np.where(norms > 0, norms, 1.0)[:, None].astype(np.float32), norms

    def _forward(self, triplets: Triplets) -> tuple[Bags, np.ndarray, np.ndarray]:
        """Return the bags of phrases and best spans (true, then false), their unit vectors, and the norms of their sums."""
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
        """Return the triplets with the nearest negative passage: the given one, or a passage of ``hard`` other triplets."""
        c, size = self.config, len(triplets.phrases)
        phrases, _ = self._vectors(triplets.phrases)
        # A passage of an equal phrase, or one equal to the triplet's own passage, is not a negative.
        phrase_ids, passage_ids = equal_bags(triplets.phrases), equal_bags(triplets.true.bags)
        every = np.arange(size)
        choice, nearest = every.copy(), np.full(size, -np.inf)
        for shift in range(min(c.hard, size - 1) + 1):
            rows = (every + shift) % size
            cut = triplets.true.take(rows) if shift else triplets.false
            _, scores = best_spans(self.matrix, cut.ids, cut.words, cut.texts, phrases, c.min_size, c.max_size, c.threads)
            better = scores > nearest
            if shift:
                better &= (phrase_ids[rows] != phrase_ids) & (passage_ids[rows] != passage_ids)
            choice[better], nearest[better] = (size + rows if shift else every)[better], scores[better]
        return Triplets(triplets.phrases, triplets.true, join_cuts([triplets.false, triplets.true]).take(choice))

    def loss(self, triplets: Triplets) -> float:
        """Return the mean loss of triplets."""
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
    offsets = bounds_of(stops - starts)
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
    """Train an embedding table, float32 (rows, d), which is not changed, for span search.

    ``bitexts`` has an entry per language pair, split into words, or triples, and so has ``development``; without any the
    last table is the result, otherwise the table with the lowest development loss. The history, which ``log`` gets after
    each evaluation, has one row per evaluation: step, loss, development loss. The state is saved at intervals to
    ``checkpoint``, and resumed from there if it fits. The same inputs give the same bytes, interrupted or not. ConfigError:
    no pair has sides that a span can cover.
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

    def take(step: int) -> float:
        which, rows = schedule.at(step)
        triplets = trainer.harden(bitexts[which].triplets(usable[which][rows], config, [1, step]))
        return trainer.step(triplets, config.learning_rate * min(1.0, 2.0 * (config.max_steps - step) / config.max_steps))

    take_steps(
        Training("span training", state, schedule, config, checkpoint, identity),
        take,
        lambda: {"development_loss": _mean_loss(trainer, fixed)} if fixed else {},
        log=log,
    )
    return state.best, state.history


def _mean_loss(trainer: SpanTrainer, triplets: Sequence[Triplets]) -> float:
    sizes = [len(one.phrases) for one in triplets]
    return float(np.average([trainer.loss(one) for one in triplets], weights=sizes))
