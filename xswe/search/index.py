"""The index of sentences: opened once, queried in milliseconds, and changed while it is queried.

Which files it has :mod:`xswe.search.layout` says; :mod:`xswe.search.building` makes one.
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
    """Sentences that can be searched; see :func:`xswe.search.building.index` and :func:`load_index`.

    What a change does is in the folder when it returns. Other processes may ask and change the same index; what they have
    changed is found after :meth:`refresh`. Iterating yields all sentences by rising number, as hits with a score of 1.

    Attributes:
        folder: where it is.
        model: what encodes sentences and queries.
        method: ``exact`` or ``binary``.
        storage: how vectors are kept: ``float32``, ``float16`` or ``int8``.
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
        """Open the current state for searches."""
        self._now = open_snapshot(self.folder, self.dim, self._sentences, self._now)

    def close(self) -> None:
        """Close the database's files; the index can still be asked, and opens them again."""
        self._sentences.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[str], Index], tuple[str]]:
        """Pickle the index by its folder, from which it is opened again."""
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
                if not self.refresh():  # else the arrays were written anew, and the old ones are gone
                    raise
        return self._hits(names, pairs)

    def _hits(self, names: Sequence[str | None], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Hits]:
        """Return the hits of each query, given their scores and rows, without sentences that another process removed."""
        texts = self._sentences.take(list({row: None for _, rows in pairs for row in rows.tolist()}))
        lists = [zip(scores.tolist(), rows.tolist(), strict=True) for scores, rows in pairs]
        return [
            Hits(name, tuple(Hit(score, texts[row][0], row, texts[row][1]) for score, row in hits if row in texts))
            for name, hits in zip(names, lists, strict=True)
        ]

    def add(self, texts: Given, metadata: Iterable[Any] | None = None, *, threads: int | None = None) -> range:
        """Add sentences; searches meanwhile, in this process or others, do not wait.

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
            blocks = encoded(self.model, texts, self.storage, threads)
            added = self._writer.add(with_metadata(blocks, metadata), progress.update)
        self._open()
        return added

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
        self._writer.update(rows, given["texts"], given["metadata"])
        self._open()

    def remove(self, rows: Iterable[int]) -> None:
        """Remove sentences by their numbers; those of others stay as they are.

        Raises:
            ConfigError: there is no such sentence; nothing is removed then.
        """
        self._writer.remove(sorted({int(row) for row in rows}))
        self._open()

    def compact(self) -> int:
        """Free the space of removed and replaced sentences; their numbers stay, and searches go on meanwhile.

        The arrays are written anew, below ``arrays-N``. Where that is killed, the next call goes on from there, unless the
        index was changed in between. Other processes go on with what they have opened until they :meth:`refresh`.

        Returns:
            How many slots of the arrays were given back.
        """
        count = self._writer.compact()
        self._open()
        return count

    def verify(self) -> None:
        """Read the whole index, and compare it with its checksums.

        A search compares what it reads, each block of a file when it is first read; this compares what no search has read
        yet as well. An index of v0.2 or before has checksums from the first change on.

        Raises:
            ModelError: something is not what was written; a line for each file says where, and what can be done.
        """
        verify_index(self.folder)

    def save(self, folder: str | Path) -> None:
        """Copy the index to another folder, atomically.

        Raises:
            ConfigError: there is something else of that name.
        """
        folder = Path(folder)
        check_free(folder)
        with whole_folder(folder) as temporary:
            copy = Sentences(temporary / "sentences.sqlite")
            while True:
                self._sentences.copy(copy.path)  # first: of what is added meanwhile it knows nothing
                facts = copy.state().facts
                copy.close()
                try:
                    copy_files(self.folder, temporary, facts, self.dim)
                    return
                except OSError:
                    if self._sentences.state().facts == facts:  # else another process has changed it meanwhile
                        raise


def load_index(folder: str | Path) -> Index:
    """Open an index that was built in, or saved to, a folder; of large files only the parts that a query needs are read.

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


def check_names(function: str, given: Mapping[str, Any], kind: type) -> None:
    """Raise TypeError for an argument that a function does not know, as Python does."""
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{suggestion(name, known)}")


def check_free(folder: Path) -> None:
    """Raise a ConfigError where a folder has something in it already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: exists; give another name, or load_index and add to it")
