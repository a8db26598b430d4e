"""Occurrences of a string in passages, exact or approximate.

Case and width are ignored. An occurrence starts and ends at word boundaries, unless a ``*`` at that end of the string says
that the word may go on. The search runs on a folded copy of the passages (:func:`fold`) and looks for three rare bytes of
the string first. Approximate matching splits the string into rare pieces, one more than the errors allowed, so that every
occurrence contains a piece unchanged; the text around such a piece is compared by edit distance, first by a bit-parallel
test (Myers, 1999), then exactly.
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

LONGEST = 64  # characters of a string that is matched approximately: the bits of a machine word
_CHARACTERS_PER_ERROR = 4  # one in four may differ, as in fuzzy matches of a translation memory
_MAX_ERRORS = 7  # each piece, one more than the errors, needs a bit of a byte
_MAX_OCCURRENCES = 100_000  # per thread
_SAMPLED_OCCURRENCES = 1000  # occurrences of a form from which its spellings are taken
_FOLDABLE = 0x20000  # characters from here on have no other case or width
_FAR = 1 << 20
_BLOCK_BYTES = 1 << 13  # bytes of passages searched for pieces at a time
_SAMPLE_COUNT, _SAMPLE_BYTES = 32, 1 << 12  # of the passages, to find rare bytes
_ONE, _THREE, _NONE, _ALL = np.uint64(1), np.uint64(3), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_within_word = njit(**INNER)(within_word)


class Occurrence(NamedTuple):
    """An occurrence of a form: its passage, and its span in characters."""

    row: int
    start: int
    end: int


class Form(NamedTuple):
    """A form that occurs, regardless of case and width.

    ``times``: how often; ``errors``: its edit distance to the string, the least of its occurrences; ``spellings``: its
    spellings in the texts, the most frequent first.
    """

    errors: int
    times: int
    spellings: tuple[str, ...]
    places: tuple[Occurrence, ...]


class Found(NamedTuple):
    """The forms found, by errors, then by frequency; ``more``: whether the search stopped at its limit of occurrences."""

    forms: list[Form]
    more: bool


class _Query(NamedTuple):
    """A string and its pieces, prepared for compiled code."""

    codes: np.ndarray  # uint32 (m,), its characters
    pieces: np.ndarray  # int64 (pieces + 1,), the first character of each piece, and m
    data: np.ndarray  # uint8 (bytes,), the string in UTF-8
    bounds: np.ndarray  # int64 (pieces + 1,), the first byte of each piece, and the number of bytes
    rare: np.ndarray  # int64 (pieces, 3), the three bytes of each piece to look for first
    letters: np.ndarray  # uint8 (0x110000,), the row of each character in ``masks``; empty for an exact search
    masks: np.ndarray  # uint64 (rows,), bits for the places of a character in the string; 0 in the first row
    open_left: bool
    open_right: bool


def fold(texts: Texts) -> Texts:
    """Return texts in lower case and half width, with one kind of blank; the number of characters stays."""
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
    """Find the forms of a string in texts, given also as ``folded`` by :func:`fold`.

    A ``*`` before or after the string stands for the rest of a word. ``approximate``: up to a quarter of its characters may
    be replaced, missing or added. Returns at most ``k`` forms with ``lines`` evenly spaced occurrences of each; ``rows``,
    bool (len(texts),), selects the passages to search, None for all.
    """
    data, offsets = folded.frozen
    query = _query(string, approximate, data)
    if query is None:
        return Found([], False)
    wanted = np.ones(len(texts), bool) if rows is None else rows

    def find(first: int, stop: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the number of occurrences in some texts, and the places and hashes of the first of them."""
        places, hashes = np.empty((_MAX_OCCURRENCES, 4), np.int64), np.empty(_MAX_OCCURRENCES, np.uint64)
        scratch, marks = np.empty((3, max(len(query.codes) + 1, 3)), np.int64), np.zeros(_BLOCK_BYTES + 8, np.uint8)
        found = _find(data, offsets, wanted, traits_of_characters(), query, first, stop, scratch, marks, places, hashes)
        kept = min(found, _MAX_OCCURRENCES)
        return found, places[:kept].copy(), hashes[:kept].copy()

    blocks = over_blocks(find, len(texts), threads)
    places, hashes = (np.concatenate([block[part] for block in blocks]) for part in (1, 2))
    found = sum(block[0] for block in blocks)
    return Found(_forms(texts, folded, places, hashes, k, lines), found > len(places))


