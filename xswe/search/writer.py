"""Changes of an index: sentences added, updated or removed, and compaction.

A change takes effect as a whole when the database records it, as its last step; until then searches see the old state.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.checksums import Blocks, FileSums, SummedArray, file_sums
from xswe.io.files import remove_leftovers
from xswe.io.ragged import HEADER, GrowingArray, Texts, release
from xswe.io.settings import for_all
from xswe.model.ensemble import AnyModel
from xswe.progress import bar
from xswe.search.columns import Columns
from xswe.search.compaction import PROGRESS, Compaction
from xswe.search.layout import DOCUMENTS, IndexMethod, documents_of, file_of, map_array, method_of, shapes_of
from xswe.search.numbers import BLOCK, Numbers, encoded
from xswe.search.sentences import FORMAT_VERSION, Sentences, State, Writing
from xswe.search.signs import ROWS, SIGNS, centre_of, make_signs, pages_of
from xswe.search.snapshot import Snapshot, hidden_slots
from xswe.search.verification import REBUILD, sums_of_files

logger = logging.getLogger(__name__)
_HAS_SIGNS = for_all(IndexMethod, {"exact": False, "binary": True})
Block = tuple[Texts, list[Any] | None, Numbers]  # texts, the metadata of each, and their numbers
_MIN_SIGNED = 1 << 14  # minimum sentences for sign bits; their mean is the centre
# Facts of a new index, in addition to those about its sources.
NEW: dict[str, Any] = {"slots": 0, "generation": 0, "numbered": 0, "signed": 0, "centre": b"", "columns": "[]"}


class Writer:
    """Changes an index, one change at a time across all processes.

    Attributes:
        folder: folder of the index.
        sentences: its database.
    """

    def __init__(self, folder: Path, model: AnyModel, sentences: Sentences) -> None:
        self.folder, self.sentences = folder, sentences
        self._model = model

    def add(
        self,
        blocks: Iterable[Block],
        progressed: Callable[[int], object],
        before: Callable[[int], None] = lambda _: None,
        log: bool = True,
    ) -> range:
        """Add sentences, and return their numbers; ``before`` is called with the new total before the change takes effect.

        Without ``log`` nobody can read meanwhile, which suits an index that nobody else knows of yet.
        """
        with self._writing(log) as writing:
            facts = dict(writing.state.facts)
            first = facts["rows"]

            def added() -> Iterator[tuple[np.ndarray, list[Any] | None, Numbers]]:
                """Write each block, and yield the numbers of its rows with what is indexed."""
                for texts, metadata, numbers in blocks:
                    writing.add(facts["rows"], texts, metadata)
                    rows = np.arange(facts["rows"], facts["rows"] + len(texts))
                    facts["rows"] += len(texts)
                    yield rows, metadata, numbers

            self._append(writing, facts, added(), progressed)
            before(facts["rows"])
        return range(first, facts["rows"])

    def _append(
        self,
        writing: Writing,
        facts: dict[str, Any],
        blocks: Iterable[tuple[np.ndarray, list[Any] | None, Numbers]],
        progressed: Callable[[int], object],
    ) -> None:
        """Append sentences with these rows and metadata to the arrays, and record the new state."""
        sums, known_columns, count = writing.state.sums or {}, Columns.of(facts["columns"]), 0
        with ExitStack() as stack:
            columns: dict[str, SummedArray] = {}
            for name, shape in shapes_of(facts, self._model.dim).items():
                if name not in SIGNS:
                    path = self.folder / file_of(facts, name)
                    known = sums.get(file_of(facts, name))
                    columns[name] = SummedArray(path, shape.kind, shape.rows, shape.row, known, advice=REBUILD)
                    # After an error, unwritten rows must not become part of a later addition.
                    stack.callback(columns[name].abandon)
            for rows, metadata, numbers in blocks:
                arrays = {**numbers.arrays, **known_columns.arrays(metadata, len(rows), count), "rows": rows}
                for name, column in columns.items():
                    column.append(arrays[name])
                facts["error"] = max(facts["error"], numbers.error)
                count += len(rows)
                progressed(len(rows))
            for name, column in columns.items():
                column.close()
                writing.note_sums(file_of(facts, name), column.known, since=column.kept)
            facts["slots"] = columns["codes"].size
            self._sign(writing, facts, {name: column.known for name, column in columns.items()})
        writing.note(facts)

    @contextmanager
    def _writing(self, log: bool = True) -> Iterator[Writing]:
        """Open a transaction, after removing what a killed process left."""
        with self.sentences.writing(log) as writing:
            facts = writing.state.facts
            if "documents" in facts:
                (self.folder / DOCUMENTS).unlink(missing_ok=True)
            if facts["format_version"] < FORMAT_VERSION:
                self._upgrade(writing)
                facts = writing.state.facts
            remove_leftovers(self.folder)
            _remove(self._old(writing.state))
            for name, (rows, kind, row) in shapes_of(facts, self._model.dim).items():
                path, size = self.folder / file_of(facts, name), rows * math.prod(row) * np.dtype(kind).itemsize
                if size and path.stat().st_size > HEADER + size:
                    GrowingArray(path, kind, rows, row).close()
            yield writing
        if self._old(self.sentences.state()):
            with self.sentences.writing(log) as writing:
                _remove(self._old(writing.state))

    def _old(self, state: State) -> list[Path]:
        """Return the arrays that the database no longer refers to, left by a compaction that finished or was killed.

        Other processes may still have them mapped into memory and can keep using them; if the system does not remove open
        files, a later change does.
        """
        facts, found = state.facts, list[Path]()
        if "clustered" not in facts:  # as in format 2
            found += self.folder.glob("clusters-*")
        for place in self.folder.glob("arrays-*"):
            if place.name != f"arrays-{facts.get('generation', 0)}" and not Compaction.waits_in(place, state.root):
                found.append(place)
        if facts.get("generation", 0):
            found += [*self.folder.glob("*.npy"), *(self.folder / file_of(facts, "")).parent.glob(PROGRESS)]
        return found

    def _upgrade(self, writing: Writing) -> None:
        """Upgrade an index to this version: restore sentences that format 1 hid, and record all checksums."""
        logger.info("%s: made by an earlier version; upgrading it", self.folder)
        facts, sums = writing.state.facts, {}
        noted: dict[str, Any] = {**NEW, "method": method_of(facts), "slots": facts["rows"]}
        if writing.state.sums is not None:
            writing.forget_sums(name for name in writing.state.sums if name.startswith("clusters-"))
            writing.upgrade(noted)
            return
        if rows := facts["rows"]:
            scales = np.memmap(self.folder / "scales.npy", np.float32, "r+", HEADER, (rows,))
            opened = Snapshot(self.folder, self._model.dim, writing.state)
            hidden = hidden_slots(opened, self.sentences)
            scales[hidden] = opened.scales_of(hidden)
            scales.flush()
            for name, (_, kind, row) in shapes_of(facts, self._model.dim).items():
                size = math.prod(row) * np.dtype(kind).itemsize
                sums[f"{name}.npy"] = file_sums(self.folder / f"{name}.npy", size, HEADER, rows * size)
        sums |= sums_of_files(self.folder, self.folder / "model")
        writing.upgrade({**noted, "documents": json.dumps(documents_of(self.folder, facts))}, sums)

    def _sign(self, writing: Writing, facts: dict[str, Any], sums: Mapping[str, FileSums]) -> None:
        """Write the sign bits of slots that have none yet; the centre is the mean of the first slots of the index."""
        if not _HAS_SIGNS[facts["method"]] or facts["slots"] < _MIN_SIGNED:
            return
        signed, count = facts.get("signed", 0), facts["slots"]
        whole = signed // ROWS * ROWS  # later slots get pages once a block is full
        shapes, arrays = shapes_of(facts, self._model.dim), {}
        for name in ("codes", "scales"):
            path = self.folder / file_of(facts, name)
            arrays[name] = map_array(path, shapes[name])
            row = self._model.dim if name == "codes" else 4
            Blocks(path, sums[name], HEADER, advice=REBUILD).check_rows(np.arange(whole, count), row)
        codes, scales = arrays["codes"], arrays["scales"]
        if not signed:
            facts["centre"] = centre_of(codes[:_MIN_SIGNED], scales[:_MIN_SIGNED]).tobytes()
        centre = np.frombuffer(facts["centre"], np.float32)
        facts["signed"] = count
        columns, shapes = [], shapes_of(facts, self._model.dim)
        with ExitStack() as stack:
            for name, before in zip(SIGNS, (whole // ROWS, signed), strict=True):
                known = (writing.state.sums or {}).get(file_of(facts, name)) if before else None
                path = self.folder / file_of(facts, name)
                columns.append(SummedArray(path, np.uint8, before, shapes[name].row, known, advice=REBUILD))
                stack.callback(columns[-1].close)
            for start in range(whole, count, ROWS):
                part = slice(start, min(start + ROWS, count))
                rows = make_signs(codes[part], scales[part], centre)
                if len(rows) == ROWS:
                    columns[0].append(pages_of(rows))
                columns[1].append(rows[max(0, signed - start) :])
                release(codes)
        for name, column in zip(SIGNS, columns, strict=True):
            writing.note_sums(file_of(facts, name), column.known, since=column.kept)

    def _number(self, writing: Writing, facts: dict[str, Any]) -> None:
        """Record the row of each slot, which is needed once rows and slots differ."""
        if facts["numbered"]:
            return
        column = SummedArray(self.folder / file_of(facts, "rows"), np.int64, advice=REBUILD)
        with closing(column):
            for start in range(0, facts["slots"], BLOCK):
                column.append(np.arange(start, min(start + BLOCK, facts["slots"])))
        writing.note_sums(file_of(facts, "rows"), column.known)
        facts["numbered"] = 1
        writing.note(facts)
        writing.state = writing.state._replace(sums={**(writing.state.sums or {}), file_of(facts, "rows"): column.known})

    def update(self, rows: list[int], texts: Sequence[str] | None, metadata: Sequence[Any] | None) -> None:
        """Replace the texts or metadata of sentences; None keeps them; see :meth:`Index.update`."""
        with self._writing() as writing:
            before = _existing(writing, rows)
            own = [before[row][0] for row in rows] if texts is None else texts
            kept = [before[row][1] for row in rows] if metadata is None else metadata
            if not rows:
                return
            facts = dict(writing.state.facts)
            slots = Snapshot(self.folder, self._model.dim, writing.state).slots_of(np.array(rows, np.int64))
            self._number(writing, facts)
            writing.update(rows, own, kept, slots)

            def updated() -> Iterator[tuple[np.ndarray, list[Any], Numbers]]:
                places = iter(zip(rows, kept, strict=True))
                for block, numbers in encoded(self._model, own, facts["storage"], None):
                    part = list(islice(places, len(block)))
                    yield np.array([row for row, _ in part], np.int64), [one for _, one in part], numbers

            with bar("index", len(rows), "sentence") as progress:
                self._append(writing, facts, updated(), progress.update)

    def remove(self, rows: Sequence[int]) -> None:
        """Remove sentences, or raise ConfigError if one does not exist."""
        with self._writing() as writing:
            _existing(writing, rows)
            writing.remove(rows)
            writing.note({"removed": writing.state.facts["removed"] + len(rows)})

    def compact(self) -> int:
        """Rewrite the arrays without dead slots, and return the number of dead slots."""
        with self._writing() as writing:
            facts = dict(writing.state.facts)
            now = Snapshot(self.folder, self._model.dim, writing.state)
            if not len(now.dead):
                return 0
            with bar("compact", now.live, "sentence") as progress:
                compaction = Compaction(self.folder, now, self._model.dim)
                columns = compaction.run(progress.update)
            old = [file_of(facts, name) for name in shapes_of(facts, self._model.dim)]
            writing.forget_sums(old)
            writing.forget_replaced()
            facts |= compaction.facts
            for name, column in columns.items():
                writing.note_sums(file_of(facts, name), column)
            self._sign(writing, facts, columns)
            writing.note(facts)
        self.sentences.shrink()
        return len(now.dead)


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and folders, as far as the system allows."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _existing(writing: Writing, rows: Sequence[int]) -> dict[int, tuple[str, Any]]:
    """Return the text and metadata of some sentences, or raise ConfigError if one does not exist."""
    found = writing.take(rows)
    if missing := sorted(set(rows) - set(found)):
        raise ConfigError(f"rows: there is no sentence {missing[0]}, or it was removed before")
    return found


def with_metadata(blocks: Iterable[tuple[Texts, Numbers]], metadata: Iterable[Any] | None, row: int = 0) -> Iterator[Block]:
    """Yield blocks of texts, the first of them numbered ``row``, with the metadata of each text."""
    values = None if metadata is None else iter(metadata)
    for block, numbers in blocks:
        kept = None if values is None else list(islice(values, len(block)))
        row += len(block)
        if kept is not None and len(kept) < len(block):
            raise ConfigError(f"metadata: only {row - len(block) + len(kept)} values; give one a text, None for none")
        yield block, kept, numbers
    if values is not None and next(values, values) is not values:
        raise ConfigError(f"metadata: more values than the {row} texts; give one each")
