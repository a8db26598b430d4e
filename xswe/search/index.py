"""An index of sentences: built once, asked many times in milliseconds, added to and removed from.

An index is a folder, of files that other tools read as well: ``vectors.npy`` (of ``storage=int8`` ``codes.npy`` alone),
``codes.npy`` and ``scales.npy`` (:mod:`xswe.search.kernels`), with ``method=binary`` ``signs.npy``
(:mod:`xswe.search.signs`), ``sentences.sqlite`` with texts and metadata, and the model.
The database decides what belongs to it (:mod:`xswe.search.sentences`): arrays only grow, what a killed process left behind
their end is cut off by the next change, and rows that were removed are left out when the index is opened.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from xswe.errors import ConfigError, ModelError, brief
from xswe.io.checksums import Blocks, FileSums, SummedArray, file_sums
from xswe.io.files import file_stamp, fingerprint, read_json, remove_leftovers, scratch, whole_folder
from xswe.io.lines import read_blocks, read_lines
from xswe.io.parallel import Together, available_threads, in_order
from xswe.io.ragged import HEADER, GrowingArray, Texts, release
from xswe.io.settings import check_choice, for_all
from xswe.io.sources import check_here
from xswe.model.encoding import no_text
from xswe.model.ensemble import AnyModel, load_any
from xswe.progress import bar
from xswe.search.index_shards import BLOCK, Numbers, columns_of, numbers_ahead, numbers_of, shapes_of
from xswe.search.kernels import Coded, nearest
from xswe.search.sentences import FORMAT_VERSION, Sentences, State, Writing
from xswe.search.signs import Signs, candidates, centre_of, make_signs, words_of
from xswe.search.types import CheckedVectors, Encoder, Hit, Hits, Storage, Vectors, check_storage, rerank_hits
from xswe.search.verification import REBUILD, check_array, check_files, check_there, sums_of_files, verify_index
from xswe.text.sentences import as_lines, is_document
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import is_made, once

logger = logging.getLogger(__name__)
Given = str | Path | Iterable[str]
IndexMethod = Literal["exact", "binary"]
_SIGNED = for_all(IndexMethod, {"exact": False, "binary": True})
_FEWEST = 1 << 14  # sentences that are worth sign bits, and from which their centre is taken
_LEAST_RESCORED = 256
_DOCUMENTS = "documents.json"  # of an index of format 1: which file it is of, as that was then


class Building(TypedDict, total=False):
    """How an index is built; see :func:`index`."""

    method: IndexMethod
    storage: Storage
    threads: int | None
    execution: ExecutionConfig


class Asking(TypedDict, total=False):
    """How an index is asked; see :meth:`Index.search`."""

    rescored: int | None
    threads: int | None
    rerank: Encoder | None
    candidates: int


class _Data(NamedTuple):
    """The numbers of an index at one moment."""

    coded: Coded
    codes: Blocks | None  # of the file of the codes; None for an index of format 1
    signs: Signs | None  # None where all sentences are looked at
    bits: Blocks | None  # of the file of the sign bits


class _Question(NamedTuple):
    """What a thread asks."""

    queries: np.ndarray  # float32 (q, d)
    k: int
    rescored: int  # candidates of a query; 0 to look at all sentences
    threads: int
    data: _Data  # where the nearest are looked for


def _answers(questions: list[_Question]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Answer questions that were asked at about the same time, in one pass over the sentences if these are the same."""
    data, rescored = questions[0].data, questions[0].rescored
    if any(one.data is not data or one.rescored != rescored for one in questions):  # the index was changed in between
        return [_answers([one])[0] for one in questions]
    queries = np.concatenate([one.queries for one in questions])
    threads, k = max(one.threads for one in questions), max(one.k for one in questions)
    found = iter(_nearest(queries, k, rescored, data, threads))
    return [[(scores[: one.k], rows[: one.k]) for scores, rows in islice(found, len(one.queries))] for one in questions]


