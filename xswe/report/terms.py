"""The page of phrases or terms, with their candidates and examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xswe.alignment.phrases import FoundInFiles
from xswe.bitext.tables import csv_rows
from xswe.errors import InputError
from xswe.io.lines import read_lines
from xswe.io.sources import suffix_of
from xswe.phrases.find import Hit, Place
from xswe.phrases.terms import Term
from xswe.report.page import number, render
from xswe.text.languages import LANGUAGES

_CONTEXT_CHARACTERS, _OTHER_SIDE_CHARACTERS = 90, 400  # of context on either side of a hit, and of a translation
_PAGE_CHARACTERS = 1_200_000  # of texts and their markup, as estimated by _size


@dataclass(frozen=True)
class Example:
    """An occurrence of a candidate, in its context."""

    line: int  # of the passage, from 1
    left: str  # the context before it
    hit: str  # the span
    right: str  # the context after it
    other: str = ""  # the passage's other side, "" if it has none


@dataclass(frozen=True)
class Found:
    """A candidate with its examples; ``times`` and ``passages`` are None for single hits."""

    text: str
    score: float
    times: int | None
    passages: int | None
    variants: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class TermView:
    """The content of a page of phrases or terms."""

    # each phrase with its candidates, if any, the best first
    found: tuple[tuple[str, tuple[Found, ...]], ...]
    languages: tuple[str, ...] = ()  # of the phrases and of the passages; empty if unknown
    passages: int | None = None  # how many were read; None if unknown
    summary: str = ""  # the summary of the search

    @classmethod
    def of(
        cls,
        queries: Sequence[str],
        found: Sequence[Sequence[Hit | Term]],
        languages: Sequence[str] = (),
        other: Mapping[int, str] | None = None,
    ) -> TermView:
        """Return the view of a result of ``find_phrases`` or ``find_terms``; ``other``: the other sides of passages."""
        rows = zip(queries, found, strict=True)
        return cls(
            tuple((query, tuple(_found(hit, other or {}) for hit in hits)) for query, hits in rows), tuple(languages)
        )


def view_of_search(search: FoundInFiles) -> TermView:
    """Return the view of a search between files."""
    view = TermView.of(search.queries, search.found, search.files.config.languages, search.other)
    return replace(view, passages=search.passages, summary=str(search))


def _found(hit: Hit | Term, other: Mapping[int, str]) -> Found:
    examples = tuple(_example(place, other.get(place.passage, "")) for place in hit.places)
    if isinstance(hit, Term):
        return Found(hit.text, hit.score, hit.times, hit.passages, hit.variants, examples)
    return Found(hit.places[0].text, hit.score, None, None, (), examples)


def _example(place: Place, other: str = "") -> Example:
    left, right = place.around(_CONTEXT_CHARACTERS)
    return Example(place.passage + 1, left, place.text, right, other[:_OTHER_SIDE_CHARACTERS])


def view_of_hits(path: str | Path, languages: Sequence[str] = ()) -> TermView:
    """Return the view of a file that ``phrases`` wrote in either mode: ``.tsv``, ``.csv`` or ``.jsonl``."""
    found: dict[str, list[Found]] = {}
    for line, row in _rows(Path(path)):
        query = row.get("term") or row.get("phrase")
        if not query:
            raise InputError(path, "no column 'phrase' or 'term'", "give what phrases wrote as .tsv, .csv or .jsonl", line)
        own = found.setdefault(str(query), [])
        try:
            if made := _of_row(row):
                own.append(made)
        except (KeyError, TypeError, ValueError):
            raise InputError(path, "no hit of phrases", "give what phrases wrote as .tsv, .csv or .jsonl", line) from None
    if not found:
        raise InputError(path, "no rows in it", "give what phrases wrote as .tsv, .csv or .jsonl")
    return TermView(tuple((query, tuple(own)) for query, own in found.items()), tuple(languages))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a table with their line numbers."""
    if suffix_of(path) == ".jsonl":
        yield from ((line, json.loads(text)) for line, text in read_lines(path) if text and text.strip())
        return
    rows = csv_rows(path, "," if suffix_of(path) == ".csv" else "\t")
    _, names = next(rows)
    yield from ((line, dict(zip(names, row, strict=False))) for line, row in rows if row)


def _of_row(row: Mapping[str, Any]) -> Found | None:
    """Return the candidate of a row; None for a term without candidates."""
    other = str(row.get("other_side") or "")
    if "term" not in row:
        start, end, sentence = int(row["start"]), int(row["end"]), str(row["sentence"])
        place = Place(int(row["line"]) - 1, start, end, sentence)
        return Found(str(row["text"]), float(row["score"]), None, None, (), (_example(place, other),))
    if not row["candidate"]:
        return None
    examples = []
    for n in range(1, len(row)):
        if not row.get(f"example_{n}"):
            break
        left, _, rest = str(row[f"example_{n}"]).partition("[")
        hit, _, right = rest.partition("]")
        examples.append(Example(int(row[f"line_{n}"]), left, hit, right, other[:_OTHER_SIDE_CHARACTERS] if n == 1 else ""))
    variants = tuple(filter(None, str(row["variants"] or "").split(" | ")))
    return Found(
        str(row["candidate"]), float(row["score"]), int(row["times"]), int(row["passages"]), variants, tuple(examples)
    )


def search_page(search: FoundInFiles, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a search between files."""
    return terms_page(view_of_search(search), settings)


def terms_page(view: TermView, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a view, with only its first phrases if the view is too large."""
    shown = _within_budget(view.found)
    nothing = [query for query, found in view.found if not found]
    with_hits = [(query, found) for query, found in shown if found]
    total = sum(len(found) for _, found in view.found)
    counted = any(found.times is not None for _, own in view.found for found in own)
    overview = [("phrases", number(len(view.found)), "")]
    overview += [("with candidates", number(len(view.found) - len(nothing)), f"{len(nothing):,} without")]
    overview += [("candidates" if counted else "hits", number(total), "")]
    overview += [("passages read", number(view.passages), "")] if view.passages else []
    return render(
        "terms.html",
        scripts=["terms.js"],
        data={"languages": list(view.languages)},
        title="Terms" if counted else "Phrases",
        about="Tick the right candidates, and save them as a glossary, a termbase or a translation memory.",
        overview=overview,
        found=with_hits,
        left_out=len(view.found) - len(shown),
        nothing=nothing[:2000],
        nothing_more=max(0, len(nothing) - 2000),
        languages=view.languages,
        codes=sorted({*LANGUAGES, *view.languages}),
        counted=counted,
        summary=view.summary,
        settings=settings,
    )


def _within_budget(found: Iterable[tuple[str, tuple[Found, ...]]]) -> list[tuple[str, tuple[Found, ...]]]:
    """Return the first phrases, as many as fit on a page."""
    out, size = [], 0
    for query, own in found:
        size += len(query) + sum(_size(one) for one in own)
        if size > _PAGE_CHARACTERS:
            break
        out.append((query, own))
    return out


def _size(found: Found) -> int:
    texts = (text for e in found.examples for text in (e.left, e.hit, e.right, e.other))
    return (
        700
        + 2 * len(found.text)
        + sum(map(len, found.variants))
        + sum(260 + len(text.encode("utf-8", "replace")) for text in texts)
    )
