"""The training loop, its schedule, best table and log.

The pairs of each batch are a pure function of the seed and the step, so a killed run resumes exactly. A training step hands
work to threads half a dozen times, for a few hundred microseconds each; waking a sleeping thread alone takes a hundred. So
helpers inside :func:`awake` poll for work for a millisecond or two before they sleep.
"""

from __future__ import annotations

import csv
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io import parallel
from xswe.io.compiler import INNER, LEAN, changes
from xswe.io.files import whole_file
from xswe.io.ragged import read_only
from xswe.progress import bar, every
from xswe.training.optimisers import Adam
from xswe.work.checkpoint import load_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)
History = list[dict[str, float]]
_LOG_SECONDS = 5.0  # between two writes of the history during a run


class PairTexts(NamedTuple):
    """Numbers of the texts of a bitext, which are equal for equal texts."""

    source: np.ndarray  # int32 (n,), of each pair's source
    target: np.ndarray  # int32 (n,), of its target
    # int32 (m,), of the negatives of all pairs, numbered with the targets; -1 for a negative that does not count
    negatives: np.ndarray
    bounds: np.ndarray  # int64 (n + 1,), pair ``i`` has the negatives ``bounds[i]`` to ``bounds[i + 1]``
    alike: bool  # sources are numbered with the targets, because a text may be on either side


@njit(**INNER)
def _add_if_free(row: int, batch: int, texts: PairTexts, in_source: np.ndarray, in_target: np.ndarray) -> bool:
    """If no text of a pair is in the batch yet, add them and return True."""
    source, target, negatives, bounds = texts.source, texts.target, texts.negatives, texts.bounds
    if in_source[source[row]] == batch or in_target[target[row]] == batch:
        return False
    for t in range(bounds[row], bounds[row + 1]):
        if negatives[t] >= 0 and in_target[negatives[t]] == batch:
            return False
    in_source[source[row]] = batch
    in_target[target[row]] = batch
    for t in range(bounds[row], bounds[row + 1]):
        if negatives[t] >= 0:
            in_target[negatives[t]] = batch
    return True


@njit(**LEAN)
def _fill(
    order: np.ndarray,
    following: np.ndarray,
    size: int,
    texts: PairTexts,
    in_source: np.ndarray,
    in_target: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
) -> None:
    """Fill batches with the pairs of ``order``, postponing a pair with a text that is in the batch already to the next.

    If too few are left to fill a batch, pairs are taken again from the start of ``order``. ``following``, 1, 2, … on input,
    is a linked list of the pairs not taken yet, as places in ``order``; ``in_source`` and ``in_target`` have the batch that
    each text was last in. ``rows`` receives the batches one after the other, ``starts`` the start of each.
    """
    n, head, filled = len(order), 0, 0
    for batch in range(len(starts) - 1):
        starts[batch] = filled
        end, before, place = filled + size, -1, head
        while place < n and filled < end:
            after = following[place]
            if _add_if_free(order[place], batch, texts, in_source, in_target):
                rows[filled] = order[place]
                filled += 1
                if before < 0:
                    head = after
                else:
                    following[before] = after
            else:
                before = place
            place = after
        place = 0
        while place < n and filled < end:
            if _add_if_free(order[place], batch, texts, in_source, in_target):
                rows[filled] = order[place]
                filled += 1
            place += 1
    starts[-1] = filled


