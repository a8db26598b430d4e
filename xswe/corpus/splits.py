"""The training, development and held-out rows of a bitext, drawn at random; no training row has a text of the others.

Sampling takes one bit of memory a row, where ``Generator.permutation`` takes eight bytes. Its shuffle swaps the last
place with a random one, then the one before, and so on; to learn only what ends up in the first places, it is enough to
follow the swaps backwards. The random numbers are generated twice, block by block: once forwards, to record the
generator's state before each block, and once from the last block to the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from xswe.bitext.seen import KeySet, text_hashes
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.errors import ConfigError
from xswe.io.ragged import Texts, TextView

_NUMBERS_PER_BLOCK = 1 << 20
_MAX_ROWS = 1 << 32  # with more, the generator's shuffle draws 64-bit numbers


class RowSet:
    """A subset of ``size`` rows, a bit each; initially empty, or ``full``."""

    def __init__(self, size: int, full: bool = False) -> None:
        self.size = size
        self.bits = np.full(-(-size // 8), 0xFF if full else 0, np.uint8)

    def set(self, rows: np.ndarray, is_member: bool) -> None:
        """Add rows, or remove them."""
        _set(self.bits, np.asarray(rows, np.int64), is_member)

    def blocks(self, rows: int = 1 << 22) -> Iterator[np.ndarray]:
        """Yield the rows of the set in ascending order, as int64 arrays: one per ``rows`` rows, members or not."""
        for start in range(0, self.size, rows):
            stop = min(start + rows, self.size)
            is_member = np.unpackbits(self.bits[start // 8 : -(-stop // 8)], count=stop - start, bitorder="little")
            yield start + np.flatnonzero(is_member)

    def __len__(self) -> int:
        return sum(map(len, self.blocks()))

    def rows(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return all rows of the set, ascending, int64; in ``out`` if given."""
        out, done = np.empty(len(self), np.int64) if out is None else out, 0
        for block in self.blocks():
            out[done : done + len(block)] = block
            done += len(block)
        return out


@njit(nogil=True, cache=True)
def _set(bits: np.ndarray, rows: np.ndarray, is_member: bool) -> None:
    for row in rows:
        mask = np.uint8(1 << (row & 7))
        bits[row >> 3] = bits[row >> 3] | mask if is_member else bits[row >> 3] & ~mask


@njit(nogil=True, cache=True)
def _undo_swaps(bits: np.ndarray, partners: np.ndarray, last: int, swaps: np.ndarray) -> int:
    """Undo, in a set of places, the swaps of places ``last``, ``last - 1``, ... with their partners, the latest first.

    Return how many swaps moved a member of the set; ``swaps``, int64 (n, 2), receives these if n is not 0.
    """
    met = 0
    for k in range(len(partners) - 1, -1, -1):
        a, b = last - k, partners[k]
        has_a, has_b = (bits[a >> 3] >> (a & 7)) & 1, (bits[b >> 3] >> (b & 7)) & 1
        if has_a != has_b:
            bits[a >> 3] ^= np.uint8(1 << (a & 7))
            bits[b >> 3] ^= np.uint8(1 << (b & 7))
        if (has_a or has_b) and a != b and len(swaps):
            swaps[met, 0], swaps[met, 1] = a, b
            met += 1
    return met


