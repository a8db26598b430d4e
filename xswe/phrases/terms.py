"""Term candidates in running text, ranked by evidence, with spelling variants merged.

The span search gives each phrase a pool of distinct spans by cosine alone. Function words and particles are trimmed from
their ends, inflections and spelling variants are merged, and the candidates are ranked by cosine and by the number of
passages with them. In bitext the other side is evidence, too: unlike words that are merely similar, a translation stands
in the same pairs as the phrase.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from xswe.io.arguments import check_model, texts_of
from xswe.io.products import products
from xswe.io.results import Result
from xswe.io.settings import changed
from xswe.model.ensemble import AnyModel
from xswe.phrases.find import Hit, PassageFile, Place, find_phrases
from xswe.phrases.search import SpanConfig, StaticWords, WordSource, open_words
from xswe.text.borders import opens_sentence, splits_word, without_particles
from xswe.text.forms import Forms
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import has_cjk, has_kana
from xswe.text.stopwords import passage_stopwords

if TYPE_CHECKING:
    from xswe.settings import SpanSettings

PLACES = 8  # places of each span from which its form is chosen
POOL = 100  # minimum number of distinct spans considered for each phrase
RARE = 0.2  # penalty for a form in one passage; RARE / sqrt(n) for n passages
COPIED = 0.1  # penalty for the phrase itself, whose cosine says nothing
TOGETHER = 0.5  # bonus for a form in exactly the same pairs of a bitext as the phrase
_DECOYS, _DECOY_UNITS = 32, (2, 4)  # decoys of each size, and their minimum and maximum size
_ENDINGS = frozenset(("",)).union(*(language.endings for language in LANGUAGES.values()))
_VERBAL = _ENDINGS.union(*(language.verb_endings for language in LANGUAGES.values()))
_DECLENSION = frozenset(("", "m", "n", "r", "s"))  # after the e of a German adjective: kalter Krieg, im kalten Krieg
_STEM_LENGTH = 4  # minimum common prefix of two inflections; one letter less if their vectors are near
_NEAR_COSINE = 0.6  # forms with at least this cosine are near
_WORD = re.compile(r"\w+")
_BREAK = re.compile(r"[^\w\s・ー'’\-/.+#&]|\.(?=\s|$)|[\r\n]")


@dataclass(frozen=True)
class Term:
    """A candidate translation of a phrase, in its most frequent spelling.

    Attributes:
        text: the form.
        score: the cosine of the form and the phrase.
        times: number of occurrences, in all its forms.
        passages: number of passages, counted separately for each form.
        variants: its other forms, best first.
        places: examples.
        together: with bitext, the Dice coefficient of the pairs with the phrase and the pairs with the term.
    """

    text: str
    score: float
    times: int
    passages: int
    variants: tuple[str, ...]
    places: tuple[Place, ...]
    together: float = 0.0

    @property
    def evidence(self) -> float:
        """The score that candidates are ordered by: ``score - 0.2 / sqrt(passages) + 0.5 * together``."""
        return _weight(self.score, self.passages) + TOGETHER * self.together


@dataclass(frozen=True)
class FoundTerms(
    Result[tuple[Term, ...]],
    entries="found",
    row=("query", "score", "text", "times", "passages", "together", "variants"),
):
    """The candidates of several phrases: a sequence with the candidates of each phrase; in tables, a row a candidate.

    Attributes:
        queries: the phrases.
        found: the candidates of each phrase, best first.
    """

    queries: tuple[str, ...]
    found: tuple[tuple[Term, ...], ...]

    def __repr__(self) -> str:
        return f"FoundTerms({len(self.queries)} phrases, {sum(map(len, self.found))} candidates)"

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row a candidate."""
        for query, terms in zip(self.queries, self.found, strict=True):
            for one in terms:
                yield query, one.score, one.text, one.times, one.passages, one.together, ", ".join(one.variants)


def _weight(score: float, passages: int) -> float:
    return score - RARE / math.sqrt(passages)


