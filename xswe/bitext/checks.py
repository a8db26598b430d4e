"""Checks for columns and sides that should be texts but are numbers or addresses.

Public bitexts come as ``score, a, b`` or ``site, site, score, a, b``; read by their first two columns, they would train
without an error. The rule looks for what no bitext has: in nearly all of a file's first lines, one side is nothing but an
address, or nothing but a number that the other side does not repeat. Numbers in some lines, and tables with the same
numbers on both sides, are text.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from xswe.errors import InputError
from xswe.text.detection import likely_language
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)
# What data sets and spreadsheets call the columns of a bitext.
_COLUMN = re.compile(
    r"(?:source|src|target|tgt|trg)(?:[ _-]?(?:text|sentence|segment|lang|language))?|(?:sentence|text)[ _-]?[12ab]"
    rf"|anchor|positive|translation|(?:{'|'.join(LANGUAGES)})(?:[_-]\w{{2,4}})?"
    rf"|{'|'.join(one.name for one in LANGUAGES.values())}",
    re.IGNORECASE,
)
CHECKED = 1000  # lines checked at the beginning of a file
_SPREAD = 250  # at most so many lines of a file's first block have their language detected
_MIN_LINES = 10  # fewer tell too little
_FOREIGN_LINES, _FOREIGN_SHARE = 3, 0.1  # the least number and share of lines in other languages to warn of
_MIN_SHARE = 0.9
_KINDS = {
    "a number": re.compile(r"[+-]?\.?\d[\d.,]*(?:e[+-]?\d+)?\s?%?", re.IGNORECASE),
    "a web address": re.compile(r"(?:[a-z]+://)?(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:/\S*)?", re.IGNORECASE),
}


def check_columns_are_text(
    path: Path,
    columns: tuple[int, int],
    languages: Sequence[str],
    lines: Sequence[tuple[int, str]],
    in_corpus: bool = True,
) -> None:
    """Raise InputError if a column is a number or a web address in nearly all of a file's first ``lines``.

    A header, one pair among many, only causes a warning, and stays. ``lines`` come with their numbers, and all have the
    0-based ``columns``; an unknown language is "". The error says how to name other columns: in ``corpus.paths`` if
    ``in_corpus``, else by ``columns=``.
    """
    rows = [[field.strip() for field in line.split("\t")] for _, line in lines]
    if rows and lines[0][0] == 1 and all(_COLUMN.fullmatch(rows[0][column]) for column in columns):
        _warn_of_header(path, *(rows[0][column] for column in columns))
    sides = ([row[column] for row in rows] for column in columns)
    names = [f"column {c} (counted from 0), read as {_language(languages, n)} text," for n, c in enumerate(columns)]
    how: dict[str, Any] = {"hint": lambda: _hint(path, rows, in_corpus), "lines": [number for number, _ in lines]}
    check_sides_are_text(path, languages, *sides, **how, names=names)


@lru_cache
def _warn_of_header(path: Path, source: str, target: str) -> None:
    """Warn of a header, once even if a file is read several times."""
    what = "names of columns, and are read as a pair; if they are, call the file .csv, or remove them"
    logger.warning("%s:1: %s and %s look like %s:  tail -n +2 %s", path, source, target, what, path)


def check_sides_are_text(
    where: str | Path,
    languages: Sequence[str],
    source: Sequence[str],
    target: Sequence[str],
    *,
    hint: str | Callable[[], str] = "name the files, or the fields, that hold the two texts",
    lines: Sequence[int] = range(1, CHECKED + 1),
    names: Sequence[str] = (),
) -> None:
    """Raise InputError if one side of line-aligned files or records is a number or a web address in nearly every line.

    ``source`` and ``target`` are the first texts of both, ``lines`` their line numbers; ``names`` are what the error
    calls the sides.
    """
    found = _no_text(source, target)
    if found is not None:
        side, kind, bad = found
        name = names[side] if names else f"its {_language(languages, side)} side"
        problem = f"{name} is {kind} in {len(bad)} of the first {len(source)} lines"
        raise InputError(where, problem, hint if isinstance(hint, str) else hint(), lines[bad[0]])


def spread(texts: Sized) -> slice:
    """Return which of a file's first texts have their language detected: so many, evenly spread, or all if they are few."""
    return slice(None, None, max(1, -(-len(texts) // _SPREAD)))


def check_languages_of(where: str | Path, languages: Sequence[str], source: Sequence[str], target: Sequence[str]) -> None:
    """Warn, once, if a tenth of a side's lines are in another language than given."""
    if len(languages) != 2 or languages[0] == languages[1] or not set(languages) <= set(LANGUAGES):
        return
    for side, texts in enumerate((source[spread(source)], target[spread(source)])):
        found = Counter(filter(None, map(likely_language, texts)))
        own = languages[side], LANGUAGES[languages[side]].script
        others = {code: count for code, count in found.items() if code not in own}
        count = sum(others.values())
        if count < _FOREIGN_LINES or count < _FOREIGN_SHARE * len(texts):
            continue
        most = max(others, key=others.__getitem__)
        named = LANGUAGES[most].name if most in LANGUAGES else f"another language ({most} script)"
        swapped = f"; or its sides the other way round, languages=[{languages[1]},{languages[0]}]"
        _warn_of_languages(
            f"{where}: its {_language(languages, side)} side is in another language in {count:,} of {len(texts):,} lines "
            f"looked at ({count / len(texts):.0%}), mostly {named}: see that languages= names its languages"
            f"{swapped if most == languages[1 - side] else ''}"
        )


@lru_cache
def _warn_of_languages(message: str) -> None:
    logger.warning("%s", message)


def detected_languages(source: Sequence[str], target: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent language of each side; () if it has no more than a quarter of a side, or both are alike."""
    found = []
    for texts in (source, target):
        ((code, count),) = Counter(filter(None, map(likely_language, texts))).most_common(1) or [("", 0)]
        found.append(code if code in LANGUAGES and 4 * count > len(texts) else "")
    return tuple(found) if all(found) and found[0] != found[1] else ()


def _language(languages: Sequence[str], side: int) -> str:
    code = languages[side] if len(languages) == 2 else ""
    return LANGUAGES[code].name if code in LANGUAGES else ("source", "target")[side]


def _kind_of(text: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text)), None)


def _no_text(source: Sequence[str], target: Sequence[str]) -> tuple[int, str, list[int]] | None:
    """Return the side that is not text, what it is instead, and in which rows; None if both are text."""
    if len(source) < _MIN_LINES:
        return None
    for side, (own, other) in enumerate(((source, target), (target, source))):
        kinds = [_kind_of(text) for text in own]
        for kind in _KINDS:
            rows = [row for row, k in enumerate(kinds) if k == kind and not _same_number(own[row], other[row])]
            if len(rows) > _MIN_SHARE * len(source):
                return side, kind, rows
    return None


def _same_number(text: str, other: str) -> bool:
    """Return True if two texts are the same number, in whatever notation."""
    if not all(_KINDS["a number"].fullmatch(one) for one in (text, other)):
        return False
    return re.sub(r"\D", "", text) == re.sub(r"\D", "", other)


def _hint(path: Path, rows: list[list[str]], in_corpus: bool) -> str:
    """Return a hint that names the text columns if they are obvious."""
    texts, numbers = [], []
    for column, fields in enumerate(zip_longest(*rows, fillvalue="")):
        kinds = [_kind_of(field) for field in fields if field]
        if kinds.count(None) > _MIN_SHARE * len(rows):
            texts.append(column)
        elif kinds.count("a number") > _MIN_SHARE * len(rows):
            numbers.append(column)
    columns, score = (texts, numbers) if len(texts) == 2 else ([3, 4], [2])
    entry = f"{{path: {path.name}, columns: {columns}{f', score: {score[0]}' if len(score) == 1 else ''}}}"
    named = f"corpus.paths=[{entry}]" if in_corpus else f"columns=[{columns[0]},{columns[1]}]"
    return f"name the columns of the two texts, the source's first, as in {named}"
