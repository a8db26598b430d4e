"""``python -m xswe search``: the sentences of a file, or of an index, that are nearest to a phrase or a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xswe
from xswe.commands.config import is_cut, open_judge, refuse_unused
from xswe.io.execution import LOCAL, ExecutionConfig
from xswe.io.results import Rows, check_suffix
from xswe.io.settings import build
from xswe.model.static import StaticModel
from xswe.phrases.find import mark_best
from xswe.phrases.in_files import read_queries
from xswe.search.index import Index, IndexMethod, open_index
from xswe.search.types import Hits
from xswe.search.vectors import Storage

_BUILDING = ("method", "storage", "threads", "split", "language")


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
    split: bool | None
    language: str | None
    rerank: str | None
    candidates: int
    execution: ExecutionConfig = LOCAL


def run(values: dict[str, Any]) -> str:
    """Build or open the index, ask it, and return or write what was found."""
    config = build(SearchVerb, values, "search")
    built = bool(config.index and Path(config.index).exists())
    refuse_unused(
        "search",
        values,
        {
            "without rerank=": () if config.rerank else ["candidates"],
            "without split=true": () if is_cut(config.documents, config.split) else ["language"],
            f"to {config.index}, which is there": ["method", "storage"] if built else (),
            "without method=clusters": () if built or config.method == "clusters" else ["probes"],
            "without documents=": () if config.documents else ["split"],
        },
    )
    if config.output:
        check_suffix(config.output)
    asked = None if config.queries is None and sys.stdin.isatty() else read_queries(config.queries or "-")
    judge = open_judge(config.rerank, config.threads)
    model = xswe.load(config.model) if config.model else None
    how: dict[str, Any] = {name: getattr(config, name) for name in (*_BUILDING, "execution")}
    index = open_index(config.index, model, config.documents, **how)
    how = {name: getattr(config, name) for name in ("probes", "threads", "candidates")} | {"rerank": judge}
    if asked is None:
        return _prompt(index, config, how)
    found = index.search(asked, config.k, **how)
    if not config.output:
        return "\n\n".join(_shown(found, index, config, titled=len(found) > 1))
    rows = [(hits.query, hit.score, hit.text, hit.row) for hits in found for hit in hits]
    Rows(("query", "score", "text", "row"), rows).write(config.output)
    return f"{len(asked):,} queries, {len(rows):,} hits: {config.output}"


def _prompt(index: Index, config: SearchVerb, how: dict[str, Any]) -> str:
    """Ask for one phrase after the other, until an empty line or the end of input."""
    sys.stdout.write(f"{index}; an empty line ends\n> ")
    sys.stdout.flush()
    while query := sys.stdin.readline().strip():
        hits = index.search(query, config.k, **how)
        sys.stdout.write(f"{_shown([hits], index, config)[0]}\n\n> ")
        sys.stdout.flush()
    return ""


def _shown(found: Sequence[Hits], index: Index, config: SearchVerb, titled: bool = False) -> list[str]:
    """Lay the hits of each query out, with what says the query marked: in bold on a terminal, else in brackets."""
    marks = ("\033[1m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("[", "]")
    if config.mark and isinstance(model := index.model, StaticModel):
        found = [hits.with_texts(mark_best(model, hits.query or "", (hit.text for hit in hits), *marks)) for hits in found]
    return [f"{hits.query}:\n{hits}" if titled else str(hits) for hits in found]
