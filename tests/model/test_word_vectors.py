"""Files of word vectors of other programs."""

from __future__ import annotations

import base64
import gzip
import struct
import zlib

import numpy as np
import pytest

from xswe.errors import InputError
from xswe.model.word_vectors import _FASTTEXT, read_vectors, write_binary

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


def test_words_with_blanks_doubles_and_bad_bytes(tmp_path, caplog):
    lines = text_lines(["the", ". . .", "the", "\u00a0x"])
    (tmp_path / "g.txt").write_bytes("\n".join(lines).encode() + b"\n\xff\xfe 1 2 3\n")
    with pytest.raises(InputError, match=r"g\.txt:5"):
        read_vectors(tmp_path / "g.txt")
    words, matrix = read_vectors(tmp_path / "g.txt", on_error="skip")
    assert words == ["the", ". . .", "\u00a0x"]
    np.testing.assert_array_equal(matrix, MATRIX[[0, 1, 3]])
    assert "; left out: 1 not UTF-8" in caplog.text


def test_compressed_and_limited(tmp_path):
    with gzip.open(tmp_path / "a.vec.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(["4 3", *text_lines()]))
    words, matrix = read_vectors(tmp_path / "a.vec.gz", limit=2)
    assert words == WORDS[:2]
    np.testing.assert_array_equal(matrix, MATRIX[:2])
    (tmp_path / "few.vec").write_text("9 1\na 1\nb 1\n")
    assert read_vectors(tmp_path / "few.vec", limit=2)[0] == ["a", "b"]


@pytest.mark.parametrize("newline", [b"\n", b""])  # word2vec writes one after each vector, gensim none
def test_word2vec_binary(tmp_path, newline):
    body = b"".join(w.encode() + b" " + row.astype("<f4").tobytes() + newline for w, row in zip(WORDS, MATRIX, strict=True))
    (tmp_path / "a.bin").write_bytes(b"4 3\n" + body)
    words, matrix = read_vectors(tmp_path / "a.bin")
    assert words == WORDS
    np.testing.assert_array_equal(matrix, MATRIX)
    (tmp_path / "short.bin").write_bytes((b"4 3\n" + body)[:-6])
    write_binary(tmp_path / "v.vectors", WORDS, MATRIX)
    assert read_vectors(tmp_path / "v.vectors", binary=True)[0] == WORDS
    with pytest.raises(InputError, match="ends after 3 of 4 vectors"):
        read_vectors(tmp_path / "short.bin")
    (tmp_path / "empty.bin").write_bytes(b"5 3\n " + bytes(12) + newline + body)  # a word without a letter is left out
    assert read_vectors(tmp_path / "empty.bin")[0] == WORDS


def test_many_words_in_blocks(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
    lines = (f"w{k} {a!r} {b!r}" for k, (a, b) in enumerate(matrix.tolist()))
    (tmp_path / "a.txt").write_text("\n".join(lines))
    words, found = read_vectors(tmp_path / "a.txt")
    assert (len(words), words[-1]) == (20_000, "w19999")
    np.testing.assert_array_equal(found, matrix)


# A model of fastText's own (0.9.2; 2 dimensions, n-grams of 2 and 3, 40 buckets), and what it says of its words.
FASTTEXT = zlib.decompress(
    base64.b85decode(
        "c-q?~=C9Agz`(!+#H>)vh(t3%u?Cc82I3ST)^(P7{m4wpo(0GTVG!V8htU6_ASE-EA%Y1iX`^3khu{U56eS*>pUR-a2o-qVvl_u+(1F"
        "r0<t}|!_7yjuuv;NGf8PoHi+g9sR@!ZhEw`;~oo5&Kz}|)d4fNa+G*?_NV1`bsDA?}2Cf{w2OT7wfvc-}sk*3v5COdbT&NXlBv$Ob6yk#"
        "r8dYCyd8m6BC2S7KEka|L(=hj4^{t0Fn?nm<<A^*Y!SkMA|_KQB7(}^wCA2N7s_I#<fK6O%Ucf;)|yL+9KZS;c8tpV6AZ{z"
    )
)
FASTTEXT_SAYS = {
    "die": [-0.05204913020133972, 0.04896852746605873],
    "</s>": [-0.3106815814971924, -0.10214191675186157],
    "Straße": [0.017381157726049423, 0.004318304359912872],
    "猫": [0.07743925601243973, 0.002927332418039441],
}


def test_fasttext_models_give_fasttexts_vectors(tmp_path):
    (tmp_path / "a.bin").write_bytes(FASTTEXT)
    words, matrix = read_vectors(tmp_path / "a.bin")
    assert words == list(FASTTEXT_SAYS)
    np.testing.assert_allclose(matrix, list(FASTTEXT_SAYS.values()), atol=1e-7)
    some, first = read_vectors(tmp_path / "a.bin", limit=2)
    assert some == words[:2]
    np.testing.assert_array_equal(first, matrix[:2])


@pytest.mark.parametrize("size", [3, 30, 80, 150, 200, len(FASTTEXT) - 60])
def test_a_fasttext_model_cut_short_is_named(tmp_path, size):
    (tmp_path / "a.bin").write_bytes(FASTTEXT[:size])
    with pytest.raises(InputError, match=r"a\.bin: "):
        read_vectors(tmp_path / "a.bin")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.vec", b"2 3\nthe 1 2 3\ncat 1 2\n", r"a\.vec:3: 2 values, expected 3"),
        ("a.txt", b"the 1 2 3\ncat 1 x 3\n", r"a\.txt:2: a value is no number"),
        ("a.txt", b"a 1 2\nb 1 nan\n", r"a\.txt:2: a value is not finite"),
        ("a.txt", b"", "no vector in it"),
        ("a.txt", b"2 3\n", "ends after 0 of the 2 vectors"),
        ("a.txt", b"5 2\na 1 2\n", r"a\.txt:2: ends after 1 of the 5 vectors"),
        ("a.bin", b"nothing\n", "does not begin with"),
        ("a.bin", b"2 0\n", "does not begin with"),
        ("a.bin", b"2 99999\na ", "ends after 0 of 2 vectors"),
        ("a.bin", b"1 1\na \x00\x00\xc0\x7f", "not finite"),
        ("a.bin", _FASTTEXT + struct.pack("<i", 12), "fastText model that ends too early"),
        ("a.bin.gz", gzip.compress(_FASTTEXT + b"...", mtime=0), "compressed fastText model"),
        ("b.txt", None, "no such file"),
    ],
)
def test_damage_is_named(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / name)


