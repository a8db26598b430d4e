"""Verification of an index by the checksums of its files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from xswe.errors import ModelError, brief
from xswe.io.checksums import Blocks, FileSums, file_sums
from xswe.io.ragged import HEADER, rows_in_header
from xswe.progress import bar
from xswe.search.layout import file_of, shapes_of
from xswe.search.sentences import Sentences, State

REBUILD = "restore it from a copy, or build the index again from its sentences, which are in sentences.sqlite"
_MODEL = "restore it from a copy, or put back the model that the index was built with"


def advice_for(file: str) -> str:
    """Return the hint for a damaged file of an index."""
    return _MODEL if file.startswith("model/") else REBUILD


def sums_of_files(folder: Path, part: Path) -> dict[str, FileSums]:
    """Return the checksums of a part's files by name in the index folder, except the model card, which may be edited."""
    files = [path for path in sorted(part.rglob("*")) if path.is_file() and path.name != "README.md"]
    return {path.relative_to(folder).as_posix(): file_sums(path) for path in files}


def check_files(folder: Path, sums: Mapping[str, FileSums], part: str) -> None:
    """Verify the files of a part of an index; ModelError: one is damaged."""
    for name, known in sums.items():
        if name.startswith(f"{part}/"):
            Blocks(folder / name, known, advice=advice_for(name)).check()


def damage(folder: Path) -> list[str]:
    """Verify an index, and return a line for each damaged file: its name, the place, and a hint.

    An index of format 1 has no checksums, so only its database and the sizes of its arrays can be checked.
    """
    sentences = Sentences(folder / "sentences.sqlite")
    found = sentences.damage()
    try:
        state = sentences.state()
    except ModelError:  # already in the list
        return found
    with bar("verify", len(state.sums or ()), unit="file") as progress:
        for name, known in (state.sums or {}).items():
            found += _damaged_blocks(folder / name, known, HEADER if _is_array(name) else 0, advice_for(name))
            progress.update(1)
    return found + _damaged_headers(folder, state)


def verify_index(index: str | Path) -> str:
    """Read an index, without loading its model, and verify its checksums.

    Args:
        index: folder of the index.

    Returns:
        A line that says what was verified.

    Raises:
        ModelError: there is no index, or it is damaged; the message says for each file where, and what can be done.
    """
    check_there(Path(index))
    if found := damage(Path(index)):
        raise ModelError("\n".join(found))
    facts, _, sums, *_ = Sentences(Path(index) / "sentences.sqlite").state()
    count = f"{facts['rows'] - facts['removed']:,} sentences"
    if sums is None:
        return f"{index}: {count}; it has no checksums yet, the next change will record them"
    return f"{index}: {count} and {len(sums):,} files are what was written"


def check_there(folder: Path) -> None:
    """Raise ModelError unless a folder has the database of an index."""
    if not (folder / "sentences.sqlite").is_file():
        raise ModelError(f"{folder}: no index; build one with search model= input= index=, or xswe.index")


def _is_array(name: str) -> bool:
    """Return True for an array, whose checksums cover the part after the header."""
    return "/" not in name or name.startswith("arrays-")


def _damaged_blocks(path: Path, known: FileSums, first: int, advice: str) -> list[str]:
    blocks = Blocks(path, known, first, advice=advice)
    try:
        damaged = blocks.damaged()
    except ModelError as error:
        return [str(error)]
    if not damaged:
        return []
    count = f"{len(damaged):,} of {len(known.sums):,} blocks are not what was written"
    return [f"{path}: {count}, the first at {blocks.place(damaged[0])}; {advice}"]


def check_array(path: Path, kind: type, shape: tuple[int, ...], header: bool = True) -> None:
    """Raise ModelError unless a file can hold an array; a killed addition may have left more rows.

    ``header``: its header must also be that of such an array, although no version of this library reads it.
    """
    try:
        size = HEADER + math.prod(shape) * np.dtype(kind).itemsize
        if (found_size := path.stat().st_size) < size:
            problem = f"has {found_size:,} bytes, not {size:,}"
        elif header and (rows := rows_in_header(path, np.dtype(kind), shape[1:])) < shape[0]:
            problem = f"its header says {rows:,} rows, not {shape[0]:,}"
        else:
            return
    except (OSError, ValueError) as error:
        problem = brief(error)
    raise ModelError(f"{path}: {problem}; {REBUILD}")


def _damaged_headers(folder: Path, state: State) -> list[str]:
    """Return a line for each array whose header does not fit its data."""
    found, slots = [], state.facts.get("slots", state.facts["rows"])
    if state.sums is None or not slots:
        return []
    dim = state.sums[file_of(state.facts, "codes")].size // slots
    for name, (count, kind, row) in shapes_of(state.facts, dim).items():
        path = folder / file_of(state.facts, name)
        try:
            check_array(path, kind, (count, *row))
            check_array(path, kind, (rows_in_header(path, np.dtype(kind), row), *row))
        except ModelError as error:
            found.append(str(error))
    return found
