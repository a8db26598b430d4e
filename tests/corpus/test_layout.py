"""Columns that are no text: refused, with the cure; clean bitext never is."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bitext.test_blocks import fast
from tests.corpus.loading import load_bitext
from xswe.bitext.checks import CHECKED, check_columns_are_text
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.corpus.bitext import CorpusConfig, corpus_files
from xswe.corpus.cards import corpus_sources
from xswe.errors import InputError

EN_JA = ("en", "ja")
N = 40


def ccmatrix(path, n=N):
    rows = "".join(f"{1.3 - i / 9000:.7f}\tSentence {i}.\t文{i}。\n" for i in range(n))
    path.write_bytes(gzip.compress(rows.encode()) if path.suffix == ".gz" else rows.encode())
    return path


def jparacrawl(path, n=N, bad=()):
    """Version 3's layout, with bytes that are not UTF-8 in some lines."""
    rows = [f"www.site{i}.jp\tsite{i}.co.jp\t0.{500 + i}\tSentence {i}.\t文{i}。\n".encode() for i in range(n)]
    for row in bad:
        rows[row] = rows[row].replace(b"Sentence", b"Sent\xff\xfeence")
    path.write_bytes(b"".join(rows))
    return path


def refusal(path, columns=(0, 1)):
    with pytest.raises(InputError) as caught:
        fast(find_pairs([str(path)], EN_JA, columns)[0])
    return str(caught.value)


@pytest.mark.parametrize("n", [N, CHECKED + 500])
def test_the_original_ccmatrix_without_columns_is_refused(tmp_path, n):
    path = ccmatrix(tmp_path / "en-ja.bitextf.tsv.gz", n)
    message, shown = refusal(path), min(n, CHECKED)
    assert message.startswith(f"{path}:1: column 0 (counted from 0), read as English text, is a number in {shown} of")
    assert "corpus.paths=[{path: en-ja.bitextf.tsv.gz, columns: [1, 2], score: 0}]" in message
    (file,) = find_pairs([{"path": str(path), "columns": [1, 2], "score": 0}], EN_JA)
    assert fast(file)[0][:2] == [("Sentence 0.", "文0。"), ("Sentence 1.", "文1。")]


@pytest.mark.parametrize(
    ("columns", "kind"), [((0, 1), "column 0 .* web address"), ((3, 2), "column 2 .* Japanese .* number"), ((1, 4), "web")]
)
def test_jparacrawl_by_wrong_columns_is_refused(tmp_path, columns, kind):
    path = jparacrawl(tmp_path / "en-ja.bicleaner05.txt")
    message = refusal(path, columns)
    assert re.search(kind, message)
    assert "columns: [3, 4], score: 2}" in message


def test_the_second_version_of_jparacrawl_too(tmp_path):
    rows = "".join(f"site{i}.jp\t0.{500 + i}\tSentence {i}.\t文{i}。\n" for i in range(N))
    (tmp_path / "en-ja.bicleaner05.txt").write_text(rows, encoding="utf-8")
    assert "columns: [2, 3], score: 1}" in refusal(tmp_path / "en-ja.bicleaner05.txt")


