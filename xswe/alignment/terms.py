"""Terms of a bitext in both languages, found by word links, without a term list."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from xswe.alignment.phrase_table import noted, phrase_spans, with_whole_words
from xswe.alignment.words import LinkedPair
from xswe.bitext.termbases import Candidate, write_concepts
from xswe.errors import ConfigError
from xswe.io.results import Result, write_text
from xswe.io.sources import suffix_of
from xswe.phrases.terms import same_term, spelling
from xswe.text.borders import opens_sentence, without_particles
from xswe.text.forms import Forms
from xswe.text.languages import check_languages
from xswe.text.scripts import has_cjk, has_kana
from xswe.text.stopwords import attached_particles, word_list

Span = tuple[int, int]
_Pair = tuple[str, str]  # a term and its translation, as the keys they are counted by
_MAX_UNLINKED = 2  # words without a link that a term may have on either side
_MERGE_SHARE = 0.7  # share of a term's places with the same unlinked words beside it that makes them part of the term
_MIN_PLACES, _MIN_SHARE = 3, 0.5  # such places, and share of places, that make the wider term a candidate of its own
_PART_SHARE = 0.8  # a term is left out if a longer term that contains it is found this often, relatively
_BASE_SHARE = 0.03  # minimum frequency of the base form, relative to the most frequent form
_MAX_LINES = 5  # places listed
_STEM_LENGTH = 4  # letters by which inflections are looked up; see same_term
_MARKS = re.compile(r"[,;:.!?()\[\]{}\"“”„«»<>=|*_\\，。；：！？（）「」『』、【】]|[-–—/] | [-–—/]")
_HYPHENED = re.compile(r"(?:[A-Za-zÀ-ž0-9]+-)+$|(?<!\S)\.$")  # part of the next word; ``.NET``
_HYPHENS = re.compile(r"(?:-[A-Za-zÀ-ž0-9]+)+|-")
_WORD = re.compile(r"\w+(?:[-’'.]\w+)*")


class BilingualTerm(NamedTuple):
    """A term of a bitext and its translation.

    Attributes:
        source: the term, in its base form if that occurs.
        target: its translation, likewise.
        times: sentence pairs in which they are linked, in any form.
        score: association: the Dice coefficient of the two, times the square root of the mean cosine of their links.
        part_of_speech: ``noun``, ``verb`` or ``adjective``, if articles, capitals or endings show it.
        source_variants: its other forms, the most frequent first.
        target_variants: likewise.
        lines: numbers of the first pairs with them, from 1.
        source_example: a sentence with the term.
        target_example: its translation.
    """

    source: str
    target: str
    times: int
    score: float
    part_of_speech: str
    source_variants: tuple[str, ...]
    target_variants: tuple[str, ...]
    lines: tuple[int, ...]
    source_example: str
    target_example: str


@dataclass(frozen=True, eq=False)
class BilingualTerms(Result[BilingualTerm], row=BilingualTerm, entries="terms"):
    """Terms of a bitext in both languages, the most reliable first; a sequence of :class:`BilingualTerm`.

    Attributes:
        terms: the rows.
        languages: of source and target.
    """

    terms: tuple[BilingualTerm, ...]
    languages: tuple[str, str]

    def __repr__(self) -> str:
        return f"BilingualTerms({len(self):,} terms, {'-'.join(self.languages)})"

    def write(self, path: str | Path) -> None:
        """Write the terms atomically: to ``.tbx`` as TBX-Basic, otherwise like :meth:`Result.write`."""
        if suffix_of(path) != ".tbx":
            super().write(path)
            return
        source, target = self.languages
        concepts: dict[str, dict[str, list[Candidate]]] = {}
        for term in self:
            score = f"score {term.score:.4f}, {term.times} times, first in {', '.join(map(str, term.lines))}"
            own = Candidate(term.source, term.source_example, _with_forms("", term.source_variants), term.part_of_speech)
            other = Candidate(
                term.target, term.target_example, _with_forms(score, term.target_variants), term.part_of_speech
            )
            concept = concepts.setdefault(term.source, {source: [own], target: []})
            concept[target].append(other)
        write_text(path, write_concepts(concepts.values(), source))


def _with_forms(note: str, variants: Sequence[str]) -> str:
    """Return a note with the other forms of a term."""
    forms = f"forms: {', '.join(variants)}" if variants else ""
    return "; ".join(filter(None, (note, forms)))


@dataclass
class _Side:
    """The forms and parts of speech of one language's terms."""

    language: str
    forms: Forms = field(default_factory=Forms)
    totals: Counter[str] = field(default_factory=Counter)
    classes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def note(self, text: str, start: int, end: int) -> str:
        """Record a form and the part of speech shown by its context, and return the key to count it by."""
        folded = noted(self.forms, text, start, end, _folded)
        self.classes[folded][_class_at(text, start, end, self.language)] += 1
        return folded


