"""What a normaliser and a chunker do to each single character, as a table that fills itself.

Both are asked, character by character, when a character is first met: the table cannot disagree with them. Characters
whose treatment may depend on their neighbours (combining marks, Hangul letters, …) are marked ``COMPLEX``, and a text that
holds one is left to the slow path as a whole.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

UNKNOWN, COMPLEX, REMOVED = -1, -2, -3
_FIRST_EXPANSION = -16  # entry e <= -16: the outputs are expansions[-16 - e], …
SPACE, MARK, CJK, WORD = 0, 1, 2, 3
CLASS_SHIFT = 21  # an entry >= 0 is (class << 21) | output character

# Blocks whose characters normalise one by one, whatever stands beside them; marks in them are found by category.
_SIMPLE_BLOCKS = (
    (0x0000, 0x02FF),
    (0x0370, 0x052F),
    (0x1E00, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x2E80, 0x2FDF),
    (0x3000, 0x3029),
    (0x3030, 0x3098),
    (0x309B, 0x30FF),
    (0x3105, 0x312F),
    (0x3190, 0x31BF),
    (0x31F0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE6F),
    (0xFEFF, 0xFEFF),
    (0xFF00, 0xFF9D),
    (0xFFE0, 0xFFEF),
    (0x1F000, 0x1F1E5),
    (0x1F200, 0x1F3FA),
    (0x1F400, 0x1FAFF),
    (0x20000, 0x3FFFF),
)


class Alphabet:
    """The self-filling table of one normaliser and chunker.

    Args:
        normalise: text to normalised text.
        chunks: normalised text to its chunks, the first of each tuple.
        mark: what the chunker puts before each word of a spaced script.

    Attributes:
        table: two int32 arrays, replaced (never changed) when characters are learnt, so that threads may read them.
            For each of the 0x110000 characters ``UNKNOWN``, ``COMPLEX``, ``REMOVED``, a class and output character, or
            the place of several such in the second array; there their number, and then the outputs.
    """

    def __init__(
        self, normalise: Callable[[str], str], chunks: Callable[[str], Sequence[tuple[str, Any]]], mark: str
    ) -> None:
        self._normalise, self._chunks, self._mark = normalise, chunks, mark
        self._classes: dict[str, int] = {}
        self._expansions: list[int] = [0]
        self.table = np.full(0x110000, UNKNOWN, np.int32), np.zeros(1, np.int32)
        self.learn(np.arange(128))

    def learn(self, codes: np.ndarray) -> None:
        """Fill in the entries of those of ``codes`` (character codes) that are still unknown."""
        entries = self.table[0].copy()
        for code in codes[entries[codes] == UNKNOWN].tolist():
            entries[code] = self._entry(code)
        self.table = entries, np.array(self._expansions, np.int32)

    def _entry(self, code: int) -> int:
        character = chr(code)
        simple = any(low <= code <= high for low, high in _SIMPLE_BLOCKS)
        if not simple or unicodedata.category(character).startswith("M"):
            return COMPLEX
        outputs = self._normalise(character)
        if any(unicodedata.category(out).startswith("M") for out in outputs):
            return COMPLEX
        packed = [(self._class_of(out) << CLASS_SHIFT) | ord(out) for out in outputs]
        if any(one < 0 for one in packed):
            return COMPLEX
        if len(packed) == 1:
            return packed[0]
        if not packed:
            return REMOVED
        self._expansions += [len(packed), *packed]
        return _FIRST_EXPANSION - (len(self._expansions) - len(packed) - 1)

    def _class_of(self, character: str) -> int:
        """Find out how the chunker treats a character, -1 if like nothing known."""
        if character not in self._classes:
            seen = tuple(
                tuple(chunk for chunk, _ in self._chunks(text)) for text in (character, character * 2, f"a{character}a")
            )
            c, m = character, self._mark
            known: dict[Any, int] = {
                ((), (), (f"{m}a", f"{m}a")): SPACE,
                ((c,), (c, c), (f"{m}a", c, f"{m}a")): MARK,
                ((c,), (c + c,), (f"{m}a", c, f"{m}a")): CJK,
                ((f"{m}{c}",), (f"{m}{c}{c}",), (f"{m}a{c}a",)): WORD,
            }
            self._classes[c] = known.get(seen, -1)
        return self._classes[character]
