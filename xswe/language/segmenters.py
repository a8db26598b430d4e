"""Segmenters for runs of Han and Kana: the teacher's tokens (the paper), fugashi with unidic-lite (ja), jieba (zh)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from tokenizers import Tokenizer

from xswe.errors import ConfigError, DependencyError

SegmenterName = Literal["teacher", "fugashi", "jieba"]
Segmenter = Callable[[str], list[tuple[int, int]]]


def _surfaces_to_spans(surfaces: list[str]) -> list[tuple[int, int]]:
    spans, place = [], 0
    for surface in surfaces:
        spans.append((place, place + len(surface)))
        place += len(surface)
    return spans


def _fugashi() -> Segmenter:
    try:
        import fugashi
        import unidic_lite
    except ImportError:
        raise DependencyError("fugashi (with unidic-lite)", "words", "segmenting Japanese with fugashi") from None
    # Naming the dictionary keeps another one that happens to be installed from changing the words.
    tagger = fugashi.GenericTagger(f'-Owakati -r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"')
    return lambda run: _surfaces_to_spans(tagger.parse(run).split())


def _jieba() -> Segmenter:
    try:
        import jieba
    except ImportError:
        raise DependencyError("jieba", "words", "segmenting Chinese with jieba") from None
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    return lambda run: _surfaces_to_spans(tokenizer.lcut(run))


def _teacher(tokenizer: Tokenizer) -> Segmenter:
    def spans(run: str) -> list[tuple[int, int]]:
        offsets = tokenizer.encode(run, add_special_tokens=False).offsets
        out: list[tuple[int, int]] = []
        for start, end in offsets:
            start = max(start, out[-1][1] if out else 0)  # byte pieces of one character report it several times
            if start < end:
                out.append((start, end))
        return out

    return spans


def make_segmenter(name: str, language: str, tokenizer: Tokenizer | None) -> Segmenter:
    """Return a function from a run of Han and Kana to the (start, end) of its words.

    Args:
        name: ``teacher``, ``fugashi`` (ja) or ``jieba`` (zh).
        language: the code of the run's language.
        tokenizer: the teacher's tokenizer, for ``teacher``.

    Raises:
        ConfigError: the segmenter is unknown or not made for the language.
        DependencyError: its library is not installed.
    """
    if name == "fugashi" and language == "ja":
        return _fugashi()
    if name == "jieba" and language == "zh":
        return _jieba()
    if name == "teacher":
        if tokenizer is None:
            raise ConfigError("the segmenter 'teacher' needs a teacher: choose one, or fugashi (ja) and jieba (zh)")
        return _teacher(tokenizer)
    known = {"ja": "teacher, fugashi", "zh": "teacher, jieba"}[language]
    raise ConfigError(f"segmenter {name!r} does not segment {language}: use one of {known}")
