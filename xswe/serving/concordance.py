"""The concordance: passages of corpora that contain a phrase, and their translations.

A phrase is looked up in two steps: the units of the model nearest to it select passages (:class:`Postings`), and the best
of these are searched span by span. All languages are searched in parallel. The index of the corpora is kept between starts
of the application.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xswe.alignment.words import counterparts
from xswe.corpus.cards import cache_folder
from xswe.errors import XsweError
from xswe.io.compiler import LEAN
from xswe.io.files import file_stamp, fingerprint, read_json, whole_folder, write_json
from xswe.io.parallel import run
from xswe.io.products import largest, row_products
from xswe.io.ragged import Bags, Texts, bounds_of
from xswe.io.settings import for_all
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.phrases.find import find_phrases
from xswe.phrases.search import SpanConfig, StaticWords
from xswe.phrases.terms import PLACES, Term, find_terms, in_usual_form
from xswe.search.building import index
from xswe.search.columns import ColumnType
from xswe.search.index import Index
from xswe.serving.messages import Found, Line, Marked, Matching, Phrases, PhrasesRequest, SearchRequest, Variant
from xswe.serving.occurrences import LONGEST, Occurrence, find_string, fold
from xswe.serving.passages import Corpus, Passages, read_corpora
from xswe.serving.refusals import TOO_LARGE, TOO_LONG, Refused
from xswe.text.scripts import has_cjk, has_kana
from xswe.version import __version__

NEAR = 64  # units of the model, at most, that count as near to a phrase
LOOKED_AT = 1000  # passages per language, at most, searched span by span
_MIN_UNIT_COSINE = 0.3  # of a near unit to the phrase
_MAX_SPAN_WORDS = 8
_APPROXIMATE = for_all(Matching, {"meaning": None, "exact": False, "fuzzy": True})  # None: no string is searched for


class Words:
    """The words of a model, prepared for many queries."""

    def __init__(self, model: StaticModel) -> None:
        self._model, self.source = model, StaticWords(model)
        norms = np.linalg.norm(self.source.matrix, axis=1)
        self._norms = np.where(norms > 0, norms, np.inf)

    def near(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the units nearest to a phrase, and their cosines; none for an unknown phrase."""
        cosines = row_products(self.source.matrix, self.source.queries([query])[0]) / self._norms
        nearest = largest(cosines, NEAR)
        nearest = nearest[cosines[nearest] > _MIN_UNIT_COSINE]
        return nearest, cosines[nearest]

    def terms(self, query: str, texts: Sequence[str], request: PhrasesRequest) -> list[Term]:
        """Return the forms of a phrase in passages, each with its spellings; for longer phrases, whole spans."""
        settings = SpanConfig(k=request.k, min_score=request.min_score, examples=request.lines, max_size=_MAX_SPAN_WORDS)
        if terms := find_terms(self.source, [query], texts, settings)[0]:
            return list(terms)
        settings = replace(settings, distinct=True, examples=max(PLACES, settings.examples))
        found = find_phrases(self.source, [query], texts, settings)[0]
        hits = [one for hit in found if (one := in_usual_form(hit))]
        return [
            Term(hit.places[0].text, hit.score, hit.times, hit.passages, (), hit.places[: request.lines]) for hit in hits
        ]

    def mark_counterparts(self, lines: Sequence[Line]) -> None:
        """Mark, in the translations of passages, the probable counterparts of the marked spans, found by word links."""
        both = [(line.passage, other) for line in lines for other in line.translations]
        sides = [(passage.text, other.text) for passage, other in both]
        found = counterparts(self._model, sides, [passage.spans for passage, _ in both])
        for (_, other), spans in zip(both, found, strict=True):
            other.spans.extend(span for span in spans if span is not None)


