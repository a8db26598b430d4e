"""Terms in several languages: reading TBX, and writing TBX-Basic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from xswe.bitext.memories import HEAD, LANG, NOT_XML, attribute, elements, escaped
from xswe.errors import ConfigError
from xswe.io.lines import Skipped
from xswe.text.languages import base_language
from xswe.text.readers import local_name


class Candidate(NamedTuple):
    """A term or candidate translation, a sentence with it, a note, and its part of speech as TBX-Basic names it."""

    text: str
    context: str = ""
    note: str = ""
    part_of_speech: str = ""


def read_tbx(path: Path, source: str, target: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the terms of TBX 2008 or 2019, each with a translation, and whether that may be used.

    InputError: the file is missing or not well-formed.
    """
    for _, entry in elements(path, ("termEntry", "conceptEntry"), (), "raise", Skipped()):
        found: defaultdict[str, list[tuple[str, bool]]] = defaultdict(list)
        for section in entry.iterchildren("{*}langSet", "{*}langSec"):
            found[base_language(section.get(LANG) or "")] += filter(None, map(_term_of, section))
        for a, _ in found[source]:
            yield from ((a, b, allowed) for b, allowed in found[target])


def _term_of(group: Any) -> tuple[str, bool] | None:
    """Return the term of a group, and whether it may be used."""
    texts = {local_name(one.tag): " ".join("".join(one.itertext()).split()) for one in group.iter()}
    notes = {one.get("type"): (one.text or "").strip() for one in group.iter("{*}termNote", "{*}administrativeStatus")}
    status = notes.get("administrativeStatus") or texts.get("administrativeStatus", "")
    return (texts["term"], not status.startswith("deprecated")) if texts.get("term") else None


def write_tbx(terms: Iterable[tuple[str, Sequence[Candidate]]], languages: Sequence[str]) -> Iterator[str]:
    """Yield TBX-Basic (ISO 30042): one entry per term with candidates, the best first, each with a sentence."""
    source, target = languages
    return write_concepts(
        ({source: [Candidate(term)], target: candidates} if candidates else {} for term, candidates in terms),
        source,
    )


def write_concepts(concepts: Iterable[Mapping[str, Sequence[Candidate]]], source: str = "en") -> Iterator[str]:
    """Yield TBX-Basic: one entry per concept; a concept without terms uses up a number, but has no entry.

    Each concept maps languages to terms, whose contexts and notes may be empty; ``source`` is the language of the
    document. ConfigError: there is no term at all, so no valid document.
    """
    numbered = ((number, concept) for number, concept in enumerate(concepts, 1) if concept)
    if (first := next(numbered, None)) is None:
        raise ConfigError("no term was found, and TBX holds at least one: nothing is written; .tsv may be empty")

    def text(given: str) -> str:
        return escaped(" ".join(NOT_XML.sub(" ", given).split()))

    def entry(one: Candidate) -> str:
        kind = f'<termNote type="partOfSpeech">{one.part_of_speech}</termNote>' if one.part_of_speech else ""
        context = f'<descrip type="context">{text(one.context)}</descrip>' if one.context else ""
        note = f"<note>{text(one.note)}</note>" if one.note else ""
        return f"<tig><term>{text(one.text)}</term>{kind}{context}{note}</tig>"

    yield f'{HEAD}<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n'
    yield f'<martif type="TBX-Basic" xml:lang={attribute(source)}>\n<martifHeader><fileDesc><sourceDesc><p>Candidates '
    yield 'found by xswe</p></sourceDesc></fileDesc><encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc>'
    yield "</martifHeader>\n<text><body>\n"
    for number, concept in chain([first], numbered):
        yield f'<termEntry id="c{number}">\n'
        for code, terms in concept.items():
            plain = len(terms) == 1 and not terms[0].context
            before, between = ("", "") if plain else ("\n", "\n")
            yield f"<langSet xml:lang={attribute(code)}>{before}{between.join(map(entry, terms))}{before}</langSet>\n"
        yield "</termEntry>\n"
    yield "</body></text>\n</martif>\n"
