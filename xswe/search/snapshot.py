"""A snapshot of an index's arrays, mapped into memory, for searching while the index may be changed.

A slot is a place in the arrays, a row the number of a sentence. Arrays only grow, so a slot never changes: a sentence with
a new text gets a new slot, and every search leaves out the slots of replaced and removed sentences. Until something is
replaced, or a compaction rewrites the arrays, the slot of each sentence equals its row.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xswe.errors import ConfigError, ModelError, brief
from xswe.io.checksums import Blocks
from xswe.io.parallel import Lock
from xswe.io.ragged import HEADER, release
from xswe.search.columns import Columns, Where
from xswe.search.kernels import Coded, nearest
from xswe.search.layout import file_of, map_array, shapes_of
from xswe.search.sentences import Sentences, State
from xswe.search.signs import ROWS, SIGNS, Signs, candidates, live_bits, pages_of
from xswe.search.vectors import CheckedVectors, Vectors
from xswe.search.verification import REBUILD, check_array

LEAST_RESCORED = 256
_KEPT_FILTERS = 16  # recent conditions whose sentences are cached
_SCORED_FACTOR = 20  # up to this many times the candidates, chosen sentences are all scored
_READ = 16_384  # slots read at a time


class Snapshot:
    """The arrays of an index at one moment; blocks of files that an earlier snapshot has checked are not checked again.

    OSError: an array cannot be read, perhaps because it has been removed since. ModelError: an array is damaged.

    Attributes:
        facts: the facts recorded in the database.
        root: the checksum of everything in the database but the sentences.
        live: the number of sentences.
    """

    def __init__(self, folder: Path, dim: int, state: State, before: Snapshot | None = None) -> None:
        self.facts, self.root, self.live = state.facts, state.root, state.facts["rows"] - state.facts["removed"]
        self._dim = dim
        self._blocks: dict[str, Blocks] = {}
        self._arrays: dict[str, np.ndarray] = {}
        known = {} if before is None or file_of(before.facts, "") != file_of(self.facts, "") else before._blocks
        for name, shape in shapes_of(self.facts, dim).items():
            path = folder / file_of(self.facts, name)
            if shape.rows:
                check_array(path, shape.kind, (shape.rows, *shape.row), header=state.sums is not None)
            self._arrays[name] = map_array(path, shape)
            if shape.rows and state.sums is not None:
                sums = state.sums[file_of(self.facts, name)]
                self._blocks[name] = Blocks(path, sums, HEADER, advice=REBUILD, before=known.get(name))
        self.names: np.ndarray | None = self._array("rows") if self.facts.get("numbered", 0) else None
        self.dead = self._dead(state)
        scales = self._live_scales(folder / file_of(self.facts, "scales"), state)
        name = "codes" if self.facts["storage"] == "int8" else "vectors"
        blocks = self._blocks.get(name)
        vectors = Vectors(self._arrays[name]) if blocks is None else CheckedVectors(self._arrays[name], blocks)
        self._coded = Coded(np.asarray(self._arrays["codes"]), np.asarray(scales), vectors, self.facts["error"], self.names)
        self._signs: Signs | None = None
        if SIGNS[0] in self._arrays:
            pages, rows = (np.asarray(self._arrays[name]) for name in SIGNS)
            self._signs = Signs(pages, pages_of(rows[len(pages) * ROWS :]), rows, live_bits(scales))
        self._columns = Columns.of(self.facts.get("columns"))
        self._filters: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = Lock()
        self._order: np.ndarray | None = None

    def check_added(self, before: Snapshot) -> None:
        """Verify the checksums of what is new since an earlier snapshot, in arrays that searches read whole.

        Otherwise the next search would do so, and all concurrent searches would wait for it.
        """
        for name in ("codes",) if self._signs is None else SIGNS:
            if name not in self._blocks:
                continue
            blocks, known = self._blocks[name], before._blocks.get(name)
            same = known is not None and known.path == blocks.path
            first = len(before._arrays[name]) * self._arrays[name].strides[0] // blocks.known.block if same else 0
            blocks.check(np.arange(first, len(blocks.known.sums)))

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self._coded.codes)

    @property
    def hidden(self) -> np.ndarray:
        """Slots without a scale that are not zero: in format 1, removed, or being removed when a process was killed."""
        slots = np.flatnonzero(np.isnan(self._coded.scales))
        return slots[self._coded.codes[slots].any(axis=1)]  # a text without a known unit has no scale either

    def reveal(self, slots: np.ndarray) -> None:
        """Restore the original scales of some hidden slots; the others are dead."""
        self.dead = np.setdiff1d(self.hidden, slots)
        scales = self._coded.scales.copy()
        scales[slots] = self.scales_of(slots)
        self._coded = self._coded._replace(scales=scales)

    def scales_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the scales of nonzero slots, computed as in :func:`xswe.search.kernels.make_codes`."""
        squares = np.square(self._coded.codes[slots].astype(np.int32)).sum(axis=1).astype(np.float32)
        return np.float32(1.0) / np.sqrt(squares)

    def _array(self, name: str) -> np.ndarray:
        """Return an array after verifying all of its checksums."""
        if name in self._blocks:
            self._blocks[name].check()
        return self._arrays[name]

    def _dead(self, state: State) -> np.ndarray:
        """Return the slots that no longer belong to a sentence."""
        if self.names is None:
            return state.removed
        gone = np.zeros(self.facts["rows"], bool)
        gone[state.removed] = True
        return np.union1d(np.flatnonzero(gone[self.names]), state.replaced)

    def _live_scales(self, path: Path, state: State) -> np.ndarray:
        """Return the scales, NaN for dead slots, copying only pages that hold such slots."""
        slots = len(self._array("scales"))
        if not slots:
            return np.zeros(0, np.float32)
        scales = np.memmap(path, np.float32, "c", HEADER, (slots,))
        if state.sums is not None:
            scales[self.dead] = np.nan
        scales.flags.writeable = False
        return scales

    def rows(self) -> np.ndarray:
        """Return the numbers of all sentences, int64, ascending."""
        present = np.ones(self.slots, bool)
        present[self.dead] = False
        slots = np.flatnonzero(present)
        return slots if self.names is None else np.sort(self.names[slots])

    def slots_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the slots of sentences, int64 (n,), -1 if a sentence does not exist."""
        if self.names is None:
            found = np.where((rows >= 0) & (rows < self.slots), rows, -1)
        else:
            with self._lock:
                if self._order is None:
                    self._order = np.argsort(self.names, kind="stable")
            # The last of a row's slots holds the current sentence.
            at = np.searchsorted(self.names, rows, "right", sorter=self._order) - 1
            found = np.where(at >= 0, self._order[at], -1) if self.slots else np.full(len(rows), -1)
            found = np.where((found >= 0) & (self.names[found] == rows), found, -1) if self.slots else found
        return np.where(np.isin(found, self.dead), -1, found)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of sentences, float32 (n, d); IndexError: a sentence does not exist."""
        slots = self.slots_of(rows)
        if (missing := np.flatnonzero(slots < 0)).size:
            raise IndexError(f"row {rows[missing[0]]}: there is no such sentence, or it was removed")
        return self._coded.vectors.take(slots)

    def selected(self, where: Where | None, rows: Iterable[int] | None) -> np.ndarray | None:
        """Return the slots of the live sentences that a search covers, int32, ascending; None for all."""
        chosen = None if where is None else self._meeting(where)
        if rows is None:
            return chosen
        given = rows if isinstance(rows, np.ndarray) else np.array(list(rows), np.int64)
        right = given.ndim == 1 and given.dtype.kind in "iu"
        if not right or (len(given) and not 0 <= given.min() <= given.max() < self.facts["rows"]):
            raise ConfigError(f"rows: give numbers of sentences, from 0 to {self.facts['rows'] - 1}")
        slots = self.slots_of(np.unique(given).astype(np.int64))
        slots = np.sort(slots[slots >= 0]).astype(np.int32)
        return slots if chosen is None else np.intersect1d(slots, chosen, assume_unique=True)

    def _meeting(self, where: Where) -> np.ndarray:
        """Return the slots that meet conditions, cached for recent conditions."""
        key = repr(sorted((name, type(one).__name__, repr(one)) for name, one in where.items()))
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        mask = self._columns.chosen(where, self._array)
        mask[self.dead] = False
        found = np.flatnonzero(mask).astype(np.int32)
        with self._lock:
            self._filters[key] = found
            while len(self._filters) > _KEPT_FILTERS:
                self._filters.popitem(last=False)
        return found

    def rescored(self, wanted: int | None, k: int, slots: np.ndarray | None) -> int:
        """Return how many candidates per query are scored in full; 0 for all sentences searched."""
        size = self.live if slots is None else len(slots)
        chosen = max(k, max(LEAST_RESCORED, round(0.5 * size**0.5)) if wanted is None else wanted)
        limit = chosen if wanted is not None or slots is None else _SCORED_FACTOR * chosen
        return 0 if self._signs is None or limit >= size else chosen

    def nearest(
        self, queries: np.ndarray, k: int, rescored: int, slots: np.ndarray | None, threads: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the scores and rows of the sentences nearest to each query, see :func:`xswe.search.kernels.nearest`.

        ``rescored`` candidates are chosen by sign bits; 0 scores all ``slots``, which may be None for every slot.
        """
        codes = self._blocks.get("codes")
        if not rescored or self._signs is None:
            if codes is not None:
                codes.check_rows(slots, self._dim, threads)
            yield from nearest(queries, k, self._coded, slots, threads=threads)
            return
        for name in SIGNS:
            if name in self._blocks:
                self._blocks[name].check(threads=threads)
        for query, own in zip(queries, candidates(queries, rescored, self._signs, slots, threads), strict=True):
            if codes is not None:
                codes.check_rows(own, self._dim, threads)
            yield from nearest(query[None], k, self._coded, own, threads=threads)

    def array_blocks(self, slots: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
        """Yield blocks of some slots of all arrays but sign bits and rows, after verifying their checksums."""
        names = [name for name in self._arrays if name not in (*SIGNS, "rows")]
        for start in range(0, len(slots), _READ):
            own = slots[start : start + _READ]
            for name in names:
                if name in self._blocks:
                    self._blocks[name].check_rows(own, self._arrays[name].strides[0])
            yield {name: np.ascontiguousarray(self._arrays[name][own]) for name in names}
            release(*(self._arrays[name] for name in names))


def hidden_slots(now: Snapshot, sentences: Sentences) -> np.ndarray:
    """Return the slots of sentences in format 1 that no search finds, because a removal was killed half way."""
    slots = now.hidden
    present = sentences.take(slots.tolist()) if len(slots) != now.facts["removed"] else {}
    return slots[[slot in present for slot in slots.tolist()]]


def open_snapshot(folder: Path, dim: int, sentences: Sentences, before: Snapshot | None = None) -> Snapshot:
    """Map the arrays of an index into memory, as its database records them; ModelError: they are damaged."""
    while True:
        state = sentences.state()
        try:
            opened = Snapshot(folder, dim, state, before)
            if state.sums is None:
                opened.reveal(hidden_slots(opened, sentences))
            if before is not None:
                opened.check_added(before)
            return opened
        except (OSError, ValueError) as error:
            problem = ModelError(f"{folder}: a damaged index ({brief(error)}); {REBUILD}")
        except ModelError as error:
            problem = error
        if sentences.state().facts == state.facts:  # otherwise another process has changed the index
            raise problem


class Question(NamedTuple):
    """The query of a thread."""

    queries: np.ndarray  # float32 (q, d)
    k: int
    rescored: int  # see :meth:`Snapshot.nearest`
    slots: np.ndarray | None
    threads: int
    snapshot: Snapshot  # the snapshot to search


def answers(questions: list[Question]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Answer concurrent questions, in one pass over the sentences if they all search the same ones."""
    one = questions[0]
    same = [(each.snapshot is one.snapshot, each.slots is one.slots, each.rescored == one.rescored) for each in questions]
    if not all(map(all, same)):
        return [list(each.snapshot.nearest(*each[:-1])) for each in questions]
    queries = np.concatenate([each.queries for each in questions])
    threads, k = max(each.threads for each in questions), max(each.k for each in questions)
    found = one.snapshot.nearest(queries, k, one.rescored, one.slots, threads)
    return [[(scores[: each.k], rows[: each.k]) for scores, rows in islice(found, len(each.queries))] for each in questions]
