"""Building an index: from a stream of sentences, or from a file in shards, resumed after a kill."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError, XsweError
from xswe.io.arguments import check_model, several
from xswe.io.files import (
    file_stamp,
    fingerprint,
    read_json,
    remove_folder,
    scratch,
    taken_over,
    whole_folder,
    write_json,
)
from xswe.io.lines import Skipped
from xswe.io.ragged import Texts
from xswe.io.settings import check_choice
from xswe.io.sources import check_here
from xswe.model.ensemble import AnyModel
from xswe.progress import bar
from xswe.search.columns import Columns, ColumnType
from xswe.search.index import Given, Index, check_free, check_names, load_index
from xswe.search.layout import IndexMethod, documents_of
from xswe.search.numbers import Numbers, NumbersAhead, encoded, numbers_ahead
from xswe.search.sentences import FORMAT_VERSION, Sentences
from xswe.search.vectors import Storage, check_storage
from xswe.search.verification import sums_of_files, verify_index
from xswe.search.writer import NEW, Block, Writer, with_metadata
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import discard, work_folder
from xswe.work.kept import keep
from xswe.work.once import is_made, written_once
from xswe.work.parts import BEGINNING, Place

logger = logging.getLogger(__name__)
_PIECE = 1 << 17  # sentences added to a new index at a time, which is what a kill costs
_PLACES = "places.json"  # of an unfinished index: the number of sentences after each block of the text


class Building(TypedDict, total=False):
    """Settings for building an index.

    Attributes:
        method: ``exact``, the default, or ``binary``, which scores only the sentences nearest by sign bits.
        storage: type of the vectors: ``float32``, the default, ``float16``, or ``int8``, a quarter of the size.
        threads: threads that encode; None for all processors.
        execution: who encodes: this process, the tasks of a batch queue, or a cluster, all with the same bytes as
            result. The last two need the texts as a file, and a folder that all machines share.
    """

    method: IndexMethod
    storage: Storage
    threads: int | None
    execution: ExecutionConfig


def index(
    model: AnyModel,
    input: Given,
    *,
    metadata: Iterable[Any] | None = None,
    columns: Mapping[str, ColumnType] | None = None,
    folder: str | Path | None = None,
    **building: Unpack[Building],
) -> Index:
    """Build an index of sentences, read and encoded as a stream: memory does not grow with their number.

    Args:
        model: the model that encodes.
        input: a list or any other iterable of texts, or the name of a text file, plain or compressed.
        metadata: for each text a JSON value to keep with it.
        columns: the metadata keys by which a search can filter (``where=``), with their types: ``int``, ``float``, ``str``
            or ``bool``.
        folder: folder of the index; None for a temporary one, removed with the index unless it is saved.
        building: ``method``, ``storage``, ``threads`` and ``execution``, see :class:`Building`.

    Raises:
        ConfigError: the folder exists and is not empty, or the method or storage is unknown.
        InputError: the file is missing or damaged.
        Unfinished: with an array, the tasks with the other shards are not done yet.

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
    texts = input if isinstance(input, (str, Path, Iterator, TextSource)) else several(input, "input")
    check_names("index", building, Building)
    method, storage = building.get("method", "exact"), building.get("storage", "float32")
    threads, execution = building.get("threads"), building.get("execution", LOCAL)
    check_choice("method", method, IndexMethod)
    check_storage(storage)
    execution.check_names(texts, folder)
    plan = _Plan(model, method, storage, Columns(columns))
    if folder is None:
        temporary = scratch("xswe-index-")
        _fill(plan.begin(Path(temporary.name)), encoded(model, texts, storage, threads), metadata)
        return Index(Path(temporary.name), model, temporary)
    place = Path(folder)
    check_here(place)
    if isinstance(texts, (str, Path)) and Path(texts).is_file():
        plan = plan._replace(stamp=file_stamp(str(texts)))
        return _index_file(plan, TextSource(str(texts)), metadata, place, execution, threads)
    check_free(place)
    with whole_folder(place) as unfinished:  # the index stays unopened: Windows does not rename folders with open files
        _fill(plan.begin(unfinished), encoded(model, texts, storage, threads), metadata)
    return Index(place, model)


