"""Translation memories: TMX 1.4, XLIFF 1.2 and 2.0, read and written as streams.

The parser refuses external entities, entity declarations and network access; units are freed once they are read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from xswe.bitext.formats import Described
from xswe.errors import ConfigError, InputError, needs
from xswe.io.lines import RAISES, OnError, Skipped, open_binary, read_whole
from xswe.io.sources import damage
from xswe.text.languages import base_language
from xswe.text.readers import local_name
from xswe.version import __version__

MemoryUnit = tuple[int, Any, tuple[str, str] | str]  # number from 1, element, and both texts or the reason for having none
_MAX_UNIT_BYTES = 16 << 20
# Inline elements whose content is another format's markup, not text. All others hold text.
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut", "cp"))
LANG = "{http://www.w3.org/XML/1998/namespace}lang"
SEGMENTS = ("trans-unit", "segment")
logger = logging.getLogger(__name__)
_base = lru_cache(base_language)
_FILES = ("xliff", "file")  # elements of XLIFF that name the languages
_FIRST_UNITS = 1000  # from which the languages of a file are read
_PLACE = re.compile(r"(?:, use XML_PARSE_HUGE option)?, line \d+, column \d+.*", re.DOTALL)  # in messages of libxml2
_SAFE: Any = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": True}
_MEMORY_HINT = "export the file again, or set on_error=skip to use what comes before the damage"


class _LimitedStream:
    """A stream that raises an error at an endless unit, which the parser would collect in memory."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path, self._since = stream, path, 0

    def read(self, size: int) -> bytes:
        """Read a chunk. InputError: a unit is too long."""
        data = self._stream.read(size)
        self._since += len(data)
        if self._since > _MAX_UNIT_BYTES:
            raise InputError(
                self._path, f"{_MAX_UNIT_BYTES >> 20} MiB without the end of a unit", "see that the file is what it says"
            )
        return data

    def mark_unit_end(self) -> bool:
        """Reset the count; return True if anything was read since the last unit."""
        since, self._since = self._since, 0
        return since > 0


def tmx_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[MemoryUnit]:
    """Yield the units of a TMX file; those without one of the languages have no texts.

    Languages match by their first part (``en-US`` is English). Of several variants in one language, the first is used. A
    file that is damaged, or has no unit with both languages, raises InputError, unless ``on_error`` is ``skip``.
    """
    path, (a, b), met, fitting = source.paths[0], source.languages, set[str](), False
    for number, (_, unit) in enumerate(elements(Path(path), ("tu",), (), source.on_error, skipped), 1):
        found = _variants(unit)
        both = a in found and b in found
        met.update(found)
        fitting |= both
        yield number, unit, (found[a], found[b]) if both else "other languages"
    if met and not fitting and RAISES[source.on_error]:
        problem = f"no unit has {a} and {b}: its languages are {', '.join(sorted(met))}"
        raise InputError(path, problem, f"give a file of {a} and {b}")


def named_codes(path: str | Path) -> list[str]:
    """Return the language codes in the first units of a TMX or XLIFF file, each once, the source's first."""
    source, met = "", dict[str, None]()
    for event, element in islice(elements(Path(path), ("tu",), ("header", *_FILES), "raise", Skipped()), _FIRST_UNITS):
        if event == "start":
            source = source or base_language(element.get("srclang") or "")
            if (both := _directions(element)) is not None:
                return list(both)
        else:
            met |= dict.fromkeys(one.get(LANG) or one.get("lang") or "" for one in element.iterfind("{*}tuv"))
    return sorted(met, key=lambda code: base_language(code) != source)


def languages_of(path: str | Path) -> tuple[str, str]:
    """Return the two languages of a TMX or XLIFF file, the source first; ConfigError: it does not have two."""
    found = list(dict.fromkeys(map(base_language, named_codes(path))))
    if len(found) != 2:
        wanted = "set languages, as in languages=[en,ja]"
        raise ConfigError(f"{path}: which of its languages ({', '.join(found) or 'none'}) are source and target? {wanted}")
    return found[0], found[1]


def read_memory(path: str | Path) -> Iterator[dict[str, str]]:
    """Yield the units of a TMX file: the texts of each, by language."""
    return (_variants(unit) for _, unit in elements(Path(path), ("tu",), (), "raise", Skipped()))


