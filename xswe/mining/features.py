"""Features of the learning filter: some four dozen numbers per pair, from the bytes and the units of both sides.

Units are compared one by one: a unit is covered if its best cosine with any unit of the other side is high enough. All
features are stored in eight bits, as trees have no more bins: those of a hundred million pairs take a few gigabytes.
Products of units are computed in integers, with the same result on every processor.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.bitext.kernels import mix
from xswe.bitext.rows import copied
from xswe.io.compiler import INNER, LEAN, address_of, eight_products, prefetch_row
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Bags, Texts
from xswe.mining.sounds import heard_in
from xswe.model.ensemble import AnyModel, Ensemble
from xswe.model.precision import quantise
from xswe.text.compiled.numbers import OTHER, SAME
from xswe.text.numbers import compared_numbers

# For either side, the source first: the mean best cosine of units, weighted by their norms; the tenth percentile; the share
# of uncovered units; the means of the first and of the last third; the longest uncovered stretch; the lowest best cosine
# among units of at least mean norm.
_COVERAGE = ("covered", "least covered", "not covered", "first third", "last third", "gap", "rarest unit")
_SIDES = ("source", "target")
NAMES: tuple[str, ...] = (
    "cosine",
    *(f"{name} of the {side}" for side in _SIDES for name in _COVERAGE),
    *(f"repetition in the {side}" for side in _SIDES),
    *(f"language of the {side}" for side in _SIDES),
    "units of the target to those of the source",
    "bytes of the target to those of the source",
    "length",
    "numbers",
    *(f"names missing in the {side}" for side in reversed(_SIDES)),
    *(f"least covered name of the {side}" for side in _SIDES),
    *(f"{script} letters in the {side}" for side in _SIDES for script in ("Latin", "Kana", "other")),
    *(f"characters of damaged encoding in the {side}" for side in _SIDES),
    "words in common",
    "ends",
    "sentences of the target to those of the source",
    # Of xswe.mining.names, which needs the whole bitext: NOTHING until then, and without names that come back.
    *(f"usual translation of names in the {side}" for side in _SIDES),
    *(f"pairs with the names in the {side}" for side in _SIDES),
)
PLACES = {name: place for place, name in enumerate(NAMES)}
_REPEATED, _LANGUAGE, _UNITS = (PLACES[name] for name in ("repetition in the source", "language of the source", NAMES[19]))
_BYTES, _LENGTH, _NUMBERS, _NAMED = (
    PLACES[name] for name in (NAMES[20], "length", "numbers", "names missing in the target")
)
_SCRIPTS, _MARKS = PLACES["Latin letters in the source"], PLACES["characters of damaged encoding in the source"]
_NAME_COVERED = PLACES["least covered name of the source"]
_COPIED, _ENDS, _SENTENCES = (
    PLACES["words in common"],
    PLACES["ends"],
    PLACES["sentences of the target to those of the source"],
)
_USUAL = PLACES["usual translation of names in the source"]
RATIOS = (_UNITS, _BYTES)  # logarithms, 128 for equal sides
CENTRED = [*RATIOS, _LANGUAGE, _LANGUAGE + 1]  # compared with the bitext's own medians
# Peculiar to each bitext: how it ends sentences, and writes foreign words.
HABITS = [_ENDS, _SENTENCES, _COPIED, *(_SCRIPTS + place for place in (0, 2, 3, 5))]
NO_NUMBERS, SAME_NUMBERS, MORE_NUMBERS, OTHER_NUMBERS = 0, 85, 170, 255  # MORE: one side has extra ones
_PER_END = 48  # units compared from either end of a side
_MIN_COVERED = np.float32(0.4)  # minimum best cosine of a covered unit
MAX_WORDS = 256  # words, and numbers, compared per side
MAX_NAMES = 4  # names per side that are compared unit by unit
NOTHING = 255  # share of nothing


def mirrored(features: np.ndarray) -> np.ndarray:
    """Return the features of the same pairs with the sides swapped."""
    other = {"source": "target", "target": "source"}
    twins = [" ".join(other.get(word, word) for word in name.split(" ")) for name in NAMES]
    out = features[:, [PLACES.get(twin, place) for place, twin in enumerate(twins)]].copy()
    for place in (*RATIOS, _SENTENCES):
        out[:, place] = np.minimum(255, 256 - features[:, place].astype(np.int16)).astype(np.uint8)
    out[:, _ENDS] = np.where(out[:, _ENDS] == 0, 255, np.where(out[:, _ENDS] == 255, 0, out[:, _ENDS]))
    return out


def usual(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of each feature for most pairs, two arrays (features,)."""
    low, high = np.quantile(features, (0.02, 0.98), axis=0)
    return low, high


