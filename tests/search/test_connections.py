"""Connections to the database of an index: kept, or opened as immutable where nobody may write."""

from __future__ import annotations

import sqlite3

import pytest

from xswe.search import connections
from xswe.search.connections import Connections


@pytest.fixture
def path(tmp_path):
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("CREATE TABLE t (n)")
    database.close()
    return tmp_path / "a.sqlite"


@pytest.mark.parametrize(
    ("writable", "log", "journal", "kept"),
    [
        (True, None, None, True),
        (False, None, None, False),
        (False, "", None, False),
        (False, "x", None, True),  # what is in the log would not be read
        (False, None, "", False),
        (False, None, "x", True),  # an unfinished change, which must be undone
        (True, "", "x", True),
    ],
)
def test_a_folder_that_nobody_writes_is_read_without_a_log(path, monkeypatch, writable, log, journal, kept):
    monkeypatch.setattr(connections.os, "access", lambda folder, mode: writable or folder != path.parent)
    for ending, content in (("wal", log), ("journal", journal)):
        if content is not None:
            path.with_name(f"a.sqlite-{ending}").write_text(content)
    opened, again = Connections(path)._opened()
    opened.close()
    assert again == kept


def test_a_connection_is_lent_again_unless_something_failed(path, monkeypatch):
    pool = Connections(path)
    with pool.one() as first:
        first.execute("BEGIN")
        first.execute("INSERT INTO t VALUES (1)")
    with pool.one() as again:
        assert again is first
        assert not again.in_transaction
        assert again.execute("SELECT count(*) FROM t").fetchone() == (0,)
        with pool.one() as other:
            assert other is not first
    with pytest.raises(ZeroDivisionError), pool.one() as failed:
        raise ZeroDivisionError
    with pytest.raises(sqlite3.ProgrammingError):
        failed.execute("SELECT 1")
    pool.close()
    with pool.one() as new:
        assert new not in (first, other)
    monkeypatch.setattr(connections.os, "access", lambda *_: False)
    reader = Connections(path)
    with reader.one() as immutable:
        pass
    with pytest.raises(sqlite3.ProgrammingError):
        immutable.execute("SELECT 1")