def test_line_aligned_files_and_records_too(tmp_path):
    (tmp_path / "a.en").write_text("".join(f"1.{i}\n" for i in range(N)))
    (tmp_path / "a.ja").write_text("".join(f"文{i}。\n" for i in range(N)), encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.en and .*a\.ja:1: its English side is a number in 40 of the first 40"):
        fast(find_pairs([str(tmp_path / "a.en")], EN_JA)[0])
    records = "".join(f'{{"en": "https://a.org/{i}", "ja": "文"}}\n' for i in range(N))
    (tmp_path / "a.jsonl").write_text(records, encoding="utf-8")
    with pytest.raises(InputError, match=r"its English side is a web address"):
        list(find_pairs([str(tmp_path / "a.jsonl")], EN_JA)[0].jobs())


def judge(rows):
    lines = [(number, "\t".join(row)) for number, row in enumerate(rows, 1)]
    check_columns_are_text(Path("a.tsv"), (0, 1), EN_JA, lines)


NUMBERS = st.sampled_from(["12", "1,000.5", "3.7 %", "1990", "1e-3", "-4"])
WORDS = st.text(alphabet="ab猫 ", min_size=1, max_size=5).map(lambda text: f"a{text}")


@settings(max_examples=15)
@given(st.lists(st.tuples(st.booleans(), NUMBERS, WORDS, WORDS), min_size=20, max_size=40))
def test_numbers_in_a_minority_of_lines_are_text(drawn):
    rows = [(number if label else a, b) for label, number, a, b in drawn]
    labels = sum(row[0].strip("%- ").replace(",", "")[:1].isdigit() for row in rows)
    if labels <= 0.9 * len(rows):
        judge(rows)
        return
    with pytest.raises(InputError):
        judge(rows)


def test_tables_of_numbers_are_text_if_both_sides_have_them():
    judge([(f"1,{i:03}.5", f"1.{i:03},5") for i in range(N)])
    judge([("7", "七")] * 9)  # too few lines to say
    with pytest.raises(InputError, match=r"a\.tsv:1:"):
        judge([(str(i), f"文{i}") for i in range(N)])
    with pytest.raises(InputError, match=r"a\.tsv:3:"):  # the first such line is named
        judge([("A title", "題"), ("", ""), *((f"{i}.5", f"文{i}") for i in range(N))])


def test_no_clean_bitext_is_refused(xswe_data):
    files = 0
    for folder in sorted((xswe_data / "train").iterdir()):
        for file in find_pairs([str(folder)], tuple(folder.name.split("-"))):
            assert next(iter(read_pairs(file)))
            files += 1
    assert files >= 10


@pytest.mark.parametrize("pair", [EN_JA, ("ja", "en")])
def test_the_original_ccmatrix_has_a_card(tmp_path, pair):
    folder = tmp_path / "downloads" / "ccmatrix"
    folder.mkdir(parents=True)
    ccmatrix(folder / "en-ja.bitextf.tsv.gz")
    (file,) = corpus_sources("ccmatrix", "original", pair, str(tmp_path), True)
    assert fast(file)[0][0] == (("Sentence 0.", "文0。") if pair == EN_JA else ("文0。", "Sentence 0."))
    (job,) = file.jobs(scores=True)
    np.testing.assert_allclose(job().score[:2], [1.3, 1.2998889], atol=1e-6)


def test_bad_bytes_of_jparacrawl_are_left_out_and_counted(tmp_path):
    """By the card, and by a file of one's own that bears its name."""
    own = jparacrawl(tmp_path / "en-ja.bicleaner05.txt", bad=(3, 30))
    folder = tmp_path / "downloads" / "jparacrawl"
    folder.mkdir(parents=True)
    with tarfile.open(folder / "jparacrawl-3.en-ja.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("en-ja/en-ja.bicleaner05.txt")
        info.size = own.stat().st_size
        archive.addfile(info, io.BytesIO(own.read_bytes()))
    for entry in ({"card": "jparacrawl"}, {"path": str(own), "columns": [3, 4]}):
        config = CorpusConfig(paths=[entry], cache=str(tmp_path), offline=True, on_error="skip")
        bitext, report = load_bitext(corpus_files(config, [EN_JA])[EN_JA], EN_JA, config)
        assert len(bitext) == N - 2
        assert report.dropped == {"not UTF-8": 2}
    config = CorpusConfig(paths=[{"path": str(own), "columns": [3, 4]}])
    with pytest.raises(InputError, match=r"en-ja\.bicleaner05\.txt:4: not UTF-8.*on_error=skip"):
        load_bitext(corpus_files(config, [EN_JA])[EN_JA], EN_JA, config)


def test_a_file_without_languages_is_judged_all_the_same(tmp_path):
    with pytest.raises(InputError, match="read as source text"):
        list(read_pairs(Source((ccmatrix(tmp_path / "a.tsv"),))))