class _Counts:
    """Counts of candidate terms and translations in the pairs of a bitext."""

    def __init__(self, languages: tuple[str, str], most: int) -> None:
        self.sides = _Side(languages[0]), _Side(languages[1])
        self.most = most
        self.times: Counter[_Pair] = Counter()
        self.wider: defaultdict[_Pair, Counter[_Pair]] = defaultdict(Counter)
        self.agreed: defaultdict[_Pair, float] = defaultdict(float)
        self.lines: defaultdict[_Pair, list[int]] = defaultdict(list)
        self.examples: dict[_Pair, tuple[str, str]] = {}

    def add(self, number: int, pair: LinkedPair) -> None:
        """Count the candidates of a pair."""
        found: dict[_Pair, float] = {}
        wider: defaultdict[_Pair, set[_Pair]] = defaultdict(set)
        for here, there, agreed in _linked_spans(_with_nearest_links(pair), self.most):
            if (texts := self._texts(pair, here, there)) is not None:
                found.setdefault(texts, agreed)
                for both in product(self._wider(pair, 0, here, there), self._wider(pair, 1, there, here)):
                    further = self._texts(pair, *both) if both != (here, there) else None
                    if further not in (None, texts):
                        wider[texts].add(further)
        every = {*found, *(further for some in wider.values() for further in some)}
        for side, own in enumerate(self.sides):
            own.totals.update({texts[side] for texts in every})
        self.times.update(found.keys())
        for texts, some in wider.items():
            self.wider[texts].update(some)
        for texts, agreed in found.items():
            self.agreed[texts] += agreed
        for texts in every:
            self.examples.setdefault(texts, (pair.source, pair.target))
            if len(lines := self.lines[texts]) < _MAX_LINES:
                lines.append(number)

    def _wider(self, pair: LinkedPair, side: int, own: Span, other: Span) -> Iterator[Span]:
        return _wider(pair, side, own, other, self.most, self.sides[side].language)

    def _texts(self, pair: LinkedPair, here: Span, there: Span) -> _Pair | None:
        """Return the keys of a pair of runs of words, and record their spellings; None if either is no term."""
        spans = []
        for text, words, (first, end), own in zip(
            pair[:2], (pair.source_words, pair.target_words), (here, there), self.sides, strict=True
        ):
            span = _core(text, words[first][0], words[end - 1][1], own.language)
            if not _well_formed(text[slice(*span)], own.language) or _is_verb_stem(text, span[1], own.language):
                return None
            if own.language == "ja" and _is_cut(text, *span):
                return None
            spans.append(span)
        if _is_numbered(pair.source[slice(*spans[0])]) or _is_numbered(pair.target[slice(*spans[1])]):
            return None
        return self.sides[0].note(pair.source, *spans[0]), self.sides[1].note(pair.target, *spans[1])

    def concepts(self) -> list[Counter[_Pair]]:
        """Return candidates with their counts, grouping inflections of each other on both sides.

        Unlinked words that nearly always stand beside a candidate are counted as part of it.
        """
        counts: Counter[_Pair] = Counter()
        for texts, times in self.times.items():
            often = [(sum(map(len, one)), one) for one, n in self.wider[texts].items() if n >= max(2, _MERGE_SHARE * times)]
            whole = max(often)[1] if often else texts
            counts[whole] += times
            if whole != texts:
                self.agreed[whole] += self.agreed[texts]
            elif longer := [(n, one) for one, n in self.wider[texts].items() if n >= max(_MIN_PLACES, _MIN_SHARE * times)]:
                n, one = max(longer)
                counts[one] += n
                self.agreed[one] += self.agreed[texts] * n / times
        groups: defaultdict[_Pair, list[Counter[_Pair]]] = defaultdict(list)
        for texts, times in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            alike = groups[_stems(texts[0]), _stems(texts[1])]
            near = (one for one in alike if _are_inflections(next(iter(one)), texts))
            if (own := next(near, None)) is None:
                alike.append(Counter({texts: times}))
            else:
                own[texts] += times
        return [one for some in groups.values() for one in some]


