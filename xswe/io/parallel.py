"""Threads: one small pool, with the pools of other libraries limited to one thread.

With more runnable threads than cores, a matrix library collapses (here from 70 GFLOP/s to 2). So work is split here, over
compiled functions that release the GIL, and BLAS is limited to one thread a call.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, Generic, Self, TypeVar

from xswe.errors import ConfigError

S = TypeVar("S")
T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")
Team = tuple[int, Callable[[list[Callable[[], Any]]], list[Any]]]  # the number of threads, and what runs tasks on them
_thread_state = threading.local()  # with the `team` of the current thread, if it has one


class Lock:
    """A lock that is replaced by a free one in a copied owner and in a forked process, where its holder does not run."""

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
        """Replace the lock with a free one."""
        self._lock = threading.Lock()


class Together(Generic[Q, A]):
    """Batches the questions of several threads: ``answer`` gets a list of them, and returns the answers in order.

    While as many threads are answering as there are processors, further ones wait, and are then answered together.
    """

    def __init__(self, answer: Callable[[list[Q]], list[A]]) -> None:
        self._answer = answer
        self.renew()
        _locks.add(self)

    def __call__(self, question: Q) -> A:
        """Return the answer to a question, or raise the exception of answering it."""
        ticket: Future[A] = Future()
        with self._changed:
            self._waiting[ticket] = question
            while ticket in self._waiting and self._busy >= available_threads():
                self._changed.wait()
            batch = dict(self._waiting) if ticket in self._waiting else {}
            if batch:
                self._waiting.clear()
                self._busy += 1
        if batch:
            self._answer_all(batch)
        return ticket.result()

    def _answer_all(self, batch: dict[Future[A], Q]) -> None:
        try:
            for future, answer in zip(batch, self._answer(list(batch.values())), strict=True):
                future.set_result(answer)
        except BaseException as error:
            for future in batch:
                future.set_exception(error)
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def renew(self) -> None:
        """Drop all waiting questions."""
        self._changed = threading.Condition()
        self._waiting: dict[Future[A], Q] = {}
        self._busy = 0


_locks: weakref.WeakSet[Lock | Together[Any, Any]] = weakref.WeakSet()


def available_memory() -> float:
    """Return the bytes of memory that are free or can be freed, 0 if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            lines = dict(line.split(":") for line in stream)
        return float(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        try:
            return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (ValueError, OSError, AttributeError):
            return 0.0


def available_threads(threads: int | None = None) -> int:
    """Return a number of threads; for None or 0 that of the processors available to this process.

    These are at most ``OMP_NUM_THREADS``, if that is set. ConfigError: ``threads`` is negative, or true.
    """
    if threads:
        if isinstance(threads, bool) or threads < 0:
            raise ConfigError(f"threads={threads!r}: give at least 1, or null for all processors")
        return threads
    most = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if most.isdecimal() and int(most):
        return min(int(most), _processors())
    return _processors()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=8)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="xswe")


def _forget_threads() -> None:
    """Drop pools and locks in a forked process, which has only the forking thread: waiting for others would never end."""
    _pool.cache_clear()
    _thread_state.__dict__.clear()
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
    """Call all ``tasks`` on ``threads`` threads, and return their results in order.

    The calling thread works, too: two tasks on two threads cost a single hand-over.
    """
    if threads <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    size, share_out = getattr(_thread_state, "team", None) or (0, None)
    if share_out is not None and len(tasks) == size:
        return share_out(tasks)
    others = [_pool(threads - 1).submit(task) for task in tasks[1:]]
    try:
        first = tasks[0]()
        return [first, *(other.result() for other in others)]
    finally:
        wait(others)  # also after an error: nothing may write to the caller's arrays after the return


@contextmanager
def team(members: Team | None) -> Iterator[None]:
    """Let :func:`run` hand the tasks of this thread to ``members`` inside the block."""
    before = getattr(_thread_state, "team", None)
    _thread_state.team = members
    try:
        yield
    finally:
        _thread_state.team = before


def over_blocks(function: Callable[[int, int], T], size: int, threads: int, least: int = 1) -> list[T]:
    """Call ``function(start, stop)`` on even blocks of ``range(size)``, one per thread; return results in block order.

    Blocks have at least ``least`` items: fewer take less time than the hand-over to another thread.
    """
    threads = min(threads, max(1, size // least))
    return run([lambda a=a, b=b: function(a, b) for a, b in blocks(size, threads)], threads)  # type: ignore[misc]


def parallel_for(function: Callable[[int, int], object], size: int, block: int, threads: int) -> None:
    """Call ``function(start, stop)`` on consecutive blocks of ``range(size)``; each thread takes the next one when free."""
    starts = deque(range(0, size, block))

    def work() -> None:
        """Work on one block after another until none is left."""
        while True:
            try:
                start = starts.popleft()  # atomic, as deques guarantee
            except IndexError:
                return
            try:
                function(start, min(start + block, size))
            except BaseException:
                starts.clear()  # an error or interrupt in one thread stops all
                raise

    run([work] * max(1, min(threads, len(starts))), threads)


def in_order(function: Callable[[S], T], items: Iterable[S], threads: int) -> Iterator[T]:
    """Like ``map(function, items)`` on ``threads`` threads: results in order, a few items taken in advance.

    The calling thread only takes items and yields results. An error, of a call or of the iterable, is raised in place of
    its result, after all earlier results. If the caller stops early, running calls are awaited. In a process forked
    meanwhile, where none of them will end, RuntimeError is raised.
    """
    if threads <= 1:
        return iter(map(function, items))
    return _in_advance(lambda item: _pool(threads).submit(function, item), items, threads + 1)


def alongside(function: Callable[[S], T], items: Iterable[S], most: int = 1) -> Generator[T, None, None]:
    """Like ``map(function, items)``, with the calls made on one other thread while this one gets the next items.

    The calls are made one after the other, in order, so ``function`` may keep state. After a failed call, no other is
    made. Up to ``most`` results may wait, with one more item in memory. Otherwise like :func:`in_order`.
    """
    broken: list[bool] = []

    def one(item: S) -> T:
        """Call the function, unless another call has failed."""
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
            source.close()  # now, not when the last reference in an error's traceback goes


def _in_advance(submit: Callable[[S], Future[T]], items: Iterable[S], most: int) -> Iterator[T]:
    """Submit a call per item, with ``most`` of them pending while the next item is taken; yield results in order."""
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


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread a call inside the block (the callers use their own threads)."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
