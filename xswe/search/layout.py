"""Which arrays an index has, and in which files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.io.ragged import HEADER
from xswe.search.columns import Columns
from xswe.search.numbers import columns_of
from xswe.search.signs import ROWS, bytes_of


class Shape(NamedTuple):
    """An array of an index."""

    rows: int
    kind: type  # of its numbers
    row: tuple[int, ...]  # the shape of a row


def shapes_of(facts: Mapping[str, Any], dim: int) -> dict[str, Shape]:
    """Return the arrays of an index of these facts by their names."""
    slots = facts.get("slots", facts["rows"])
    columns = columns_of(facts["storage"], dim) | Columns.of(facts.get("columns")).files()
    shapes = {name: Shape(slots, *column) for name, column in columns.items()}
    if blocks := facts.get("blocks", 0):
        shapes |= {"first_signs": Shape(blocks, np.uint8, (bytes_of(dim), ROWS))}
        shapes |= {"second_signs": Shape(blocks * ROWS, np.uint8, (bytes_of(dim),))}
    if facts.get("numbered", 0):
        shapes["rows"] = Shape(slots, np.int64, ())
    return shapes


def file_of(facts: Mapping[str, Any], name: str) -> str:
    """Return the file of an array in the folder of an index; once written anew they are in a folder of their own."""
    generation = facts.get("generation", 0)
    return f"arrays-{generation}/{name}.npy" if generation else f"{name}.npy"


def map_array(path: Path, shape: Shape) -> np.ndarray:
    """Map the first rows of a file, which may have more."""
    size = (shape.rows, *shape.row)
    return np.memmap(path, shape.kind, "r", HEADER, size) if shape.rows else np.zeros(size, shape.kind)
