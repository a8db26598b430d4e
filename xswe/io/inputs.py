"""Input files, checked for changes while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from xswe.errors import InputError
from xswe.io.files import file_stamp
from xswe.io.sources import is_remote, parted, remote_state

_first: list[dict[str, Any]] = []  # for each `watched` block, the stamp of each file when it was first read


class Inputs(NamedTuple):
    """Input files, each with a stamp of its version (path, size and modification time)."""

    files: tuple[str, ...] = ()
    stamps: tuple[Any, ...] = ()

    def check_unchanged(self) -> None:
        """Raise InputError if a file has changed."""
        for name, stamp in zip(self.files, self.stamps, strict=True):
            if state_of(name)[1] != stamp:
                raise _changed(name)


NO_INPUTS = Inputs()


def state_of(name: str) -> tuple[int | None, list[Any]]:
    """Return the size of a file in bytes, if known, and a stamp of its current version."""
    if is_remote(name):
        return remote_state(name)
    stamp = file_stamp(name)
    return None if parted(name)[1] else stamp[1], stamp


@contextmanager
def watched() -> Iterator[None]:
    """Let :func:`steady` raise InputError if a file changes between the block's first and last reads of it."""
    _first.append({})
    try:
        yield
    finally:
        _first.pop()


@contextmanager
def steady(path: str | Path) -> Iterator[None]:
    """Raise InputError if a local file is changed while the block reads it, or was since the run first read it."""
    stamp = file_stamp(path)
    if _first and _first[-1].setdefault(stamp[0], stamp) != stamp:
        raise _changed(path)
    yield
    with suppress(FileNotFoundError):  # a file removed while open can still be read whole
        state = Path(path).stat()
        if stamp[1:] != [state.st_size, state.st_mtime_ns]:
            raise _changed(path)


def _changed(path: str | Path) -> InputError:
    return InputError(path, "changed while it was read", "start again, with a file that stays")
