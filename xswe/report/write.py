"""``xswe.write_report``: the page of any result, or of a run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from xswe.alignment.phrases import FoundInFiles
from xswe.alignment.sentences import AlignedTexts
from xswe.bitext.tables import csv_rows
from xswe.errors import ConfigError, InputError
from xswe.evaluation.evaluate import Comparison
from xswe.io.files import check_output
from xswe.io.lines import read_lines
from xswe.io.sources import suffix_of
from xswe.mining.filter import Filtered
from xswe.mining.mined import MinedPairs
from xswe.model.ensemble import AnyModel, open_model
from xswe.phrases.find import Hit, Place
from xswe.phrases.terms import Term
from xswe.report.aligned import aligned_page
from xswe.report.comparison import comparison_page, read_comparison, sweep_page
from xswe.report.page import check_page, number, render, write_page
from xswe.report.pairs import pairs_page, view_of_file, view_of_filtered, view_of_mined
from xswe.report.space import export_space, open_space, space_page
from xswe.report.training import training_page
from xswe.text.languages import LANGUAGES

Kind = Literal["auto", "run", "mined", "hits", "compare", "space"]


def write_report(
    result: Any,
    output: str | Path,
    *,
    kind: Kind = "auto",
    model: AnyModel | None = None,
    languages: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write a report: one self-contained HTML file, to be read, marked, printed or sent by mail.

    Args:
        result: what ``mine``, ``filter``, ``align``, ``train``, ``compare`` or ``sweep`` returned; the terms or hits of
            :class:`xswe.report.write.TermView`; a run folder; a file of scored pairs; a ``.json`` that ``compare`` wrote.
            Ask ``mine``, ``filter`` and ``align`` for ``evidence=True``: else their pages show what stays, and no more.
        output: the file, ``.html``.
        kind: of a folder or file, what is in it: a training ``run``, ``mined`` pairs, ``hits`` of phrases or terms, what
            ``compare`` wrote, a bitext whose ``space`` in the model is looked at; ``auto`` by what it is.
        model: links the words of pairs; None for no links.
        languages: of source and target, or of the phrases and the passages, where the result does not know them.
        settings: of the run, by section; shown at the end.

    Returns:
        The file.

    Raises:
        ConfigError: there is no report of such a thing, or the name is none of a page.
        DependencyError: Jinja2 is not installed.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> english, german = ["The train is late.", "A cat sleeps."], ["Eine Katze schläft.", "Der Zug hat Verspätung."]
        >>> mined = xswe.mine(xswe.load("mini"), english, german, threshold=None, evidence=True)
        >>> page = xswe.write_report(mined, pathlib.Path(tempfile.mkdtemp()) / "report.html")
        >>> "Eine Katze schläft." in page.read_text(encoding="utf-8")
        True
    """
    check_page(output)
    if isinstance(result, (str, Path)):
        check_output(output, [result])
        page = _page_of_path(Path(result), kind, model, tuple(languages), dict(settings or {}))
    else:
        page = _page(result, model, dict(settings or {}))
    write_page(output, page)
    return Path(output)


def _page(result: Any, model: AnyModel | None, settings: dict[str, Any]) -> str:
    views: dict[type, Any] = {MinedPairs: view_of_mined, Filtered: view_of_filtered}
    for known, view_of in views.items():
        if isinstance(result, known):
            return pairs_page(view_of(result), model, settings)
    if isinstance(result, AlignedTexts):
        return aligned_page(result, settings)
    if isinstance(result, FoundInFiles):
        return terms_page(view_of_search(result), settings)
    if isinstance(result, TermView):
        return terms_page(result, settings)
    if isinstance(result, Comparison):
        return comparison_page(result, settings)
    from xswe.training.sweep import Sweep  # only now: they bring torch
    from xswe.training.train import TrainResult

    if isinstance(result, Sweep):
        return sweep_page(result, settings)

    if isinstance(result, TrainResult):
        if result.folder is None:
            raise ConfigError("the report of a training reads its run folder: train with output=")
        return training_page(result.folder)
    raise ConfigError(f"no report is made of {type(result).__name__}: give a result, a run folder or a file")


def _page_of_path(
    path: Path, kind: Kind, model: AnyModel | None, languages: tuple[str, ...], settings: dict[str, Any]
) -> str:
    """Return the page of a run's folder or files."""
    if kind == "auto":
        kind = "run" if path.is_dir() else "compare" if path.suffix == ".json" else "mined"
    if kind == "run":
        return training_page(path)
    if kind == "hits":
        return terms_page(view_of_hits(path, languages), settings)
    if kind == "space":
        return space_page(open_space(model, path, languages))
    if kind == "compare":
        return comparison_page(read_comparison(path), settings)
    if kind == "mined":
        return pairs_page(view_of_file(path, languages or (() if model is None else model.pair)), model, settings)
    raise ConfigError(f"kind={kind!r}: use one of {', '.join(get_args(Kind))}")


_AROUND, _OTHER = 90, 400  # characters of context on either side, and of the other side
_BUDGET = 1_200_000  # characters of texts on the page


@dataclass(frozen=True)
class Example:
    """A place of a candidate."""

    line: int  # of the passage, counted from 1
    left: str  # what stands before it
    hit: str  # the span
    right: str  # what stands after it
    other: str = ""  # the passage's other side, "" where it has none


