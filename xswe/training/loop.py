"""The training loop, its schedule, best table and log.

Which pairs make up which batch is a pure function of the seed and the step, so that a killed run resumes exactly. A step
of training hands work over half a dozen times, each for some hundred microseconds; waking a sleeping thread takes a
hundred. Inside :func:`awake` helpers poll for work without a pause, for a millisecond or two, before they sleep.
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
from xswe.io.compiler import changes
from xswe.io.files import whole_file
from xswe.io.ragged import read_only
from xswe.progress import bar, every
from xswe.training.optimisers import Adam
from xswe.work.checkpoint import load_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)
History = list[dict[str, float]]
_LOG_SECONDS = 5.0  # between two writes of the history while a run goes on


class PairTexts(NamedTuple):
    """Equal texts of a bitext: equal numbers mark equal texts."""

    source: np.ndarray  # int32 (n,), of each pair's source
    target: np.ndarray  # int32 (n,), of its target
    # int32 (m,), of the negatives of all pairs, as the targets are numbered; -1 for one that does not count
    negatives: np.ndarray
    bounds: np.ndarray  # int64 (n + 1,), pair ``i`` has the negatives ``bounds[i]`` to ``bounds[i + 1]``
    alike: bool  # sources are numbered as the targets are: a text may be either


@njit(nogil=True, cache=True)
def _free(
    row: int,
    batch: int,
    source: np.ndarray,
    target: np.ndarray,
    negatives: np.ndarray,
    bounds: np.ndarray,
    in_source: np.ndarray,
    in_target: np.ndarray,
) -> bool:
    """Return True if no text of a pair is in the batch yet, and if so add them."""
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


@njit(nogil=True, cache=True)
def _fill(
    order: np.ndarray,
    size: int,
    source: np.ndarray,
    target: np.ndarray,
    negatives: np.ndarray,
    bounds: np.ndarray,
    in_source: np.ndarray,
    in_target: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
) -> None:
    """Fill batches with the pairs of ``order``; a pair with a text that is in the batch already waits for the next.

    Where too few are left to fill a batch, pairs are taken again from the start of ``order``. ``rows`` receives the
    batches one after the other, ``starts`` where each starts.
    """
    n, head, filled = len(order), 0, 0
    following = np.arange(1, n + 1)  # of the pairs not taken yet, as a list of places in order
    for batch in range(len(starts) - 1):
        starts[batch] = filled
        end, before, place = filled + size, -1, head
        while place < n and filled < end:
            after = following[place]
            if _free(order[place], batch, source, target, negatives, bounds, in_source, in_target):
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
            if _free(order[place], batch, source, target, negatives, bounds, in_source, in_target):
                rows[filled] = order[place]
                filled += 1
            place += 1
    starts[-1] = filled


@dataclass
class Schedule:
    """Batches over several bitexts: each of one bitext, bitexts in proportion to their size, reshuffled each epoch."""

    sizes: tuple[int, ...]  # number of pairs of each bitext
    batch: int  # pairs a batch; a bitext smaller than that gives one batch of all its pairs
    seed: int  # decides every permutation
    neighbours: int = 0  # pairs that :meth:`regroup` keeps together, 0 for none: then batches are drawn at random
    # for each bitext, its rows ordered so that each run of ``neighbours`` rows stays together
    groups: list[np.ndarray] | None = None
    groups_epoch: int = -1  # the epoch that they are for
    # which texts of each bitext are equal: then no batch has one twice. A pair whose text is in the batch already is
    # postponed to a later one, and another drawn instead; None takes pairs as they come
    texts: list[PairTexts] | None = None
    _epoch: int = field(default=-1, init=False)
    _order: np.ndarray = field(init=False, repr=False)
    _batches: list[tuple[np.ndarray, np.ndarray]] = field(init=False, repr=False)  # of each bitext: rows, starts

    @property
    def per_epoch(self) -> int:
        """Batches an epoch; the remainder that does not fill a batch is left to a later epoch's shuffle."""
        return sum(max(1, size // self.batch) for size in self.sizes if size)

    def epoch_of(self, step: int) -> int:
        """Return the epoch of a step (from 0)."""
        return step // self.per_epoch

    def regroup(self, step: int, groups: list[np.ndarray]) -> None:
        """Set which rows stay together in the epoch of ``step``."""
        self.groups, self.groups_epoch, self._epoch = groups, self.epoch_of(step), -1

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the state that seed and step do not determine, as arrays and JSON values for a checkpoint."""
        if self.groups is None:
            return {}, {}
        return {f"groups.{k}": order for k, order in enumerate(self.groups)}, {"groups_epoch": self.groups_epoch}

    def restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Resume from such a state."""
        if "groups_epoch" in values:
            self.groups = [arrays[f"groups.{k}"] for k in range(len(self.sizes))]
            self.groups_epoch = values["groups_epoch"]

    def _permutation(self, epoch: int, k: int, size: int) -> np.ndarray:
        generator = np.random.default_rng([self.seed, epoch, k])
        if not self.neighbours or self.groups is None:
            return generator.permutation(size)
        # Whole neighbourhoods are shuffled; the last one, which may be shorter, stays at the end.
        whole = size // self.neighbours * self.neighbours
        together = self.groups[k][:whole].reshape(-1, self.neighbours)
        return np.concatenate([together[generator.permutation(len(together))].ravel(), self.groups[k][whole:]])

    def _cut(self, order: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Cut an epoch's pairs of a bitext into batches; return the rows, and where each batch starts."""
        size, count = min(self.batch, len(order)), max(1, len(order) // self.batch)
        if self.texts is None or not len(order):
            return order, np.minimum(np.arange(count + 1) * self.batch, len(order))
        *texts, alike = self.texts[k]
        in_target = np.full(int(max(*(side.max(initial=0) for side in texts[:3]), 0)) + 1, -1, np.int32)
        in_source = in_target if alike else np.full(len(in_target), -1, np.int32)
        rows, starts = np.empty(count * size, np.int64), np.zeros(count + 1, np.int64)
        _fill(order, size, *map(read_only, texts), in_source, in_target, rows, starts)
        return rows[: starts[-1]], starts

    def at(self, step: int) -> tuple[int, np.ndarray]:
        """Return the bitext and the rows of the batch of ``step`` (from 0)."""
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
    """A table in training, float32 (rows, d), and ``best``, a copy of it at its lowest development ``loss``.

    Without development data that is the table of the last look. ``optimiser`` moves the table, and counts the steps;
    ``step`` is their number at the best table. ``history`` has one row a look: step, training loss, development loss, and
    whatever else was measured; ``running`` sums the training losses since the last look.
    """

    def __init__(self, matrix: np.ndarray, optimiser: Adam) -> None:
        self.matrix, self.optimiser, self.best = matrix, optimiser, np.array(matrix)
        self.loss, self.step, self.running = float("inf"), 0, 0.0
        self.history: list[dict[str, float]] = []

    def begin(self, development_loss: float, **others: float) -> None:
        """Record the development loss, and other figures, before the first step."""
        self.loss = development_loss
        self.history.append({"step": 0, "development_loss": development_loss, **others})

    def look(self, development_loss: float | None = None, **others: float) -> None:
        """Append a row to the history and keep the table if it is the best so far."""
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
        """Resume from such a state; the table and the optimiser are set back in place."""
        for own, name in ((self.matrix, "matrix"), (self.optimiser.moments, "moments"), (self.best, "best")):
            np.copyto(own, arrays[name])
        self.optimiser.steps, self.loss, self.step = values["steps"], values["best_loss"], values.get("best_step", 0)
        self.history, self.running = values["history"], values["running"]


def take_steps(
    state: BestTable,
    schedule: Schedule,
    config: Any,
    take: Callable[[int], float],
    measure: Callable[[], dict[str, float]],
    *,
    name: str,
    checkpoint: Path | None,
    identity: str,
    log: Callable[[History], None],
    enough: Callable[[int], bool] = lambda _: False,
) -> None:
    """Train a table: step after step, with a look at the development data now and then, and a checkpoint every minute.

    ``take`` takes the step of a number from 0, and returns the loss before it; ``measure`` measures ``development_loss``,
    and whatever else, or nothing without development data. ``log`` gets the history after each look; ``enough``, given
    the steps without improvement, returns True to stop early. ``config`` has ``max_steps``, ``eval_steps`` and
    ``threads``, ``name`` is what this is called. A checkpoint of the same identity is gone on from; None for none.
    """
    if found := load_checkpoint(checkpoint, identity):
        state.restore(*found)
        schedule.restore(*found)
        logger.info("resuming the %s at step %d", name, state.optimiser.steps)
    if not state.history and (first := measure()):
        state.begin(**first)
    due = every()
    with awake(config.threads), bar(name, config.max_steps, "step", state.optimiser.steps) as progress:
        while (step := state.optimiser.steps) < config.max_steps:
            state.running += take(step)
            progress.update()
            if (step + 1) % config.eval_steps == 0 or step + 1 == config.max_steps:
                state.look(**measure())
                shown = {"loss": "loss", "dev": "development_loss"}  # in what 80 columns leave beside the bar
                last = state.history[-1]
                progress.set_postfix({short: f"{last[name]:.3g}" for short, name in shown.items() if name in last})
                log(state.history)
                if enough(step + 1 - state.step):
                    logger.info("stopped early at step %d: no improvement since step %d", step + 1, state.step)
                    progress.total = progress.n
                    break
            if checkpoint is not None and due():
                (arrays, values), (orders, epoch) = state.state(), schedule.state()
                where = f"after step {state.optimiser.steps:,} of the {name}"
                save_checkpoint(checkpoint, identity, arrays | orders, values | epoch, where)


def write_history(path: Path, history: History) -> None:
    """Write a history as CSV, atomically: one row per evaluation, empty cells for metrics that were not measured."""
    columns = list(dict.fromkeys(name for row in history for name in row))
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


def _summary_writer() -> Any:
    """Return the class that writes TensorBoard's files; None where that is not installed.

    A mere folder of its name in the working directory can be imported, too; only its use shows that it is not
    TensorBoard.
    """
    try:
        importlib.import_module("tensorboard")  # first: where it is missing, torch need not be loaded to find that out
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter


class RunLog:
    """Writes a growing history to ``history.csv`` and, where TensorBoard is installed, ``tensorboard/`` of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._shown, self._written = folder, 0, float("-inf")
        self._board: Any = None

    def __call__(self, history: History) -> None:
        """Write new rows, at most every few seconds: flushing to disk must not slow a quick run."""
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
            # A resumed run shows its whole history again; what an earlier process showed of it is hidden.
            self._board = writer(self.folder / "tensorboard", purge_step=0)
        if self._board is None:
            return
        for row in history[self._shown :]:
            for name, value in row.items():
                if name != "step":
                    self._board.add_scalar(f"refine/{name}", value, int(row["step"]))
        self._shown = len(history)
        self._board.flush()


_TURNS = 2_000_000  # looks, of less than a nanosecond each


class _Helper:
    """One thread, and the two numbers by which it is sent work and reports that it is done."""

    def __init__(self) -> None:
        # Two lines of memory: what one side writes must not slow the other's look at its own.
        self._ordered, self._done = np.zeros(16, np.int64)[::8].reshape(2, 1)
        self._task: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._asleep, self._called = False, Event()
        Thread(target=self._serve, name="xswe awake", daemon=True).start()

    def order(self, task: Callable[[], Any] | None) -> None:
        """Submit a task; None ends the thread."""
        self._task = task
        self._ordered[0] += 1
        if self._asleep:
            self._called.set()

    def result(self) -> Any:
        """Wait for the task and return its result, or raise its exception."""
        while not changes(self._done, self._ordered[0] - 1, _TURNS):
            time.sleep(1e-4)  # long work: let the processor do something else, and interrupts arrive
        error, result = self._error, self._result
        self._error = self._result = self._task = None
        if error is not None:
            raise error
        return result

    def _serve(self) -> None:
        seen = 0
        while True:
            while not changes(self._ordered, seen, _TURNS):
                # Set before the last look: an order given after that look sees it, and calls.
                self._called.clear()
                self._asleep = True
                if self._ordered[0] == seen:
                    self._called.wait()
                self._asleep = False
            seen += 1
            if self._task is None:
                return
            try:
                self._result = self._task()
            except BaseException as error:  # belongs to the thread that gave the order
                self._error = error
            self._done[0] = seen


@contextmanager
def awake(threads: int) -> Iterator[None]:
    """Keep ``threads - 1`` helpers polling for the tasks of this thread inside the block, and BLAS to one thread.

    Only tasks given to :func:`xswe.io.parallel.run`, as many as there are threads, go to them; results are the same.
    """
    if threads < 2:
        with parallel.single_threaded_blas():
            yield
        return
    helpers = [_Helper() for _ in range(threads - 1)]

    def run(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        for helper, task in zip(helpers, tasks[1:], strict=True):
            helper.order(task)
        with parallel.team(None):  # what a piece shares out itself goes the usual way
            try:
                first = tasks[0]()
            finally:
                others = [helper.result() for helper in helpers]  # nobody writes into the caller's arrays after this
        return [first, *others]

    try:
        with parallel.single_threaded_blas(), parallel.team((threads, run)):
            yield
    finally:
        for helper in helpers:
            helper.order(None)
