"""The one progress helper: every long loop of the library reports through it, and it can be silenced.

Set the environment variable ``XSWE_PROGRESS=0`` or ``TQDM_DISABLE=1`` (or call :func:`silence`) for no bars at all. Without
a terminal there are none either, but a line every half a minute, so that logs stay short. Nothing here is coloured,
whatever ``NO_COLOR`` says.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
_LOG_SECONDS = 30.0
_CHECKPOINT_SECONDS = 60.0
_LARGE = 100_000
_SHORT = 1.0  # seconds of which a rate tells nothing but how long it took to start
_silent = os.environ.get("XSWE_PROGRESS", "1") == "0" or os.environ.get("TQDM_DISABLE", "0").lower() not in (
    "",
    "0",
    "false",
)


def silence(silent: bool = True) -> None:
    """Switch all progress bars of this process off (or on again)."""
    global _silent
    _silent = silent


class _Lines(tqdm):
    """A bar for logs: a line every half a minute, and none for what takes less."""

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line, if it is time for one."""
        if time.monotonic() - getattr(self, "_written", self._begun()) >= _LOG_SECONDS:
            self._written = time.monotonic()
            sys.stderr.write(f"{self}\n")

    def _begun(self) -> float:
        self._start = getattr(self, "_start", time.monotonic())
        return self._start

    disable: bool

    def close(self) -> None:
        """End without a word more."""
        if not self.disable:
            self.disable = True
            self._decr_instances(self)


def _bar(items: Iterable[T] | None, description: str, total: int | None, unit: str, initial: int = 0) -> tqdm:
    """Open a bar; large numbers of things get a suffix (565M)."""
    kind = tqdm if sys.stderr.isatty() else _Lines
    known = len(items) if total is None and isinstance(items, Sized) else total
    scaled = {"unit_scale": True, "unit": f" {unit}"} if (known or 0) >= _LARGE else {"unit": unit}
    how = {"disable": _silent, "mininterval": 0.2, "dynamic_ncols": True, "initial": initial, **scaled}
    return kind(items, desc=description, total=total, **how)


def took(count: int, seconds: float, unit: str) -> str:
    """Say how long something took, and how fast it went where it was neither over at once nor of a few things.

    Example:
        >>> took(24_690, 2.0, "lines"), took(3, 0.1, "lines")
        ('2.0 s, 12,345 lines/s', '0.1 s')
    """
    rate = f", {count / seconds:,.0f} {unit}/s" if count >= seconds >= _SHORT else ""
    return f"{seconds:.1f} s{rate}"


def every(seconds: float | None = None) -> Callable[[], bool]:
    """Return what tells, once in so many seconds, that it is time again; None for as often as checkpoints are written."""
    last = time.monotonic()

    def due() -> bool:
        nonlocal last
        if time.monotonic() - last < (_CHECKPOINT_SECONDS if seconds is None else seconds):
            return False
        last = time.monotonic()
        return True

    return due


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
    """Iterate over ``items`` and show how far along the loop is, its speed and the time left.

    Args:
        items: what to iterate over.
        description: a few words naming the work.
        total: number of items, where ``len(items)`` does not tell.
        unit: the name of one item.
    """
    return iter(_bar(items, description, total, unit))


@contextmanager
def bar(description: str, total: int | None = None, unit: str = "it", initial: int = 0) -> Iterator[tqdm]:
    """Open a progress bar to be moved by hand with ``.update(n)``; ``initial`` counts what an earlier run finished."""
    with _bar(None, description, total, unit, initial) as progress:
        yield progress
