"""Columns that are no text: a score, an identifier or an address of the web, read in the place of a sentence.

Public bitexts come as ``score, a, b`` or ``site, site, score, a, b``; read by the first two columns they would train
without a complaint. The rule asks for what no translation is: in nearly every line of a file's beginning a side is nothing
but a number, where the other side is not the same number, or nothing but an address. Numbers in some lines, and tables
whose numbers stand on both sides, are text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from xswe.errors import InputError
from xswe.language.codes import LANGUAGES

JUDGED = 1000  # lines, at a file's beginning
_LEAST = 10  # fewer lines say too little
_SHARE = 0.9
_KINDS = {
    "a number": re.compile(r"[+-]?\.?\d[\d.,]*(?:e[+-]?\d+)?\s?%?", re.IGNORECASE),
    "a web address": re.compile(r"(?:[a-z]+://)?(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:/\S*)?", re.IGNORECASE),
}


def check_columns_are_text(
    path: Path, columns: tuple[int, int], languages: tuple[str, str], lines: Sequence[tuple[int, str]]
) -> None:
    """Refuse tab-separated text whose columns are not the ones to read.

    Args:
        path: the file, for the message.
        columns: 0-based columns of source and target.
        languages: source and target language, for the message.
        lines: the number, from 1, and the text of the file's first lines; each has both columns.

    Raises:
        InputError: one of the columns is a number, or a web address, in nearly every line.
    """
    rows = [[field.strip() for field in line.split("\t")] for _, line in lines]
    found = _no_text([row[columns[0]] for row in rows], [row[columns[1]] for row in rows])
    if found is None:
        return
    side, kind, bad = found
    raise InputError(
        path,
        f"column {columns[side]} (counted from 0), read as {_language(languages, side)} text, is {kind} in {len(bad)} of "
        f"the first {len(lines)} lines",
        _cure(path, rows),
        lines[bad[0]][0],
    )


def check_sides_are_text(
    where: str | Path, languages: tuple[str, str], source: Sequence[str], target: Sequence[str]
) -> None:
    """Refuse line-aligned files, or records, one side of which is no text.

    Args:
        where: what they are read from, for the message.
        languages: source and target language, for the message.
        source: the first texts of the source.
        target: those of the target.

    Raises:
        InputError: a side is a number, or a web address, in nearly every line.
    """
    found = _no_text(source, target)
    if found is not None:
        side, kind, bad = found
        problem = f"its {_language(languages, side)} side is {kind} in {len(bad)} of the first {len(source)} lines"
        raise InputError(where, problem, "name the files, or the fields, that hold the two texts", bad[0] + 1)


def _language(languages: tuple[str, str], side: int) -> str:
    code = languages[side]
    return LANGUAGES[code].name if code in LANGUAGES else ("source", "target")[side]


def _kind_of(text: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text)), None)


def _no_text(source: Sequence[str], target: Sequence[str]) -> tuple[int, str, list[int]] | None:
    """Return which side is no text, what it is, and in which rows; None if both are text."""
    if len(source) < _LEAST:
        return None
    for side, (own, other) in enumerate(((source, target), (target, source))):
        kinds = [_kind_of(text) for text in own]
        for kind in _KINDS:
            rows = [row for row, k in enumerate(kinds) if k == kind and not _same_number(own[row], other[row])]
            if len(rows) > _SHARE * len(source):
                return side, kind, rows
    return None


def _same_number(text: str, other: str) -> bool:
    """Tell whether two texts are one number, however each language writes it."""
    if not all(_KINDS["a number"].fullmatch(one) for one in (text, other)):
        return False
    return re.sub(r"\D", "", text) == re.sub(r"\D", "", other)


def _cure(path: Path, rows: list[list[str]]) -> str:
    """Name the columns that are text, where it is plain which they are."""
    texts, numbers = [], []
    for column, fields in enumerate(zip_longest(*rows, fillvalue="")):
        kinds = [_kind_of(field) for field in fields if field]
        if kinds.count(None) > _SHARE * len(rows):
            texts.append(column)
        elif kinds.count("a number") > _SHARE * len(rows):
            numbers.append(column)
    columns, score = (texts, numbers) if len(texts) == 2 else ([3, 4], [2])
    entry = f"{{path: {path.name}, columns: {columns}{f', score: {score[0]}' if len(score) == 1 else ''}}}"
    return f"name the columns of the two texts, the source's first, as in corpus.paths=[{entry}]"
