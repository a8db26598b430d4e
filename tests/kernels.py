"""Compiled functions while several processes share the tests: one compiles a function, the others wait and load it.

Without this each would compile for itself, some seconds a function; and what numba keeps on the disk could get mixed up,
as it numbers the kept files without regard to other processes.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


@functools.cache
def compile_once() -> None:
    """Let only one process at a time compile a function that is kept on the disk; where files have no locks, do nothing."""
    if sys.platform == "win32":
        return
    plain, held = Dispatcher.compile, set[Path]()

    @functools.wraps(plain)
    def compile_alone(self: Dispatcher, signature: Any) -> Any:
        kept = self._cache.cache_path
        if kept is None:
            return plain(self, signature)
        place = Path(kept, f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock")
        # A function is compiled after those that it calls, in all processes alike: none waits for another in a circle.
        with global_compiler_lock, alone(place, held):
            return plain(self, signature)

    Dispatcher.compile = compile_alone


@contextlib.contextmanager
def alone(place: Path, held: set[Path]) -> Iterator[None]:
    """Hold the lock of a file, unless this process holds it already, or there are no locks, or none of that file."""
    with contextlib.ExitStack() as opened:
        if place not in held:
            with contextlib.suppress(OSError, ImportError):
                import fcntl

                fcntl.flock(opened.enter_context(place.open("a")), fcntl.LOCK_EX)
                held.add(place)
                opened.callback(held.remove, place)
        yield