def _nearest(queries: np.ndarray, k: int, rescored: int, data: _Data, threads: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the scores and rows of the sentences nearest to each query: of all, or of those chosen by their sign bits."""
    dim = queries.shape[1]
    if not rescored or data.signs is None:
        if data.codes is not None:
            data.codes.check_rows(None, dim, threads)
        return nearest(queries, k, data.coded, threads=threads)
    if data.bits is not None:
        data.bits.check(threads=threads)
    found = []
    for query, rows in zip(queries, candidates(queries, rescored, data.signs, threads=threads), strict=True):
        if data.codes is not None:
            data.codes.check_rows(rows, dim, threads)
        found += nearest(query[None], k, data.coded, rows, threads=threads)
    return found


class Index:
    """Sentences that can be searched; see :func:`index` and :func:`load_index`.

    What :meth:`add` and :meth:`remove` do is in the folder when they return.

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
        self._passes = Together(_answers)
        self._blocks: dict[str, Blocks] = {}  # of the files of its arrays; none of an index of format 1
        facts = self._sentences.state().facts
        self.method: IndexMethod = "binary" if facts["method"] == "clusters" else facts["method"]  # as it was until v0.2
        self.storage: Storage = facts["storage"]
        self._open()

    def _open(self) -> None:
        """Map the numbers into memory, as the database says they are."""
        while True:
            state = self._sentences.state()
            try:
                self._data = self._mapped(state)
                self._removed = state.facts["removed"]
                return
            except (OSError, ValueError) as error:
                problem = ModelError(f"{self.folder}: a damaged index ({brief(error)}); {REBUILD}")
            except ModelError as error:
                problem = error
            if self._sentences.state().facts == state.facts:  # else another process has changed the index meanwhile
                raise problem

    def _mapped(self, state: State) -> _Data:
        facts, arrays, blocks = state.facts, {}, {}
        for name, (rows, kind, row) in shapes_of(facts, self.dim).items():
            path = self.folder / f"{name}.npy"
            if rows:
                check_array(path, kind, (rows, *row), header=state.sums is not None)
            arrays[name] = _mapped(path, kind, (rows, *row))
            if rows and state.sums is not None:
                before = self._blocks.get(name)
                blocks[name] = Blocks(path, state.sums[path.name], HEADER, advice=REBUILD, before=before)
        scales = self._live_scales(arrays["codes"], state, blocks.get("scales"))
        name = "codes" if self.storage == "int8" else "vectors"
        vectors = CheckedVectors(arrays[name], blocks[name]) if blocks else Vectors(arrays[name])
        signs = None
        if "signs" in arrays:
            signs = Signs(arrays["signs"], np.frombuffer(facts["centre"], np.float32), scales)
        self._blocks = blocks
        coded = Coded(arrays["codes"], scales, vectors, facts["error"])
        return _Data(coded, blocks.get("codes"), signs, blocks.get("signs"))

    def _live_scales(self, codes: np.ndarray, state: State, blocks: Blocks | None) -> np.ndarray:
        """Return the scales, NaN for rows that were removed: a copy of the pages that have such rows."""
        if not len(codes):
            return np.zeros(0, np.float32)
        if blocks is not None:
            blocks.check()
        scales = np.memmap(self.folder / "scales.npy", np.float32, "c", HEADER, (len(codes),))
        if state.sums is None:
            rows = self._hidden(codes, scales, state.facts["removed"])
            scales[rows] = _scales_of(codes[rows])
        scales[state.removed] = np.nan
        scales.flags.writeable = False
        return scales

    def _hidden(self, codes: np.ndarray, scales: np.ndarray, removed: int) -> np.ndarray:
        """Return the sentences that no search of an index of format 1 finds: a killed removal had only begun there."""
        rows = np.flatnonzero(np.isnan(scales))
        rows = rows[codes[rows].any(axis=1)]  # a text without a known word has no scale either
        there = self._sentences.take(rows.tolist()) if len(rows) != removed else {}
        return rows[[row in there for row in rows.tolist()]]

    def __len__(self) -> int:
        return len(self._data.coded.codes) - self._removed

    def __repr__(self) -> str:
        return f"Index({len(self):,} sentences, {self.dim} dimensions, {self.storage}, {self.method})"

    def __getitem__(self, row: int) -> Hit:
        """Return the sentence of a number."""
        if (found := self._sentences.take([row]).get(row)) is None:
            raise IndexError(f"row {row}: there is no such sentence, or it was removed")
        return Hit(1.0, found[0], row, found[1])

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.model.dim

    @overload
    def search(self, queries: str, k: int = 10, **asked: Unpack[Asking]) -> Hits: ...  # type: ignore[overload-overlap]
    @overload  # one str is also a sequence of them
    def search(self, queries: Sequence[str] | np.ndarray, k: int = 10, **asked: Unpack[Asking]) -> list[Hits]: ...
    def search(
        self,
        queries: str | Sequence[str] | np.ndarray,
        k: int = 10,
        *,
        rescored: int | None = None,
        threads: int | None = None,
        rerank: Encoder | None = None,
        candidates: int = 50,
    ) -> Hits | list[Hits]:
        """Find the sentences nearest to each query, in any language of the model.

        Args:
            queries: one text; several texts; or float32 (n, d) vectors of norm 1.
            k: hits a query.
            rescored: how many sentences, nearest by their sign bits, are scored in full, where ``method`` is ``binary``;
                with more of them more of the nearest are found, and with as many as there are sentences all. None for half
                the root of their number.
            threads: how many share the sentences; None for all processors.
            rerank: anything with ``encode(texts)`` to unit vectors, a slower and better encoder, that judges the nearest
                sentences: both opinions order the hits.
            candidates: how many it judges a query, at least ``k``.

        Returns:
            The hits of the text, or a list of those of each; of equal cosines the lower row first. What holds nothing that
            the model knows finds nothing.

        Raises:
            ConfigError: ``k`` or ``rescored`` is below 1, or the vectors are of another width.
            ModelError: what is read is not what was written.

        Example:
            >>> import xswe
            >>> texts = ["The train is late.", "Eine Katze schläft auf dem Dach.", "我们买面包。"]
            >>> xswe.index(xswe.load("mini"), texts).search("猫が屋根で寝ている。", k=1)[0].text
            'Eine Katze schläft auf dem Dach.'
        """
        if min(k, candidates) < 1 or (rescored is not None and rescored < 1):
            raise ConfigError(f"k={k}, rescored={rescored}, candidates={candidates}: give at least 1")
        if isinstance(queries, str):
            return self.search([queries], k, rescored=rescored, threads=threads, rerank=rerank, candidates=candidates)[0]
        if rerank is not None:
            if isinstance(queries, np.ndarray):
                raise ConfigError("rerank= needs the texts of the queries, not their vectors")
            return rerank_hits(self.search(queries, max(k, candidates), rescored=rescored, threads=threads), rerank, k)
        names: Sequence[str | None] = [None] * len(queries) if isinstance(queries, np.ndarray) else list(queries)
        vectors = queries if isinstance(queries, np.ndarray) else self.model.encode(queries)
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise ConfigError(f"queries are {vectors.shape}: the index holds vectors of {self.dim} dimensions")
        found = self._nearest(np.ascontiguousarray(vectors, np.float32), k, rescored, threads or available_threads())
        texts = self._sentences.take(
            np.unique(np.concatenate([rows for _, rows in found] or [np.zeros(0, np.int64)])).tolist()
        )
        lists = [zip(scores.tolist(), rows.tolist(), strict=True) for scores, rows in found]
        return [
            Hits(name, tuple(Hit(score, texts[row][0], row, texts[row][1]) for score, row in hits if row in texts))
            for name, hits in zip(names, lists, strict=True)
        ]

    def _nearest(
        self, queries: np.ndarray, k: int, rescored: int | None, threads: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        data, few = self._data, len(self)
        if rescored is None:
            rescored = max(_LEAST_RESCORED, round(few**0.5 / 2))
        rescored = 0 if data.signs is None or max(rescored, k) >= few else max(rescored, k)
        return self._passes(_Question(queries, k, rescored, threads, data))

    def add(self, texts: Given, metadata: Iterable[Any] | None = None, *, threads: int | None = None) -> range:
        """Add sentences.

        Args:
            texts: a list or any other iterable of texts, or the name of a text file, plain or compressed.
            metadata: for each text what to keep with it, as JSON values.
            threads: how many encode; None for all processors.

        Returns:
            Their numbers, which stay theirs for good.

        Raises:
            ConfigError: there is not one value of metadata a text.
            InputError: the file is missing or damaged.
            TypeError: one of the texts is no text; the message says which.
        """

        def encoded(block: Texts) -> tuple[Texts, Numbers]:
            return block, numbers_of(self.model, block, self.storage)

        blocks = read_blocks(texts, BLOCK) if isinstance(texts, (str, Path)) else _packed(texts)
        return self._add(in_order(encoded, blocks, threads or available_threads()), metadata)

    def _add(self, blocks: Iterable[tuple[Texts, Numbers]], metadata: Iterable[Any] | None) -> range:
        """Add blocks of texts and their numbers, and a value of metadata for each text."""
        with self._writing() as writing, ExitStack() as stack:
            facts, sums = dict(writing.state.facts), writing.state.sums or {}
            first, columns = facts["rows"], {}
            for name, (kind, row) in columns_of(self.storage, self.dim).items():
                path = self.folder / f"{name}.npy"
                columns[path.name] = SummedArray(path, kind, first, row, sums.get(path.name), advice=REBUILD)
                # After an error: what waits to be written belongs to no later addition.
                stack.callback(columns[path.name].abandon)
            with bar("index", unit="sentence") as progress:
                for block, kept, numbers in _with_metadata(blocks, metadata):
                    for name, array in numbers.arrays.items():
                        columns[f"{name}.npy"].append(array)
                    writing.add(facts["rows"], block, kept)
                    facts |= {"rows": facts["rows"] + len(block), "error": max(facts["error"], numbers.error)}
                    progress.update(len(block))
            for name, column in columns.items():
                column.close()
                writing.note_sums(name, column.known, since=column.kept)
            if _SIGNED[self.method] and facts["rows"] >= _FEWEST:
                self._sign(writing, facts, {name: column.known for name, column in columns.items()})
            writing.note(facts)
        self._open()
        return range(first, facts["rows"])

    @contextmanager
    def _writing(self) -> Iterator[Writing]:
        """Open a change of the database, and remove what a killed process left beside it."""
        with self._sentences.writing() as writing:
            facts = writing.state.facts
            if "documents" in facts:
                (self.folder / _DOCUMENTS).unlink(missing_ok=True)
            if facts["format_version"] < FORMAT_VERSION:
                self._upgrade(writing)
            remove_leftovers(self.folder)
            for name, (rows, kind, row) in shapes_of(facts, self.dim).items():
                path, size = self.folder / f"{name}.npy", rows * math.prod(row) * np.dtype(kind).itemsize
                if size and path.stat().st_size > HEADER + size:
                    GrowingArray(path, kind, rows, row).close()
            yield writing
        for place in self.folder.glob("clusters-*"):  # of an index until v0.2
            shutil.rmtree(place, ignore_errors=True)

    def _upgrade(self, writing: Writing) -> None:
        """Bring an index to this version: find what no search of format 1 found, and note all checksums."""
        logger.info("%s: made by an earlier version, and brought to this one", self.folder)
        facts, sums = writing.state.facts, {}
        noted: dict[str, Any] = {"signed": 0, "centre": b"", "method": self.method}
        if writing.state.sums is not None:
            writing.forget_sums(f"clusters-{facts['clustered']}")
            writing.upgrade(noted)
            return
        if rows := facts["rows"]:
            codes = _mapped(self.folder / "codes.npy", np.int8, (rows, self.dim))
            scales = np.memmap(self.folder / "scales.npy", np.float32, "r+", HEADER, (rows,))
            hidden = self._hidden(codes, scales, facts["removed"])
            scales[hidden] = _scales_of(codes[hidden])
            scales.flush()
            for name, (kind, row) in columns_of(self.storage, self.dim).items():
                size = math.prod(row) * np.dtype(kind).itemsize
                sums[f"{name}.npy"] = file_sums(self.folder / f"{name}.npy", size, HEADER, rows * size)
        sums |= sums_of_files(self.folder, self.folder / "model")
        writing.upgrade({**noted, "documents": json.dumps(self._documents())}, sums)

    def _sign(self, writing: Writing, facts: dict[str, Any], sums: Mapping[str, FileSums]) -> None:
        """Write the sign bits of the rows that have none yet, and take their centre from the first of all rows."""
        first, rows = facts["signed"], facts["rows"]
        for name in ("codes", "scales"):
            row = self.dim if name == "codes" else 4
            blocks = Blocks(self.folder / f"{name}.npy", sums[f"{name}.npy"], HEADER, advice=REBUILD)
            blocks.check_rows(np.arange(first, rows), row)
        codes = _mapped(self.folder / "codes.npy", np.int8, (rows, self.dim))
        scales = _mapped(self.folder / "scales.npy", np.float32, (rows,))
        if not first:
            facts["centre"] = centre_of(codes[:_FEWEST], scales[:_FEWEST]).tobytes()
        centre, known = np.frombuffer(facts["centre"], np.float32), (writing.state.sums or {}).get("signs.npy")
        column = SummedArray(self.folder / "signs.npy", np.uint64, first, (words_of(self.dim),), known, advice=REBUILD)
        with closing(column):
            for start in range(first, rows, BLOCK):
                column.append(make_signs(codes[start : start + BLOCK], scales[start : start + BLOCK], centre))
                release(codes)
        writing.note_sums("signs.npy", column.known, since=column.kept)
        facts["signed"] = rows

    def remove(self, rows: Iterable[int]) -> None:
        """Remove sentences by their numbers; those of others stay as they are.

        Raises:
            ConfigError: there is no such sentence; nothing is removed then.
        """
        rows = sorted({int(row) for row in rows})
        with self._writing() as writing:
            if missing := sorted(set(rows) - set(writing.take(rows))):
                raise ConfigError(f"rows: there is no sentence {missing[0]}, or it was removed before")
            writing.remove(rows)
            writing.note({"removed": writing.state.facts["removed"] + len(rows)})
        self._open()

    def verify(self) -> None:
        """Read the whole index, and compare it with its checksums.

        A search compares what it reads, each block of a file when it is first read; this compares what no search has read
        yet as well. An index of v0.2 or before has checksums from the first :meth:`add` or :meth:`remove` on.

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
            shutil.copy2(self.folder / f"{name}.npy", folder / f"{name}.npy")
            GrowingArray(folder / f"{name}.npy", kind, rows, row).close()
        if "documents" not in facts and (self.folder / _DOCUMENTS).is_file():
            shutil.copy2(self.folder / _DOCUMENTS, folder / _DOCUMENTS)


def index(
    model: AnyModel,
    texts: Given,
    *,
    metadata: Iterable[Any] | None = None,
    folder: str | Path | None = None,
    method: IndexMethod = "exact",
    storage: Storage = "float32",
    threads: int | None = None,
    execution: ExecutionConfig = LOCAL,
) -> Index:
    """Build an index of sentences, which are read and encoded as a stream: memory does not grow with their number.

    Args:
        model: what encodes.
        texts: a list or any other iterable of texts, or the name of a text file, plain or compressed.
        metadata: for each text what to keep with it, as JSON values.
        folder: where it is kept; None for a folder that is removed with the index, unless it is saved.
        method: ``exact``; or ``binary``, which scores only the sentences that are nearest by their sign bits.
        storage: of the vectors: ``float32``, ``float16``, or ``int8``, a quarter of the place.
        threads: how many encode; None for all processors.
        execution: who encodes: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes. Others need a
            file of texts, and a folder that all machines share.

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
    check_choice("method", method, IndexMethod)
    check_storage(storage)
    if folder is None:
        temporary = scratch("xswe-index-")
        made = _build(Path(temporary.name), model, method, storage, None)
        made._temporary = temporary
        made.add(texts, metadata, threads=threads)
        return made
    place = Path(folder)
    if execution.kind == "local":
        stamp = file_stamp(texts) if isinstance(texts, (str, Path)) and Path(texts).is_file() else None
        return _index_here(model, texts, metadata, place, Building(method=method, storage=storage, threads=threads), stamp)
    check_here(place)
    if not isinstance(texts, (str, Path)) or str(texts) == "-":
        raise ConfigError(f"execution={execution.kind}: others read the same lines, so give a file")
    building = Building(method=method, storage=storage, threads=threads, execution=execution)
    return _index_by_shards(model, texts, metadata, place, building)


def _index_here(
    model: AnyModel, texts: Given, metadata: Iterable[Any] | None, place: Path, building: Building, stamp: Any
) -> Index:
    """Build the index of texts, or of a file of this stamp, in this process."""
    method, storage = building.get("method", "exact"), building.get("storage", "float32")
    _check_free(place)
    with whole_folder(place) as unfinished:  # without a name for the index: Windows renames no folder of open files
        _build(unfinished, model, method, storage, stamp).add(texts, metadata, threads=building.get("threads"))
    return Index(place, model)


def _index_by_shards(
    model: AnyModel, texts: str | Path, metadata: Iterable[Any] | None, place: Path, building: Building
) -> Index:
    """Build the index of a file with whoever takes part: its vectors by shards, and once the index of them."""
    method, storage, execution = building["method"], building["storage"], building["execution"]
    stamp = file_stamp(texts)
    identity = fingerprint(model.identity, method, storage, stamp)
    with work_folder(str(place), execution) as work:
        done, vectors = work / "done", work / f"vectors-{identity}"

        def build(encoded: Callable[[], Iterator[tuple[Texts, Numbers]]], _: Path) -> None:
            """Put the numbers of all shards and their texts together."""
            with whole_folder(place) as unfinished:
                _build(unfinished, model, method, storage, stamp)._add(encoded(), metadata)

        if not is_made(done, identity, [place]):
            if not vectors.exists():  # with them what is there is one that was not noted as done yet
                _check_free(place)
            with numbers_ahead(model, str(texts), vectors, storage, execution, building["threads"]) as encoded:
                once(done, identity, partial(build, encoded), [place])
    return Index(place, model)


def _build(folder: Path, model: AnyModel, method: IndexMethod, storage: Storage, stamp: Any) -> Index:
    model.save(folder / "model")
    facts: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "method": method,
        "storage": storage,
        "identity": model.identity,
    }
    facts |= {"rows": 0, "removed": 0, "error": 0.0, "signed": 0, "centre": b"", "documents": json.dumps(stamp)}
    Sentences(folder / "sentences.sqlite").create(facts, sums_of_files(folder, folder / "model"))
    return Index(folder, model)


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
        building: how an index is built that is not there, see :func:`index`.

    Raises:
        ConfigError: the index is of another model or file, or in a storage, or the file has changed; or there is nothing to
            build it from.
    """
    check_here(folder or "", "index")
    stamp = file_stamp(documents) if documents not in (None, "-") else None
    if stamp and (split or (split is None and is_document(str(documents)))):
        stamp += ["sentences", language]
    execution, shared = building.get("execution", LOCAL), folder and stamp and "sentences" not in stamp
    if execution.kind != "local" and not shared:
        raise ConfigError(f"execution={execution.kind}: others read the same lines, so give a text file and index=")
    if folder and Path(folder).exists():
        found = load_index(folder)
        if model is not None and model.identity != found.model.identity:
            raise ConfigError(f"the index {folder} is of another model; leave model= out")
        if documents and found._documents() != stamp:
            raise ConfigError(
                f"documents={documents}: the index {folder} is of another file, or the file has changed; "
                "leave documents out, or remove the folder to build it again"
            )
        if documents and execution.kind == "ray" and Path(f"{folder}.work").is_dir():  # which a killed run left
            with work_folder(str(folder), execution):
                return found
        return found
    if model is None or documents is None:
        raise ConfigError("give model= and documents= to search in, or the index= of an earlier search")
    with as_lines(str(documents), split, language, folder or "-") as lines:
        texts = (text or "" for _, text in read_lines("-")) if lines == "-" else lines
        if folder and not shared:
            return _index_here(model, texts, None, Path(folder), building, stamp)
        return index(model, texts, folder=folder, **building)


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: exists; give another name, or load_index and add to it")


def _scales_of(codes: np.ndarray) -> np.ndarray:
    """Return the scales of some codes, none of them zero, as :func:`xswe.search.kernels.make_codes` does."""
    squares = np.square(codes.astype(np.int32)).sum(axis=1).astype(np.float32)
    return np.float32(1.0) / np.sqrt(squares)


def _mapped(path: Path, kind: type, shape: tuple[int, ...]) -> np.ndarray:
    return np.memmap(path, kind, "r", HEADER, shape) if shape[0] else np.zeros(shape, kind)


def _with_metadata(
    blocks: Iterable[tuple[Texts, Numbers]], metadata: Iterable[Any] | None
) -> Iterator[tuple[Texts, list[Any] | None, Numbers]]:
    row, values = 0, None if metadata is None else iter(metadata)
    for block, numbers in blocks:
        kept = None if values is None else list(islice(values, len(block)))
        row += len(block)
        if kept is not None and len(kept) < len(block):
            raise ConfigError(f"metadata: only {row - len(block) + len(kept)} values; give one a text, None for none")
        yield block, kept, numbers
    if values is not None and next(values, values) is not values:
        raise ConfigError(f"metadata: more values than the {row} texts; give one each")


def _packed(texts: Iterable[str]) -> Iterator[Texts]:
    rows, first = iter(texts), 0
    while block := list(islice(rows, BLOCK)):
        try:
            yield Texts.of(block)
        except (TypeError, AttributeError) as error:
            raise (no_text(block, first) or error) from None
        first += len(block)