class _Room:
    """The bytes of passages that still fit into an answer."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, size: int) -> None:
        """Subtract bytes from what is left of the limit. Refused: less is left."""
        self._left -= size
        if self._left < 0:
            raise Refused(
                400, f"more than {self._most:,} bytes of passages: ask for fewer with a smaller k=", "k", TOO_LARGE
            )


class Concordance:
    """Searchable corpora.

    The attribute ``corpora`` has the names of the files; ``most`` limits an answer, in bytes of passages.
    """

    def __init__(
        self,
        model: AnyModel,
        corpora: Sequence[Corpus],
        threads: int,
        words: Words,
        part: StaticModel,
        keep: bool = False,
        most: int = 16 << 20,
    ) -> None:
        self._most = most
        self.corpora = [corpus.name for corpus in corpora]
        self._words, self._threads, self._encode = words, threads, model.encode
        self._languages = open_corpora(model, part, corpora, threads, keep)
        first = next(iter(self._languages.values())).passages.texts[0][:40]
        with suppress(Refused):  # loads the compiled code before the first request
            self.phrases(PhrasesRequest(first))
            self.phrases(PhrasesRequest(first, match="fuzzy"))
            self.search(SearchRequest(first))

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """The number of passages in each language."""
        return {code: len(own.passages) for code, own in self._languages.items()}

    def search(self, request: SearchRequest) -> Found:
        """Return the sentences of each language that are nearest to a text."""
        hits, vector, room = [], self._encode([request.query]), _Room(self._most)
        wanted = self._numbers(request.corpora)
        where = None if wanted is None else {_CORPUS: wanted}
        for code in self._wanted(request.languages):
            found = self._languages[code].sentences.search(vector, request.k, where=where, threads=self._threads)[0]
            hits += [self._line(code, hit.row, hit.score, room) for hit in found]
        return Found(request.query, hits)

    def phrases(self, request: PhrasesRequest) -> Phrases:
        """Return the forms of a phrase in each language, with passages and their translations."""
        room, wanted = _Room(self._most), self._wanted(request.languages)
        near = self._words.near(request.query)
        if _APPROXIMATE[request.match] is not None:
            variants = [variant for code in wanted for variant in self._occurring(code, request, room)]
        elif len(near[0]):
            tasks: list[Callable[[], list[Variant]]] = [
                partial(self._variants, code, request, *near, room) for code in wanted
            ]
            variants = [variant for found in run(tasks, self._threads) for variant in found]
        else:
            variants = []
        self._words.mark_counterparts([line for variant in variants for line in variant.lines])
        return Phrases(request.query, variants)

    def _variants(
        self, code: str, request: PhrasesRequest, units: np.ndarray, cosines: np.ndarray, room: _Room
    ) -> list[Variant]:
        """Return the forms of a phrase in one language."""
        own, postings, *_ = self._languages[code]
        weights = postings.weigh(units, cosines, len(own))
        if (chosen := self._rows(code, request.corpora)) is not None:
            weights[~chosen] = 0
        rows = np.flatnonzero(weights)
        more = len(rows) > LOOKED_AT
        if more:
            rows = rows[largest(weights[rows], LOOKED_AT)]
        variants = []
        for term in self._words.terms(request.query, list(own.texts.take(rows)), request):
            places = ((int(rows[place.passage]), (place.start, place.end)) for place in term.places)
            lines = [self._line(code, row, term.score, room, span) for row, span in places]
            variants.append(variant_of(term, code, more, lines))
        return variants

    def _occurring(self, code: str, request: PhrasesRequest, room: _Room) -> list[Variant]:
        """Return the forms of the query string itself in one language."""
        own, rows = self._languages[code], self._rows(code, request.corpora)

        def line(score: float, place: Occurrence) -> Line:
            return self._line(code, place.row, score, room, (place.start, place.end))

        return _occurring(own.passages.texts, own.folded, request, code, line, rows, self._threads)

    def _line(self, code: str, row: int, score: float, room: _Room, *spans: tuple[int, int]) -> Line:
        """Return a passage with spans marked, and the passages of the same unit in other languages."""
        unit = int(self._languages[code].passages.units[row])
        passage = self._marked(code, row, room, *spans)
        others = [
            self._marked(other, place, room)
            for other, own in self._languages.items()
            if other != code and (place := own.passages.row_of(unit)) is not None
        ]
        return Line(round(score, 4), passage, others)

    def _marked(self, code: str, row: int, room: _Room, *spans: tuple[int, int]) -> Marked:
        own = self._languages[code].passages
        room.take(int(own.texts.offsets[row + 1] - own.texts.offsets[row]))
        return Marked(own.texts[row], code, self.corpora[own.corpora[row]], int(own.lines[row]), list(spans))

    def _wanted(self, languages: Sequence[str]) -> list[str]:
        return [code for code in self._languages if not languages or code in languages]

    def _rows(self, code: str, corpora: Sequence[str]) -> np.ndarray | None:
        """Return which passages of a language belong to the requested corpora, bool (n,); None for all."""
        wanted = self._numbers(corpora)
        return None if wanted is None else np.isin(self._languages[code].passages.corpora, list(wanted))

    def _numbers(self, corpora: Sequence[str]) -> frozenset[int] | None:
        """Return the numbers of the requested corpora; None for all."""
        return frozenset(map(self.corpora.index, set(corpora) & set(self.corpora))) if corpora else None


def variant_of(term: Term, code: str, more: bool, lines: list[Line]) -> Variant:
    """Return a term as a message."""
    return Variant(term.text, code, round(term.score, 4), term.times, more, list(term.variants), lines)


def _occurring(
    texts: Texts,
    folded: Texts,
    request: PhrasesRequest,
    code: str,
    line: Callable[[float, Occurrence], Line],
    rows: np.ndarray | None = None,
    threads: int = 1,
) -> list[Variant]:
    """Return the forms of a string in texts, with a line for each occurrence that is shown."""
    approximate = _APPROXIMATE[request.match] is True
    if approximate and len(request.query) > LONGEST:
        raise Refused(400, f"match=fuzzy takes at most {LONGEST} characters: send fewer, or match=exact", "query", TOO_LONG)
    found = find_string(
        texts, folded, request.query, approximate=approximate, k=request.k, lines=request.lines, rows=rows, threads=threads
    )
    out = []
    for form in found.forms:
        score = 1 - form.errors / len(request.query)
        if score >= request.min_score:
            lines = [line(score, place) for place in form.places]
            first, *others = form.spellings
            out.append(Variant(first, code, round(score, 4), form.times, found.more, others, lines))
    return out


def phrases_in(words: Words, most: int, request: PhrasesRequest) -> Phrases:
    """Return the forms of a phrase in the passages of the request, with at most ``most`` bytes of passages."""
    room = _Room(most)

    def line(score: float, row: int, span: tuple[int, int]) -> Line:
        text = request.passages[row]
        room.take(len(text.encode()))
        return Line(round(score, 4), Marked(text, _script(text), "", row + 1, [span]))

    if _APPROXIMATE[request.match] is None:
        variants = []
        for term in words.terms(request.query, request.passages, request):
            lines = [line(term.score, place.passage, (place.start, place.end)) for place in term.places]
            variants.append(variant_of(term, _script(term.text), False, lines))
    else:
        texts, script = Texts.of(request.passages), _script(request.query)
        variants = _occurring(
            texts, fold(texts), request, script, lambda score, place: line(score, place.row, (place.start, place.end))
        )
    return Phrases(request.query, variants)


def _script(text: str) -> str:
    """Return the language that a text's script tells, or "" if several share it."""
    return "ja" if has_kana(text) else "zh" if has_cjk(text) else ""


