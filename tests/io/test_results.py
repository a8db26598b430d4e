from __future__ import annotations

import csv
import json
from itertools import zip_longest

import pytest

from tests.foreign import NAMES, READ, TEXTS, as_read, has_line_feeds, of_page
from xswe.errors import ConfigError
from xswe.io import results as module
from xswe.io.results import SHOWN, Result, Rows, markdown, table, write_table
from xswe.io.suffixes import TABLES


class Found(Result):
    def columns(self):
        return "score", "text"

    def records(self):
        return [(0.5, "a|b & c_d <i>"), (0.25, 'x\ty\n"z"')]

    def __repr__(self):
        return "Found(<2>)"


@pytest.mark.parametrize("suffix", TABLES)
def test_a_suffix_is_a_promise(tmp_path, suffix):
    assert suffix in READ, "no test reads what is written: READ of tests/foreign.py must say how another program does"
    Found().write(tmp_path / f"a{suffix}")
    rows = [("0.5000", "a|b & c_d <i>"), ("0.2500", 'x y "z"')] if suffix in SHOWN else Found().records()
    assert [[*map(str, row)] for row in READ[suffix](tmp_path / f"a{suffix}")] == [
        ["score", "text"],
        *([str(score), text] for score, text in rows),
    ]
    assert has_line_feeds(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", TABLES)
def test_a_table_without_rows_has_its_header(tmp_path, suffix):
    Rows(NAMES, []).write(tmp_path / f"a{suffix}")
    assert has_line_feeds(tmp_path / f"a{suffix}")
    without = (".json", ".jsonl", ".parquet", ".md")  # names are in records; Python-Markdown wants a row
    assert suffix in without or READ[suffix](tmp_path / f"a{suffix}") == [[*NAMES]]


@pytest.mark.parametrize("suffix", TABLES)
def test_another_program_reads_every_text(tmp_path, suffix):
    """At the beginning, in the middle and at the end of a row."""
    path, rows = tmp_path / f"a{suffix}", [(text, other, text) for text, other in zip_longest(TEXTS, TEXTS[1:])]
    Rows(NAMES, rows).write(path)
    header, *found = READ[suffix](path)
    assert header == [*NAMES]
    for wanted, row in zip(rows, found, strict=True):
        assert row == [as_read(suffix, text) for text in wanted]


def test_a_notebook_shows_every_text():
    for start in range(0, len(TEXTS), 10):
        rows = [(text, text) for text in TEXTS[start : start + 10]]
        assert of_page(Rows(NAMES[1:], rows)._repr_html_()) == [
            [*NAMES[1:]],
            *([as_read(".md", text) for text in row] for row in rows),
        ]


def test_a_table_for_people_has_its_marks_escaped(tmp_path):
    for suffix in (".md", ".tex"):
        Found().write(tmp_path / f"a{suffix}")
    lines = ["| --- | --- |", r"| 0.5000 | a\|b & c_d &#60;i> |", '| 0.2500 | x y "z" |']
    assert (tmp_path / "a.md").read_text().splitlines()[1:] == lines
    assert r"0.5000 & a\textbar{}b \& c\_d \textless{}i\textgreater{} \\" in (tmp_path / "a.tex").read_text()


def test_a_name_without_a_format_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"b\.html: the suffix says the format: use \.\w"):
        Found().write(tmp_path / "b.html")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"])
