"""Jobs done on several threads, their results in order, with few of them in memory at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_order(jobs: Iterator[Callable[[], T]], threads: int) -> Iterator[T]:
    """Call jobs on ``threads`` threads and yield their results in the order of the jobs.

    An error, of a job or of the iterator, is raised where its result would have come, after all results before it.
    """
    if threads <= 1:
        for job in jobs:
            yield job()
        return
    pending: deque[Future[T]] = deque()
    failed: Exception | None = None
    with ThreadPoolExecutor(threads, thread_name_prefix="xswe-corpus") as pool:
        try:
            while True:
                try:
                    job = next(jobs)
                except StopIteration:
                    break
                except Exception as error:
                    failed = error
                    break
                pending.append(pool.submit(job))
                if len(pending) > 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
    if failed is not None:
        raise failed
