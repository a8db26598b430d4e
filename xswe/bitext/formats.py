"""The table of bitext formats, which all readers and writers use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from xswe.errors import InputError
from xswe.io.lines import OnError
from xswe.io.settings import for_all
from xswe.io.sources import packing_of, suffix_of
from xswe.io.suffixes import SUFFIXES

PairFormat = Literal["tsv", "moses", "csv", "tmx", "catalogue", "xliff", "jsonl", "parquet", "xlsx", "hub"]


class Format(NamedTuple):
    """A format of bitext.

    Attributes:
        family: a pair is a line (``lines``), a row under column names (``table``) or a unit (``memory``).
        suffixes: of its files.
        packed: whether its files may be packed.
        names_languages: whether files name the languages of their texts.
    """

    family: str
    suffixes: tuple[str, ...] = ()
    packed: bool = True
    names_languages: bool = False


FORMATS: dict[PairFormat, Format] = {
    "tsv": Format("lines", (".tsv", ".txt")),
    "moses": Format("lines"),
    "csv": Format("table", (".csv",)),
    "jsonl": Format("table", (".jsonl", ".ndjson")),
    "parquet": Format("table", (".parquet",), packed=False),
    "xlsx": Format("table", (".xlsx",), packed=False),
    "hub": Format("table"),
    "tmx": Format("memory", (".tmx",), names_languages=True),
    "xliff": Format("memory", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), names_languages=True),
    "catalogue": Format("memory", (".po", ".mo")),
}
for_all(PairFormat, dict.fromkeys(map(str, FORMATS)))
BY_SUFFIX: dict[str, PairFormat] = {suffix: kind for kind, one in FORMATS.items() for suffix in one.suffixes}


def format_by_name(path: str | Path) -> PairFormat:
    """Return the format that a file's suffix names; tab-separated text if it names none.

    InputError: pairs are not read from files of that format, or not from packed ones.
    """
    suffix = suffix_of(path)
    if suffix in SUFFIXES and SUFFIXES[suffix].has_rows and suffix not in (*BY_SUFFIX, ".zip"):
        raise InputError(path, f"pairs are not read from {suffix} files", f"use {', '.join(BY_SUFFIX)}")
    kind = BY_SUFFIX.get(suffix, "tsv")
    if packing_of(path) and not FORMATS[kind].packed:
        raise InputError(path, f"{suffix} files are not read packed", "unpack it")
    return kind


@dataclass(frozen=True)
class HubSet:
    """A data set of the hub."""

    repo: str  # its name, or a local folder or file that ``datasets.load_dataset`` can read
    config: str = ""  # its configuration, or ""
    split: str = "train"  # its split
    revision: str | None = None  # the commit, tag or branch; None for the newest
    streaming: bool = True  # read it while it downloads, and keep nothing on the disk

    def __str__(self) -> str:
        return "/".join(filter(None, (self.repo, self.config, self.split)))


@dataclass(frozen=True)
class Described:
    """What the readers of all formats know about a bitext, see :class:`xswe.bitext.source.Source`."""

    # the file, or those of source and target (Moses); ``a.zip!b.txt`` is a member of an archive, ``-`` standard input
    paths: tuple[str, ...]
    # source and target: 0-based columns, or names of columns or fields; further ones hold negatives, texts that say
    # something else than the source. If columns have names, (0, 1) stands for those named after the languages
    columns: tuple[int | str, ...] = (0, 1)
    # codes of source and target, the same one twice for pairs in one language; empty to use a file's own two
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"  # what a damaged record does: ``raise``, or ``skip`` (it has no texts)
    # of tab-separated text that is not packed, read only the lines that begin in these bytes (the first, one past the last)
    span: tuple[int, int] | None = None
    # the 0-based column, or member of an archive, with the corpus's own score; None for none
    score: int | str | None = None
    hub: HubSet | None = None  # a data set of the hub, instead of files
    min_score: float | None = None  # pairs with a lower score are left out; None for ``corpus.min_score``

    @property
    def by_name(self) -> bool:
        """True if its columns have names."""
        return all(isinstance(column, str) for column in self.columns)

    @property
    def kind(self) -> PairFormat:
        """Its format, by its name."""
        return "hub" if self.hub is not None else "moses" if len(self.paths) == 2 else format_by_name(self.paths[0])

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        return str(self.hub or self.paths[0])

    @property
    def with_negatives(self) -> bool:
        """True if negatives are read, if there are any."""
        alike = len(self.languages) == 2 and self.languages[0] == self.languages[1] and not self.by_name
        return len(self.columns) > 2 or (alike and FORMATS[self.kind].family == "table")
