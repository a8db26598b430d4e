"""Readers of documents: plain text, Markdown, HTML, EPUB, DOCX, PDF, subtitles, as paragraphs."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from html import unescape
from html.parser import HTMLParser
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from xswe.errors import InputError, brief, needs
from xswe.io.files import check_input
from xswe.io.lines import Skipped, not_utf8, nul_byte, open_binary, read_whole
from xswe.io.sources import member_names, open_member, suffix_of

_WRAP_WIDTH = 110  # maximum columns of hard-wrapped lines, counting Han and Kana twice
_ENDS = re.compile(r"[.!?。！？…:：;；]['\"”’»)\]」』）】]*\s*$")
_LINES = re.compile(r"^[^\S\n]*+\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+", re.MULTILINE)  # runs of non-blank lines
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """
        address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 h2
        h3 h4 h5 h6 header hr html li main nav ol option p pre section summary table tbody td tfoot th thead title tr ul""",
    )
)
_ASIDE = frozenset(("nav", "footer"))
# A menu: minimum number of consecutive blocks, maximum characters of each, and minimum share of links.
_MENU_BLOCKS, _MENU_CHARACTERS, _MENU_LINKS = 3, 80, 0.6
_SILENT = frozenset(("script", "style", "template", "noscript", "svg", "rt", "rp"))


def paragraphs_of(path: str | Path, left_out: Skipped | None = None) -> list[str]:
    """Read the paragraphs of a document, in the format given by its suffix; otherwise as plain text.

    Text left out by a reader is counted in ``left_out``. InputError: the document is missing, damaged, or not UTF-8.
    DependencyError: the library for its format is not installed.
    """
    reader = READERS.get(suffix_of(path))
    if reader is None:
        text = _decoded(path)
        return [text[start:end] for start, end in paragraphs(text)]
    return [text for text in reader(Path(path), Skipped() if left_out is None else left_out) if text.strip()]


def paragraphs(text: str) -> list[tuple[int, int]]:
    """Return the spans of the paragraphs of plain text: between blank lines, or each line if lines are not wrapped.

    Lines count as wrapped if they are short, of similar length, and most lines followed by another do not end a sentence.
    """
    blocks, wrapped = list(_blocks(text)), _is_wrapped(text)
    if wrapped:
        return blocks
    out = []
    for start, end in blocks:
        for line in re.finditer(r"[^\n]+", text[start:end]):
            if line[0].strip():
                out.append((start + line.start(), start + line.end()))
    return out


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    for found in _LINES.finditer(text):
        yield found.span()


def _is_wrapped(text: str) -> bool:
    inner, widths = [], []
    for start, end in _blocks(text):
        lines = text[start:end].split("\n")
        widths += [_columns(line) for line in lines]
        inner += lines[:-1]
    if len(inner) < 2 or sorted(widths)[int(0.98 * (len(widths) - 1))] > _WRAP_WIDTH:
        return False
    # Wrapped lines are of similar length, and seldom end with a sentence.
    from statistics import median

    full = median(_columns(line) for line in inner) > 0.6 * max(widths)
    return full and sum(bool(_ENDS.search(line)) for line in inner) < 0.5 * len(inner)


def _columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def _decoded(path: str | Path) -> str:
    with open_binary(path) as stream:
        return decoded(read_whole(stream, path, "a document"), path)


def decoded(data: bytes, path: str | Path) -> str:
    """Decode UTF-8 and normalise line ends to line feeds; raise InputError for other bytes."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, 1, data, error.start) from None
    if "\0" in text:
        raise nul_byte(path, 1, data)
    return text.replace("\r\n", "\n").replace("\r", "\n")


# Markdown.

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_MARKS = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+)")
_RULE = re.compile(r"^\s{0,3}(?:=+\s*|(?:[-*_]\s*+){3,}+|(?=[^-]*+-)[\s:|-]++)$")
_INLINE = (
    (re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])"), r"\1"),
    (re.compile(r"<(https?://[^>]+|[^@>\s]+@[^>]+)>"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^>]*>|<!--.*?-->"), ""),
    (re.compile(r"(`+)(.+?)\1"), r"\2"),
    (
        re.compile(r"(?<![\w*])(\*{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w*])|(?<![\w_])(_{1,3})(?=\S)(.+?)(?<=\S)\3(?![\w_])"),
        r"\2\4",
    ),
    (re.compile(r"(?<=[^\x00-\x7f])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?=[^\x00-\x7f])"), ""),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!>|~])"), r"\1"),
)


