"""Translation memories and catalogues as pairs: TMX 1.4, XLIFF 1.2 and 2.0, streamed, and gettext's PO and MO.

The parser refuses external entities, entity declarations and network access; a unit is freed once it is read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from xswe.errors import ConfigError, InputError, brief, needs
from xswe.io.lines import RAISES, OnError, Skipped, open_binary, read_whole
from xswe.io.sources import damage
from xswe.text.languages import base_language

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


# Message catalogues of programs: gettext PO and MO.


# What a line of a message, its keyword or not, must be: the library takes half a string for an empty one.
_STRING = re.compile(r'(?:msg[a-z_]+(?:\[\d+\])?\s*)?"(?:[^"\\]|\\.)*"')
_CATALOGUE_CURE = "check it with msgfmt -c, or set on_error=skip to leave the file out"


def read_catalogue(
    path: Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped
) -> Iterator[tuple[str, str]]:
    """Yield (message, translation) of a ``.po`` or ``.mo`` file.

    Untranslated, fuzzy and obsolete entries are counted as skipped; of plural forms the singular is used. Messages are in
    the first language, unless the catalogue's header names that as the language of its translations.
    """
    with needs("polib", "corpora", "reading gettext catalogues"):
        import polib
    with open_binary(path) as stream:
        try:
            raw = read_whole(stream, path, "a catalogue")
            if path.suffix == ".mo":
                _check_compiled(raw)
            else:
                _check_strings(raw.decode("utf-8"))
            catalogue: Any = polib.mofile(str(path)) if path.suffix == ".mo" else polib.pofile(raw.decode("utf-8"))
            # Entries of a compiled catalogue are neither fuzzy nor obsolete, and do not know the words.
            states = [getattr(e, "fuzzy", False) or bool(e.obsolete) for e in catalogue]
            entries = [(e.msgid, e.msgstr or e.msgstr_plural.get(0, "")) for e in catalogue]
        except Exception as error:  # what polib raises for damage ranges from OSError to IndexError and struct.error
            if RAISES[on_error]:
                if isinstance(error, InputError):
                    raise
                line = error.line if isinstance(error, _NotAString) else None
                raise InputError(path, f"not a gettext catalogue ({brief(error)})", _CATALOGUE_CURE, line) from None
            skipped.add("damaged catalogue")
            return
    language = str(catalogue.metadata.get("Language", "")).replace("_", "-").split("-")[0].lower()
    swapped = language == languages[0]
    for (message, translation), stale in zip(entries, states, strict=True):
        if stale:
            skipped.add("fuzzy or obsolete")
        elif not translation:
            skipped.add("not translated")
        else:
            yield (translation, message) if swapped else (message, translation)


class _NotAString(ValueError):
    """A line that should be a quoted string."""

    def __init__(self, line: int) -> None:
        super().__init__("no text in quotes")
        self.line = line


def _check_strings(text: str) -> None:
    """Raise an error if a string lacks one of its quotes."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if (line := line.strip()).startswith(("msg", '"')) and not _STRING.fullmatch(line):
            raise _NotAString(number)


def _check_compiled(raw: bytes) -> None:
    """Raise an error if a string of a compiled catalogue is outside the file, which the library does not check."""
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(raw[:4])
    if order is None:
        raise ValueError("no MO file")
    _, count, *tables = struct.unpack_from(f"{order}4I", raw, 4)
    for table in tables:
        entries = np.frombuffer(raw, f"{order}u4", 2 * count, table).reshape(-1, 2).astype(np.int64)
        if (entries.sum(1) > len(raw)).any():
            raise ValueError("it ends before its last string")
