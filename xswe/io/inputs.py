"""Files that are read, and whether they stay as they are meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from xswe.errors import InputError
from xswe.io.files import file_stamp
from xswe.io.sources import is_remote, remote_state

_first: list[dict[str, Any]] = []  # by file, what it was when this run first read it


class Inputs(NamedTuple):
    """Files that are read, and what tells each from another of its name: its size, and when it was written."""

    files: tuple[str, ...] = ()
    stamps: tuple[Any, ...] = ()

    def check_unchanged(self) -> None:
        """Raise an InputError if a file is no longer what it was."""
        for name, stamp in zip(self.files, self.stamps, strict=True):
            if state_of(name)[1] != stamp:
                raise _changed(name)


NO_INPUTS = Inputs()


def state_of(name: str) -> tuple[int | None, list[Any]]:
    """Return the bytes of a file, if they are known, and what tells it from others of its name."""
    if is_remote(name):
        return remote_state(name)
    stamp = file_stamp(name)
    return stamp[1], stamp


@contextmanager
def watched() -> Iterator[None]:
    """Let no file change between the first and the last time that the block reads it."""
    _first.append({})
    try:
        yield
    finally:
        _first.pop()


@contextmanager
def steady(path: str | Path) -> Iterator[None]:
    """Raise an InputError if a file of this machine is written while the block reads it, or was since the run first did."""
    stamp = file_stamp(path)
    if _first and _first[-1].setdefault(stamp[0], stamp) != stamp:
        raise _changed(path)
    yield
    with suppress(FileNotFoundError):  # who reads a file that is removed reads it whole
        state = Path(path).stat()
        if stamp[1:] != [state.st_size, state.st_mtime_ns]:
            raise _changed(path)


def _changed(path: str | Path) -> InputError:
    return InputError(path, "changed while it was read", "start again, with a file that stays")
