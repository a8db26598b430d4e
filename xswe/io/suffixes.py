"""The table of suffixes that name a format.

A format that is read or written for the first time gets its line here. From the table follow the names that are refused for
the output of pairs and links, those that no folder has, the files that are not read as lines of text, and the tables that
results are written as.
"""

from __future__ import annotations

from typing import NamedTuple


class Suffix(NamedTuple):
    """What a file of a suffix is.

    Attributes:
        table: its name, as ``format=`` has it, if results are written as such tables; else empty.
        has_rows: whether it has rows, units or numbers in it, and is never read as lines of text.
        is_ours: whether such files are read or written here, so that no folder is called so.
    """

    table: str = ""
    has_rows: bool = False
    is_ours: bool = True


_TEXT, _ROWS = Suffix(), Suffix(has_rows=True)
_OTHERS, _OTHER_ROWS = Suffix(is_ours=False), Suffix(has_rows=True, is_ours=False)
SUFFIXES: dict[str, Suffix] = {
    ".arrow": _OTHER_ROWS,
    ".bin": _TEXT,
    ".csv": Suffix("csv", has_rows=True),
    ".db": _OTHER_ROWS,
    ".doc": _OTHERS,
    ".docx": _TEXT,
    ".epub": _TEXT,
    ".feather": _OTHER_ROWS,
    ".htm": _TEXT,
    ".html": _TEXT,
    ".json": Suffix("json"),
    ".jsonl": Suffix("jsonl", has_rows=True),
    ".ladder": _TEXT,
    ".markdown": _TEXT,
    ".md": Suffix("markdown"),
    ".mo": _ROWS,
    ".ndjson": _ROWS,
    ".npy": _ROWS,
    ".npz": _ROWS,
    ".ods": _OTHER_ROWS,
    ".odt": _OTHERS,
    ".onnx": _ROWS,
    ".parquet": Suffix("parquet", has_rows=True),
    ".pdf": _TEXT,
    ".pickle": _OTHER_ROWS,
    ".pkl": _OTHER_ROWS,
    ".po": _ROWS,
    ".rtf": _OTHERS,
    ".safetensors": _ROWS,
    ".sqlite": _OTHER_ROWS,
    ".tbx": _ROWS,
    ".tex": Suffix("latex"),
    ".tmx": _ROWS,
    ".tsv": Suffix("tsv"),
    ".txt": _TEXT,
    ".vec": _TEXT,
    ".xhtml": _TEXT,
    ".xlf": _ROWS,
    ".xliff": _ROWS,
    ".xls": _OTHER_ROWS,
    ".xlsx": Suffix("xlsx", has_rows=True),
    ".xml": _OTHERS,
    ".yaml": _OTHERS,
    ".yml": _OTHERS,
    ".zip": _ROWS,
}
TABLES = tuple(suffix for suffix, one in SUFFIXES.items() if one.table)  # that results are written as
