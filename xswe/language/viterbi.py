"""The best path of pieces through a chunk, as the tokenizers library's Unigram model finds it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xswe.language.alphabet import CJK, CLASS_SHIFT, UNKNOWN
from xswe.language.utf8 import append_character, character_width, decode_character
from xswe.memory import LEAN

LONGEST_CHUNK = 4096  # bytes; a text with a longer one is left to the slow path
DONE, LEFT, UNLEARNT = 0, 1, 2  # status of a text: looked up; for the slow path; holds characters not yet in the alphabet


class Search(NamedTuple):
    """What the Viterbi search needs: the trie of the pieces, their scores, the unknown piece, and which ids are units.

    ``nodes`` is int32 (4 x nodes,): base, check and value of each node of a :class:`xswe.language.trie.Trie`, and a zero. A
    step down the trie then reads one line of memory, not three. ``first`` is int32 (0x10000,), the node that a character of
    three bytes leads to from the root, -1 for none.
    """

    nodes: np.ndarray
    first: np.ndarray
    scores: np.ndarray
    unknown: int
    unknown_score: float
    is_unit: np.ndarray


_NONE = np.zeros(1, np.int32)
NO_SEARCH = Search(_NONE, _NONE, np.zeros(1), 0, 0.0, np.zeros(1, bool))


@njit(inline="always")
def _offer_pieces(
    chunk: np.ndarray,
    size: int,
    place: int,
    width: int,
    nodes: np.ndarray,
    first: np.ndarray,
    scores: np.ndarray,
    best: np.ndarray,
    piece: np.ndarray,
    came: np.ndarray,
) -> bool:
    """Walk all pieces that start at a place; returns whether its character, of ``width`` bytes, is one of them."""
    single, till_here = False, best[place]
    node, k = 0, place
    if width == 3:
        node, k = first[decode_character(chunk, place)[0]], place + 3
    while node >= 0:
        found = nodes[4 * node + 2]
        if found >= 0:
            score = scores[found] + till_here
            if came[k] < 0 or score > best[k]:
                best[k], piece[k], came[k] = score, found, place
            if k - place == width:
                single = True
        if k == size:
            break
        child = nodes[4 * node] + np.int64(chunk[k])
        if nodes[4 * child + 1] != node or child == 0:
            break
        node, k = child, k + 1
    return single


@njit(**LEAN)
def viterbi(
    chunk: np.ndarray, size: int, search: Search, best: np.ndarray, piece: np.ndarray, came: np.ndarray, out: np.ndarray
) -> int:
    """Cut ``chunk[:size]`` into the pieces of the best path; writes their ids to ``out``, last first, returns how many.

    Neighbouring unknown characters are one unknown piece.
    """
    nodes, first, scores = search.nodes, search.first, search.scores
    unknown, unknown_score = search.unknown, search.unknown_score
    for place in range(size + 1):
        came[place] = -1
    best[0] = 0.0
    place = 0
    while place < size:
        width = character_width(chunk[place])
        if not _offer_pieces(chunk, size, place, width, nodes, first, scores, best, piece, came):
            k = place + width
            score = unknown_score + best[place]
            if came[k] < 0 or score > best[k]:
                best[k], piece[k], came[k] = score, unknown, place
        place += width
    count, place = 0, size
    while place > 0:
        if not (piece[place] == unknown and count > 0 and out[count - 1] == unknown):
            out[count] = piece[place]
            count += 1
        place = came[place]
    return count


@njit(nogil=True, cache=True)
def cut_runs(
    data: np.ndarray, offsets: np.ndarray, entries: np.ndarray, search: Search, ends: np.ndarray, counts: np.ndarray
) -> int:
    """Cut runs of Han and Kana into the pieces of the best path; neighbouring unknown characters are one.

    Args:
        data: uint8, the bytes of all runs.
        offsets: int64 (n + 1,), where they start.
        entries: the first array of an alphabet.
        search: the pieces.
        ends: int64, receives the end of each piece in ``data``.
        counts: int64 (n,), receives how many pieces each run has.

    Returns:
        ``DONE``; or, as soon as a character is met that needs it, ``UNLEARNT`` or (not one ideograph for another) ``LEFT``.
    """
    longest = LONGEST_CHUNK
    chunk, origin = np.empty(longest + 8, np.uint8), np.empty(longest + 9, np.int64)
    best, piece = np.empty(longest + 9, np.float64), np.empty(longest + 9, np.int32)
    came, path = np.empty(longest + 9, np.int32), np.empty(longest + 9, np.int32)
    total = 0
    for row in range(len(offsets) - 1):
        place, stop, size = offsets[row], offsets[row + 1], 0
        while place < stop:
            code, width = decode_character(data, place)
            entry = entries[code]
            if entry == UNKNOWN:
                return UNLEARNT
            if entry >> CLASS_SHIFT != CJK or size >= longest:
                return LEFT
            place += width
            size = append_character(chunk, size, entry & ((1 << CLASS_SHIFT) - 1))
            origin[size] = place
        viterbi(chunk, size, search, best, piece, came, path)
        # Backwards along the path; a piece after an unknown one, itself unknown, is part of it.
        begun, end, behind = total, size, False
        while end > 0:
            unknown = piece[end] == search.unknown
            if not (unknown and behind):
                ends[total] = origin[end]
                total += 1
            behind, end = unknown, came[end]
        ends[begun:total] = ends[begun:total][::-1].copy()
        counts[row] = total - begun
    return DONE
