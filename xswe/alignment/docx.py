"""Beads as a Word document (Office Open XML, ECMA-376): a table of both texts, to read, print or comment on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from xswe.bitext.memories import NOT_XML
from xswe.io.files import whole_file

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_TYPES = (
    f'{_HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_MAIN}"/></Types>'
)
_RELATIONS = (
    f'{_HEAD}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_BORDERS = "".join(
    f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="BBBBBB"/>' for side in ("top", "bottom", "insideH")
)
# A4 landscape with margins of 2 cm; widths are in twentieths of a point.
_PAGE = (
    '<w:sectPr><w:pgSz w:w="16838" w:h="11906" w:orient="landscape"/>'
    '<w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="567" w:footer="567" w:gutter="0"/>'
    "</w:sectPr>"
)
_WIDTHS = (700, 6935, 6935)
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date of a ZIP archive; fixed, so the same beads give the same bytes


def write_docx(path: str | Path, rows: Iterable[Sequence[str]], languages: Sequence[str] = ()) -> None:
    """Write rows of number, source, translation and note, atomically."""
    with whole_file(path) as hidden, ZipFile(hidden, "w") as archive:
        for name, text in (("[Content_Types].xml", _TYPES), ("_rels/.rels", _RELATIONS)):
            archive.writestr(_entry(name), text)
        with archive.open(_entry("word/document.xml"), "w", force_zip64=True) as stream:
            for part in _document(rows, tuple(languages) if len(languages) == 2 else ("", "")):
                stream.write(part.encode("utf-8"))


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name, _DATE)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _document(rows: Iterable[Sequence[str]], languages: tuple[str, ...]) -> Iterator[str]:
    yield f'{_HEAD}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:tbl>'
    yield f'<w:tblPr><w:tblW w:w="{sum(_WIDTHS)}" w:type="dxa"/><w:tblBorders>{_BORDERS}</w:tblBorders>'
    yield '<w:tblLayout w:type="fixed"/></w:tblPr><w:tblGrid>'
    yield "".join(f'<w:gridCol w:w="{width}"/>' for width in _WIDTHS) + "</w:tblGrid>"
    empty = True
    for number, source, target, note in rows:
        empty = False
        cells = [_paragraph(number), _paragraph(source, languages[0]), _paragraph(target, languages[1])]
        cells[2] += _paragraph(note, italic=True) if note else ""
        yield "<w:tr><w:trPr><w:cantSplit/></w:trPr>" + "".join(map(_cell, _WIDTHS, cells)) + "</w:tr>"
    if empty:  # a table needs at least one row
        yield "<w:tr>" + "".join(map(_cell, _WIDTHS, [_paragraph("")] * 3)) + "</w:tr>"
    yield f"</w:tbl><w:p/>{_PAGE}</w:body></w:document>"


def _cell(width: int, paragraphs: str) -> str:
    return f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{paragraphs}</w:tc>'


def _paragraph(text: str, language: str = "", italic: bool = False) -> str:
    """Return a paragraph marked with its language, from which Word chooses the spelling checker and the font."""
    code = quoteattr(language)
    style = ("<w:i/>" if italic else "") + (f"<w:lang w:val={code} w:eastAsia={code}/>" if language else "")
    properties = f"<w:rPr>{style}</w:rPr>" if style else ""
    lines = escape(NOT_XML.sub(" ", text)).splitlines() or [""]
    content = "<w:br/>".join(f'<w:t xml:space="preserve">{line}</w:t>' for line in lines)
    return f"<w:p><w:r>{properties}{content}</w:r></w:p>"