def find_terms(
    model: AnyModel | WordSource,
    queries: Sequence[str],
    input: Iterable[str] | PassageFile,
    config: SpanConfig | None = None,
    *,
    bitext: Iterable[tuple[str, str]] | None = None,
    **settings: Unpack[SpanSettings],
) -> FoundTerms:
    """Find term candidates for each phrase in the passages, ranked by evidence.

    Candidates are ranked by ``score - 0.2 / sqrt(passages)``; with ``bitext``, plus half the Dice coefficient of the pairs
    with the phrase and the pairs with the candidate. The phrase itself loses 0.1; in Chinese and Japanese passages,
    candidates without Han and Kana come last.

    Args:
        model: a static embedding.
        queries: phrases.
        input: the passages, see :func:`xswe.phrases.find.find_phrases`.
        config: the settings; at most ``k`` candidates a phrase. If ``min_score`` is None, nothing is returned for a phrase
            whose best candidate has less evidence than decoys find in the same passages (the median of 32 phrases of random
            words of the model, as many as the phrase has units, two to four).
        bitext: pairs (other side, passage), with the other side in the language of the phrases, read once after the
            passages.
        settings: single fields of ``config``: ``k``, ``min_score``, ``max_size``, …

    Returns:
        A tuple of candidates for each phrase, best first.

    Raises:
        ConfigError: the model's vectors depend on their context, or the settings do not fit.
        ModelError: the model is an ensemble.

    Example:
        terms = find_terms(model, ["data type"], open("manual.ja", encoding="utf-8"))
        terms[0][0].text, terms[0][0].times
    """
    check_model(model, "find_terms(model, queries, input)")
    config, queries = changed(config or SpanConfig(), settings, "a search of phrases"), texts_of(queries, "queries")
    source = open_words(model)
    sizes = np.clip(source.cut(queries, 1)[1].bags.lengths, *_DECOY_UNITS).tolist() if len(queries) else []
    decoys = [] if config.min_score is not None else _decoys(source, sorted(set(sizes)))
    wide = replace(config, distinct=True, k=max(POOL, 10 * config.k), examples=max(PLACES, config.examples))
    phrases = [*queries, *(text for _, text in decoys)]
    spans = find_phrases(source, phrases, input, wide)
    found = [[one for hit in hits if (one := in_usual_form(hit))] for hits in spans]
    cores, rows = _forms(source, found)
    every = [_terms(*one, cores, rows, config) for one in zip(phrases, source.queries(phrases), found, strict=True)]
    reached: dict[int, list[float]] = {}
    for (size, _), terms in zip(decoys, every[len(queries) :], strict=True):
        reached.setdefault(size, []).append(_most_evidence(terms))
    floors = {size: float(np.median(evidence)) for size, evidence in reached.items()}
    every = every[: len(queries)]
    if bitext is not None:
        every = _rerank_by_cooccurrence(queries, every, bitext)
    found_terms = (
        tuple(terms[: config.k]) if _most_evidence(terms) >= floors.get(size, -1.0) else ()
        for terms, size in zip(every, sizes, strict=True)
    )
    return FoundTerms(tuple(queries), tuple(found_terms))


@dataclass(eq=False)  # so that phrases with the same words differ in sets
class _Counted:
    """A phrase with its candidates, and the number of pairs with them."""

    words: list[str]
    forms: list[list[str]]  # of each candidate, as sought in a passage
    pairs: int  # pairs with the phrase
    together: list[int]  # of these, the pairs with each candidate

    @classmethod
    def of(cls, query: str, terms: Sequence[Term]) -> _Counted:
        """Return a phrase with zero counts."""
        forms = [[_bare(form) for form in (term.text, *term.variants)] for term in terms]
        return cls(spelling(query).split(), forms, 0, [0] * len(terms))

    def count(self, passage: str) -> None:
        """Count a pair with the phrase, given the bare words of its passage."""
        self.pairs += 1
        for j, forms in enumerate(self.forms):
            self.together[j] += any(form in passage for form in forms)

    def weighed(self, terms: Sequence[Term]) -> list[Term]:
        """Return the candidates with the Dice coefficient of their pairs and the phrase's."""
        dice = (
            (2 * n / (self.pairs + max(n, t.passages)) if self.pairs else 0, t)
            for t, n in zip(terms, self.together, strict=True)
        )
        return [replace(term, together=one) for one, term in dice]


