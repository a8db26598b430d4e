"""Message catalogues of programs: gettext PO and MO."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.formats import Described
from xswe.bitext.memories import MemoryUnit, Unit, moment
from xswe.errors import InputError, XsweError, brief, needs, no_room
from xswe.io.files import scratch
from xswe.io.lines import RAISES, Skipped, nul_byte, open_binary, read_whole
from xswe.io.sources import suffix_of
from xswe.text.languages import base_language

# What a line of a message must look like, with or without a keyword: polib reads a string that lacks a quote as empty.
_STRING = re.compile(r'(?:msg[a-z_]+(?:\[\d+\])?\s*)?"(?:[^"\\]|\\.)*"')
_CATALOGUE_HINT = "check it with msgfmt -c, or set on_error=skip to leave the file out"


def catalogue_units(source: Described, exact: bool, skipped: Skipped) -> Iterator[MemoryUnit]:
    """Yield the entries of a ``.po`` or ``.mo`` file, each with its number, polib's object, and (message, translation).

    Of plural forms, the singular is used. Messages are in the first language, unless the catalogue's header names that as
    the language of its translations.
    """
    try:
        catalogue = _catalogue(Path(source.paths[0]))
        # Entries of a compiled catalogue are neither fuzzy nor obsolete, and lack the attribute ``fuzzy``.
        states = [getattr(e, "fuzzy", False) or bool(e.obsolete) for e in catalogue]
        pairs = [(e.msgid, e.msgstr or e.msgstr_plural.get(0, "")) for e in catalogue]
    except Exception as error:  # for damage, polib raises anything from OSError to IndexError and struct.error
        if isinstance(error, OSError) and no_room(error):
            raise
        if RAISES[source.on_error]:
            if isinstance(error, XsweError):
                raise
            line = error.line if isinstance(error, _NotAString) else None
            problem = f"not a gettext catalogue ({brief(error)})"
            raise InputError(source.paths[0], problem, _CATALOGUE_HINT, line) from None
        skipped.add("damaged catalogue")
        return
    target_language = base_language(str(catalogue.metadata.get("Language", "")))
    swapped = bool(source.languages) and target_language == source.languages[0]
    for number, (entry, (message, translation)) in enumerate(zip(catalogue, pairs, strict=True), 1):
        pair = (translation, message) if swapped else (message, translation)
        yield number, entry, "fuzzy or obsolete" if states[number - 1] else pair


def entry_notes(entry: Any) -> tuple[str, list[str]]:
    """Return the context of a catalogue entry, and its comments, extracted ones before translator's."""
    comments = f"{entry.comment}\n{entry.tcomment}" if hasattr(entry, "comment") else ""
    return entry.msgctxt or "", [line for line in comments.split("\n") if line]


def catalogue_codes(path: str | Path) -> list[str]:
    """Return the language codes in the header of a catalogue."""
    metadata = _catalogue(Path(path)).metadata
    return [str(metadata.get(name, "")).replace("_", "-") for name in ("Language", "X-Source-Language")]


def catalogue_head(path: str | Path) -> bytes:
    """Return the part of a catalogue before its first entry."""
    catalogue = _catalogue(Path(path))
    del catalogue[:]
    return f"{catalogue}\n".encode()


def _catalogue(path: Path) -> Any:
    """Open a catalogue; a damaged one may raise any exception."""
    with needs("polib", "corpora", "reading gettext catalogues"):
        import polib
    with open_binary(path) as stream:
        raw = read_whole(stream, path, "a catalogue")
    compiled = suffix_of(path) == ".mo"
    if compiled:
        _check_compiled(raw)
    elif b"\0" in raw:
        raise nul_byte(path, 1, raw)
    else:
        _check_strings(raw.decode("utf-8"))
    with scratch("xswe-catalogue-") as folder:  # polib cuts lines that are not in a file at U+2028 and the like, too
        copy = Path(folder) / "catalogue"
        copy.write_bytes(raw)
        try:
            return polib.mofile(str(copy)) if compiled else polib.pofile(str(copy), encoding="utf-8")
        except OSError as error:
            raise ValueError(str(error).replace(f"{copy} ", "")) from None


# A string may hold any character but NUL and half of a surrogate pair, which become blanks.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


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
    """Raise an error if a string of a compiled catalogue lies outside the file, which polib does not check."""
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(raw[:4])
    if order is None:
        raise ValueError("no MO file")
    _, count, *tables = struct.unpack_from(f"{order}4I", raw, 4)
    for table in tables:
        entries = np.frombuffer(raw, f"{order}u4", 2 * count, table).reshape(-1, 2).astype(np.int64)
        if (entries.sum(1) > len(raw)).any():
            raise ValueError("it ends before its last string")


def write_catalogue(units: Iterable[Unit], languages: Sequence[str], date: str | None = None) -> Iterator[str]:
    """Yield a PO file: scores and notes become comments, and a repeated message gets its own context."""
    when = moment(date)
    yield 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    yield f'"Language: {languages[1]}\\n"\n"X-Source-Language: {languages[0]}\\n"\n' if len(languages) == 2 else ""
    yield f'"PO-Revision-Date: {when:%Y-%m-%d %H:%M+0000}\\n"\n' if when else ""
    seen: set[str] = {""}
    for number, unit in enumerate(units, 1):
        status = f", {unit.status}" if unit.status else ""
        yield f"\n#. score {unit.score:.6f}{status}\n" if unit.score is not None else "\n"
        yield "".join(f"# {line}\n" for line in unit.notes.splitlines())
        yield f"msgctxt {_quoted(unit.id or str(number))}\n" if unit.id or unit.source in seen else ""
        yield f"msgid {_quoted(unit.source)}\nmsgstr {_quoted(unit.target)}\n"
        seen.add(unit.source)


def _quoted(text: str) -> str:
    return '"' + re.sub(r'[\\"\n\t\r\0\ud800-\udfff]', lambda found: _ESCAPES.get(found[0], " "), text) + '"'
