"""Segmenters for Han and Kana: the teacher's tokens (the paper), fugashi with unidic-lite (ja), jieba (zh)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from tokenizers import Encoding, Tokenizer

from xswe.errors import ConfigError, DependencyError
from xswe.text.tokenizers import MARK

WHOLE_TEXTS = "teacher-text"  # cuts texts that hold Han or Kana as wholes, see xswe.text.pieces
BY_TEACHER = ("teacher", WHOLE_TEXTS)
Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class Segmenter:
    """Cuts runs of Han and Kana.

    Attributes:
        lines: runs to their words, a line a run, with a blank between words (no run holds either).
        spans: runs to the (start, end) of each word.
        tokenizer: whose pieces the words are, if they are those of one.
    """

    lines: Callable[[list[str]], str]
    spans: Callable[[list[str]], list[Spans]]
    tokenizer: Tokenizer | None = None

    def __call__(self, run: str) -> Spans:
        """Cut one run."""
        return self.spans([run])[0]


def _of_lines(line: Callable[[str], str]) -> Segmenter:
    """Make a segmenter of a function from a run to words that tile it, with a blank between each two."""

    def spans(run: str) -> Spans:
        ends = list(accumulate(map(len, line(run).split())))
        return list(zip([0, *ends], ends, strict=False))

    return Segmenter(lambda runs: "\n".join(map(line, runs)), lambda runs: list(map(spans, runs)))


def _fugashi() -> Segmenter:
    try:
        import fugashi
        import unidic_lite
    except ImportError:
        raise DependencyError("fugashi (with unidic-lite)", "words", "segmenting Japanese with fugashi") from None
    # Naming the dictionary keeps another one that happens to be installed from changing the words.
    parse = fugashi.GenericTagger(f'-Owakati -r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"').parse
    return _of_lines(parse)


def _jieba() -> Segmenter:
    try:
        import jieba
    except ImportError:
        raise DependencyError("jieba", "words", "segmenting Chinese with jieba") from None
    jieba.setLogLevel(logging.WARNING)
    cut = jieba.Tokenizer().cut
    return _of_lines(lambda run: " ".join(cut(run)))


def _teacher(tokenizer: Tokenizer) -> Segmenter:
    def settle(encoding: Encoding) -> Spans:
        out: Spans = []
        for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            if piece == MARK:  # alone, it reports the first character, which belongs to the piece after it
                continue
            start = max(start, out[-1][1] if out else 0)  # byte pieces of one character report it several times
            if start < end:
                out.append((start, end))
        return out

    def spans(runs: list[str]) -> list[Spans]:
        return [settle(encoding) for encoding in tokenizer.encode_batch(runs, add_special_tokens=False)]

    def lines(runs: list[str]) -> str:
        found = zip(runs, spans(runs), strict=True)
        return "\n".join(" ".join(run[start:end] for start, end in places) for run, places in found)

    return Segmenter(lines, spans, tokenizer)


def make_segmenter(name: str, language: str, tokenizer: Tokenizer | None) -> Segmenter:
    """Return the segmenter of a language's runs of Han and Kana.

    Args:
        name: ``teacher``, ``fugashi`` (ja) or ``jieba`` (zh); ``teacher-text`` cuts runs as ``teacher`` does, and has none
            to cut but those that normalisation makes.
        language: the code of the run's language.
        tokenizer: the teacher's tokenizer, for ``teacher`` and ``teacher-text``.

    Raises:
        ConfigError: the segmenter is unknown or not made for the language.
        DependencyError: its library is not installed.
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