class _Plan(NamedTuple):
    """The plan of an index: model, method, storage, columns."""

    model: AnyModel
    method: IndexMethod
    storage: Storage
    columns: Columns
    stamp: Any = None  # of the file of texts

    @property
    def identity(self) -> str:
        return fingerprint(self.model.identity, self.method, self.storage, self.stamp, self.columns.noted())

    def begin(self, folder: Path) -> Writer:
        """Create an empty index in a folder."""
        self.model.save(folder / "model")
        facts: dict[str, Any] = {"format_version": FORMAT_VERSION, "method": self.method, "storage": self.storage}
        facts |= {"identity": self.model.identity, "rows": 0, "removed": 0, "error": 0.0, **NEW}
        facts |= {"columns": self.columns.noted(), "documents": json.dumps(self.stamp)}
        sentences = Sentences(folder / "sentences.sqlite")
        sentences.create(facts, sums_of_files(folder, folder / "model"))
        return Writer(folder, self.model, sentences)


def _index_file(
    plan: _Plan,
    texts: TextSource,
    metadata: Iterable[Any] | None,
    place: Path,
    execution: ExecutionConfig,
    threads: int | None,
) -> Index:
    """Build the index of a file's texts: first the vectors, in shards, then the index."""
    with work_folder(str(place), execution) as work:
        done, vectors = work / "done", work / f"vectors-{plan.identity}"

        def build(encoded: NumbersAhead) -> None:
            """Assemble the index from the texts and vectors of all blocks."""
            target = place.resolve() if place.is_symlink() else place
            left = taken_over(target, fingerprint(encoded.identity, plan.identity, metadata is None))
            try:
                with whole_folder(target, left) as unfinished:
                    _build_in(plan, unfinished, encoded, metadata)
            finally:
                if not (left / _PLACES).exists():
                    remove_folder(left)

        if not is_made(done, plan.identity, [place]):
            if not vectors.exists():  # with vectors, an existing index is ours, not yet recorded as done
                check_free(place)
            with numbers_ahead(
                plan.model, texts.lines(work, Skipped()), vectors, plan.storage, execution, threads
            ) as encoded:
                written_once(done, plan.identity, partial(build, encoded), [place], execution)
    return Index(place, plan.model)


def _build_in(plan: _Plan, folder: Path, encoded: NumbersAhead, metadata: Iterable[Any] | None) -> None:
    """Build an index in a folder, resuming where a killed run left off."""
    note, (writer, places) = folder / _PLACES, _resumed_or_begun(plan, folder)
    place = places.get(_sentence_count(writer.sentences), BEGINNING)
    if metadata is not None:
        metadata = _metadata_after(writer, iter(metadata))

    def blocks() -> Iterator[tuple[Texts, Numbers]]:
        nonlocal place
        for after, block in encoded.read(place):
            place = after
            yield block

    def before(rows: int) -> None:
        if rows >= _PIECE:  # fewer are quickly done again
            places[rows] = place
            write_json(note, [[rows, *place] for rows, place in list(places.items())[-2:]])

    _fill(writer, blocks(), metadata, before, lambda rows: keep(note, f"after {rows:,} sentences"))
    note.unlink(missing_ok=True)


def _fill(
    writer: Writer,
    blocks: Iterable[tuple[Texts, Numbers]],
    metadata: Iterable[Any] | None,
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[int], None] = lambda _: None,
) -> None:
    """Add all sentences, or those that a killed run had not reached, to an index that nobody else knows of yet.

    They are added in pieces of one size: a kill costs at most one piece, and does not change the bytes. Each piece calls
    ``before`` and ``after`` with the number of sentences so far.
    """
    count_before = _sentence_count(writer.sentences)
    rows = with_metadata(blocks, metadata, count_before)
    with bar("index", unit="sentence", initial=count_before) as progress, closing(writer.sentences):
        for first in rows if count_before else chain([None], rows):
            after(writer.add(_piece(first, rows), progress.update, before, log=False).stop)


