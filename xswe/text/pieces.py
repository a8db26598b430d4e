"""Whole texts as a teacher's pieces, each a word by itself: the units of Chinese and Japanese in the authors' code.

Nothing is cut before the tokenizer sees a text, so Latin letters and figures in it are pieces, too, and a piece may hold
punctuation. The words are the pieces without the mark of a word's start; a word that is punctuation only is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer, normalizers

from xswe.text.languages import is_punctuation
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import MARK, pieces_only, put_first
from xswe.text.units import settle

_BYTE = re.compile("<0x[0-9A-F]{2}>")  # a byte of a character that is no piece


class TextPieces:
    """The pieces of whole texts, as words.

    Args:
        tokenizer: the teacher's; it is not changed.
        languages: codes of the model's languages.
        before: what is done to a text before its own normaliser.

    Attributes:
        units: the pieces as units, with the compiled look-up where there is one.
        forms: the word that each piece is, by id; empty for what is none (punctuation, unknown, special).
    """

    def __init__(self, tokenizer: Tokenizer, languages: Sequence[str], before: Sequence[normalizers.Normalizer]) -> None:
        pieces = pieces_only(tokenizer)
        for step in reversed(before):
            put_first(pieces, step)
        self.units = SubwordUnits(pieces, "teacher", languages)
        forms = _forms(self.units.tokens, pieces)
        self.forms = ["" if all(map(is_punctuation, form)) else form for form in forms]

    def __call__(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield each word of a text, and its place (start, end) in it."""
        encoding = self.units.tokenizer.encode(text, add_special_tokens=False)
        for piece, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if form := self.forms[piece]:
                yield form, *settle(text, start, end)


def _forms(pieces: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Return pieces without what their tokenizer adds to them; empty for parts of characters."""
    state: dict[str, Any] = json.loads(tokenizer.to_str())
    if '"type": "ByteLevel"' in json.dumps([state["pre_tokenizer"], state["decoder"]]) and tokenizer.decoder is not None:
        spelled = (tokenizer.decoder.decode([piece]).strip() for piece in pieces)
        return ["" if "\ufffd" in form else form for form in spelled]
    inside = state["model"].get("continuing_subword_prefix") or ""
    bare = (piece.removeprefix(inside).strip(MARK) for piece in pieces)
    return ["" if state["model"].get("byte_fallback") and _BYTE.fullmatch(form) else form for form in bare]