def unusual(features: np.ndarray, low: np.ndarray, high: np.ndarray, most: int = 3) -> str:
    """Describe the features of a pair that are furthest outside the usual bounds; empty if none are."""
    beyond = np.maximum(low - features, features - high.astype(np.float64))
    order = [place for place in np.argsort(-beyond, kind="stable").tolist()[:most] if beyond[place] > 0]
    return ", ".join(f"{NAMES[place]} {features[place]}, usually {low[place]:.0f} to {high[place]:.0f}" for place in order)


class UnitTable(NamedTuple):
    """A model's unit vectors, prepared for comparison."""

    rows: np.ndarray  # int8 (units, d padded with zeros to a multiple of 16), scaled
    factors: np.ndarray  # float32 (units,), 1 / norm of each row; 0 for zero rows
    norms: np.ndarray  # float32 (units,), of the model's vectors; 0 for punctuation
    languages: np.ndarray  # float32 (units, languages), log frequencies; (units, 0) if unknown
    places: tuple[int, int]  # columns of the source's and the target's language; -1 if unknown

    @classmethod
    def of(cls, model: AnyModel, languages: tuple[str, ...]) -> UnitTable:
        """Return the units of a model; for an ensemble, those of its first part."""
        part = model.parts[0] if isinstance(model, Ensemble) else model
        size = len(part.units)  # the rows of bigrams, which come last, are left out
        scales = part.scales
        rows, scales = (part.matrix[:size], scales[:size]) if scales is not None else quantise(part.vectors[:size])
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int64)
        sizes = np.sqrt(squares.astype(np.float64))
        factors = np.divide(1.0, sizes, out=np.zeros(len(rows)), where=sizes > 0)
        # Punctuation is a matter of habit, and covers nothing.
        words = np.array([any(map(str.isalnum, token)) for token in part.units.tokens])
        known = part.counts is not None and len(languages) == 2 and set(languages) <= set(part.languages)
        frequent = np.zeros((len(rows), 0), np.float32)
        places = (-1, -1)
        if known and part.counts is not None:
            counts = part.counts.T.astype(np.float64) + 0.5
            frequent = np.log(counts / counts.sum(0)).astype(np.float32)
            places = (part.languages.index(languages[0]), part.languages.index(languages[1]))
        return cls(
            np.ascontiguousarray(rows if rows.shape[1] % 16 == 0 else np.pad(rows, ((0, 0), (0, -rows.shape[1] % 16)))),
            factors.astype(np.float32),
            (sizes * scales.astype(np.float64) * words).astype(np.float32),
            np.ascontiguousarray(frequent),
            places,
        )


class Side(NamedTuple):
    """The units of one side of some pairs."""

    ids: np.ndarray  # int32 (units,), of :class:`Bags`
    offsets: np.ndarray  # int64 (pairs + 1,), where the units of each pair begin
    best: np.ndarray  # float32 (units,), the best cosine of each unit with the other side, written by :func:`cover_pairs`


class FoundNames(NamedTuple):
    """The names found in one side, looked up as units."""

    ids: np.ndarray  # int32, of :class:`Bags`
    offsets: np.ndarray  # int64 (names + 1,), where the units of each name begin
    records: np.ndarray  # int64 (names,), the pair of each
    heard: np.ndarray  # float32 (names,), how much each sounds like something on the other side; 0 to 1


class Workspace(NamedTuple):
    """Workspace to compare the units of one pair: a line for each side, or for each quantity."""

    units: np.ndarray  # int64 (2, 2 * _PER_END), the units that are compared
    distinct: np.ndarray  # int64, the distinct ones among them
    places: np.ndarray  # int64, the index of each unit there
    addresses: np.ndarray  # uintp, of the rows of the distinct units
    products: np.ndarray  # int32, of two distinct units of the source, taken in turns, with all of the target
    # float32 (4, 2 * _PER_END): the best cosine of each distinct unit of the source, and of the target; the factors of the
    # target's units; the best cosines of the target, rounded as from its own side
    cosines: np.ndarray