def bilingual_terms(
    links: Iterable[LinkedPair],
    languages: Sequence[str],
    *,
    most: int = 4,
    min_count: int = 3,
    min_score: float = 0.3,
) -> BilingualTerms:
    """Find the terms of a bitext and their translations, without a term list.

    Candidates are linked runs of words that are well-formed in both languages: they contain letters, neither begin nor end
    with a function word, and occur often enough. Unlinked words that nearly always stand beside a candidate are part of it.
    Part of a longer term is left out if it hardly ever occurs alone. Inflections count as one term, shown in its shortest
    form that is not rare.

    Args:
        links: sentence pairs with links.
        languages: of source and target.
        most: maximum words of a term (twice as many units with Chinese or Japanese).
        min_count: minimum number of sentence pairs in which both are linked.
        min_score: minimum association.

    Raises:
        ConfigError: a language is unknown, or a number is impossible.
    """
    codes = check_languages(languages)
    if len(codes) != 2 or most < 1 or min_count < 1:
        raise ConfigError(f"languages={list(languages)}, most={most}, min_count={min_count}: two languages, and at least 1")
    counts = _Counts((codes[0], codes[1]), most * (2 if {"zh", "ja"} & set(codes) else 1))
    for number, pair in enumerate(links, 1):
        counts.add(number, with_whole_words(pair, han=True))
    kept = [one for one in counts.concepts() if one.total() >= min_count]
    wanted = [{texts[side] for one in kept for texts in one} for side in (0, 1)]
    forms = [side.forms.ranked(texts) for side, texts in zip(counts.sides, wanted, strict=True)]
    terms = [_term(one, counts, forms) for one in kept]
    terms = [term for term in terms if term.score >= min_score and not (_is_clause(term) or _is_adverb(term, codes))]
    terms.sort(key=lambda term: (-term.score * math.log(1 + term.times), term.source, term.target))
    return BilingualTerms(tuple(_without_parts(terms)), (codes[0], codes[1]))


def _term(concept: Counter[_Pair], counts: _Counts, forms: Sequence[dict[Hashable, list[str]]]) -> BilingualTerm:
    """Return the term of a group of inflections."""
    times, total = concept.total(), 0
    shown: list[list[str]] = []
    for at, side in enumerate(counts.sides):
        own: Counter[str] = Counter()
        for texts, n in concept.items():
            own[texts[at]] += n
        shown.append([forms[at][text][0] for text in _base_first(own)])
        total += sum(side.totals[text] for text in own)
    agreed = sum(counts.agreed[texts] for texts in concept) / times
    source_example, target_example = counts.examples[next(iter(concept))]
    return BilingualTerm(
        source=shown[0][0],
        target=shown[1][0],
        times=times,
        score=round(min(1.0, 2 * times / total) * math.sqrt(min(1.0, max(0.0, agreed))), 6),
        part_of_speech=_part_of_speech(concept, counts.sides),
        source_variants=tuple(shown[0][1:]),
        target_variants=tuple(shown[1][1:]),
        lines=tuple(sorted({line for texts in concept for line in counts.lines[texts]})[:_MAX_LINES]),
        source_example=source_example,
        target_example=target_example,
    )


def _is_clause(term: BilingualTerm) -> bool:
    """Return True for a verb with its object."""
    return term.part_of_speech == "verb" and " " in term.source and term.source.islower()