def read_markdown(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the paragraphs, headings, list items and table cells of Markdown, without code, front matter and markup."""
    collected: list[str] = []
    for line in [*_without_code(_decoded(path)), ""]:
        marked = _MARKS.match(line)
        is_rule, cells = bool(_RULE.match(line)), line.strip().startswith("|")
        if collected and (marked or not line.strip() or is_rule or cells):
            yield _plain("\n".join(collected))
            collected = []
        while marked := _MARKS.match(line):
            line = line[marked.end() :]
        if cells and not is_rule:
            yield from (_plain(cell) for cell in line.strip().strip("|").split("|"))
        elif line.strip() and not is_rule:
            collected.append(line.strip())


def _without_code(text: str) -> Iterator[str]:
    """Yield the lines of Markdown without front matter, with lines of code blocks emptied."""
    lines, fence = text.split("\n"), ""
    if lines[0].strip() == "---" and "---" in (bare := [line.strip() for line in lines[1:]]):
        lines = lines[bare.index("---") + 2 :]
    for line in lines:
        found = _FENCE.match(line)
        if not fence and not found:
            yield line
            continue
        fence = "" if fence and found and found[1].startswith(fence) else fence or (found[1] if found else "")
        yield ""


def _plain(text: str) -> str:
    for pattern, to in _INLINE:
        text = pattern.sub(to, text)
    return text.strip()


# HTML and EPUB.


class _Block(NamedTuple):
    """The text of an HTML block, its share of link text, and whether it is outside the page's main content."""

    text: str
    linked: float
    aside: bool


class _Text(HTMLParser):
    """Collector of the text of blocks, with entities resolved and whitespace collapsed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[_Block] = []
        self._held: list[str] = []
        self._silent: list[str] = []
        self._linked = self._links = self._asides = 0

    def _count(self, tag: str, more: int) -> None:
        self._links = max(0, self._links + more * (tag == "a"))
        self._asides = max(0, self._asides + more * (tag in _ASIDE))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """End a block before a tag that begins one, and skip the text of scripts and styles."""
        if tag in _SILENT:
            self._silent.append(tag)
        if tag in _BLOCKS:
            self.end_block()
        self._count(tag, 1)

    def handle_endtag(self, tag: str) -> None:
        """End a block, or the skipped text, at its closing tag."""
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        if tag in _BLOCKS:
            self.end_block()
        self._count(tag, -1)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._held.append(data)
            self._linked += len("".join(data.split())) if self._links else 0

    def end_block(self) -> None:
        """Add the collected text as a paragraph."""
        if text := " ".join("".join(self._held).split()):
            self.found.append(_Block(text, self._linked / len(text.replace(" ", "")), self._asides > 0))
        self._held, self._linked = [], 0


def _html_blocks(text: str) -> list[_Block]:
    parser = _Text()
    parser.feed(text)
    parser.close()
    parser.end_block()
    return parser.found


def html_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of HTML: the text of its blocks, without scripts, styles and ruby readings."""
    return [block.text for block in _html_blocks(text)]


def read_html(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the paragraphs of an HTML file in UTF-8, without navigation and footers.

    These are the ``nav`` and ``footer`` elements, and runs of short blocks that consist mostly of links.
    """
    for menu, blocks in groupby(_html_blocks(_decoded(path)), key=_is_menu):
        run = list(blocks)
        kept = [block.text for block in run if not block.aside and not (menu and len(run) >= _MENU_BLOCKS)]
        left_out.add("paragraphs of navigation and footers", len(run) - len(kept))
        yield from kept


def _is_menu(block: _Block) -> bool:
    return block.linked > _MENU_LINKS and len(block.text) < _MENU_CHARACTERS and not _ENDS.search(block.text)


def read_epub(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the paragraphs of an EPUB in the order of its spine."""
    names = member_names(path)
    package = next((name for name in names if name.endswith(".opf")), None)
    if package is None:
        raise InputError(path, "no EPUB: it holds no package document (.opf)", "see that the file is what its name says")
    tree = _xml(_member(path, package), path)
    items = {item.get("id"): item.get("href") for item in tree.iter("{*}item")}
    folder = posixpath.dirname(package)
    for reference in tree.iter("{*}itemref"):
        if not (href := items.get(reference.get("idref"))):
            continue
        name = posixpath.normpath(posixpath.join(folder, unquote(href)))
        if name not in names:
            raise InputError(path, f"its spine names {name}, which is not in it", "fetch the file again")
        if name.lower().endswith((".xhtml", ".html", ".htm", ".xml")):
            yield from html_paragraphs(decoded(_member(path, name), f"{path}/{name}"))


def _member(path: Path, name: str) -> bytes:
    with open_member(path, name) as stream:
        return read_whole(stream, path, name)


def _xml(data: bytes, path: Path) -> Any:
    with needs("lxml", "documents", "reading EPUB"):
        from lxml import etree
    safe = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(data, safe)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(path, f"not well-formed ({error})", "fetch the file again") from None


# DOCX and PDF.


_REMOVED = frozenset(("del", "moveFrom"))  # deletions in tracked changes
# Also without text: fallback copies of newer elements, ruby readings, and properties.
_NO_DOCX_TEXT = _REMOVED | {"Fallback", "rt", "pPr", "rPr", "tblPr", "tcPr", "sectPr", "instrText", "delText"}
_DOCX_MARKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def read_docx(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the paragraphs of a DOCX file in order: of its text, cells, text boxes, footnotes and endnotes.

    Tracked insertions are included, deletions are not. A footnote follows the paragraph that refers to it; endnotes come
    last.
    """
    check_input(path)
    names = member_names(path)
    if "word/document.xml" not in names:
        raise InputError(path, "not a DOCX file (no word/document.xml)", "save it again as .docx")
    body = _xml(_member(path, "word/document.xml"), path)
    kinds = ("footnote", "endnote")
    notes = [_docx_notes(path, kind) if f"word/{kind}s.xml" in names else {} for kind in kinds]
    left_out.add("passages deleted by tracked changes", sum(1 for _ in body.iter(*(f"{{*}}{name}" for name in _REMOVED))))
    left_out.add("headers and footers", sum(bool(re.fullmatch(r"word/(header|footer)\d*\.xml", name)) for name in names))
    left_out.add("comments", len(_xml(_member(path, "word/comments.xml"), path)) if "word/comments.xml" in names else 0)
    at_end: list[str] = []
    for paragraph in _docx_paragraphs(body):
        yield from _docx_lines(paragraph)
        for number in _references(paragraph, kinds[0]):
            yield from notes[0].get(number, ())
        for number in _references(paragraph, kinds[1]):
            at_end += notes[1].get(number, ())
    yield from at_end


def _docx_notes(path: Path, kind: str) -> dict[str, list[str]]:
    """Map the numbers of footnotes or endnotes to their paragraphs, skipping separators, which have a type."""
    found = {}
    for note in _xml(_member(path, f"word/{kind}s.xml"), path).iter(f"{{*}}{kind}"):
        if _attribute(note, "type") in ("", "normal"):
            found[_attribute(note, "id")] = [
                line for paragraph in _docx_paragraphs(note) for line in _docx_lines(paragraph)
            ]
    return found


def _references(paragraph: Any, kind: str) -> list[str]:
    """Return the numbers of the notes that a paragraph refers to, outside its text boxes."""
    return [_attribute(part, "id") for part in _docx_parts(paragraph) if local_name(part.tag) == f"{kind}Reference"]


def _attribute(element: Any, name: str) -> str:
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


@lru_cache
def local_name(tag: Any) -> str:
    """Return the name of an XML element without its namespace; "" for other nodes, such as entities."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _docx_paragraphs(element: Any) -> Iterator[Any]:
    """Yield the paragraphs within an element, each followed by those of its text boxes, without deleted table rows."""
    waiting = [element]
    while waiting:
        here = waiting.pop()
        name = local_name(here.tag)
        if name in _NO_DOCX_TEXT or (name == "tr" and here.find("{*}trPr/{*}del") is not None):
            continue
        if name == "p":
            yield here
        waiting += reversed(here)


def _docx_parts(paragraph: Any) -> Iterator[Any]:
    """Yield the elements of a paragraph in order, except those of paragraphs nested in it."""
    waiting = list(reversed(paragraph))
    while waiting:
        here = waiting.pop()
        if local_name(here.tag) not in _NO_DOCX_TEXT and local_name(here.tag) != "txbxContent":
            yield here
            waiting += reversed(here)


def _docx_lines(paragraph: Any) -> list[str]:
    texts = (
        part.text or "" if local_name(part.tag) == "t" else _DOCX_MARKS.get(local_name(part.tag), "")
        for part in _docx_parts(paragraph)
    )
    return [line for line in "".join(texts).split("\n") if line.strip()]


def read_pdf(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the paragraphs of a PDF's text, as far as its lines show them; a page break does not end a paragraph."""
    with needs("pypdf", "documents", "reading PDF"):
        import pypdf
    check_input(path)
    try:
        pages = [page.extract_text() or "" for page in pypdf.PdfReader(str(path)).pages]
    except Exception as error:  # the library raises errors of many types
        raise InputError(path, f"not a PDF file ({brief(error, 200)})", "save it again as .pdf") from None
    text = re.sub(r"(?<=\w)-\n(?=[a-zäöüß])", "", "\n".join(page.strip() for page in pages))
    for start, end in paragraphs(text):
        yield text[start:end]


# Subtitles.

_DASH = re.compile(r"^[-\u2010-\u2015]\s*(?=[^\W\d_])")  # before the words of another speaker
_MARKED = 0.25  # share of subtitles that end a sentence from which on the others go on in the next one
_PAUSE = 3000  # milliseconds without a subtitle, after which a sentence does not go on
_AT_ONCE = 100  # milliseconds from one subtitle to the next, at most, if the next one shows a line again


def read_subtitles(path: Path, left_out: Skipped) -> Iterator[str]:
    """Yield the texts of subtitles, joined up to the mark that ends a sentence; each by itself if few have such marks.

    A line that begins with a dash is of another speaker. Times, styles and comments are left out, and lines that the next
    subtitle shows again, as those that scroll.
    """
    with needs("pysubs2", "documents", "reading subtitles"):
        import pysubs2
    content = _decoded(path)
    try:
        events = pysubs2.SSAFile.from_string(content, format_=suffix_of(path)[1:]).events
    except (pysubs2.Pysubs2Error, ValueError) as error:
        raise InputError(path, f"no subtitles ({brief(error)})", "save it again as .srt") from None
    if content.strip() and not events:
        raise InputError(path, "no subtitle in it", "see that the file is what its name says")
    texts = list(_subtitles(sorted(events, key=lambda event: event.start), left_out))
    joined = sum(bool(_ENDS.search(text)) for text, _ in texts) >= _MARKED * len(texts)
    paragraph = ""
    for text, goes_on in texts:
        if paragraph and goes_on and joined and not _ENDS.search(paragraph):
            paragraph += f"\n{text}"
        else:
            yield paragraph
            paragraph = text
    yield paragraph


def _subtitles(events: list[Any], left_out: Skipped) -> Iterator[tuple[str, bool]]:
    """Yield what is said, by one speaker at a time, and whether it may go on from what is before it."""
    before, start, end = list[str](), 0, 0  # of the subtitle before
    for event in events:
        lines = [line.strip() for line in unescape(event.plaintext).split("\n") if line.strip()]
        if event.is_comment or event.is_drawing or not lines:
            continue
        if lines == before and event.start == start:  # in two styles
            left_out.add("lines shown again", len(lines))
            continue
        shown, at_once = lines, event.start - end <= _AT_ONCE
        if before[-1:] == lines[:1] and at_once and (len(lines) > 1 or event.duration <= _AT_ONCE):
            left_out.add("lines shown again")
            lines = lines[1:]
        goes_on = event.start - end <= _PAUSE
        speakers = [row for row, line in enumerate(lines) if not row or _DASH.match(line)]
        for row, stop in pairwise([*speakers, len(lines)]):
            text = "\n".join(lines[row:stop])
            yield _DASH.sub("", text), goes_on and not row and not _DASH.match(text)
        before, start, end = shown, event.start, event.end


# The formats of documents; the verbs' help lists them from here.
READERS: dict[str, Callable[[Path, Skipped], Iterator[str]]] = {
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".epub": read_epub,
    ".docx": read_docx,
    ".pdf": read_pdf,
    ".srt": read_subtitles,
    ".vtt": read_subtitles,
    ".ass": read_subtitles,
    ".ssa": read_subtitles,
}
