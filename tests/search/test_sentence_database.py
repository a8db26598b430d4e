"""The database of an index against plain dictionaries, across the ends of its records."""

from __future__ import annotations

import errno
import re
import sqlite3
import zlib

import numpy as np
import pytest

from xswe.errors import ModelError, XsweError
from xswe.io.checksums import FileSums
from xswe.search.sentences import FORMAT_VERSION, Sentences, _sentence_sum

FACTS = {"format_version": FORMAT_VERSION, "rows": 0, "removed": 0}


@pytest.fixture
def sentences(tmp_path):
    made = Sentences(tmp_path / "a.sqlite")
    made.create(FACTS)
    yield made
    made.close()


def fill(sentences, sizes):
    """Add sentences in pieces, every second with metadata, and return what is held."""
    held = {}
    for turn, size in enumerate(sizes):
        first = len(held)
        texts = [f"é{row}" for row in range(first, first + size)]
        metadata = [None if row % 3 else {"n": row, "ü": "ß"} for row in range(size)] if turn % 2 else None
        held |= {first + row: (text, metadata[row] if metadata else None) for row, text in enumerate(texts)}
        with sentences.writing() as writing:
            writing.add(first, texts, metadata)
            writing.note({"rows": first + size})
    return held


def test_sentences_are_what_was_added_updated_and_not_removed(sentences):
    draw = np.random.default_rng(0)
    held = fill(sentences, [1, 254, 1, 1, 300, 743])
    gone = sorted(draw.choice(len(held), 200, replace=False).tolist())
    changed = [row for row in draw.choice(len(held), 300, replace=False).tolist() if row not in gone]
    with sentences.writing() as writing:
        writing.remove(gone)
        writing.update(changed, [f"new {row}" for row in changed], [row % 2 or None for row in changed], np.array(changed))
        writing.note({"removed": len(gone)})
    held = {row: one for row, one in held.items() if row not in gone}
    held |= {row: (f"new {row}", row % 2 or None) for row in changed}
    assert [(row, (text, about)) for row, text, about in sentences] == sorted(held.items())
    assert sentences.take(range(-2, 1400)) == held
    assert sentences.take([]) == {}
    with sqlite3.connect(sentences.path) as database:  # as other tools read it
        rows = database.execute("SELECT row, text, metadata FROM sentences WHERE metadata LIKE '{%' LIMIT 1").fetchall()
    database.close()
    assert rows == [(row, held[row][0], f'{{"n": {held[row][1]["n"]}, "ü": "ß"}}') for row, *_ in rows]
    assert len(rows) == 1
    state = sentences.state()
    assert state.removed.tolist() == gone
    assert state.replaced.tolist() == sorted(changed)
    assert state.facts == FACTS | {"rows": 1300, "removed": 200}
    assert sentences.damage() == []
    with sentences.writing() as writing:
        writing.forget_replaced()
    assert sentences.state().replaced.tolist() == []


def test_removed_rows_are_marked_in_any_record(sentences):
    rows = [0, 7, 8, 65_535, 65_536, 65_543, 200_000]
    with sentences.writing() as writing:
        writing.note({"rows": 200_001, "removed": len(rows)})
        for part in (rows[:3], rows[2:5], rows[5:]):
            writing.remove(part)
    assert sentences.state().removed.tolist() == rows
    assert sentences.take([*rows, 200_001]) == {}
    with pytest.raises(ModelError, match=r"a\.sqlite: sentence 65544 is missing, and was not removed; restore it"):
        sentences.take([65_544])


