"""Columns and sides that are no text, at the borders of the rules that refuse them or warn of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from xswe.bitext.checks import (
    CHECKED,
    _kind_of,
    _same_number,
    _warn_of_header,
    _warn_of_languages,
    check_columns_are_text,
    check_languages_of,
    check_sides_are_text,
    detected_languages,
)
from xswe.errors import InputError

TEXT, EN, DE = "some text", "the cat is here", "die Katze ist da"


@pytest.mark.parametrize("text", ["1", "-3.5", "+.5", "1,234.5", "1e5", "1.5E-3", "12 %", "50%", "2024", "1.", "1..2"])
def test_a_number(text):
    assert _kind_of(text) == "a number"


@pytest.mark.parametrize("text", ["example.org", "http://a.b-c.de:80/x?y", "ftp://www.example.com/", "A.COM", "x.y.zz/1"])
def test_an_address(text):
    assert _kind_of(text) == "a web address"


@pytest.mark.parametrize(
    "text", ["", "abc", "1 2", "a 1", "No. 5", "e5", "%", "see example.org", "http://localhost", "a.b"]
)
def test_neither(text):
    assert _kind_of(text) is None


def test_one_number_however_it_is_written():
    assert _same_number("1,234.5", "1.234,5")
    assert _same_number("50%", "50 %")
    assert not _same_number("50", "51")
    assert not _same_number("50", "fifty 50")
    assert not _same_number("a", "b")


def refused(source, target, **how):
    try:
        check_sides_are_text("a.tsv", ("en", "xx"), source, target, **how)
    except InputError as error:
        return str(error)
    return ""


def test_nearly_every_line_must_be_no_text_for_a_refusal():
    for lines, numbers, bad in (
        (10, 10, True),
        (10, 9, False),
        (20, 19, True),
        (20, 18, False),
        (9, 9, False),
        (0, 0, False),
    ):
        found = refused(["7"] * numbers + [TEXT] * (lines - numbers), [TEXT] * lines)
        assert bool(found) == bad, (lines, numbers)
        if bad:
            assert f"its English side is a number in {numbers} of the first {lines} lines" in found
    assert refused([TEXT] * 12, [TEXT, *["example.org"] * 11]) == (
        "a.tsv:2: its target side is a web address in 11 of the first 12 lines; "
        "name the files, or the fields, that hold the two texts"
    )
    assert not refused(["7"] * 12, ["7"] * 12)  # a table of numbers
    assert not refused(["7"] * 6 + ["example.org"] * 6, [TEXT] * 12)  # some of each
    assert "a.tsv:11: column x is a number" in refused(
        [TEXT, *["7"] * 19], [TEXT] * 20, lines=range(10, 30), names=["column x", "column y"], hint="the hint"
    )


def test_the_columns_that_are_text_are_named():
    def hint(rows, in_corpus=True, columns=(0, 1)):
        with pytest.raises(InputError) as caught:
            check_columns_are_text(Path("x/a.tsv"), columns, ("en", "de"), list(enumerate(rows, 5)), in_corpus)
        return str(caught.value)

    rows = [f"0.{n}\t{TEXT}\tein Text\n" for n in range(12)]
    assert hint(rows).startswith(
        "x/a.tsv:5: column 0 (counted from 0), read as English text, is a number in 12 of the first"
    )
    assert "corpus.paths=[{path: a.tsv, columns: [1, 2], score: 0}]" in hint(rows)
    assert "as in columns=[1,2]" in hint(rows, in_corpus=False)
    sites = [f"a.org\tb.org\t0.{n}\t{TEXT}\tein Text" for n in range(12)]
    assert "read as English text, is a web address" in hint(sites)
    assert "columns: [3, 4], score: 2}" in hint(sites)
    more = [f"0.{n}\t{TEXT}\tein Text\tnoch einer" for n in range(12)]  # which two it is cannot be told
    assert "columns: [3, 4], score: 2}" in hint(more)
    remarks = [f"{row.strip()}\t{'a remark' * (n > 1)}" for n, row in enumerate(rows)]
    assert "columns: [1, 2], score: 0}" in hint(remarks)  # a text in 10 of 12 rows is not one of the pair
    assert "columns: [3, 4], score: 2}" in hint([f"{n}\t{TEXT}\t{'ein Text' * (n > 1)}" for n in range(12)])
    assert "columns: [3, 4], score: 2}" in hint([f"{n}\t{TEXT}\t{'ein Text' * (n > 1)}" for n in range(20)])  # nine in ten
    few = [f"{n}\t{TEXT}\tein Text\t{n if n > 1 else ''}" for n in range(20)]
    assert "columns: [1, 2], score: 0}" in hint(few)
    rates = [f"{n}\t{TEXT}\tein Text\t{n if n < 10 else ''}" for n in range(12)]
    assert "columns: [1, 2], score: 0}" in hint(rates)  # the last one is missing in two of twelve
    assert "columns: [1, 2]}" in hint([f"{row.strip()}\t7" for row in rows])  # which number is a score cannot


def test_a_header_is_warned_of_once(caplog):
    _warn_of_header.cache_clear()
    texts = [f"{EN}\t{DE}"] * 3
    for first, number, warned in (
        ("source\ttarget", 1, True),
        ("source\ttarget", 1, False),
        ("Sentence 1\tsentence_2", 1, True),
        ("English\tGERMAN", 1, True),
        ("en-US\tde", 1, True),
        ("source\ttarget", 2, False),
        ("source\tDie Quelle", 1, False),
    ):
        caplog.clear()
        check_columns_are_text(Path("b.tsv"), (0, 1), ("en", "de"), list(enumerate([first, *texts], number)))
        assert bool(caplog.messages) == warned, first
    check_columns_are_text(Path("b.tsv"), (0, 1), ("en", "de"), [])


def test_another_language_is_warned_of_from_a_tenth_of_the_lines_on(caplog):
    for lines, foreign, warned in ((30, 3, True), (31, 3, False), (20, 2, False), (3, 3, True), (40, 4, True)):
        _warn_of_languages.cache_clear()
        caplog.clear()
        check_languages_of("a.tsv", ("en", "ja"), [DE] * foreign + [EN] * (lines - foreign), ["猫が寝る"] * lines)
        assert bool(caplog.messages) == warned, (lines, foreign)
    assert "its English side is in another language in 4 of 40 lines looked at (10%), mostly German" in caplog.text
    caplog.clear()
    check_languages_of("a.tsv", ("de", "en"), [EN] * 5, [DE] * 5)
    assert all("the other way round, languages=[en,de]" in message for message in caplog.messages)
    assert len(caplog.messages) == 2
    caplog.clear()
    check_languages_of("b.tsv", ("en", "de"), ["Кошка спит"] * 5, [DE] * 5)
    assert "mostly another language (cyrillic script)" in caplog.text
    for languages in (("en", "en"), ("en",), ("en", "xx"), ()):
        caplog.clear()
        check_languages_of("c.tsv", languages, [DE] * 5, [DE] * 5)
        assert not caplog.messages


def test_of_many_lines_some_are_asked_for_their_language(caplog):
    _warn_of_languages.cache_clear()
    check_languages_of("a.tsv", ("en", "de"), [DE] * CHECKED, [DE] * CHECKED)
    assert "in 250 of 250 lines looked at" in caplog.text  # of 1,000 each fourth


def test_languages_are_detected_where_both_sides_have_one_of_their_own():
    assert detected_languages([EN] * 3, [DE] * 3) == ("en", "de")
    assert detected_languages([DE] * 3, ["猫が寝る"] * 3) == ("de", "ja")
    few = [*[EN] * 3, *["x"] * 7, DE]  # English in three of eleven, and German in one
    assert detected_languages(few, [DE]) == ("en", "de")
    assert detected_languages([*few, "x"], [DE]) == ()  # in no more than a quarter
    for source, target in (([EN], [EN]), ([EN], []), ([], []), ([EN], ["Кошка спит"]), ([EN], ["x"])):
        assert detected_languages(source, target) == ()
