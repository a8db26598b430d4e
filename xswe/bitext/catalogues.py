"""Message catalogues of programs: gettext's PO and MO."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import InputError, brief, needs
from xswe.io.lines import RAISES, OnError, Skipped, open_binary, read_whole

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
