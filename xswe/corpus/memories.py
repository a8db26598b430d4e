"""Translation memories and localisation files in XML: TMX 1.4, XLIFF 1.2 and XLIFF 2.0, streamed.

External entities, entity declarations and network access are refused by the parser; a unit is forgotten once it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element, ParseError

from xswe.corpus.archives import damage
from xswe.corpus.streams import OnError, Skipped, open_binary
from xswe.errors import DependencyError, InputError

Pair = tuple[str, str]
_MOST_UNIT = 16 << 20  # bytes of XML in which a unit must have come to its end
# Inline elements whose content is another format's markup, not text. Those of other names hold text.
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut", "cp"))
_CURE = "export the file again, or set corpus.on_error=skip to use what comes before the damage"


class _Watched:
    """A stream that refuses a unit without end, which the parser would gather in memory."""

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
        """Note that a unit has come to its end."""
        self._since = 0


def read_tmx(path: Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped) -> Iterator[Pair]:
    """Stream the pairs of a TMX file; a unit that lacks one of the languages is counted as skipped.

    Languages fit by their first part (``en-US`` is English). Of several variants of a language the first counts.
    """

    def pairs(unit: Element) -> Iterator[Pair]:
        """Yield the pair of a unit, if it has both languages."""
        found: dict[str, str] = {}
        for variant in unit.iterfind("tuv"):
            code = _primary(variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or "")
            segment = variant.find("seg")
            if segment is not None:
                found.setdefault(code, _text(segment))
        if languages[0] in found and languages[1] in found:
            yield found[languages[0]], found[languages[1]]
        else:
            skipped.add("other languages")

    return _units(path, ("tu",), lambda root: None, pairs, on_error, skipped)


def read_xliff(path: Path, languages: tuple[str, str], *, on_error: OnError, skipped: Skipped) -> Iterator[Pair]:
    """Stream the segments of an XLIFF file (1.2: ``trans-unit``, 2.0: ``segment``), in either direction.

    Raises:
        InputError: its languages are others.
    """
    swapped = False

    def check(element: Element) -> None:
        """Find out which way round the file has the two languages."""
        nonlocal swapped
        source = element.get("source-language") or element.get("srcLang")
        target = element.get("target-language") or element.get("trgLang")
        if source is None or target is None:
            return
        found = (_primary(source), _primary(target))
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
    pairs: Callable[[Element], Iterator[Pair]],
    on_error: OnError,
    skipped: Skipped,
) -> Iterator[Pair]:
    """Parse a file and hand on each element of the given names at its end, then drop it."""
    try:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import iterparse
    except ImportError:
        raise DependencyError("defusedxml", "corpora", "reading TMX and XLIFF") from None
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
            if on_error == "raise":
                line = getattr(error, "position", (None, None))[0]
                raise InputError(path, f"not well-formed ({error})", _CURE, line) from None
            skipped.add("damaged XML")


def _bare_name(element: Any) -> None:
    """Take the namespace off an element's name: files of one format come with and without it."""
    if isinstance(element.tag, str) and element.tag.startswith("{"):
        element.tag = element.tag.partition("}")[2]


def _primary(code: str) -> str:
    return code.replace("_", "-").split("-")[0].strip().lower()


def _text(element: Element) -> str:
    """Return an element's text without the markup codes of other formats within it."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts).strip()
