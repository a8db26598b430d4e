"""The memory of this process while something runs, for the benchmarks (Linux)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def memory(entry: str) -> int:
    """Return an entry of this process's memory in bytes: ``VmHWM`` (peak), ``RssAnon`` (now, not mapped from files)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) << 10
    return 0


@contextmanager
def watched() -> Iterator[list[int]]:
    """Note the largest memory that is not mapped from files inside the block, in bytes, as the list's one element."""
    largest, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            largest[0] = max(largest[0], memory("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield largest
    finally:
        over.set()
        watcher.join()
