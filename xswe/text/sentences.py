"""Running text and documents split into sentences, with their offsets."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from xswe.io.files import check_output
from xswe.io.lines import Skipped, check_lines, left_out_of, open_binary, unbroken
from xswe.io.results import Result, check_suffix, write_text
from xswe.io.sources import suffix_of
from xswe.text.boundaries import has_rules, split_sentences
from xswe.text.languages import check_languages
from xswe.text.readers import READERS, decoded, paragraphs, paragraphs_of
from xswe.text.scripts import has_cjk

logger = logging.getLogger(__name__)
_WIDE_ENDS = "、。，！？：；」』）】》"  # no blank stands on either side
_WIDE = f"{_WIDE_ENDS}「『（【《—…"
_BREAK = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")


class Sentence(NamedTuple):
    """A sentence of running text."""

    text: str  # on one line: line breaks become spaces, or nothing in Chinese and Japanese
    start: int  # first character in the running text
    end: int  # one past the last character
    paragraph: int  # number of its paragraph, from 0


@dataclass(frozen=True, eq=False)
class SplitText(Result[Sentence], row=Sentence, entries="sentences"):
    """Running text and its sentences, in order; a sequence of :class:`Sentence`.

    Attributes:
        text: the running text: all of a plain text, with line ends normalised to line feeds; or the paragraphs of a
            document, separated by blank lines.
        sentences: the sentences with their places.
        language: of the text.
        left_out: parts of a document outside its text, such as navigation and footers, counted.
    """

    text: str
    sentences: tuple[Sentence, ...]
    language: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SplitText({self.summary()}, {self.language})"

    def write(self, path: str | Path) -> None:
        """Write the sentences atomically: to ``.txt`` or ``-`` one a line, otherwise like :meth:`Result.write`."""
        if str(path) == "-" or Path(path).suffix.lower() == ".txt":
            write_text(path, (f"{sentence.text}\n" for sentence in self))
        else:
            super().write(path)

    def summary(self) -> str:
        """Describe the result in one line."""
        last = self.sentences[-1].paragraph + 1 if self.sentences else 0
        general = "" if has_rules(self.language) else f", by general rules: there are none for {self.language}"
        return f"{len(self):,} sentences in {last:,} paragraphs{general}{left_out_of(self.left_out)}"


def check_split_output(path: str) -> None:
    """Raise ConfigError early if sentences cannot be written to a file of this name."""
    if path != "-" and Path(path).suffix.lower() != ".txt":
        check_suffix(path)


def is_document(path: str | Path) -> bool:
    """Return True if a file has the suffix of a document format, whose lines have no meaning."""
    return suffix_of(path) in READERS


def split_text(input: str | Path, language: str, output: str | Path | None = None) -> SplitText:
    """Split running text into sentences.

    Paragraphs end at blank lines or, in plain text without wrapped lines, at the end of each line. A sentence never crosses
    paragraphs.

    Args:
        input: the text itself; or, as a ``Path``, a file: plain text, or any document; ``Path("-")`` for standard input.
        language: any known language; without rules for it, sentences end at the marks that end sentences in any script.
        output: a file to write the sentences to as well: ``.txt`` (a sentence a line), or any table by its suffix (with
            places); ``-`` for standard output.

    Raises:
        ConfigError: the language is unknown, or the output is the input or has an unknown format.
        InputError: the file is missing or damaged.
        DependencyError: the library that splits sentences or reads the format is not installed.

    Example:
        >>> import xswe
        >>> for sentence in xswe.split_text("Dr. Maier kam um 8 Uhr. Es regnete.", "de"):
        ...     print(sentence.start, sentence.end, sentence.text)
        0 23 Dr. Maier kam um 8 Uhr.
        24 35 Es regnete.
    """
    if not isinstance(input, (str, Path)):
        raise TypeError(f"input is of type {type(input).__name__}: give running text, a str, or the Path of a file")
    check_languages([language])
    if output is not None:
        check_output(output, [input] if isinstance(input, Path) and str(input) != "-" else [])
        check_split_output(str(output))
    found = _split(input, language)
    if output is not None:
        found.write(output)
    elif found.left_out:  # verbs that read lines do not report it
        logger.info("%s: %s", input, found.summary())
    return found


def _split(given: str | Path, language: str) -> SplitText:
    left_out = Skipped()
    if isinstance(given, Path) and is_document(given):
        texts = paragraphs_of(given, left_out)
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
    return SplitText(text, tuple(found), language, left_out.counts)


def _plain(path: Path) -> str:
    check_lines(path)
    with open_binary(path) as stream, unbroken(path):
        return decoded(stream.read(), path)


def one_line(text: str) -> str:
    """Join the lines of a text with spaces or, in Chinese and Japanese, with nothing."""
    return _BREAK.sub(lambda found: _joint(text, found.start(), found.end()), text)


def _joint(text: str, start: int, end: int) -> str:
    if not 0 < start <= end < len(text):
        return ""
    before, after = text[start - 1], text[end]
    wide = has_cjk(before + after) and all(character in _WIDE or has_cjk(character) for character in (before, after))
    return "" if wide or before in _WIDE_ENDS or after in _WIDE_ENDS else " "