def _query(string: str, approximate: bool, data: np.ndarray) -> _Query | None:
    """Prepare a string for a search in folded bytes; return None if it has nothing but blanks and ``*``."""
    text = " ".join(string.split())
    codes = _folds()[np.frombuffer(text.strip("* ").encode("utf-32-le", "replace"), "<u4")].astype(np.uint32)
    if not len(codes):
        return None
    errors = min(len(codes) // _CHARACTERS_PER_ERROR, _MAX_ERRORS) if approximate else 0
    written = [chr(code).encode("utf-8", "surrogatepass") for code in codes.tolist()]
    own, starts = np.frombuffer(b"".join(written), np.uint8), bounds_of(np.array(list(map(len, written)), np.int64))
    step = max(_SAMPLE_BYTES, len(data) // _SAMPLE_COUNT)
    sample = np.concatenate([data[a : a + _SAMPLE_BYTES] for a in range(0, len(data), step)] or [data])
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
    """Cut a string into pieces that are as rare in the texts as possible; return their borders, int64 (count + 1,).

    The frequency of a piece is estimated by a Markov chain over the bytes of a ``sample`` of the texts. ``own`` is the
    string, uint8 (bytes,), ``starts``, int64 (m + 1,), the first byte of each of its characters, and the number of bytes.
    """
    size = len(starts) - 1
    if count == 1:
        return np.array([0, size])
    single = np.bincount(sample, minlength=256) + 1.0
    pairs = np.bincount(256 * sample[:-1].astype(np.int64) + sample[1:], minlength=1 << 16) + 1 / 256
    follows = np.log(pairs[256 * own[:-1].astype(np.int64) + own[1:]] / single[own[:-1]])
    ways = np.concatenate([[0.0], np.cumsum(follows)])  # log probability of each prefix
    often = (np.log(single[own[starts[:-1]]]) - ways[starts[:-1]])[:, None] + ways[starts[1:] - 1]
    often = np.exp(np.where(np.tri(size, dtype=bool).T, often, np.inf))  # frequency of the piece from character i to j
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
    """Group occurrences, int64 (n, 4) of row, first folded byte, end and errors, by their folded texts."""
    _, first, which, times = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    fewest = np.full(len(times), _FAR)
    np.minimum.at(fewest, which, places[:, 3])
    out = []
    for form in np.lexsort((first, -times, fewest))[:k].tolist():
        own = _evenly(places[which == form], max(_SAMPLED_OCCURRENCES, lines))
        written = np.empty((len(own), 4), np.int64)
        _write_places(*texts.frozen, *folded.frozen, own, written)
        spellings = Counter(texts.data[start:end].tobytes().decode() for *_, start, end in written.tolist())
        ranked = sorted(spellings, key=lambda one: (-spellings[one], one))
        spans = _evenly(np.column_stack([own[:, 0], written[:, :2]]), lines).tolist()
        out.append(Form(int(fewest[form]), int(times[form]), tuple(ranked), tuple(Occurrence(*one) for one in spans)))
    return out


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced rows, including the first and the last."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


@lru_cache(maxsize=1)
def _folds() -> np.ndarray:
    """Return the folded form of each character, uint32 (0x110000,): lower case, half width, one kind of blank.

    A character stays as it is if its folded form would move word boundaries or is longer than one character.
    """
    out, traits = np.arange(0x110000, dtype=np.uint32), traits_of_characters()
    for code in range(_FOLDABLE):
        folded = " " if (text := chr(code)).isspace() else unicodedata.normalize("NFKC", text).casefold()
        if len(folded) == 1 and traits[ord(folded)] == traits[code]:
            out[code] = ord(folded)
    return out


@njit(**LEAN)
def _fold(data: np.ndarray, offsets: np.ndarray, folds: np.ndarray, out: np.ndarray, ends: np.ndarray) -> None:
    """Write the folded texts, and the end of each."""
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
    """Convert places in folded texts (row, first byte, end) to characters and bytes in the original texts."""
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
    """Return where the preceding character begins."""
    place -= 1
    while data[place] & 0xC0 == 0x80:
        place -= 1
    return place


@njit(**INNER)
def _joined(data: np.ndarray, place: int, first: int, end: int, traits: np.ndarray) -> bool:
    """Return True if a cut at byte ``place`` would split a word of the text from ``first`` to ``end``."""
    if place <= first or place >= end:
        return False
    before, _ = decode_character(data, _previous(data, place))
    after, _ = decode_character(data, place)
    return _within_word(np.int64(traits[before]), np.int64(traits[after]))


@njit(**INNER)
def _is_near(data: np.ndarray, low: int, high: int, letters: np.ndarray, masks: np.ndarray, size: int, most: int) -> bool:
    """Return True if a string of ``size`` characters occurs in a window with at most ``most`` errors (Myers, 1999).

    Ignores word boundaries.
    """
    more, fewer, errors = _ALL, _NONE, size  # bits where the column of distances rises, or falls, by one
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
    """Find the span nearest to the query in a window, from byte ``low`` to ``high``, that splits no word.

    ``scratch[2, :3]`` gets the first byte of the nearest span, the shortest of several, its end and its errors. Returns
    whether it has at most ``most`` errors.
    """
    size = len(query)
    costs, begins, best = scratch[0], scratch[1], scratch[2]  # for the query's first i characters, ending at ``place``
    for i in range(size + 1):
        costs[i], begins[i] = _FAR, low
    best[2] = most + 1
    place = low
    while True:
        if open_left or not _joined(data, place, first, end, traits):  # a span may begin here
            costs[0], begins[0] = 0, place
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
        costs[0] += 1  # a character that the query lacks, at the start of a word
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
def _piece_occurs(data: np.ndarray, place: int, end: int, query: _Query, number: int) -> bool:
    """Return True if a piece of the query occurs at byte ``place``."""
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
    """Look for an occurrence around byte ``place``, where a piece of the query may occur; see :func:`_nearest`."""
    if not _piece_occurs(data, place, end, query, number):
        return False
    if len(query.pieces) == 2:  # the piece is the whole query
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
    """Return the FNV hash of bytes."""
    hashed = np.uint64(14695981039346656037)
    while place < end:
        hashed = (hashed ^ np.uint64(data[place])) * np.uint64(1099511628211)
        place += 1
    return hashed


@njit(**INNER)
def _mark(data: np.ndarray, start: int, size: int, query: _Query, marks: np.ndarray) -> None:
    """Mark, for each of ``size`` bytes from ``start``, the pieces whose three rare bytes match there."""
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
    """Write the occurrences in rows ``row`` to ``stop`` and their hashes; return how many, one more than fits if full."""
    found, start = np.int64(0), offsets[row]
    free = start  # everything before is part of an occurrence, or of an earlier row
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