def _is_adverb(term: BilingualTerm, languages: tuple[str, ...]) -> bool:
    """Return True for an English adverb whose German translation is not a noun."""
    if set(languages) != {"en", "de"}:
        return False
    english, german = term[:2] if languages[0] == "en" else term[1::-1]
    return (
        english.islower()
        and german.islower()
        and bool(_ADVERB.search(english))
        and english.split("-")[-1] not in _ADJECTIVES_IN_LY
    )


def _base_first(forms: Counter[str]) -> list[str]:
    """Return the base form, that is, the shortest form that is not rare, and then the others by frequency."""
    ranked = sorted(forms, key=lambda form: (-forms[form], form))
    usual = [form for form in ranked if forms[form] >= _BASE_SHARE * forms[ranked[0]]]
    base = min(usual, key=len)
    return [base, *(form for form in ranked if form != base)]


def _linked_spans(pair: LinkedPair, most: int) -> Iterator[tuple[Span, Span, float]]:
    """Yield pairs of runs of words that are linked only to each other, with the mean score of their links."""
    scores = dict(zip(pair.links, pair.scores, strict=True))
    for (a, b), (c, d) in phrase_spans(pair, most):
        own = [score for (i, j), score in scores.items() if a <= i < b and c <= j < d]
        yield (a, b), (c, d), sum(own) / len(own)


def _with_nearest_links(pair: LinkedPair) -> LinkedPair:
    """Keep only those links of each word that lead to the run of words around its best and nearest link.

    Otherwise a word that occurs twice in a sentence is linked to both of its translations.
    """
    kept = dict(zip(pair.links, pair.scores, strict=True))
    sizes = len(pair.source_words), len(pair.target_words)
    for side in (0, 1):
        own: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for link, score in kept.items():
            own[link[side]][link[1 - side]] = score
        near: dict[int, range] = {}
        for word, partners in own.items():
            places = {one: abs(word * sizes[1 - side] - one * sizes[side]) for one in partners}
            low = high = min(partners, key=lambda one: (-partners[one], places[one]))
            while low - 1 in partners:
                low -= 1
            while high + 1 in partners:
                high += 1
            near[word] = range(low, high + 1)
        kept = {link: score for link, score in kept.items() if link[1 - side] in near[link[side]]}
    return pair._replace(links=tuple(kept), scores=tuple(kept.values()))


def _wider(pair: LinkedPair, side: int, span: Span, other: Span, most: int, language: str) -> Iterator[Span]:
    """Yield a run of words, and wider runs with adjacent words that may be part of the term.

    Adjacent words must have no link near the translation.
    """
    text, words = (pair.target, pair.target_words) if side else (pair.source, pair.source_words)
    near = range(other[0] - _MAX_UNLINKED, other[1] + _MAX_UNLINKED)
    linked = {link[side] for link in pair.links if link[1 - side] in near}
    rims = word_list(language, "boundary_stopwords") - word_list(language, "joining")

    def may_join(place: int, other: int) -> bool:
        """Return True if the word at a place may be part of the same term as the adjacent word."""
        if not 0 <= place < len(words) or place in linked:
            return False
        between = text[words[min(place, other)][1] : words[max(place, other)][0]]
        word = text[slice(*words[place])]
        joined = between == "-" or not between.strip()
        return joined and any(map(str.isalnum, word)) and word.casefold() not in rims

    left, right = span[0], span[1]
    while span[0] - left < _MAX_UNLINKED and may_join(left - 1, left):
        left -= 1
    while right - span[1] < _MAX_UNLINKED and may_join(right, right - 1):
        right += 1
    for first in range(left, span[0] + 1):
        for end in range(span[1], right + 1):
            if end - first <= most:
                yield first, end


def _are_inflections(pair: _Pair, other: _Pair) -> bool:
    return same_term(pair[0], other[0]) and same_term(pair[1], other[1])


def _folded(text: str) -> str:
    """Return the key to count a term by: case-folded, unless it is all in capitals."""
    text = unicodedata.normalize("NFKC", text)
    return text if text.isupper() else text.casefold()


