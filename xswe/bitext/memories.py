"""Translation memories: TMX 1.4, XLIFF 1.2 and 2.0, read and written as streams.

The parser refuses external entities, entity declarations and network access; a unit is freed once it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from xswe.errors import ConfigError, InputError, needs
from xswe.io.lines import RAISES, OnError, Skipped, open_binary
from xswe.io.sources import damage
from xswe.text.languages import base_language
from xswe.version import __version__

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Pair = tuple[str, str]
Found = TypeVar("Found")
_MOST_UNIT = 16 << 20  # bytes of XML in which a unit must have come to its end
# Inline elements whose content is another format's markup, not text. Those of other names hold text.
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut", "cp"))
_FIRST = 1000  # units that say what a file's languages are
_MEMORY_CURE = "export the file again, or set on_error=skip to use what comes before the damage"


class _Watched:
    """A stream that raises an error at a unit without end, which the parser would collect in memory."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path, self._since = stream, path, 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, 1 << 16) if size > 0 else 1 << 16)
        self._since += len(data)
        if self._since > _MOST_UNIT:
            raise InputError(
                self._path, f"{_MOST_UNIT >> 20} MiB without the end of a unit", "see that the file is what it says"
            )
        return data

    def settle(self) -> None:
        """Mark the end of a unit."""
        self._since = 0


def read_tmx(path: Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped) -> Iterator[Pair]:
    """Yield the pairs of a TMX file; a unit that lacks one of the languages is counted as skipped."""
    for _, pair in units_of(path, languages, on_error=on_error, skipped=skipped):
        if pair is None:
            skipped.add("other languages")
        else:
            yield pair


def units_of(
    path: str | Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped
) -> Iterator[tuple[Element, Pair | None]]:
    """Yield the units of a TMX file with their pairs, None where one of the languages is missing.

    Languages match by their first part (``en-US`` is English). Of several variants of a language the first counts. A file
    that is damaged, or has no unit with both languages, raises InputError, unless ``on_error`` is ``skip``.
    """
    met: set[str] = set()
    fitting = False

    def pairs(unit: Element) -> Iterator[tuple[Element, Pair | None]]:
        nonlocal fitting
        found = _variants(unit)
        both = languages[0] in found and languages[1] in found
        met.update(found)
        fitting |= both
        yield unit, (found[languages[0]], found[languages[1]]) if both else None

    yield from _units(Path(path), ("tu",), lambda root: None, pairs, on_error, skipped)
    if met and not fitting and RAISES[on_error]:
        both, found = " and ".join(languages), ", ".join(sorted(met))
        raise InputError(path, f"no unit has {both}: its languages are {found}", f"give a file of {both}")


def languages_of(path: str | Path) -> tuple[str, str]:
    """Return the two languages of a TMX file, by its first units, the header's first; ConfigError: they are not two."""
    source = ""

    def begin(element: Element) -> None:
        nonlocal source
        source = source or base_language(element.get("srclang") or "")

    units = _units(Path(path), ("tu",), begin, lambda unit: iter([_variants(unit)]), "raise", Skipped())
    found = sorted(dict.fromkeys(code for unit in islice(units, _FIRST) for code in unit), key=source.__ne__)
    if len(found) != 2:
        wanted = "set languages, as in languages=[en,ja]"
        raise ConfigError(f"{path}: which of its languages ({', '.join(found) or 'none'}) are source and target? {wanted}")
    return found[0], found[1]


def read_memory(path: str | Path) -> Iterator[dict[str, str]]:
    """Yield the units of a TMX file: the texts of each by language, as many as it has."""
    return _units(Path(path), ("tu",), lambda root: None, lambda unit: iter([_variants(unit)]), "raise", Skipped())


def _variants(unit: Element) -> dict[str, str]:
    """Return the texts of a unit by the first part of their language's code; of several of one language the first."""
    found: dict[str, str] = {}
    for variant in unit.iterfind("tuv"):
        code = base_language(variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or "")
        segment = variant.find("seg")
        if segment is not None:
            found.setdefault(code, _text(segment))
    return found