def _workspace() -> Workspace:
    """Return the workspace of one thread."""
    most = 2 * _PER_END  # a multiple of four
    units, distinct, places = np.empty((3, 2, most), np.int64)
    addresses, products = np.empty((2, most), np.uintp), np.empty((2, most), np.int32)
    return Workspace(units, distinct, places, addresses, products, np.empty((4, most), np.float32))


class Features:
    """Extracts the features of pairs with one model."""

    def __init__(self, model: AnyModel, languages: tuple[str, ...]) -> None:
        self._model, self._units = model, (model.parts[0] if isinstance(model, Ensemble) else model).units
        self._table = UnitTable.of(model, languages)

    def read(self, texts: Texts) -> tuple[np.ndarray, Bags]:
        """Return the vectors of texts, float32 (n, d), and their units, looked up only once."""
        bags = self._units.bags(texts)
        if isinstance(self._model, Ensemble):
            return self._model.encode(texts), bags
        return self._model.pool(bags), bags

    def of(
        self, source: Texts, target: Texts, sides: tuple[Bags, Bags], cosines: np.ndarray, threads: int = 1
    ) -> np.ndarray:
        """Return the features, uint8 (n, features), of n pairs, given their units and cosines."""
        out = np.zeros((len(source), len(NAMES)), np.uint8)
        out[:, _USUAL : _USUAL + 4] = NOTHING
        out[:, 0] = np.clip(np.rint((cosines.astype(np.float64) + 1) * 127.5), 0, 255)
        names = np.zeros((len(source), 2, MAX_NAMES, 2), np.int64)
        first, second = (Side(bags.ids, bags.offsets, np.empty(len(bags.ids), np.float32)) for bags in sides)
        over_blocks(partial(self._describe_block, (source, target), (first, second), names, out), len(source), threads)
        self._cover_names((source, target), (first, second), names, out)
        rows = np.flatnonzero(out[:, _NUMBERS] >= MORE_NUMBERS)  # in words, or on another clock, they may match or differ
        found = compared_numbers(source.take(rows), target.take(rows))
        out[rows[found == SAME], _NUMBERS] = SAME_NUMBERS
        out[rows[found == OTHER], _NUMBERS] = OTHER_NUMBERS
        return out

    def _describe_block(
        self,
        texts: tuple[Texts, Texts],
        sides: tuple[Side, Side],
        names: np.ndarray,
        out: np.ndarray,
        start: int,
        stop: int,
    ) -> None:
        """Write all features of some pairs but those of their names, and find the names."""
        table, out = self._table, out[start:stop]
        source, target = (side._replace(offsets=side.offsets[start : stop + 1]) for side in sides)
        cover_pairs(source, target, table, _workspace(), out)
        if table.places[0] >= 0:
            tell_languages(source, target, table, np.empty((2, table.languages.shape[1]), np.float32), out)
        else:
            out[:, _LANGUAGE : _LANGUAGE + 2] = 128
        words, counts = np.empty((4, MAX_WORDS), np.uint64), np.empty((2, 16), np.int64)
        both = [array for side in texts for array in Texts(side.data, side.offsets[start : stop + 1]).frozen]
        look_at_bytes(*both, words, counts, names[start:stop], out)

    def _cover_names(
        self, texts: tuple[Texts, Texts], sides: tuple[Side, Side], names: np.ndarray, out: np.ndarray
    ) -> None:
        """Look up the names of both sides, and write how well the least covered one of each is covered."""
        out[:, _NAME_COVERED : _NAME_COVERED + 2] = NOTHING
        for side in range(2):
            rows, places = map(np.ascontiguousarray, np.nonzero(names[:, side, :, 1]))
            spans = names[rows, side, places]
            bags = self._units.bags(copied(texts[side].data, spans[:, 0], spans[:, 1]))
            heard = np.zeros(len(rows), np.float32)
            kana = np.flatnonzero((out[rows][:, [_SCRIPTS + 1, _SCRIPTS + 4]] > 0).any(axis=1))
            heard[kana] = heard_in(texts[side], spans[kana], rows[kana], texts[1 - side])
            found = FoundNames(bags.ids, bags.offsets, rows, heard)
            cover_names(found, sides[side], sides[1 - side], self._table, _NAME_COVERED + side, out)


@njit(**INNER)
def _share(part: Any, whole: Any) -> Any:
    """Return a share in eight bits."""
    return np.uint8(min(255.0, max(0.0, 255.0 * part / whole + 0.5))) if whole > 0 else np.uint8(NOTHING)