def _variants(unit: Any) -> dict[str, str]:
    """Return the texts of a unit by the first part of the language code; of several in one language, the first."""
    found: dict[str, str] = {}
    for variant in unit:
        if local_name(variant.tag) != "tuv":
            continue
        for segment in variant:
            if local_name(segment.tag) == "seg":
                found.setdefault(_base(variant.get(LANG) or variant.get("lang") or ""), _text(segment))
                break
    return found


def xliff_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[MemoryUnit]:
    """Yield all segments of an XLIFF file (1.2: ``trans-unit``, 2.0: ``segment``); a missing side is an empty text.

    Their direction is that of the source's languages, or the file's own if it has none. A file of other languages raises
    InputError.
    """
    swapped, number, languages = False, 0, source.languages
    for event, element in elements(Path(source.paths[0]), SEGMENTS, _FILES, source.on_error, skipped):
        if event == "start":
            if (both := _directions(element)) is None or not languages:
                continue
            found = (base_language(both[0]), base_language(both[1]))
            if set(found) != set(languages):
                problem = f"it translates {both[0]} to {both[1]}"
                raise InputError(source.paths[0], problem, f"give a file of {' and '.join(languages)}")
            swapped = found != tuple(languages)
            continue
        number += 1
        sides = [next(element.iterchildren(f"{{*}}{side}"), None) for side in ("source", "target")]
        a, b = ("" if side is None else _text(side) for side in sides)
        yield number, element, (b, a) if swapped else (a, b)


def unit_notes(segment: Any) -> tuple[str, list[str]]:
    """Return the unit id of an XLIFF segment, and its notes: the unit's, and its own, as translate-toolkit writes them."""
    unit, found = segment, list(segment.iterfind("{*}note"))
    if segment.tag.endswith(SEGMENTS[1]):
        unit = segment.getparent()
        found = [note for element in (unit, segment) for note in element.iterfind("{*}notes/{*}note")]
    notes = ((note.text or "").strip() for note in found)
    return unit.get("id") or "", [note for note in notes if note]


def unit_properties(unit: Any) -> tuple[str, str, dict[str, str]]:
    """Return the id of a TMX unit, its notes, and its properties, named without ``x-``."""
    properties = {(one.get("type") or "").removeprefix("x-"): (one.text or "").strip() for one in unit.iterfind("{*}prop")}
    notes = "\n".join((one.text or "").strip() for one in unit.iterfind("{*}note"))
    return unit.get("tuid") or "", notes, properties


def _directions(element: Any) -> tuple[str, str] | None:
    """Return the source and target language that an XLIFF element names, None if it names none."""
    source = element.get("source-language") or element.get("srcLang")
    target = element.get("target-language") or element.get("trgLang")
    return None if source is None or target is None else (source, target)


def elements(
    path: Path, units: tuple[str, ...], opening: tuple[str, ...], on_error: OnError, skipped: Skipped
) -> Iterator[tuple[str, Any]]:
    """Parse a file; yield ("start", element) for ``opening`` elements, ("end", unit) for ``units``, freed after that."""
    with needs("lxml", "corpora", "reading TMX and XLIFF"):
        from lxml import etree
    names = [f"{{*}}{name}" for name in (*units, *opening)]
    with open_binary(path) as raw:
        stream = _LimitedStream(raw, path)
        how: Any = {"tag": names, "remove_comments": True, "remove_pis": True, **_SAFE}
        how["events"] = ("start", "end") if opening else ("end",)
        first = True
        try:
            for event, element in etree.iterparse(stream, **how):
                if first:
                    first = False
                    _check_declarations(element, path)
                if local_name(element.tag) in (opening if event == "start" else units):
                    yield event, element
                    if event == "end" and stream.mark_unit_end():
                        _drop_before(element)
        except damage(etree.XMLSyntaxError, ValueError, LookupError, RecursionError) as error:
            if RAISES[on_error]:
                line = getattr(error, "position", (None, None))[0] or None
                problem = _PLACE.sub("", str(error)).strip()
                raise InputError(path, f"not well-formed ({problem})", _MEMORY_HINT, line) from None
            skipped.add("damaged XML")
            _warn_of_damage(path)


@lru_cache
def _warn_of_damage(path: Path) -> None:
    """Warn, once even if a file is read several times, of the units after the damage, which cannot be counted."""
    logger.warning("%s: damaged; what comes after the damage is left out", path)