def read_xliff(path: Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped) -> Iterator[Pair]:
    """Yield the segments of an XLIFF file (1.2: ``trans-unit``, 2.0: ``segment``), in either direction.

    A file of other languages raises InputError.
    """
    swapped = False

    def check(element: Element) -> None:
        """Determine the direction of the file's two languages."""
        nonlocal swapped
        source = element.get("source-language") or element.get("srcLang")
        target = element.get("target-language") or element.get("trgLang")
        if source is None or target is None:
            return
        found = (base_language(source), base_language(target))
        if set(found) != set(languages):
            raise InputError(path, f"it translates {source} to {target}", f"give a file of {' and '.join(languages)}")
        swapped = found != languages

    def pairs(unit: Element) -> Iterator[Pair]:
        """Yield the pair of a segment, if it is translated."""
        source, target = unit.find("source"), unit.find("target")
        if source is None or target is None:
            skipped.add("not translated")
            return
        a, b = _text(source), _text(target)
        yield (b, a) if swapped else (a, b)

    return _units(path, ("trans-unit", "segment"), check, pairs, on_error, skipped)


def _units(
    path: Path,
    names: tuple[str, ...],
    begin: Callable[[Element], None],
    pairs: Callable[[Element], Iterator[Found]],
    on_error: OnError,
    skipped: Skipped,
) -> Iterator[Found]:
    """Parse a file, yield from each element of the given names at its end, then drop it."""
    with needs("defusedxml", "corpora", "reading TMX and XLIFF"):
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse
    with open_binary(path) as raw:
        stream = _Watched(raw, path)
        parents: list[Element] = []
        try:
            for event, element in iterparse(stream, events=("start", "end")):
                _bare_name(element)
                if event == "start":
                    begin(element)
                    parents.append(element)
                    continue
                parents.pop()
                if element.tag in names:
                    yield from pairs(element)
                    stream.settle()
                    if parents:
                        parents[-1].clear()
        except DefusedXmlException as error:
            raise InputError(path, f"it declares entities ({type(error).__name__})", "remove the declarations") from None
        except damage(ParseError, ValueError, LookupError) as error:
            if RAISES[on_error]:
                line = getattr(error, "position", (None, None))[0]
                raise InputError(path, f"not well-formed ({error})", _MEMORY_CURE, line) from None
            skipped.add("damaged XML")


def _bare_name(element: Any) -> None:
    """Strip the namespace from an element's name: files of one format come with and without it."""
    if isinstance(element.tag, str) and element.tag.startswith("{"):
        element.tag = element.tag.partition("}")[2]


