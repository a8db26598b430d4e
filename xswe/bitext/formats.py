"""The formats of bitext: one table, by which every reader and writer goes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from xswe.errors import InputError
from xswe.io.settings import for_all
from xswe.io.sources import packing_of, suffix_of

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

    InputError: files of that format are not read packed.
    """
    kind = BY_SUFFIX.get(suffix_of(path), "tsv")
    if packing_of(path) and not FORMATS[kind].packed:
        raise InputError(path, f"{suffix_of(path)} files are not read packed", "unpack it")
    return kind