def _drop_before(element: Any) -> None:
    """Free the elements before a unit, except those that contain it."""
    while (parent := element.getparent()) is not None:
        if local_name(parent.tag) != "unit":
            del parent[: parent.index(element)]
        element = parent


def _check_declarations(element: Any, path: Path) -> None:
    """Raise InputError if a document declares entities."""
    declared = element.getroottree().docinfo.internalDTD
    if declared is not None and (names := [entity.name for entity in declared.iterentities()]):
        raise InputError(path, f"it declares entities ({', '.join(names[:3])})", "remove the declarations")


def _text(element: Any) -> str:
    """Return an element's text without inline markup of other formats."""
    if not len(element):
        return (element.text or "").strip()
    parts = [element.text or ""]
    for child in element:
        if not isinstance(child.tag, str):
            raise ValueError(f"undefined entity {child.text}")
        if local_name(child.tag) not in _CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts).strip()


def copy_xliff(path: str, output: Path, kept: Mapping[int, float], scored: bool) -> None:
    """Copy an XLIFF file with only the segments ``kept`` (0-based number: score), with scores as notes if ``scored``."""
    from lxml import etree

    safe = etree.XMLParser(**_SAFE)
    with open_binary(path) as stream:
        tree = etree.ElementTree(etree.fromstring(read_whole(stream, path, "an XLIFF file to be copied"), safe))
    wanted = [f"{{*}}{name}" for name in SEGMENTS]
    for number, segment in enumerate(list(tree.getroot().iter(*wanted))):
        unit = segment if etree.QName(segment).localname == SEGMENTS[0] else segment.getparent()
        if number not in kept:
            parent = segment.getparent()
            _remove(segment)
            if parent is unit and unit.find("{*}segment") is None:
                _remove(unit)
        elif scored:
            space = etree.QName(segment).namespace
            notes = unit
            if unit is not segment and (notes := unit.find("{*}notes")) is None:
                notes = etree.Element(etree.QName(space, "notes"))
                unit.insert(0, notes)
            etree.SubElement(notes, etree.QName(space, "note")).text = f"score {kept[number]:.6f}"
    tree.write(str(output), encoding="UTF-8", xml_declaration=True)


def _remove(element: Any) -> None:
    """Remove an element from its tree, but keep the text after it."""
    parent, before = element.getparent(), element.getprevious()
    if element.tail and before is not None:
        before.tail = (before.tail or "") + (element.tail if element.tail.strip() else "")
    parent.remove(element)


# Writing.


_NMTOKEN = re.compile(r"[\w.:-]+")
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Unit(NamedTuple):
    """A text and its translation, with score, lines, a person's verdict (``status``), notes and id."""

    score: float | None
    source: str
    target: str
    lines: str
    status: str = ""
    notes: str = ""
    id: str = ""


def escaped(text: str) -> str:
    """Escape a text for XML, and replace what XML 1.0 cannot represent with blanks."""
    from xml.sax.saxutils import escape  # imports urllib

    return escape(NOT_XML.sub(" ", text), {"\r": "&#13;"})  # as it is, it is read as a line feed


def attribute(text: str) -> str:
    """Quote a text as an attribute value."""
    from xml.sax.saxutils import quoteattr

    return quoteattr(NOT_XML.sub(" ", text))