def _rerank_by_cooccurrence(
    queries: Sequence[str], found: Sequence[Sequence[Term]], bitext: Iterable[tuple[str, str]]
) -> list[list[Term]]:
    """Rerank the candidates of phrases by their co-occurrence in the pairs of a bitext."""
    counted = [_Counted.of(query, terms) for query, terms in zip(queries, found, strict=True)]
    starts: dict[str, list[_Counted]] = {}  # by the prefix of the first word, or all of it in Han and Kana
    for one in counted:
        if one.words:
            starts.setdefault(one.words[0] if has_cjk(one.words[0]) else one.words[0][:_STEM_LENGTH], []).append(one)
    fused = [start for start in starts if has_cjk(start)]
    for other, passage in bitext:
        line = spelling(other)
        tokens = _WORD.findall(line)
        here = {one for start in fused if start in line for one in starts[start]}
        for at, token in enumerate(tokens):
            begun = starts.get(token[:_STEM_LENGTH], ())
            here.update(one for one in begun if _same_words(one.words, tokens[at : at + len(one.words)]))
        bare_passage = _bare(passage) if here else ""
        for one in here:
            one.count(bare_passage)
    return [_ordered(query, one.weighed(terms)) for query, one, terms in zip(queries, counted, found, strict=True)]


def _bare(text: str) -> str:
    """Return the words of a text between spaces, for whole-word matching; with Han or Kana, without any spaces."""
    folded = " ".join(_WORD.findall(spelling(text)))
    return folded.replace(" ", "") if has_cjk(folded) else f" {folded} "


def in_usual_form(hit: Hit) -> Hit | None:
    """Return a hit with the places of its most frequent form first; None if it is mostly part of longer words.

    Equal spans may differ in what the look-up folds: case, width, traditional characters.
    """
    whole = [place for place in hit.places if not _cuts_a_word(place)]
    if 2 * len(whole) < len(hit.places):
        return None
    met = Forms()
    for place in whole:
        met.add("", place.text, not opens_sentence(place.context, place.start))
    usual = met.ranked([""])[""][0]
    return replace(hit, places=tuple(sorted(whole, key=lambda place: place.text != usual)))


def _cuts_a_word(place: Place) -> bool:
    return splits_word(place.context, place.start) or splits_word(place.context, place.end)


