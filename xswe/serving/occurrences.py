"""Occurrences of a string in passages: as it is written, or with a few other letters.

Case and width do not matter, and an occurrence cuts no word, unless a ``*`` at an end of the string says that the word may
go on there. Approximate matching divides the string into one piece more than it may have errors, one of which an occurrence
holds unchanged, and compares what stands around such a piece by edit distance.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Texts
from xswe.text.borders import traits_of_characters, within_word
from xswe.text.compiled.alphabet import decode_character

LONGEST = 64  # characters of a string that is matched approximately
_PER_ERROR = 4  # characters for each that may differ: three in four agree, as in matches of a translation memory
_MOST_ERRORS = 7  # one less than a byte has bits, in which the pieces are noted
_MOST = 100_000  # occurrences a thread that are told apart
_LOOKED_AT = 1000  # occurrences by which the spellings of a form are found
_FOLDED = 0x20000  # no character beyond has another case or width
_FAR = 1 << 20
_within_word = njit(**INNER)(within_word)


class Occurrence(NamedTuple):
    """Where a form stands: which passage, and its characters."""

    row: int
    start: int
    end: int


class Form(NamedTuple):
    """A form that occurs, without regard to case and width.

    ``times`` is how often; ``errors`` how many letters differ from the string, at least; ``spellings`` are its forms as
    they are written, the commonest first.
    """

    errors: int
    times: int
    spellings: tuple[str, ...]
    places: tuple[Occurrence, ...]


class Found(NamedTuple):
    """The forms that occur, those with the fewest errors first, then the most frequent; and whether there are more."""

    forms: list[Form]
    more: bool


def find_string(
    texts: Texts, string: str, *, approximate: bool, k: int, lines: int, rows: np.ndarray | None = None, threads: int = 1
) -> Found:
    """Find the forms of a string in texts.

    Args:
        texts: the passages.
        string: what is sought; ``*`` before or behind it stands for the rest of a word.
        approximate: whether a quarter of its characters may be others, too few or too many.
        k: forms, at most.
        lines: occurrences of each form, at most.
        rows: bool (len(texts),), which passages are looked at; None for all.
        threads: how many share the passages.
    """
    text = " ".join(string.split())
    open_left, open_right = text.startswith("*"), text.endswith("*")
    query = _folds()[np.frombuffer(text.strip("* ").encode("utf-32-le", "replace"), "<u4")].astype(np.uint32)
    if not len(query):
        return Found([], False)
    errors = min(len(query) // _PER_ERROR, _MOST_ERRORS) if approximate else 0
    pieces = np.linspace(0, len(query), errors + 2).astype(np.int64)
    starts = np.zeros(0x110000, np.uint8)  # for each character the pieces that begin with it
    for number, first in enumerate(pieces[:-1].tolist()):
        starts[_folds() == query[first]] |= 1 << number
    data, offsets = texts.frozen
    wanted = np.ones(len(texts), bool) if rows is None else rows

    def find(first: int, stop: int) -> tuple[int, np.ndarray, np.ndarray]:
        places, hashes = np.empty((_MOST, 4), np.int64), np.empty(_MOST, np.uint64)
        scratch = np.empty((3, max(len(query) + 1, 3)), np.int64)
        found = _find(
            *(data, offsets, wanted, _folds(), traits_of_characters(), starts, query, pieces),
            *(open_left, open_right, first, stop, scratch, places, hashes),
        )
        kept = min(found, _MOST)
        return found, places[:kept].copy(), hashes[:kept].copy()

    blocks = over_blocks(find, len(texts), threads)
    places, hashes = (np.concatenate([block[part] for block in blocks]) for part in (1, 2))
    found = sum(block[0] for block in blocks)
    return Found(_forms(texts, places, hashes, k, lines), found > len(places))


def _forms(texts: Texts, places: np.ndarray, hashes: np.ndarray, k: int, lines: int) -> list[Form]:
    """Group occurrences, int64 (n, 4) of row, first byte, last and errors, by their folded texts."""
    _, first, which, times = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    fewest = np.full(len(times), _FAR)
    np.minimum.at(fewest, which, places[:, 3])
    out = []
    for form in np.lexsort((first, -times, fewest))[:k].tolist():
        own = places[np.flatnonzero(which == form)[: max(_LOOKED_AT, lines)]].tolist()
        spellings = Counter(texts.data[start:end].tobytes().decode() for _, start, end, _ in own[:_LOOKED_AT])
        ranked = sorted(spellings, key=lambda one: (-spellings[one], one))
        shown = []
        for row, start, end, _ in own[:lines]:
            before = len(texts.data[int(texts.offsets[row]) : start].tobytes().decode())
            shown.append(Occurrence(row, before, before + len(texts.data[start:end].tobytes().decode())))
        out.append(Form(int(fewest[form]), int(times[form]), tuple(ranked), tuple(shown)))
    return out


@lru_cache(maxsize=1)
def _folds() -> np.ndarray:
    """Return what each character is compared as, uint32 (0x110000,): small letters of half width, one kind of blank."""
    out = np.arange(0x110000, dtype=np.uint32)
    for code in range(_FOLDED):
        folded = " " if (text := chr(code)).isspace() else unicodedata.normalize("NFKC", text).casefold()
        if len(folded) == 1:
            out[code] = ord(folded)
    return out


@njit(**INNER)
def _previous(data: np.ndarray, place: int) -> int:
    """Return where the character before one begins."""
    place -= 1
    while data[place] & 0xC0 == 0x80:
        place -= 1
    return place


@njit(**INNER)
def _joined(data: np.ndarray, place: int, first: int, end: int, traits: np.ndarray) -> bool:
    """Return True if a border at a byte would cut a word of the text from ``first`` to ``end``."""
    if place <= first or place >= end:
        return False
    before, _ = decode_character(data, _previous(data, place))
    after, _ = decode_character(data, place)
    return _within_word(np.int64(traits[before]), np.int64(traits[after]))


@njit(**INNER)
def _holds(data: np.ndarray, place: int, end: int, folds: np.ndarray, query: np.ndarray, first: int, stop: int) -> bool:
    """Return True if a piece of the query, from ``first`` to ``stop``, stands at a byte."""
    for k in range(first, stop):
        if place >= end:
            return False
        code, size = decode_character(data, place)
        if folds[code] != query[k]:
            return False
        place += size
    return True


@njit(**INNER)
def _nearest(
    data: np.ndarray,
    low: int,
    high: int,
    first: int,
    end: int,
    folds: np.ndarray,
    traits: np.ndarray,
    query: np.ndarray,
    most: int,
    open_left: bool,
    open_right: bool,
    scratch: np.ndarray,
) -> int:
    """Compare the query with all of a window, from byte ``low`` to ``high``, that cuts no word.

    ``scratch[2, :3]`` gets the first byte of what is nearest, the shortest of several, the one past its last, and its
    errors; returns whether there is any with at most ``most`` errors.
    """
    size = len(query)
    costs, begins, best = scratch[0], scratch[1], scratch[2]  # of the query's first i characters, ending at a place
    for i in range(size + 1):
        costs[i], begins[i] = _FAR, low
    best[2] = most + 1
    place = low
    while True:
        if open_left or not _joined(data, place, first, end, traits):  # it may begin here
            if costs[0] != 0 or begins[0] != place:
                costs[0], begins[0] = 0, place
        else:
            costs[0] = _FAR
        for i in range(1, size + 1):  # characters of the query that the window lacks
            cost = costs[i - 1] + 1
            if cost < costs[i] or (cost == costs[i] and begins[i - 1] > begins[i]):
                costs[i], begins[i] = cost, begins[i - 1]
        if costs[size] < best[2] and place > begins[size] and (open_right or not _joined(data, place, first, end, traits)):
            best[0], best[1], best[2] = begins[size], place, costs[size]
        if place >= high:
            return best[2] <= most
        code, width = decode_character(data, place)
        folded = folds[code]
        diagonal, origin = costs[0], begins[0]
        costs[0] = _FAR
        for i in range(1, size + 1):
            kept, whence = costs[i], begins[i]
            cost = diagonal + (folded != query[i - 1])
            if kept + 1 < cost or (kept + 1 == cost and whence > origin):  # a character that the query lacks
                costs[i] = kept + 1
            else:
                costs[i], begins[i] = cost, origin
            diagonal, origin = kept, whence
        place += width


@njit(**INNER)
def _around(
    data: np.ndarray,
    place: int,
    number: int,
    free: int,
    first: int,
    end: int,
    folds: np.ndarray,
    traits: np.ndarray,
    query: np.ndarray,
    pieces: np.ndarray,
    open_left: bool,
    open_right: bool,
    scratch: np.ndarray,
) -> bool:
    """Look for an occurrence around a byte at which a piece of the query may stand; see :func:`_nearest`."""
    if not _holds(data, place, end, folds, query, pieces[number], pieces[number + 1]):
        return False
    most = len(pieces) - 2
    low, high = place, place
    for _ in range(pieces[number] + most):
        if low > free:
            low = _previous(data, low)
    for _ in range(len(query) - pieces[number] + most):
        if high < end:
            high += decode_character(data, high)[1]
    if not _nearest(data, low, high, first, end, folds, traits, query, most, open_left, open_right, scratch):
        return False
    while open_left and scratch[2, 0] > free and _joined(data, scratch[2, 0], first, end, traits):
        scratch[2, 0] = _previous(data, scratch[2, 0])
    while open_right and _joined(data, scratch[2, 1], first, end, traits):
        scratch[2, 1] += decode_character(data, scratch[2, 1])[1]
    return True


@njit(**INNER)
def _hash(data: np.ndarray, place: int, end: int, folds: np.ndarray) -> np.uint64:
    """Return FNV's hash of a folded text."""
    hashed = np.uint64(14695981039346656037)
    while place < end:
        code, size = decode_character(data, place)
        hashed = (hashed ^ np.uint64(folds[code])) * np.uint64(1099511628211)
        place += size
    return hashed


