"""What a sub-word tokenizer's normaliser and chunker do to each single character, as a table that fills itself.

The table is asked of the tokenizer itself, character by character, when a character is first met: it cannot disagree
with it. Characters whose treatment may depend on their neighbours (combining marks, Hangul letters, …) are marked
``COMPLEX``, and a text that holds one is left to the tokenizer as a whole.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
from tokenizers import Tokenizer

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
    """The self-filling table of one tokenizer.

    Args:
        tokenizer: with the normaliser and the chunker of :mod:`xswe.language.subwords`.

    Attributes:
        table: two int32 arrays, replaced (never changed) when characters are learnt, so that threads may read them.
            For each of the 0x110000 characters ``UNKNOWN``, ``COMPLEX``, ``REMOVED``, a class and output character, or
            the place of several such in the second array; there their number, and then the outputs.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._normalise, self._chunks = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
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
            c = character
            known: dict[Any, int] = {
                ((), (), ("▁a", "▁a")): SPACE,
                ((c,), (c, c), ("▁a", c, "▁a")): MARK,
                ((c,), (c + c,), ("▁a", c, "▁a")): CJK,
                ((f"▁{c}",), (f"▁{c}{c}",), (f"▁a{c}a",)): WORD,
            }
            self._classes[c] = known.get(seen, -1)
        return self._classes[character]
