"""The table of suffixes that name a format.

Every format that is read or written has a line here. The table decides which names are refused for output of pairs and
links, and for folders; which files are not read as lines of text; and as which tables results are written.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# Values of ``format=`` for tables. Pairs are written so, too, but not as .json, and as .tsv in LASER's format.
TableFormat = Literal["csv", "jsonl", "latex", "markdown", "parquet", "xlsx"]


class Suffix(NamedTuple):
    """The properties of files with a suffix.

    Attributes:
        table: value of ``format=`` for which results are written as such tables; empty if they are not.
        has_rows: whether the file holds rows, units or numbers, and is never read as lines of text.
        is_ours: whether xswe reads or writes such files, so that no folder may have the suffix.
    """

    table: str = ""
    has_rows: bool = False
    is_ours: bool = True


_TEXT, _ROWS = Suffix(), Suffix(has_rows=True)
_FOREIGN, _FOREIGN_ROWS = Suffix(is_ours=False), Suffix(has_rows=True, is_ours=False)
SUFFIXES: dict[str, Suffix] = {
    ".arrow": _FOREIGN_ROWS,
    ".ass": _TEXT,
    ".bin": _TEXT,
    ".csv": Suffix("csv", has_rows=True),
    ".db": _FOREIGN_ROWS,
    ".doc": _FOREIGN,
    ".docx": _TEXT,
    ".epub": _TEXT,
    ".feather": _FOREIGN_ROWS,
    ".htm": _TEXT,
    ".html": _TEXT,
    ".json": Suffix("json"),
    ".jsonl": Suffix("jsonl", has_rows=True),
    ".ladder": _TEXT,
    ".markdown": _TEXT,
    ".md": Suffix("markdown"),
    ".mo": _ROWS,
    ".mqxliff": _ROWS,
    ".mxliff": _ROWS,
    ".ndjson": _ROWS,
    ".npy": _ROWS,
    ".npz": _ROWS,
    ".ods": _FOREIGN_ROWS,
    ".odt": _FOREIGN,
    ".onnx": _ROWS,
    ".parquet": Suffix("parquet", has_rows=True),
    ".pdf": _TEXT,
    ".pickle": _FOREIGN_ROWS,
    ".pkl": _FOREIGN_ROWS,
    ".po": _ROWS,
    ".rtf": _FOREIGN,
    ".safetensors": _ROWS,
    ".sdlxliff": _ROWS,
    ".sqlite": _FOREIGN_ROWS,
    ".srt": _TEXT,
    ".ssa": _TEXT,
    ".tbx": _ROWS,
    ".tex": Suffix("latex"),
    ".tmx": _ROWS,
    ".tsv": Suffix("tsv"),
    ".txt": _TEXT,
    ".vec": _TEXT,
    ".vtt": _TEXT,
    ".xhtml": _TEXT,
    ".xlf": _ROWS,
    ".xliff": _ROWS,
    ".xls": _FOREIGN_ROWS,
    ".xlsx": Suffix("xlsx", has_rows=True),
    ".xml": _FOREIGN,
    ".yaml": _FOREIGN,
    ".yml": _FOREIGN,
    ".zip": _ROWS,
}
TABLES = tuple(suffix for suffix, one in SUFFIXES.items() if one.table)  # formats of results
