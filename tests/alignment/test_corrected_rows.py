"""Rows of tables that people corrected, in whatever form these came back."""

from __future__ import annotations

import pytest

from xswe.alignment.rows import is_score, line_of, read_rows
from xswe.errors import InputError


def read(tmp_path, text, name="a.tsv", languages=()):
    (tmp_path / name).write_bytes(text.encode())
    return read_rows(tmp_path / name, languages)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("0.5\ta\tb\n0.25\tc\td\n", [("a", "b"), ("c", "d")]),
        ("a\tb\t0.5\nc\td\t1\n", [("a", "b"), ("c", "d")]),
        ("a\tb\n1\td\n", [("a", "b"), ("1", "d")]),
        ("1\tb\n2\td\n", [("1", "b"), ("2", "d")]),  # numbers that are texts, as there is no third column
        ("0.5\ta\tb\n0.25\tc\td\ne\tf\tg\n", [("0.5", "a"), ("0.25", "c"), ("e", "f")]),
        ("0.5\ta\tb\n0.5\tc\n", [("0.5", "a"), ("0.5", "c")]),
        ("0.5\ta\tb\n\n\t\t\n0.25\tc\t\n", [("a", "b"), ("c", "")]),
        ("source\ttarget\n a \tb\n", [("a", "b")]),
        ("Target\tNote\tSource\nb\tx\ta\n", [("a", "b")]),
        ("en\tde\na\tb\n", [("a", "b")]),
        ('"a ""b"" c"\td"\n', [('a "b" c', 'd"')]),
        ('"a"\t"b" and "c"\n', [('"a"', '"b" and "c"')]),  # these are quotes
        ('source\ttarget\n"a"\t"b\nc"\n', [("a", "b\nc")]),  # below names, quotes are those of a spreadsheet
        ("source;target\na;b\n", [("a", "b")]),
        ("source,target\na,b\n", [("a", "b")]),
        ("source,target\na\n", [("a", "")]),
        ("", []),
    ],
)
def test_texts_are_found_with_a_header_or_beside_a_score(tmp_path, text, texts):
    assert [row.texts for row in read(tmp_path, text).rows] == texts


def test_a_row_says_where_it_stands_and_what_somebody_thinks_of_it(tmp_path):
    text = "source_lines\ttarget_lines\tstatus\tnotes\tsource\ttarget\n"
    text += "1\t2,3\tOK\tSo\ta\tb\n\t4\tWrong\t\tc\td\nx\t5 6\t\t\te\tf\n"
    found = read(tmp_path, text)
    assert found.whole
    assert [(row.lines, row.either) for row in found.rows] == [(((0,), (1, 2)), ()), (((), (3,)), ()), (((), (4, 5)), ())]
    assert [(row.status, row.notes, row.number) for row in found.rows] == [("ok", "So", 2), ("wrong", "", 3), ("", "", 4)]
    assert not read(tmp_path, "source_id\ttarget_id\tsource\ttarget\n1\t2\ta\tb\n").whole
    assert not read(tmp_path, "source\ttarget\na\tb\n").whole
    assert not read(tmp_path, "source_lines\tsource\ttarget\n1\ta\tb\n").whole


def test_a_unit_says_its_lines_on_both_sides_or_on_any(tmp_path):
    units = "".join(
        f'<tu><prop type="x-lines">{lines}</prop><note>x\ny</note><prop type="x-status">OK</prop>'
        '<tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>'
        for lines in ("1 2 | 4", " | 3", "5 6", "x | 7")
    )
    found = read(tmp_path, f"<tmx><body>{units}</body></tmx>", "a.tmx", ("en", "de"))
    assert [(row.lines, row.either) for row in found.rows] == [
        (((0, 1), (3,)), ()),
        (((), (2,)), ()),
        (((), ()), (4, 5)),
        (((), (6,)), ()),
    ]
    assert [(row.status, row.notes, row.number) for row in found.rows] == [("ok", "x y", n) for n in (1, 2, 3, 4)]
    assert not found.whole


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.tsv", "a\tb\nc\n", "a.tsv:2: no two texts with a tab between them"),
        ("a.csv", "a,b\nc,d\n", "a.csv:1: its columns are a, b"),
        ("a.csv", "x\n", "a.csv:1: its columns are x"),
    ],
)
def test_a_table_without_two_texts_is_refused_with_its_row(tmp_path, name, text, problem):
    with pytest.raises(InputError, match=problem):
        read(tmp_path, text, name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_unit_of_a_memory_is_on_the_line_where_it_begins(tmp_path, encoding):
    lines = ["<tmx>", "<body>", "<tu>", "</tu><tu>", "</tu>", '<tu id="3">', "</tu>", "</body>"]
    (tmp_path / "a.tmx").write_bytes("\n".join(lines).encode(encoding))
    assert [line_of(tmp_path / "a.tmx", number) for number in (1, 2, 3, 4)] == [3, 4, 6, 1]
    assert line_of(tmp_path / "a.tsv", 7) == 7


def test_scores_are_numbers():
    assert all(map(is_score, ("0.5", "1", "-0.25", "+0", "1.", ".5", "0,5", "1e-3", "2.5E+1", "nan", "-inf", "INF")))
    assert not any(map(is_score, ("", ".", "ok", "0.5 ", "a1", "1.2.3", "1e", "--1", "-nan")))
