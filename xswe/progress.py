"""The one progress helper: every long loop of the library reports through it, and it can be silenced.

Set the environment variable ``XSWE_PROGRESS=0`` or ``TQDM_DISABLE=1`` (or call :func:`silence`) for no bars at all; without
a terminal the bars refresh every ten seconds only, so that logs stay short. Nothing here is coloured, whatever ``NO_COLOR``
says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
_silent = os.environ.get("XSWE_PROGRESS", "1") == "0" or os.environ.get("TQDM_DISABLE", "0").lower() not in (
    "",
    "0",
    "false",
)


def silence(silent: bool = True) -> None:
    """Switch all progress bars of this process off (or on again)."""
    global _silent
    _silent = silent


def _settings() -> dict[str, object]:
    return {
        "disable": _silent,
        "mininterval": 0.2 if sys.stderr.isatty() else 10.0,
        "dynamic_ncols": True,
        "leave": True,
    }


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
    """Iterate over ``items`` and show how far along the loop is, its speed and the time left.

    Args:
        items: what to iterate over.
        description: a few words naming the work.
        total: number of items, where ``len(items)`` does not tell.
        unit: the name of one item.
    """
    return iter(tqdm(items, desc=description, total=total, unit=unit, **_settings()))


@contextmanager
def bar(description: str, total: int | None = None, unit: str = "it", initial: int = 0) -> Iterator[tqdm]:
    """Open a progress bar to be moved by hand with ``.update(n)``; ``initial`` counts what an earlier run finished."""
    with tqdm(desc=description, total=total, unit=unit, initial=initial, **_settings()) as progress:
        yield progress
