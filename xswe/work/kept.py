"""Registry of the files from which an interrupted command can be resumed.

Only what is read at the end counts, when a run is interrupted: what was noted and is gone since (a temporary folder, the
state of a step that is done) is left out.
"""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

BRIEF = 5.0  # seconds of work that is begun anew rather than kept
_order = count()
_kept: dict[Path, tuple[int, str]] = {}  # by file: which note it was, and where the same command goes on
_streams: list[int] = []  # what identifies the last input that no later run can know again; empty without one
_SOME = 1000  # notes after which those of files that are gone are forgotten


def begin() -> None:
    """Forget what earlier runs of this process kept."""
    _kept.clear()
    _streams.clear()


def keep(file: Path, where: str) -> None:
    """Register a file from which the same command resumes, and where: ``after 12 of 40 shards of encode``."""
    _kept[file] = (next(_order), where)
    if len(_kept) % _SOME == 0:  # a server that mines notes files in temporary folders without end
        for gone in [one for one in list(_kept) if not one.exists()]:
            _kept.pop(gone, None)  # unless another thread has


def unrepeatable() -> int:
    """Return an identity for an input that cannot be read twice, such as standard input: the run cannot be resumed."""
    _streams[:] = [time.time_ns()]
    return _streams[0]


def going_on() -> str:
    """Return from where the same command would resume, "" if it would start again."""
    left = [] if _streams else [note for file, note in list(_kept.items()) if file.exists()]
    return max(left)[1] if left else ""
