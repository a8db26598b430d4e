"""Texts of evaluation files, which must not be trained on."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from xswe.bitext.formats import BY_SUFFIX, FORMATS, format_by_name
from xswe.bitext.kernels import find_keys
from xswe.bitext.memories import read_memory
from xswe.bitext.seen import KeySet, text_hashes
from xswe.bitext.source import Source, read_pairs
from xswe.bitext.tables import table_rows
from xswe.corpus.fetch import digest_of
from xswe.errors import InputError
from xswe.io.files import strings_in
from xswe.io.lines import Skipped, check_lines, read_lines
from xswe.io.ragged import Texts
from xswe.io.sources import suffix_of
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)


_NOT_ALPHANUMERIC = re.compile(r"[^\w\n]|_")
_SUFFIXES = (*BY_SUFFIX, *(f".{code}" for code in LANGUAGES))


def normalised(texts: Texts) -> Texts:
    """Return texts in NFKC, lower-cased, with only their letters and digits."""
    if not len(texts):
        return texts
    joined = unicodedata.normalize("NFKC", "\n".join(texts)).lower()
    return Texts.of(_NOT_ALPHANUMERIC.sub("", joined).split("\n"))


def evaluation_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files of evaluation paths, sorted; InputError: a path is missing, or a folder without evaluation files."""
    return sorted({file for path in paths for file in _files(Path(path))})


def evaluation_identity(paths: Sequence[str | Path]) -> list[str]:
    """Return the checksums of evaluation files, without reading their texts."""
    return [digest_of(file) for file in evaluation_files(paths)]


class EvaluationTexts:
    """The texts of evaluation files.

    Every column of a tab-separated file, every string of a record, every language of a unit, and every line of a text
    file is a text, if it contains a letter. InputError: a path is missing, is damaged, or has no text.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.files = evaluation_files(paths)
        for folder in filter(Path.is_dir, map(Path, paths)):
            _warn_of_unread(folder)
        self._exact, self._normalised, self.count = KeySet(), KeySet(), 0
        for file in self.files:
            texts = Texts.of([text for text in _texts(file) if any(map(str.isalpha, text))])
            if not len(texts):
                raise InputError(file, "no text in it", "leave it out of corpus.decontaminate")
            self.count += len(texts)
            self._exact.add(text_hashes(texts))
            self._normalised.add(text_hashes(normalised(texts)))

    def known(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Return which texts equal an evaluation text exactly, and which after normalisation, bool (n,) each."""
        reduced = normalised(texts)
        found = np.zeros((2, len(texts)), bool)
        find_keys(self._exact.table, text_hashes(texts), found[0])
        find_keys(self._normalised.table, text_hashes(reduced), found[1])
        return found[0], found[1] & (reduced.sizes > 0)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.is_file() and suffix_of(p) in _SUFFIXES]
        if not found:
            raise InputError(path, "no evaluation file in it", f"give files of {', '.join(_SUFFIXES)}")
        return found
    if not path.is_file():
        raise InputError(path, "no such file", "check corpus.decontaminate (relative paths start at the working directory)")
    return [path]


def _warn_of_unread(folder: Path) -> None:
    """Warn of files in a folder with an unknown suffix: their texts may be trained on."""
    inside = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and suffix_of(p) not in _SUFFIXES)
    unread = [str(p) for p in inside if not any(part.startswith(".") for part in p.parts)]
    if unread:
        names = f"{', '.join(unread[:8])}{f' and {len(unread) - 8} more' if len(unread) > 8 else ''}"
        logger.warning(
            "corpus.decontaminate: %s has files of unknown suffix, which are not read: %s; name one to have it read",
            folder,
            names,
        )


def _texts(file: Path) -> Iterator[str]:
    """Yield all texts of a file: every string in a table's rows, every language of a memory's units, else every field."""
    kind = format_by_name(file)
    family = FORMATS[kind].family
    if kind == "tmx":
        yield from (text for unit in read_memory(file) for text in map(_single_blanks, unit.values()))
    elif family == "memory":
        yield from (text for pair in read_pairs(Source((str(file),)), skipped=Skipped()) for text in pair)
    elif kind == "jsonl":
        for number, line in read_lines(file):
            try:
                yield from map(_single_blanks, strings_in(json.loads(line or "null")))
            except ValueError as error:
                raise InputError(file, f"not JSON ({error})", "leave it out of corpus.decontaminate", number) from None
    elif family == "table":
        rows = islice(table_rows(file, kind), 1, None)
        yield from (text for _, row in rows for text in map(_single_blanks, strings_in(list(row))))
    else:
        check_lines(file)
        yield from (field.strip() for _, line in read_lines(file) for field in (line or "").split("\t"))


def _single_blanks(text: str) -> str:
    return " ".join(text.split())
