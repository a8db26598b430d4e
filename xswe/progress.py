"""Progress bars of all long loops; they can be silenced.

Set the environment variable ``XSWE_PROGRESS=0`` or ``TQDM_DISABLE=1`` (or call :func:`silence`) for no bars at all. Without
a terminal there are none either, but a line every half a minute, so that logs stay short. Nothing here is coloured,
whatever ``NO_COLOR`` says.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import BinaryIO, TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")
_LOG_SECONDS = 30.0
_CHECKPOINT_SECONDS = 60.0
_LARGE = 100_000
_WIDEST = 24  # characters of what a bar is of, that 80 columns have room for the rest
_SHORT = 1.0  # seconds in which a rate measures nothing but the start
_silent = os.environ.get("XSWE_PROGRESS", "1") == "0" or os.environ.get("TQDM_DISABLE", "0").lower() not in (
    "",
    "0",
    "false",
)
_read: list[tuple[BinaryIO, int]] = []  # the files that are open, and their sizes


def silence(silent: bool = True) -> None:
    """Switch all progress bars of this process off (or on again)."""
    global _silent
    _silent = silent


@contextmanager
def reading(stream: BinaryIO) -> Iterator[None]:
    """Have bars without a total estimate one by how much of a file is read."""
    try:
        entry = stream, os.fstat(stream.fileno()).st_size
    except OSError:  # remote
        entry = stream, 0
    if not entry[1]:  # a pipe or a device
        yield
        return
    _read.append(entry)
    try:
        yield
    finally:
        _read.remove(entry)


class _Bar(tqdm):
    """A bar on a terminal, which without a total estimates one by what is read of open files, and ends at 100 %."""

    disable: bool
    total: float | None
    _is_estimated = False

    def update(self, n: float | None = 1) -> bool | None:
        """Count ``n`` more."""
        if self.disable:
            return None
        if self.total is None or self._is_estimated:
            done, size = sum(stream.tell() for stream, _ in _read), sum(size for _, size in _read)
            self._is_estimated = True
            self.total = round((self.n + (n or 0)) * size / done) if 0 < done < size else None
        if self.n >= _LARGE:
            self.unit_scale = True
        return super().update(n)

    def finish(self) -> None:
        """Show that all is done, however much that was."""
        if (self.total is None or self._is_estimated) and self.n:
            self.total = self.n


class _Lines(_Bar):
    """A bar for logs: a line every half a minute, and none for what takes less."""

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line, if it is time for one."""
        if time.monotonic() - getattr(self, "_written", self._begun()) >= _LOG_SECONDS:
            self._written = time.monotonic()
            sys.stderr.write(f"{self}\n")

    def _begun(self) -> float:
        self._start = getattr(self, "_start", time.monotonic())
        return self._start

    def close(self) -> None:
        """End without a word more."""
        if not self.disable:
            self.disable = True
            self._decr_instances(self)


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes what is logged between the bars of a terminal, which it draws anew below."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def _bar(items: Iterable[T] | None, description: str, total: int | None, unit: str, initial: int = 0) -> _Bar:
    """Open a bar; large numbers of things get a suffix (565M), and a long description leaves room for the bar."""
    kind = _Bar if sys.stderr.isatty() else _Lines
    known = len(items) if total is None and isinstance(items, Sized) else total
    name = description if len(description) <= _WIDEST else f"{description[: _WIDEST - 1]}…"
    how = {"disable": _silent, "mininterval": 0.2, "dynamic_ncols": True, "initial": initial, "unit": f" {unit}"}
    return kind(items, desc=name, total=total, unit_scale=(known or 0) >= _LARGE, **how)


def took(count: int, seconds: float, unit: str) -> str:
    """Say how long something took, and how fast it went where it was neither over at once nor of a few things.

    Example:
        >>> took(24_690, 2.0, "lines"), took(3, 0.1, "lines")
        ('2.0 s, 12,345 lines/s', '0.1 s')
    """
    rate = f", {count / seconds:,.0f} {unit}/s" if count >= seconds >= _SHORT else ""
    return f"{seconds:.1f} s{rate}"


def every(seconds: float | None = None) -> Callable[[], bool]:
    """Return a callable that is True at most once in ``seconds``; None for the interval of checkpoints."""
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

    ``total`` is the number of items, where ``len(items)`` does not tell; ``unit`` the name of one.
    """
    return iter(_bar(items, description, total, unit))


@contextmanager
def bar(description: str, total: int | None = None, unit: str = "it", initial: int = 0) -> Iterator[tqdm]:
    """Open a progress bar to be moved by hand with ``.update(n)``; ``initial`` counts what an earlier run finished."""
    with _bar(None, description, total, unit, initial) as progress:
        yield progress
        progress.finish()
