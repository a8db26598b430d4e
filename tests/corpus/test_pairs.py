from __future__ import annotations

import bz2
import gzip
import lzma
from functools import partial
from itertools import chain

import numpy as np
import pytest

from tests.corpus.loading import load_bitext, split
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.corpus.bitext import CorpusConfig, corpus_files
from xswe.errors import ConfigError, InputError
from xswe.io.lines import MAX_LINE_BYTES, Skipped, read_blocks, read_lines

EN_JA = ("en", "ja")
TEXT = "a cat\t猫\nb\u2028c\tい\r\n  \nd\tう\textra\n"
PAIRS = [("a cat", "猫"), ("b\u2028c", "い"), ("", ""), ("d", "う")]


def write(path, text=TEXT):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    if path.suffix == ".zst":
        zstandard = pytest.importorskip("zstandard")
        data = zstandard.ZstdCompressor().compress(data[: len(data) // 2]) + zstandard.ZstdCompressor().compress(
            data[len(data) // 2 :]
        )
    pack = {".gz": gzip.compress, ".xz": partial(lzma.compress, preset=0), ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return path


def read(path, **options):
    return [pair for file in find_pairs([path], EN_JA) for pair in read_pairs(file, **options)]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.xz", "a.tsv.bz2", "a.tsv.zst"])
def test_tab_separated_plain_or_packed(tmp_path, name):
    assert read(write(tmp_path / name)) == PAIRS


def test_byte_order_mark_is_dropped(tmp_path):
    assert read(write(tmp_path / "a.tsv", b"\xef\xbb\xbfa\tb\n")) == [("a", "b")]


@pytest.mark.parametrize("end", ["", ".gz"])
def test_moses_sides_find_each_other(tmp_path, end):
    write(tmp_path / f"news.v1.en{end}", "a\nb\n")
    write(tmp_path / "news.v1.ja", "あ\nい\n")
    expected = [("a", "あ"), ("b", "い")]
    assert read(tmp_path / f"news.v1.en{end}") == expected
    assert read(tmp_path / "news.v1.ja") == expected
    assert read(tmp_path) == expected  # a folder: the two sides are one bitext


def test_moses_side_without_its_partner(tmp_path):
    with pytest.raises(ConfigError, match=r"news\.ja.*not beside"):
        read(write(tmp_path / "news.en", "a\n"))


@pytest.mark.parametrize("columns", [[0], [-1, 1], [0, True], "01", [0, 1, -2]])
def test_columns_are_two_numbers(tmp_path, columns):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(ConfigError, match=r"name two columns counted from 0"):
        find_pairs([{"path": str(path), "columns": columns}], EN_JA)
    with pytest.raises(ConfigError, match=r"name two columns counted from 0"):
        CorpusConfig(paths=[str(path)], columns=columns)


def test_columns_by_path(tmp_path):
    path = write(tmp_path / "jpara.txt", "url\tx\t0.9\tHello\tやあ\n")
    files = find_pairs([{"path": str(path), "columns": [3, 4]}], EN_JA)
    assert list(read_pairs(files[0])) == [("Hello", "やあ")]


def test_patterns_and_folders_are_sorted_and_read_once(tmp_path):
    write(tmp_path / "b.tsv", "b\tB\n")
    write(tmp_path / "a.tsv", "a\tA\n")
    assert [f.files[0].name for f in find_pairs([tmp_path / "*.tsv", tmp_path], EN_JA)] == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a\tb\nc\xff\td\n", 2, "not UTF-8"),
        ("a\tb\nno column\n", 2, "tab-separated"),
        (b"a\tb\n" + b"x" * (MAX_LINE_BYTES + 9) + b"\nc\td\n", 2, "MiB"),
    ],
)
def test_damaged_lines_name_file_and_line_or_are_skipped_and_counted(tmp_path, content, line, message):
    path = write(tmp_path / "bad.tsv", content)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert caught.value.line == line
    assert f"bad.tsv:{line}:" in str(caught.value)
    skipped = Skipped()
    assert ("a", "b") in read(path, on_error="skip", skipped=skipped)
    assert sum(skipped.counts.values()) == 1


@pytest.mark.parametrize("name", ["cut.tsv.gz", "cut.tsv.xz", "cut.tsv.bz2", "cut.tsv.zst"])
def test_truncated_archives(tmp_path, name):
    rng = np.random.default_rng(0)
    lines = "".join(f"a{a}\tb{b}\n" for a, b in rng.integers(0, 1 << 40, (20_000, 2)))
    path = write(tmp_path / name, lines)
    path.write_bytes(path.read_bytes()[: -len(path.read_bytes()) // 3])
    with pytest.raises(InputError, match="truncated or damaged"):
        read(path)
    skipped = Skipped()
    some = read(path, on_error="skip", skipped=skipped)
    assert skipped.counts == {"damaged archive": 1}
    assert len(some) < 20_000


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv.xz", "a.tsv.bz2", "a.tsv.zst"])
def test_archives_damaged_within(tmp_path, name):
    """By both readers: one tells damage to training, the other to whatever reads line by line."""
    rng = np.random.default_rng(0)
    path = write(tmp_path / name, "".join(f"a{a}\tb{b}\n" for a, b in rng.integers(0, 1 << 40, (20_000, 2))))
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"truncated or damaged|tab-separated|not UTF-8|NUL"):
        read(path)
    with pytest.raises(InputError, match=r"truncated or damaged|tab-separated|not UTF-8|NUL"):  # noise may come first
        [job() for job in Source((path,)).jobs()]
    with pytest.raises(InputError, match="truncated or damaged"):
        list(read_blocks(path))
    skipped = [job().skipped for job in Source((path,), on_error="skip").jobs()]
    assert sum(counts.get("damaged archive", 0) for counts in skipped) == 1


def test_unequal_sides(tmp_path):
    write(tmp_path / "m.en", "a\nb\n")
    write(tmp_path / "m.ja", "あ\n")
    with pytest.raises(InputError, match=r"m\.ja:2: ends before line 2"):
        read(tmp_path / "m.en")
    assert read(tmp_path / "m.en", on_error="skip") == [("a", "あ")]


def test_a_skipped_line_keeps_the_sides_aligned(tmp_path):
    write(tmp_path / "m.en", b"a\n\xff\nc\n")
    write(tmp_path / "m.ja", "A\nB\nC\n")
    assert read(tmp_path / "m.en", on_error="skip") == [("a", "A"), ("c", "C")]


def test_missing_file_and_empty_list(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_lines(tmp_path / "none.tsv"))
    with pytest.raises(ConfigError, match=r"corpus\.paths"):
        find_pairs([], EN_JA)
    with pytest.raises(InputError, match=r"not on this machine, .*fetch it first"):
        find_pairs(["s3://bucket/a.tsv"], EN_JA)
    with pytest.raises(InputError, match="no file there"):
        find_pairs([str(tmp_path / "*.tsv")], EN_JA)


def test_cleaning_counts_what_it_drops(tmp_path):
    long = "x" * 60
    path = write(tmp_path / "c.tsv", f"a\tA\n\tB\na\tA\n{long}\tC\na\tZ\nb\tB\n")
    bitext, report = load_bitext(find_pairs([path], EN_JA), EN_JA, CorpusConfig(max_characters=50))
    assert list(zip(bitext.source, bitext.target, strict=True)) == [("a", "A"), ("a", "Z"), ("b", "B")]
    assert (report.read, report.kept) == (6, 3)
    assert report.dropped == {"blank": 1, "duplicate": 1, "too long": 1}
    assert list(report.checksums) == [str(path)]


def test_files_of_one_name_keep_a_checksum_each(tmp_path):
    paths = [tmp_path / folder / "train.tsv" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        write(path, f"{path.parent.name}\tA\n")
    _, report = load_bitext(find_pairs(paths, EN_JA), EN_JA, CorpusConfig())
    assert list(report.checksums) == [str(path) for path in paths]


def bitext_of(tmp_path, n):
    path = write(tmp_path / "n.tsv", "".join(f"s{i}\tt{i}\n" for i in range(n)))
    return load_bitext(find_pairs([path], EN_JA), EN_JA, CorpusConfig())[0]


def test_split_is_random_seeded_disjoint_and_complete(tmp_path):
    bitext = bitext_of(tmp_path, 400)
    config = CorpusConfig(held_out=0.1, development=0.05)
    parts = split(bitext, config, seed=3)
    sides = [list(part.source) for part in (parts.train, parts.development, parts.held_out)]
    assert [len(side) for side in sides] == [340, 20, 40]
    assert sorted(chain(*sides)) == sorted(bitext.source)
    assert sides[2] != list(bitext.source)[-40:]  # neither end of the file
    assert list(split(bitext, config, seed=3).held_out.source) == sides[2]
    assert list(split(bitext, config, seed=4).held_out.source) != sides[2]


def test_a_held_out_text_is_never_trained_on(tmp_path):
    path = write(tmp_path / "d.tsv", "".join(f"s{i % 20}\tt{i}\n" for i in range(200)))
    bitext, _ = load_bitext(find_pairs([path], EN_JA), EN_JA, CorpusConfig())
    parts = split(bitext, CorpusConfig(held_out=0.02, development=0.0), seed=0)
    assert len(parts.held_out) == 4
    assert not set(parts.held_out.source) & set(parts.train.source)


def test_tiny_bitexts_do_not_empty_the_training_part(tmp_path):
    # The reference takes the last 10,000 lines for development whatever the corpus, and trains on nothing.
    parts = split(bitext_of(tmp_path, 12), CorpusConfig(held_out=0.1, development=0.1), seed=0)
    assert len(parts.train) == 10


def test_several_pairs_need_a_mapping(tmp_path):
    path = str(write(tmp_path / "a.tsv"))
    pairs = [("en", "de"), ("en", "ja")]
    with pytest.raises(ConfigError, match=r"corpus\.paths=\{en-de"):
        corpus_files(CorpusConfig(paths=[path]), pairs)
    with pytest.raises(ConfigError, match="no entry for en-ja"):
        corpus_files(CorpusConfig(paths={"en-de": [path]}), pairs)
    assert list(corpus_files(CorpusConfig(paths={"en-de": [path], "en-ja": path}), pairs)) == pairs


@pytest.mark.parametrize("wrong", [{"on_error": "ignore"}, {"held_out": 1.5}, {"held_out": 0.5, "development": 0.5}])
def test_settings_that_cannot_work(wrong):
    with pytest.raises(ConfigError):
        CorpusConfig(**wrong)
