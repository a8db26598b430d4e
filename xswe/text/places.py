"""Where the pieces of a tokenizer, and the words they make, stand in the original texts: in compiled code.

A tokenizer gives each piece a span of characters. :func:`locate_pieces` shrinks it by the rule of
:func:`xswe.text.units.settle`; :func:`place_words` joins the pieces of a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numba import njit
from tokenizers import Tokenizer

from xswe.io.compiler import LEAN
from xswe.io.ragged import Bags
from xswe.text.languages import is_punctuation

MARKED, WHOLE, PART, DROPPED, NOTHING = 0, 1, 2, 3, 4  # kinds of a piece; NOTHING: no unit, but no word's end either
SILENT = 8  # added to the kind of a piece that counts for where words are, but has no vector
_BLANK, _COMBINING, _PUNCTUATION, _NEW = 1, 2, 4, 128

_traits = np.full(0x110000, _NEW, np.uint8)  # of each character; filled as they are met


def _read(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the traits of all characters, uint8 (characters,), and where each text's begin, int64 (n + 1,)."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    for code in np.unique(codes[_traits[codes] == _NEW]).tolist():
        character = chr(code)
        blank = _BLANK if character.isspace() else 0
        combining = _COMBINING if unicodedata.combining(character) else 0
        _traits[code] = blank | combining | (_PUNCTUATION if is_punctuation(character) else 0)
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    return _traits[codes], bounds


def locate_pieces(tokenizer: Tokenizer, texts: list[str]) -> tuple[Bags, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Cut texts into pieces and say where each stands.

    Args:
        tokenizer: the tokenizer.
        texts: well-formed texts (no lone surrogates).

    Returns:
        The pieces' ids; int32 (pieces, 2), each one's first character and one past its last, without blanks at either end
        and with the marks that follow; and what :func:`place_words` needs of the characters.
    """
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    bags = Bags.of([encoding.ids for encoding in encodings])
    numbers = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
    spans = np.fromiter(numbers, np.int32, 2 * len(bags.ids)).reshape(-1, 2)
    characters = _read(texts)
    _settle(bags.offsets, spans, *characters)
    return bags, spans, characters


@njit(**LEAN)
def _settle(offsets: np.ndarray, spans: np.ndarray, traits: np.ndarray, bounds: np.ndarray) -> None:
    """Shrink the spans of each text in place, as :func:`xswe.text.units.settle` does one."""
    for row in range(len(offsets) - 1):
        base, length = bounds[row], bounds[row + 1] - bounds[row]
        for t in range(offsets[row], offsets[row + 1]):
            start, end = spans[t, 0], spans[t, 1]
            while start < end and traits[base + start] & _BLANK:
                start += 1
            while start < end and traits[base + end - 1] & _BLANK:
                end -= 1
            while start < end < length and traits[base + end] & _COMBINING:
                end += 1
            spans[t, 0], spans[t, 1] = start, end


def place_words(
    bags: Bags, spans: np.ndarray, characters: tuple[np.ndarray, np.ndarray], kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Join the places of pieces to those of words.

    Args:
        bags: the pieces.
        spans: int32 (pieces, 2), see :func:`locate_pieces`.
        characters: likewise.
        kinds: uint8 (vocabulary,), what each piece is.

    Returns:
        int32 (words, 2), first character and one past the last, and int64 (n + 1,), how many words end before each text.
    """
    places, ends = np.empty((len(bags.ids), 2), np.int32), np.zeros(len(bags.offsets), np.int64)
    _place(bags.ids, bags.offsets, spans, *characters, kinds, places, ends)
    return places[: ends[-1]], ends


@njit(**LEAN)
def _place(
    ids: np.ndarray,
    offsets: np.ndarray,
    spans: np.ndarray,
    traits: np.ndarray,
    bounds: np.ndarray,
    kinds: np.ndarray,
    places: np.ndarray,
    ends: np.ndarray,
) -> None:
    """See :func:`place_words`."""
    found = 0
    for row in range(len(offsets) - 1):
        inside = False  # a word of a spaced script
        for t in range(offsets[row], offsets[row + 1]):
            kind, start, end = kinds[ids[t]] & (SILENT - 1), spans[t, 0], spans[t, 1]
            if kind == DROPPED:
                inside = False
            elif kind == NOTHING:
                # An unknown part of a word has no vector, but its characters are the word's.
                if inside and start <= places[found - 1, 1] < end and not traits[bounds[row] + start] & _PUNCTUATION:
                    places[found - 1, 1] = end
            elif kind == PART and inside:
                places[found - 1, 0] = min(places[found - 1, 0], start)
                places[found - 1, 1] = max(places[found - 1, 1], end)
            else:
                inside = kind != WHOLE
                places[found, 0], places[found, 1] = start, end
                found += 1
        ends[row + 1] = found