def _forms(source: WordSource, found: Sequence[Sequence[Hit]]) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the well-formed part of each span found, and the vectors of these forms."""
    flat = list({hit.places[0].text: hit for hits in found for hit in hits}.values())
    cores = dict(zip([hit.places[0].text for hit in flat], core(source, flat), strict=True))
    forms = [form for form in dict.fromkeys(cores.values()) if form]
    return cores, dict(zip(forms, source.queries(forms), strict=True))


def _most_evidence(terms: Sequence[Term]) -> float:
    return max((term.evidence for term in terms), default=0.0)


def _decoys(source: WordSource, sizes: Sequence[int]) -> list[tuple[int, str]]:
    """Return phrases of random words of the model, for each size; none if the source has no word list."""
    if not isinstance(source, StaticWords):
        return []
    words, draw = source.words(), np.random.default_rng(0)
    return [(n, " ".join(words[i] for i in draw.integers(0, len(words), n))) for n in sizes for _ in range(_DECOYS)]


def _terms(
    query: str,
    vector: np.ndarray,
    hits: Sequence[Hit],
    cores: dict[str, str],
    rows: dict[str, np.ndarray],
    config: SpanConfig,
) -> list[Term]:
    """Group the hits of a phrase by form, merge spelling variants, and sort the candidates."""
    forms: dict[str, list[Hit]] = {}
    met, kept = Forms(), [(hit, form) for hit in hits if (form := cores[hit.places[0].text])]
    for hit, form in kept:
        place = _narrowed(hit.places[0], form)
        met.add(_folded(form), form, not opens_sentence(place.context, place.start), hit.times)
    usual = met.ranked({_folded(form) for _, form in kept})
    for hit, form in kept:
        forms.setdefault(usual[_folded(form)][0], []).append(hit)
    if not forms:
        return []
    # All products at once: a single product costs less than its call.
    matrix = np.stack([rows[form] for form in forms])
    near = dict(zip(forms, products(matrix, matrix) >= _NEAR_COSINE, strict=True))
    scores = dict(zip(forms, products(matrix, vector[None])[:, 0].tolist(), strict=True))
    numbers = {form: number for number, form in enumerate(forms)}
    groups: list[list[str]] = []
    for form in sorted(forms, key=lambda form: -sum(hit.times for hit in forms[form])):
        same = (group for group in groups if same_term(group[0], form, bool(near[form][numbers[group[0]]])))
        own = next(same, None)
        if own is None:
            groups.append([form])
        else:
            own.append(form)
    out = []
    weights = {form: _weight(scores[form], sum(hit.passages for hit in hits)) for form, hits in forms.items()}
    for group in groups:
        group.sort(key=lambda form: -weights[form])
        every = [hit for form in group for hit in forms[form]]
        places = tuple(dict.fromkeys(_narrowed(place, group[0]) for hit in every for place in hit.places))
        score = scores[group[0]]
        term = Term(
            group[0],
            score,
            sum(hit.times for hit in every),
            sum(hit.passages for hit in every),
            tuple(group[1:]),
            places[: config.examples],
        )
        if score >= np.float32(config.min_score or 0.0):
            out.append(term)
    return _ordered(query, out)


def _ordered(query: str, terms: Iterable[Term]) -> list[Term]:
    def key(term: Term) -> tuple[bool, float]:
        foreign = has_cjk(term.places[0].context) and not has_cjk(term.text)
        return foreign, (COPIED if same_term(term.text, query) else 0.0) - term.evidence

    return sorted(terms, key=key)


def _narrowed(place: Place, form: str) -> Place:
    """Narrow a place to a form within its span; return the whole span if the form is not in it."""
    start = place.context.find(form, place.start, place.end)
    return place if start < 0 else Place(place.passage, start, start + len(form), place.context)


def same_term(a: str, b: str, near: bool = False) -> bool:
    """Return True if two texts are forms of one term, differing only in case, spelling or inflection.

    If their vectors are ``near``, short nouns (``Zug``, ``Züge``) and forms of a verb match, too.
    """
    return _same_words(spelling(a).split(), spelling(b).split(), near)


def _same_words(first: Sequence[str], second: Sequence[str], near: bool = False) -> bool:
    return len(first) == len(second) and all(
        _inflected(*both, near, place < len(first)) for place, both in enumerate(zip(first, second, strict=True), 1)
    )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=1 << 14)
def spelling(text: str) -> str:
    """Fold a text: width, case, umlauts, final long marks of Katakana, and whitespace in Chinese and Japanese."""
    folded = _folded(text)
    folded = re.sub(r"(?<=[ァ-ヺー]{2})ー(?![ァ-ヺー])", "", folded)
    if has_cjk(folded):
        return "".join(folded.split()).replace("・", "")
    return " ".join(folded.translate(_PLAIN).split())


_PLAIN = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss", "’": "'"})


def _inflected(a: str, b: str, near: bool, before_another: bool) -> bool:
    if a == b:
        return True
    shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if (ends := {a[shared:], b[shared:]}) == {"y", "ies"}:
        return shared >= _STEM_LENGTH
    if before_another and shared >= _STEM_LENGTH and a[shared - 1] == "e" and ends <= _DECLENSION:
        return True
    endings = _VERBAL if near and shared >= _STEM_LENGTH else _ENDINGS
    return shared >= _STEM_LENGTH - near and not has_cjk(a + b) and a[shared:] in endings and b[shared:] in endings


def core(source: WordSource, hits: Sequence[Hit]) -> list[str]:
    """Return the well-formed part of each hit's span; "" if there is none, or it contains punctuation."""
    known = source.model.languages if isinstance(source, StaticWords) else LANGUAGES
    out = []
    for hit, where in zip(hits, source.places([hit.places[0].text for hit in hits]), strict=True):
        place = hit.places[0]
        text, japanese = place.text, has_kana(place.context)
        rims = passage_stopwords(place.context, japanese, known)
        words = [text[i:j].casefold() in rims for i, j in where.tolist()]
        if all(words):
            out.append("")
            continue
        left = text[where[words.index(False), 0] : where[len(words) - 1 - words[::-1].index(False), 1]]
        if has_cjk(left):
            left = left[slice(*without_particles(left, 0, len(left), japanese))]
        left = left.strip()
        out.append("" if _BREAK.search(left) or not any(map(str.isalpha, left)) else left)
    return out
