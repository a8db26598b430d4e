"""Running text cut into its sentences.

The cutting is the library ``sentencex``'s (rules and abbreviations of some 300 languages, compiled); what it does wrong in
the four languages is put right here. Joined again are quoted speech and the sentence that goes on after it, brackets and
quotes of Chinese and Japanese with several sentences inside, German ordinals and their nouns, numbers of lists, figures
and sections. Cut further are Chinese and Japanese before a sentence that begins with a digit, and English and German after
words that are taken for abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from xswe.errors import DependencyError
from xswe.text.languages import check_languages

Span = tuple[int, int]

_OPEN, _CLOSE = "「『（【〈《〔“‘(", "」』）】〉》〕”’)"
_PARTNER = dict(zip(_CLOSE, _OPEN, strict=True))
_LONGEST_QUOTE = 200  # characters; a longer one, or one never closed, is cut like other text
_LONGEST_TEXT = 8192  # characters handed to the library at once: on quotes never closed it is quadratic
_END = re.compile(r"[.!?。！？…][\"'”’」』）)]*+\s*+")
_TAIL = 60  # characters at a sentence's end that decide whether it goes on
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LIST_NUMBER = re.compile(r"[(（]?(?:\d{1,3}|[ivxIVX]{1,5}|[a-zA-Z])[.)）、．]")
_REFERENCE = re.compile(
    r"(?:^|[\s(\[„“\"])(?:Abb|Abs|Art|Bd|Ch|Chap|Eq|Fig|Figs|Kap|No|Nos|Nr|Pos|Sec|Sect|Tab|Teil|Vol|Ziff|pp?|S)\.$"
)
# A number with a point after one of these is an ordinal, whose noun follows: "das 19. | Jahrhundert".
_ORDINAL = re.compile(
    r"(?:^|[\s(„“\"»])(?:a[mn]|im|ins?|vom|zu[mr]|beim|bis|seit|ab|der|die|das|de[mns]|ein(?:e[mnrs]?)?|ihre?[mnrs]?|"
    r"seine?[mnrs]?|unsere?[mnrs]?|jede[mnrs]?|diese[mnrs]?)\s(?:\d{1,3}\.\s?(?:und|bis|/|-)\s?)?(?:\d{1,3}|[IVX]{1,5})\.$",
    re.IGNORECASE,
)
_WORDS_TAKEN_FOR_ABBREVIATIONS = {"en": "me|may|art|OK", "de": "mich|mag|[Bb]art|OK"}
_FURTHER = {
    language: re.compile(rf"(?<![\w.])(?:{words})\.(?=\s+[\"'„“‘«»(]?[A-ZÄÖÜ])")
    for language, words in _WORDS_TAKEN_FOR_ABBREVIATIONS.items()
} | {language: re.compile("(?<![。！？])[。！？]++[」』）”’]*+(?=[0-9０-９])") for language in ("zh", "ja")}
# After what somebody said, this goes on with the sentence around it.
_GOES_ON = {
    "ja": re.compile(
        r"[、，をはがもへ]|と(?!ころ|ても|にかく|もかく|きどき|きに|うとう|つぜん|りあえず)|って|なんて|など|という|の(?!ち)|に(?!は)|"
        r"だと|です|で(?!も|は|す)|から[、と]"
    ),
    "zh": re.compile(
        r"[，、]|[^，。！？：；“”「」‘’、\s]{0,6}(?:说|說|问|問|道|答|喊|叫|嚷|回答|心想)(?:道|着|著|了)?[。！，,：:；]|的(?!确|確)"
    ),
}


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import sentencex
    except ImportError:
        raise DependencyError("sentencex", "sentences", "cutting running text into sentences") from None
    return sentencex


def splitter() -> str:
    """Return what decides where sentences are cut: the library and its version.

    Raises:
        DependencyError: it is not installed.
    """
    _library()
    return f"sentencex {version('sentencex')}"


def split_sentences(text: str, language: str) -> list[Span]:
    """Cut running text into sentences.

    Blanks around a sentence belong to none; every other character belongs to exactly one. A blank line ends a sentence. The
    same text always gives the same sentences.

    Args:
        text: a paragraph, or several.
        language: ``en``, ``de``, ``zh`` or ``ja``.

    Returns:
        Where each sentence stands, ``text[start:end]``, in order; offsets count characters.

    Raises:
        DependencyError: ``sentencex`` is not installed.
        ConfigError: the language is unknown.
    """
    check_languages([language])
    found: list[Span] = []
    whole = True  # nothing goes on before this: the text begins, or a blank line came
    for start, end, new_paragraph in _boundaries(text, language):
        whole = whole or new_paragraph
        for span in _cut_further(text, start, end, language):
            if not whole and _joins(text, found[-1], span, language):
                found[-1] = (found[-1][0], span[1])
            else:
                found.append(span)
                whole = False
    return _quotes_closed(text, found) if language in _GOES_ON else found


def _boundaries(text: str, language: str) -> Iterator[tuple[int, int, bool]]:
    """Iterate over what the library cuts: start, end, and whether it is a break between paragraphs."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _LONGEST_TEXT:
            within = [found.end() for found in _END.finditer(text, start + _LONGEST_TEXT // 2, start + _LONGEST_TEXT)]
            end = within[-1] if within else start + _LONGEST_TEXT
        for found in _library().get_sentence_boundaries(language, text[start:end]):
            yield start + found["start_index"], start + found["end_index"], found["is_paragraph_break"]
        start = end


def _cut_further(text: str, start: int, end: int, language: str) -> list[Span]:
    """Cut what should have been cut; nothing is left of blanks."""
    cuts = [match.end() for match in _FURTHER[language].finditer(text, start, end)]
    spans = [_stripped(text, a, b) for a, b in pairwise([start, *cuts, end])]
    return [span for span in spans if span[0] < span[1]]


def _stripped(text: str, start: int, end: int) -> Span:
    """Return a span without the blanks at its ends."""
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, max(start, start + len(inside.strip()))


def _joins(text: str, before: Span, after: Span, language: str) -> bool:
    """Tell whether two sentences that were cut apart are one."""
    if not _LETTER_OR_DIGIT.search(text, *after) or text[after[0]] in _CLOSE:
        return True  # marks alone are no sentence
    if language in _GOES_ON:
        return text[before[1] - 1] in _CLOSE and bool(_GOES_ON[language].match(text, *after))
    tail = text[max(before[0], before[1] - _TAIL) : before[1]]
    if _LIST_NUMBER.fullmatch(text, *before) or (_REFERENCE.search(tail) and text[after[0]].isdigit()):
        return True
    return language == "de" and bool(_ORDINAL.search(tail))


def _quotes_closed(text: str, found: list[Span]) -> list[Span]:
    """Join sentences that were cut within brackets or quotes."""
    out: list[Span] = []
    for span in found:
        if out and span[1] - out[-1][0] <= _LONGEST_QUOTE and _open_in(text, out[-1]):
            closed = _closes(text, out[-1], span[0])
            if closed and closed - out[-1][0] <= _LONGEST_QUOTE:
                out[-1] = (out[-1][0], span[1])
                continue
        out.append(span)
    return out


def _open_in(text: str, span: Span) -> list[str]:
    """Return the brackets that are opened in a span and not closed in it."""
    stack: list[str] = []
    for character in text[span[0] : span[1]]:
        if character in _OPEN:
            stack.append(character)
        elif stack and _PARTNER.get(character) == stack[-1]:
            stack.pop()
    return stack


def _closes(text: str, span: Span, start: int) -> int:
    """Return the end of the text that closes what a span leaves open, 0 if nothing near does."""
    stack = _open_in(text, span)
    for place in range(start, min(len(text), span[0] + _LONGEST_QUOTE)):
        character = text[place]
        if character in _OPEN:
            stack.append(character)
        elif _PARTNER.get(character) == stack[-1]:
            stack.pop()
            if not stack:
                return place + 1
        elif character == "\n":
            return 0
    return 0
