"""Counting in compiled code gives the counts of the plain splitter, whatever the threads and the room."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.conftest import count_words
from tests.text.test_word_lookup import SETTINGS, pieces_of, tricky
from xswe.io.ragged import Texts
from xswe.text import counting
from xswe.text.counting import COUNTED, WordCounter, most_frequent_of
from xswe.text.words import WordSplitter, most_frequent

ALL = ("en", "de", "zh", "ja")


def frequent_words(texts, splitter, most, threads=1):
    with TemporaryDirectory() as folder:
        output = Path(folder) / f"words{COUNTED}"
        WordCounter(splitter).count(texts, output, threads)
        return most_frequent_of([output], most)


# How texts are cut is for the tests of the look-up; here, one setting of each way in which words are handed on.
KINDS = [
    "all by the teacher",
    "no Han",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("all by libraries", "whole texts", "lower case")),
]


@pytest.fixture(scope="module", params=KINDS)
def splitter(request, tokenizer_json):
    languages, segmenters, *options = SETTINGS[request.param]
    return WordSplitter(languages, segmenters, pieces_of(request.param, tokenizer_json), **dict(*options))


def test_the_sample_in_four_languages(splitter, sample, monkeypatch):
    monkeypatch.setattr(counting, "BLOCK", 100)
    texts = [t for row in zip(*sample.values(), strict=True) for t in row][:600]
    plain = count_words(texts, splitter)
    for threads in (1, 3):
        assert frequent_words(Texts.of(texts), splitter, 10**6, threads) == plain


def test_neither_full_tables_nor_several_files_change_anything(splitter, sample, monkeypatch, tmp_path):
    monkeypatch.setattr(counting, "BLOCK", 50)
    monkeypatch.setattr(counting, "_MAX_WORDS", 150)
    monkeypatch.setattr(counting, "_SCAN_BYTES", 1000)
    texts = [*sample["en"][:90], *sample["ja"][:90], "e\u0301a" * 20, "x" * 5000, "語" * 2000]
    plain, counter = count_words(texts, splitter), WordCounter(splitter)
    for threads in (1, 2):
        assert frequent_words(texts, splitter, 10**6, threads) == plain
    files = [tmp_path / f"{start}.npz" for start in range(0, len(texts), 100)]
    for start, file in zip(range(0, len(texts), 100), files, strict=True):
        counter.count(texts[start : start + 100], file, 2)
    assert most_frequent_of(files[::-1], 10**6) == plain
    for most in (0, 1, 50, 400):
        counts = most_frequent_of(files, most)
        assert most_frequent({"en": counts}, {"en": most}) == most_frequent({"en": plain}, {"en": most})
        assert len(counts) == min(most, len(plain))


def test_words_that_no_table_holds_are_left_out():
    splitter = WordSplitter(("en", "de"), {}, None)
    texts = ["x" * 65_535, "y" * 65_536, "a cat", "é" * 200_000, "z" * 1_000_000, "a dog"]
    assert frequent_words(texts, splitter, 10) == {"a": 2, "cat": 1, "dog": 1, "x" * 65_535: 1}


@settings(max_examples=8)  # for each of the kinds of units
@given(texts=st.lists(st.one_of(st.text(max_size=30), st.lists(tricky, max_size=12).map("".join)), max_size=6))
def test_any_unicode(splitter, texts):
    plain = count_words(list(Texts.of(texts)), splitter)
    assert frequent_words(Texts.of(texts), splitter, 10**6) == plain


def test_nothing_at_all(tokenizer_json):
    splitter = WordSplitter(("en", "ja"), {"ja": "teacher"}, Tokenizer.from_str(tokenizer_json))
    assert not frequent_words([], splitter, 10)
    assert not frequent_words(["", " ", "!"], splitter, 10)
