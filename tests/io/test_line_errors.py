"""Lines that cannot be read: where they are, what is said of them, and what is skipped."""

from __future__ import annotations

import io

import numpy as np
import pytest

from xswe.errors import InputError
from xswe.io import lines as module
from xswe.io.lines import (
    Skipped,
    check_lines,
    decode_line,
    has_returns_alone,
    not_utf8,
    nul_byte,
    read_lines,
    read_whole,
    too_few_columns,
    unequal_sides,
)
from xswe.io.ragged import header_of, rows_in_header


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"a\n", "a"), (b"a\r\n", "a"), (b"a", "a"), (b"a\r", "a"), (b"a\n\n", "a\n"), (b"\n", ""), (b"\xc3\xa9", "é")],
)
def test_a_line_is_decoded_without_its_end(raw, text):
    assert decode_line(raw, "a.txt", 3, "raise", Skipped()) == text


@pytest.mark.parametrize(
    ("raw", "reason", "message"),
    [
        (b"ab\xff\n", "not UTF-8", r"a.txt:3: not UTF-8 \(byte 0xff at column 3\)"),
        (b"a\0b\n", "NUL byte", "a.txt:3: a NUL byte"),
        (b"12345\n", "line too long", "a.txt:3: a line of over"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_or_counted(monkeypatch, raw, reason, message):
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 4)
    skipped = Skipped()
    with pytest.raises(InputError, match=message):
        decode_line(raw, "a.txt", 3, "raise", skipped)
    assert decode_line(raw, "a.txt", 3, "skip", skipped) is None
    assert skipped.counts == {reason: 1}
    assert decode_line(b"1234\r\n", "a.txt", 3, "raise", skipped) == "1234"  # the end does not count


def test_the_line_of_a_nul_byte():
    for data, line in ((b"\0", 7), (b"\n\0", 8), (b"a\nb\0\n\0", 8)):
        assert str(nul_byte("a", 7, data)).startswith(f"a:{line}: a NUL byte")


def test_an_empty_file_is_warned_of_once(tmp_path, caplog):
    for name, data in (("empty.txt", b""), ("full.txt", b"\n")):
        (tmp_path / name).write_bytes(data)
        for _ in range(2):
            assert len(list(read_lines(tmp_path / name))) == len(data)
    assert caplog.messages == [f"{tmp_path}/empty.txt: it is empty"]


def test_the_line_and_column_of_a_byte():
    data = b"ab\ncd\n\xffe"
    assert "a:9: not UTF-8 (byte 0xff at column 1)" in str(not_utf8("a", 7, data, 6))
    assert "a:7: not UTF-8 (byte 0x62 at column 2)" in str(not_utf8("a", 7, data, 1))
    for mark in (b"\xff\xfe", b"\xfe\xff"):
        assert "UTF-16, not UTF-8" in str(not_utf8("a", 1, mark + b"a\0", 0))
        assert "byte 0xf" in str(not_utf8("a", 2, mark + b"a\0", 0))  # in the middle it is none
        assert "byte 0xf" in str(not_utf8("a", 1, b"a\n" + mark, 2))
    assert str(nul_byte("a", 5, b"x\ny\0z\0")).startswith("a:6: a NUL byte")
    assert "ends before line 7, where b goes on" in str(unequal_sides("a", "b", 7))
    assert "a:3: 2 tab-separated columns where columns (0, 4) need 5" in str(too_few_columns("a", 2, (0, 4), 3))


def test_lines_end_in_line_feeds_only(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\u2028b\r\nc\rd\n\ne".encode())
    assert list(read_lines(path)) == [(1, "a\u2028b"), (2, "c\rd"), (3, ""), (4, "e")]
    path.write_bytes(b"a\n\xff\nc\n\0\n")
    skipped = Skipped()
    assert list(read_lines(path, on_error="skip", skipped=skipped)) == [(1, "a"), (2, None), (3, "c"), (4, None)]
    assert skipped.counts == {"not UTF-8": 1, "NUL byte": 1}
    assert list(read_lines(path, on_error="skip"))[1] == (2, None)
    with pytest.raises(InputError, match=r"a\.txt:2: not UTF-8"):
        list(read_lines(path))
    path.write_bytes(b"a\rb\rc")
    with pytest.raises(InputError, match="its lines end in CR alone"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("first", "alone"),
    [(b"a\rb", True), (b"a\rb\n", False), (b"a\r", False), (b"a\r\r", False), (b"", False), (b"a\rb\r", True)],
)
def test_lone_returns_are_those_inside_a_line(first, alone):
    assert has_returns_alone(first) == alone


def test_a_stream_is_read_whole_if_it_fits(monkeypatch):
    monkeypatch.setattr(module, "_MAX_WHOLE_BYTES", 1 << 20)
    assert len(read_whole(io.BytesIO(bytes(1 << 20)), "a", "a page")) == 1 << 20
    with pytest.raises(InputError, match="a: a page of over 1 MiB"):
        read_whole(io.BytesIO(bytes((1 << 20) + 1)), "a", "a page")


def test_tables_are_no_lines():
    check_lines("a.txt")
    check_lines("a.gz")
    with pytest.raises(InputError, match=r"a \.xlsx file has no text line by line"):
        check_lines("a.xlsx")


def test_the_header_of_an_array_says_its_rows(tmp_path):
    path, kind = tmp_path / "a.npy", np.dtype(np.float32)
    for shape, row in (((7, 3), (3,)), ((0, 3), (3,)), ((10**9,), ())):
        path.write_bytes(header_of(kind, shape))
        assert rows_in_header(path, kind, row) == shape[0]
    wrong = ((np.float32, (7, 4)), (np.float64, (7, 3)), (np.float32, (7,)), (np.float32, ()), (np.float32, (7, 3, 1)))
    for other, shape in wrong:
        path.write_bytes(header_of(np.dtype(other), shape))
        with pytest.raises(ValueError, match="its header says"):
            rows_in_header(path, kind, (3,))
    np.save(path, np.zeros((7, 3), np.float32, order="F"))
    with pytest.raises(ValueError, match="its header says"):
        rows_in_header(path, kind, (3,))
    for damage in (b"", b"nothing", header_of(kind, (7, 3))[:60]):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match="its header is damaged"):
            rows_in_header(path, kind, (3,))