@njit(**INNER)
def _logarithm(a: Any, b: Any) -> Any:
    """Return the logarithm of (a + 1) / (b + 1) in eight bits, 128 for equal numbers."""
    return np.uint8(min(255.0, max(0.0, 128.5 + 40.0 * np.log((a + 1.0) / (b + 1.0)))))


@njit(**INNER)
def _first_and_last(ids: np.ndarray, low: int, high: int, out: np.ndarray) -> int:
    """Write the first and the last units of a text to ``out``, or all if they fit; return how many."""
    count = high - low
    if count <= len(out):
        for k in range(count):
            out[k] = ids[low + k]
        return count
    half = len(out) // 2
    for k in range(half):
        out[k], out[half + k] = ids[low + k], ids[high - half + k]
    return len(out)


@njit(**INNER)
def _prefetch_units(rows: np.ndarray, ids: np.ndarray, low: int, high: int) -> None:
    """Prefetch the rows of a text's units before its turn, as reading them takes long."""
    for t in range(low, min(high, low + 2 * _PER_END)):
        prefetch_row(rows, np.int64(ids[t]))


@njit(**INNER)
def _write_addresses(rows: np.ndarray, ids: np.ndarray, count: int, out: np.ndarray) -> None:
    """Write the addresses of the rows of units, padded to a multiple of four with that of the first."""
    for k in range((count + 3) & -4):
        out[k] = address_of(rows, ids[k if k < count else 0] * rows.shape[1])


@njit(**INNER)
def _tenth(best: np.ndarray, ids: np.ndarray, places: np.ndarray, count: int, norms: np.ndarray, total: Any) -> Any:
    """Return the tenth percentile of the best cosines of units, weighted by their norms, which sum to ``total``."""
    reached, value = np.float32(0.0), np.float32(-1.0)
    while reached < np.float32(0.1) * total:  # mostly after a few units
        following = np.float32(2.0)
        for k in range(count):
            if value < best[places[k]] < following:
                following = best[places[k]]
        value = following
        for k in range(count):
            if best[places[k]] == value:
                reached += norms[ids[k]]
    return value


@njit(**INNER)
def _describe(
    best: np.ndarray,
    ids: np.ndarray,
    places: np.ndarray,
    count: int,
    norms: np.ndarray,
    out: np.ndarray,
    place: int,
) -> None:
    """Write the features of :data:`_COVERAGE`, given the best cosines of distinct units, and each unit's index there."""
    total = np.float32(0.0)
    for k in range(count):
        total += norms[ids[k]]
    if count == 0 or total <= 0:
        for j in range(7):
            out[place + j] = np.uint8(0)
        return
    mean = total / np.float32(count)
    covered = low = run = longest = np.float32(0.0)
    first = last = first_weight = last_weight = np.float32(0.0)
    rarest = np.float32(1.0)
    for k in range(count):
        weight, value = norms[ids[k]], best[places[k]]
        covered += weight * value
        if value < _MIN_COVERED:
            low += weight
            run += weight
            longest = max(longest, run)
        else:
            run = np.float32(0.0)
        if 3 * k < count:
            first, first_weight = first + weight * value, first_weight + weight
        if 3 * (count - 1 - k) < count:
            last, last_weight = last + weight * value, last_weight + weight
        if weight >= mean:
            rarest = min(rarest, value)
    out[place] = _share(covered, total)
    out[place + 1] = _share(_tenth(best, ids, places, count, norms, total), np.float32(1.0))
    out[place + 2] = _share(low, total)
    out[place + 3] = _share(first, first_weight)
    out[place + 4] = _share(last, last_weight)
    out[place + 5] = _share(longest, total)
    out[place + 6] = _share(rarest, np.float32(1.0))


@njit(**INNER)
def _distinct(ids: np.ndarray, count: int, found: np.ndarray, places: np.ndarray) -> int:
    """Find the distinct units of a side, and the index of each unit among them; return how many there are."""
    number = 0
    for k in range(count):
        place = 0
        while place < number and found[place] != ids[k]:
            place += 1
        if place == number:
            found[place] = ids[k]
            number += 1
        places[k] = place
    return number


