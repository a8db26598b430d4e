"""Locks of folders and files."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from xswe.errors import ConfigError
from xswe.io.files import ON_WINDOWS, blaming

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


def lock(stream: IO[Any], busy: str | None = None, shared: bool = False) -> None:
    """Lock an open file until it is closed, where the system can (not on Windows).

    If another process has the lock, raise a ConfigError with the message ``busy``, or wait if that is None. Several
    processes may have a ``shared`` lock at the same time.
    """
    if fcntl is None:
        return
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(stream, kind if busy is None else kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            raise ConfigError(busy or f"{stream.name}: another process has locked it") from None
        _warn_unlocked(os.path.dirname(str(stream.name)), error.strerror or str(error))


@cache
def _warn_unlocked(folder: str, why: str) -> None:
    """Warn, once per folder, that its file system has no locks: writes there are atomic, but not exclusive."""
    logger.warning(
        "%s: files cannot be locked there (%s); the work continues: make sure that no two runs write the same output",
        folder,
        why,
    )


@contextmanager
def locked(folder: Path, busy: str | None = None, shared: bool = False) -> Iterator[None]:
    """Lock a folder for one process; see :func:`lock`."""
    place = folder / ".lock"
    while fcntl is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with blaming(folder, place):
            stream = open(place, "a+b")  # noqa: SIM115 (closed below; network file systems lock only what is open for both)
        with stream:
            lock(stream, busy, shared)
            # The process that had the lock may have removed the folder, and with it the file locked here.
            if place.exists() and os.path.samestat(place.stat(), os.fstat(stream.fileno())):
                yield
                return
    folder.mkdir(parents=True, exist_ok=True)  # without an open file in it, which would prevent renaming it
    yield


def unlock_for_rename(*streams: IO[Any]) -> None:
    """Close files to be renamed or removed, on systems that do neither to an open file."""
    for stream in streams if ON_WINDOWS else ():
        stream.close()
