"""Segmenters for Han and Kana: the teacher's tokens (the paper), fugashi with unidic-lite (ja), jieba (zh).

The authors' code passes a whole Chinese or Japanese text to the tokenizer without cutting it first, so Latin letters and
digits in it are pieces, too, and a piece may contain punctuation. The words are the pieces without the mark of a word
start; punctuation alone is not a word.
"""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tokenizers import Encoding, Tokenizer, normalizers

from xswe.errors import ConfigError, needs
from xswe.text.scripts import is_punctuation
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import WORD_START, pieces_only, put_first
from xswe.text.units import trim_span

WHOLE_TEXTS = "teacher-text"  # cuts texts with Han or Kana as a whole, see the header
BY_TEACHER = ("teacher", WHOLE_TEXTS)
Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class Segmenter:
    """A segmenter of runs of Han and Kana."""

    lines: Callable[[list[str]], str]  # from runs to their words, a line a run, separated by spaces (no run has whitespace)
    spans: Callable[[list[str]], list[Spans]]  # from runs to the (start, end) of each word
    tokenizer: Tokenizer | None = None  # the tokenizer whose pieces are the words, if any

    def __call__(self, run: str) -> Spans:
        """Cut one run."""
        return self.spans([run])[0]


def _of_lines(line: Callable[[str], str]) -> Segmenter:
    """Make a segmenter from a function that separates the words of a run by spaces."""

    def spans(run: str) -> Spans:
        ends = list(accumulate(map(len, line(run).split())))
        return list(zip([0, *ends], ends, strict=False))

    return Segmenter(lambda runs: "\n".join(map(line, runs)), lambda runs: list(map(spans, runs)))


def _fugashi() -> Segmenter:
    with needs("fugashi (with unidic-lite)", "words", "segmenting Japanese with fugashi"):
        import fugashi
        import unidic_lite
    # With the dictionary named, another installed one cannot change the words.
    parse = fugashi.GenericTagger(f'-Owakati -r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"').parse
    return _of_lines(parse)


@functools.cache  # the dictionary takes a second and 70 MB
def _jieba() -> Segmenter:
    with needs("jieba", "words", "segmenting Chinese with jieba"):
        import jieba
    jieba.setLogLevel(logging.WARNING)
    cut = jieba.Tokenizer().cut
    return _of_lines(lambda run: " ".join(cut(run)))


def _teacher(tokenizer: Tokenizer) -> Segmenter:
    def trim_span(encoding: Encoding) -> Spans:
        """Return the spans of pieces without overlaps or lone marks of a word start."""
        out: Spans = []
        for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            if piece == WORD_START:  # alone, it reports the first character of the next piece as its own
                continue
            start = max(start, out[-1][1] if out else 0)  # byte pieces of one character report it several times
            if start < end:
                out.append((start, end))
        return out

    def spans(runs: list[str]) -> list[Spans]:
        return [trim_span(encoding) for encoding in tokenizer.encode_batch(runs, add_special_tokens=False)]

    def lines(runs: list[str]) -> str:
        found = zip(runs, spans(runs), strict=True)
        return "\n".join(" ".join(run[start:end] for start, end in places) for run, places in found)

    return Segmenter(lines, spans, tokenizer)


def make_segmenter(name: str, language: str, tokenizer: Tokenizer | None) -> Segmenter:
    """Return the segmenter of a language's runs of Han and Kana: ``teacher``, ``fugashi`` (ja) or ``jieba`` (zh).

    ``teacher-text`` cuts runs like ``teacher``, but only those created by normalisation. Both need the teacher's tokenizer.
    An unknown or unsuitable segmenter raises ConfigError, a missing library DependencyError.
    """
    if name == "fugashi" and language == "ja":
        return _fugashi()
    if name == "jieba" and language == "zh":
        return _jieba()
    if name in BY_TEACHER:
        if tokenizer is None:
            raise ConfigError(f"the segmenter {name!r} needs a teacher: choose one, or fugashi (ja) and jieba (zh)")
        return _teacher(tokenizer)
    known = {"ja": "teacher, teacher-text, fugashi", "zh": "teacher, teacher-text, jieba"}[language]
    raise ConfigError(f"segmenter {name!r} does not segment {language}: use one of {known}")


_BYTE = re.compile("<0x[0-9A-F]{2}>")  # a byte piece, part of a character that is no piece itself


class TextPieces:
    """The pieces of whole texts, as words.

    ``tokenizer`` is the teacher's and stays unchanged; ``before`` are normalisers to apply before its own. ``units`` are
    the pieces as units, with the compiled look-up if available; ``forms`` maps the id of each piece to its word, empty if
    it is not a word (punctuation, unknown, special).
    """

    def __init__(self, tokenizer: Tokenizer, languages: Sequence[str], before: Sequence[normalizers.Normalizer]) -> None:
        pieces = pieces_only(tokenizer)
        for step in reversed(before):
            put_first(pieces, step)
        self.units = SubwordUnits(pieces, "teacher", languages)
        forms = _forms(self.units.tokens, pieces)
        self.forms = ["" if all(map(is_punctuation, form)) else form for form in forms]

    def __call__(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield each word of a text with its place (start, end)."""
        encoding = self.units.tokenizer.encode(text, add_special_tokens=False)
        for piece, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if form := self.forms[piece]:
                yield form, *trim_span(text, start, end)


def _forms(pieces: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Return pieces without the marks added by their tokenizer; empty for parts of characters."""
    state: dict[str, Any] = json.loads(tokenizer.to_str())
    if '"type": "ByteLevel"' in json.dumps([state["pre_tokenizer"], state["decoder"]]) and tokenizer.decoder is not None:
        spelled = (tokenizer.decoder.decode([piece]).strip() for piece in pieces)
        return ["" if "\ufffd" in form else form for form in spelled]
    inside = state["model"].get("continuing_subword_prefix") or ""
    bare = (piece.removeprefix(inside).strip(WORD_START) for piece in pieces)
    return ["" if state["model"].get("byte_fallback") and _BYTE.fullmatch(form) else form for form in bare]