def draw(seed: Sequence[int], size: int, ordered: int, members: int = 0) -> tuple[np.ndarray, RowSet]:
    """Return the first ``ordered`` of ``default_rng(seed).permutation(size)``, and the first ``members`` as a set.

    The ordered rows take memory each, the set a bit per row of ``size``. ConfigError: there are more rows than the shuffle
    numbers with 32 bits.
    """
    if size > _MAX_ROWS:
        raise ConfigError(f"{size:,} rows to draw from, of at most {_MAX_ROWS:,}: give a smaller corpus")
    generator = np.random.default_rng(seed)
    ordered, members = min(ordered, size), min(members, size)
    begun: list[tuple[int, Any]] = []  # of each block, the last place not swapped yet, and the generator's state
    last = size - 1
    while last > 0:
        begun.append((last, generator.bit_generator.state))
        last -= len(_partners(_numbers(generator), last))
    first, sampled = RowSet(size), RowSet(size)
    for places, count in ((first, ordered), (sampled, members)):
        places.bits[: count // 8] = 0xFF
        places.set(np.arange(count // 8 * 8, count), True)
    which = {place: place for place in range(ordered)}
    swaps, none = np.empty((min(_NUMBERS_PER_BLOCK, size), 2), np.int64), np.empty((0, 2), np.int64)
    for last, state in reversed(begun):
        generator.bit_generator.state = state
        partners = _partners(_numbers(generator), last)
        if members:
            _undo_swaps(sampled.bits, partners, last, none)
        if ordered:
            met = _undo_swaps(first.bits, partners, last, swaps)
            for a, b in swaps[:met].tolist():
                one, other = which.pop(a, None), which.pop(b, None)
                if one is not None:
                    which[b] = one
                if other is not None:
                    which[a] = other
    out = np.empty(ordered, np.int64)
    out[list(which.values())] = list(which)
    return out, sampled


def _numbers(generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, 1 << 32, _NUMBERS_PER_BLOCK, np.uint32)


@njit(nogil=True, cache=True)
def _partners(numbers: np.ndarray, last: int) -> np.ndarray:
    """Return the places with which ``last``, ``last - 1``, ... down to 1 are swapped, as far as the numbers suffice.

    As in the generator's own shuffle, a number is cut to as many bits as the place has; if it is then larger than the
    place, the next one is used.
    """
    out, met, mask = np.empty(len(numbers), np.int64), 0, 1
    while mask < last:
        mask = 2 * mask + 1
    for number in numbers:
        if last == 0:
            break
        while mask >> 1 >= last:
            mask >>= 1
        value = np.int64(number) & mask
        if value <= last:
            out[met] = value
            met, last = met + 1, last - 1
    return out[:met]


_HASHED_AT_A_TIME = 1 << 18


@dataclass(frozen=True, eq=False)
class SplitRows:
    """A bitext split in three, as ascending rows."""

    training: RowSet  # to train on
    development: np.ndarray  # to decide when to stop
    held_out: np.ndarray  # only to report on

    @property
    def train(self) -> np.ndarray:
        """The training rows, int64: eight bytes a row."""
        return self.training.rows()


def split_rows(bitext: Bitext, config: CorpusConfig, seed: int) -> SplitRows:
    """Split a bitext at random: corpora are sorted by score or by document, so neither end is a fair sample.

    Training pairs that share a side with a development or held-out pair are left out, so that no text is in both.
    """
    size = min(config.limit, len(bitext)) if config.limit else len(bitext)
    held_out = min(config.max_held_out, int(size * config.held_out))
    development = min(config.max_development, int(size * config.development))
    sampled_size = size if size < len(bitext) else 0
    apart, train = draw([seed, 7], len(bitext), held_out + development, sampled_size)
    if not sampled_size:
        train = RowSet(len(bitext), full=True)
    train.set(apart, False)
    train.set(_sharing_a_text(bitext, bitext.take(apart)), False)
    return SplitRows(train, np.sort(apart[held_out:]), np.sort(apart[:held_out]))


def _sharing_a_text(bitext: Bitext, apart: Bitext) -> np.ndarray:
    """Return the rows with a side that is a text of ``apart``: found by hash, then compared as texts."""
    keys = KeySet()
    for side in (apart.source, apart.target):
        keys.add(text_hashes(side[:]))
    known = set(apart.source) | set(apart.target)
    rows = [np.zeros(0, np.int64)]
    for side in (bitext.source, bitext.target):
        for start in range(0, len(side), _HASHED_AT_A_TIME):
            block = side[start : start + _HASHED_AT_A_TIME]
            found = np.flatnonzero(keys.has(text_hashes(block))).tolist()
            rows.append(np.array([start + row for row in found if block[row] in known], np.int64))
            side.release()
    return np.concatenate(rows)


def part_of(bitext: Bitext, rows: np.ndarray) -> Bitext:
    """Return ascending rows of a bitext as a view, without a copy of its texts."""
    sides = []
    for side in (bitext.source, bitext.target):
        assert isinstance(side, Texts)
        sides.append(TextView([(side, rows)]))
    negatives = None if bitext.negatives is None else bitext.negatives.view(rows)
    return Bitext(bitext.languages, sides[0], sides[1], negatives)