@njit(**LEAN)
def cover_pairs(source: Side, target: Side, table: UnitTable, workspace: Workspace, out: np.ndarray) -> None:
    """Write the features of units: coverage, repetition, ratio of their numbers.

    The sides also receive the best cosine of each unit, as :func:`cover_names` would compute it; -1 in pairs with more
    units than are compared.
    """
    rows, factors, norms = table.rows, table.factors, table.norms
    units, distinct, places, products = workspace.units, workspace.distinct, workspace.places, workspace.products
    best, other, weights, turned = workspace.cosines[0], workspace.cosines[1], workspace.cosines[2], workspace.cosines[3]
    left, sums = address_of(workspace.addresses, 0), address_of(products, 0)
    right = address_of(workspace.addresses, workspace.addresses.shape[1])
    for i in range(len(out)):
        low, high = source.offsets[i], source.offsets[i + 1]
        target_low, target_high = target.offsets[i], target.offsets[i + 1]
        n = _first_and_last(source.ids, low, high, units[0])
        m = _first_and_last(target.ids, target_low, target_high, units[1])
        here, there = _distinct(units[0], n, distinct[0], places[0]), _distinct(units[1], m, distinct[1], places[1])
        _write_addresses(rows, distinct[0], here, workspace.addresses[0])
        _write_addresses(rows, distinct[1], there, workspace.addresses[1])
        if i + 1 < len(out):
            _prefetch_units(rows, source.ids, high, source.offsets[i + 2])
            _prefetch_units(rows, target.ids, target_high, target.offsets[i + 2])
        for k in range(there):
            other[k], weights[k], turned[k] = np.float32(0.0), factors[distinct[1, k]], np.float32(0.0)
        for j in range(here):
            for k in range(0, there if j % 2 == 0 else 0, 4):
                eight_products(
                    left + np.uintp(8 * j),
                    right + np.uintp(8 * k),
                    rows.shape[1],
                    sums + np.uintp(4 * k),
                    products.shape[1],
                )
            own, most = factors[distinct[0, j]], np.float32(0.0)
            for k in range(there):
                value = np.float32(products[j % 2, k]) * own * weights[k]
                most, other[k] = max(most, value), max(other[k], value)
                # Rounded as from the other side.
                turned[k] = max(turned[k], np.float32(products[j % 2, k]) * weights[k] * own)
            best[j] = most
        whole = low + n == high and target_low + m == target_high
        for t in range(low, high):
            source.best[t] = best[places[0, t - low]] if whole else np.float32(-1.0)
        for t in range(target_low, target_high):
            target.best[t] = turned[places[1, t - target_low]] if whole else np.float32(-1.0)
        _describe(best, units[0], places[0], n, norms, out[i], np.int64(1))
        _describe(other, units[1], places[1], m, norms, out[i], np.int64(8))
        out[i, _REPEATED] = _share(np.float32(n - here), np.float32(max(1, n)))
        out[i, _REPEATED + 1] = _share(np.float32(m - there), np.float32(max(1, m)))
        out[i, _UNITS] = _logarithm(target_high - target_low, high - low)


@njit(**LEAN)
def cover_names(names: FoundNames, own: Side, other: Side, table: UnitTable, feature: int, out: np.ndarray) -> None:
    """Write how well the other side covers each record's least covered name: the mean best cosine of the name's units.

    A name is covered at least as well as it is heard. Its units are mostly among those of its ``own`` side, whose best
    cosines are known.
    """
    rows, factors = table.rows, table.factors
    for name in range(len(names.records)):
        record, total, weights = names.records[name], np.float32(0.0), np.float32(0.0)
        low, high = other.offsets[record], min(other.offsets[record + 1], other.offsets[record] + 4 * _PER_END)
        for t in range(names.offsets[name], names.offsets[name + 1]):
            unit = np.int64(names.ids[t])
            a, value, place = rows[unit], np.float32(-1.0), own.offsets[record]
            while place < own.offsets[record + 1] and own.ids[place] != unit:
                place += 1
            if place < own.offsets[record + 1]:
                value = own.best[place]
            if value < 0:
                value = np.float32(0.0)
                for k in range(low, high):
                    there, product = np.int64(other.ids[k]), np.int32(0)
                    b = rows[there]
                    for j in range(len(a)):
                        product = np.int32(product + np.int32(np.int32(a[j]) * np.int32(b[j])))
                    value = max(value, np.float32(product) * factors[unit] * factors[there])
            total += table.norms[unit] * value
            weights += table.norms[unit]
        if weights > 0:
            covered = max(names.heard[name], min(np.float32(1.0), total / weights))
            out[record, feature] = min(out[record, feature], np.uint8(254.0 * covered))


