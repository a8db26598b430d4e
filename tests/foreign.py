"""Texts that each format must escape, and how other programs read the tables and pairs that hold them."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import docx
import markdown
import openpyxl
import pandas
import polib
import pyarrow.parquet
from lxml import html
from markdown_it import MarkdownIt
from openpyxl.utils.escape import unescape
from pylatexenc import latex2text, latexwalker, macrospec
from translate.storage import tmx, xliff, xliff2

from xswe.bitext.output import TABLES
from xswe.io.results import SHOWN

TEXTS = (
    *("|", "\\", r"a\|b", r"\\|", "a&b", "&amp;", "&#65;", "&copy;", "<b>", "a < b > c", "<i>x</i>", "<a@b.c>", "<!-- x"),
    *("*x*", "**x**", "* x", "_y_", "__y__", "c_d", "a__b", "~~z~~", "~", "`x`", "``", r"a\`b`", "[a](b)", "![a](b)", "#"),
    *("[^1]", "$x$", "$", "$$", "%", "50 %", "# x", "^", "x^2", "{}", "{x}", "x {: .x }", "{{ x }}", "{% x %}", r"\n", "'"),
    *('"', '"x"', "''x''", '""', ",", ",,", ";", "--", "---", "- x", "1. x", "+1", "-1", "@x", "=1+1", "=a|' /C x'!A1"),
    *("?`", r"\textbf{x}", r"\\", r"\end{tabular}", "---|---", ":-:", "x:y", "http://x.y/?a=b&c=d_e_", "www.x.y", "None"),
    *(" x", "x ", "  x  y  ", "\tx\ty", "x\ny", "x\n\ny", "x\r\ny", "x\ry", "\n", "x\x85y", "x\u2028y", "x\u2029y", " "),
    *("x\x0b\x0c\x1c\x1d\x1ey", "x\0y", "x\x01y", "\x1b[1m", "x\x7fy", "x\ud800y", "_x0041_", "x\u200dy", "\u202ex\u202c"),
    *("שלום", "a\u200f(b)", "猫が「眠る」。", "我们买“面包”。", "～", "中_文_字", "中*文*字", "ﬁ", "é", "e\u0301", "𝒳"),
    *("👩\u200d👧", "x\u3000y", "x\xa0\xa0y", "\ufeffx", "", "'x", "TRUE", "1e5", "007", "-", "x" * 40_000),
    # What may be markup in a format that is added: marks around a word, doubled, at the beginning, by themselves; brackets.
    *(
        one.format(mark)
        for mark in string.punctuation
        for one in ("{0}x{0}", "{0}{0}x{0}{0}", "{0} x", "{0}{0}{0}", "x{0}y{0}", "x {0} y")
    ),
    *(f"{opened * times}x{closed * times}" for opened, closed in ("()", "[]", "{}", "<>") for times in (1, 2, 3)),
    *(
        "(C)",
        "(R)",
        "(TM)",
        "x...",
        "x -> y",
        "x => y",
        "x <- y",
        "x <= y",
        "x -- y",
        "x--y",
        "image:a[b]",
        "link:a[b]",
        "{a}",
        "a::",
    ),
)
NAMES = ("*a|b*", "n_1", '<i> & "c"')  # of columns
CELL = 32_767  # characters that a cell of a workbook can hold


def _one_line(text: str) -> str:
    return re.sub("[ \t\n\f\r]+", " ", text).strip(" ")


def as_read(suffix: str, value: Any) -> Any:
    """Return what a table has of a text, or of None, by docs/reference/files.md."""
    if suffix in (".json", ".jsonl") or (value is None and suffix == ".parquet"):
        return value
    if value is None:
        return "-" if suffix in SHOWN else None if suffix == ".xlsx" else ""
    text = re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):x}", value)
    if suffix in SHOWN:
        return _one_line(re.sub("[\0-\x1f\x7f-\x9f\u2028\u2029]", " ", text))
    return (text[:CELL] or None) if suffix == ".xlsx" else text


class _Cells(HTMLParser):
    """The cells of the one table of a page, by rows; other elements than those of tables are a mistake."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.within = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("table", "thead", "tbody", "tr", "th", "td", *(() if self.within else ("p",))), f"<{tag}> is no text"
        assert not [name for name, _ in attrs if name != "style"], attrs
        if tag == "tr":
            self.rows.append([])
        self.within = tag in ("th", "td")
        if self.within:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.within &= tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self.within:
            self.rows[-1][-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"{data} is no text")


def of_page(page: str) -> list[list[str]]:
    """Return the rows of a page's table, as a browser shows them."""
    parser = _Cells()
    parser.feed(page)
    return [list(map(_one_line, row)) for row in parser.rows]


def has_line_feeds(path: Path) -> bool:
    """Return whether each line of a file ends in a line feed, the last one, too; True if it is no text."""
    data = path.read_bytes()
    return b"\0" in data or (b"\r" not in data and (not data or data.endswith(b"\n")))


def _separated(path: Path, separator: str) -> list[list[Any]]:
    frame = pandas.read_csv(path, sep=separator, header=None, dtype=str, keep_default_na=False, skip_blank_lines=False)
    return frame.to_numpy().tolist()


def _objects(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[*row] for row in rows[:1]] + [[*row.values()] for row in rows]


_EXTENSIONS = ["extra", *(f"pymdownx.{name}" for name in ("arithmatex", "caret", "mark", "tilde"))]