@njit(**LEAN)
def _find(
    data: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    folds: np.ndarray,
    traits: np.ndarray,
    starts: np.ndarray,
    query: np.ndarray,
    pieces: np.ndarray,
    open_left: bool,
    open_right: bool,
    row: int,
    stop: int,
    scratch: np.ndarray,
    places: np.ndarray,
    hashes: np.ndarray,
) -> np.int64:
    """Write the occurrences in some rows, with a hash of their folded texts; and return how many there are."""
    found = np.int64(0)
    while row < stop:
        first, end = offsets[row], offsets[row + 1]
        place, free = first, first  # what lies before ``free`` is part of an occurrence
        while place < end and wanted[row]:
            code, size = decode_character(data, place)
            mask, number, following = np.int64(starts[code]), 0, place + size
            while mask:
                if mask & 1 and _around(
                    data, place, number, free, first, end, folds, traits, query, pieces, open_left, open_right, scratch
                ):
                    free, following = scratch[2, 1], max(following, scratch[2, 1])
                    if found < len(places):
                        places[found, 0], places[found, 1], places[found, 2] = row, scratch[2, 0], free
                        places[found, 3], hashes[found] = scratch[2, 2], _hash(data, scratch[2, 0], free, folds)
                    found += 1
                    break
                mask >>= 1
                number += 1
            place = following
        row += 1
    return found