def test_a_sentence_that_changed_or_is_gone_is_damage(sentences, tmp_path):
    held = fill(sentences, [300, 20])
    database = sqlite3.connect(tmp_path / "a.sqlite")
    database.execute("UPDATE sentences SET metadata = '3' WHERE row = 303")
    database.execute("UPDATE sentences SET text = 'x' WHERE row IN (257, 299)")
    database.commit()
    assert sentences.damage() == [
        f"{tmp_path / 'a.sqlite'}: 3 sentences are not what was written, the first of them number 257; "
        "restore it from a copy; what can be read of it, sqlite3 prints with .recover"
    ]
    with pytest.raises(ModelError, match="the text of sentence 303 is not what was written"):
        sentences.take([303])
    assert sentences.take([256, 302]) == {row: held[row] for row in (256, 302)}
    database.execute("DELETE FROM sentences WHERE row IN (0, 257, 299, 303)")
    database.commit()
    database.close()
    assert "a.sqlite: holds 316 sentences instead of 320; restore it" in sentences.damage()[0]
    with pytest.raises(ModelError, match="sentence 0 is missing, and was not removed"):
        sentences.take([0])


def test_the_checksum_of_a_sentence():
    assert _sentence_sum("é", None) == zlib.crc32("é".encode())
    assert _sentence_sum("é", "[1]") == zlib.crc32("é\0[1]".encode())


def test_checksums_of_files_grow_from_where_they_are_recorded(sentences):
    draw = np.random.default_rng(0)
    sums = draw.integers(0, 2**63, 3000).astype(np.uint64)
    block = 4096
    for count, since in ((5, 0), (1024, 5), (1025, 0), (2048, 1025), (3000, 2047)):
        size = count * block - 10
        with sentences.writing() as writing:
            writing.note_sums("a", FileSums(size, block, sums[:count]), since)
            writing.note_sums("b", FileSums(3, block, sums[:1]))
        found = sentences.state().sums
        assert set(found) == {"a", "b"}
        assert (found["a"].size, found["a"].block) == (size, block)
        np.testing.assert_array_equal(found["a"].sums, sums[:count])
    with sentences.writing() as writing:
        writing.forget_sums(["a"])
    assert set(sentences.state().sums) == {"b"}


def test_a_database_that_is_not_what_was_written_or_newer_is_refused(sentences, tmp_path):
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("UPDATE info SET value = 5 WHERE key = 'rows'")
    database.close()
    with pytest.raises(ModelError, match=r"a\.sqlite: what it says of the index is not what was written; restore"):
        sentences.state()
    newer = Sentences(tmp_path / "b.sqlite")
    newer.create(FACTS)
    with sqlite3.connect(tmp_path / "b.sqlite") as database:
        database.execute(f"UPDATE info SET value = {FORMAT_VERSION + 1} WHERE key = 'format_version'")
    database.close()
    told = rf"b\.sqlite: format version {FORMAT_VERSION + 1} is newer than {FORMAT_VERSION}; upgrade xswe$"
    with pytest.raises(ModelError, match=told):
        newer.state()


@pytest.mark.parametrize(
    ("code", "journal", "told"),
    [
        (sqlite3.SQLITE_BUSY, False, "another process is changing the index; try again when it has finished"),
        (sqlite3.SQLITE_LOCKED, False, "another process is changing the index; try again when it has finished"),
        (sqlite3.SQLITE_READONLY | 1 << 8, False, "cannot be opened or written (why); check permissions, or use a copy"),
        (sqlite3.SQLITE_CANTOPEN, False, "cannot be opened or written (why); check permissions, or use a copy"),
        (sqlite3.SQLITE_PERM, False, "cannot be opened or written (why); check permissions, or use a copy"),
        (
            sqlite3.SQLITE_READONLY,
            True,
            "a killed process left a change unfinished, which can only be undone if",
        ),
        (sqlite3.SQLITE_IOERR | 3 << 8, False, "cannot be read or written (why); check the disk, or use a copy"),
        (
            sqlite3.SQLITE_CORRUPT,
            True,
            "no database of an index, or damaged (why); restore it from a copy",
        ),
    ],
)
def test_what_an_error_of_the_database_means(tmp_path, code, journal, told):
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    if journal:
        (tmp_path / "a.sqlite-journal").touch()
    with pytest.raises(XsweError, match=re.escape(f"a.sqlite: {told}")):
        Sentences(tmp_path / "a.sqlite")._refuse(error)
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    with pytest.raises(OSError) as raised:
        Sentences(tmp_path / "a.sqlite")._refuse(error)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path / "a.sqlite"))
