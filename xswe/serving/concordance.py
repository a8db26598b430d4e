"""Who says this, and how is it said in the other languages: questions to corpora.

A phrase is looked up in two steps. The units of the model that are nearest to it say which passages can hold it
(:mod:`xswe.serving.postings`); the best of these are searched span by span. Passages of all languages are asked at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from xswe.alignment.words import counterparts
from xswe.io.parallel import run
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.phrases.find import Place, find_phrases
from xswe.phrases.search import SpanConfig
from xswe.phrases.terms import Term, find_terms
from xswe.phrases.words import StaticWords
from xswe.serving.kept import open_corpora
from xswe.serving.messages import Found, Line, Marked, Phrases, PhrasesRequest, SearchRequest, Variant
from xswe.serving.passages import Corpus
from xswe.text.languages import has_cjk, has_kana

NEAR = 64  # units of the model that count as near to a phrase
LOOKED_AT = 1000  # passages of a language that are searched span by span
_NEAREST = 0.3  # least cosine of a near unit
_LONGEST = 8  # words of a span that is marked


class Words:
    """What a model knows of words, ready for many questions.

    Args:
        model: a static model.
    """

    def __init__(self, model: StaticModel) -> None:
        self._model, self.source = model, StaticWords(model)
        norms = np.linalg.norm(self.source.matrix, axis=1, keepdims=True)
        self._units = self.source.matrix / np.where(norms > 0, norms, np.inf)

    def near(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the units nearest to a phrase, and their cosines; none where it holds nothing known."""
        cosines = self._units @ self.source.queries([query])[0]
        nearest = np.argpartition(-cosines, min(NEAR, len(cosines) - 1))[:NEAR]
        nearest = nearest[cosines[nearest] > _NEAREST]
        return nearest, cosines[nearest]

    def terms(self, query: str, texts: Sequence[str], request: PhrasesRequest) -> list[Term]:
        """Return what says a phrase in some passages, spellings together; for a longer one, whole spans."""
        settings = SpanConfig(k=request.k, min_score=request.min_score, examples=request.lines, max_size=_LONGEST)
        if terms := find_terms(self.source, [query], texts, settings)[0]:
            return terms
        hits = find_phrases(self.source, [query], texts, settings, distinct=True)[0]
        return [Term(hit.places[0].text, hit.score, hit.times, hit.passages, (), hit.places) for hit in hits]

    def mark_counterparts(self, lines: Sequence[Line]) -> None:
        """Mark what in the translations of passages probably says what is marked in these, by links of their words."""
        both = [(line.passage, other) for line in lines for other in line.translations]
        sides = [(passage.text, other.text) for passage, other in both]
        found = counterparts(self._model, sides, [passage.spans for passage, _ in both])
        for (_, other), spans in zip(both, found, strict=True):
            other.spans.extend(span for span in spans if span is not None)


