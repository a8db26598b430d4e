"""Translation memories and terms as documents that other tools read: TMX, XLIFF and TBX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from xswe.version import __version__

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Unit(NamedTuple):
    """A text and its translation, how sure that is, and the lines they come from."""

    score: float
    source: str
    target: str
    lines: str


class Candidate(NamedTuple):
    """A term that may be a translation, a sentence with it, and what is said of it."""

    text: str
    context: str
    note: str


def _xml(text: str) -> str:
    """Escape a text, and turn what XML 1.0 cannot hold into blanks."""
    return escape(_NOT_XML.sub(" ", text))


def write_tmx(units: Iterable[Unit], languages: Sequence[str]) -> Iterator[str]:
    """TMX 1.4, valid against its document type; scores and lines are properties of the units."""
    a, b = languages
    yield f'{_HEAD}<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield f'<header creationtool="xswe" creationtoolversion="{__version__}" segtype="sentence" o-tmf="xswe" '
    yield f'adminlang="en" srclang="{a}" datatype="plaintext"/>\n<body>\n'
    for unit in units:
        lines = _xml(unit.lines).replace("\t", " ")
        yield f'<tu><prop type="x-score">{unit.score:.6f}</prop><prop type="x-lines">{lines}</prop>'
        yield f'<tuv xml:lang="{a}"><seg>{_xml(unit.source)}</seg></tuv>'
        yield f'<tuv xml:lang="{b}"><seg>{_xml(unit.target)}</seg></tuv></tu>\n'
    yield "</body>\n</tmx>\n"


def write_xliff(units: Iterable[Unit], languages: Sequence[str]) -> Iterator[str]:
    """XLIFF 1.2, a unit a pair, its score in a note."""
    yield f'{_HEAD}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    yield f'<file original="xswe" datatype="plaintext" source-language="{languages[0]}" '
    yield f'target-language="{languages[1]}">\n<body>\n'
    for number, unit in enumerate(units, 1):
        yield f'<trans-unit id="{number}"><source>{_xml(unit.source)}</source><target>{_xml(unit.target)}</target>'
        yield f"<note>score {unit.score:.6f}</note></trans-unit>\n"
    yield "</body>\n</file>\n</xliff>\n"


def write_tbx(terms: Iterable[tuple[str, Sequence[Candidate]]], languages: Sequence[str]) -> Iterator[str]:
    """TBX-Basic (ISO 30042): an entry a term with candidates, its candidates the best first, each with a sentence.

    Args:
        terms: each with its candidates.
        languages: codes of the terms' and the candidates' language.
    """
    source, target = languages

    def text(given: str) -> str:
        return _xml(" ".join(_NOT_XML.sub(" ", given).split()))

    yield f'{_HEAD}<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n'
    yield f'<martif type="TBX-Basic" xml:lang="{source}">\n<martifHeader><fileDesc><sourceDesc><p>Candidates found by '
    yield 'xswe</p></sourceDesc></fileDesc><encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc>'
    yield "</martifHeader>\n<text><body>\n"
    for number, (term, candidates) in enumerate(terms, 1):
        if not candidates:
            continue
        yield f'<termEntry id="c{number}">\n<langSet xml:lang="{source}"><tig><term>{text(term)}</term></tig></langSet>\n'
        yield f'<langSet xml:lang="{target}">\n'
        for one in candidates:
            yield f'<tig><term>{text(one.text)}</term><descrip type="context">{text(one.context)}</descrip>'
            yield f"<note>{one.note}</note></tig>\n"
        yield "</langSet>\n</termEntry>\n"
    yield "</body></text>\n</martif>\n"
