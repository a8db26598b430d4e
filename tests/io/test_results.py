from __future__ import annotations

import csv
import json

import pytest

from xswe.errors import ConfigError
from xswe.io.results import Result, Rows, latex, markdown, table


class Found(Result):
    def columns(self):
        return "score", "text"

    def records(self):
        return [(0.5, "a|b & c_d <i>"), (0.25, 'x\ty\n"z"')]

    def __repr__(self):
        return "Found(<2>)"


def test_a_suffix_is_a_promise(tmp_path):
    for suffix in (".csv", ".tsv", ".json", ".jsonl", ".md", ".tex"):
        Found().write(tmp_path / f"a{suffix}")
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        with (tmp_path / f"a{suffix}").open(newline="") as stream:
            assert list(csv.reader(stream, delimiter=delimiter))[1:] == [["0.5", "a|b & c_d <i>"], ["0.25", 'x\ty\n"z"']]
    rows = [{"score": score, "text": text} for score, text in Found().records()]
    assert json.loads((tmp_path / "a.json").read_text()) == rows
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == rows
    lines = ["| --- | --- |", r"| 0.5000 | a\|b & c_d <i> |", '| 0.2500 | x y "z" |']
    assert (tmp_path / "a.md").read_text().splitlines()[1:] == lines
    assert r"0.5000 & a|b \& c\_d <i> \\" in (tmp_path / "a.tex").read_text()
    with pytest.raises(ConfigError, match=r"b\.html: the suffix says the format: use \.\w"):
        Found().write(tmp_path / "b.html")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"])
def test_every_format_holds_what_is_no_number_and_ends_no_line(tmp_path, suffix):
    for module in {".parquet": ["pyarrow"], ".xlsx": ["xlsxwriter", "openpyxl"]}.get(suffix, []):
        pytest.importorskip(module)
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


def test_numbers_stand_right_and_texts_left():
    header = ("model", "for", "F1", "range", "none")
    rows = [("mini", "8 words", 0.75, "**1** to 20", None), ("b", "x", None, "- / 3", "")]
    assert markdown(header, rows).splitlines()[1] == "| --- | --- | ---: | ---: | ---: |"
    assert latex(header, rows).splitlines()[0] == r"\begin{tabular}{llrrr}"
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


def test_results_become_parquet_and_sheets(tmp_path):
    parquet, sheets = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("openpyxl")
    for suffix in (".parquet", ".xlsx"):
        Found().write(tmp_path / f"a{suffix}")
    rows = [tuple(row) for row in Found().records()]
    assert [tuple(row.values()) for row in parquet.read_table(tmp_path / "a.parquet").to_pylist()] == rows
    sheet = sheets.load_workbook(tmp_path / "a.xlsx").active
    assert list(sheet.iter_rows(values_only=True)) == [("score", "text"), *rows]