class Concordance:
    """Corpora that can be asked.

    Args:
        model: what encodes sentences.
        corpora: the files.
        threads: how many share the work.
        words: what is known of words.
        part: the model that cuts texts into units.
        keep: leave what is made of the files for the next start; see :func:`xswe.serving.kept.open_corpora`.

    Attributes:
        corpora: the names of the files.
        passages: the passages by language.
    """

    def __init__(
        self,
        model: AnyModel,
        corpora: Sequence[Corpus],
        threads: int,
        words: Words,
        part: StaticModel,
        keep: bool = False,
    ) -> None:
        self.corpora = [corpus.name for corpus in corpora]
        self._words, self._threads, self._encode = words, threads, model.encode
        opened = open_corpora(model, part, corpora, threads, keep)
        self.passages, self._postings, self._indexes = opened.passages, opened.postings, opened.indexes
        first = next(iter(self.passages.values())).texts[0][:40]  # what is compiled is loaded before anybody waits for it
        self.phrases(PhrasesRequest(first))
        self.search(SearchRequest(first))

    def __len__(self) -> int:
        return sum(map(len, self.passages.values()))

    def search(self, request: SearchRequest) -> Found:
        """Return the sentences nearest to a text, of each language."""
        started = time.perf_counter()
        hits, vector = [], self._encode([request.query])
        for code in self._wanted(request.languages):
            own, wanted = self.passages[code], self._numbers(request.corpora)
            most = request.k if wanted is None else 20 * request.k
            found = self._indexes[code].search(vector, most, threads=self._threads)[0]
            kept = [hit for hit in found if wanted is None or own.corpora[hit.row] in wanted][: request.k]
            hits += [
                Line(round(hit.score, 4), self._marked(code, hit.row), list(self._translations(code, hit.row)))
                for hit in kept
            ]
        return Found(request.query, hits, round(time.perf_counter() - started, 4))

    def phrases(self, request: PhrasesRequest) -> Phrases:
        """Return what says a phrase, in each language, with passages and their translations."""
        started = time.perf_counter()
        near = self._words.near(request.query)
        if not len(near[0]):
            return Phrases(request.query, [], round(time.perf_counter() - started, 4))
        tasks: list[Callable[[], list[Variant]]] = [
            partial(self._variants, code, request, *near) for code in self._wanted(request.languages)
        ]
        variants = [variant for found in run(tasks, self._threads) for variant in found]
        self._words.mark_counterparts([line for variant in variants for line in variant.lines])
        return Phrases(request.query, variants, round(time.perf_counter() - started, 4))

    def _variants(self, code: str, request: PhrasesRequest, units: np.ndarray, cosines: np.ndarray) -> list[Variant]:
        """Return what says a phrase in one language."""
        own = self.passages[code]
        weights = self._postings[code].weigh(units, cosines, len(own))
        if (wanted := self._numbers(request.corpora)) is not None:
            weights[~np.isin(own.corpora, list(wanted))] = 0
        rows = np.flatnonzero(weights)
        more = len(rows) > LOOKED_AT
        if more:
            rows = np.sort(rows[np.argpartition(-weights[rows], LOOKED_AT)[:LOOKED_AT]])
        terms = self._words.terms(request.query, list(own.texts.take(rows)), request)
        return [
            variant_of(term, code, more, [self._line(term, place, code, rows) for place in term.places]) for term in terms
        ]

    def _line(self, term: Term, place: Place, code: str, rows: np.ndarray) -> Line:
        row = int(rows[place.passage])
        passage = self._marked(code, row)
        passage.spans.append((place.start, place.end))
        return Line(round(term.score, 4), passage, list(self._translations(code, row)))

    def _marked(self, code: str, row: int) -> Marked:
        own = self.passages[code]
        return Marked(own.texts[row], code, self.corpora[own.corpora[row]], int(own.lines[row]), [])

    def _translations(self, code: str, row: int) -> Iterator[Marked]:
        """Yield the passages of other languages that are of the same unit."""
        unit = int(self.passages[code].units[row])
        for other, passages in self.passages.items():
            if other != code and (place := passages.row_of(unit)) is not None:
                yield self._marked(other, place)

    def _wanted(self, languages: Sequence[str]) -> list[str]:
        return [code for code in self.passages if not languages or code in languages]

    def _numbers(self, corpora: Sequence[str]) -> frozenset[int] | None:
        """Return the numbers of the corpora that are asked for; None for all."""
        return frozenset(map(self.corpora.index, set(corpora) & set(self.corpora))) if corpora else None


def variant_of(term: Term, code: str, more: bool, lines: list[Line]) -> Variant:
    """Return a term as it is sent."""
    return Variant(term.text, code, round(term.score, 4), term.times, more, list(term.variants), lines)


def phrases_in(words: Words, request: PhrasesRequest) -> Phrases:
    """Return what says a phrase in passages that came with the request."""
    started = time.perf_counter()
    variants = []
    for term in words.terms(request.query, request.passages, request):
        lines = []
        for place in term.places:
            passage = Marked(place.context, _script(place.context), "", place.passage + 1, [(place.start, place.end)])
            lines.append(Line(round(term.score, 4), passage))
        variants.append(variant_of(term, _script(term.text), False, lines))
    return Phrases(request.query, variants, round(time.perf_counter() - started, 4))


def _script(text: str) -> str:
    """Return the language that a text's script tells, "" where none does."""
    return "ja" if has_kana(text) else "zh" if has_cjk(text) else ""
