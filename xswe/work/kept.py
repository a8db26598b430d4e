"""Registry of the files from which an interrupted command can be resumed.

It is only read when a run is interrupted: files that are gone by then (in a temporary folder, or the state of a finished
step) do not count.
"""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

BRIEF = 5.0  # seconds; shorter work is repeated rather than saved
_order = count()
_kept: dict[Path, tuple[int, str]] = {}  # for each file: order of registration, and where the same command resumes
_streams: list[int] = []  # the identity of the last input that cannot be read again; empty without one
_CLEANED_EVERY = 1000  # registered files after which missing ones are forgotten


def begin() -> None:
    """Forget the files of earlier runs of this process."""
    _kept.clear()
    _streams.clear()


def keep(file: Path, where: str) -> None:
    """Register a file from which the same command resumes, and where: ``after 12 of 40 shards of encode``."""
    _kept[file] = (next(_order), where)
    if len(_kept) % _CLEANED_EVERY == 0:  # a server that mines registers files in temporary folders without end
        for gone in [one for one in list(_kept) if not one.exists()]:
            _kept.pop(gone, None)  # another thread may have removed it


def unrepeatable() -> int:
    """Return an identity for an input that cannot be read twice, such as standard input: the run cannot be resumed."""
    _streams[:] = [time.time_ns()]
    return _streams[0]


def going_on() -> str:
    """Return where the same command would resume, "" if it would start from the beginning."""
    left = [] if _streams else [note for file, note in list(_kept.items()) if file.exists()]
    return max(left)[1] if left else ""