def test_every_format_holds_what_is_no_number_and_ends_no_line(tmp_path, suffix):
    for library in {".parquet": ["pyarrow"], ".xlsx": ["xlsxwriter", "openpyxl"]}.get(suffix, []):
        pytest.importorskip(library)
    rows, path = [(0.5, "a\rb"), (float("nan"), "c"), (float("inf"), "\ud800d")], tmp_path / f"a{suffix}"
    Rows(("score", "text"), rows if suffix not in (".parquet", ".xlsx") else rows[:2]).write(path)
    if suffix in (".csv", ".tsv"):
        with path.open(newline="") as stream:
            found = [row[1] for row in csv.reader(stream, delimiter="," if suffix == ".csv" else "\t")]
        assert found == ["text", "a\rb", "c", r"\ud800d"]
        assert path.read_bytes().count(b"\r") == 1
    elif suffix.startswith(".json"):

        def refuse(name):
            raise AssertionError(f"{name} is no JSON")

        text = path.read_text("utf-8")
        read = json.loads(text if suffix == ".json" else f"[{','.join(text.splitlines())}]", parse_constant=refuse)
        assert [tuple(row.values()) for row in read] == [(0.5, "a\rb"), (None, "c"), (None, "\ud800d")]
    elif suffix == ".xlsx":
        sheet = pytest.importorskip("openpyxl").load_workbook(path).active
        assert [row[0] for row in sheet.iter_rows(values_only=True)] == ["score", 0.5, None]


