"""Occurrences of a string in passages, exact or with a few different letters.

Case and width do not matter, and an occurrence cuts no word, unless a ``*`` at an end of the string says that the word may
go on there. Passages are compared by a folded copy of them (:func:`fold`), in which three rare bytes of the string
are sought first. Approximate matching divides the string into one piece more than it may have errors, rare ones, one of
which an occurrence holds unchanged, and compares what stands around such a piece by edit distance: its bound by bits
(Myers, 1999), then the distance itself.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, address_of, load_word, trailing_zeros
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Texts, bounds_of
from xswe.text.borders import traits_of_characters, within_word
from xswe.text.compiled.alphabet import append_character, decode_character

LONGEST = 64  # characters of a string that is matched approximately: bits of a word
_PER_ERROR = 4  # characters for each that may differ: three in four agree, as in matches of a translation memory
_MOST_ERRORS = 7  # one less than a byte has bits, in which the pieces are noted
_MOST = 100_000  # distinct occurrences per thread
_LOOKED_AT = 1000  # occurrences by which the spellings of a form are found
_FOLDED = 0x20000  # no character beyond has another case or width
_FAR = 1 << 20
_MARKED = 1 << 13  # bytes of passages in which pieces are sought at a time
_SAMPLES, _SAMPLE = 32, 1 << 12  # runs of bytes of passages, and bytes of each, from which rare bytes are found
_ONE, _THREE, _NONE, _ALL = np.uint64(1), np.uint64(3), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_within_word = njit(**INNER)(within_word)


class Occurrence(NamedTuple):
    """A place of a form: the passage, and its characters."""

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


class _Query(NamedTuple):
    """A string and its pieces, as compiled code looks for them."""

    codes: np.ndarray  # uint32 (m,), its characters
    pieces: np.ndarray  # int64 (pieces + 1,), the first character of each, and m
    data: np.ndarray  # uint8 (bytes,), the same in UTF-8
    bounds: np.ndarray  # int64 (pieces + 1,), the first byte of each, and their number
    rare: np.ndarray  # int64 (pieces, 3), which three bytes of each are sought first
    letters: np.ndarray  # uint8 (0x110000,), for each character its row of ``masks``; empty where there may be no errors
    masks: np.ndarray  # uint64 (rows,), at which places of the string it stands; 0 in the first row
    open_left: bool
    open_right: bool


def fold(texts: Texts) -> Texts:
    """Return texts as they are compared: small letters of half width, one kind of blank; of each as many characters."""
    data, offsets = texts.frozen
    out, ends = np.empty(len(data) * 3 // 2, np.uint8), np.zeros(len(offsets), np.int64)  # Ⱥ, of two bytes, becomes three
    _fold(data, offsets, _folds(), out, ends)
    return Texts(out[: ends[-1]], ends)


def find_string(
    texts: Texts,
    folded: Texts,
    string: str,
    *,
    approximate: bool,
    k: int,
    lines: int,
    rows: np.ndarray | None = None,
    threads: int = 1,
) -> Found:
    """Find the forms of a string in texts, given their ``folded`` form by :func:`fold`.

    ``*`` before or behind it stands for the rest of a word. ``approximate``: a quarter of its characters may be others, too
    few or too many. There are at most ``k`` forms, and ``lines`` occurrences of each, at even distances; ``rows``, bool
    (len(texts),), are the passages that are looked at, None for all.
    """
    data, offsets = folded.frozen
    query = _query(string, approximate, data)
    if query is None:
        return Found([], False)
    wanted = np.ones(len(texts), bool) if rows is None else rows

    def find(first: int, stop: int) -> tuple[int, np.ndarray, np.ndarray]:
        places, hashes = np.empty((_MOST, 4), np.int64), np.empty(_MOST, np.uint64)
        scratch, marks = np.empty((3, max(len(query.codes) + 1, 3)), np.int64), np.zeros(_MARKED + 8, np.uint8)
        found = _find(data, offsets, wanted, traits_of_characters(), query, first, stop, scratch, marks, places, hashes)
        kept = min(found, _MOST)
        return found, places[:kept].copy(), hashes[:kept].copy()

    blocks = over_blocks(find, len(texts), threads)
    places, hashes = (np.concatenate([block[part] for block in blocks]) for part in (1, 2))
    found = sum(block[0] for block in blocks)
    return Found(_forms(texts, folded, places, hashes, k, lines), found > len(places))


def _query(string: str, approximate: bool, data: np.ndarray) -> _Query | None:
    """Prepare a string for a search in folded bytes; None if nothing is left of it."""
    text = " ".join(string.split())
    codes = _folds()[np.frombuffer(text.strip("* ").encode("utf-32-le", "replace"), "<u4")].astype(np.uint32)
    if not len(codes):
        return None
    errors = min(len(codes) // _PER_ERROR, _MOST_ERRORS) if approximate else 0
    written = [chr(code).encode("utf-8", "surrogatepass") for code in codes.tolist()]
    own, starts = np.frombuffer(b"".join(written), np.uint8), bounds_of(np.array(list(map(len, written)), np.int64))
    step = max(_SAMPLE, len(data) // _SAMPLES)
    sample = np.concatenate([data[a : a + _SAMPLE] for a in range(0, len(data), step)] or [data])
    pieces = _rare_pieces(own, starts, errors + 1, sample)
    bounds, often = starts[pieces], np.bincount(sample, minlength=256)[own]
    rare = [np.resize(np.argsort(often[a:b], kind="stable")[:3], 3) for a, b in pairwise(bounds.tolist())]
    letters, masks = np.zeros(0x110000 if errors else 0, np.uint8), np.zeros(1, np.uint64)
    if errors:
        distinct, which = np.unique(codes, return_inverse=True)
        letters[distinct], masks = np.arange(1, len(distinct) + 1), np.zeros(len(distinct) + 1, np.uint64)
        np.bitwise_or.at(masks, which + 1, _ONE << np.arange(len(codes), dtype=np.uint64))
    return _Query(codes, pieces, own, bounds, np.array(rare), letters, masks, text.startswith("*"), text.endswith("*"))


def _rare_pieces(own: np.ndarray, starts: np.ndarray, count: int, sample: np.ndarray) -> np.ndarray:
    """Cut a string into pieces that stand in texts as seldom as may be; return their borders, int64 (count + 1,).

    How often each would stand there is estimated by the pairs of bytes of a ``sample`` of the texts, as of a Markov chain.
    ``own`` is the string, uint8 (bytes,), ``starts``, int64 (m + 1,), the first byte of each of its characters, and their
    number.
    """
    size = len(starts) - 1
    if count == 1:
        return np.array([0, size])
    single = np.bincount(sample, minlength=256) + 1.0
    pairs = np.bincount(256 * sample[:-1].astype(np.int64) + sample[1:], minlength=1 << 16) + 1 / 256
    follows = np.log(pairs[256 * own[:-1].astype(np.int64) + own[1:]] / single[own[:-1]])
    ways = np.concatenate([[0.0], np.cumsum(follows)])  # to each byte from the first
    often = (np.log(single[own[starts[:-1]]]) - ways[starts[:-1]])[:, None] + ways[starts[1:] - 1]
    often = np.exp(np.where(np.tri(size, dtype=bool).T, often, np.inf))  # from each character to each behind it
    least, cuts = often[0], []
    for _ in range(count - 1):
        sums = least[:-1, None] + often[1:]
        cuts.append(sums.argmin(0) + 1)
        least = sums.min(0)
    borders = [size]
    for cut in reversed(cuts):
        borders.append(int(cut[borders[-1] - 1]))
    return np.array([0, *reversed(borders)])


def _forms(texts: Texts, folded: Texts, places: np.ndarray, hashes: np.ndarray, k: int, lines: int) -> list[Form]:
    """Group occurrences, int64 (n, 4) of row, first folded byte, last and errors, by their folded texts."""
    _, first, which, times = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    fewest = np.full(len(times), _FAR)
    np.minimum.at(fewest, which, places[:, 3])
    out = []
    for form in np.lexsort((first, -times, fewest))[:k].tolist():
        own = _evenly(places[which == form], max(_LOOKED_AT, lines))
        written = np.empty((len(own), 4), np.int64)
        _write_places(*texts.frozen, *folded.frozen, own, written)
        spellings = Counter(texts.data[start:end].tobytes().decode() for *_, start, end in written.tolist())
        ranked = sorted(spellings, key=lambda one: (-spellings[one], one))
        spans = _evenly(np.column_stack([own[:, 0], written[:, :2]]), lines).tolist()
        out.append(Form(int(fewest[form]), int(times[form]), tuple(ranked), tuple(Occurrence(*one) for one in spans)))
    return out


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` rows at even distances, including the first and the last."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


@lru_cache(maxsize=1)
def _folds() -> np.ndarray:
    """Return the folded form of each character, uint32 (0x110000,): lower case, half width, one kind of blank.

    A character that words have other borders at stays as it is, as does the voiced sound mark of half width.
    """
    out, traits = np.arange(0x110000, dtype=np.uint32), traits_of_characters()
    for code in range(_FOLDED):
        folded = " " if (text := chr(code)).isspace() else unicodedata.normalize("NFKC", text).casefold()
        if len(folded) == 1 and traits[ord(folded)] == traits[code]:
            out[code] = ord(folded)
    return out


@njit(**LEAN)
def _fold(data: np.ndarray, offsets: np.ndarray, folds: np.ndarray, out: np.ndarray, ends: np.ndarray) -> None:
    """Write folded texts, and where each ends."""
    end = np.int64(0)
    for row in range(len(offsets) - 1):
        place = offsets[row]
        while place < offsets[row + 1]:
            code, size = decode_character(data, place)
            end = append_character(out, end, np.int64(folds[code]))
            place += size
        ends[row + 1] = end


@njit(**LEAN)
def _write_places(
    data: np.ndarray, offsets: np.ndarray, folded: np.ndarray, bounds: np.ndarray, places: np.ndarray, out: np.ndarray
) -> None:
    """Write, of places in folded texts (row, first byte, last), the characters and the bytes in the texts themselves."""
    for n in range(len(places)):
        row = places[n, 0]
        here, there, characters = offsets[row], bounds[row], np.int64(0)
        for part in range(2):
            while there < places[n, 1 + part]:
                here, there = here + decode_character(data, here)[1], there + decode_character(folded, there)[1]
                characters += 1
            out[n, part], out[n, 2 + part] = characters, here


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
def _is_near(data: np.ndarray, low: int, high: int, letters: np.ndarray, masks: np.ndarray, size: int, most: int) -> bool:
    """Return True if a string of ``size`` characters ends in a window with at most ``most`` errors (Myers, 1999).

    Borders of words are not looked at.
    """
    more, fewer, errors = _ALL, _NONE, size  # where a column of distances rises, and falls, by one a character
    top = _ONE << np.uint64(size - 1)
    while low < high:
        code, width = decode_character(data, low)
        equal = masks[letters[code]]
        vertical = equal | fewer
        horizontal = (((equal & more) + more) ^ more) | equal
        rises, falls = fewer | ~(horizontal | more), more & horizontal
        if rises & top:
            errors += 1
        elif falls & top:
            errors -= 1
            if errors <= most:
                return True
        rises, falls = rises << _ONE, falls << _ONE
        more, fewer = falls | ~(vertical | rises), rises & vertical
        low += width
    return False


@njit(**INNER)
def _nearest(
    data: np.ndarray,
    low: int,
    high: int,
    first: int,
    end: int,
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
        diagonal, origin = costs[0], begins[0]
        costs[0] = _FAR
        for i in range(1, size + 1):
            kept, whence = costs[i], begins[i]
            cost = diagonal + (code != query[i - 1])
            if kept + 1 < cost or (kept + 1 == cost and whence > origin):  # a character that the query lacks
                costs[i] = kept + 1
            else:
                costs[i], begins[i] = cost, origin
            diagonal, origin = kept, whence
        place += width


@njit(**INNER)
def _stands(data: np.ndarray, place: int, end: int, query: _Query, number: int) -> bool:
    """Return True if a piece of the query stands at a byte."""
    begin = query.bounds[number]
    size, same = query.bounds[number + 1] - begin, 0
    while place + size <= end and same < size and data[place + same] == query.data[begin + same]:
        same += 1
    return same == size


@njit(**INNER)
def _around(
    data: np.ndarray,
    place: int,
    number: int,
    free: int,
    first: int,
    end: int,
    traits: np.ndarray,
    query: _Query,
    scratch: np.ndarray,
) -> bool:
    """Look for an occurrence around a byte at which a piece of the query may stand; see :func:`_nearest`."""
    if not _stands(data, place, end, query, number):
        return False
    if len(query.pieces) == 2:  # the piece is all of it
        scratch[2, 0], scratch[2, 1], scratch[2, 2] = place, place + len(query.data), 0
        cut_left = not query.open_left and _joined(data, place, first, end, traits)
        if cut_left or (not query.open_right and _joined(data, scratch[2, 1], first, end, traits)):
            return False
    else:
        size, most, low, high = len(query.codes), len(query.pieces) - 2, place, place
        for _ in range(query.pieces[number] + most):
            if low > free:
                low = _previous(data, low)
        for _ in range(size - query.pieces[number] + most):
            if high < end:
                high += decode_character(data, high)[1]
        if not _is_near(data, low, high, query.letters, query.masks, size, most):
            return False
        how = query.codes, most, query.open_left, query.open_right, scratch
        if not _nearest(data, low, high, first, end, traits, *how):
            return False
    while query.open_left and scratch[2, 0] > free and _joined(data, scratch[2, 0], first, end, traits):
        scratch[2, 0] = _previous(data, scratch[2, 0])
    while query.open_right and _joined(data, scratch[2, 1], first, end, traits):
        scratch[2, 1] += decode_character(data, scratch[2, 1])[1]
    return True


@njit(**INNER)
def _hash(data: np.ndarray, place: int, end: int) -> np.uint64:
    """Return FNV's hash of bytes."""
    hashed = np.uint64(14695981039346656037)
    while place < end:
        hashed = (hashed ^ np.uint64(data[place])) * np.uint64(1099511628211)
        place += 1
    return hashed


