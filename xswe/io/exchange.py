"""Translation memories and terms as documents that other tools read: TMX, XLIFF and TBX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from xswe.errors import ConfigError
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


def _attribute(text: str) -> str:
    """Quote a text as the value of an attribute."""
    return quoteattr(_NOT_XML.sub(" ", text))


def write_tmx(units: Iterable[Unit], languages: Sequence[str]) -> Iterator[str]:
    """TMX 1.4, valid against its document type; scores and lines are properties of the units."""
    a, b = languages
    sayings = (
        ([(a, unit.source), (b, unit.target)], {"x-score": f"{unit.score:.6f}", "x-lines": unit.lines.replace("\t", " ")})
        for unit in units
    )
    return write_memory(sayings, a)


def write_memory(
    units: Iterable[tuple[Sequence[tuple[str, str]], Mapping[str, str]]], source: str = "*all*"
) -> Iterator[str]:
    """TMX 1.4 of units in any number of languages.

    Args:
        units: of each its texts, with the language before each, and its properties.
        source: code of the source language.
    """
    yield f'{_HEAD}<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield f'<header creationtool="xswe" creationtoolversion="{__version__}" segtype="sentence" o-tmf="xswe" '
    yield f'adminlang="en" srclang={_attribute(source)} datatype="plaintext"/>\n<body>\n'
    for texts, properties in units:
        yield "<tu>" + "".join(f'<prop type="{name}">{_xml(value)}</prop>' for name, value in properties.items())
        yield "".join(f"<tuv xml:lang={_attribute(code)}><seg>{_xml(text)}</seg></tuv>" for code, text in texts) + "</tu>\n"
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
    return write_concepts(
        ({source: [Candidate(term, "", "")], target: candidates} if candidates else {} for term, candidates in terms),
        source,
    )


def write_concepts(concepts: Iterable[Mapping[str, Sequence[Candidate]]], source: str = "en") -> Iterator[str]:
    """TBX-Basic: an entry a concept; one without terms keeps its number, and has no entry.

    Args:
        concepts: of each language the terms that say it; contexts and notes may be empty.
        source: code of the document's language.

    Raises:
        ConfigError: there is no concept with terms, and so no document that is valid.
    """
    numbered = ((number, concept) for number, concept in enumerate(concepts, 1) if concept)
    if (first := next(numbered, None)) is None:
        raise ConfigError("no term was found, and TBX holds at least one: nothing is written; .tsv may be empty")

    def text(given: str) -> str:
        return _xml(" ".join(_NOT_XML.sub(" ", given).split()))

    def entry(one: Candidate) -> str:
        context = f'<descrip type="context">{text(one.context)}</descrip>' if one.context else ""
        return f"<tig><term>{text(one.text)}</term>{context}{f'<note>{text(one.note)}</note>' if one.note else ''}</tig>"

    yield f'{_HEAD}<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n'
    yield f'<martif type="TBX-Basic" xml:lang={_attribute(source)}>\n<martifHeader><fileDesc><sourceDesc><p>Candidates '
    yield 'found by xswe</p></sourceDesc></fileDesc><encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc>'
    yield "</martifHeader>\n<text><body>\n"
    for number, concept in chain([first], numbered):
        yield f'<termEntry id="c{number}">\n'
        for code, terms in concept.items():
            plain = len(terms) == 1 and not terms[0].context
            before, between = ("", "") if plain else ("\n", "\n")
            yield f"<langSet xml:lang={_attribute(code)}>{before}{between.join(map(entry, terms))}{before}</langSet>\n"
        yield "</termEntry>\n"
    yield "</body></text>\n</martif>\n"
