"""Running text cut into its sentences.

The cutting is the library ``sentencex``'s (rules and abbreviations of some 300 languages, compiled); what it does wrong in
the four languages is put right here. Joined again are quoted speech and the sentence that goes on after it, brackets and
quotes of Chinese and Japanese with several sentences inside, German ordinals and their nouns, numbers of lists, figures
and sections. Cut further are Chinese and Japanese before a sentence that begins with a digit, and English and German after
words that are taken for abbreviations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from xswe.errors import ConfigError, needs
from xswe.io.files import file_stamp, fingerprint, scratch
from xswe.io.lines import check_lines, open_binary, unbroken
from xswe.io.results import Listing, check_suffix, write_text
from xswe.io.sources import suffix_of
from xswe.text.languages import check_languages, has_cjk
from xswe.text.readers import READERS, decoded, paragraphs, paragraphs_of

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
    with needs("sentencex", "sentences", "cutting running text into sentences"):
        import sentencex
    return sentencex


def splitter() -> str:
    """Return what decides where sentences are cut: the library, which must be installed, and its version."""
    _library()
    return f"sentencex {version('sentencex')}"


def split_sentences(text: str, language: str) -> list[Span]:
    """Cut running text in ``en``, ``de``, ``zh`` or ``ja``, a paragraph or several, into sentences.

    Blanks around a sentence belong to none; every other character belongs to exactly one. A blank line ends a sentence. The
    same text always gives the same sentences.

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
    if language in _GOES_ON:
        found = [part for span in _quotes_closed(text, found) for part in _bracket_alone(text, span, language)]
    return found


