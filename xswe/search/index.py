"""An index of sentences: built once, asked many times in milliseconds, and changed while it is asked.

An index is a folder, of files that other tools read as well: ``vectors.npy`` (of ``storage=int8`` ``codes.npy`` alone),
``codes.npy`` and ``scales.npy`` (:mod:`xswe.search.kernels`), with ``method=binary`` ``first_signs.npy`` and
``second_signs.npy`` (:mod:`xswe.search.signs`), ``sentences.sqlite`` with texts and metadata, and the model.
The database decides what belongs to it (:mod:`xswe.search.sentences`): arrays only grow, what a killed process left behind
their end is cut off by the next change, and what was removed or replaced is left out when the index is opened
(:mod:`xswe.search.snapshot`).
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypedDict, Unpack, overload

import numpy as np

from xswe.errors import ConfigError, ModelError, XsweError, brief
from xswe.io.arguments import check_finite, check_model, check_reranker, is_texts, no_text, several, texts_of
from xswe.io.checksums import Blocks, FileSums, SummedArray, file_sums
from xswe.io.files import (
    file_stamp,
    fingerprint,
    read_json,
    remove_folder,
    remove_leftovers,
    scratch,
    taken_over,
    whole_folder,
    write_json,
)
from xswe.io.lines import check_lines, read_blocks, read_lines
from xswe.io.parallel import Together, available_threads, in_order
from xswe.io.ragged import HEADER, GrowingArray, Texts, release
from xswe.io.settings import check_choice, for_all, meant
from xswe.io.sources import check_here
from xswe.model.encode_file import cut_once
from xswe.model.ensemble import AnyModel, load_any
from xswe.progress import bar
from xswe.search.columns import Columns, ColumnType, Where
from xswe.search.compaction import PROGRESS, Compaction
from xswe.search.layout import file_of, map_array, shapes_of
from xswe.search.numbers import BLOCK, Numbers, NumbersAhead, numbers_ahead, numbers_of
from xswe.search.sentences import FORMAT_VERSION, Sentences, State, Writing
from xswe.search.signs import ROWS, SIGNS, centre_of, make_signs
from xswe.search.snapshot import Question, Snapshot, answers
from xswe.search.types import Encoder, Hit, Hits, Storage, check_storage, rerank_hits
from xswe.search.verification import REBUILD, check_files, check_there, sums_of_files, verify_index
from xswe.text.sentences import as_lines, is_document
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import discard, work_folder
from xswe.work.kept import keep
from xswe.work.once import is_made, written_once
from xswe.work.parts import BEGINNING, Place

logger = logging.getLogger(__name__)
Given = str | Path | Iterable[str]
IndexMethod = Literal["exact", "binary"]
_SIGNED = for_all(IndexMethod, {"exact": False, "binary": True})
_Block = tuple[Texts, list[Any] | None, Numbers]  # with the metadata of each text
_PIECE = 1 << 17  # sentences of a new index that are added at a time: what a kill costs
_FEWEST = 1 << 14  # sentences that are worth sign bits, and from which their centre is taken
_PLACES = "places.json"  # of an index that is being built: after which block of the text it had so many sentences
_DOCUMENTS = "documents.json"  # of an index of format 1: which file it is of, as that was then


class Building(TypedDict, total=False):
    """How an index is built.

    Attributes:
        method: ``exact``, which is the default; or ``binary``, which scores only the sentences that are nearest by their
            sign bits.
        storage: of the vectors: ``float32``, which is the default, ``float16``, or ``int8``, a quarter of the place.
        threads: how many encode; None for all processors.
        execution: who encodes: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes. Others need a
            file of texts, and a folder that all machines share.
    """

    method: IndexMethod
    storage: Storage
    threads: int | None
    execution: ExecutionConfig


class Asking(TypedDict, total=False):
    """How an index is asked.

    Attributes:
        rescored: how many sentences, nearest by their sign bits, are scored in full, where ``method`` is ``binary``; with
            more of them more of the nearest are found, and with as many as there are sentences all. None for 0.5 times
            the root of their number.
        threads: how many share the sentences; None for all processors.
        rerank: anything with ``encode(texts)`` to unit vectors, a slower and better encoder, that scores the nearest
            sentences anew: both scores order the hits.
        candidates: how many it scores a query, at least ``k``; 50 unless given.
    """

    rescored: int | None
    threads: int | None
    rerank: Encoder | None
    candidates: int


class Index:
    """Sentences that can be searched; see :func:`index` and :func:`load_index`.

    What a change does is in the folder when it returns. Other processes may ask and change the same index; what they have
    changed is found after :meth:`refresh`. Iterating yields all sentences by rising number, as hits with a score of 1.

    Attributes:
        folder: where it is.
        model: what encodes sentences and queries.
        method: ``exact`` or ``binary``.
        storage: how vectors are kept: ``float32``, ``float16`` or ``int8``.
    """

    def __init__(self, folder: Path, model: AnyModel) -> None:
        self.folder, self.model = folder, model
        self._sentences = Sentences(folder / "sentences.sqlite")
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._passes = Together(answers)
        self._now = self._opened(None)
        facts = self._now.facts
        self.method: IndexMethod = "binary" if facts["method"] == "clusters" else facts["method"]  # as it was until v0.2
        self.storage: Storage = facts["storage"]

    def _opened(self, before: Snapshot | None) -> Snapshot:
        """Map the numbers into memory, as the database says they are."""
        while True:
            state = self._sentences.state()
            try:
                opened = Snapshot(self.folder, self.dim, state, before)
                if state.sums is None:
                    opened.reveal(self._hidden(opened))
                if before is not None:
                    opened.check_added(before)
                return opened
            except (OSError, ValueError) as error:
                problem = ModelError(f"{self.folder}: a damaged index ({brief(error)}); {REBUILD}")
            except ModelError as error:
                problem = error
            if self._sentences.state().facts == state.facts:  # else another process has changed the index meanwhile
                raise problem

    def _hidden(self, opened: Snapshot) -> np.ndarray:
        """Return the sentences that no search of an index of format 1 finds: a killed removal had only begun there."""
        slots = opened.hidden
        there = self._sentences.take(slots.tolist()) if len(slots) != opened.facts["removed"] else {}
        return slots[[slot in there for slot in slots.tolist()]]

    def refresh(self) -> bool:
        """Find from now on what other processes have changed since; return True if there was something."""
        state, now = self._sentences.state(), self._now
        if (state.root, state.facts) == (now.root, now.facts):
            return False
        self._now = self._opened(now)
        return True

    def close(self) -> None:
        """Close the database's files; the index can still be asked, and opens them again."""
        self._sentences.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[str], Index], tuple[str]]:
        """Be opened anew, from the same folder, where this is unpickled."""
        if self._temporary is not None:
            raise TypeError(
                "an index without a folder is gone with its process; save it, and pickle xswe.load_index of that"
            )
        return load_index, (str(self.folder.absolute()),)

    def __len__(self) -> int:
        return self._now.live

    def __repr__(self) -> str:
        return f"Index({len(self):,} sentences, {self.dim} dimensions, {self.storage}, {self.method})"

    def __getitem__(self, row: int) -> Hit:
        """Return the sentence of a number."""
        if (found := self._sentences.take([row]).get(row)) is None:
            raise IndexError(f"row {row}: there is no such sentence, or it was removed")
        return Hit(1.0, found[0], row, found[1])

    def __iter__(self) -> Iterator[Hit]:
        for row, text, metadata in self._sentences:
            yield Hit(1.0, text, row, metadata)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.model.dim

    @property
    def columns(self) -> dict[str, ColumnType]:
        """The types of the columns of metadata that ``where=`` knows."""
        return Columns.of(self._now.facts.get("columns")).types

    @property
    def rows(self) -> np.ndarray:
        """The numbers of all sentences, int64, rising: the order in which the index is iterated."""
        return self._now.rows()

    def vectors(self, rows: Iterable[int] | None = None) -> np.ndarray:
        """Return the vectors of sentences, float32 (n, d); None for all, in the order of :attr:`rows`.

        Raises:
            IndexError: there is no such sentence.
        """
        now = self._now
        return now.vectors(now.rows() if rows is None else np.array(list(rows), np.int64))

    @overload
    def search(  # type: ignore[overload-overlap]
        self,
        queries: str,
        k: int = 10,
        *,
        where: Where | None = None,
        rows: Iterable[int] | None = None,
        **asked: Unpack[Asking],
    ) -> Hits: ...
    @overload  # one str is also a sequence of them
    def search(
        self,
        queries: Sequence[str] | np.ndarray,
        k: int = 10,
        *,
        where: Where | None = None,
        rows: Iterable[int] | None = None,
        **asked: Unpack[Asking],
    ) -> list[Hits]: ...
    def search(
        self,
        queries: str | Sequence[str] | np.ndarray,
        k: int = 10,
        *,
        where: Where | None = None,
        rows: Iterable[int] | None = None,
        **asked: Unpack[Asking],
    ) -> Hits | list[Hits]:
        """Find the sentences nearest to each query, in any language of the model.

        Args:
            queries: one text; several texts; or float32 (n, d) vectors of norm 1.
            k: hits a query.
            where: which sentences count, by the columns of their metadata, all conditions together: ``{"lang": "en"}`` a
                value, ``{"lang": ["en", "de"]}`` one of several, ``{"year": (1990, None)}`` a range with its ends, None for
                none; a value of None is metadata that is missing.
            rows: the numbers of the sentences that count; those of sentences that were removed are left out.
            asked: see :class:`Asking`.

        Returns:
            The hits of the text, or a list of those of each; of equal cosines the lower row first. What holds nothing that
            the model knows finds nothing.

        Raises:
            ConfigError: ``k`` or ``rescored`` is below 1, the vectors are of another width, or a condition is of no column.
            ModelError: what is read is not what was written.

        Example:
            >>> import xswe
            >>> texts = ["The train is late.", "Eine Katze schläft auf dem Dach.", "我们买面包。"]
            >>> xswe.index(xswe.load("mini"), texts).search("猫が屋根で寝ている。", k=1)[0].text
            'Eine Katze schläft auf dem Dach.'
        """
        _check_names("search", asked, Asking)
        rescored, rerank, few = asked.get("rescored"), asked.get("rerank"), asked.get("candidates", 50)
        if min(k, few) < 1 or (rescored is not None and rescored < 1):
            raise ConfigError(f"k={k}, rescored={rescored}, candidates={few}: give at least 1")
        if isinstance(queries, str):
            return self.search([queries], k, where=where, rows=rows, **asked)[0]
        if not isinstance(queries, np.ndarray) or is_texts(queries):
            queries = texts_of(queries, "queries")
        check_reranker(rerank)
        if rerank is not None:
            if isinstance(queries, np.ndarray):
                raise ConfigError("rerank= needs the texts of the queries, not their vectors")
            first = asked.copy()
            first["rerank"] = None
            return rerank_hits(self.search(queries, max(k, few), where=where, rows=rows, **first), rerank, k)
        names: Sequence[str | None] = [None] * len(queries) if isinstance(queries, np.ndarray) else list(queries)
        vectors = queries if isinstance(queries, np.ndarray) else self.model.encode(queries)
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise ConfigError(f"queries are {vectors.shape}: the index holds vectors of {self.dim} dimensions")
        check_finite(vectors, "queries")
        rows = rows if rows is None or isinstance(rows, np.ndarray) else np.array(list(rows), np.int64)
        threads = asked.get("threads") or available_threads()
        while True:
            now = self._now
            try:
                slots = now.selected(where, rows)
                own = now.rescored(rescored, k, slots)
                pairs = self._passes(Question(np.ascontiguousarray(vectors, np.float32), k, own, slots, threads, now))
                break
            except ModelError:
                if not self.refresh():  # else the arrays were written anew, and the old ones are gone
                    raise
        return self._hits(names, pairs)

    def _hits(self, names: Sequence[str | None], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Hits]:
        """Return the hits of each query, given their scores and rows; what another process has removed is none."""
        texts = self._sentences.take(list({row: None for _, rows in pairs for row in rows.tolist()}))
        lists = [zip(scores.tolist(), rows.tolist(), strict=True) for scores, rows in pairs]
        return [
            Hits(name, tuple(Hit(score, texts[row][0], row, texts[row][1]) for score, row in hits if row in texts))
            for name, hits in zip(names, lists, strict=True)
        ]

    def add(self, texts: Given, metadata: Iterable[Any] | None = None, *, threads: int | None = None) -> range:
        """Add sentences; whoever searches meanwhile, here or in other processes, waits for nothing.

        Args:
            texts: a list or any other iterable of texts, or the name of a text file, plain or compressed.
            metadata: for each text what to keep with it, as JSON values.
            threads: how many encode; None for all processors.

        Returns:
            Their numbers, which stay theirs for good.

        Raises:
            ConfigError: there is not one value of metadata a text, or one does not fit a column.
            InputError: the file is missing or damaged.
            TypeError: one of the texts is no text; the message says which.
        """
        with bar("index", unit="sentence") as progress:
            added = self._add(_with_metadata(self._encoded(texts, threads), metadata), progress.update)
        self._now = self._opened(self._now)
        return added

    def _fill(
        self,
        blocks: Iterable[tuple[Texts, Numbers]],
        metadata: Iterable[Any] | None,
        before: Callable[[int], None] = lambda _: None,
        after: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Add the first sentences, or those that a killed run had not come to, when nobody else knows of the index.

        They are added in pieces of one size, so that a kill costs no more than one of them, and the bytes are the same
        however often it happened. ``before`` and ``after`` a piece is there it is told how many sentences are then.
        """
        there = len(self)
        rows = _with_metadata(blocks, metadata, there)
        with bar("index", unit="sentence", initial=there) as progress:
            for first in rows if there else chain([None], rows):
                after(self._add(_piece(first, rows), progress.update, before, log=False).stop)
        self._now = self._opened(self._now)

    def _encoded(self, texts: Given, threads: int | None) -> Iterator[tuple[Texts, Numbers]]:
        """Encode texts block by block."""

        def encoded(block: Texts) -> tuple[Texts, Numbers]:
            return block, numbers_of(self.model, block, self.storage)

        blocks = read_blocks(texts, BLOCK) if isinstance(texts, (str, Path)) else _packed(texts)
        return in_order(encoded, blocks, threads or available_threads())

    def _add(
        self,
        blocks: Iterable[_Block],
        progressed: Callable[[int], object],
        before: Callable[[int], None] = lambda _: None,
        log: bool = True,
    ) -> range:
        """Add blocks of texts, and of what the index keeps of each; see :meth:`_fill`."""
        with self._writing(log) as writing:
            facts = dict(writing.state.facts)
            first = facts["rows"]

            def added() -> Iterator[tuple[dict[str, np.ndarray], float]]:
                columns = Columns.of(facts["columns"])
                for block, kept, numbers in blocks:
                    arrays = columns.arrays(kept, len(block), facts["rows"] - first)
                    if facts["numbered"]:
                        arrays["rows"] = np.arange(facts["rows"], facts["rows"] + len(block))
                    writing.add(facts["rows"], block, kept)
                    facts["rows"] += len(block)
                    yield numbers.arrays | arrays, numbers.error

            self._append(writing, facts, added(), progressed)
            before(facts["rows"])
        return range(first, facts["rows"])

    def _append(
        self,
        writing: Writing,
        facts: dict[str, Any],
        blocks: Iterable[tuple[dict[str, np.ndarray], float]],
        progressed: Callable[[int], object],
    ) -> None:
        """Append blocks of numbers to the arrays, and note what there is then."""
        sums = writing.state.sums or {}
        with ExitStack() as stack:
            columns: dict[str, SummedArray] = {}
            for name, shape in shapes_of(facts, self.dim).items():
                if name not in SIGNS:
                    path = self.folder / file_of(facts, name)
                    known = sums.get(file_of(facts, name))
                    columns[name] = SummedArray(path, shape.kind, shape.rows, shape.row, known, advice=REBUILD)
                    # After an error: what waits to be written belongs to no later addition.
                    stack.callback(columns[name].abandon)
            for arrays, error in blocks:
                for name, column in columns.items():
                    column.append(arrays[name])
                facts["error"] = max(facts["error"], error)
                progressed(len(arrays["codes"]))
            for name, column in columns.items():
                column.close()
                writing.note_sums(file_of(facts, name), column.known, since=column.kept)
            facts["slots"] = columns["codes"].size
            if _SIGNED[self.method] and facts["slots"] >= max(_FEWEST, ROWS):
                self._sign(writing, facts, {name: column.known for name, column in columns.items()})
        writing.note(facts)

    @contextmanager
    def _writing(self, log: bool = True) -> Iterator[Writing]:
        """Open a change of the database, and remove what a killed process left beside it."""
        with self._sentences.writing(log) as writing:
            facts = writing.state.facts
            if "documents" in facts:
                (self.folder / _DOCUMENTS).unlink(missing_ok=True)
            if facts["format_version"] < FORMAT_VERSION:
                self._upgrade(writing)
                facts = writing.state.facts
            remove_leftovers(self.folder)
            _remove(self._old(writing.state))
            for name, (rows, kind, row) in shapes_of(facts, self.dim).items():
                path, size = self.folder / file_of(facts, name), rows * math.prod(row) * np.dtype(kind).itemsize
                if size and path.stat().st_size > HEADER + size:
                    GrowingArray(path, kind, rows, row).close()
            yield writing
        if self._old(self._sentences.state()):
            with self._sentences.writing(log) as writing:
                _remove(self._old(writing.state))

    def _old(self, state: State) -> list[Path]:
        """Return arrays of which the database knows nothing: of before a compaction, or of one that was killed.

        Others may still have them mapped into memory, which keeps them there; where the system removes no file that is open
        a later change does it.
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
        """Bring an index to this version: find what no search of format 1 found, and note all checksums."""
        logger.info("%s: made by an earlier version, and brought to this one", self.folder)
        facts, sums = writing.state.facts, {}
        noted: dict[str, Any] = {**_NEW, "method": self.method, "slots": facts["rows"]}
        if writing.state.sums is not None:
            writing.forget_sums(name for name in writing.state.sums if name.startswith("clusters-"))
            writing.upgrade(noted)
            return
        if rows := facts["rows"]:
            scales = np.memmap(self.folder / "scales.npy", np.float32, "r+", HEADER, (rows,))
            opened = Snapshot(self.folder, self.dim, writing.state)
            hidden = self._hidden(opened)
            scales[hidden] = opened.scales_of(hidden)
            scales.flush()
            for name, (_, kind, row) in shapes_of(facts, self.dim).items():
                size = math.prod(row) * np.dtype(kind).itemsize
                sums[f"{name}.npy"] = file_sums(self.folder / f"{name}.npy", size, HEADER, rows * size)
        sums |= sums_of_files(self.folder, self.folder / "model")
        writing.upgrade({**noted, "documents": json.dumps(self._documents())}, sums)

    def _sign(self, writing: Writing, facts: dict[str, Any], sums: Mapping[str, FileSums]) -> None:
        """Write the sign bits of the blocks that have none yet, and take their centre from the first of all slots."""
        first, last = facts.get("blocks", 0), facts["slots"] // ROWS
        shapes, arrays = shapes_of(facts, self.dim), {}
        for name in ("codes", "scales"):
            path = self.folder / file_of(facts, name)
            arrays[name] = map_array(path, shapes[name])
            row = self.dim if name == "codes" else 4
            Blocks(path, sums[name], HEADER, advice=REBUILD).check_rows(np.arange(first * ROWS, last * ROWS), row)
        codes, scales = arrays["codes"], arrays["scales"]
        if not first:
            facts["centre"] = centre_of(codes[:_FEWEST], scales[:_FEWEST]).tobytes()
        centre = np.frombuffer(facts["centre"], np.float32)
        facts["blocks"] = last
        columns, shapes = {}, shapes_of(facts, self.dim)
        with ExitStack() as stack:
            for name in SIGNS:
                known = (writing.state.sums or {}).get(file_of(facts, name)) if first else None
                there = first * shapes[name].rows // last
                path = self.folder / file_of(facts, name)
                columns[name] = SummedArray(path, np.uint8, there, shapes[name].row, known, advice=REBUILD)
                stack.callback(columns[name].close)
            for start in range(first * ROWS, last * ROWS, BLOCK):
                some = slice(start, min(start + BLOCK, last * ROWS))
                for column, signs in zip(columns.values(), make_signs(codes[some], scales[some], centre), strict=True):
                    column.append(signs)
                release(codes)
        for name, column in columns.items():
            writing.note_sums(file_of(facts, name), column.known, since=column.kept)

    def update(
        self, rows: Iterable[int], texts: Iterable[str] | None = None, metadata: Iterable[Any] | None = None
    ) -> None:
        """Give sentences another text, other metadata, or both; their numbers stay theirs.

        Args:
            rows: their numbers, each once.
            texts: for each its new text; None to keep those that are there.
            metadata: for each what to keep with it; None to keep what is there.

        Raises:
            ConfigError: there is no such sentence, a number is given twice, or there is not one text or value each; nothing
                is changed then.
            TypeError: one of the texts is no text; the message says which.
        """
        rows = [int(row) for row in rows]
        given = {"texts": None if texts is None else list(texts), "metadata": None if metadata is None else list(metadata)}
        for name, values in given.items():
            if values is not None and len(values) != len(rows):
                raise ConfigError(f"{name}: {len(values)} for {len(rows)} sentences; give one each")
        if len(set(rows)) < len(rows):
            raise ConfigError("rows: a number is given twice")
        if given["texts"] is not None and (problem := no_text(given["texts"], 0)):
            raise problem
        with self._writing() as writing:
            before = _there(writing, rows)
            own = given["texts"] if given["texts"] is not None else [before[row][0] for row in rows]
            kept = given["metadata"] if given["metadata"] is not None else [before[row][1] for row in rows]
            facts = dict(writing.state.facts)
            slots = Snapshot(self.folder, self.dim, writing.state).slots_of(np.array(rows, np.int64))
            if rows:
                self._number(writing, facts)
                writing.update(rows, own, kept, slots)
                with bar("index", len(rows), "sentence") as progress:
                    self._append(writing, facts, self._updated(rows, own, kept, facts), progress.update)
        self._now = self._opened(self._now)

    def _updated(
        self, rows: list[int], texts: list[str], metadata: list[Any], facts: dict[str, Any]
    ) -> Iterator[tuple[dict[str, np.ndarray], float]]:
        """Yield the numbers of sentences that were updated."""
        columns, first = Columns.of(facts["columns"]), 0
        for block, numbers in self._encoded(texts, None):
            last = first + len(block)
            arrays = columns.arrays(metadata[first:last], len(block), first)
            yield numbers.arrays | arrays | {"rows": np.array(rows[first:last], np.int64)}, numbers.error
            first = last

    def _number(self, writing: Writing, facts: dict[str, Any]) -> None:
        """Note which row each slot is of, from when on that is not the one of its number."""
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

    def remove(self, rows: Iterable[int]) -> None:
        """Remove sentences by their numbers; those of others stay as they are.

        Raises:
            ConfigError: there is no such sentence; nothing is removed then.
        """
        rows = sorted({int(row) for row in rows})
        with self._writing() as writing:
            _there(writing, rows)
            writing.remove(rows)
            writing.note({"removed": writing.state.facts["removed"] + len(rows)})
        self._now = self._opened(self._now)

    def compact(self) -> int:
        """Give the place of what was removed or replaced back; numbers stay, and searches go on meanwhile.

        The arrays are written anew, below ``arrays-N``. Where that is killed, the next call goes on from there, unless the
        index was changed in between. Other processes go on with what they have opened until they :meth:`refresh`.

        Returns:
            How many slots of the arrays were given back.
        """
        with self._writing() as writing:
            facts = dict(writing.state.facts)
            now = Snapshot(self.folder, self.dim, writing.state)
            if not len(now.dead):
                return 0
            with bar("compact", now.live, "sentence") as progress:
                compaction = Compaction(self.folder, now, self.dim)
                columns = compaction.run(progress.update)
            old = [file_of(facts, name) for name in shapes_of(facts, self.dim)]
            writing.forget_sums(old)
            writing.forget_replaced()
            facts |= compaction.facts
            for name, column in columns.items():
                writing.note_sums(file_of(facts, name), column)
            if _SIGNED[self.method] and facts["slots"] >= max(_FEWEST, ROWS):
                self._sign(writing, facts, columns)
            writing.note(facts)
        self._sentences.shrink()
        self._now = self._opened(self._now)
        return len(now.dead)

    def verify(self) -> None:
        """Read the whole index, and compare it with its checksums.

        A search compares what it reads, each block of a file when it is first read; this compares what no search has read
        yet as well. An index of v0.2 or before has checksums from the first change on.

        Raises:
            ModelError: something is not what was written; a line for each file says where, and what can be done.
        """
        verify_index(self.folder)

    def _documents(self) -> Any:
        """Return which file the index is of, as that was then: its name, size and time; None if it is of no file."""
        facts = self._sentences.state().facts
        if "documents" in facts:
            return json.loads(facts["documents"])
        try:
            return read_json(self.folder / _DOCUMENTS)
        except (OSError, ValueError):
            return None

    def save(self, folder: str | Path) -> None:
        """Copy the index to another folder, whole or not at all.

        Raises:
            ConfigError: there is something else of that name.
        """
        folder = Path(folder)
        _check_free(folder)
        with whole_folder(folder) as temporary:
            copy = Sentences(temporary / "sentences.sqlite")
            while True:
                self._sentences.copy(copy.path)  # first: of what is added meanwhile it knows nothing
                facts = copy.state().facts
                copy.close()
                try:
                    self._copy_files(temporary, facts)
                    return
                except OSError:
                    if self._sentences.state().facts == facts:  # else another process has changed it meanwhile
                        raise

    def _copy_files(self, folder: Path, facts: dict[str, Any]) -> None:
        """Copy what the database with these facts tells of."""
        for part in ("model", *([f"clusters-{facts['clustered']}"] if facts.get("clustered") else ())):
            shutil.copytree(self.folder / part, folder / part, dirs_exist_ok=True)
        for name, (rows, kind, row) in shapes_of(facts, self.dim).items():
            path = folder / file_of(facts, name)
            path.parent.mkdir(exist_ok=True)
            shutil.copy2(self.folder / file_of(facts, name), path)
            GrowingArray(path, kind, rows, row).close()
        if "documents" not in facts and (self.folder / _DOCUMENTS).is_file():
            shutil.copy2(self.folder / _DOCUMENTS, folder / _DOCUMENTS)


def index(
    model: AnyModel,
    input: Given,
    *,
    metadata: Iterable[Any] | None = None,
    columns: Mapping[str, ColumnType] | None = None,
    folder: str | Path | None = None,
    **building: Unpack[Building],
) -> Index:
    """Build an index of sentences, which are read and encoded as a stream: memory does not grow with their number.

    Args:
        model: what encodes.
        input: a list or any other iterable of texts, or the name of a text file, plain or compressed.
        metadata: for each text what to keep with it, as JSON values.
        columns: the keys of metadata by which a search can choose (``where=``), and their types: ``int``, ``float``,
            ``str`` or ``bool``.
        folder: where it is kept; None for a folder that is removed with the index, unless it is saved.
        building: ``method``, ``storage``, ``threads`` and ``execution``, see :class:`Building`.

    Raises:
        ConfigError: there is something of the folder's name, or no such method or storage.
        InputError: the file is missing or damaged.
        Unfinished: with an array, the tasks that have other shards are not done yet.

    Example:
        >>> import xswe
        >>> found = xswe.index(xswe.load("mini"), ["Wir kaufen Brot.", "Der Zug hat Verspätung."])
        >>> print(found.search("The train is late.", k=1)[0].text)
        Der Zug hat Verspätung.
        >>> _ = found.add(["列車が遅れています。"], [{"file": "a.ja"}])
        >>> [(hit.row, hit.metadata) for hit in found.search("The train is late.", k=1)]
        [(2, {'file': 'a.ja'})]
    """
    check_model(model, "index(model, input)")
    texts = input if isinstance(input, (str, Path, Iterator)) else several(input, "input")
    _check_names("index", building, Building)
    method, storage = building.get("method", "exact"), building.get("storage", "float32")
    threads, execution = building.get("threads"), building.get("execution", LOCAL)
    check_choice("method", method, IndexMethod)
    check_storage(storage)
    execution.check_names(texts, folder)
    plan = _Plan(model, method, storage, Columns(columns))
    if folder is None:
        temporary = scratch("xswe-index-")
        made = plan.build(Path(temporary.name))
        made._temporary = temporary
        made._fill(made._encoded(texts, threads), metadata)
        return made
    place = Path(folder)
    check_here(place)
    if isinstance(texts, (str, Path)) and Path(texts).is_file():
        plan = plan._replace(stamp=file_stamp(str(texts)))
        return _index_file(plan, lambda _: str(texts), metadata, place, execution, threads)
    _check_free(place)
    with whole_folder(place) as unfinished:  # without a name for the index: Windows renames no folder of open files
        made = plan.build(unfinished)
        made._fill(made._encoded(texts, threads), metadata)
        del made
    return Index(place, plan.model)


# What the database of a new index says beside what it is built from.
_NEW: dict[str, Any] = {"slots": 0, "generation": 0, "numbered": 0, "blocks": 0, "centre": b"", "columns": "[]"}


class _Plan(NamedTuple):
    """What an index is built of, beside its sentences."""

    model: AnyModel
    method: IndexMethod
    storage: Storage
    columns: Columns
    stamp: Any = None  # of the file that it is of

    @property
    def identity(self) -> str:
        return fingerprint(self.model.identity, self.method, self.storage, self.stamp, self.columns.noted())

    def build(self, folder: Path) -> Index:
        """Build an index of nothing."""
        self.model.save(folder / "model")
        facts: dict[str, Any] = {"format_version": FORMAT_VERSION, "method": self.method, "storage": self.storage}
        facts |= {"identity": self.model.identity, "rows": 0, "removed": 0, "error": 0.0, **_NEW}
        facts |= {"columns": self.columns.noted(), "documents": json.dumps(self.stamp)}
        Sentences(folder / "sentences.sqlite").create(facts, sums_of_files(folder, folder / "model"))
        return Index(folder, self.model)


def _index_file(
    plan: _Plan,
    cut: Callable[[Path], str],
    metadata: Iterable[Any] | None,
    place: Path,
    execution: ExecutionConfig,
    threads: int | None,
) -> Index:
    """Build the index of a file's lines by whoever takes part: its vectors, and once the index of them.

    ``cut`` is given a folder for the work, and returns the name of the file.
    """
    with work_folder(str(place), execution) as work:
        done, vectors = work / "done", work / f"vectors-{plan.identity}"

        def build(encoded: NumbersAhead) -> None:
            """Put the numbers of all blocks and their texts together."""
            target = place.resolve() if place.is_symlink() else place
            left = taken_over(target, fingerprint(encoded.identity, plan.identity, metadata is None))
            try:
                with whole_folder(target, left) as unfinished:
                    _build_in(plan, unfinished, encoded, metadata)
            finally:
                if not (left / _PLACES).exists():
                    remove_folder(left)

        if not is_made(done, plan.identity, [place]):
            if not vectors.exists():  # with them what is there is one that was not noted as done yet
                _check_free(place)
            with numbers_ahead(plan.model, cut(work), vectors, plan.storage, execution, threads) as encoded:
                written_once(done, plan.identity, partial(build, encoded), [place], execution)
    return Index(place, plan.model)


def _build_in(plan: _Plan, folder: Path, encoded: NumbersAhead, metadata: Iterable[Any] | None) -> None:
    """Build an index in a folder, from where a killed run has left it."""
    note, (made, places) = folder / _PLACES, _left(plan, folder)
    place = places.get(len(made), BEGINNING)
    if metadata is not None:
        metadata = _metadata_after(made, iter(metadata))

    def blocks() -> Iterator[tuple[Texts, Numbers]]:
        nonlocal place
        for after, block in encoded.read(place):
            place = after
            yield block

    def before(rows: int) -> None:
        if rows >= _PIECE:  # what is less takes no time
            places[rows] = place
            write_json(note, [[rows, *place] for rows, place in list(places.items())[-2:]])

    made._fill(blocks(), metadata, before, lambda rows: keep(note, f"after {rows:,} sentences"))
    note.unlink(missing_ok=True)


def _left(plan: _Plan, folder: Path) -> tuple[Index, dict[int, Place]]:
    """Open the index that a killed run has left in a folder, if it is sound, and else begin one.

    Returns also after which block of the text it had so many sentences, or would have had.
    """
    places, note = dict[int, Place](), folder / _PLACES
    with suppress(OSError, ValueError, XsweError):
        places = {rows: (shard, part) for rows, shard, part in read_json(note)}
        verify_index(folder)
        made = Index(folder, plan.model)
        if len(made) in places:
            keep(note, f"after {len(made):,} sentences")
            logger.info("%s: going on after %d sentences", folder, len(made))
            return made, places
        made.close()
    if places:
        logger.warning("%s: damaged since it was written; building it anew", folder)
    shutil.rmtree(folder)
    folder.mkdir()
    return plan.build(folder), {}


def _metadata_after(index: Index, values: Iterator[Any]) -> Iterator[Any]:
    """Return the values of metadata that come after those of an index, which must be the same that it has."""
    for hit in index:
        if [json.dumps(value) for value in islice(values, 1)] != [json.dumps(hit.metadata)]:
            raise ConfigError(
                f"metadata: that of sentence {hit.row} is not what the interrupted run had; give the same, or remove "
                f"{index.folder} to start anew"
            )
    return values


def load_index(folder: str | Path) -> Index:
    """Open an index that was built in, or saved to, a folder; of what is large nothing is read but what is asked for.

    What a killed process left unfinished is undone first, and what is read is compared with its checksums.

    Raises:
        ModelError: the folder is no index, is damaged, or of a newer version; or a change is to be undone in a folder that
            cannot be written.
    """
    check_here(folder, "index")
    folder = Path(folder)
    check_there(folder)
    check_files(folder, Sentences(folder / "sentences.sqlite").state().sums or {}, "model")
    return Index(folder, load_any(folder / "model"))


def open_index(
    folder: str | Path | None,
    model: AnyModel | None = None,
    documents: str | Path | None = None,
    *,
    split: bool | None = None,
    language: str | None = None,
    **building: Unpack[Building],
) -> Index:
    """Open the index of a file that is kept in a folder, or build it where it is not there yet.

    Args:
        folder: where it is, or is kept for the next time; None for an index of this time only.
        model: what encodes; None for that of an index that is there.
        documents: text file, a sentence a line; ``-`` for standard input; None for those of an index that is there.
        split: cut the file into sentences; None if it is a document (Markdown, HTML, EPUB, DOCX, PDF).
        language: of the file, to cut it.
        building: how an index is built that is not there, see :class:`Building`.

    Raises:
        ConfigError: the index is of another model or file, or in a storage, or the file has changed; or there is nothing to
            build it from.
    """
    _check_names("open_index", building, Building)
    check_here(folder or "", "index")
    stamp = file_stamp(documents) if documents not in (None, "-") else None
    is_cut = bool(stamp) and (split or (split is None and is_document(str(documents))))
    if stamp and is_cut:
        stamp += ["sentences", language]
    execution = building.get("execution", LOCAL)
    execution.check_names(folder or None, documents)
    if folder and Path(folder).exists():
        found = load_index(folder)
        if model is not None and model.identity != found.model.identity:
            raise ConfigError(f"the index {folder} is of another model; leave model= out")
        if documents and found._documents() != stamp:
            raise ConfigError(
                f"input={documents}: the index {folder} is of another file, or the file has changed; "
                "leave input out, or remove the folder to build it again"
            )
        if documents:
            discard(Path(f"{folder}.work"), execution)  # which a killed run left
        return found
    if model is None or documents is None:
        raise ConfigError("give model= and input= to search in, or the index= of an earlier search")
    if not (folder and stamp):
        with as_lines(str(documents), split, language) as lines:
            texts = (text or "" for _, text in read_lines("-")) if lines == "-" else lines
            return index(model, texts, folder=folder, **building)
    method, storage = building.get("method", "exact"), building.get("storage", "float32")
    plan = _Plan(model, method, storage, Columns(), stamp)

    def cut(work: Path) -> str:
        """Return the file of lines."""
        if is_cut:
            return cut_once(str(documents), language, work)
        check_lines(str(documents))
        return str(documents)

    return _index_file(plan, cut, None, Path(folder), execution, building.get("threads"))


def _check_names(function: str, given: Mapping[str, Any], kind: type) -> None:
    """Raise TypeError for an argument that a function does not know, as Python does."""
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant(name, known)}")


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: exists; give another name, or load_index and add to it")


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and folders, as far as the system does."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _there(writing: Writing, rows: Sequence[int]) -> dict[int, tuple[str, Any]]:
    """Return the text and metadata of some sentences, or raise a ConfigError where one is not there."""
    found = writing.take(rows)
    if missing := sorted(set(rows) - set(found)):
        raise ConfigError(f"rows: there is no sentence {missing[0]}, or it was removed before")
    return found


def _with_metadata(
    blocks: Iterable[tuple[Texts, Numbers]], metadata: Iterable[Any] | None, row: int = 0
) -> Iterator[_Block]:
    values = None if metadata is None else iter(metadata)
    for block, numbers in blocks:
        kept = None if values is None else list(islice(values, len(block)))
        row += len(block)
        if kept is not None and len(kept) < len(block):
            raise ConfigError(f"metadata: only {row - len(block) + len(kept)} values; give one a text, None for none")
        yield block, kept, numbers
    if values is not None and next(values, values) is not values:
        raise ConfigError(f"metadata: more values than the {row} texts; give one each")


def _piece(first: _Block | None, rows: Iterator[_Block]) -> Iterator[_Block]:
    """Yield blocks, up to as many as are added at once."""
    size = 0
    for block in rows if first is None else chain([first], rows):
        yield block
        size += len(block[0])
        if size >= _PIECE:
            return


def _packed(texts: Iterable[str]) -> Iterator[Texts]:
    rows, first = iter(texts), 0
    while block := list(islice(rows, BLOCK)):
        try:
            yield Texts.of(block)
        except (TypeError, AttributeError) as error:
            raise (no_text(block, first) or error) from None
        first += len(block)