@dataclass
class Schedule:
    """Batches over several bitexts, each from one of them, in proportion to their sizes; reshuffled every epoch."""

    sizes: tuple[int, ...]  # number of pairs of each bitext
    batch: int  # pairs per batch; a smaller bitext gives one batch of all its pairs
    seed: int  # decides every permutation
    neighbours: int = 0  # pairs that :meth:`regroup` keeps together; 0 to draw batches at random
    # for each bitext its rows in an order in which each run of ``neighbours`` rows stays together
    groups: list[np.ndarray] | None = None
    groups_epoch: int = -1  # the epoch that the groups are for
    # which texts of each bitext are equal, so that no batch has a text twice: a pair whose text is in the batch already is
    # postponed to a later batch, and another is drawn instead. None takes pairs as they come
    texts: list[PairTexts] | None = None
    _epoch: int = field(default=-1, init=False)
    _order: np.ndarray = field(init=False, repr=False)
    _batches: list[tuple[np.ndarray, np.ndarray]] = field(init=False, repr=False)  # rows and starts for each bitext

    @property
    def per_epoch(self) -> int:
        """Batches per epoch; pairs left over that do not fill a batch must wait for a later epoch's shuffle."""
        return sum(max(1, size // self.batch) for size in self.sizes if size)

    def epoch_of(self, step: int) -> int:
        """Return the epoch of a step, both counted from 0."""
        return step // self.per_epoch

    def regroup(self, step: int, groups: list[np.ndarray]) -> None:
        """Set which rows stay together in the epoch of ``step``."""
        self.groups, self.groups_epoch, self._epoch = groups, self.epoch_of(step), -1

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the state not determined by seed and step, as arrays and JSON values for a checkpoint."""
        if self.groups is None:
            return {}, {}
        return {f"groups.{k}": order for k, order in enumerate(self.groups)}, {"groups_epoch": self.groups_epoch}

    def restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        if "groups_epoch" in values:
            self.groups = [arrays[f"groups.{k}"] for k in range(len(self.sizes))]
            self.groups_epoch = values["groups_epoch"]

    def _permutation(self, epoch: int, k: int, size: int) -> np.ndarray:
        generator = np.random.default_rng([self.seed, epoch, k])
        if not self.neighbours or self.groups is None:
            return generator.permutation(size)
        # Full neighbourhoods are shuffled; the last one, which may be shorter, stays at the end.
        whole = size // self.neighbours * self.neighbours
        together = self.groups[k][:whole].reshape(-1, self.neighbours)
        return np.concatenate([together[generator.permutation(len(together))].ravel(), self.groups[k][whole:]])

    def _cut(self, order: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Divide an epoch's pairs of a bitext into batches; return the rows and the start of each batch."""
        size, count = min(self.batch, len(order)), max(1, len(order) // self.batch)
        if self.texts is None or not len(order):
            return order, np.minimum(np.arange(count + 1) * self.batch, len(order))
        source, target, negatives, bounds, alike = self.texts[k]
        last = max(int(side.max(initial=0)) for side in (source, target, negatives))
        in_target = np.full(last + 1, -1, np.int32)
        in_source = in_target if alike else np.full(len(in_target), -1, np.int32)
        rows, starts = np.empty(count * size, np.int64), np.zeros(count + 1, np.int64)
        texts = PairTexts(read_only(source), read_only(target), read_only(negatives), read_only(bounds), alike)
        _fill(order, np.arange(1, len(order) + 1), size, texts, in_source, in_target, rows, starts)
        return rows[: starts[-1]], starts

    def at(self, step: int) -> tuple[int, np.ndarray]:
        """Return the bitext and the rows of the batch of ``step``, counted from 0."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._batches = [self._cut(self._permutation(epoch, k, size), k) for k, size in enumerate(self.sizes)]
            slots = [(k, i) for k, size in enumerate(self.sizes) if size for i in range(max(1, size // self.batch))]
            self._order = np.random.default_rng([self.seed, epoch, len(self.sizes)]).permutation(np.array(slots))
        bitext, index = (int(x) for x in self._order[position])
        rows, starts = self._batches[bitext]
        return bitext, rows[starts[index] : starts[index + 1]]


class BestTable:
    """A table in training, float32 (rows, d), and ``best``, a copy at the lowest development ``loss``.

    Without development data ``best`` is the table at the last evaluation. ``optimiser`` updates the table and counts steps;
    ``step`` is the step of the best table. ``history`` has one row per evaluation: step, training loss, development loss,
    and anything else measured; ``running`` sums the training losses since the last evaluation.
    """

    def __init__(self, matrix: np.ndarray, optimiser: Adam) -> None:
        self.matrix, self.optimiser, self.best = matrix, optimiser, np.array(matrix)
        self.loss, self.step, self.running = float("inf"), 0, 0.0
        self.history: list[dict[str, float]] = []

    def begin(self, development_loss: float, **others: float) -> None:
        """Record the development loss and other figures before the first step."""
        self.loss = development_loss
        self.history.append({"step": 0, "development_loss": development_loss, **others})

    def look(self, development_loss: float | None = None, **others: float) -> None:
        """Append an evaluation to the history, and keep the table if it is the best so far."""
        step = self.optimiser.steps
        since = step - int(self.history[-1]["step"] if self.history else 0)
        self.history.append({"step": step, "loss": self.running / max(1, since)})
        self.running = 0.0
        if development_loss is not None:
            self.history[-1] |= {"development_loss": development_loss, **others}
        if development_loss is None or development_loss < self.loss:
            np.copyto(self.best, self.matrix)
            self.loss, self.step = development_loss or 0.0, step

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the state that determines the rest of the run, as arrays and JSON values for a checkpoint."""
        arrays = {"matrix": self.matrix, "moments": self.optimiser.moments, "best": self.best}
        values = {"best_loss": self.loss, "best_step": self.step, "history": self.history, "running": self.running}
        return arrays, {"steps": self.optimiser.steps, **values}

    def restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Restore the state of a checkpoint; table and optimiser are restored in place."""
        for own, name in ((self.matrix, "matrix"), (self.optimiser.moments, "moments"), (self.best, "best")):
            np.copyto(own, arrays[name])
        self.optimiser.steps, self.loss, self.step = values["steps"], values["best_loss"], values.get("best_step", 0)
        self.history, self.running = values["history"], values["running"]


class Training(NamedTuple):
    """A table that is trained, and its checkpoint."""

    name: str  # to show
    table: BestTable
    schedule: Schedule
    config: Any  # with ``max_steps``, ``eval_steps`` and ``threads``
    checkpoint: Path | None  # None for none
    identity: str  # of the checkpoint: one of another identity is left aside

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        if found := load_checkpoint(self.checkpoint, self.identity):
            self.table.restore(*found)
            self.schedule.restore(*found)
            logger.info("resuming the %s at step %d", self.name, self.table.optimiser.steps)

    def save(self) -> None:
        """Write the checkpoint, if one is wanted."""
        if self.checkpoint is not None:
            (arrays, values), (orders, epoch) = self.table.state(), self.schedule.state()
            where = f"after step {self.table.optimiser.steps:,} of the {self.name}"
            save_checkpoint(self.checkpoint, self.identity, arrays | orders, values | epoch, where)


def take_steps(
    training: Training,
    take: Callable[[int], float],
    measure: Callable[[], dict[str, float]],
    *,
    log: Callable[[History], None],
    enough: Callable[[int], bool] = lambda _: False,
) -> None:
    """Train a table step by step, evaluating it on development data at intervals, with a checkpoint every minute.

    ``take`` takes the step with the given number, from 0, and returns the loss before it; ``measure`` returns
    ``development_loss`` and any other figures, or nothing without development data. ``log`` gets the history after each
    evaluation; ``enough``, given the steps without improvement, returns True to stop early.
    """
    training.resume()
    table, config = training.table, training.config
    if not table.history and (first := measure()):
        table.begin(**first)
    due = every()
    with awake(config.threads), bar(training.name, config.max_steps, "step", table.optimiser.steps) as progress:
        while (step := table.optimiser.steps) < config.max_steps:
            table.running += take(step)
            progress.update()
            if (step + 1) % config.eval_steps == 0 or step + 1 == config.max_steps:
                table.look(**measure())
                shown = {"loss": "loss", "dev": "development_loss"}  # to fit 80 columns with the bar
                last = table.history[-1]
                progress.set_postfix({short: f"{last[name]:.3g}" for short, name in shown.items() if name in last})
                log(table.history)
                if enough(step + 1 - table.step):
                    logger.info("stopped early at step %d: no improvement since step %d", step + 1, table.step)
                    progress.total = progress.n
                    break
            if due():
                training.save()


def write_history(path: Path, history: History) -> None:
    """Write a history as CSV, atomically: one row per evaluation, empty cells for metrics that were not measured."""
    columns = list(dict.fromkeys(name for row in history for name in row))
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


def _summary_writer() -> Any:
    """Return the class that writes TensorBoard's files; None if TensorBoard is not installed.

    A mere folder called ``tensorboard`` in the working directory can be imported, too, so the import of the class decides.
    """
    try:
        importlib.import_module("tensorboard")  # first, so that torch is not loaded for nothing
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter


class RunLog:
    """Writes a growing history to ``history.csv`` of a run folder, and to ``tensorboard/`` if TensorBoard is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._shown, self._written = folder, 0, float("-inf")
        self._board: Any = None

    def __call__(self, history: History) -> None:
        """Write new rows, but only every few seconds, because flushing to disk would slow down a quick run."""
        if time.monotonic() - self._written >= _LOG_SECONDS:
            self._write(history)
            self._written = time.monotonic()

    def close(self, history: History) -> None:
        """Write the whole history, and finish TensorBoard's file if there is one."""
        self._write(history)
        if self._board is not None:
            self._board.close()
            self._board = None

    def _write(self, history: History) -> None:
        write_history(self.folder / "history.csv", history)
        if self._board is None and (writer := _summary_writer()) is not None:
            # A resumed run writes its whole history again; ``purge_step`` hides what an earlier process wrote.
            self._board = writer(self.folder / "tensorboard", purge_step=0)
        if self._board is None:
            return
        for row in history[self._shown :]:
            for name, value in row.items():
                if name != "step":
                    self._board.add_scalar(f"refine/{name}", value, int(row["step"]))
        self._shown = len(history)
        self._board.flush()


_POLLS = 2_000_000  # polls, of less than a nanosecond each


class _Helper:
    """A thread, with two counters: of the tasks given to it and of the tasks done."""

    def __init__(self) -> None:
        # On two cache lines, so that writing one does not slow down polling the other.
        self._given, self._done = np.zeros(16, np.int64)[::8].reshape(2, 1)
        self._task: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._asleep, self._wake = False, Event()
        Thread(target=self._serve, name="xswe awake", daemon=True).start()

    def order(self, task: Callable[[], Any] | None) -> None:
        """Submit a task; None ends the thread."""
        self._task = task
        self._given[0] += 1
        if self._asleep:
            self._wake.set()

    def result(self) -> Any:
        """Wait for the task and return its result, or raise its exception."""
        while not changes(self._done, self._given[0] - 1, _POLLS):
            time.sleep(1e-4)  # long work: free the processor, and let interrupts arrive
        error, result = self._error, self._result
        self._error = self._result = self._task = None
        if error is not None:
            raise error
        return result

    def _serve(self) -> None:
        seen = 0
        while True:
            while not changes(self._given, seen, _POLLS):
                # Set before the last check, so an order given after the check sees the flag and wakes this thread.
                self._wake.clear()
                self._asleep = True
                if self._given[0] == seen:
                    self._wake.wait()
                self._asleep = False
            seen += 1
            if self._task is None:
                return
            try:
                self._result = self._task()
            except BaseException as error:  # raised in the thread that gave the order
                self._error = error
            self._done[0] = seen


@contextmanager
def awake(threads: int) -> Iterator[None]:
    """Inside the block, keep ``threads - 1`` helpers polling for tasks of this thread, and BLAS to one thread.

    They get only tasks given to :func:`xswe.io.parallel.run`, as many as there are threads; results are the same.
    """
    if threads < 2:
        with parallel.single_threaded_blas():
            yield
        return
    helpers = [_Helper() for _ in range(threads - 1)]

    def run(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run the first task here and each of the others on a helper; return all results."""
        for helper, task in zip(helpers, tasks[1:], strict=True):
            helper.order(task)
        with parallel.team(None):  # work that a task shares out itself goes the usual way
            try:
                first = tasks[0]()
            finally:
                others = [helper.result() for helper in helpers]  # after this no helper writes into the caller's arrays
        return [first, *others]

    try:
        with parallel.single_threaded_blas(), parallel.team((threads, run)):
            yield
    finally:
        for helper in helpers:
            helper.order(None)
