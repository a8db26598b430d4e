"""The sentences and metadata of an index, in an SQLite database.

The database decides what belongs to an index: how many rows its arrays have, which of them were removed, and the checksums
of all its files. Within the database each sentence has a checksum, verified whenever it is read; everything else has one
checksum together, computed at the end of each change and verified whenever the index is opened.

A change to an index in use goes to a write-ahead log, so readers do not wait for it.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from xswe.errors import ModelError, XsweError, brief
from xswe.io.checksums import FileSums, text_sums
from xswe.io.ragged import Texts
from xswe.search.connections import WAIT, Connections

# Format 1, of v0.2 and earlier, has no checksums and no table of removed rows; 2 may have clusters, and has neither sign
# bits nor a table of replaced slots.
FORMAT_VERSION = 3
_CHECKS = (
    "CREATE TABLE text_checksums (part INTEGER PRIMARY KEY, sums BLOB NOT NULL)",
    "CREATE TABLE removed (part INTEGER PRIMARY KEY, bits BLOB NOT NULL)",
    "CREATE TABLE checksums (file TEXT, part INTEGER, size INTEGER, block INTEGER, sums BLOB, PRIMARY KEY (file, part)) "
    "WITHOUT ROWID",
)
_REPLACED = "CREATE TABLE replaced (part INTEGER PRIMARY KEY, bits BLOB NOT NULL)"
_SCHEMA = (
    "CREATE TABLE sentences (row INTEGER PRIMARY KEY, text TEXT NOT NULL, metadata TEXT)",
    "CREATE TABLE info (key TEXT PRIMARY KEY, value)",
    *_CHECKS,
    _REPLACED,
)
_FACTS = {"method", "storage", "rows", "removed", "error"}
_ROOT = "checksum"  # the fact that holds the checksum of everything but the sentences
_WRITE_CACHE = 65_536  # KiB of changed pages in memory; a larger change is partly written before its end
_IDLE_CACHE = 2000  # KiB of pages cached by an idle connection
_READ = 1000  # sentences read at a time
_SELECTED_ROWS, _INSERTED_ROWS = 500, 100  # rows per SELECT, and per INSERT: takes 60 % of the time of single rows
_PART_BITS = 1 << 16  # bits per record: one for each removed row or replaced slot
_SUMS, _TEXT_SUMS = 1024, 256  # checksums per record: of blocks, and of sentences
# SQL for the recorded checksum of the current row's sentence.
_RECORDED_SUM = f"(SELECT substr(sums, row % {_TEXT_SUMS} * 4 + 1, 4) FROM text_checksums WHERE part = row / {_TEXT_SUMS})"
_UPGRADE_ROWS = 8192  # sentences upgraded at a time
_DAMAGED = "what it says of the index is not what was written"
_RESTORE = "restore it from a copy; what can be read of it, sqlite3 prints with .recover"


class State(NamedTuple):
    """The state of an index in its database."""

    facts: dict[str, Any]
    removed: np.ndarray  # int64, rows, ascending
    sums: dict[str, FileSums] | None  # by file; None for an index of format 1
    replaced: np.ndarray  # int64, slots that sentences had before updates, ascending
    root: int | None  # the checksum of all of this; None for an index of format 1


class Sentences:
    """Sentences by row, and the facts of the index; changes are atomic.

    The database has ``sentences(row, text, metadata)``, with metadata as JSON, and ``info(key, value)``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path)
        self._has_sums: bool | None = None  # None: unknown so far

    def create(self, facts: dict[str, Any], sums: Mapping[str, FileSums] | None = None) -> None:
        """Create an empty database with these facts and checksums of files."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            database.execute("BEGIN")
            with database:
                for statement in _SCHEMA:
                    database.execute(statement)
                _note(database, facts)
                _seal(database)
                writing = Writing(database)
                for file, known in (sums or {}).items():
                    writing.note_sums(file, known)
                _seal(database)

    def state(self) -> State:
        """Return the facts of the index; ModelError: the database is damaged, or of a newer version."""
        with self._reading() as database:
            state = _state(database)
        self._has_sums = state.sums is not None
        return state

    def take(self, rows: Sequence[int]) -> dict[int, tuple[str, Any]]:
        """Return the text and metadata of the rows that exist.

        ModelError: a text is damaged, or a sentence is missing that was not removed.
        """
        if self._has_sums is None:
            self.state()
        with self._open() as database:
            return _take(database, rows, bool(self._has_sums))

    def __iter__(self) -> Iterator[tuple[int, str, Any]]:
        """Yield the row, text and metadata of all sentences, by ascending row, each as it is when it is read."""
        last, batch = -1, [0]
        while batch:
            with self._open() as database:
                query = "SELECT row FROM sentences WHERE row > ? ORDER BY row LIMIT ?"
                batch = [row for (row,) in database.execute(query, (last, _READ)).fetchall()]
            for row, sentence in sorted(self.take(batch).items()):
                yield row, *sentence
            last = batch[-1] if batch else last

    @contextmanager
    def writing(self, log: bool = True) -> Iterator[Writing]:
        """Open a change: no other process can change anything until it is closed, and an error undoes it.

        With ``log`` others can read meanwhile; not needed for an index under construction.
        """
        with self._open() as database:
            database.execute(f"PRAGMA cache_size=-{_WRITE_CACHE}")
            database.execute("PRAGMA synchronous=FULL")
            if log:
                _log_changes(database)
            database.execute("BEGIN IMMEDIATE")
            database.execute("DELETE FROM info WHERE 0")  # fails here, before any work, if the database is not writable
            with database:
                yield Writing(database)
                _seal(database)
            database.execute(f"PRAGMA cache_size=-{_IDLE_CACHE}")
            _empty_log(database)

    def copy(self, path: Path) -> None:
        """Copy the database, as it is between two changes, to one file."""
        with self._open() as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
            database.backup(other)
            other.execute("PRAGMA journal_mode=DELETE")

    def shrink(self) -> None:
        """Free the space of removed sentences."""
        with self._open() as database:
            database.execute("VACUUM")
            _empty_log(database)

    def close(self) -> None:
        """Close the connections kept open between queries."""
        self._connections.close()

    def damage(self) -> list[str]:
        """Read everything, and return a line for each problem."""
        try:
            with self._reading() as database:
                found = [str(line) for (line,) in database.execute("PRAGMA integrity_check(5)") if line != "ok"]
                if found:
                    return [f"{self.path}: {found[0]}; {_RESTORE}"]
                _state(database)
                return _damaged_sentences(database, self.path)
        except ModelError as error:
            return [str(error)]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the database for consistent reading, as it is between two changes."""
        with self._open() as database:
            database.execute("BEGIN")
            yield database

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect; this undoes a change that a killed process left unfinished, if the folder is writable."""
        try:
            with self._connections.one() as database:
                yield database
        except _Refused as error:
            raise ModelError(f"{self.path}: {error}") from None
        except sqlite3.Error as error:
            self._refuse(error)

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        """Raise an error that tells the user what an SQLite error means."""
        code = getattr(error, "sqlite_errorcode", 0)
        kind = code & 0xFF
        if kind == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path)) from None
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise XsweError(f"{self.path}: another process is changing the index; try again when it has finished") from None
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            journal = self.path.with_name(f"{self.path.name}-journal")
            if journal.exists():
                raise ModelError(
                    f"{self.path}: a killed process left a change unfinished, which can only be undone if the folder is "
                    f"writable: open the index once as a user who may write, or copy the folder with {journal.name} and "
                    "open the copy; without that file the index is lost"
                ) from None
            raise ModelError(
                f"{self.path}: cannot be opened or written ({error}); check permissions, or use a copy"
            ) from None
        if kind == sqlite3.SQLITE_IOERR:
            raise ModelError(f"{self.path}: cannot be read or written ({error}); check the disk, or use a copy") from None
        raise ModelError(f"{self.path}: no database of an index, or damaged ({brief(error, 120)}); {_RESTORE}") from None


class _Refused(Exception):
    """A problem with the database, with a hint for the user."""

    def __init__(self, problem: str, advice: str = _RESTORE) -> None:
        super().__init__(f"{problem}; {advice}")


class Writing:
    """A change in progress.

    Attributes:
        state: the state of the index before the change.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.state = _state(database)

    def note(self, facts: dict[str, Any]) -> None:
        """Record new values of facts."""
        _note(self._database, facts)

    def take(self, rows: Sequence[int]) -> dict[int, tuple[str, Any]]:
        """Return the text and metadata of the rows that exist."""
        return _take(self._database, rows, self.state.sums is not None)

    def add(self, first: int, texts: Iterable[str], metadata: Sequence[Any] | None) -> None:
        """Add sentences, numbered from ``first``."""
        texts = Texts.of(texts)
        packed = [] if metadata is None else [[None if one is None else _json(one) for one in metadata]]
        sums = text_sums(texts)
        for values in packed:
            sums[:] = [_with_metadata(*both) for both in zip(sums.tolist(), values, strict=True)]
        self._note_text_sums(first, sums)
        names, place = ("row, text", "(?, ?)") if metadata is None else ("row, text, metadata", "(?, ?, ?)")
        rows = zip(count(first), texts, *packed, strict=False)
        while batch := tuple(islice(rows, _INSERTED_ROWS)):
            query = f"INSERT INTO sentences ({names}) VALUES {', '.join([place] * len(batch))}"
            self._database.execute(query, tuple(chain.from_iterable(batch)))

    def _note_text_sums(self, first: int, sums: np.ndarray) -> None:
        """Record the checksums, uint32 (n,), of sentences numbered from ``first``; later ones must not be recorded yet."""
        part, before = divmod(first, _TEXT_SUMS)
        if before:
            ((known,),) = self._database.execute("SELECT sums FROM text_checksums WHERE part = ?", (part,))
            sums = np.concatenate([np.frombuffer(known, "<u4", before), sums])
        data, size = sums.astype("<u4").tobytes(), 4 * _TEXT_SUMS
        parts = ((part + start // size, data[start : start + size]) for start in range(0, len(data), size))
        self._database.executemany("INSERT OR REPLACE INTO text_checksums VALUES (?, ?)", parts)

    def remove(self, rows: Sequence[int]) -> None:
        """Remove sentences."""
        self._database.executemany("DELETE FROM sentences WHERE row = ?", ((row,) for row in rows))
        self._mark("removed", np.array(rows, np.int64))

    def update(self, rows: Sequence[int], texts: Sequence[str], metadata: Sequence[Any], slots: np.ndarray) -> None:
        """Replace the texts and metadata of sentences, which were in these slots."""
        for row, text, one in zip(rows, Texts.of(texts), metadata, strict=True):
            kept = None if one is None else _json(one)
            self._database.execute("UPDATE sentences SET text = ?, metadata = ? WHERE row = ?", (text, kept, row))
            part, place = divmod(row, _TEXT_SUMS)
            ((known,),) = self._database.execute("SELECT sums FROM text_checksums WHERE part = ?", (part,)).fetchall()
            own = _sentence_sum(text, kept).to_bytes(4, "little")
            sums = known[: 4 * place] + own + known[4 * place + 4 :]
            self._database.execute("UPDATE text_checksums SET sums = ? WHERE part = ?", (sums, part))
        self._mark("replaced", slots)

    def forget_replaced(self) -> None:
        """Forget which slots were replaced, after slots were renumbered."""
        self._database.execute("DELETE FROM replaced")

    def _mark(self, table: Literal["removed", "replaced"], numbers: np.ndarray) -> None:
        """Record removed rows or replaced slots."""
        for part in np.unique(numbers // _PART_BITS).tolist():
            bits = np.zeros(_PART_BITS // 8, np.uint8)
            for (known,) in self._database.execute(f"SELECT bits FROM {table} WHERE part = ?", (part,)):
                bits[:] = np.frombuffer(known, np.uint8)
            own = numbers[numbers // _PART_BITS == part] % _PART_BITS
            np.bitwise_or.at(bits, own // 8, (128 >> own % 8).astype(np.uint8))
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (part, bits.tobytes()))

    def note_sums(self, file: str, known: FileSums, since: int = 0) -> None:
        """Record the checksums of a file; blocks before ``since`` have theirs recorded already."""
        first = since // _SUMS
        self._database.execute("DELETE FROM checksums WHERE file = ? AND part >= ?", (file, first))
        for part in range(first, -(-len(known.sums) // _SUMS)):
            start = part * _SUMS * known.block
            size, sums = min(_SUMS * known.block, known.size - start), known.sums[part * _SUMS : (part + 1) * _SUMS]
            values = (file, part, size, known.block, sums.astype("<u8").tobytes())
            self._database.execute("INSERT INTO checksums VALUES (?, ?, ?, ?, ?)", values)

    def forget_sums(self, files: Iterable[str]) -> None:
        """Forget the checksums of files."""
        self._database.executemany("DELETE FROM checksums WHERE file = ?", ((file,) for file in files))

    def upgrade(self, facts: dict[str, Any], sums: Mapping[str, FileSums] | None = None) -> None:
        """Upgrade a database to this version; ``sums`` are the checksums of files if it is of format 1, which has none."""
        self._database.execute("DELETE FROM info WHERE key = 'clustered'")
        self._database.execute(_REPLACED)
        self.note({**facts, "format_version": FORMAT_VERSION})
        if sums is not None:
            self._add_sums(sums)
        _seal(self._database)
        self.state = _state(self._database)

    def _add_sums(self, sums: Mapping[str, FileSums]) -> None:
        """Record the checksums of files and sentences, and removed rows."""
        for statement in _CHECKS:
            self._database.execute(statement)
        present = np.zeros(self.state.facts["rows"], bool)
        for start in range(0, len(present), _UPGRADE_ROWS):
            known = np.zeros(min(_UPGRADE_ROWS, len(present) - start), np.uint32)
            query = "SELECT row, text, metadata FROM sentences WHERE row >= ? AND row < ?"
            for row, *sentence in self._database.execute(query, (start, start + len(known))):
                present[row], known[row - start] = True, _sentence_sum(*sentence)
            self._note_text_sums(start, known)
        removed = np.flatnonzero(~present)
        self._mark("removed", removed)
        for file in sums:
            self.note_sums(file, sums[file])
        self.note({"removed": len(removed)})


def _log_changes(database: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; while another process keeps reading, leave that to the next change."""
    with suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode=WAL").fetchall()


def _empty_log(database: sqlite3.Connection) -> None:
    """Checkpoint the write-ahead log into the database, and empty it unless it is being read."""
    database.execute("PRAGMA busy_timeout=0")
    with suppress(sqlite3.OperationalError):
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    database.execute(f"PRAGMA busy_timeout={int(1000 * WAIT)}")


def _facts(database: sqlite3.Connection) -> dict[str, Any]:
    """Read all facts; reading one alone could use SQLite's index, which may be sound although the fact is damaged."""
    return dict(_fetched(database, "SELECT key, value FROM info"))


def _state(database: sqlite3.Connection) -> State:
    try:
        return _read_state(database)
    except (TypeError, ValueError):  # including UnicodeDecodeError
        raise _Refused(_DAMAGED) from None


def _read_state(database: sqlite3.Connection) -> State:
    facts = _facts(database)
    root, version = facts.pop(_ROOT, None), facts.get("format_version", FORMAT_VERSION)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise _Refused(f"format version {version} is newer than {FORMAT_VERSION}", "upgrade xswe")
    if root is None and version == 1 and facts.keys() >= _FACTS:
        return State(facts, np.zeros(0, np.int64), None, np.zeros(0, np.int64), None)
    files, removed, replaced = _noted(database)
    if root != _root(facts, files, removed, replaced):
        raise _Refused(_DAMAGED)
    parts: dict[str, list[Any]] = {}
    for file, *part in files:
        parts.setdefault(file, []).append(part)
    sums = {file: _joined(noted) for file, noted in parts.items()}
    return State(facts, _numbers(removed), sums, _numbers(replaced), root)


def _numbers(parts: list[Any]) -> np.ndarray:
    """Return the numbers whose bits are set, int64, ascending."""
    found = [_PART_BITS * part + np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))) for part, bits in parts]
    return np.concatenate([np.zeros(0, np.int64), *found])


def _noted(database: sqlite3.Connection) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the records of files' checksums, removed rows and replaced slots."""
    files = database.execute("SELECT file, part, size, block, sums FROM checksums").fetchall()
    removed = database.execute("SELECT part, bits FROM removed").fetchall()
    has_replaced = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'replaced'").fetchone()  # none in format 2
    replaced = database.execute("SELECT part, bits FROM replaced").fetchall() if has_replaced else []
    return sorted(files), sorted(removed), sorted(replaced)


def _joined(parts: list[Any]) -> FileSums:
    """Return the checksums of a file from its records: part, size, block, sums."""
    sums = np.frombuffer(b"".join(noted for *_, noted in parts), "<u8").astype(np.uint64)
    return FileSums(sum(size for _, size, *_ in parts), parts[0][2], sums)


def _root(facts: dict[str, Any], files: list[Any], removed: list[Any], replaced: list[Any]) -> int:
    """Return one checksum over facts, checksums of files, removed rows and replaced slots."""
    value = zlib.crc32(repr(sorted(facts.items())).encode("utf-8", "backslashreplace"))
    for *about, noted in (*files, *removed, *(("replaced", *part) for part in replaced)):
        value = zlib.crc32(noted, zlib.crc32(repr(about).encode("utf-8", "backslashreplace"), value))
    return value


def _seal(database: sqlite3.Connection) -> None:
    """Record the checksum over all records, except in format 1."""
    facts = _facts(database)
    facts.pop(_ROOT, None)
    if facts.get("format_version") != 1:
        _note(database, {_ROOT: _root(facts, *_noted(database))})


def _take(database: sqlite3.Connection, rows: Sequence[int], checked: bool) -> dict[int, tuple[str, Any]]:
    found: dict[int, tuple[str, Any]] = {}
    columns = f"row, text, metadata, {_RECORDED_SUM}" if checked else "row, text, metadata, NULL"
    for start in range(0, len(rows), _SELECTED_ROWS):
        batch = [int(row) for row in rows[start : start + _SELECTED_ROWS]]
        query = f"SELECT {columns} FROM sentences WHERE row IN ({','.join('?' * len(batch))})"
        for row, text, metadata, known in _fetched(database, query, batch):
            if checked and not _is_sound(text, metadata, known):
                raise _Refused(f"the text of sentence {row} is not what was written")
            found[row] = text, None if metadata is None else json.loads(metadata)
    if checked and len(found) < len(rows):
        size = _facts(database)["rows"]
        _check_removed(database, [int(row) for row in rows if row not in found and 0 <= row < size])
    return found


def _fetched(database: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
    """Iterate over the rows of a query."""
    try:
        yield from database.execute(query, values)
    except UnicodeDecodeError as error:  # from the schema; in a text it would be an SQLite error
        raise _Refused(f"damaged ({error})") from None


def _check_removed(database: sqlite3.Connection, missing: Sequence[int]) -> None:
    """Raise _Refused unless these sentences were removed."""
    parts: dict[int, np.ndarray] = {}
    for row in missing:
        part, place = divmod(row, _PART_BITS)
        if part not in parts:
            noted = database.execute("SELECT bits FROM removed WHERE part = ?", (part,)).fetchone()
            parts[part] = np.unpackbits(np.frombuffer(noted[0] if noted else bytes(_PART_BITS // 8), np.uint8))
        if not parts[part][place]:
            raise _Refused(f"sentence {row} is missing, and was not removed")


def _damaged_sentences(database: sqlite3.Connection, path: Path) -> list[str]:
    """Return a line if sentences are missing or damaged."""
    state, present, damaged = _state(database), 0, []
    checked = state.sums is not None
    query = f"SELECT row, text, metadata, {_RECORDED_SUM if checked else 'NULL'} FROM sentences ORDER BY row"
    for row, text, metadata, known in _fetched(database, query):
        present += 1
        if checked and not _is_sound(text, metadata, known):
            damaged.append(row)
    if damaged:
        count = f"{len(damaged):,} sentences are not what was written, the first of them number {damaged[0]}"
        return [f"{path}: {count}; {_RESTORE}"]
    if present != (wanted := state.facts["rows"] - state.facts["removed"]):
        return [f"{path}: holds {present:,} sentences instead of {wanted:,}; {_RESTORE}"]
    return []


def _is_sound(text: Any, metadata: Any, known: Any) -> bool:
    """Return True if this is a sentence that matches its recorded checksum."""
    sentence = isinstance(text, str) and (metadata is None or isinstance(metadata, str))
    return sentence and bool(known == _sentence_sum(text, metadata).to_bytes(4, "little"))


def _sentence_sum(text: str, metadata: str | None) -> int:
    """Return the checksum of a sentence: the CRC-32 of its text and, if it has metadata, a zero byte and those."""
    return _with_metadata(zlib.crc32(text.encode("utf-8", "replace")), metadata)


def _with_metadata(value: int, metadata: str | None) -> int:
    """Return the checksum of a text with its metadata, given the checksum of the text."""
    return value if metadata is None else zlib.crc32(b"\0" + metadata.encode("utf-8", "replace"), value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def _note(database: sqlite3.Connection, facts: dict[str, Any]) -> None:
    database.executemany("INSERT OR REPLACE INTO info VALUES (?, ?)", list(facts.items()))
