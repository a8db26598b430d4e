"""The best segmentation of a chunk into pieces: a double-array trie of their characters, and the search over it.

One walk down the trie finds all pieces that start at a given place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.io.compiler import INNER, LEAN
from xswe.io.ragged import bounds_of
from xswe.text.compiled.alphabet import CLASS_SHIFT, UNKNOWN, WORD, decode_character


@dataclass(frozen=True, eq=False)
class Trie:
    """From node ``n`` a character leads to ``base[n] + symbols[its code]`` if ``check`` there is ``n``; the root is node 0.

    Steps are characters rather than bytes: each step waits for memory, and Han and Kana have three bytes. ``symbols``
    numbers the characters of the pieces, the most frequent first; the symbol 0 of all others leads nowhere.
    """

    symbols: np.ndarray  # int32 (0x110000,)
    base: np.ndarray  # int32 (nodes,)
    check: np.ndarray  # int32 (nodes,), the parent; -1 for a free place
    value: np.ndarray  # int32 (nodes,), the piece that ends at a node, -1 for none


def build_trie(pieces: Sequence[str]) -> Trie:
    """Build the trie of distinct pieces; the index in the list is the value. Empty strings are skipped."""
    characters = _codes("".join(pieces))
    codes, counts = np.unique(characters, return_counts=True)
    symbols = np.zeros(0x110000, np.int32)
    symbols[codes[np.argsort(-counts, kind="stable")]] = np.arange(1, len(codes) + 1)
    # The pieces written in symbols, so that they sort by symbols.
    written = symbols[characters].tobytes().decode("utf-32-le", "surrogatepass")
    ends = accumulate(map(len, pieces))
    names = [written[end - len(piece) : end] for piece, end in zip(pieces, ends, strict=True)]
    order = sorted((i for i, name in enumerate(names) if name), key=names.__getitem__)
    keys = _codes("".join([names[i] for i in order])).astype(np.int32)
    offsets = bounds_of([len(names[i]) for i in order])
    values = np.array(order, np.int32)
    del names, order, written  # to save memory: the arrays below are large, too
    size, used = len(keys) + 2 * len(codes) + 1024, -1
    while used < 0:
        base, check, value = (np.full(size, fill, np.int32) for fill in (0, -1, -1))
        queue, firsts = np.empty((len(keys) + 2, 4), np.int64), np.empty((len(codes) + 1, 2), np.int64)
        used = _build(keys, offsets, values, len(codes), base, check, value, queue, firsts)
        size *= 2
    return Trie(symbols, base[:used].copy(), check[:used].copy(), value[:used].copy())


def _codes(text: str) -> np.ndarray:
    """Return the codes of a text's characters, uint32 (characters,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@njit(**LEAN)
def _build(  # noqa: C901 (one search loop)
    keys: np.ndarray,
    offsets: np.ndarray,
    values: np.ndarray,
    highest_symbol: int,
    base: np.ndarray,
    check: np.ndarray,
    value: np.ndarray,
    queue: np.ndarray,
    children: np.ndarray,
) -> int:
    """Place the nodes of sorted keys, breadth first; return the number of places used, -1 if there is too little room."""
    # A queue of (node, first key, last key, depth): the keys below a node are consecutive because they are sorted.
    queue[0, 0], queue[0, 1], queue[0, 2], queue[0, 3] = 0, 0, len(values), 0
    symbols, firsts = children[:, 0], children[:, 1]
    head, tail = 0, 1
    check[0] = 0
    free, highest = 1, 0
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
        # Search from the first free place; if almost all places before the match are taken, start later next time.
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
            queue[tail, 0], queue[tail, 1], queue[tail, 2], queue[tail, 3] = child, firsts[c], firsts[c + 1], depth + 1
            tail += 1
    return highest + highest_symbol + 1


# The best path of pieces through a chunk, as in the tokenizers library's Unigram model.


LONGEST_CHUNK = 4096  # bytes of a chunk, characters of a run; texts with longer ones go to the slow path
DONE, LEFT, UNLEARNT = 0, 1, 2  # status of a text: looked up; for the slow path; with characters not yet in the alphabet


