"""Files that long work reads, and whether they are still what they were."""

from __future__ import annotations

from typing import Any, NamedTuple

from xswe.errors import InputError
from xswe.io.files import file_stamp as stamp_of
from xswe.io.sources import is_remote, remote_state


class Inputs(NamedTuple):
    """Files that are read, and what tells each from another of its name: its size, and when it was written."""

    files: tuple[str, ...] = ()
    stamps: tuple[Any, ...] = ()

    def check_unchanged(self) -> None:
        """Raise an InputError if a file is no longer what it was."""
        for name, stamp in zip(self.files, self.stamps, strict=True):
            if state_of(name)[1] != stamp:
                raise InputError(name, "changed while it was read", "start again, with a file that stays")


def state_of(name: str) -> tuple[int | None, list[Any]]:
    """Return the bytes of a file, if they are known, and what tells it from others of its name."""
    if is_remote(name):
        return remote_state(name)
    stamp = stamp_of(name)
    return stamp[1], stamp
