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
        family: ``lines`` (a pair is one), ``table`` (a row under the names of columns) or ``memory`` (a unit of it).
        suffixes: of its files.
        packed: whether its files may be packed.
        names_languages: whether a file says which languages its texts are in.
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
    "xliff": Format("memory", (".xlf", ".xliff"), names_languages=True),
    "catalogue": Format("memory", (".po", ".mo")),
}
for_all(PairFormat, dict.fromkeys(map(str, FORMATS)))
BY_SUFFIX: dict[str, PairFormat] = {suffix: kind for kind, one in FORMATS.items() for suffix in one.suffixes}


def format_by_name(path: str | Path) -> PairFormat:
    """Return the format that a file's suffix says; tab-separated text where it says none.

    InputError: files of that format have no pairs, or are not read packed.
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

    repo: str  # its name, or a local folder or file that ``datasets.load_dataset`` reads
    config: str = ""  # its configuration, or ""
    split: str = "train"  # its split
    revision: str | None = None  # the commit, tag or branch; None for the newest
    streaming: bool = True  # read while it downloads, and keep nothing of it on the disk

    def __str__(self) -> str:
        return "/".join(filter(None, (self.repo, self.config, self.split)))


@dataclass(frozen=True)
class Described:
    """What readers of formats know of a bitext, see :class:`xswe.bitext.source.Source`."""

    # the file, or the source's and the target's (Moses); ``a.zip!b.txt`` is a member of an archive, ``-`` standard input
    paths: tuple[str, ...]
    # 0-based columns, or names of columns or fields, of source and target; further ones are of negatives, texts that say
    # something else than the source. (0, 1) takes those named after the languages where columns have names
    columns: tuple[int | str, ...] = (0, 1)
    # codes of source and target, the same one twice for pairs of one language; empty to take a file's own two
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"  # what a damaged record does: ``raise``, or ``skip`` (it has no texts)
    # of tab-separated text that is not packed: only the lines whose first byte is one of these
    span: tuple[int, int] | None = None
    # the 0-based column, or in an archive the member, that holds the corpus's own score; None for none
    score: int | str | None = None
    hub: HubSet | None = None  # a data set of the hub, instead of files
    min_score: float | None = None  # pairs with a lower score are dropped; None for ``corpus.min_score``

    @property
    def by_name(self) -> bool:
        """True if its columns have names."""
        return all(isinstance(column, str) for column in self.columns)

    @property
    def kind(self) -> PairFormat:
        """How it is laid out, by its name."""
        return "hub" if self.hub is not None else "moses" if len(self.paths) == 2 else format_by_name(self.paths[0])

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        return str(self.hub or self.paths[0])

    @property
    def with_negatives(self) -> bool:
        """True if negatives are read where there are any."""
        alike = len(self.languages) == 2 and self.languages[0] == self.languages[1] and not self.by_name
        return len(self.columns) > 2 or (alike and FORMATS[self.kind].family == "table")