def _sentence_count(sentences: Sentences) -> int:
    """Return the number of sentences added."""
    return int(sentences.state().facts["rows"])


def _resumed_or_begun(plan: _Plan, folder: Path) -> tuple[Writer, dict[int, Place]]:
    """Open the index that a killed run left in a folder, or begin a new one if it is damaged.

    Also return the number of sentences after each block of the text.
    """
    places, note = dict[int, Place](), folder / _PLACES
    with suppress(OSError, ValueError, XsweError):
        places = {rows: (shard, part) for rows, shard, part in read_json(note)}
        verify_index(folder)
        sentences = Sentences(folder / "sentences.sqlite")
        if (count := _sentence_count(sentences)) in places:
            keep(note, f"after {count:,} sentences")
            logger.info("%s: going on after %d sentences", folder, count)
            return Writer(folder, plan.model, sentences), places
        sentences.close()
    if places:
        logger.warning("%s: damaged since it was written; building it anew", folder)
    shutil.rmtree(folder)
    folder.mkdir()
    return plan.begin(folder), {}


def _metadata_after(writer: Writer, values: Iterator[Any]) -> Iterator[Any]:
    """Return the metadata after that of an unfinished index; the values before must equal what the index holds."""
    for row, _, metadata in writer.sentences:
        if [json.dumps(value) for value in islice(values, 1)] != [json.dumps(metadata)]:
            raise ConfigError(
                f"metadata: that of sentence {row} is not what the interrupted run had; give the same, or remove "
                f"{writer.folder} to start anew"
            )
    return values


def open_index(
    folder: str | Path | None,
    model: AnyModel | None = None,
    documents: str | Path | None = None,
    *,
    split: bool | None = None,
    language: str | None = None,
    **building: Unpack[Building],
) -> Index:
    """Open the index of a file, or build it if it does not exist yet.

    Args:
        folder: folder of the index; None for a temporary index.
        model: the model that encodes; None for that of the existing index.
        documents: text file, one sentence per line; ``-`` for standard input; None for those of the existing index.
        split: cut the file into sentences; None cuts any document, and no other file.
        language: language of the file, for cutting it.
        building: how to build an index that does not exist yet, see :class:`Building`.

    Raises:
        ConfigError: the index was built with another model or from another file, the file has changed, the index is in
            remote storage, or there is nothing to build it from.
    """
    check_names("open_index", building, Building)
    check_here(folder or "", "index")
    stamp = file_stamp(documents) if documents not in (None, "-") else None
    texts = TextSource(str(documents), language or "", split)
    if stamp and texts.is_cut:
        stamp += ["sentences", language]
    execution = building.get("execution", LOCAL)
    execution.check_names(folder or None, documents)
    if folder and Path(folder).exists():
        found = load_index(folder)
        if model is not None and model.identity != found.model.identity:
            raise ConfigError(f"the index {folder} is of another model; leave model= out")
        if documents and documents_of(found.folder, Sentences(found.folder / "sentences.sqlite").state().facts) != stamp:
            raise ConfigError(
                f"input={documents}: the index {folder} is of another file, or the file has changed; "
                "leave input out, or remove the folder to build it again"
            )
        if documents:
            discard(Path(f"{folder}.work"), execution)  # left by a killed run
        return found
    if model is None or documents is None:
        raise ConfigError("give model= and input= to search in, or the index= of an earlier search")
    if not (folder and stamp):
        return index(model, texts, folder=folder, **building)
    method, storage = building.get("method", "exact"), building.get("storage", "float32")
    plan = _Plan(model, method, storage, Columns(), stamp)
    return _index_file(plan, texts, None, Path(folder), execution, building.get("threads"))


def _piece(first: Block | None, rows: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of one piece."""
    size = 0
    for block in rows if first is None else chain([first], rows):
        yield block
        size += len(block[0])
        if size >= _PIECE:
            return