def _text(element: Element) -> str:
    """Return an element's text without the markup codes of other formats within it."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts).strip()


# What is written.


NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Unit(NamedTuple):
    """A text and its translation, how sure that is, and the lines they come from; and what a person said of it."""

    score: float
    source: str
    target: str
    lines: str
    status: str = ""
    notes: str = ""


def escaped(text: str) -> str:
    """Escape a text, and replace what XML 1.0 cannot represent with blanks."""
    from xml.sax.saxutils import escape  # which brings all that fetches from the network

    return escape(NOT_XML.sub(" ", text))


def attribute(text: str) -> str:
    """Quote a text as the value of an attribute."""
    from xml.sax.saxutils import quoteattr

    return quoteattr(NOT_XML.sub(" ", text))


def moment(date: str | None) -> datetime | None:
    """Return the time that ``date`` is, in UTC: ``now``, or as ISO 8601 writes it; None for none.

    Raises:
        ConfigError: it is neither.
    """
    if date is None:
        return None
    try:
        found = datetime.now(UTC) if date == "now" else datetime.fromisoformat(date)
    except ValueError:
        raise ConfigError(f"date={date}: write now, or a date as in 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def write_tmx(units: Iterable[Unit], languages: Sequence[str], date: str | None = None) -> Iterator[str]:
    """Yield TMX 1.4, valid against its document type; scores, lines and statuses are properties of the units."""
    a, b = languages
    return write_memory(
        (
            (
                [(a, unit.source), (b, unit.target)],
                {
                    "note": unit.notes,
                    "x-score": f"{unit.score:.6f}",
                    "x-lines": unit.lines.replace("\t", " "),
                    "x-status": unit.status,
                },
            )
            for unit in units
        ),
        a,
        date,
    )


def write_memory(
    units: Iterable[tuple[Sequence[tuple[str, str]], Mapping[str, str]]], source: str = "*all*", date: str | None = None
) -> Iterator[str]:
    """Write TMX 1.4 of units in any number of languages.

    Args:
        units: of each its texts after their languages, and its properties without the empty ones; ``note`` is a note.
        source: language of the sources.
        date: when the units were made, see :func:`moment`.
    """
    when = moment(date)
    made = f' creationdate="{when:%Y%m%dT%H%M%SZ}"' if when else ""
    yield f'{HEAD}<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield f'<header creationtool="xswe" creationtoolversion="{__version__}" segtype="sentence" o-tmf="xswe" '
    yield f'adminlang="en" srclang={attribute(source)} datatype="plaintext"{made}/>\n<body>\n'
    for texts, properties in units:
        note = f"<note>{escaped(properties['note'])}</note>" if properties.get("note") else ""
        rest = ((name, value) for name, value in properties.items() if value and name != "note")
        yield f"<tu{made}>{note}" + "".join(f'<prop type="{name}">{escaped(value)}</prop>' for name, value in rest)
        yield (
            "".join(f"<tuv xml:lang={attribute(code)}><seg>{escaped(text)}</seg></tuv>" for code, text in texts) + "</tu>\n"
        )
    yield "</body>\n</tmx>\n"


def write_xliff(
    units: Iterable[Unit], languages: Sequence[str], date: str | None = None, original: str = ""
) -> Iterator[str]:
    """Yield XLIFF 1.2, a unit a pair: translated, and signed off where a person said so; its score, and notes, are notes.

    ``original`` is the name of the source's file.
    """
    when = moment(date)
    made = f' date="{when:%Y-%m-%dT%H:%M:%SZ}"' if when else ""
    yield f'{HEAD}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    yield f'<file original={attribute(original or "xswe")} datatype="plaintext" tool-id="xswe"{made} '
    yield f"source-language={attribute(languages[0])} target-language={attribute(languages[1])}>\n"
    yield f'<header><tool tool-id="xswe" tool-name="xswe" tool-version="{__version__}"/></header>\n<body>\n'
    for number, unit in enumerate(units, 1):
        state = "translated" if unit.status in ("", "moved") else "signed-off"
        target = f'<target state="{state}">{escaped(unit.target)}</target>' if unit.target else ""
        approved = "yes" if unit.target else "no"  # else tools take a translation for a draft
        yield f'<trans-unit id="{number}" approved="{approved}"><source>{escaped(unit.source)}</source>{target}'
        yield "".join(f"<note>{escaped(note)}</note>" for note in _notes(unit)) + "</trans-unit>\n"
    yield "</body>\n</file>\n</xliff>\n"


def write_xliff2(
    units: Iterable[Unit], languages: Sequence[str], date: str | None = None, original: str = ""
) -> Iterator[str]:
    """XLIFF 2.0, as :func:`write_xliff` writes 1.2; it has no place for a date."""
    yield f'{HEAD}<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
    yield f"srcLang={attribute(languages[0])} trgLang={attribute(languages[1])}>\n"
    yield f'<file id="f1" original={attribute(original or "xswe")}>\n'
    for number, unit in enumerate(units, 1):
        notes = "".join(f"<note>{escaped(note)}</note>" for note in _notes(unit))
        state = "initial" if not unit.target else "translated" if unit.status in ("", "moved") else "final"
        target = f"<target>{escaped(unit.target)}</target>" if unit.target else ""
        yield f'<unit id="u{number}"><notes>{notes}</notes><segment state="{state}"><source>{escaped(unit.source)}</source>'
        yield f"{target}</segment></unit>\n"
    yield "</file>\n</xliff>\n"


def _notes(unit: Unit) -> list[str]:
    """Return what is written of a unit beside its texts."""
    status = f", {unit.status}" if unit.status else ""
    return [f"score {unit.score:.6f}{status}", *([unit.notes] if unit.notes else [])]
