"""Pairs as each format writes them, to the byte."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import get_args

import pytest

from tests.foreign import READ_PAIRS, TEXTS, as_pairs, has_line_feeds
from xswe.bitext.output import USUAL_SUFFIXES, Format, Row, format_of, output_format, write_rows
from xswe.bitext.source import Source
from xswe.errors import ConfigError

ROWS = [Row(0.1234567, "a\tb", "c\u2028d", "s1", "t1", 1), Row(-1.0, "e | f", "", "s2", "t2", 2)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("laser", "0.123457\ta b\tc d\n-1.000000\te | f\t\n"),
        ("bucc", "s1\tt1\ns2\tt2\n"),
        (
            "markdown",
            "| score | source | target |\n| --- | --- | --- |\n| 0.1235 | a b | c d |\n| -1.0000 | e \\| f |  |\n",
        ),
        ("csv", "score,source,target,source_id,target_id,rank\n0.1234567,a\tb,c\u2028d,s1,t1,1\n-1.0,e | f,,s2,t2,2\n"),
    ],
)
def test_rows_are_written(tmp_path, kind, text):
    write_rows(str(tmp_path / "a"), kind, iter(ROWS), ("en", "de"))
    found = (tmp_path / "a").read_bytes().decode()
    if kind == "csv":  # of a float32
        found = re.sub(r"0\.12345\d+", "0.1234567", found)
    assert found == text


@pytest.mark.parametrize("kind", [kind for kind in get_args(Format) if kind != "auto"])
def test_lines_end_in_line_feeds_also_without_a_pair(tmp_path, kind):
    path = tmp_path / f"a{USUAL_SUFFIXES.get(kind, '.txt')}"
    for rows in (ROWS, []):
        write_rows(str(path), kind, iter(rows), ("en", "de"))
        assert has_line_feeds(path)
    assert kind in ("bucc", "markdown") or not [*READ_PAIRS[kind](path)]  # Python-Markdown wants a row


@pytest.mark.parametrize("kind", ["tmx", "xliff", "xliff2", "catalogue"])
def test_units_have_their_scores(tmp_path, kind):
    write_rows(str(tmp_path / "a"), kind, iter(ROWS), ("en", "de"))
    text = (tmp_path / "a").read_text("utf-8")
    assert re.findall(r"-?\d\.\d{6}", text) == ["0.123457", "-1.000000"]
    assert ("s1 t1" in text) == (kind == "tmx")  # the only one with a place for them


@pytest.mark.parametrize("kind", [kind for kind in get_args(Format) if kind not in ("auto", "bucc")])  # bucc: ids alone
def test_another_program_reads_every_text(tmp_path, kind):
    assert kind in READ_PAIRS, (
        "no test reads what is written: READ_PAIRS of tests/foreign.py must say how another program does"
    )
    pairs = list(zip_longest(TEXTS, TEXTS[1:], fillvalue="x"))
    rows = (Row(0.5, *pair, f"s{n}", f"t{n}", 1) for n, pair in enumerate(pairs))
    path = tmp_path / f"a{USUAL_SUFFIXES[kind]}"
    write_rows(str(path), kind, rows, ("en", "de"))
    for pair, found in zip(pairs, READ_PAIRS[kind](path), strict=True):
        assert found == [as_pairs(kind, text) for text in pair]


def test_a_format_is_wanted_or_named_and_has_what_it_needs():
    for output, kind in (("a.tsv", "laser"), ("a.txt", "laser"), ("a", "laser"), ("a.csv.gz", "csv"), ("-", "laser")):
        assert output_format("auto", output) == kind
    assert output_format("bucc", "a.txt") == "bucc"
    for kind in ("tmx", "xliff", "xliff2"):
        for languages in ((), ("en",), ("en", "de", "ja")):
            with pytest.raises(ConfigError, match=f"format={kind} names the languages of its texts: set languages"):
                output_format(kind, "a", languages)
        assert output_format(kind, "a", ("en", "de")) == kind
    with pytest.raises(ConfigError, match=r"a\.npy: pairs are not written as \.npy; use .*, \.xliff, \.x, or say format="):
        output_format("auto", "a.npy", further=[".x"])
    for output in ("-", "a.xlsx.gz"):
        with pytest.raises(ConfigError, match="format=xlsx is not written packed or to standard output: give output=pairs"):
            output_format("xlsx", output)


def test_a_bitext_is_kept_in_its_own_format():
    names = (("a.tsv",), "laser"), (("a.en", "a.de"), "laser"), (("a.csv",), "csv"), (("a.parquet",), "parquet")
    assert [format_of(Source(paths)) for paths, _ in names] == [kind for _, kind in names]