def test_each_text_format_has_its_bytes(tmp_path):
    rows = Rows(("score", "text"), [(0.5, "ü\tb"), (2, ("c", "d")), (None, '"e"')])
    for suffix, written in (
        (".csv", 'score,text\n0.5,ü\tb\n2,c | d\n,"""e"""\n'),
        (".tsv", 'score\ttext\n0.5\t"ü\tb"\n2\tc | d\n\t"""e"""\n'),
        (
            ".jsonl",
            '{"score": 0.5, "text": "ü\\tb"}\n{"score": 2, "text": ["c", "d"]}\n{"score": null, "text": "\\"e\\""}\n',
        ),
        (".md", '| score | text |\n| --- | --- |\n| 0.5000 | ü b |\n| 2 | c \\| d |\n| - | "e" |\n'),
    ):
        rows.write(tmp_path / f"a{suffix}")
        assert (tmp_path / f"a{suffix}").read_text("utf-8") == written
    Rows(("a",), [("ü",)]).write(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text("utf-8") == '[\n  {\n    "a": "ü"\n  }\n]\n'
    write_table(tmp_path / "b.csv", ".csv", ("a",), [("b",)], bom=True)
    assert (tmp_path / "b.csv").read_bytes() == b"\xef\xbb\xbfa\nb\n"


def test_a_result_is_a_sequence_of_its_records():
    rows = Rows(("a",), [(1,), (2,), (3,)])
    for found in (rows, Found()):
        listed = list(found.records())
        assert (len(found), list(found), found[0], found[-1]) == (len(listed), listed, listed[0], listed[-1])
        assert (found[1:], found[:-1], found[::2]) == (tuple(listed[1:]), tuple(listed[:-1]), tuple(listed[::2]))
        with pytest.raises(IndexError):
            found[len(listed)]


LAID_OUT = {".md": "| --- | --- | ---: | ---: | ---: |", ".tex": r"\begin{tabular}{llrrr}"}


def test_numbers_stand_right_and_texts_left():
    header = ("model", "for", "F1", "range", "none")
    rows = [("mini", "8 words", 0.75, "**1** to 20", None), ("b", "x", None, "- / 3", "")]
    assert LAID_OUT.keys() == SHOWN.keys(), "the line that says how the columns stand, and which row is the header"
    for suffix, line in LAID_OUT.items():
        assert line in "".join(SHOWN[suffix](header, rows)).splitlines()
    assert table(header, rows).splitlines() == [
        "model  for        F1        range  none",
        "-----  -------  ----  -----------  ----",
        "mini   8 words  75.0  **1** to 20     -",
        "b      x           -        - / 3",
    ]
    assert table(("a", "text"), [("x", "a text that is long")]).splitlines()[1] == "-  ----"
    assert markdown(("a", "b"), []).splitlines() == ["| a | b |", "| --- | --- |"]


def test_a_notebook_shows_texts_and_never_markup_of_theirs():
    shown = Found()._repr_html_()
    assert shown.startswith("<p>Found(&lt;2&gt;)</p>")
    assert "<td>0.5000</td><td>a|b &amp; c_d &lt;i&gt;</td>" in shown


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_become_frames(library):
    pytest.importorskip(library)
    frame = getattr(Found(), f"to_{library}")()
    assert list(frame.columns) == ["score", "text"]
    assert list(frame["score"]) == [0.5, 0.25]


def test_a_sheet_is_laid_out_to_be_read(tmp_path):
    sheets = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    long, wide = "x" * 61, "猫" * 15
    names = ("score", "source", "target", "status", "a name")
    Rows(names, [(0.5, long, wide, "open", 1), (0.25, "", "y", "right", 2)]).write(tmp_path / "a.xlsx")
    book = sheets.load_workbook(tmp_path / "a.xlsx")
    sheet = book.active
    assert (book.properties.created.isoformat(), sheet.title) == ("2000-01-01T00:00:00", "xswe")
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:E3")
    widths = [round(sheet.column_dimensions[column].width - 0.71) for column in "ABCDE"]
    assert widths == [9, 60, 30, 10, 10]
    assert [bool(cell.font.bold and cell.border.bottom.style) for cell in (sheet["A1"], sheet["E1"], sheet["B2"])] == [
        True,
        True,
        False,
    ]
    formats = {sheet.column_dimensions[column].number_format for column in "BCDE"}
    assert (sheet.column_dimensions["A"].number_format, formats) == ("0.000", {"General"})
    assert [bool(sheet.column_dimensions[column].alignment.wrap_text) for column in "ABCDE"] == [False, True, *[False] * 3]
    looks = {str(one.sqref): one.rules[0] for one in sheet.conditional_formatting}
    assert {where: rule.type for where, rule in looks.items()} == {
        "A2:A3": "colorScale",
        "B2:B3": "containsBlanks",
        "C2:C3": "containsBlanks",
    }
    scale = looks["A2:A3"].colorScale
    assert [float(one.val) for one in scale.cfvo] == [0, 0.5, 1]
    assert [one.rgb for one in scale.color] == ["FFF4B6AC", "FFFBE9A9", "FFB7DDBF"]
    (choice,) = sheet.data_validations.dataValidation
    assert (str(choice.sqref), choice.formula1, choice.errorStyle) == ("D2:D3", '"right,wrong,open"', "warning")
    Rows(("source", "b"), []).write(tmp_path / "b.xlsx")
    sheet = sheets.load_workbook(tmp_path / "b.xlsx").active
    assert (sheet.auto_filter.ref, list(sheet.conditional_formatting)) == ("A1:B2", [])
    Rows(("target", "source"), [("=1+1", "https://example.org")]).write(tmp_path / "c.xlsx")  # neither is run nor linked
    sheet = sheets.load_workbook(tmp_path / "c.xlsx").active
    assert {str(one.sqref) for one in sheet.conditional_formatting} == {"A2", "B2"}
    assert [(cell.value, cell.data_type, cell.hyperlink) for cell in sheet[2]] == [
        ("=1+1", "s", None),
        ("https://example.org", "s", None),
    ]


def test_a_sheet_has_no_more_rows_and_characters_than_it_can(tmp_path, monkeypatch):
    sheets = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    monkeypatch.setattr(module, "_MAX_SHEET_ROWS", 2)
    monkeypatch.setattr(module, "_MAX_CELL", 3)
    Rows(("a",), [("abc",), ("abcd",)]).write(tmp_path / "a.xlsx")
    assert [row[0] for row in sheets.load_workbook(tmp_path / "a.xlsx").active.values] == ["a", "abc", "abc"]
    with pytest.raises(ConfigError, match="over 2 rows do not fit a sheet"):
        Rows(("a",), [("a",)] * 3).write(tmp_path / "b.xlsx")
    assert not (tmp_path / "b.xlsx").exists()