def fasttext_file(
    words, rows, *, shortest=2, longest=3, buckets=7, version=12, kind=1, labels=(), pruned=-1, quantised=False
):
    """The bytes of a fastText model: header, dictionary, and the rows of words and buckets."""
    arguments = (rows.shape[1], 5, 5, 1, 5, 1, 2, kind, buckets, shortest, longest, 100)
    out = struct.pack("<ii12id", 793_712_314, version, *arguments, 1e-4)
    out += struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 99, pruned)
    for of_kind, names in enumerate((words, labels)):
        out += b"".join(name.encode() + b"\0" + struct.pack("<qb", 9, of_kind) for name in names)
    out += b"\x07" * 8 * max(0, pruned) + struct.pack("<?qq", quantised, *rows.shape)
    return out + rows.astype("<f4").tobytes()


def naive_rows(word, words, shortest, longest, buckets):
    """The rows of a word and of its character n-grams, marked at both ends (Bojanowski et al. 2017)."""
    found, marked = [words.index(word)], f"<{word}>"
    for start in range(len(marked)) if word != "</s>" else ():
        for n in range(shortest, longest + 1):
            gram = marked[start : start + n]
            if len(gram) < n or (n == 1 and (start == 0 or start + 1 == len(marked))):
                continue
            h = 2_166_136_261
            for byte in gram.encode():
                h = ((h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16_777_619) % 2**32
            found.append(len(words) + h % buckets)
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shortest": 1, "longest": 2, "buckets": 3},
        {"shortest": 3, "longest": 6},
        {"longest": 0},
        {"labels": ("__label__a",), "kind": 3},
        {"labels": ("__label__a",), "kind": 3, "version": 11},
        {"version": 11},
        {"pruned": 0},
        {"pruned": 2},
    ],
)
def test_rows_of_a_fasttext_model_are_means_over_its_n_grams(tmp_path, settings):
    words, buckets = ["the", "</s>", "Straße", "猫", "a"], settings.get("buckets", 7)
    rows = np.random.default_rng(0).normal(size=(5 + buckets, 3)).astype(np.float32)
    (tmp_path / "a.bin").write_bytes(fasttext_file(words, rows, **settings))
    found, matrix = read_vectors(tmp_path / "a.bin")
    assert found == words
    shortest, longest = settings.get("shortest", 2), settings.get("longest", 3)
    without = settings.get("pruned") == 0 or (settings.get("version") == 11 and settings.get("kind") == 3)
    own = [naive_rows(word, words, shortest, 0 if without else longest, buckets) for word in words]
    np.testing.assert_allclose(matrix, [rows[one].mean(0) for one in own], rtol=1e-5, atol=1e-6)
    for limit in (1, 5, 6):
        assert read_vectors(tmp_path / "a.bin", limit=limit)[0] == words[:limit]