def moment(date: str | None) -> datetime | None:
    """Return ``date``, ``now`` or in ISO 8601, as a time in UTC; None for None. ConfigError: it is neither."""
    if date is None:
        return None
    try:
        found = datetime.now(UTC) if date == "now" else datetime.fromisoformat(date)
    except ValueError:
        raise ConfigError(f"date={date}: write now, or a date as in 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def write_tmx(units: Iterable[Unit], languages: Sequence[str], date: str | None = None) -> Iterator[str]:
    """Yield TMX 1.4, valid against its DTD; scores, lines and statuses are properties of the units."""
    a, b = languages
    return write_memory(
        (
            (
                [(a, unit.source), (b, unit.target)],
                {
                    "tuid": unit.id,
                    "note": unit.notes,
                    "x-score": "" if unit.score is None else f"{unit.score:.6f}",
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
    """Yield TMX 1.4 of units in any number of languages, created at ``date`` (see :func:`moment`).

    A unit is a list of (language, text) and a mapping of properties, of which empty ones are left out; ``note`` becomes a
    note, ``tuid`` the id.
    """
    when = moment(date)
    made = f' creationdate="{when:%Y%m%dT%H%M%SZ}"' if when else ""
    yield f'{HEAD}<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield f'<header creationtool="xswe" creationtoolversion="{__version__}" segtype="sentence" o-tmf="xswe" '
    yield f'adminlang="en" srclang={attribute(source)} datatype="plaintext"{made}/>\n<body>\n'
    for texts, properties in units:
        note = f"<note>{escaped(properties['note'])}</note>" if properties.get("note") else ""
        rest = ((name, value) for name, value in properties.items() if value and name not in ("note", "tuid"))
        name = f" tuid={attribute(properties['tuid'])}" if properties.get("tuid") else ""
        yield f"<tu{name}{made}>{note}" + "".join(f'<prop type="{name}">{escaped(value)}</prop>' for name, value in rest)
        yield (
            "".join(f"<tuv xml:lang={attribute(code)}><seg>{escaped(text)}</seg></tuv>" for code, text in texts) + "</tu>\n"
        )
    yield "</body>\n</tmx>\n"


def write_xliff(
    units: Iterable[Unit], languages: Sequence[str], date: str | None = None, original: str = ""
) -> Iterator[str]:
    """Yield XLIFF 1.2, one unit per pair: translated, or signed off if a person said so, with score and notes as notes.

    ``original`` is the name of the source file.
    """
    when = moment(date)
    made = f' date="{when:%Y-%m-%dT%H:%M:%SZ}"' if when else ""
    yield f'{HEAD}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    yield f'<file original={attribute(original or "xswe")} datatype="plaintext" tool-id="xswe"{made} xml:space="preserve" '
    yield f"source-language={attribute(languages[0])} target-language={attribute(languages[1])}>\n"
    yield f'<header><tool tool-id="xswe" tool-name="xswe" tool-version="{__version__}"/></header>\n<body>\n'
    ids: set[str] = set()
    for number, unit in enumerate(units, 1):
        name = _unused(unit.id, str(number), ids)
        state = "translated" if unit.status in ("", "moved") else "signed-off"
        target = f'<target state="{state}">{escaped(unit.target)}</target>' if unit.target else ""
        approved = "yes" if unit.target else "no"  # tools take a unit that is not approved for a draft
        yield f'<trans-unit id={attribute(name)} approved="{approved}"><source>{escaped(unit.source)}</source>{target}'
        yield "".join(f"<note>{escaped(note)}</note>" for note in _notes(unit)) + "</trans-unit>\n"
    yield "</body>\n</file>\n</xliff>\n"


def write_xliff2(
    units: Iterable[Unit], languages: Sequence[str], date: str | None = None, original: str = ""
) -> Iterator[str]:
    """Yield XLIFF 2.0, as :func:`write_xliff` does 1.2; it cannot hold a date."""
    yield f'{HEAD}<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
    yield f"srcLang={attribute(languages[0])} trgLang={attribute(languages[1])}>\n"
    yield f'<file id="f1" original={attribute(original or "xswe")} xml:space="preserve">\n'
    ids: set[str] = set()
    for number, unit in enumerate(units, 1):
        name = _unused(unit.id if _NMTOKEN.fullmatch(unit.id) else "", f"u{number}", ids)
        notes = "".join(f"<note>{escaped(note)}</note>" for note in _notes(unit))
        state = "initial" if not unit.target else "translated" if unit.status in ("", "moved") else "final"
        target = f"<target>{escaped(unit.target)}</target>" if unit.target else ""
        beside = f"<notes>{notes}</notes>" if notes else ""
        yield f'<unit id={attribute(name)}>{beside}<segment state="{state}"><source>{escaped(unit.source)}</source>'
        yield f"{target}</segment></unit>\n"
    yield "</file>\n</xliff>\n"


def _unused(wanted: str, other: str, ids: set[str]) -> str:
    """Return an unused id: the wanted one, or one made from ``other``."""
    while not wanted or wanted in ids:
        wanted, other = other, f"{other}x"
    ids.add(wanted)
    return wanted


def _notes(unit: Unit) -> list[str]:
    """Return the notes to write with a unit: its score and status, and its own notes."""
    status = f", {unit.status}" if unit.status else ""
    score = [] if unit.score is None else [f"score {unit.score:.6f}{status}"]
    return score + ([unit.notes] if unit.notes else [])
