from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.bitext.rows import stripped
from xswe.bitext.source import Source, read_pairs
from xswe.errors import InputError
from xswe.io import lines as module
from xswe.io.lines import Skipped, read_blocks, read_lines
from xswe.io.ragged import Texts


def lines_of(path, **settings):
    return [text for block in read_blocks(path, **settings) for text in block]


raw_text = st.lists(st.sampled_from(["a", "語", "\n", "\r\n", "\r", "\u2028", "\ufeff", "", " ", "x" * 40]), max_size=40)


@settings(max_examples=25)
@given(parts=raw_text, lines=st.integers(1, 5), chunk=st.integers(1, 9))
def test_lines_are_those_of_read_lines_whatever_the_chunks(tmp_path_factory, parts, lines, chunk):
    path = tmp_path_factory.getbasetemp() / "blocks.txt"
    text = "".join(parts)
    path.write_text(text if "\n" in text else text.replace("\r", ""), "utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        found = [list(block) for block in read_blocks(path, lines)]
    expected = [text for _, text in read_lines(path)]
    assert [text for block in found for text in block] == expected
    assert [len(block) for block in found] == [min(lines, len(expected) - k) for k in range(0, len(expected), lines)]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_compressed_files_and_their_damage(tmp_path, suffix):
    zstandard = pytest.importorskip("zstandard")
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}[suffix]
    lines = [f"line {k} 猫" for k in range(5000)]
    packed = pack("\n".join(lines).encode())
    (tmp_path / f"a{suffix}").write_bytes(packed)
    assert lines_of(tmp_path / f"a{suffix}") == lines
    (tmp_path / f"b{suffix}").write_bytes(packed[:-20])
    with pytest.raises(InputError, match=r"truncated or damaged.*fetch it again"):
        lines_of(tmp_path / f"b{suffix}")


@pytest.mark.parametrize("read", [read_lines, lambda path, **how: read_pairs(Source((path,)), **how)])
def test_what_comes_before_the_damage_of_an_archive_is_kept(tmp_path, read):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 5000)[:-9])
    skipped = Skipped()
    assert len(list(read(tmp_path / "a.tsv.gz", on_error="skip", skipped=skipped))) == 5000
    assert skipped.counts == {"damaged archive": 1}


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO("a\n猫\n".encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert lines_of("-") == ["a", "猫"]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("size", [3, 300_000])  # more than the bytes of the longest line, too
def test_lines_that_end_in_cr_alone_are_refused(tmp_path, name, size):
    """By every reader, and not skipped: all of the file would be one line."""

    def records(*names):
        return Source(tuple(str(tmp_path / one) for one in names), on_error="skip").read()

    raw = b"a\tb\r" * size
    (tmp_path / name).write_bytes(gzip.compress(raw, 1) if name.endswith(".gz") else raw)
    (tmp_path / "b.tsv").write_bytes(b"a\tb\n" * size)
    (tmp_path / "c.tsv").write_bytes(b"a\tb\r")  # a line feed may be missing at the end
    path = tmp_path / name
    for read in (
        lambda: lines_of(path),
        lambda: read_lines(path, on_error="skip"),
        lambda: records(name),
        lambda: records("b.tsv", name),
        lambda: read_pairs(Source((path,)), on_error="skip"),
        lambda: read_pairs(Source((tmp_path / "b.tsv", path)), on_error="skip"),
    ):
        with pytest.raises(InputError, match=rf"{name}: its lines end in CR alone; convert them with  tr"):
            deque(read(), 0)
    assert [record.texts for record in records("c.tsv")] == [("a", "b")]
    assert lines_of(tmp_path / "c.tsv") == [text for _, text in read_lines(tmp_path / "c.tsv")]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes("fein\n猫\nna".encode() + b"\xefve\nb\n")
    with pytest.raises(InputError, match=r"a\.txt:3: not UTF-8 \(byte 0xef at column 3\); convert"):
        lines_of(tmp_path / "a.txt")
    for order in ("utf-16-le", "utf-16-be"):
        (tmp_path / "a.txt").write_bytes("\ufeffna\r\nja\r\n".encode(order))
        for read in (lines_of, lambda path: list(read_lines(path))):
            with pytest.raises(InputError, match=r"a\.txt: UTF-16, not UTF-8; convert the file with  iconv -f UTF-16"):
                read(tmp_path / "a.txt")
        (tmp_path / "a.txt").write_bytes("na\nja\n".encode(order))
        for read in (lines_of, lambda path: list(read_lines(path))):
            with pytest.raises(InputError, match=r"a\.txt:1: a NUL byte \(UTF-16 text, or no text at all\); convert"):
                read(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (
            b"PK\x03\x04\x14\0",
            r"a zip archive, as \.xlsx, \.docx and \.odt files are; save it as UTF-8 text",
        ),
        (b"ARROW1\0\0\x10", r"Arrow; write it as \.parquet"),
        (b"\xff\xff\xff\xff\x10", r"a stream of Arrow, as datasets saves; write it as \.parquet"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF; save it as UTF-8 text"),
        (b"{\\rtf1\\ansi Hello}\n", "RTF; save it as UTF-8 text"),
        (gzip.compress(b"a\n", mtime=0), r"packed by gzip; unpack it, or let its name end in \.gz"),
        (bz2.compress(b"a\n"), r"packed by bzip2; unpack it, or let its name end in \.bz2"),
        (lzma.compress(b"a\n"), r"packed by xz; unpack it, or let its name end in \.xz"),
    ],
)
def test_what_is_no_text_is_named_by_its_first_bytes(tmp_path, monkeypatch, raw, found):
    (tmp_path / "a.txt").write_bytes(raw)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw))))
    for path in (str(tmp_path / "a.txt"), "-"):
        with pytest.raises(InputError, match=f"{path}: {found}"):
            lines_of(path)


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_many_bytes_is_refused_and_many_long_ones_are_cut_into_blocks(tmp_path, end):
    (tmp_path / "a.txt").write_bytes(b"a\n" + b"x" * ((1 << 20) + 1) + end)
    with pytest.raises(InputError, match=r"a\.txt:2: a line of over 1 MiB"):
        lines_of(tmp_path / "a.txt")
    (tmp_path / "c.txt").write_bytes(b"\xff\n" + b"x" * ((1 << 20) + 1) + end)
    with pytest.raises(InputError, match=r"c\.txt:1: not UTF-8"):
        lines_of(tmp_path / "c.txt")
    (tmp_path / "b.txt").write_bytes((b"y" * (1 << 20) + b"\n") * 9)
    assert [len(block) for block in read_blocks(tmp_path / "b.txt")] == [4, 4, 1]


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        lines_of(tmp_path / "none.txt")


def test_blanks_are_those_of_python_whatever_characters_are_beside_them():
    texts = [f"{chr(code)}a{chr(code)}" for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    assert list(stripped(Texts.of(texts))) == [text.strip() for text in texts]