def test_a_fasttext_model_that_lacks_rows_or_is_quantised_is_named(tmp_path):
    words, rows = ["a", "b"], np.ones((9, 3), np.float32)
    whole, path = fasttext_file(words, rows), tmp_path / "a.bin"

    def said(content):
        path.write_bytes(content)
        with pytest.raises(InputError) as found:
            read_vectors(path)
        return str(found.value)

    lost = f"{path}: a fastText model without its 9 rows of 3 numbers; fetch the file again"
    assert said(whole[:-1]) == lost
    assert said(fasttext_file(words, rows[:1])) == lost.replace("its 9", "its 1")
    assert said(whole[:8] + struct.pack("<i", 4) + whole[12:]) == lost.replace("of 3", "of 4")
    early = f"{path}: a fastText model that ends too early; fetch the file again"
    for size in (8, 55, 80, 92, 105, len(whole) - rows.nbytes - 1):
        assert said(whole[:size]) == early
    told = f"{path}: a quantised fastText model; give the model it was made from, or its .vec file"
    assert said(fasttext_file(words, rows, quantised=True)) == told
    path.write_bytes(fasttext_file(words, rows[:2], longest=0))  # as many rows as words
    assert read_vectors(path)[0] == words


def test_the_first_line_of_a_binary_file_is_two_numbers(tmp_path):
    path = tmp_path / "a.bin"
    for line in (b"2\n", b"2 3 4\n", b"x 3\n", b"2 x\n", b"2 0\n", b"\n"):
        path.write_bytes(line + b"a " + bytes(12) + b"b " + bytes(12))
        with pytest.raises(InputError) as found:
            read_vectors(path)
        told = "does not begin with two numbers; give a binary file of word2vec's format, or format=text"
        assert str(found.value) == f"{path}: {told}"
    path.write_bytes(b"2 3\na " + bytes(12) + b"b " + bytes(12))
    assert read_vectors(path)[0] == ["a", "b"]


def test_vectors_longer_than_what_is_read_at_a_time(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(3, 700_000)).astype(np.float32)
    write_binary(tmp_path / "a.bin", ["a", "bb", "ccc"], matrix)
    words, found = read_vectors(tmp_path / "a.bin")
    assert words == ["a", "bb", "ccc"]
    np.testing.assert_array_equal(found, matrix)


def test_a_text_ends_no_word_too_early(tmp_path):
    path = tmp_path / "a.vec"
    for count, promised in ((1, 2), (2, 3), (0, 1)):
        path.write_text(f"{promised} 2\n" + "".join(f"w{k} 1 2\n" for k in range(count)))
        with pytest.raises(InputError) as found:
            read_vectors(path)
        told = f"ends after {count} of the {promised} vectors that its first line promises"
        assert str(found.value) == f"{path}:{count + 1}: {told}; fetch it again, or correct that line"
    path.write_text("2 2\nw 1 2\nv 3 4\n")
    assert read_vectors(path)[0] == ["w", "v"]
    path.write_text("7 8\n")  # two numbers in the first line are a header
    with pytest.raises(InputError, match="ends after 0 of the 7"):
        read_vectors(path)
    path.write_text("7 8\n9 1\n")
    with pytest.raises(InputError) as found:
        read_vectors(path)
    assert str(found.value) == f"{path}:2: 1 values, expected 8; mend or remove the line"
