"""A source of texts of one language: the lines of a file, the sentences of running text, or one side of bitexts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xswe.errors import ConfigError
from xswe.io.files import file_stamp, fingerprint, read_json, write_json
from xswe.io.lines import RAISES, OnError, Skipped, check_lines, read_lines
from xswe.io.results import write_text
from xswe.text.sentences import SplitText, is_document, split_text
from xswe.work.folder import local_copy
from xswe.work.kept import unrepeatable
from xswe.work.once import once

if TYPE_CHECKING:
    from xswe.bitext.source import Source

_TEXTS_FILE, _LEFT_OUT = "texts.txt", "left_out.json"


@dataclass(frozen=True)
class TextSource:
    """Texts of one language, and how to read them."""

    name: str  # file, packed or not; ``-`` for standard input
    language: str = ""  # its code, by which running text is cut
    split: bool | None = None  # cut it into sentences; None for documents only (:func:`xswe.text.sentences.is_document`)
    on_error: OnError = "raise"  # what a damaged line does: ``raise``, or ``skip``
    bitexts: tuple[Source, ...] = ()  # read one side of these bitexts instead of the file
    side: int = 1  # which side, 0 or 1

    @property
    def is_cut(self) -> bool:
        """True if it is running text, to be cut into sentences regardless of its lines."""
        return not self.bitexts and bool(self.split or (self.split is None and is_document(self.name)))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files that are read."""
        from xswe.bitext.source import Source  # imports the compiler, which most commands do without

        return self.bitexts or (Source((self.name,)),)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the texts; damaged lines are empty."""
        return (text or "" for text in self.read(Skipped(), in_place=True))

    def read(self, left_out: Skipped, in_place: bool = False) -> Iterator[str | None]:
        """Yield the texts, None for a damaged line, and count those left out; for bitexts, see :meth:`pairs`.

        ConfigError: running text without a language. InputError: the file is missing, damaged or not text.
        """
        if self.bitexts:
            yield from (pair[self.side] for pair in self.pairs(left_out, in_place))
        elif not self.is_cut:
            check_lines(self.name)
            yield from (text for _, text in read_lines(self.name, on_error=self.on_error, skipped=left_out))
        else:
            found = self.sentences()
            left_out.update(found.left_out)
            yield from (sentence.text for sentence in found)

    def sentences(self) -> SplitText:
        """Cut running text, in a local or remote file, into sentences. Errors: see :meth:`read`."""
        if not self.language:
            hint = "name it, as in language=en, or cut them first (python -m xswe split)"
            raise ConfigError(f"{self.name} is cut into sentences by its language, which is not known: {hint}")
        with local_copy(self.name) as path:
            return split_text(path, self.language)

    def pairs(self, left_out: Skipped, in_place: bool = True) -> Iterator[tuple[str, str]]:
        """Yield the pairs of the bitexts, ``in_place`` with one without texts for each that is left out, and counted."""
        from xswe.bitext.source import read_pairs

        for file in self.bitexts:
            yield from read_pairs(file, in_place=in_place, on_error=self.on_error, skipped=left_out)

    def lines(self, folder: Path, left_out: Skipped) -> str:
        """Return the name of a file with a text a line: this one, or a copy in ``folder``, made once for all processes.

        Damaged lines are empty in it, so that all others keep their numbers. Errors: see :meth:`read`.
        """
        if not (self.bitexts or self.is_cut) and RAISES[self.on_error]:
            check_lines(self.name)
            return self.name
        stamp = unrepeatable() if self.name == "-" else file_stamp(self.name)
        how = self.language, self.on_error, self.side, [(one.languages, one.layout) for one in self.bitexts]
        made = folder / f"texts-{fingerprint(stamp, how)}"

        def write(place: Path) -> None:
            """Write the texts, and the counts of lines left out."""
            counts = Skipped()
            write_text(place / _TEXTS_FILE, (f"{text or ''}\n" for text in self.read(counts, in_place=True)))
            write_json(place / _LEFT_OUT, counts.counts)

        once(made, made.name, write)
        left_out.update(read_json(made / _LEFT_OUT))
        return str(made / _TEXTS_FILE)