def _markdown(path: Path) -> list[list[str]]:
    """Read by the rules of CommonMark and GitHub, and by Python-Markdown, the library of MkDocs, with its extensions."""
    text = path.read_text("utf-8")
    found = of_page(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    assert of_page(markdown.markdown(text, extensions=_EXTENSIONS)) == found
    assert len(text.splitlines()) == 1 + len(found)
    return found


def _unknown(node: Any) -> str:
    raise AssertionError(f"\\{node.macroname} is unknown")


# What pylatexenc does not know of LaTeX and of booktabs.
_MACROS = [macrospec.std_macro(name, "[") for name in ("toprule", "midrule", "bottomrule")]
_MACROS += [macrospec.std_macro("symbol", "{")]
_SIGNS = {"textasciicircum": "^", "textbar": "|", "textgreater": ">", "textless": "<"}
_SIGNS |= {"symbol": lambda node: chr(int(node.nodeargd.argnlist[0].nodelist[0].chars))}


def _latex(path: Path) -> list[list[str]]:
    """Read a table by pylatexenc; a command that LaTeX does not know is a mistake, and a sign with a meaning."""
    context, signs = latexwalker.get_default_latex_context_db(), latex2text.get_default_latex_context_db()
    context.add_context_category("of tables", _MACROS, prepend=True)
    signs.add_context_category("plain", [latex2text.MacroTextSpec(*one) for one in _SIGNS.items()], prepend=True)
    signs.set_unknown_macro_spec(latex2text.MacroTextSpec("", _unknown))
    reader = latex2text.LatexNodes2Text(signs, math_mode="verbatim", strict_latex_spaces=True)
    # TeX looks for the arguments of the end of a row behind the end of the line, too.
    written = path.read_text("utf-8")
    text = re.sub(r"(\\\\|rule)\s+(?=[*\[])", r"\1", written)
    (table, rest), *_ = latexwalker.LatexWalker(text, latex_context=context, tolerant_parsing=False).get_latex_nodes()
    assert (table.environmentname, rest.chars) == ("tabular", "\n")
    rows: list[list[str]] = [[""]]
    for node in table.nodelist:
        name = getattr(node, "macroname", "")
        if name in ("\\", "toprule", "midrule", "bottomrule"):
            assert not any(node.nodeargd.argnlist), f"\\{name} has an argument"
            rows += [[""]] if name == "\\" else []
        elif getattr(node, "specials_chars", "") == "&":
            rows[-1].append("")
        else:
            assert not re.search('[#^_<>|"]|,,', getattr(node, "chars", "")), f"{node.chars} is an error or looks otherwise"
            rows[-1][-1] += reader.nodelist_to_text([node])
    assert rows.pop() == ["\n"]
    assert len(written.splitlines()) == 5 + len(rows)
    return [list(map(_one_line, row)) for row in rows]


def _sheet(path: Path) -> list[list[Any]]:
    rows = openpyxl.load_workbook(path).active.iter_rows()
    cells = [[(cell.value, cell.data_type) for cell in row] for row in rows]
    assert "f" not in {kind for row in cells for _, kind in row}, "a formula"
    return [[unescape(value) if isinstance(value, str) else value for value, _ in row] for row in cells]


# The header and the rows of a file of each format.
READ: dict[str, Callable[[Path], list[list[Any]]]] = {
    ".csv": lambda path: _separated(path, ","),
    ".json": lambda path: _objects(json.loads(path.read_text("utf-8"))),
    ".jsonl": lambda path: _objects([json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]),
    ".md": _markdown,
    ".parquet": lambda path: _objects(pyarrow.parquet.read_table(path).to_pylist()),
    ".tex": _latex,
    ".tsv": lambda path: _separated(path, "\t"),
    ".xlsx": _sheet,
}


def _units(store: type) -> Callable[[Path], list[list[str]]]:
    """Return how translate-toolkit reads the units of a memory."""

    def read(path: Path) -> list[list[str]]:
        with path.open("rb") as stream:
            return [[str(text or "") for text in (unit.source, unit.target)] for unit in store.parsefile(stream).units]

    return read


def _sides(suffix: str) -> Callable[[Path], list[list[str]]]:
    """Return how other programs read the columns of source and target of a table."""

    def read(path: Path) -> list[list[str]]:
        header, *rows = READ[suffix](path) or [[]]
        return [[row[header.index(name)] for name in ("source", "target")] for row in rows]

    return read


def _document(path: Path) -> list[list[str]]:
    (table,) = docx.Document(str(path)).tables
    return [[cell.text for cell in row.cells[1:]] for row in table.rows]


def _page(path: Path) -> list[list[str]]:
    rows = html.document_fromstring(path.read_bytes()).iter("tr")
    return [[cell.text_content() for cell in row.iter("td")][1:] for row in rows]


# Source and target of a file of pairs, by the name of its format.
READ_PAIRS: dict[str, Callable[[Path], list[list[str]]]] = {
    "catalogue": lambda path: [[entry.msgid, entry.msgstr] for entry in polib.pofile(str(path), encoding="utf-8")],
    "docx": _document,
    "html": _page,
    "laser": lambda path: [line.split("\t")[1:] for line in path.read_bytes().decode().split("\n")[:-1]],
    "tmx": _units(tmx.tmxfile),
    "xliff": _units(xliff.Xliff1File),
    "xliff2": _units(xliff2.Xliff2File),
    **{kind: _sides(suffix) for kind, suffix in TABLES.items()},
}


def as_pairs(kind: str, text: str) -> str:
    """Return what a file of pairs has of a text, by docs/reference/files.md."""
    if kind in TABLES:
        return as_read(TABLES[kind], text)
    if kind == "laser":
        return re.sub("[\0\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", " ", as_read(".tsv", text))
    if kind == "html":
        return as_read(".csv", re.sub("\r\n?", "\n", text.replace("\0", "\ufffd")))
    if kind == "catalogue":
        return re.sub("[\0\ud800-\udfff]", " ", text)
    text = re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", " ", text)  # of XML 1.0
    return "\n".join(text.splitlines()) if kind == "docx" else text
