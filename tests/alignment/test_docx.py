"""Beads as a Word document of two columns."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from zipfile import ZipFile

import pytest

from xswe.alignment.docx import write_docx
from xswe.alignment.formats import Manner, Written, bead_format, write_beads
from xswe.errors import ConfigError
from xswe.text.readers import paragraphs_of

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
BEADS = [
    Written(0.9, "Bread & <butter>.", "Brot und Butter.", (0,), (0,)),
    Written(None, "Alone.", "", (1,), ()),
    Written(0.8, "A\x0bb\nsecond line.", "猫が寝る。", (2, 3), (1,), notes="sure?"),
]


def test_each_row_has_both_sides(tmp_path):
    assert bead_format("auto", "a.docx", ()) == "docx"
    write_beads(tmp_path / "a.docx", "docx", BEADS, Manner(("en", "ja")))
    with ZipFile(tmp_path / "a.docx") as archive:
        assert archive.testzip() is None
        root = ET.fromstring(archive.read("word/document.xml"))
    rows = [
        ["\n".join(text.text or "" for text in cell.iter(f"{W}t")) for cell in row.iter(f"{W}tc")]
        for row in root.iter(f"{W}tr")
    ]
    assert rows == [
        ["1", "Bread & <butter>.", "Brot und Butter."],
        ["2", "Alone.", ""],
        ["3", "A b\nsecond line.", "猫が寝る。\nsure?"],
    ]
    assert {one.get(f"{W}val") for one in root.iter(f"{W}lang")} == {"en", "ja"}


def cell(width, *paragraphs):
    """A cell of paragraphs, each with its properties and its lines."""
    texts = "".join(
        f"<w:p><w:r>{style and f'<w:rPr>{style}</w:rPr>'}"
        + "<w:br/>".join(f'<w:t xml:space="preserve">{line}</w:t>' for line in lines)
        + "</w:r></w:p>"
        for style, *lines in paragraphs
    )
    return f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{texts}</w:tc>'


def test_a_table_has_a_column_of_numbers_and_two_of_texts(tmp_path):
    en, ja = (f'<w:lang w:val="{code}" w:eastAsia="{code}"/>' for code in ("en", "ja"))
    widths = 700, 6935, 6935
    row = "<w:tr><w:trPr><w:cantSplit/></w:trPr>{}</w:tr>"
    rows = [
        ((("", "1"),), ((en, "A &amp; b"),), ((ja, "C ", "d"), ("<w:i/>", "n"))),
        ((("", "–"),), ((en, ""),), ((ja, "猫"),)),
    ]
    expected = "".join(
        row.format("".join(cell(width, *texts) for width, texts in zip(widths, cells, strict=True))) for cells in rows
    )
    write_docx(tmp_path / "a.docx", [("1", "A & b", "C\x0b\nd", "n"), ("–", "", "猫", "")], ["en", "ja"])
    write_docx(tmp_path / "b.docx", [("1", "a", "b", "")], ["en"])
    write_docx(tmp_path / "empty.docx", [], ["en", "ja"])

    def body(name):
        with ZipFile(tmp_path / name) as archive:
            assert archive.namelist() == ["[Content_Types].xml", "_rels/.rels", "word/document.xml"]
            assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            text = archive.read("word/document.xml").decode()
        grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
        assert '<w:tblW w:w="14570" w:type="dxa"/>' in text
        head, _, rest = text.partition(f"<w:tblGrid>{grid}</w:tblGrid>")
        assert head.endswith('<w:tblLayout w:type="fixed"/></w:tblPr>')
        return rest.partition("</w:tbl><w:p/>")[0]

    assert body("a.docx") == expected
    assert body("b.docx") == row.format("".join(cell(w, ("", t)) for w, t in zip(widths, "1ab", strict=True)))
    assert body("empty.docx") == f"<w:tr>{''.join(cell(width, ('', '')) for width in widths)}</w:tr>"


def test_the_same_beads_make_the_same_bytes(tmp_path):
    for name in ("a.docx", "b.docx"):
        write_beads(tmp_path / name, "docx", BEADS, Manner())
    assert (tmp_path / "a.docx").read_bytes() == (tmp_path / "b.docx").read_bytes()


def test_other_programs_read_it(tmp_path):
    write_docx(tmp_path / "a.docx", [("1", "Source.", "Ziel.", "")])
    write_docx(tmp_path / "empty.docx", [])
    docx = pytest.importorskip("docx")
    table = docx.Document(str(tmp_path / "a.docx")).tables[0]
    assert [cell.text for cell in table.rows[0].cells] == ["1", "Source.", "Ziel."]
    assert len(docx.Document(str(tmp_path / "empty.docx")).tables) == 1


def test_our_own_reader_reads_it(tmp_path):
    write_docx(tmp_path / "a.docx", [("1", "Source.", "Ziel.", "")])
    assert {"Source.", "Ziel."} <= set(paragraphs_of(tmp_path / "a.docx"))


def test_the_name_of_a_format_that_beads_are_not_written_in_is_refused_with_those_that_they_are():
    with pytest.raises(ConfigError, match=r"a\.npy: pairs are not written as \.npy; use .*\.tmx.*\.docx, \.html"):
        bead_format("auto", "a.npy", ("en", "de"))
