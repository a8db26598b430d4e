"""How a bitext translates its names, counted over a sample of its pairs.

A changed name is hard to see next to Chinese or Japanese, which spell it in their own characters. But names come back: if
all other targets of *Nakamura* contain 中村, a pair without it is suspect. So is one of many pairs with the same name whose
targets have nothing in common.

The parts of translations that are counted are Chinese characters, two neighbouring characters of Chinese or Kana, and the
beginnings of Latin words. If k other pairs of the sample have the name, v of them have the part, and a share p of all pairs
has it, then (v - k p - 2 sqrt(k p (1 - p))) / k tells how usual the part is: how far it goes beyond chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.bitext.kernels import mix
from xswe.io.compiler import INNER, LEAN
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Texts, bounds_of
from xswe.mining.features import MAX_NAMES, MAX_WORDS, NAMES_HERE, NOTHING, PLACES, START, is_latin, read_character, scan

_PARTS = 12  # the most usual parts of a name's translations
_DEVIATIONS = 2.0  # standard deviations from what chance explains
_LEAST_OTHERS = 2  # other pairs that a name must be in
_REGULAR, _LEAST_REGULAR = 0.4, 3  # how usual a part of a regular translation is; and in how many pairs the name is
_MOST_PARTS = 2048  # of a text; the rest is not read
_USUAL, _COUNT = PLACES["usual translation of names in the source"], PLACES["pairs with the names in the source"]
_IDEOGRAPHIC = np.uint64(1)  # lowest bit of the hash of a part in Chinese or Kana
FlatTexts = tuple[np.ndarray, np.ndarray]  # :attr:`Texts.frozen`


class Names(NamedTuple):
    """The names of one side that are in several pairs of the sample, and their usual translations."""

    hashes: np.ndarray  # uint64 (names,), ascending
    counts: np.ndarray  # int64 (names,), pairs with the name
    parts: np.ndarray  # uint64 (names, _PARTS), hashes of its usual translations; 0 if it has fewer
    together: np.ndarray  # int64 (names, _PARTS), pairs with the name and the part
    anywhere: np.ndarray  # int64 (names, _PARTS), pairs with the part
    pairs: int  # in the sample


class Workspace(NamedTuple):
    """Workspace to look up the names of one pair."""

    words: np.ndarray  # uint64 (2, MAX_WORDS), and
    counts: np.ndarray  # int64 (16,), of :func:`~xswe.mining.features.scan`
    spans: np.ndarray  # int64 (MAX_NAMES, 2), where a text's names are
    names: np.ndarray  # uint64 (2, MAX_NAMES), the names of the pair, and of the pair that it is made from
    parts: np.ndarray  # uint64 (2, _MOST_PARTS), likewise the parts of their other sides

    @classmethod
    def new(cls) -> Workspace:
        """Return the workspace of one thread."""
        words, counts = np.empty((2, MAX_WORDS), np.uint64), np.empty(16, np.int64)
        names, parts = np.empty((2, MAX_NAMES), np.uint64), np.empty((2, _MOST_PARTS), np.uint64)
        return cls(words, counts, np.empty((MAX_NAMES, 2), np.int64), names, parts)


@dataclass(frozen=True, eq=False)
class NameUsage:
    """The names of both sides of a bitext.

    Attributes:
        sides: those of the source, and of the target.
        regular: for each side, the names whose translation is so regular that a change can be seen.
    """

    sides: tuple[Names, Names]
    regular: tuple[frozenset[str], frozenset[str]]

    @classmethod
    def of(cls, pairs: list[tuple[str, str]]) -> NameUsage:
        """Count the names of some pairs."""
        texts = [Texts.of([pair[side] for pair in pairs]) for side in range(2)]
        counted = [_counted(texts[side], texts[1 - side]) for side in range(2)]
        return cls((counted[0][0], counted[1][0]), (counted[0][1], counted[1][1]))

    def __bool__(self) -> bool:
        """Return True if there are names to look up."""
        return any(len(side.hashes) for side in self.sides)

    def write(
        self,
        texts: tuple[Texts, Texts],
        out: np.ndarray,
        counted: np.ndarray,
        origins: tuple[Texts, Texts] | None = None,
        threads: int = 1,
    ) -> None:
        """Write how usual the least usual translation of a name is, and how many other pairs show it, for each side.

        Args:
            texts: the sides of n pairs.
            out: uint8 (n, features), of :data:`~xswe.mining.features.NAMES`.
            counted: bool (n,), which pairs, or the pairs that they are made from, are in the sample: they prove nothing of
                themselves, and are taken out of the counts.
            origins: the sides of the pairs that they are made from, if changed.
            threads: number of threads.
        """
        own, first = ([text.frozen for text in pair] for pair in (texts, texts if origins is None else origins))

        def block(start: int, stop: int) -> None:
            workspace = Workspace.new()
            for side in range(2):
                found = own[side], own[1 - side], first[side], first[1 - side]
                look_up_names(*found, counted, (start, stop), self.sides[side], workspace, side, out)

        over_blocks(block, len(out), threads)


def _counted(own: Texts, other: Texts) -> tuple[Names, frozenset[str]]:
    """Return the names of one side, and those that are regularly translated."""
    spans, hashes = np.zeros((len(own), MAX_NAMES, 2), np.int64), np.zeros((len(own), MAX_NAMES), np.uint64)
    list_names(*own.frozen, Workspace.new(), spans, hashes)
    rows, columns = np.nonzero(hashes)
    names, rows = _distinct(hashes[rows, columns], rows)
    hashed, names, counts = np.unique(names, return_inverse=True, return_counts=True)
    sizes = np.zeros(len(other), np.int64)
    listed = np.empty(len(other.data) + len(other), np.uint64)  # at most one part per byte
    listed = listed[: list_parts(*other.frozen, listed, sizes)]
    parts, part_rows = _distinct(listed, np.repeat(np.arange(len(other)), sizes))
    part_hashes, parts, anywhere = np.unique(parts, return_inverse=True, return_counts=True)
    bounds, back = bounds_of(np.bincount(part_rows, minlength=len(own))), np.flatnonzero(counts[names] > 1)
    names, parts, together = _joined(names[back], rows[back], parts, bounds)
    usual = _usual(together, counts[names], anywhere[parts] / max(1, len(own)))
    order = np.lexsort((part_hashes[parts], -usual, names))
    names, parts, together, usual = (column[order] for column in (names, parts, together, usual))
    places = np.arange(len(names)) - np.searchsorted(names, names)
    written = part_hashes[parts] & _IDEOGRAPHIC > 0
    known, regular = np.unique(names[written & (places < _PARTS)]), names[written & (usual >= _REGULAR)]
    chosen = np.flatnonzero((places < _PARTS) & np.isin(names, known))
    into = np.searchsorted(known, names[chosen]), places[chosen]
    shape = len(known), _PARTS
    none = np.zeros(shape, np.uint64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    table = Names(hashed[known], counts[known], *none, len(own))
    for out, values in ((table.parts, part_hashes[parts]), (table.together, together), (table.anywhere, anywhere[parts])):
        out[into] = values[chosen]
    regular = hashed[regular[counts[regular] >= _LEAST_REGULAR]]
    ends = spans[np.isin(hashes, regular) & (hashes > 0)].tolist()
    texts = frozenset(own.data[start:end].tobytes().decode() for start, end in ends)
    return table, texts


def _joined(
    names: np.ndarray, rows: np.ndarray, parts: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each name with each part of the other side of its pairs, and in how many pairs they are together.

    ``names`` are in the pairs ``rows``; pair ``i`` has the parts ``bounds[i]`` to ``bounds[i + 1]``.
    """
    each = np.diff(bounds)[rows]
    places = np.repeat(bounds[rows] - bounds_of(each)[:-1], each) + np.arange(each.sum())
    found, together = np.unique(np.stack([np.repeat(names, each), parts[places]]), axis=1, return_counts=True)
    return found[0], found[1], together