@njit(**LEAN)
def tell_languages(source: Side, target: Side, table: UnitTable, likely: np.ndarray, out: np.ndarray) -> None:
    """Write how much likelier a side's units are in its language than in the likeliest other one; 128 if equally.

    ``likely``, float32 (2, languages), is workspace.
    """
    frequent = table.languages
    for i in range(len(out)):
        for side in range(2):
            own = table.places[0] if side == 0 else table.places[1]
            low = source.offsets[i] if side == 0 else target.offsets[i]
            high = source.offsets[i + 1] if side == 0 else target.offsets[i + 1]
            total = likely[side]
            for k in range(len(total)):
                total[k] = np.float32(0.0)
            for t in range(low, high):
                unit = np.int64(source.ids[t]) if side == 0 else np.int64(target.ids[t])
                for k in range(len(total)):
                    total[k] += frequent[unit, k]
            rival = np.float32(-1e30)
            for k in range(len(total)):
                if k != own:
                    rival = max(rival, total[k])
            each = (total[own] - rival) / np.float32(max(1, high - low))
            out[i, _LANGUAGE + side] = np.uint8(min(255.0, max(0.0, 128.5 + 40.0 * each)))


# Places of the counts of a text.
_LETTERS, _LATIN, _KANA, _OTHER, _CHARACTERS, _DAMAGED, _END, _WORDS, _FIGURES, NAMES_HERE, _STOPS = range(11)
START = np.uint64(0x9E3779B97F4A7C15)
_CAPITAL = np.uint64(1)  # lowest bit of a hashed prefix: the word is capitalised within a sentence


@njit(**INNER)
def read_character(data: np.ndarray, place: int) -> tuple[Any, int]:
    """Return the code point of a UTF-8 character, mapping full-width characters to ASCII, and its length in bytes."""
    a = np.int64(data[place])
    width = 1 if a < 0x80 else 2 if a < 0xE0 else 3 if a < 0xF0 else 4
    code = a
    if width == 2:
        code = (a & 0x1F) << 6 | np.int64(data[place + 1]) & 0x3F
    elif width == 3:
        code = (a & 0x0F) << 12 | (np.int64(data[place + 1]) & 0x3F) << 6 | np.int64(data[place + 2]) & 0x3F
    elif width == 4:
        code = np.int64(0x10000)  # stands for all beyond the basic plane
    if 0xFF01 <= code <= 0xFF5E:
        code -= 0xFEE0
    return code, width


@njit(**INNER)
def _is_damage(code: int, before: int, within: bool) -> bool:
    """Return True if a character is a sign of damaged encoding.

    Signs are the replacement character, control characters beyond ASCII, private use, half-width Kana, UTF-8 bytes that
    were read one by one, and a character that follows a question mark ``within`` a word.
    """
    if code == 0xFFFD or 0x80 <= code <= 0x9F or 0xE000 <= code <= 0xF8FF or 0xFF61 <= code <= 0xFF9F:
        return True
    if before == 0x3F and within:
        return True
    beside = 0x80 <= code <= 0xBF or code == 0x20AC or 0x2013 <= code <= 0x203A or code == 0x2122
    quote = code == 0xBB or code == 0x201C or code == 0x201D or code == 0x2019
    return bool(0xC0 <= before <= 0xFF and beside and not quote)


@njit(**INNER)
def _ending(code: int) -> int:
    """Return the class of a final mark, 1 to 4; 0 for other characters, -1 for blanks, quotes and brackets."""
    if code <= 0x20 or code == 0x3000 or code == 0x22 or code == 0x27 or code == 0x29 or 0x2018 <= code <= 0x201F:
        return -1
    if code == 0x300D or code == 0x300F or code == 0xBB or code == 0xAB:
        return -1
    if code == 0x2E or code == 0x3002 or code == 0x2026:
        return 1
    if code == 0x3F:
        return 2
    if code == 0x21:
        return 3
    return 4 if code == 0x3A or code == 0x3B or code == 0x2C or code == 0x3001 else 0


@njit(inline="always")
def is_latin(code: int) -> bool:
    """Return True for a Latin letter."""
    return 0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A or (0xC0 <= code <= 0x24F and code != 0xD7 and code != 0xF7)


