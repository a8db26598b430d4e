"""Context sentences of units (EN paper 3.1, JA paper 2.1): up to N short sentences that contain each unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numba import njit

from xswe.bitext.kernels import mix
from xswe.errors import ConfigError
from xswe.io.ragged import Bags, bounds_of, read_only
from xswe.io.settings import check_choice, check_least, for_all

Pick = Literal["shortest", "random", "first"]
Length = Literal["units", "tokens"]
# Whether to choose the shortest candidates, random ones, or the first.
_PICKED = for_all(Pick, {"shortest": (True, False, False), "random": (False, True, False), "first": (False, False, True)})
BY_TOKENS = for_all(Length, {"units": False, "tokens": True})
_MAX_ROWS = 1 << 32  # a key has 32 bits for the row
_KEYS_PER_READ = 1 << 22
_UNITS_WORTH_COMPILING = 1 << 19  # with fewer, numpy is faster than compiling the kernels


@dataclass(frozen=True)
class ContextConfig:
    """Settings for choosing contexts.

    Attributes:
        per_unit: N, sentences per unit (paper: 100).
        candidates: at most this many sentences of a unit, drawn at random, are considered (JA paper: 2,000).
        pick: of the candidates, the ``shortest`` (JA paper), ``random`` ones, or the ``first`` (reference code).
        length: the length of a sentence is its number of ``units``, which costs nothing, or of the teacher's ``tokens``
            (JA paper), for which all candidates are tokenised.
        seed: decides candidates and random picks.
    """

    per_unit: int = 100
    candidates: int = 2000
    pick: Pick = "shortest"
    length: Length = field(default="units", metadata={"omit": True})  # see xswe.training.stages
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("contexts.pick", self.pick, Pick)
        check_choice("contexts.length", self.length, Length)
        check_least(self, "contexts", per_unit=1, candidates=1, seed=0)


@dataclass(frozen=True, eq=False)
class Contexts:
    """The chosen (sentence, unit) pairs, grouped by sentence."""

    sentences: np.ndarray  # int64 (s,), rows of the chosen sentences, ascending; each is encoded once
    units: np.ndarray  # int32 (pairs,), the units harvested, by sentence, ascending within one
    offsets: np.ndarray  # int64 (s + 1,), sentence ``i`` is harvested for ``units[offsets[i]:offsets[i + 1]]``

    @property
    def bags(self) -> Bags:
        """The units of each sentence."""
        return Bags(self.units, self.offsets)

    @property
    def reference_passes(self) -> int:
        """Forward passes of the reference implementation, which encodes every (unit, sentence) pair separately."""
        return len(self.units)

    def save(self, folder: Path, name: str) -> None:
        """Write ``<name>.sentences.npy``, ``<name>.units.npy`` and ``<name>.offsets.npy`` into ``folder``."""
        for part in ("sentences", "units", "offsets"):
            np.save(folder / f"{name}.{part}.npy", getattr(self, part))

    @classmethod
    def open(cls, folder: Path, name: str) -> Contexts:
        """Read what :meth:`save` wrote."""
        return cls(*(np.load(folder / f"{name}.{part}.npy") for part in ("sentences", "units", "offsets")))

    def sampled(self, per_unit: int, seed: list[int]) -> np.ndarray:
        """Sample up to ``per_unit`` sentences of each unit: distinct ascending rows, int64; 0 for all."""
        if not per_unit:
            return self.sentences
        rows = np.repeat(self.sentences, np.diff(self.offsets))
        order = np.random.default_rng(seed).permutation(len(rows))
        order = order[np.argsort(self.units[order], kind="stable")]
        units = self.units[order]
        first = np.searchsorted(units, units)  # place of the unit's first pair
        return np.unique(rows[order[np.arange(len(units)) - first < per_unit]])


def choose_contexts(
    bags: Bags,
    size: int,
    config: ContextConfig,
    among: np.ndarray | None = None,
    *,
    exact: Bags | None = None,
    wanted: np.ndarray | None = None,
    lengths: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Contexts:
    """Choose the context sentences of each of ``size`` units; the result depends on the bags, the rows and the seed only.

    A sentence counts once for a unit, however often the unit occurs in it. ``bags`` are the sentences of one language, and
    give the units they contain and their lengths. If units have a back-off, ``exact``, the look-up without it, gives the
    units instead. ``among`` has the ascending rows that may be chosen, int64, and ``wanted``, bool (size,), the units that
    get contexts; None for all. ``lengths`` returns the lengths of sentences, given ascending rows, in one call for all
    candidates; it is None if, and only if, ``config.length`` is units.

    Many bags are read twice, in order; besides them, memory holds 8 bytes a candidate, whatever the number of sentences
    (and 8 a sentence with ``lengths``). ConfigError: there are more sentences than rows can be numbered.
    """
    if len(bags) > _MAX_ROWS:
        raise ConfigError(f"{len(bags):,} sentences to choose contexts from, of at most {_MAX_ROWS:,}: set corpus.limit")
    rows = np.arange(len(bags)) if among is None else np.asarray(among, np.int64)
    exact_bags, offsets = bags if exact is None else exact, np.asarray(bags.offsets)
    choice = (_Plain if len(exact_bags.ids) < _UNITS_WORTH_COMPILING else _Compiled)(exact_bags, offsets, rows, size)
    counts = choice.counts()
    if wanted is not None:
        counts[~wanted] = 0
    # For a unit in more sentences than are considered, those with the lowest hash of unit and sentence are drawn. With
    # ``lengths``, this is done for all units: their candidates are first gathered, then measured.
    shortest, random, first = _PICKED[config.pick]
    asked = lengths is not None and shortest
    sampled = counts > config.candidates if shortest else np.full(size, random)
    sampled |= asked
    room = np.where(sampled & shortest, config.candidates, config.per_unit)
    if random:
        room = np.minimum(room, config.candidates)
    kept = choice.keep_least(np.minimum(counts, room), sampled, first, np.uint64(config.seed))
    bounds = _cumulative_lengths(kept, len(bags), lengths) if lengths is not None and asked else offsets
    chosen = choice.select_lowest(bounds, sampled & shortest, config.per_unit)
    bags.release()
    exact_bags.release()
    chosen.sort()
    sentence, unit = np.divmod(chosen, max(1, size))
    sentences, starts = np.unique(sentence, return_index=True)
    return Contexts(sentences, unit.astype(np.int32), np.append(starts, len(chosen)).astype(np.int64))


class _Compiled:
    """The choice in compiled code: the bags are read twice, and besides them only the kept keys are in memory."""

    def __init__(self, bags: Bags, bounds: np.ndarray, rows: np.ndarray, size: int) -> None:
        self._bags, self._size = (read_only(bags.ids), read_only(bags.offsets), rows), size
        self._bounds = read_only(bounds)  # cumulative lengths of the sentences

    def counts(self) -> np.ndarray:
        """Count the sentences with each unit, int64 (units,)."""
        counts = np.zeros(self._size, np.int64)
        _count_sentences(*self._bags, counts)
        return counts

    def keep_least(self, room: np.ndarray, sampled: np.ndarray, by_row: bool, seed: np.uint64) -> np.ndarray:
        """Return the least keys of each unit, ``room`` of them; see :func:`_keep_least`."""
        self._starts = bounds_of(room)
        self._kept = np.empty(self._starts[-1], np.uint64)
        _keep_least(*self._bags, self._bounds, sampled, by_row, seed, self._starts, self._kept)
        return self._kept

    def select_lowest(self, bounds: np.ndarray, by_length: np.ndarray, most: int) -> np.ndarray:
        """Return ``row * units + unit`` of the ``most`` least keys of each unit; units ``by_length`` are rekeyed first."""
        chosen = np.empty(np.minimum(np.diff(self._starts), most).sum(), np.int64)
        _select_lowest(read_only(bounds), by_length, self._starts, self._kept, most, chosen)
        return chosen


class _Plain:
    """The same choice in numpy, from all (sentence, unit) pairs at once."""

    def __init__(self, bags: Bags, bounds: np.ndarray, rows: np.ndarray, size: int) -> None:
        part, self._size = bags.take(rows), size
        pairs = np.unique(np.repeat(rows, part.lengths) * max(1, size) + part.ids)
        self._rows, self._units = np.divmod(pairs, max(1, size))
        self._lengths = np.diff(bounds)[self._rows]

    def counts(self) -> np.ndarray:
        """See :class:`_Compiled`."""
        return np.bincount(self._units, minlength=self._size)

    def keep_least(self, room: np.ndarray, sampled: np.ndarray, by_row: bool, seed: np.uint64) -> np.ndarray:
        """See :class:`_Compiled`."""
        rows, units = self._rows.astype(np.uint64), self._units.astype(np.uint64)
        self._keys = rows if by_row else (self._lengths.astype(np.uint64) << np.uint64(32)) | rows
        hashed = mix.py_func(mix.py_func(seed + units) + rows) & np.uint64(0xFFFFFFFF00000000)
        self._keys = np.where(sampled[self._units], hashed | rows, self._keys)
        self._keep(room)
        return self._keys

    def select_lowest(self, bounds: np.ndarray, by_length: np.ndarray, most: int) -> np.ndarray:
        """See :class:`_Compiled`."""
        lengths = (bounds[self._rows + 1] - bounds[self._rows]).astype(np.uint64)
        by_length = by_length[self._units]
        self._keys[by_length] = (lengths << np.uint64(32) | self._rows.astype(np.uint64))[by_length]
        self._keep(np.full(self._size, most))
        return self._rows * self._size + self._units

    def _keep(self, room: np.ndarray) -> None:
        """Keep the ``room`` pairs with the least keys of each unit."""
        order = np.lexsort((self._keys, self._units))
        units = self._units[order]
        kept = order[np.arange(len(units)) - np.searchsorted(units, units) < room[units]]
        self._rows, self._units, self._keys = self._rows[kept], self._units[kept], self._keys[kept]


def _cumulative_lengths(kept: np.ndarray, size: int, lengths: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the cumulative lengths of all rows, int64 (size + 1,), with length 0 for those not in ``kept``."""
    found = np.zeros(size, bool)
    for start in range(0, len(kept), _KEYS_PER_READ):
        found[(kept[start : start + _KEYS_PER_READ] & np.uint64(0xFFFFFFFF)).astype(np.int64)] = True
    rows = np.flatnonzero(found)
    bounds = np.zeros(size + 1, np.int64)
    bounds[1:][rows] = lengths(rows)
    return np.cumsum(bounds, out=bounds)


