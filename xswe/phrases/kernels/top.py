"""Lists of the best spans, and the distinct words of a block, so that each is multiplied only once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN, at, bare, stand_alone
from xswe.io.ragged import bounds_of


class Distinct(NamedTuple):
    """The distinct words of a block, the most frequent first, so that frequent reads are contiguous."""

    rows: np.ndarray  # int32 (w,), the distinct word of each word
    pieces: np.ndarray  # int64 (p,), the rows of the whole table that occur, the most frequent first
    ids: np.ndarray  # int32 (n,), the pieces of the distinct words, as indices into ``pieces``
    offsets: np.ndarray  # int64 (d + 1,), distinct word ``r`` has the pieces ``ids[offsets[r]:offsets[r + 1]]``


def distinct_words(names: np.ndarray, words: np.ndarray, size: int) -> Distinct:
    """Return the distinct words of a block, where word ``j`` has the pieces ``names[words[j]:words[j + 1]]``.

    ``names``, int32, are rows of a table with ``size`` rows; ``words`` is int64 (w + 1,).
    """
    several = int(np.count_nonzero(np.diff(words) != 1))
    alone, slots = np.full(size, -1, np.int32), np.full(max(16, 1 << (2 * several - 1).bit_length()), -1, np.int32)
    rows, examples = np.empty(len(words) - 1, np.int32), np.empty(len(words) - 1, np.int64)
    examples = examples[: _number(names, words, alone, slots, rows, examples)]
    counts = np.bincount(rows, minlength=len(examples))
    order = np.argsort(-counts, kind="stable")
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    examples = examples[order]
    lengths = words[examples + 1] - words[examples]
    offsets = bounds_of(lengths)
    spelled = names[np.repeat(words[examples] - offsets[:-1], lengths) + np.arange(offsets[-1])]
    used = np.bincount(spelled, weights=np.repeat(counts[order], lengths), minlength=size)
    pieces = np.flatnonzero(used)
    pieces = pieces[np.argsort(-used[pieces], kind="stable")]
    place = np.zeros(size, np.int32)
    place[pieces] = np.arange(len(pieces), dtype=np.int32)
    return Distinct(number[rows], pieces, place[spelled], offsets)


@njit(inline="always")
def key_of(names: np.ndarray, first: int, last: int) -> np.uint64:
    """Return a hash of a run of pieces, equal for equal words and phrases."""
    key = np.uint64(0xCBF29CE484222325)
    for p in range(first, last):
        key = (key ^ np.uint64(names[p])) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


@njit(**LEAN)
def _number(
    names: np.ndarray, words: np.ndarray, alone: np.ndarray, table: np.ndarray, rows: np.ndarray, examples: np.ndarray
) -> int:
    """Number the distinct words in order of occurrence, and return their count.

    ``alone`` maps pieces to the numbers of one-piece words, ``table`` is a hash table of the others; ``rows`` receives the
    number of each word, ``examples`` a word for each number.
    """
    found, slots, count = 0, len(table), len(rows)
    names, words, alone, table, rows, examples = (
        bare(names),
        bare(words),
        bare(alone),
        bare(table),
        bare(rows),
        bare(examples),
    )
    for j in range(count):
        first, last = words[j], words[j + 1]
        if last - first == 1:
            row = alone[names[first]]
            if row < 0:
                alone[names[first]] = found
        else:
            slot = np.int64(key_of(names, first, last) & np.uint64(slots - 1))
            row = table[slot]
            while row >= 0:
                other, k = words[examples[row]] - first, first
                same = words[examples[row] + 1] - other == last
                while same and k < last:
                    same = names[other + k] == names[k]
                    k += 1
                if same:
                    break
                slot = (slot + 1) & (slots - 1)
                row = table[slot]
            if row < 0:
                table[slot] = found
        if row < 0:
            row = np.int32(found)
            examples[found] = j
            found += 1
        rows[j] = row
    return found


# The k best hits of each query, as flat arrays for compiled code and for files.


HIT = np.dtype([("key", "u8"), ("times", "i8"), ("spread", "i8"), ("latest", "i8"), ("score", "f4")], align=True)
PLACE = np.dtype([("passage", "i8"), ("first", "i4"), ("last", "i4")], align=True)


class Top(NamedTuple):
    """The best hits of ``n`` queries, best first.

    The fields of a hit: a hash of the phrase, to count equal phrases; the number of occurrences; the number of passages;
    the last of these; the cosine, -4 if there is no hit. The fields of a place: the passage; the first word of the span;
    one past its last word.
    """

    hits: np.ndarray  # HIT (n x k,)
    places: np.ndarray  # PLACE (n x k x examples,), the first occurrences of each phrase
    used: np.ndarray  # int64 (n,), number of hits
    k: int
    examples: int

    @classmethod
    def empty(cls, n: int, k: int, examples: int = 1) -> Top:
        """Return empty lists."""
        hits, places = np.zeros(n * k, HIT), np.zeros(n * k * examples, PLACE)
        hits["score"], hits["latest"], places["passage"] = -4.0, -1, -1
        return cls(hits, places, np.zeros(n, np.int64), k, examples)

    def of_hits(self, field: str) -> np.ndarray:
        """Return a field of the hits, (n, k), as a writable view of the lists."""
        return self.hits[field].reshape(-1, self.k)


@njit(**INNER)
def insert(
    top: Top,
    lane: int,
    score: float,
    passage: int,
    first: int,
    last: int,
    key: np.uint64,
    distinct: bool,
) -> bool:
    """Insert a hit into a query's list if it is among the k best; return True if it was inserted or counted.

    Ties keep the first hit. With ``distinct``, a phrase already in the list is counted instead.
    """
    stand_alone()
    hits, places, examples = top.hits, top.places, top.examples
    begin = lane * top.k
    r = begin + top.used[lane]
    if distinct:
        for known in range(begin, r):
            hit = at(hits, known)
            if hit.key == key:
                if hit.times < examples:
                    place = at(places, known * examples + hit.times)
                    place.passage, place.first, place.last = passage, first, last
                hit.times += 1
                hit.spread += hit.latest != passage
                hit.latest = passage
                return True
    if r == begin + top.k:
        r -= 1
        if score <= at(hits, r).score:
            return False
    else:
        top.used[lane] += 1
    hit = at(hits, r)
    while r > begin and at(hits, r - 1).score < score:
        above = at(hits, r - 1)
        hit.score, hit.key, hit.times = above.score, above.key, above.times
        hit.spread, hit.latest = above.spread, above.latest
        for e in range(r * examples, r * examples + examples):
            place, before = at(places, e), at(places, e - examples)
            place.passage, place.first, place.last = before.passage, before.first, before.last
        r -= 1
        hit = above
    hit.score, hit.key, hit.times, hit.spread, hit.latest = score, key, 1, 1, passage
    for e in range(r * examples, r * examples + examples):
        place = at(places, e)
        place.passage, place.first, place.last = -1, 0, 0
    place = at(places, r * examples)
    place.passage, place.first, place.last = passage, first, last
    return True


def merge(into: Top, part: Top, queries: np.ndarray, distinct: bool) -> None:
    """Merge hits in later passages, for some queries, int64 (n,), into all lists; ``distinct`` as in :func:`insert`."""
    if distinct:
        _count(into, part, queries)
        return
    ours, theirs = (top.hits.reshape(-1, top.k) for top in (into, part))
    places, their_places = (top.places.reshape(-1, top.k) for top in (into, part))
    both, all_places = np.hstack([ours[queries], theirs]), np.hstack([places[queries], their_places])
    order = np.argsort(-both["score"], axis=1, kind="stable")[:, : into.k]  # stable: ties keep the earlier hit first
    ours[queries], places[queries] = (np.take_along_axis(of, order, 1) for of in (both, all_places))
    into.used[queries] = np.minimum(into.used[queries] + part.used, into.k)


@njit(**LEAN)
def _count(into: Top, part: Top, queries: np.ndarray) -> None:
    """Merge with ``distinct``, for :func:`merge`."""
    lanes = len(part.used)
    into, part, queries = bare(into), bare(part), bare(queries)
    for own in range(lanes):
        lane = queries[own]
        for r in range(own * part.k, own * part.k + part.used[own]):
            found = at(part.hits, r)
            known = found.times if found.times < part.examples else part.examples
            kept, shown, before = False, 0, np.int64(-1)
            for e in range(r * part.examples, r * part.examples + known):
                place = at(part.places, e)
                shown += place.passage != before
                before = place.passage
                first, last = np.int64(place.first), np.int64(place.last)
                kept |= insert(into, lane, found.score, place.passage, first, last, found.key, np.bool_(True))
            if kept and found.times > known:
                for q in range(lane * into.k, lane * into.k + into.used[lane]):
                    hit = at(into.hits, q)
                    if hit.key == found.key:
                        hit.times += found.times - known
                        hit.spread += found.spread - shown