class Search(NamedTuple):
    """The input of the Viterbi search: the trie of the pieces, the unknown piece, and which ids are units.

    ``symbols`` and ``values`` are those of a :class:`Trie`. ``nodes`` is int32 (4 x nodes,): base (negative if no piece
    continues) and check of each node and, as a float64, the score of the piece that ends there, minus infinity for none: a
    step down the trie reads one cache line, and none at the end of the trie. ``scores`` is the same memory as float64.
    """

    symbols: np.ndarray
    nodes: np.ndarray
    scores: np.ndarray
    values: np.ndarray
    unknown: int
    unknown_score: float
    is_unit: np.ndarray


class Paths(NamedTuple):
    """Workspace of a search through up to ``LONGEST_CHUNK`` characters.

    ``symbols`` has the characters' symbols. At each place between them, ``best`` has the score of the best path to it,
    ``node`` the trie node where its last piece ends (-1 for the unknown piece), and ``came`` the place where that piece
    begins. ``path`` receives the ids.
    """

    symbols: np.ndarray
    best: np.ndarray
    node: np.ndarray
    came: np.ndarray
    path: np.ndarray


def make_search(trie: Trie, scores: np.ndarray, unknown: int, unknown_score: float, is_unit: np.ndarray) -> Search:
    """Lay out a trie for the search; ``scores`` is float64 (pieces,)."""
    nodes = np.empty((len(trie.base), 4), np.int32)
    nodes[:, 0], nodes[:, 1] = np.where(trie.base > 0, trie.base, _NOWHERE), trie.check
    found = nodes.view(np.float64)
    found[:, 1] = np.where(trie.value < 0, -np.inf, scores[trie.value])
    return Search(trie.symbols, nodes.ravel(), found.ravel(), trie.value, unknown, unknown_score, is_unit)


def make_paths() -> Paths:
    """Return the workspace of one search."""
    room = LONGEST_CHUNK + 2  # including a mark before the longest chunk
    node, came, path, symbols = (np.empty(room, np.int32) for _ in range(4))
    return Paths(symbols, np.empty(room, np.float64), node, came, path)


_NONE = np.zeros(1, np.int32)
_NOWHERE = np.int32(-(1 << 30))  # stays negative whatever symbol is added
NO_SEARCH = Search(_NONE, _NONE, np.zeros(1), _NONE, 0, 0.0, np.zeros(1, bool))


@njit(**INNER)
def read_symbols(chunk: np.ndarray, search: Search, paths: Paths) -> int:
    """Read the symbols of a chunk's characters; return their number."""
    place, count = 0, 0
    while place < len(chunk):
        code, width = decode_character(chunk, place)
        paths.symbols[count] = search.symbols[code]
        place, count = place + width, count + 1
    return count


@njit(inline="always")
def _follow(node: int, symbol: int, nodes: np.ndarray) -> Any:
    """Return the node that a symbol leads to, -1 if it leads nowhere."""
    child = nodes[4 * node] + symbol
    return child if child >= 0 and nodes[4 * child + 1] == node else -1


@njit(**INNER)
def viterbi(size: int, search: Search, paths: Paths) -> None:
    """Find the best path to each place among ``size`` characters."""
    nodes, scores, symbols = search.nodes, search.scores, paths.symbols
    best, last, came = paths.best, paths.node, paths.came
    for place in range(1, size + 1):
        best[place] = -np.inf
    best[0] = 0.0
    for place in range(size):
        till_here = best[place]
        node, k = _follow(0, symbols[place], nodes), place + 1
        if node < 0 or scores[2 * node + 1] == -np.inf:  # the character is no piece
            score = search.unknown_score + till_here
            if score > best[k]:
                best[k], last[k], came[k] = score, -1, place
        while node >= 0:
            score = scores[2 * node + 1] + till_here
            if score > best[k]:
                best[k], last[k], came[k] = score, node, place
            if k == size:
                break
            node, k = _follow(node, symbols[k], nodes), k + 1


@njit(**INNER)
def follow_back(size: int, search: Search, paths: Paths) -> int:
    """Write the ids of the pieces on the best path to ``paths.path``, last first; return their number.

    Consecutive unknown characters are one unknown piece.
    """
    last, came, path = paths.node, paths.came, paths.path
    count, place = 0, size
    while place > 0:
        piece = search.values[last[place]] if last[place] >= 0 else search.unknown
        if not (piece == search.unknown and count > 0 and path[count - 1] == piece):
            path[count] = piece
            count += 1
        place = came[place]
    return count


