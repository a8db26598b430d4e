from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from xswe.errors import InputError
from xswe.evaluation.vectors import FASTTEXT_MAGIC, read_vectors

WORDS = ["the", "cat", "Straße", "猫"]
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


def text_lines(words=WORDS):
    return [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, MATRIX, strict=True)]


@pytest.mark.parametrize("header", ["4 3\n", ""])
@pytest.mark.parametrize("end", ["\n", " \n"])  # fastText's lines end in a blank
def test_text_with_and_without_a_header(tmp_path, header, end):
    (tmp_path / "a.vec").write_text(header + "".join(line + end for line in text_lines()), encoding="utf-8")
    words, matrix = read_vectors(tmp_path / "a.vec")
    assert words == WORDS
    np.testing.assert_array_equal(matrix, MATRIX)
    assert matrix.dtype == np.float32


def test_words_with_blanks_doubles_and_bad_bytes(tmp_path):
    lines = text_lines(["the", ". . .", "the", "\u00a0x"])
    (tmp_path / "g.txt").write_bytes("\n".join(lines).encode() + b"\n\xff\xfe 1 2 3\n")
    words, matrix = read_vectors(tmp_path / "g.txt")
    assert words == ["the", ". . .", "\u00a0x"]
    np.testing.assert_array_equal(matrix, MATRIX[[0, 1, 3]])


def test_compressed_and_limited(tmp_path):
    with gzip.open(tmp_path / "a.vec.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(["4 3", *text_lines()]))
    words, matrix = read_vectors(tmp_path / "a.vec.gz", limit=2)
    assert words == WORDS[:2]
    np.testing.assert_array_equal(matrix, MATRIX[:2])


@pytest.mark.parametrize("newline", [b"\n", b""])  # word2vec writes one after each vector, gensim none
def test_word2vec_binary(tmp_path, newline):
    body = b"".join(w.encode() + b" " + row.astype("<f4").tobytes() + newline for w, row in zip(WORDS, MATRIX, strict=True))
    (tmp_path / "a.bin").write_bytes(b"4 3\n" + body)
    words, matrix = read_vectors(tmp_path / "a.bin")
    assert words == WORDS
    np.testing.assert_array_equal(matrix, MATRIX)
    (tmp_path / "short.bin").write_bytes((b"4 3\n" + body)[:-6])
    with pytest.raises(InputError, match="ends after 3 of 4 words"):
        read_vectors(tmp_path / "short.bin")


def test_many_words_in_blocks(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
    lines = (f"w{k} {a!r} {b!r}" for k, (a, b) in enumerate(matrix.tolist()))
    (tmp_path / "a.txt").write_text("\n".join(lines))
    words, found = read_vectors(tmp_path / "a.txt")
    assert (len(words), words[-1]) == (20_000, "w19999")
    np.testing.assert_array_equal(found, matrix)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.vec", b"2 3\nthe 1 2 3\ncat 1 2\n", r"a\.vec:3: 2 numbers where 3"),
        ("a.txt", b"the 1 2 3\ncat 1 x 3\n", r"a\.txt:2: a column is no number"),
        ("a.txt", b"", "holds no word vector"),
        ("a.bin", b"nothing\n", "does not start with"),
        ("a.bin", FASTTEXT_MAGIC + struct.pack("<i", 12), "fastText model"),
        ("b.txt", None, "no such file"),
    ],
)
def test_damage_is_named(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / name)