@njit(**INNER)
def _count_letter(code: int, counts: np.ndarray) -> None:
    """Count a character by its script, if it is a letter."""
    if is_latin(code):
        counts[_LETTERS] += 1
        counts[_LATIN] += 1
    elif (0x3041 <= code <= 0x30FF and code != 0x30FB) or 0xFF66 <= code <= 0xFF9D:
        counts[_LETTERS] += 1
        counts[_KANA] += 1
    elif 0x3400 <= code <= 0x9FFF:
        counts[_LETTERS] += 1
    elif 0x250 <= code <= 0x1FFF or 0xA000 <= code <= 0xD7FF:
        counts[_LETTERS] += 1
        counts[_OTHER] += 1


@njit(**INNER)
def _add_name(start: int, end: int, counts: np.ndarray, names: np.ndarray) -> None:
    """Add the place of a name, if there is room."""
    if counts[NAMES_HERE] < len(names):
        names[counts[NAMES_HERE], 0], names[counts[NAMES_HERE], 1] = start, end
        counts[NAMES_HERE] += 1


@njit(**INNER)
def scan(  # noqa: C901 (one pass over the characters)
    data: np.ndarray, low: int, high: int, words: np.ndarray, counts: np.ndarray, names: np.ndarray
) -> None:
    """Count what a text consists of, and find its words, numbers and names, in one pass.

    Words are runs of three or more Latin letters, ignoring case in Latin-1; ``words[0]`` receives hashes of their first
    five letters, whose lowest bit is :data:`_CAPITAL` or 0; ``words[1]`` receives hashes of the numbers. ``names`` receives
    where words capitalised within a sentence, and runs of Katakana, start and end.

    Three runs are followed side by side, each from its first character to the one after its last, or the end of the text:

        a word        began    ``size`` letters so far, hashed to ``prefix``; ``capital``: it may be a name
        Katakana      kana_began    while ``in_kana``
        a number      hashed to ``digits`` while ``in_number``, over separators between digits

    ``fresh``: a sentence begins, so that a capital says nothing; ``before``: the character before this one.
    """
    for k in range(11):
        counts[k] = 0
    began = kana_began = low
    words_found = figures = 0
    prefix, size, capital, fresh = START, 0, False, True
    digits, in_number, in_kana = START, False, False
    place, before = low, np.int64(0)
    while place < high:
        start = place
        code, width = read_character(data, place)
        place += width
        counts[_CHARACTERS] += 1
        _count_letter(code, counts)
        latin = is_latin(code)
        if latin:
            upper = bool(code <= 0x5A or (0xC0 <= code <= 0xDE))
            folded = np.uint64(code + 0x20 if upper else code)
            if size == 0:
                prefix, capital, began = START, upper and not fresh, start
            if size < 5:
                prefix = mix(prefix ^ folded)
            size += 1
            fresh = False
            second = place
            while place < high and 0x61 <= data[place] <= 0x7A:  # fast path: most text is lower-case letters
                code = np.int64(data[place])
                if size < 5:
                    prefix = mix(prefix ^ np.uint64(code))
                size += 1
                place += 1
            counts[_CHARACTERS] += place - second
            counts[_LETTERS] += place - second
            counts[_LATIN] += place - second
        if size > 0 and (not latin or place >= high):  # the word ends
            if size > 2 and words_found < words.shape[1]:
                words[0, words_found] = (prefix & ~_CAPITAL) | (_CAPITAL if capital else np.uint64(0))
                words_found += 1
            if size > 2 and capital:
                _add_name(began, place if latin else start, counts, names)
            size = 0
        katakana = 0x30A1 <= code <= 0x30FC and code != 0x30FB
        if katakana and not in_kana:
            kana_began, in_kana = start, True
        if in_kana and (not katakana or place >= high):  # the run of Katakana ends
            kana_end = place if katakana else start
            if kana_end - kana_began >= 9:
                _add_name(kana_began, kana_end, counts, names)
            in_kana = False
        digit = 0x30 <= code <= 0x39
        if digit:
            digits = mix(digits ^ np.uint64(code))
            in_number = True
            fresh = False
        separator = in_number and (code == 0x2C or code == 0x2E) and place < high and 0x30 <= data[place] <= 0x39
        if in_number and (place >= high or not (digit or separator)):  # the number ends
            if figures < words.shape[1]:
                words[1, figures] = digits
                figures += 1
            digits, in_number = START, False
        if code == 0x2E or code == 0x21 or code == 0x3F or code == 0x3A or code == 0x22 or code == 0x201C or code == 0x201E:
            fresh = True
        if _is_damage(code, before, latin or (code == 0x3F and width == 1)):
            counts[_DAMAGED] += 1
        stop = code == 0x3002 or code == 0x21 or code == 0x3F or (code == 0x2E and (place >= high or data[place] <= 0x20))
        if stop and not (before == 0x21 or before == 0x3F or before == 0x2E):
            counts[_STOPS] += 1
        before = code
        ended = _ending(code)
        if ended >= 0:
            counts[_END] = ended
    counts[_WORDS], counts[_FIGURES] = words_found, figures


