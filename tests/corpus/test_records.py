"""Bitext read record by record: what stays as it stands, and what is refused."""

from __future__ import annotations

import pytest

from xswe.corpus import records
from xswe.corpus.records import RecordFile
from xswe.errors import InputError


def test_the_longest_line_is_read_and_a_longer_one_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 8)
    for last in ("", "\n"):
        (tmp_path / "a.tsv").write_text(f"abc\tdefg{last}", encoding="utf-8")
        (record,) = RecordFile((str(tmp_path / "a.tsv"),)).read()
        assert record == (b"abc\tdefg", last.encode(), ("abc", "defg"))
    (tmp_path / "a.tsv").write_text("x\ty\nabc\tdefgh", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tsv:2: a line of over"):
        list(RecordFile((str(tmp_path / "a.tsv"),)).read())


def test_a_block_has_as_many_records_as_are_asked_for(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n" * 5, encoding="utf-8")
    file = RecordFile((str(tmp_path / "a.tsv"),))
    assert [len(block) for block in file.raw_blocks(2)] == [2, 2, 1]
    assert [len(block.damaged) for block in file.blocks(2)] == [2, 2, 1]
    assert [len(block.damaged) for block in file.blocks(2, window=4)] == [1] * 5  # a line is four bytes