logger = logging.getLogger(__name__)
_NUMBER_ARRAYS = ("units", "corpora", "lines")
_CORPUS = "corpus"  # the column of an index with the number of a passage's corpus
_FORMAT = 4  # of a kept index: 1 has no such column, 2 lists a passage once per distinct unit, 3 lacks folded texts


class Language(NamedTuple):
    """The data of a language: its passages, the postings of units, folded passages, and the index of sentences."""

    passages: Passages
    postings: Postings
    folded: Texts
    sentences: Index


def open_corpora(
    model: AnyModel, part: StaticModel, corpora: Sequence[Corpus], threads: int, keep: bool
) -> dict[str, Language]:
    """Read and index corpora by language, or open the index that an earlier start built from the same files and model.

    With ``keep``, the index is stored in the cache folder (``XSWE_CACHE``, else ``~/.cache/xswe``), one per list of file
    names, and rebuilt if a file has changed. ``model`` encodes sentences, ``part`` splits texts into units.
    InputError: a file is missing or damaged. ConfigError: there are no passages.
    """
    if not keep:
        return _made(model, part, corpora, threads, None)
    stamps = [file_stamp(corpus.path) for corpus in corpora]
    named = [[stamp[0], str(one.entry), one.name, one.languages] for stamp, one in zip(stamps, corpora, strict=True)]
    folder = cache_folder() / "served" / fingerprint(model.identity, part.identity, model.languages, named)
    state = {"version": __version__, "format": _FORMAT, "stamps": stamps}
    try:
        if (folder / "state.json").is_file() and read_json(folder / "state.json") == state:
            return _opened(folder, model)
    except (OSError, ValueError, KeyError, XsweError) as error:
        logger.warning("%s is damaged (%s) and will be rebuilt", folder, error)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as place:
            _made(model, part, corpora, threads, place)
            write_json(place / "state.json", state)
    except OSError as error:
        logger.warning("nothing is kept for the next start: %s", error)
        return _made(model, part, corpora, threads, None)
    return _opened(folder, model)


