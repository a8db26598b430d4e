"""``python -m xswe search``: the sentences of a file, or of an index, that are nearest to a phrase or a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xswe
from xswe.errors import ConfigError
from xswe.io.files import file_stamp, read_json, write_json
from xswe.io.lines import read_lines
from xswe.io.results import Rows, check_suffix
from xswe.io.settings import build
from xswe.model.static import StaticModel
from xswe.phrases.in_files import read_queries
from xswe.phrases.search import SpanConfig
from xswe.search.index import Hits, Index, IndexMethod
from xswe.search.vectors import Storage


@dataclass(frozen=True)
class SearchVerb:
    """Settings of ``search``; see ``conf/search.yaml``."""

    model: str | None
    documents: str | None
    queries: str | None
    index: str | None
    output: str | None
    k: int
    mark: bool
    method: IndexMethod
    storage: Storage
    probes: int
    threads: int | None


def run(values: dict[str, Any]) -> str:
    """Build or open the index, ask it, and return or write what was found."""
    config = build(SearchVerb, values, "search")
    if config.output:
        check_suffix(config.output)
    queries = _queries(config.queries)
    index = _index(config)
    if queries is None:
        _prompt(index, config)
        return ""
    found = index.search(queries, config.k, probes=config.probes, threads=config.threads)
    if not config.output:
        return "\n\n".join(_shown(hits, index, config, titled=len(found) > 1) for hits in found)
    rows = [(hits.query, hit.score, hit.text, hit.row) for hits in found for hit in hits]
    Rows(("query", "score", "text", "row"), rows).write(config.output)
    return f"{len(queries):,} queries, {len(rows):,} hits: {config.output}"


def _queries(given: str | None) -> list[str] | None:
    """Return the phrases; None for a prompt."""
    if given is None and sys.stdin.isatty():
        return None
    return read_queries(given or "-")


def _index(config: SearchVerb) -> Index:
    """Open the index if it is there, else build it."""
    model = xswe.load(config.model) if config.model else None
    note = Path(config.index or "") / "documents.json"
    stamp = file_stamp(config.documents) if config.documents not in (None, "-") else None
    if config.index and Path(config.index).exists():
        index = xswe.load_index(config.index)
        if model is not None and model.identity != index.model.identity:
            raise ConfigError(f"model={config.model}: the index {config.index} is of another model; leave model out")
        if config.documents and (not note.is_file() or read_json(note) != stamp):
            raise ConfigError(
                f"documents={config.documents}: the index {config.index} is of another file, or the file has changed; "
                "leave documents out, or remove the folder to build it again"
            )
        return index
    if model is None or config.documents is None:
        raise ConfigError("give model= and documents= to search in, or the index= of an earlier search")
    settings = {"method": config.method, "storage": config.storage, "threads": config.threads}
    texts = (text or "" for _, text in read_lines("-")) if config.documents == "-" else config.documents
    index = xswe.index(model, texts, folder=config.index, **settings)  # type: ignore[arg-type]
    if config.index:
        write_json(note, stamp)
    return index


def _prompt(index: Index, config: SearchVerb) -> None:
    """Ask for one phrase after the other, until an empty line or the end of input."""
    sys.stdout.write(f"{index}; an empty line ends\n")
    while True:
        sys.stdout.write("> ")
        sys.stdout.flush()
        if not (query := sys.stdin.readline().strip()):
            return
        hits = index.search(query, config.k, probes=config.probes, threads=config.threads)
        sys.stdout.write(f"{_shown(hits, index, config, titled=False)}\n\n")


def _shown(hits: Hits, index: Index, config: SearchVerb, titled: bool) -> str:
    """Lay the hits of a query out, a line each."""
    texts = _marked(hits, index.model) if config.mark and isinstance(index.model, StaticModel) else (h.text for h in hits)
    lines = [f"{hit.score:.4f}  {' '.join(text.split())}" for hit, text in zip(hits, texts, strict=True)]
    return "\n".join([*([f"{hits.query}:"] if titled else []), *(lines or ["nothing found"])])


def _marked(hits: Hits, model: StaticModel) -> Iterator[str]:
    """Yield the texts of hits with the span that says the most of the query marked, unless it is the whole text."""
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    before, after = ("\033[1m", "\033[0m") if bold else ("[", "]")
    for hit in hits:
        spans = xswe.find_phrases(model, [hits.query or ""], [hit.text], SpanConfig(k=1))[0]
        place = spans[0].places[0] if spans else None
        if place is None or place.text == hit.text.strip():
            yield hit.text
        else:
            yield f"{hit.text[: place.start]}{before}{place.text}{after}{hit.text[place.end :]}"