def _boundaries(text: str, language: str) -> Iterator[tuple[int, int, bool]]:
    """Iterate over what the library cuts: start, end, and whether it is a break between paragraphs."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _LONGEST_TEXT:
            within = [found.end() for found in _END.finditer(text, start + _LONGEST_TEXT // 2, start + _LONGEST_TEXT)]
            end = within[-1] if within else start + _LONGEST_TEXT
        part = text[start:end].encode("utf-8", "replace").decode()  # it takes no lone surrogates
        for found in _library().get_sentence_boundaries(language, part):
            yield start + found["start_index"], start + found["end_index"], found["is_paragraph_break"]
        start = end


def _cut_further(text: str, start: int, end: int, language: str) -> list[Span]:
    """Cut what should have been cut; nothing is left of blanks."""
    cuts = [match.end() for match in _FURTHER[language].finditer(text, start, end)]
    spans = [_stripped(text, a, b) for a, b in pairwise([start, *cuts, end])]
    return [span for span in spans if span[0] < span[1]]


def _stripped(text: str, start: int, end: int) -> Span:
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


def _bracket_alone(text: str, span: Span, language: str) -> list[Span]:
    """Cut after a bracket that a sentence begins with, if a whole sentence stands in it and another one follows."""
    end = _closes(text, (span[0], span[0] + 1), span[0] + 1) if text[span[0]] in "（(" else 0
    if not 0 < end < span[1] or text[end - 2] not in "。！？" or not _LETTER_OR_DIGIT.search(text, end, span[1]):
        return [span]
    after = _stripped(text, end, span[1])
    goes_on = _GOES_ON["ja"].match(text, *after) if language == "ja" else text[after[0]] in "，、的"
    return [span] if goes_on else [(span[0], end), after]


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


_BREAK = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")


class Sentence(NamedTuple):
    """A sentence of running text.

    Attributes:
        text: its text on one line: where a line was broken stands a blank, and nothing in Chinese and Japanese.
        start: its first character in the running text.
        end: one past its last.
        paragraph: which paragraph it is in, from 0.
    """

    text: str
    start: int
    end: int
    paragraph: int


@dataclass(frozen=True, eq=False)
class SplitText(Listing[Sentence], row=Sentence, held="sentences"):
    """Running text and its sentences, in order; a sequence of :class:`Sentence`.

    Attributes:
        text: the running text: of plain text all of it, with a line feed for every end of a line; of a document its
            paragraphs, with a blank line between them.
        sentences: where they stand.
        language: of the text.
    """

    text: str
    sentences: tuple[Sentence, ...]
    language: str

    def __repr__(self) -> str:
        return f"SplitText({self.summary()}, {self.language})"

    def write(self, path: str | Path) -> None:
        """Write the sentences, whole or not at all: to ``.txt``, or ``-``, one a line; else as :meth:`Result.write`."""
        if str(path) == "-" or Path(path).suffix.lower() == ".txt":
            write_text(path, (f"{sentence.text}\n" for sentence in self))
        else:
            super().write(path)

    def summary(self) -> str:
        """Say in one line what there is."""
        last = self.sentences[-1].paragraph + 1 if self.sentences else 0
        return f"{len(self):,} sentences in {last:,} paragraphs"


def check_split_output(path: str) -> None:
    """Refuse, before any work is done, a file that sentences are not written to."""
    if path != "-" and Path(path).suffix.lower() != ".txt":
        check_suffix(path)


def is_document(path: str | Path) -> bool:
    """Return True if a file is, by its name, of a format of running text, whose lines mean nothing."""
    return suffix_of(path) in READERS


def split_text(given: str | Path, language: str) -> SplitText:
    """Cut running text into its sentences.

    Paragraphs end at blank lines; in plain text whose lines are not wrapped, at the end of each line. A sentence is in one
    paragraph.

    Args:
        given: the text itself; or, as a ``Path``, a file: plain text, Markdown, HTML, EPUB, DOCX, or PDF.
        language: ``en``, ``de``, ``zh`` or ``ja``.

    Raises:
        ConfigError: the language is unknown.
        InputError: the file is missing or damaged.
        DependencyError: the library that cuts sentences, or that reads the format, is not installed.

    Example:
        >>> import xswe
        >>> for sentence in xswe.split_text("Dr. Maier kam um 8 Uhr. Es regnete.", "de"):
        ...     print(sentence.start, sentence.end, sentence.text)
        0 23 Dr. Maier kam um 8 Uhr.
        24 35 Es regnete.
    """
    check_languages([language])
    if isinstance(given, Path) and is_document(given):
        texts = paragraphs_of(given)
        text = "\n\n".join(texts)
        bounds, start = [], 0
        for one in texts:
            bounds.append((start, start + len(one)))
            start += len(one) + 2
    else:
        text = _plain(given) if isinstance(given, Path) else given
        bounds = paragraphs(text)
    found = []
    for number, (start, end) in enumerate(bounds):
        for a, b in split_sentences(text[start:end], language):
            line = one_line(text[start + a : start + b])
            found.append(Sentence(line, start + a, start + b, number))
    return SplitText(text, tuple(found), language)


@contextmanager
def as_lines(path: str, split: bool | None, language: str | None, output: str | Path = "-") -> Iterator[str]:
    """Give a file as one that has a sentence a line: the file itself, or while the block lasts its sentences.

    These stand beside the output, under a name that tells of the file and the language, and are as old as the file, so that
    what goes on with unfinished work knows them again. They are gone after the block.

    Args:
        path: a file; ``-`` for standard input.
        split: cut it into sentences; None if its lines mean nothing (:func:`is_document`).
        language: its language.
        output: what is written; ``-`` for standard output, and sentences then are where temporary files are.

    Raises:
        ConfigError: it is running text, and its language is not given.
        InputError: the file is missing or damaged, or its lines are no text.
    """
    if split is False or (split is None and (path == "-" or not is_document(path))):
        check_lines(path)
        yield path
        return
    if not language:
        raise ConfigError(f"{path} is cut into sentences by its language, which is not known: name it, as in language=en")
    stamp = None if path == "-" else file_stamp(path)
    name = f".{Path(output).name}.{fingerprint(stamp, language)}.sentences.txt"
    with ExitStack() as stack:
        folder = Path(output).parent
        if str(output) == "-" or stamp is None:
            folder = Path(stack.enter_context(scratch()))
        file = folder / name
        stack.callback(file.unlink, missing_ok=True)
        split_text(Path(path), language).write(file)
        if stamp is not None and isinstance(stamp[2], int):
            os.utime(file, ns=(stamp[2], stamp[2]))
        yield str(file)


def _plain(path: Path) -> str:
    check_lines(path)
    with open_binary(path) as stream, unbroken(path):
        return decoded(stream.read(), path)


def one_line(text: str) -> str:
    """Join the lines of a text: with a blank, but for Chinese and Japanese."""
    return _BREAK.sub(lambda found: _joint(text, found.start(), found.end()), text)


def _joint(text: str, start: int, end: int) -> str:
    if not 0 < start <= end < len(text):
        return ""
    before, after = text[start - 1], text[end]
    return "" if before in "、。，！？：；」』）" or (has_cjk(before) and has_cjk(after)) else " "
