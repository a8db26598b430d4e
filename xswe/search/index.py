"""The index of sentences: opened once, queried in milliseconds, and changed while it is queried.

Its files are described in :mod:`xswe.search.layout`; :mod:`xswe.search.building` builds it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack, overload

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.arguments import check_finite, check_reranker, is_texts, no_text, texts_of
from xswe.io.files import whole_folder
from xswe.io.parallel import Together, available_threads
from xswe.io.settings import suggestion
from xswe.io.sources import check_here
from xswe.model.ensemble import AnyModel, load_any
from xswe.progress import bar
from xswe.search.columns import Columns, ColumnType, Where
from xswe.search.hits import Hit, Hits
from xswe.search.layout import IndexMethod, copy_files, method_of
from xswe.search.numbers import encoded
from xswe.search.rerank import Encoder, rerank_hits
from xswe.search.sentences import Sentences
from xswe.search.snapshot import Question, answers, open_snapshot
from xswe.search.vectors import Storage
from xswe.search.verification import check_files, check_there, verify_index
from xswe.search.writer import Writer, with_metadata

Given = str | Path | Iterable[str]


class Asking(TypedDict, total=False):
    """Settings of a query.

    Attributes:
        rescored: with ``method=binary``, how many of the sentences nearest by sign bits are scored in full: the more, the
            more of the true nearest are found, and all of them if it is the number of sentences. None for 0.5 times the
            square root of that number.
        threads: threads that share the sentences; None for all processors.
        rerank: a slower and better encoder, anything whose ``encode(texts)`` returns unit vectors, that rescores the
            nearest sentences: both scores order the hits.
        candidates: how many sentences ``rerank`` scores per query, at least ``k``; 50 by default.
    """

    rescored: int | None
    threads: int | None
    rerank: Encoder | None
    candidates: int


class Index:
    """Sentences that can be searched; see :func:`xswe.search.building.index` and :func:`load_index`.

    A change is on disk when it returns. Other processes may query and change the same index; their changes are visible
    after :meth:`refresh`. Iterating yields all sentences by ascending number, as hits with a score of 1.

    Attributes:
        folder: folder of the index.
        model: the model that encodes sentences and queries.
        method: ``exact`` or ``binary``.
        storage: type of the stored vectors: ``float32``, ``float16`` or ``int8``.
    """

    def __init__(self, folder: Path, model: AnyModel, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.folder, self.model = folder, model
        self._sentences = Sentences(folder / "sentences.sqlite")
        self._writer = Writer(folder, model, self._sentences)
        self._temporary = temporary
        self._passes = Together(answers)
        self._now = open_snapshot(folder, self.dim, self._sentences)
        self.method: IndexMethod = method_of(self._now.facts)
        self.storage: Storage = self._now.facts["storage"]

    def refresh(self) -> bool:
        """Load the changes of other processes; return True if there were any."""
        state, now = self._sentences.state(), self._now
        if (state.root, state.facts) == (now.root, now.facts):
            return False
        self._open()
        return True

    def _open(self) -> None:
        """Open a snapshot of the current state for searches."""
        self._now = open_snapshot(self.folder, self.dim, self._sentences, self._now)

    def close(self) -> None:
        """Close the files of the database; a later query opens them again."""
        self._sentences.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[str], Index], tuple[str]]:
        """Pickle the index as its folder, from which it is opened again."""
        if self._temporary is not None:
            raise TypeError(
                "a temporary index ends with its process; save it, and pickle the index that xswe.load_index returns"
            )
        return load_index, (str(self.folder.absolute()),)

    def __len__(self) -> int:
        return self._now.live

    def __repr__(self) -> str:
        return f"Index({len(self):,} sentences, {self.dim} dimensions, {self.storage}, {self.method})"

    def __getitem__(self, row: int) -> Hit:
        """Return the sentence with the given number."""
        if (found := self._sentences.take([row]).get(row)) is None:
            raise IndexError(f"row {row}: there is no such sentence, or it was removed")
        return Hit(1.0, found[0], row, found[1])

    def __iter__(self) -> Iterator[Hit]:
        for row, text, metadata in self._sentences:
            yield Hit(1.0, text, row, metadata)

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return self.model.dim

    @property
    def columns(self) -> dict[str, ColumnType]:
        """The types of the metadata columns for ``where=``."""
        return Columns.of(self._now.facts.get("columns")).types

    @property
    def rows(self) -> np.ndarray:
        """The numbers of all sentences, int64, ascending: the order of iteration."""
        return self._now.rows()

    def vectors(self, rows: Iterable[int] | None = None) -> np.ndarray:
        """Return the vectors of sentences, float32 (n, d); None for all, in the order of :attr:`rows`.

        Raises:
            IndexError: a sentence does not exist.
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
    @overload  # a str is a sequence of str, too
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
            k: number of hits per query.
            where: search only sentences that meet all these conditions on metadata columns: ``{"lang": "en"}`` for a value,
                ``{"lang": ["en", "de"]}`` for one of several, ``{"year": (1990, None)}`` for an inclusive range, None for
                no limit; the value None for missing metadata.
            rows: search only the sentences with these numbers; numbers of removed sentences are ignored.
            asked: see :class:`Asking`.

        Returns:
            The hits of the text, or a list with the hits of each; of equal cosines the lower row first. A query without
            any unit of the model has no hits.

        Raises:
            ConfigError: ``k`` or ``rescored`` is below 1, the vectors have another width, or a condition names no column.
            ModelError: the index is damaged.

        Example:
            >>> import xswe
            >>> texts = ["The train is late.", "Eine Katze schläft auf dem Dach.", "我们买面包。"]
            >>> xswe.index(xswe.load("mini"), texts).search("猫が屋根で寝ている。", k=1)[0].text
            'Eine Katze schläft auf dem Dach.'
        """
        check_names("search", asked, Asking)
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
                if not self.refresh():  # otherwise a compaction has replaced the arrays
                    raise
        return self._hits(names, pairs)

    def _hits(self, names: Sequence[str | None], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Hits]:
        """Return the hits of each query from scores and rows, without sentences that another process has removed."""
        texts = self._sentences.take(list({row: None for _, rows in pairs for row in rows.tolist()}))
        lists = [zip(scores.tolist(), rows.tolist(), strict=True) for scores, rows in pairs]
        return [
            Hits(name, tuple(Hit(score, texts[row][0], row, texts[row][1]) for score, row in hits if row in texts))
            for name, hits in zip(names, lists, strict=True)
        ]

    def add(self, texts: Given, metadata: Iterable[Any] | None = None, *, threads: int | None = None) -> range:
        """Add sentences; searches in this process or others do not wait meanwhile.

        Args:
            texts: a list or any other iterable of texts, or the name of a text file, plain or compressed.
            metadata: for each text a JSON value to keep with it.
            threads: threads that encode; None for all processors.

        Returns:
            Their numbers, which never change.

        Raises:
            ConfigError: texts and metadata differ in number, or a value does not fit its column.
            InputError: the file is missing or damaged.
            TypeError: one of the texts is not a str; the message says which.
        """
        with bar("index", unit="sentence") as progress:
            blocks = encoded(self.model, texts, self.storage, threads)
            added = self._writer.add(with_metadata(blocks, metadata), progress.update)
        self._open()
        return added

    def update(
        self, rows: Iterable[int], texts: Iterable[str] | None = None, metadata: Iterable[Any] | None = None
    ) -> None:
        """Replace the text or metadata of sentences, or both; their numbers do not change.

        Args:
            rows: the numbers of the sentences, each once.
            texts: for each its new text; None to keep the texts.
            metadata: for each its new JSON value; None to keep the metadata.

        Raises:
            ConfigError: a sentence does not exist, a number is given twice, or the lists differ in length; nothing is
                changed then.
            TypeError: one of the texts is not a str; the message says which.
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
        self._writer.update(rows, given["texts"], given["metadata"])
        self._open()

    def remove(self, rows: Iterable[int]) -> None:
        """Remove sentences by their numbers; the other sentences keep theirs.

        Raises:
            ConfigError: a sentence does not exist; nothing is removed then.
        """
        self._writer.remove(sorted({int(row) for row in rows}))
        self._open()

    def compact(self) -> int:
        """Free the space of removed and replaced sentences; their numbers stay, and searches go on meanwhile.

        The arrays are rewritten below ``arrays-N``. If that is killed, the next call resumes it, unless the index was
        changed in between. Other processes keep using what they have opened until they :meth:`refresh`.

        Returns:
            The number of slots freed in the arrays.
        """
        count = self._writer.compact()
        self._open()
        return count

    def verify(self) -> None:
        """Read the whole index, and compare it with its checksums.

        A search checks each block of a file when it first reads it; this also checks what no search has read yet. An index
        built by v0.2 or earlier gets its checksums with the first change.

        Raises:
            ModelError: the index is damaged; the message says for each file where, and what can be done.
        """
        verify_index(self.folder)

    def save(self, folder: str | Path) -> None:
        """Copy the index to another folder, atomically.

        Raises:
            ConfigError: the folder exists and is not empty.
        """
        folder = Path(folder)
        check_free(folder)
        with whole_folder(folder) as temporary:
            copy = Sentences(temporary / "sentences.sqlite")
            while True:
                self._sentences.copy(copy.path)  # first, so that it refers to nothing that is added meanwhile
                facts = copy.state().facts
                copy.close()
                try:
                    copy_files(self.folder, temporary, facts, self.dim)
                    return
                except OSError:
                    if self._sentences.state().facts == facts:  # otherwise another process has changed it
                        raise


def load_index(folder: str | Path) -> Index:
    """Open an index that was built in, or saved to, a folder; only the parts of large files that a query needs are read.

    What a killed process left unfinished is undone first, and everything read is checked against its checksums.

    Raises:
        ModelError: the folder holds no index, is damaged, or is of a newer version; or an unfinished change must be undone
            but the folder is not writable.
    """
    check_here(folder, "index")
    folder = Path(folder)
    check_there(folder)
    check_files(folder, Sentences(folder / "sentences.sqlite").state().sums or {}, "model")
    return Index(folder, load_any(folder / "model"))


def check_names(function: str, given: Mapping[str, Any], kind: type) -> None:
    """Raise TypeError for an argument that a function does not know, as Python does."""
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{suggestion(name, known)}")


def check_free(folder: Path) -> None:
    """Raise ConfigError if a folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: exists; give another name, or load_index and add to it")
