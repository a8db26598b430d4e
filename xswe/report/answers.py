"""The page of search results, with the matching words marked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from xswe.alignment.phrases import read_queries
from xswe.bitext.texts import TextSource
from xswe.io.arguments import file_name, texts_of
from xswe.io.files import check_output
from xswe.io.results import Rows, check_suffix
from xswe.io.settings import changed, check_least, refuse_unused
from xswe.io.sources import check_here
from xswe.model.ensemble import AnyModel, open_model
from xswe.model.static import StaticModel
from xswe.phrases.find import mark_best
from xswe.search.building import open_index
from xswe.search.hits import Hits
from xswe.search.index import Index
from xswe.search.layout import IndexMethod
from xswe.search.rerank import Encoder
from xswe.search.vectors import Storage
from xswe.work.config import LOCAL, ExecutionConfig

if TYPE_CHECKING:
    from xswe.settings import FileSearchSettings


@dataclass(frozen=True)
class FileSearchConfig:
    """Settings of a search in a file.

    Attributes:
        split: split the file into sentences first; null splits any document, and no other file.
        language: that of the file, for splitting it: any known language.
        k: sentences per query.
        candidates: with ``rerank``: how many sentences it scores per query.
        mark: mark the words of a sentence that match the query, when results are printed.
        method: for a new index: ``exact``, or ``binary`` (approximate: candidates are found by sign bits; for a million
            sentences).
        storage: for a new index: ``float32``, ``float16`` or ``int8``.
        rescored: with ``method=binary``: how many sentences are scored in full; null for 0.5 times the square root of
            their number.
        threads: null for all processors.
        execution: who encodes: this process, the tasks of a batch queue, or a cluster.
    """

    split: bool | None = None
    language: str | None = None
    k: int = 10
    candidates: int = 50
    mark: bool = True
    method: IndexMethod = "exact"
    storage: Storage = "float32"
    rescored: int | None = None
    threads: int | None = None
    execution: ExecutionConfig = LOCAL

    def __post_init__(self) -> None:
        check_least(self, k=1, candidates=1, rescored=1, threads=0)


@dataclass(frozen=True)
class Answers:
    """The hits of each query or, without queries, an index to search.

    Attributes:
        index: the index searched.
        config: the settings of the search.
        rerank: the reranker, if any.
        hits: the hits of each query.
        output: the file they were written to; None if they are to be printed.
    """

    index: Index
    config: FileSearchConfig
    rerank: Encoder | None = None
    hits: Sequence[Hits] = field(default=())
    output: str | None = None

    def __str__(self) -> str:
        if self.output is not None:
            return f"{len(self.hits):,} queries, {sum(map(len, self.hits)):,} hits: {self.output}"
        return "\n\n".join(self.shown(("[", "]")))

    def ask(self, queries: Sequence[str]) -> list[Hits]:
        """Search the index for each query."""
        c = self.config
        how: dict[str, Any] = {"rescored": c.rescored, "threads": c.threads, "rerank": self.rerank}
        return self.index.search(queries, c.k, candidates=c.candidates, **how)

    def shown(self, marks: tuple[str, str], hits: Sequence[Hits] | None = None) -> Iterator[str]:
        """Yield the formatted hits of each query, with the matching words between two marks."""
        found = self.hits if hits is None else hits
        for one in found:
            text = one
            if self.config.mark and isinstance(model := self.index.model, StaticModel):
                text = one.with_texts(mark_best(model, one.query or "", (hit.text for hit in one), *marks))
            yield f"{one.query}:\n{text}" if len(found) > 1 else str(text)


def search_file(
    model: AnyModel | str | Path | None = None,
    input: str | Path | None = None,
    queries: str | Path | Sequence[str] | None = None,
    *,
    index: str | Path | None = None,
    output: str | Path | None = None,
    rerank: Encoder | None = None,
    config: FileSearchConfig | None = None,
    **settings: Unpack[FileSearchSettings],
) -> Answers:
    """Find the sentences of a file, or of an index, that are nearest to phrases or questions, in any language of the model.

    Args:
        model: the model, its folder, or its name; null for the model of an existing index.
        input: text file, one sentence per line, plain or packed; ``-`` for standard input; null for an existing index.
        queries: a phrase, or a text file of phrases, one per line; null to query the index later.
        index: folder in which the index is kept for next time; null for a temporary one.
        output: file for query, score, text and row; by its suffix any table.
        rerank: a slower, better encoder that scores the nearest again: anything whose ``encode(texts)`` returns unit
            vectors.
        config: see :class:`FileSearchConfig`.
        settings: single fields of ``config``: ``k``, ``method``, ``split``, …

    Raises:
        ConfigError: a setting is unknown or invalid, or the index belongs to another model or file.
        InputError: a file is missing or damaged.
    """
    config = changed(config or FileSearchConfig(), settings, "search")
    folder = None if index is None else str(index)
    instead = "texts are searched by xswe.index(model, texts).search(queries)"
    file = None if input is None else file_name(input, "input", instead)
    check_here(folder or "", "index")
    _check(config, folder, file, output is not None, rerank is not None)
    texts = [str(name) for name in (input, queries) if isinstance(name, (str, Path))]
    if output is not None:
        check_output(output, texts)
        check_suffix(str(output))
    if isinstance(queries, (str, Path)):
        asked = read_queries(str(queries))
    else:  # as of a file with these lines
        asked = [] if queries is None else [text.strip() for text in texts_of(queries, "queries") if text.strip()]
    building: dict[str, Any] = {name: getattr(config, name) for name in ("method", "storage", "threads", "execution")}
    encoder = None if model is None else open_model(model, "search_file(model, input, queries)")
    opened = open_index(folder, encoder, file, split=config.split, language=config.language, **building)
    found = Answers(opened, config, rerank, output=None if output is None else str(output))
    if asked:
        found = Answers(opened, config, rerank, found.ask(asked), found.output)
    if output is not None:
        rows = [(hits.query, hit.score, hit.text, hit.row) for hits in found.hits for hit in hits]
        Rows(("query", "score", "text", "row"), rows).write(output)
    return found


def answer(given: dict[str, Any]) -> str:
    """Search with the arguments of :func:`search_file`, and return the text to print.

    Without queries, read them from standard input; on a terminal, prompt for one after the other until an empty line.
    """
    prompts = given["queries"] is None and sys.stdin.isatty()
    found = search_file(**given | {"queries": None if prompts else given["queries"] or "-"})
    marks = ("\033[1m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("[", "]")
    if not prompts:
        return str(found) if given["output"] else "\n\n".join(found.shown(marks))
    sys.stdout.write(f"{found.index}; an empty line ends\n> ")
    sys.stdout.flush()
    while query := sys.stdin.readline().strip():
        (shown,) = found.shown(marks, found.ask([query]))
        sys.stdout.write(f"{shown}\n\n> ")
        sys.stdout.flush()
    return ""


def _check(config: FileSearchConfig, folder: str | None, file: str | None, written: bool, reranks: bool) -> None:
    """Refuse settings that would be ignored."""
    built = bool(folder and Path(folder).exists())
    cut = file is not None and TextSource(file, split=config.split).is_cut
    unused: dict[str, Iterable[str]] = {
        "without rerank=": () if reranks else ["candidates"],
        "without split=true": () if cut else ["language"],
        f"to {folder}, which is there": ["method", "storage"] if built else (),
        "without method=binary": () if built or config.method == "binary" else ["rescored"],
        "without input=": () if file else ["split"],
        "with output=": ["mark"] if written else (),
    }
    refuse_unused(config, unused)
