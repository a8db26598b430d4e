"""The arrays of an index, and their files.

An index is a folder of files that other tools can read as well: ``vectors.npy`` (not with ``storage=int8``), ``codes.npy``
and ``scales.npy`` (:mod:`xswe.search.kernels`), with ``method=binary`` ``sign_pages.npy`` and ``sign_rows.npy``
(:mod:`xswe.search.signs`), ``sentences.sqlite`` with texts and metadata, and the model.
The database decides what belongs to the index (:mod:`xswe.search.sentences`): arrays only grow, the next change cuts off
what a killed process left after their end, and removed or replaced rows are left out when the index is opened
(:mod:`xswe.search.snapshot`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from xswe.io.files import read_json
from xswe.io.ragged import HEADER, GrowingArray
from xswe.search.columns import Columns
from xswe.search.numbers import columns_of
from xswe.search.signs import ROWS, SIGNS, bytes_of, pages_shape

IndexMethod = Literal["exact", "binary"]
DOCUMENTS = "documents.json"  # stamp of the file that an index of format 1 was built from


class Shape(NamedTuple):
    """An array of an index."""

    rows: int
    kind: type  # type of its numbers
    row: tuple[int, ...]  # the shape of a row


def shapes_of(facts: Mapping[str, Any], dim: int) -> dict[str, Shape]:
    """Return the arrays of an index with these facts by name."""
    slots = facts.get("slots", facts["rows"])
    columns = columns_of(facts["storage"], dim) | Columns.of(facts.get("columns")).files()
    shapes = {name: Shape(slots, *column) for name, column in columns.items()}
    if rows := facts.get("signed", 0):
        signs = Shape(rows // ROWS, np.uint8, pages_shape(dim)), Shape(rows, np.uint8, (bytes_of(dim),))
        shapes |= zip(SIGNS, signs, strict=True)
    if facts.get("numbered", 0):
        shapes["rows"] = Shape(slots, np.int64, ())
    return shapes


def file_of(facts: Mapping[str, Any], name: str) -> str:
    """Return the path of an array within the folder of an index; a compaction puts arrays into a subfolder."""
    generation = facts.get("generation", 0)
    return f"arrays-{generation}/{name}.npy" if generation else f"{name}.npy"


def map_array(path: Path, shape: Shape) -> np.ndarray:
    """Map the first rows of a file, which may have more."""
    size = (shape.rows, *shape.row)
    return np.memmap(path, shape.kind, "r", HEADER, size) if shape.rows else np.zeros(size, shape.kind)


def method_of(facts: Mapping[str, Any]) -> IndexMethod:
    """Return the search method of an index with these facts; ``clusters``, of v0.2 and earlier, becomes ``binary``."""
    return "binary" if facts["method"] == "clusters" else facts["method"]


def documents_of(folder: Path, facts: Mapping[str, Any]) -> Any:
    """Return the name, size and time that the file of an index had when it was indexed; None if there was no file."""
    if "documents" in facts:
        return json.loads(facts["documents"])
    try:
        return read_json(folder / DOCUMENTS)
    except (OSError, ValueError):
        return None


def copy_files(folder: Path, other: Path, facts: Mapping[str, Any], dim: int) -> None:
    """Copy the files of an index with these facts, except its database, to another folder."""
    for part in ("model", *([f"clusters-{facts['clustered']}"] if facts.get("clustered") else ())):
        shutil.copytree(folder / part, other / part, dirs_exist_ok=True)
    for name, (rows, kind, row) in shapes_of(facts, dim).items():
        path = other / file_of(facts, name)
        path.parent.mkdir(exist_ok=True)
        shutil.copy2(folder / file_of(facts, name), path)
        GrowingArray(path, kind, rows, row).close()
    if "documents" not in facts and (folder / DOCUMENTS).is_file():
        shutil.copy2(folder / DOCUMENTS, other / DOCUMENTS)