def _usual(together: Any, counts: Any, share: Any) -> Any:
    """Return how usual parts are, from the pairs with a name and the part, those with the name, and the part's share."""
    expected = counts * share
    return (together - expected - _DEVIATIONS * np.sqrt(expected * (1 - share))) / counts


_usual_of_one = njit(**INNER)(_usual)


def _distinct(values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each value of a row once, ordered by rows."""
    order = np.lexsort((values, rows))
    values, rows = values[order], rows[order]
    new = np.ones(len(rows), bool)
    new[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    return values[new], rows[new]


def has_names(features: np.ndarray) -> np.ndarray:
    """Return which pairs may have names to look up, bool (n,), by their other features."""
    capitals = [PLACES[f"names missing in the {side}"] for side in ("source", "target")]
    kana = [PLACES[f"Kana letters in the {side}"] for side in ("source", "target")]
    return np.asarray((features[:, capitals] != NOTHING).any(1) | (features[:, kana] > 0).any(1))


@njit(**INNER)
def _hash_name(data: np.ndarray, low: int, high: int) -> np.uint64:
    """Return a hash of a name, not 0."""
    state = START
    for place in range(low, high):
        state = mix(state ^ np.uint64(data[place]))
    return state | np.uint64(1)


@njit(**INNER)
def _write_names(data: np.ndarray, low: int, high: int, workspace: Workspace, spans: np.ndarray, out: np.ndarray) -> int:
    """Write where the names of a text are, and their hashes; return how many there are."""
    scan(data, low, high, workspace.words, workspace.counts, spans)
    count = workspace.counts[NAMES_HERE]
    for k in range(count):
        out[k] = _hash_name(data, spans[k, 0], spans[k, 1])
    return count


@njit(**INNER)
def _write_parts(data: np.ndarray, low: int, high: int, out: np.ndarray) -> tuple[int, bool]:
    """Write hashes of a text's parts; return how many there are, and whether any is of Chinese or Kana."""
    place, found, ideographic = low, 0, False
    before, prefix, size = np.uint64(0), START, 0
    while place < high and found + 2 <= len(out):
        code, width = read_character(data, place)
        place += width
        latin = is_latin(code)
        if latin:
            if size < 5:
                upper = code <= 0x5A or 0xC0 <= code <= 0xDE
                prefix = mix(prefix ^ np.uint64(code + 0x20 if upper else code))
            size += 1
        if size > 0 and (not latin or place >= high):
            if size > 2:
                out[found] = prefix & ~_IDEOGRAPHIC
                found += 1
            prefix, size = START, 0
        here = np.uint64(0)
        if (0x3041 <= code <= 0x30FF and code != 0x30FB) or 0x3400 <= code <= 0x9FFF:
            here, ideographic = np.uint64(code), True
            if code >= 0x3400:
                out[found] = mix(here) | _IDEOGRAPHIC
                found += 1
            if before > 0:
                out[found] = mix(before << np.uint64(16) | here) | _IDEOGRAPHIC
                found += 1
        before = here
    return found, ideographic


@njit(**LEAN)
def list_names(data: np.ndarray, offsets: np.ndarray, workspace: Workspace, spans: np.ndarray, out: np.ndarray) -> None:
    """Write the names of texts: their places, int64 (n, MAX_NAMES, 2), and hashes, uint64 (n, MAX_NAMES); 0 for none."""
    for i in range(len(out)):
        _write_names(data, offsets[i], offsets[i + 1], workspace, spans[i], out[i])


@njit(**LEAN)
def list_parts(data: np.ndarray, offsets: np.ndarray, out: np.ndarray, sizes: np.ndarray) -> int:
    """Write the parts of texts one after the other, and how many each has; return how many there are."""
    found = 0
    for i in range(len(sizes)):
        most = min(len(out), found + _MOST_PARTS)
        sizes[i] = _write_parts(data, offsets[i], offsets[i + 1], out[found:most])[0]
        found += sizes[i]
    return found


@njit(**INNER)
def _contains(values: np.ndarray, count: int, value: np.uint64) -> bool:
    """Return True if a value is among the first ``count``."""
    found = False
    for k in range(count):
        found |= values[k] == value
    return found


@njit(**INNER)
def _place_of(hashes: np.ndarray, value: np.uint64) -> int:
    """Return the place of a hash among ascending ones; -1 if it is not there."""
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < len(hashes) and hashes[low] == value else -1


@njit(**LEAN)
def look_up_names(
    own: FlatTexts,
    other: FlatTexts,
    origin: FlatTexts,
    other_origin: FlatTexts,
    counted: np.ndarray,
    rows: tuple[int, int],
    names: Names,
    workspace: Workspace,
    side: int,
    out: np.ndarray,
) -> None:
    """Write the features of the names of one side, of the pairs from ``rows[0]`` up to ``rows[1]``."""
    (data, offsets), (other_data, other_offsets), found, parts = own, other, workspace.names, workspace.parts
    for i in range(rows[0], rows[1]):
        out[i, _USUAL + side], out[i, _COUNT + side] = np.uint8(NOTHING), np.uint8(NOTHING)
        count = _write_names(data, offsets[i], offsets[i + 1], workspace, workspace.spans, found[0])
        number = before = -1
        first = 0
        least = np.float64(2.0)
        for k in range(count):
            place = _place_of(names.hashes, found[0, k])
            if place < 0:
                continue
            if number < 0:
                number, ideographic = _write_parts(other_data, other_offsets[i], other_offsets[i + 1], parts[0])
                if not ideographic:
                    break
            if counted[i] and before < 0:
                low, high = origin[1][i], origin[1][i + 1]
                before = _write_names(origin[0], low, high, workspace, workspace.spans, found[1])
                low, high = other_origin[1][i], other_origin[1][i + 1]
                first, _ = _write_parts(other_origin[0], low, high, parts[1])
            itself = before > 0 and _contains(found[1], before, found[0, k])
            others = names.counts[place] - itself
            if others < _LEAST_OTHERS:
                continue
            usual = np.float64(0.0)
            for j in range(_PARTS):
                part = names.parts[place, j]
                if part == 0 or not _contains(parts[0], number, part):
                    continue
                taken = itself and _contains(parts[1], first, part)
                share = (names.anywhere[place, j] - taken) / names.pairs
                usual = max(usual, _usual_of_one(names.together[place, j] - taken, others, share))
            if usual < least:
                least = usual
                out[i, _USUAL + side] = np.uint8(254.0 * usual)
                out[i, _COUNT + side] = np.uint8(min(252, others))