def _stems(text: str) -> str:
    """Return the stems that all inflections of a term share; an acronym as it is."""
    if text.isupper():
        return text
    spelled = spelling(text)
    return spelled if has_cjk(spelled) else " ".join(word[:_STEM_LENGTH] for word in spelled.split())


def _core(text: str, start: int, end: int, language: str) -> Span:
    """Adjust a span to a possible term: whole words with their hyphenated parts; in Japanese, without particles."""
    if language == "ja":
        start, end = without_particles(text, start, end, True)
        if found := _AFTERWARDS.search(text[start:end]):
            end = start + found.start()
    if found := _HYPHENED.search(text, 0, start):
        start = found.start()
    if found := _HYPHENS.match(text, end):
        end = found.end()
    return start, end


@lru_cache(maxsize=1 << 16)
def _well_formed(text: str, language: str) -> bool:
    """Return True if a text may be a term: a nominal or verbal group without marks, or function words at its ends."""
    if not any(map(str.isalpha, text)) or _MARKS.search(text):
        return False
    function_words = word_list(language, "boundary_stopwords")
    if has_cjk(text):
        japanese = language == "ja"
        before, after = attached_particles(japanese)
        alone = len(text) < 2 and not (japanese and not has_kana(text))
        short = alone or (has_kana(text) and all("ぁ" <= character <= "ゖ" for character in text))
        clause = japanese and _CLAUSE.search(text)
        return not (short or clause or before.match(text) or after.search(text) or text in function_words)
    words, rims = text.casefold().split(), function_words | word_list(language, "pronouns")
    if len(text) < 3 or text[-1] == "-" or words[0] in rims or words[-1] in rims:
        return False
    if words[0] in word_list(language, "leading" if len(words) > 1 else "general") and not _NEW_PLACE.match(text):
        return False
    ends_in_noun = text.split()[-1][0].isupper() or text.isupper()
    if language == "de" and len(words) > 1 and (_VERB_WITH_OBJECT.search(text) or not ends_in_noun):
        return False
    return rims.isdisjoint(set(words[1:-1]) - word_list(language, "joining"))


def _is_verb_stem(text: str, end: int, language: str) -> bool:
    """Return True if a Japanese span ends within the inflection of a verb: ``欠け`` of ``欠けている`` is not a word."""
    return language == "ja" and "ぁ" <= text[end - 1] <= "ゖ" and _INFLECTION.match(text, end) is not None


def _is_cut(text: str, start: int, end: int) -> bool:
    """Return True if a span is one character of a longer word, like ``号`` of ``暗号`` and ``許`` of ``許す``."""
    if end - start > 1:
        return False
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    joined = before.isalnum() and not "ぁ" <= before <= "ゖ"
    return joined or (after.isalnum() and not _PARTICLE.match(text, end))


def _is_numbered(text: str) -> bool:
    """Return True if a number stands beside lower-case words: ``step 4`` is a place, ``Windows 10`` a name."""
    words = text.split()
    return any(word.isdecimal() for word in words) and any(word.islower() for word in words)


_NEW_PLACE = re.compile(r"New [A-Z]")
_VERB_WITH_OBJECT = re.compile(r"\b[a-zäöüß]+t (?:d(?:as|en|em|er|ie) )?[A-ZÄÖÜ]")  # enthält Details, zeigt das Ergebnis
_CLAUSE = re.compile(
    "[^ぁ-ゖ](?:を|が|は|に|で|も|へ|と|や|から|まで|より)[^ぁ-ゖ]|[ぁ-ゖ]て[いしき]|[ぁ-ゖ]た$|[いっ]て$|または|および|など"
    "|[0-9][年月日]|[年月日][0-9]"
)
_AFTERWARDS = re.compile("(?<=[^ぁ-ゖ]{2})(?:後|以降|以後|以前|当時|頃)$")
_PARTICLE = re.compile("を|が|は|の|と|も|へ|や|から|より|まで")
_INFLECTION = re.compile("[たてるずれ]|ま[すせし]|な[いか]|られ|よう")
_ARTICLES = frozenset(re.findall(r"\w+", "a an the this these each every no any your its their our his her my some"))
_BEFORE_VERBS = frozenset(
    re.findall(r"\w+", "to can cannot must will would should could may might you we they i not who please")
)
_NO_VERBS = frozenset(
    re.findall(r"\w+", "neben gegen wegen oben unten innen außen hinten eben selten gestern sofern insofern draußen mitten")
)
_ADVERB = re.compile(r"(?<!app)(?<!supp)(?<!rep)(?<!comp)(?<!\bre)(?<!multip)(?<!imp)(?<!\bf)ly$")