def _made(
    model: AnyModel, part: StaticModel, corpora: Sequence[Corpus], threads: int, folder: Path | None
) -> dict[str, Language]:
    """Read and index corpora, in a folder or in memory."""
    out = {}
    columns: dict[str, ColumnType] = {_CORPUS: "int"}
    for code, own in read_corpora(corpora, model.languages).items():
        place = None if folder is None else folder / f"{code}.index"
        numbers = ({_CORPUS: number} for number in own.corpora.tolist())
        found = index(model, own.texts, metadata=numbers, columns=columns, folder=place, storage="int8", threads=threads)
        out[code] = Language(own, Postings.of(part.units.bags(own.texts), len(part.units)), fold(own.texts), found)
        if folder is not None:
            own.texts.save(folder, f"{code}.texts")
            out[code].folded.save(folder, f"{code}.folded")
            arrays: dict[str, Any] = {name: getattr(own, name) for name in _NUMBER_ARRAYS} | out[code].postings._asdict()
            for name, array in arrays.items():
                np.save(folder / f"{code}.{name}.npy", array)
    if folder is not None:
        write_json(folder / "languages.json", list(out))
    return out


def _opened(folder: Path, model: AnyModel) -> dict[str, Language]:
    """Map a kept index into memory."""

    def arrays(code: str, names: Sequence[str]) -> Iterator[np.ndarray]:
        return (np.load(folder / f"{code}.{name}.npy", mmap_mode="r").view(np.ndarray) for name in names)

    return {
        code: Language(
            Passages(Texts.open(folder, f"{code}.texts"), *arrays(code, _NUMBER_ARRAYS)),
            Postings(*arrays(code, Postings._fields)),
            Texts.open(folder, f"{code}.folded"),
            Index(folder / f"{code}.index", model),
        )
        for code in read_json(folder / "languages.json")
    }


class Postings(NamedTuple):
    """For each unit, the passages that contain it, one entry per occurrence."""

    rows: np.ndarray  # int32 (entries,), ascending within a unit
    bounds: np.ndarray  # int64 (units + 1,), unit ``i`` has the entries ``bounds[i]`` to ``bounds[i + 1]``

    @classmethod
    def of(cls, bags: Bags, units: int) -> Postings:
        """Build the postings from the units of passages."""
        bounds = bounds_of(bags.counts(units))
        rows = np.empty(bounds[-1], np.int32)
        _fill(bags.ids, bags.offsets, bounds[:-1].copy(), rows)
        return cls(rows, bounds)

    def weigh(self, units: np.ndarray, weights: np.ndarray, passages: int) -> np.ndarray:
        """For each passage, sum the weights of the ``units``, int (m,), that it contains: float32 (passages,)."""
        out = np.zeros(passages, np.float32)
        rows, bounds = self.rows.view(), self.bounds.view()
        for view in (rows, bounds):
            view.flags.writeable = False  # as when mapped from a file, so that one compiled version serves both
        _add(rows, bounds, units.astype(np.int64), weights.astype(np.float32), out)
        return out


@njit(**LEAN)
def _fill(ids: np.ndarray, offsets: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> None:
    """Write the passages of each unit; ``ends`` has the next free entry of each unit, and is advanced."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            rows[ends[ids[place]]] = row
            ends[ids[place]] += 1


@njit(**LEAN)
def _add(rows: np.ndarray, bounds: np.ndarray, units: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Add the weight of each unit to the passages that contain it, once per passage."""
    for k in range(len(units)):
        last = -1
        for place in range(bounds[units[k]], bounds[units[k] + 1]):
            if rows[place] != last:
                last = rows[place]
                out[last] += weights[k]
