"""Threads that stay awake between two pieces of work, for loops whose pieces are shorter than it takes to wake a thread.

A step of training hands work over half a dozen times, each for some hundred microseconds; to wake a sleeping thread takes
a hundred. Inside :func:`awake` helpers look for work without a pause, for a millisecond or two, before they sleep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import numpy as np

from xswe.io import parallel
from xswe.io.compiler import changes

_TURNS = 2_000_000  # looks, of less than a nanosecond each


class _Helper:
    """One thread, and the two numbers through which it is told of work and tells that it is done."""

    def __init__(self) -> None:
        # Two lines of memory: what one side writes must not slow the other's look at its own.
        self._ordered, self._done = np.zeros(16, np.int64)[::8].reshape(2, 1)
        self._task: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._asleep, self._called = False, Event()
        Thread(target=self._serve, name="xswe awake", daemon=True).start()

    def order(self, task: Callable[[], Any] | None) -> None:
        """Hand a piece of work over; None ends the thread."""
        self._task = task
        self._ordered[0] += 1
        if self._asleep:
            self._called.set()

    def result(self) -> Any:
        """Wait for the piece of work and return its result, or raise its exception."""
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
    """Keep ``threads - 1`` helpers awake for the work that this thread shares out inside the block, and BLAS to one thread.

    Only pieces that :func:`xswe.io.parallel.run` is given, as many as there are threads, go to them; results are the same.
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
