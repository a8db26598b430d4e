"""Threads: a small pool, ordered maps over it, and helpers that stay awake between small pieces of work.

Threads: one small pool of our own, and every library's own pools kept to one thread while it works.

With more runnable threads than cores a matrix library collapses (here from 70 GFLOP/s to 2). The library therefore
splits work itself, over compiled functions that release the interpreter lock, and asks BLAS for one thread a call.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from threading import Event, Thread
from typing import Any, Self, TypeVar

import numpy as np

from xswe.io.compiler import changes

S = TypeVar("S")
T = TypeVar("T")
Team = tuple[int, Callable[[list[Callable[[], Any]]], list[Any]]]  # how many threads, and what shares tasks among them
_own = threading.local()  # of the calling thread: its team, if it has one


class Lock:
    """A lock that a copy of what it guards gets anew, and a forked process too: whoever held it does not run there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()

    def renew(self) -> None:
        """Forget who holds the lock."""
        self._lock = threading.Lock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def available_threads() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=8)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="xswe")


def _forget_threads() -> None:
    """Start anew in a forked process: only the thread that forked runs there, and waiting for another would never end."""
    _pool.cache_clear()
    _own.__dict__.clear()
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def blocks(size: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``range(size)`` into at most ``parts`` even, non-empty, contiguous (start, stop) blocks."""
    parts = max(1, min(parts, size))
    bounds = [size * k // parts for k in range(parts + 1)]
    return list(pairwise(bounds))


def run(tasks: list[Callable[[], T]], threads: int) -> list[T]:
    """Call all ``tasks``, on ``threads`` threads at once, and return their results in order.

    The calling thread does its share, so that two tasks on two threads cost a single hand-over.
    """
    if threads <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    size, share_out = getattr(_own, "team", None) or (0, None)
    if share_out is not None and len(tasks) == size:
        return share_out(tasks)
    others = [_pool(threads - 1).submit(task) for task in tasks[1:]]
    try:
        first = tasks[0]()
        return [first, *(other.result() for other in others)]
    finally:
        wait(others)  # also after an error: nobody writes into the caller's arrays once this is left


@contextmanager
def team(members: Team | None) -> Iterator[None]:
    """Let :func:`run` give the tasks that this thread shares out to ``members`` inside the block."""
    before = getattr(_own, "team", None)
    _own.team = members
    try:
        yield
    finally:
        _own.team = before


def over_blocks(function: Callable[[int, int], T], size: int, threads: int) -> list[T]:
    """Call ``function(start, stop)`` on even blocks of ``range(size)``, one a thread; results in block order."""
    return run([lambda a=a, b=b: function(a, b) for a, b in blocks(size, threads)], threads)  # type: ignore[misc]


def share(function: Callable[[int, int], object], size: int, block: int, threads: int) -> None:
    """Call ``function(start, stop)`` on consecutive blocks of ``range(size)``; each thread takes the next one when free."""
    starts = deque(range(0, size, block))

    def work() -> None:
        """Take one block after the other until there is none left."""
        while True:
            try:
                start = starts.popleft()  # the one step that threads must not share, and deques promise that
            except IndexError:
                return
            try:
                function(start, min(start + block, size))
            except BaseException:
                starts.clear()  # an error or an interrupt of one thread ends the work of all
                raise

    run([work] * max(1, min(threads, len(starts))), threads)


def in_order(function: Callable[[S], T], items: Iterable[S], threads: int) -> Iterator[T]:
    """Like ``map(function, items)``, on ``threads`` threads: results in order, a few items taken in advance.

    The calling thread only takes items and hands results on. An error, of a call or of the iterable, is raised where its
    result would have come, after all results before it. When the caller stops early, calls under way are awaited.

    Raises:
        RuntimeError: the caller goes on in a process forked since, where none of the calls under way will end.
    """
    if threads <= 1:
        return iter(map(function, items))
    return _in_advance(lambda item: _pool(threads).submit(function, item), items, threads + 1)


def alongside(function: Callable[[S], T], items: Iterable[S], most: int = 1) -> Generator[T, None, None]:
    """Like ``map(function, items)``, with the calls made on one other thread while this one gets the next items.

    The calls are made one after the other, in order, so that a function may change what it keeps: it works on one item
    while the iterable works on the next. After a call that fails none is made. Else as :func:`in_order`.

    Args:
        function: what to call.
        items: may be the slow part.
        most: results that may wait; this many items and one more are held at a time.
    """
    broken: list[bool] = []

    def one(item: S) -> T:
        if broken:
            raise CancelledError
        try:
            return function(item)
        except BaseException:
            broken.append(True)
            raise

    source = iter(items)
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="xswe-alongside") as pool:
            yield from _in_advance(lambda item: pool.submit(one, item), source, most)
    finally:
        if isinstance(source, Generator):
            source.close()  # now, and not when whoever holds the error lets go of it


def _in_advance(submit: Callable[[S], Future[T]], items: Iterable[S], most: int) -> Iterator[T]:
    """Submit a call for each item, with ``most`` of them under way while the next item is taken; results in order."""
    waiting: deque[Future[T]] = deque()
    failed: Exception | None = None
    source, process = iter(items), os.getpid()

    def oldest() -> T:
        if os.getpid() != process:
            raise RuntimeError("this work was begun before the process was forked; begin it anew in this one")
        return waiting.popleft().result()

    try:
        while True:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:
                failed = error
                break
            waiting.append(submit(item))
            if len(waiting) > most:
                yield oldest()
        while waiting:
            yield oldest()
    finally:
        if os.getpid() == process:
            for future in waiting:
                future.cancel()
            wait(waiting)
    if failed is not None:
        raise failed


def call(job: Callable[[], T]) -> T:
    """Do a job: what :func:`in_order` calls where the items are jobs themselves."""
    return job()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread a call inside the block (the callers' own threads make up for it)."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


# Threads that stay awake between two pieces of work, for loops whose pieces are shorter than it takes to wake a thread.
#
# A step of training hands work over half a dozen times, each for some hundred microseconds; to wake a sleeping thread
# takes a hundred. Inside :func:`awake` helpers look for work without a pause, for a millisecond or two, before they
# sleep.


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
        with single_threaded_blas():
            yield
        return
    helpers = [_Helper() for _ in range(threads - 1)]

    def run(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        for helper, task in zip(helpers, tasks[1:], strict=True):
            helper.order(task)
        with team(None):  # what a piece shares out itself goes the usual way
            try:
                first = tasks[0]()
            finally:
                others = [helper.result() for helper in helpers]  # nobody writes into the caller's arrays after this
        return [first, *others]

    try:
        with single_threaded_blas(), team((threads, run)):
            yield
    finally:
        for helper in helpers:
            helper.order(None)
