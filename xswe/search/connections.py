"""A pool of open connections to a database."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT = 60.0  # seconds to wait for another process that writes
_pools: weakref.WeakSet[Connections] = weakref.WeakSet()


class Connections:
    """Connections to a database, each used by one thread at a time.

    If the folder is not writable and the write-ahead log is empty, the database is opened as immutable, because the log
    that every reader must open could not be created. Such a connection does not notice later changes, so it is not reused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        _pools.add(self)
        weakref.finalize(self, _close, self._idle)

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; an uncommitted transaction is rolled back at the end."""
        try:
            connection, kept = self._idle.pop(), True
        except IndexError:
            connection, kept = self._opened()
        try:
            yield connection
            if connection.in_transaction:
                connection.rollback()
        except BaseException:
            connection.close()
            raise
        if kept:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        _close(self._idle)

    def _opened(self) -> tuple[sqlite3.Connection, bool]:
        """Open a connection; also return whether it can be reused."""
        log = self._path.with_name(f"{self._path.name}-wal")
        immutable = not os.access(self._path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
        mode = "mode=ro&immutable=1" if immutable and not self._journal() else "mode=rw"
        address = f"{self._path.absolute().as_uri()}?{mode}"
        opened = sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
        return opened, mode == "mode=rw"

    def _journal(self) -> bool:
        """Return True if a killed process left a change unfinished, in a database without a write-ahead log."""
        journal = self._path.with_name(f"{self._path.name}-journal")
        return journal.exists() and journal.stat().st_size > 0

    def forget(self) -> None:
        """Drop the connections of the parent process without closing them, which could break its locks."""
        for connection in self._idle:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._idle.clear()


def _close(idle: list[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()


def _forget_connections() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
