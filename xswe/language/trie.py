"""A double-array trie over the characters of the pieces: all pieces that start at a place, in one walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numba import njit


@dataclass(frozen=True, eq=False)
class Trie:
    """From node ``n`` a character leads to ``base[n] + symbols[its code]`` if ``check`` there is ``n``; the root is node 0.

    A character is one step, whatever its bytes: a step waits for memory, and Han and Kana have three bytes.

    Attributes:
        symbols: int32 (0x110000,), a small number for each character of the pieces, the most frequent first; 0, which
            leads nowhere, for others.
        base: int32 (nodes,).
        check: int32 (nodes,), the parent; -1 for a free place.
        value: int32 (nodes,), the piece that ends here, -1 for none.
    """

    symbols: np.ndarray
    base: np.ndarray
    check: np.ndarray
    value: np.ndarray


def build_trie(pieces: Sequence[str]) -> Trie:
    """Build the trie of distinct, non-empty pieces; the place in the list is the value. Empty strings are skipped."""
    characters = _codes("".join(pieces))
    codes, counts = np.unique(characters, return_counts=True)
    symbols = np.zeros(0x110000, np.int32)
    symbols[codes[np.argsort(-counts, kind="stable")]] = np.arange(1, len(codes) + 1)
    # The pieces again, with each character's symbol for its code: so they are sorted by symbols.
    written = symbols[characters].tobytes().decode("utf-32-le", "surrogatepass")
    ends = accumulate(map(len, pieces))
    names = [written[end - len(piece) : end] for piece, end in zip(pieces, ends, strict=True)]
    order = sorted((i for i, name in enumerate(names) if name), key=names.__getitem__)
    keys = _codes("".join([names[i] for i in order])).astype(np.int32)
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum([len(names[i]) for i in order], out=offsets[1:])
    values = np.array(order, np.int32)
    del names, order, written  # large, and what follows is so too
    size, used = len(keys) + 2 * len(codes) + 1024, -1
    while used < 0:
        base, check, value = (np.full(size, fill, np.int32) for fill in (0, -1, -1))
        used = _build(keys, offsets, values, len(codes), base, check, value)
        size *= 2
    return Trie(symbols, base[:used].copy(), check[:used].copy(), value[:used].copy())


def _codes(text: str) -> np.ndarray:
    """Return the codes of a text's characters, uint32 (characters,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@njit(cache=True)
def _build(  # noqa: C901 (one search loop)
    keys: np.ndarray,
    offsets: np.ndarray,
    values: np.ndarray,
    highest_symbol: int,
    base: np.ndarray,
    check: np.ndarray,
    value: np.ndarray,
) -> int:
    """Place the nodes of sorted keys, breadth first; returns how many places to keep, -1 if there is too little room."""
    count = len(values)
    # A queue of (node, first key, last key, depth): the keys below a node are neighbours because they are sorted.
    queue = np.empty((len(keys) + 2, 4), np.int64)
    queue[0] = (0, 0, count, 0)
    head, tail = 0, 1
    check[0] = 0
    free, highest = 1, 0
    symbols = np.empty(highest_symbol, np.int64)
    firsts = np.empty(highest_symbol + 1, np.int64)
    while head < tail:
        node, low, high, depth = queue[head, 0], queue[head, 1], queue[head, 2], queue[head, 3]
        head += 1
        if low < high and offsets[low + 1] - offsets[low] == depth:
            value[node] = values[low]
            low += 1
        n = 0
        k = low
        while k < high:
            symbol = keys[offsets[k] + depth]
            symbols[n], firsts[n] = symbol, k
            n += 1
            while k < high and keys[offsets[k] + depth] == symbol:
                k += 1
        firsts[n] = high
        if n == 0:
            continue
        if free + 2 * highest_symbol + 2 > len(check):
            return -1
        while check[free] >= 0:
            free += 1
        # Search from the first free place; where almost all places before the find are taken, start later next time.
        place, taken = max(free, symbols[0] + 1), 0
        begun = place
        while True:
            fits = check[place] < 0
            taken += not fits
            for c in range(1, n):
                if not fits:
                    break
                fits = check[place - symbols[0] + symbols[c]] < 0
            if fits:
                break
            place += 1
            if place + highest_symbol + 1 > len(check):
                return -1
        if taken >= 0.9 * (place - begun + 1) and n > 1:
            free = place
        start = place - symbols[0]
        base[node] = start
        for c in range(n):
            child = start + symbols[c]
            check[child] = node
            highest = max(highest, child)
            queue[tail] = (child, firsts[c], firsts[c + 1], depth + 1)
            tail += 1
    return highest + highest_symbol + 1
