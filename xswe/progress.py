"""Progress bars of all long loops; they can be silenced.

Set the environment variable ``XSWE_PROGRESS=0`` or ``TQDM_DISABLE=1`` (or call :func:`silence`) for no bars at all. Without
a terminal, a line every half minute takes their place, to keep logs short. Nothing here is coloured, with or without
``NO_COLOR``.
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
_SCALED_FROM = 100_000
_MAX_DESCRIPTION = 24  # characters, which leave room for the rest of a bar in 80 columns
_MIN_SECONDS_FOR_RATE = 1.0  # a rate over less time measures only the start
_silent = os.environ.get("XSWE_PROGRESS", "1") == "0" or os.environ.get("TQDM_DISABLE", "0").lower() not in (
    "",
    "0",
    "false",
)
_open_files: list[tuple[BinaryIO, int]] = []  # streams being read, and their sizes


def silence(silent: bool = True) -> None:
    """Switch all progress bars of this process off (or on again)."""
    global _silent
    _silent = silent


@contextmanager
def reading(stream: BinaryIO) -> Iterator[None]:
    """Let bars without a total estimate it from how much of the file has been read."""
    try:
        entry = stream, os.fstat(stream.fileno()).st_size
    except OSError:  # remote
        entry = stream, 0
    if not entry[1]:  # a pipe or a device
        yield
        return
    _open_files.append(entry)
    try:
        yield
    finally:
        _open_files.remove(entry)


class _Bar(tqdm):
    """A bar on a terminal that estimates a missing total from the share of open files read, and ends at 100 %."""

    disable: bool = True  # until it is made, which an interrupt may prevent
    total: float | None
    _is_estimated = False

    def update(self, n: float | None = 1) -> bool | None:
        """Count ``n`` more."""
        if self.disable:
            return None
        if self.total is None or self._is_estimated:
            done, size = sum(stream.tell() for stream, _ in _open_files), sum(size for _, size in _open_files)
            self._is_estimated = True
            self.total = round((self.n + (n or 0)) * size / done) if 0 < done < size else None
        if self.n >= _SCALED_FROM:
            self.unit_scale = True
        return super().update(n)

    def finish(self) -> None:
        """Make the bar end at 100 %, if its total was estimated."""
        if (self.total is None or self._is_estimated) and self.n:
            self.total = self.n


class _Lines(_Bar):
    """A bar for logs: a line every half minute, none for shorter loops."""

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line if it is due."""
        if time.monotonic() - getattr(self, "_written", self._begun()) >= _LOG_SECONDS:
            self._written = time.monotonic()
            sys.stderr.write(f"{self}\n")

    def _begun(self) -> float:
        self._start = getattr(self, "_start", time.monotonic())
        return self._start

    def close(self) -> None:
        """End without another line."""
        if not self.disable:
            self.disable = True
            self._decr_instances(self)


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes log records above the bars of a terminal, which are then redrawn."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def _bar(items: Iterable[T] | None, description: str, total: int | None, unit: str, initial: int = 0) -> _Bar:
    """Open a bar; large counts get a suffix (565M), and a long description is cut to leave room for the bar."""
    kind = _Bar if sys.stderr.isatty() else _Lines
    known = len(items) if total is None and isinstance(items, Sized) else total
    name = description if len(description) <= _MAX_DESCRIPTION else f"{description[: _MAX_DESCRIPTION - 1]}…"
    how = {"disable": _silent, "mininterval": 0.2, "dynamic_ncols": True, "initial": initial, "unit": f" {unit}"}
    return kind(items, desc=name, total=total, unit_scale=(known or 0) >= _SCALED_FROM, **how)


def took(count: int, seconds: float, unit: str) -> str:
    """Say how long something took, with the rate if that took long enough and at least one ``unit`` per second.

    Example:
        >>> took(24_690, 2.0, "lines"), took(3, 0.1, "lines")
        ('2.0 s, 12,345 lines/s', '0.1 s')
    """
    rate = f", {count / seconds:,.0f} {unit}/s" if count >= seconds >= _MIN_SECONDS_FOR_RATE else ""
    return f"{seconds:.1f} s{rate}"


def every(seconds: float | None = None) -> Callable[[], bool]:
    """Return a callable that returns True at most once in ``seconds``; None for the interval of checkpoints."""
    last = time.monotonic()

    def due() -> bool:
        """Return True if the time is over, and begin it again."""
        nonlocal last
        if time.monotonic() - last < (_CHECKPOINT_SECONDS if seconds is None else seconds):
            return False
        last = time.monotonic()
        return True

    return due


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
    """Iterate over ``items`` with a progress bar, which shows the speed and the time left.

    ``total`` is the number of items, if they have no length; ``unit`` the name of one.
    """
    return iter(_bar(items, description, total, unit))


@contextmanager
def bar(description: str, total: int | None = None, unit: str = "it", initial: int = 0) -> Iterator[tqdm]:
    """Open a progress bar to be advanced with ``.update(n)``; ``initial`` is the count an earlier run finished."""
    with _bar(None, description, total, unit, initial) as progress:
        yield progress
        progress.finish()