@njit(nogil=True, cache=True)
def _count_sentences(ids: np.ndarray, offsets: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> None:
    last = np.full(len(counts), -1, np.int64)
    for row in rows:
        for place in range(offsets[row], offsets[row + 1]):
            unit = ids[place]
            if last[unit] != row:
                last[unit] = row
                counts[unit] += 1


@njit(nogil=True, cache=True)
def _keep_least(
    ids: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    bounds: np.ndarray,
    sampled: np.ndarray,
    by_row: bool,
    seed: np.uint64,
    starts: np.ndarray,
    kept: np.ndarray,
) -> None:
    """Keep the least keys of each unit in ``kept[starts[u]:starts[u + 1]]``, as a heap with the greatest on top.

    A key is 32 bits of priority (a hash for sampled units, the row for ``by_row``, else the length) and 32 of the row.
    """
    last = np.full(len(sampled), -1, np.int64)
    filled = np.zeros(len(sampled), np.int64)
    for row in rows:
        length = np.uint64(bounds[row + 1] - bounds[row]) << np.uint64(32)
        for place in range(offsets[row], offsets[row + 1]):
            unit = ids[place]
            if last[unit] == row:
                continue
            last[unit] = row
            if sampled[unit]:
                scrambled = mix(mix(seed + np.uint64(unit)) + np.uint64(row))
                key = (scrambled & np.uint64(0xFFFFFFFF00000000)) | np.uint64(row)
            elif by_row:
                key = np.uint64(row)
            else:
                key = length | np.uint64(row)
            start, room = starts[unit], starts[unit + 1] - starts[unit]
            if filled[unit] < room:
                _sift_up(kept, start, filled[unit], key)
                filled[unit] += 1
            elif room > 0 and key < kept[start]:
                _sift_down(kept, start, room, key)


@njit(inline="always")
def _sift_up(heap: np.ndarray, start: int, place: int, key: np.uint64) -> None:
    """Add a key to a heap at its free end, ``place``."""
    while place > 0:
        parent = (place - 1) // 2
        if heap[start + parent] >= key:
            break
        heap[start + place] = heap[start + parent]
        place = parent
    heap[start + place] = key


@njit(inline="always")
def _sift_down(heap: np.ndarray, start: int, size: int, key: np.uint64) -> None:
    """Replace the greatest key of a heap."""
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[start + child + 1] > heap[start + child]:
            child += 1
        if heap[start + child] <= key:
            break
        heap[start + place] = heap[start + child]
        place = child
    heap[start + place] = key


@njit(nogil=True, cache=True)
def _select_lowest(
    bounds: np.ndarray, by_length: np.ndarray, starts: np.ndarray, kept: np.ndarray, most: int, chosen: np.ndarray
) -> None:
    """Write ``row * units + unit`` of the ``most`` least keys of each unit; units ``by_length`` are rekeyed first."""
    count, units = 0, len(by_length)
    for unit in range(units):
        keys = kept[starts[unit] : starts[unit + 1]]
        if by_length[unit]:
            for k in range(len(keys)):
                row = np.int64(keys[k] & np.uint64(0xFFFFFFFF))
                keys[k] = (np.uint64(bounds[row + 1] - bounds[row]) << np.uint64(32)) | np.uint64(row)
        keys.sort()
        for k in range(min(most, len(keys))):
            chosen[count] = np.int64(keys[k] & np.uint64(0xFFFFFFFF)) * units + unit
            count += 1
