"""The sentences of an index and what is known of each, in an SQLite database: added to and read in part, at any size."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from xswe.errors import ModelError, XsweError

_SCHEMA = """
CREATE TABLE sentences (row INTEGER PRIMARY KEY, text TEXT NOT NULL, metadata TEXT);
CREATE TABLE info (key TEXT PRIMARY KEY, value);
"""
_WAIT = 60.0  # seconds for another process that writes
_AT_ONCE, _ADDED = 500, 100  # rows that a statement asks for, and that one adds, in six tenths of the time of one a row


class Sentences:
    """Sentences by row, and a few facts of the index; a change is there as a whole or not at all.

    Args:
        path: the database: ``sentences(row, text, metadata)``, the last as JSON, and ``info(key, value)``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, facts: dict[str, Any]) -> None:
        """Make an empty database."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.executescript(_SCHEMA)
            _note(database, facts)

    def facts(self) -> dict[str, Any]:
        """Return the facts."""
        with self._reading() as database:
            return dict(database.execute("SELECT key, value FROM info"))

    def take(self, rows: Sequence[int]) -> dict[int, tuple[str, Any]]:
        """Return the text and metadata of those of the rows that are there."""
        found: dict[int, tuple[str, Any]] = {}
        with self._reading() as database:
            for start in range(0, len(rows), _AT_ONCE):
                some = [int(row) for row in rows[start : start + _AT_ONCE]]
                places = ",".join("?" * len(some))
                query = f"SELECT row, text, metadata FROM sentences WHERE row IN ({places})"
                for row, text, metadata in database.execute(query, some):
                    found[row] = text, None if metadata is None else json.loads(metadata)
        return found

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a change: no other process changes anything until it is left, and an error undoes it."""
        with self._open("rw") as database:
            database.execute("PRAGMA cache_size=-65536")
            database.execute("BEGIN IMMEDIATE")
            with database:
                yield Writing(database)

    def copy(self, path: Path) -> None:
        """Copy the database as it stands between two changes."""
        with self._reading() as database, closing(sqlite3.connect(path)) as other:
            database.backup(other)

    def _reading(self) -> Any:
        return self._open("ro")

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)) as database:
                yield database
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path)) from None
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise XsweError(f"{self.path}: another process adds to the index; ask again when it has done") from None
            raise ModelError(f"{self.path}: no database of an index, or a damaged one ({error}); build it again") from None


class Writing:
    """A change under way."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def facts(self) -> dict[str, Any]:
        """Return the facts as they are now."""
        return dict(self._database.execute("SELECT key, value FROM info"))

    def note(self, facts: dict[str, Any]) -> None:
        """Change facts."""
        _note(self._database, facts)

    def add(self, first: int, texts: Iterable[str], metadata: Sequence[Any] | None) -> None:
        """Add sentences under the numbers from ``first`` on."""
        packed = [] if metadata is None else [(None if one is None else _json(one) for one in metadata)]
        names, place = ("row, text", "(?, ?)") if metadata is None else ("row, text, metadata", "(?, ?, ?)")
        rows = zip(count(first), texts, *packed, strict=False)
        while some := tuple(islice(rows, _ADDED)):
            places, values = ", ".join([place] * len(some)), tuple(chain.from_iterable(some))
            self._database.execute(f"INSERT INTO sentences ({names}) VALUES {places}", values)

    def remove(self, rows: Iterable[int]) -> None:
        """Remove sentences."""
        self._database.executemany("DELETE FROM sentences WHERE row = ?", ((row,) for row in rows))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def _note(database: sqlite3.Connection, facts: dict[str, Any]) -> None:
    database.executemany("INSERT OR REPLACE INTO info VALUES (?, ?)", list(facts.items()))
