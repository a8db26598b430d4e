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


@pytest.mark.parametrize(
    ("mark", "end", "separator", "name"),
    [("", "\n", ",", "en"), ("\ufeff", "\r\n", ";", "en"), ("", "\n", "\t", '"en, of the author"')],
)
def test_a_spreadsheets_separator_and_line_end_stay_as_they_are(tmp_path, mark, end, separator, name):
    """Where the comma is written in numbers, spreadsheets put semicolons between columns."""
    row = ["1", f'"a{separator}b, ""c"""', "d", ""]
    raw = mark + end.join(separator.join(line) for line in (["n", name, "de", "note"], row, row)) + end
    (tmp_path / "a.csv").write_bytes(raw.encode())
    file = RecordFile((str(tmp_path / "a.csv"),), (name.strip('"'), "de"))
    read, (before, after) = list(file.read()), file.frame()
    assert [record.texts for record in read] == [(f'a{separator}b, "c"', "d")] * 2
    assert before + b"".join(record.raw + record.end for record in read) + after == raw.encode()
    scored = tmp_path / "b.csv"
    scored.write_bytes(file.frame(scored=True)[0] + b"".join(file.scored(record, 0.5) + record.end for record in read))
    again = RecordFile((str(scored),), ("score", 2))
    assert [record.texts for record in again.read()] == [("0.500000", "d")] * 2