@njit(inline="always")
def _pieces_back(size: int, search: Search, paths: Paths, start: int, ends: np.ndarray, total: int) -> Any:
    """Write the ends of the pieces on the best path from ``start`` to ``ends[total:]``, last first; return the new total.

    ``paths.path`` has the places of the characters. Consecutive unknown characters are one piece; a piece that ends before
    the first character (a lone mark) does not count.
    """
    end, after_unknown, origin = size, False, paths.path
    while end > 0 and origin[end] > 0:
        node = paths.node[end]
        unknown = node < 0 or search.values[node] == search.unknown
        if not (unknown and after_unknown):
            ends[total] = start + origin[end]
            total += 1
        after_unknown, end = unknown, paths.came[end]
    return total


@njit(**LEAN)
def cut_runs(
    data: np.ndarray,
    offsets: np.ndarray,
    entries: np.ndarray,
    kind: int,
    mark: int,
    search: Search,
    paths: Paths,
    ends: np.ndarray,
    counts: np.ndarray,
    status: np.ndarray,
) -> int:
    """Cut runs of Han and Kana into the pieces of the best path, and return their number; consecutive unknowns are one.

    The bytes of run ``i``, uint8, begin at ``offsets[i]``, int64 (n + 1,). ``entries`` is the first array of an alphabet,
    ``kind`` its class of these characters, ``mark`` the symbol that the tokenizer puts before a run, -1 for none; it is not
    a piece of its own. The output is ``ends``, int64, of each piece in ``data``; ``counts``, int64 (n,), of pieces; and
    ``status``, uint8 (n,): ``DONE``, ``UNLEARNT``, or ``LEFT`` if characters do not map one to one; only runs that are
    ``DONE`` have pieces.
    """
    origin, total = paths.path, 0  # the start of each character in its run
    for row in range(len(offsets) - 1):
        place, stop, size = offsets[row], offsets[row + 1], 0
        status[row], counts[row] = DONE, 0
        origin[0] = 0
        if mark >= 0:
            paths.symbols[0], origin[1], size = mark, 0, 1
        while place < stop:
            code, width = decode_character(data, place)
            entry = entries[code]
            if entry >> CLASS_SHIFT != kind or size >= LONGEST_CHUNK:
                status[row] = UNLEARNT if entry == UNKNOWN else LEFT
                break
            paths.symbols[size] = search.symbols[entry & ((1 << CLASS_SHIFT) - 1)]
            place, size = place + width, size + 1
            origin[size] = place - offsets[row]
        if status[row] != DONE:
            continue
        viterbi(size, search, paths)
        begun = total
        total = _pieces_back(size, search, paths, offsets[row], ends, total)
        for k in range((total - begun) // 2):  # reverse them: they were written last first
            other = total - 1 - k
            ends[begun + k], ends[other] = ends[other], ends[begun + k]
        counts[row] = total - begun
    return total


@njit(**LEAN)
def cut_chunks(
    text: np.ndarray,
    where: np.ndarray,
    kinds: np.ndarray,
    mark: int,
    search: Search,
    paths: Paths,
    items: np.ndarray,
    starts: np.ndarray,
) -> None:
    """Cut normalised chunks into pieces with their lengths; ``where``, int32 (n, 4), is as in ``NewChunks``.

    ``kinds``, int32 (n,), has the classes; a ``WORD`` includes the mark before it, whose symbol is ``mark``. The output is
    ``items``, int32, with the id and the number of characters of each piece, including the mark, with room for two numbers
    a byte and two a chunk; and ``starts``, int64 (n + 1,), where the items of each chunk start.
    """
    total = 0
    for row in range(len(where)):
        starts[row], size = total, 0
        place, stop = np.int64(where[row, 0]), np.int64(where[row, 0]) + where[row, 1]
        if kinds[row] == WORD:
            paths.symbols[0], size = mark, 1
        while place < stop:
            code, width = decode_character(text, place)
            paths.symbols[size] = search.symbols[code]
            place, size = place + width, size + 1
        viterbi(size, search, paths)
        first, end = total, size
        while end > 0:
            node = paths.node[end]
            piece = search.values[node] if node >= 0 else search.unknown
            if piece == search.unknown and total > first and items[total - 2] == piece:
                items[total - 1] += end - paths.came[end]
            else:
                items[total], items[total + 1] = piece, end - paths.came[end]
                total += 2
            end = paths.came[end]
        for k in range((total - first) // 4 * 2):  # reverse the pairs: they were written last first
            other = total - 2 - (k & -2) + (k & 1)
            items[first + k], items[other] = items[other], items[first + k]
    starts[len(where)] = total