@njit(**INNER)
def _mark(data: np.ndarray, start: int, size: int, query: _Query, marks: np.ndarray) -> None:
    """Mark, for each of ``size`` bytes from ``start`` on, the pieces with three bytes at their place."""
    for k in range(size):
        marks[k] = 0
    for number in range(len(query.rare)):
        begin, bit = query.bounds[number], np.uint8(1 << number)
        i, j, k = query.rare[number]
        a, b, c = query.data[begin + i], query.data[begin + j], query.data[begin + k]
        first, second, third = data[start + i :], data[start + j :], data[start + k :]
        for n in range(min(size, len(data) - start - (query.bounds[number + 1] - begin) + 1)):
            marks[n] |= bit * np.uint8((first[n] == a) & (second[n] == b) & (third[n] == c))


@njit(**LEAN)
def _find(
    data: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    traits: np.ndarray,
    query: _Query,
    row: int,
    stop: int,
    scratch: np.ndarray,
    marks: np.ndarray,
    places: np.ndarray,
    hashes: np.ndarray,
) -> np.int64:
    """Write the occurrences in some rows, with hashes of them; return how many, at most one more than there is room for."""
    found, start = np.int64(0), offsets[row]
    free = start  # what lies before is part of an occurrence
    while start < offsets[stop]:
        size = min(len(marks) - 8, offsets[stop] - start)
        _mark(data, start, size, query, marks)
        k = np.int64(0)
        while k < size:
            word = load_word(address_of(marks, k))
            if word == 0:
                k += 8
                continue
            k += np.int64(trailing_zeros(word) >> _THREE)
            if k >= size:
                break
            place, mask, number = start + k, np.int64(marks[k]), np.int64(0)
            k += 1
            while offsets[row + 1] <= place:
                row += 1
            if not wanted[row] or place < free:
                continue
            first, end = offsets[row], offsets[row + 1]
            free = max(free, first)
            while mask:
                if mask & 1 and _around(data, place, number, free, first, end, traits, query, scratch):
                    if found == len(places):
                        return found + 1
                    free = scratch[2, 1]
                    places[found, 0], places[found, 1], places[found, 2] = row, scratch[2, 0], free
                    places[found, 3], hashes[found] = scratch[2, 2], _hash(data, scratch[2, 0], free)
                    found += 1
                    break
                mask >>= 1
                number += 1
        start += size
    return found