@dataclass(frozen=True)
class Found:
    """A candidate with its examples; ``times`` and ``passages`` are None of single hits."""

    text: str
    score: float
    times: int | None
    passages: int | None
    variants: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class TermView:
    """The content of a page of phrases or terms."""

    # each phrase with its candidates, the best first; none where nothing was found
    found: tuple[tuple[str, tuple[Found, ...]], ...]
    languages: tuple[str, ...] = ()  # of the phrases and of the passages; empty if they are not known
    passages: int | None = None  # how many were read; None if that is not known
    summary: str = ""  # what the search said

    @classmethod
    def of(
        cls,
        queries: Sequence[str],
        found: Sequence[Sequence[Hit | Term]],
        languages: Sequence[str] = (),
        other: Mapping[int, str] | None = None,
    ) -> TermView:
        """Return the view of the result of ``find_phrases`` or ``find_terms``; ``other`` has passages' other sides."""
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
    left, right = place.around(_AROUND)
    return Example(place.passage + 1, left, place.text, right, other[:_OTHER])


def view_of_hits(path: str | Path, languages: Sequence[str] = ()) -> TermView:
    """Return the view of a file that ``phrases`` wrote: ``.tsv``, ``.csv`` or ``.jsonl``, of either mode."""
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
        raise InputError(path, "nothing in it", "give what phrases wrote as .tsv, .csv or .jsonl")
    return TermView(tuple((query, tuple(own)) for query, own in found.items()), tuple(languages))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a table with the number of their line."""
    if suffix_of(path) == ".jsonl":
        yield from ((line, json.loads(text)) for line, text in read_lines(path) if text and text.strip())
        return
    rows = csv_rows(path, "," if suffix_of(path) == ".csv" else "\t")
    names = next(rows, (1, []))[1]
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
        examples.append(Example(int(row[f"line_{n}"]), left, hit, right, other[:_OTHER] if n == 1 else ""))
    variants = tuple(filter(None, str(row["variants"] or "").split(" | ")))
    return Found(
        str(row["candidate"]), float(row["score"]), int(row["times"]), int(row["passages"]), variants, tuple(examples)
    )


def terms_page(view: TermView, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a view, or of its first phrases where it is too much for one."""
    shown = _within_budget(view.found)
    nothing = [query for query, found in view.found if not found]
    with_hits = [(query, found) for query, found in shown if found]
    total = sum(len(found) for _, found in view.found)
    counted = any(found.times is not None for _, own in view.found for found in own)
    overview = [("phrases", number(len(view.found)), "")]
    overview += [("with candidates", number(len(view.found) - len(nothing)), f"{len(nothing):,} without")]
    overview += [("candidates" if counted else "hits", number(total), "")]
    overview += [("passages read", number(view.passages), "")] if view.passages else []
    sections = [("found", "Candidates")] + ([("nothing", "Without a hit")] if nothing else [])
    return render(
        "terms.html",
        scripts=["terms.js"],
        data={"languages": list(view.languages)},
        title="Terms" if counted else "Phrases",
        about="Tick what is right, and take it along as a glossary, a termbase or a translation memory.",
        sections=[*sections, *([("run", "The search")] if settings or view.summary else [])],
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
    """Return the first phrases, as many as a page has room for."""
    out, size = [], 0
    for query, own in found:
        size += len(query) + sum(_size(one) for one in own)
        if size > _BUDGET:
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


def report_of(
    output: str | Path = "report.html",
    *,
    mined: str | Path | None = None,
    run: str | Path | None = None,
    hits: str | Path | None = None,
    compare: str | Path | None = None,
    space: str | Path | None = None,
    model: AnyModel | str | Path | None = None,
    languages: tuple[str, ...] = (),
    projector: str | Path | None = None,
) -> Path:
    """Write a page to look at of one thing that a run left on the disk, and return the page.

    Args:
        output: the page.
        mined: a file of scored pairs, as ``mine`` writes it: ``.tsv``, ``.csv``, ``.jsonl`` or ``.tmx``.
        run: a run folder of ``train``.
        hits: what a search of phrases wrote, ``.tsv``, ``.csv`` or ``.jsonl``, of either mode.
        compare: what ``compare`` wrote, ``.json``.
        space: a bitext, ``.tsv``, ``.tmx``, ``.jsonl``, …: where its sentences and words lie in the space of the model.
        model: links the words of pairs, or whose space is looked at; or its name.
        languages: of source and target, of the phrases and the passages, or of a space's columns.
        projector: with ``space``: a new folder for TensorBoard's projector and embedding-atlas.

    Raises:
        ConfigError: there is not one thing, or the name is none of a page.
    """
    known: dict[Kind, str | Path | None] = {"mined": mined, "run": run, "hits": hits, "compare": compare, "space": space}
    given = [kind for kind, what in known.items() if what]
    if len(given) != 1:
        raise ConfigError(f"report needs one of {', '.join(f'{name}=' for name in known)}: what is the page to be of?")
    what, opened = str(known[given[0]]), open_model(model, "report_of(output, model=model)") if model else None
    if projector:
        if given != ["space"]:
            raise ConfigError("projector= writes what space= looks at: give space=BITEXT")
        export_space(open_space(opened, what, tuple(languages)), projector)
    return write_report(what, output, kind=given[0], model=opened, languages=languages)
