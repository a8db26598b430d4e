"""Compaction: rewriting the arrays of an index without removed and replaced rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from xswe.io.checksums import FileSums, SummedArray
from xswe.io.files import whole_file
from xswe.search.layout import file_of, shapes_of
from xswe.search.snapshot import Snapshot
from xswe.search.verification import REBUILD

PROGRESS = "progress.npz"  # the number of sentences written, and the arrays' checksums
_PIECE = 1 << 20  # sentences written between two records of progress


class Compaction:
    """Writes the arrays of the remaining sentences, by ascending row, into a folder of their own.

    ``facts`` is what the database has to record once they are written.
    """

    def __init__(self, folder: Path, now: Snapshot, dim: int) -> None:
        self._now, self._dim = now, dim
        self._rows = now.rows()
        self._slots = now.slots_of(self._rows)
        self.facts: dict[str, Any] = {"generation": now.facts["generation"] + 1, "slots": len(self._rows)}
        self.facts |= {"numbered": int(len(self._rows) != now.facts["rows"]), "signed": 0, "centre": b""}
        self._place = (folder / file_of(self.facts, "")).parent

    @staticmethod
    def waits_in(place: Path, root: int | None) -> bool:
        """Return True if a folder holds a killed compaction of the index with this checksum, which can be resumed."""
        found = _progress(place)
        return found is not None and found["root"].item() == root

    def run(self, progressed: Callable[[int], object]) -> dict[str, FileSums]:
        """Write the arrays and return their checksums, calling ``progressed`` with each number of sentences written."""
        self._place.mkdir(exist_ok=True)
        before = _progress(self._place) if self.waits_in(self._place, self._now.root) else None
        done = 0 if before is None else before["done"].item()
        with ExitStack() as stack:
            columns = {}
            for name, shape in shapes_of(self._now.facts | self.facts, self._dim).items():
                known = None if before is None else _sums(before, name)
                path = self._place / f"{name}.npy"
                columns[name] = SummedArray(path, shape.kind, done, shape.row, known, advice=REBUILD)
                stack.callback(columns[name].abandon)
            progressed(done)
            for start in range(done, len(self._rows), _PIECE):
                self._write(columns, slice(start, start + _PIECE), progressed)
                for column in columns.values():
                    column.sync()
                self._note(columns)
            for column in columns.values():
                column.close()
        return {name: column.known for name, column in columns.items()}

    def _write(self, columns: dict[str, SummedArray], part: slice, progressed: Callable[[int], object]) -> None:
        """Append some of the sentences to all arrays."""
        for arrays in self._now.array_blocks(self._slots[part]):
            for name, array in arrays.items():
                columns[name].append(array)
            progressed(len(arrays["codes"]))
        if "rows" in columns:
            columns["rows"].append(self._rows[part])

    def _note(self, columns: dict[str, SummedArray]) -> None:
        """Record the progress of the arrays."""
        noted = {"root": np.array(self._now.root), "done": np.array(columns["codes"].size)}
        for name, column in columns.items():
            known = column.known
            noted |= {f"{name}.size": np.array([known.size, known.block]), f"{name}.sums": known.sums}
        with whole_file(self._place / PROGRESS) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, **noted)  # type: ignore[arg-type]


def _progress(place: Path) -> dict[str, np.ndarray] | None:
    """Return the progress recorded in a folder; None without any."""
    try:
        with np.load(place / PROGRESS, allow_pickle=False) as noted:
            return dict(noted)
    except (OSError, ValueError, EOFError, KeyError):
        return None


def _sums(noted: dict[str, np.ndarray], name: str) -> FileSums:
    size, block = noted[f"{name}.size"].tolist()
    return FileSums(size, block, noted[f"{name}.sums"])