_ADJECTIVES_IN_LY = frozenset(
    re.findall(r"\w+", "only daily weekly biweekly monthly yearly hourly early friendly likely costly timely deadly")
)


def _class_at(text: str, start: int, end: int, language: str) -> str:
    """Return the part of speech shown by the neighbouring words, capitals or ending of a term; "" if none shows it."""
    form = text[start:end]
    if language == "ja":
        last = form[-1]
        if last == "い":
            return "adjective"
        return "verb" if last in "うくぐすつぬぶむる" else "noun" if "ァ" <= last <= "ー" else ""
    if language == "de":
        head = form.split()[-1]
        if head[0].isupper():
            return "" if opens_sentence(text, start) else "noun"
        after = _WORD.match(text, end + 1)
        verbal = head.endswith(("en", "eln", "ern")) and head not in _NO_VERBS
        return "verb" if verbal and not (after and after[0][0].isupper()) else ""
    before = _WORD.findall(text[max(0, start - 20) : start]) if language == "en" else []
    previous = before[-1].casefold() if before else ""
    if previous in _BEFORE_VERBS:
        return "" if form[0].isupper() or _ADVERB.search(form) else "verb"
    after = _WORD.match(text, end + 1)
    ends = after is None or after[0].casefold() in word_list(language, "boundary_stopwords")
    return "noun" if ends and previous in _ARTICLES else "adjective" if previous in ("very", "more", "most", "as") else ""


def _part_of_speech(concept: Iterable[_Pair], sides: tuple[_Side, _Side]) -> str:
    """Return the most frequent part of speech of a term, or else of its translation; German is tried first."""
    for side in sorted((0, 1), key=lambda side: sides[side].language != "de"):
        found: Counter[str] = Counter()
        for text in dict.fromkeys(texts[side] for texts in concept):  # in their order, which decides among equals
            found.update(sides[side].classes[text])
        del found[""]
        if found:
            return found.most_common(1)[0][0]
    return ""


def _without_parts(terms: Sequence[BilingualTerm]) -> Iterator[BilingualTerm]:
    """Leave out terms within a longer one found about as often, and compounds that mean more than the source."""
    longer: defaultdict[str, list[BilingualTerm]] = defaultdict(list)
    for term in terms:
        for word in _pieces(term.source):
            longer[word].append(term)
    for term in terms:
        others = chain.from_iterable(longer[word] for word in _pieces(term.source))
        if not any(_is_part(term, other) or _says_more(term, other) for other in others):
            yield term


def _is_part(term: BilingualTerm, other: BilingualTerm) -> bool:
    inside = term.source in other.source and term.target in other.target and term[:2] != other[:2]
    return inside and other.times >= _PART_SHARE * term.times


def _says_more(term: BilingualTerm, other: BilingualTerm) -> bool:
    """Return True if a term is translated by a compound, but usually by part of it: ``Krankenversicherung``."""
    whole, part = term.target.casefold(), other.target.casefold()
    nouns = term.target[0].isupper() and other.target[0].isupper()
    compound = nouns and " " not in whole and len(part) >= _STEM_LENGTH and len(whole) - len(part) >= _STEM_LENGTH
    holds = compound and (whole.endswith(part) or whole.startswith(part))
    return holds and other.times > term.times and term.source.casefold() == other.source.casefold()


def _pieces(text: str) -> set[str]:
    """Return the words of a term, or its character bigrams in Chinese and Japanese."""
    return {text[k : k + 2] for k in range(max(1, len(text) - 1))} if has_cjk(text) else set(text.split())