@njit(**INNER)
def _missing_names(words: np.ndarray, count: int, others: np.ndarray, number: int) -> Any:
    """Return the share of capitalised words that the other side lacks."""
    names = missed = 0
    for k in range(count):
        if words[k] & _CAPITAL:
            names += 1
            there = False
            for j in range(number):
                there |= (words[k] | _CAPITAL) == (others[j] | _CAPITAL)
            missed += not there
    return _share(np.float32(missed), np.float32(names) * np.float32(1.01))  # 255 means no names


@njit(**INNER)
def _words_in_common(words: np.ndarray, count: int, others: np.ndarray, number: int) -> Any:
    """Return the share of words in common, among those of the side with fewer."""
    shared = 0
    for k in range(count):
        there = False
        for j in range(number):
            there |= (words[k] | _CAPITAL) == (others[j] | _CAPITAL)
        shared += there
    return _share(np.float32(shared), np.float32(max(1, min(count, number))))


@njit(**INNER)
def _compare_numbers(a: np.ndarray, count: int, b: np.ndarray, number: int) -> Any:
    """Compare the numbers of two sides in any order; matches are removed from ``b``."""
    found = 0
    for k in range(count):
        there = False
        for j in range(number):
            if not there and b[j] == a[k]:
                b[j] = np.uint64(0)
                there = True
        found += there
    if found == count == number:
        return np.uint8(SAME_NUMBERS)
    return np.uint8(MORE_NUMBERS if found in (count, number) else OTHER_NUMBERS)


@njit(**LEAN)
def look_at_bytes(
    source: np.ndarray,
    source_offsets: np.ndarray,
    target: np.ndarray,
    target_offsets: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    names: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the features of the bytes: lengths, numbers, names, scripts, damage, words in common, ends.

    ``words`` uint64 (4, most) and ``counts`` int64 (2, 16) are workspace; ``names`` int64 (n, 2, most, 2) receives where
    the names of both sides start and end.
    """
    for i in range(len(out)):
        scan(source, source_offsets[i], source_offsets[i + 1], words[0:2], counts[0], names[i, 0])
        scan(target, target_offsets[i], target_offsets[i + 1], words[2:4], counts[1], names[i, 1])
        here, there = counts[0], counts[1]
        bytes_here = source_offsets[i + 1] - source_offsets[i]
        bytes_there = target_offsets[i + 1] - target_offsets[i]
        out[i, _BYTES] = _logarithm(bytes_there, bytes_here)
        out[i, _LENGTH] = np.uint8(min(255.0, 32.0 * np.log(1.0 + bytes_here + bytes_there)))
        if here[_FIGURES] + there[_FIGURES] == 0:
            out[i, _NUMBERS] = np.uint8(NO_NUMBERS)
        else:
            out[i, _NUMBERS] = _compare_numbers(words[1], here[_FIGURES], words[3], there[_FIGURES])
        out[i, _NAMED] = _missing_names(words[0], here[_WORDS], words[2], there[_WORDS])
        out[i, _NAMED + 1] = _missing_names(words[2], there[_WORDS], words[0], here[_WORDS])
        for side in range(2):
            own = counts[side]
            for k in range(3):
                part = own[_LATIN] if k == 0 else own[_KANA] if k == 1 else own[_OTHER]
                out[i, _SCRIPTS + 3 * side + k] = _share(np.float32(part), np.float32(max(1, own[_LETTERS])))
            out[i, _MARKS + side] = _share(np.float32(4 * own[_DAMAGED]), np.float32(max(1, own[_CHARACTERS])))
        out[i, _COPIED] = _words_in_common(words[0], here[_WORDS], words[2], there[_WORDS])
        a, b = here[_END], there[_END]
        both = 128 if a == b else 96 if a > 0 and b > 0 else 0 if b == 0 else 255
        out[i, _ENDS] = np.uint8(both)
        out[i, _SENTENCES] = np.uint8(min(255, max(0, 128 + 25 * (there[_STOPS] - here[_STOPS]))))
