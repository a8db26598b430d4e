"""``python -m xswe search``: the sentences of a file, or of an index, that are nearest to a phrase or a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xswe
from xswe.commands.config import is_cut, open_judge, refuse_unused
from xswe.errors import ConfigError, ModelError
from xswe.io.files import check_output
from xswe.io.results import Rows, check_suffix
from xswe.io.settings import arguments
from xswe.io.sources import check_here
from xswe.model.static import StaticModel
from xswe.phrases.find import mark_best
from xswe.phrases.in_files import read_queries
from xswe.search.index import Index, open_index
from xswe.search.types import Hits
from xswe.search.verification import verify_index


def run(values: dict[str, Any]) -> str:
    """Build or open the index, ask it, and return or write what was found."""
    names = (values[name] for name in ("index", "documents", "output"))
    folder, documents, output = (None if name is None else str(name) for name in names)
    check_here(folder or "", "index")
    if values["verify"]:
        refuse_unused("search", values, {"with verify=true": set(values) - {"index", "verify"}})
        if folder is None:
            raise ConfigError("verify=true: give the index= that is to be read")
        return _verify(folder)
    built = bool(folder and Path(folder).exists())
    unused = {
        "without rerank=": () if values["rerank"] else ["candidates"],
        "without split=true": () if is_cut(documents, values["split"]) else ["language"],
        f"to {folder}, which is there": ["method", "storage"] if built else (),
        "without method=binary": () if built or values["method"] == "binary" else ["rescored"],
        "without documents=": () if documents else ["split"],
        "with output=": ["mark"] if output else (),
    }
    refuse_unused("search", values, unused)
    building = arguments(open_index, values, "search")
    asking = arguments(Index.search, {**values, "rerank": open_judge(values["rerank"], values["threads"])}, "search", "k")
    if output:
        check_output(output, [name for name in (documents, values["queries"]) if name])
        check_suffix(output)
    asked = None if values["queries"] is None and sys.stdin.isatty() else read_queries(values["queries"] or "-")
    index = open_index(folder, xswe.load(values["model"]) if values["model"] else None, documents, **building)
    if asked is None:
        return _prompt(index, values["mark"], asking)
    found = index.search(asked, **asking)
    if not output:
        return "\n\n".join(_shown(found, index, values["mark"], titled=len(found) > 1))
    rows = [(hits.query, hit.score, hit.text, hit.row) for hits in found for hit in hits]
    Rows(("query", "score", "text", "row"), rows).write(output)
    return f"{len(asked):,} queries, {len(rows):,} hits: {output}"


def _verify(folder: str) -> str:
    """Read an index, and say that it is what was written; where several files are not, print a line for each."""
    try:
        return verify_index(folder)
    except ModelError as error:
        if not (more := str(error).splitlines()[1:]):
            raise
        sys.stdout.write(f"{error}\n")
        raise ModelError(f"{folder}: {len(more) + 1} files are not what was written; see the lines above") from None


def _prompt(index: Index, mark: bool, asking: dict[str, Any]) -> str:
    """Ask for one phrase after the other, until an empty line or the end of input."""
    sys.stdout.write(f"{index}; an empty line ends\n> ")
    sys.stdout.flush()
    while query := sys.stdin.readline().strip():
        sys.stdout.write(f"{_shown([index.search(query, **asking)], index, mark)[0]}\n\n> ")
        sys.stdout.flush()
    return ""


def _shown(found: Sequence[Hits], index: Index, mark: bool, titled: bool = False) -> list[str]:
    """Lay the hits of each query out, with what says the query marked: in bold on a terminal, else in brackets."""
    marks = ("\033[1m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("[", "]")
    if mark and isinstance(model := index.model, StaticModel):
        found = [hits.with_texts(mark_best(model, hits.query or "", (hit.text for hit in hits), *marks)) for hits in found]
    return [f"{hits.query}:\n{hits}" if titled else str(hits) for hits in found]
