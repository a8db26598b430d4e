"""Check of translations against a term list: missing, forbidden and inconsistent translations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from xswe.alignment.rows import REJECTED, SUFFIXES, read_rows
from xswe.alignment.terms import bilingual_terms
from xswe.alignment.words import LinkedPair
from xswe.bitext.termbases import read_tbx
from xswe.errors import ConfigError, InputError
from xswe.io.files import check_input
from xswe.io.results import Result
from xswe.io.sources import suffix_of
from xswe.phrases.terms import same_term, spelling
from xswe.text.borders import splits_word
from xswe.text.languages import check_languages
from xswe.text.scripts import has_cjk
from xswe.text.stopwords import word_list

_WORD = re.compile(r"\w+(?:[-’']\w+)*")
_MIN_PART = 5  # letters of a term to be found at either end of a longer word, as in a German compound
_STEM_LENGTH = 4  # letters by which a term's first word is looked up; see same_term
_VERBAL = re.compile("(?:する|[うくぐすつぬぶむるい])$")


class AgreedTerm(NamedTuple):
    """A row of a term list.

    Attributes:
        source: the term.
        target: a translation of it.
        allowed: False for a translation that must not be used.
    """

    source: str
    target: str
    allowed: bool = True


@dataclass(frozen=True)
class TermCheckConfig:
    """Settings of a term check.

    Attributes:
        consistency: also report terms with several agreed translations in use, at each place of a rarer one.
    """

    consistency: bool = True


class TermFinding(NamedTuple):
    """A place where a term is not rendered as agreed.

    Attributes:
        place: file and number of the pair, from 1, as in ``novel.tsv:12``.
        problem: ``missing``: no agreed translation is used; ``forbidden``: a forbidden one is; ``inconsistent``: an agreed
            one is, but another is usual.
        term: the term.
        agreed: its agreed translations, in the order of the list; if inconsistent, the usual one.
        found: the forbidden or rarer translation; if missing, the probable rendering by word links, empty without a link.
        source: the sentence.
        target: its translation.
    """

    place: str
    problem: str
    term: str
    agreed: tuple[str, ...]
    found: str
    source: str
    target: str


@dataclass(frozen=True, eq=False)
class TermCheck(Result[TermFinding], row=TermFinding, entries="findings"):
    """The findings of a term check, in the order of the pairs; a sequence of :class:`TermFinding`.

    Attributes:
        findings: the rows.
        places: number of term places checked.
        renderings: for each term in the text, the counts of its agreed translations.
    """

    findings: tuple[TermFinding, ...]
    places: int
    renderings: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        return f"TermCheck({self.summary()})"

    def summary(self) -> str:
        """Return the counts in one line."""
        counts = Counter(finding.problem for finding in self)
        several = sum(len(found) > 1 for found in self.renderings.values())
        parts = [f"{self.places:,} places of {len(self.renderings):,} terms"]
        parts += [f"{counts[problem]:,} {problem}" for problem in ("missing", "forbidden", "inconsistent")]
        return f"{', '.join(parts)}; {several:,} terms rendered in several ways"


def read_terms(input: str | Path, languages: Sequence[str] = ()) -> list[AgreedTerm]:
    """Read a term list.

    Args:
        input: ``.tbx`` (TBX of 2008 or 2019), or bitext with a term and its translation a row, as ``.tsv``; a row with the
            status ``wrong`` or ``rejected`` is a forbidden translation.
        languages: of source and target, for ``.tbx`` and ``.tmx``.

    Raises:
        ConfigError: the file has another suffix, or needs languages that are not given.
        InputError: the file is missing or damaged, or has no term.
    """
    path, suffix = Path(input), suffix_of(input)
    if suffix not in (*SUFFIXES, ".tbx"):
        raise ConfigError(f"{path}: terms are read from {', '.join(sorted((*SUFFIXES, '.tbx')))}")
    check_input(path)
    codes = tuple(check_languages(languages)) if languages else ()
    if suffix == ".tbx":
        if len(codes) != 2:
            raise ConfigError(
                f"{path}: the languages of source and target are needed: set languages, as in languages=[en,ja]"
            )
        terms = [AgreedTerm(*one) for one in read_tbx(path, codes[0], codes[1])]
    else:
        rows = read_rows(path, codes).rows
        terms = [AgreedTerm(*row.texts, row.status not in REJECTED) for row in rows if all(row.texts)]
    if not terms:
        raise InputError(path, "no term with a translation in it", "give a list with a term and its translation a row")
    return list(dict.fromkeys(terms))


def check_terms(
    links: Iterable[LinkedPair],
    terms: Iterable[AgreedTerm] | None,
    languages: Sequence[str],
    config: TermCheckConfig | None = None,
    *,
    name: str = "",
) -> TermCheck:
    """Check whether translations render terms as agreed.

    Terms and translations are found in any inflection. Terms within a longer term of the list are not checked, nor are
    pairs without a translation, such as gaps of an alignment.

    Args:
        links: sentence pairs with links, as from :func:`xswe.align_words`.
        terms: the list; None for the terms of these pairs, with the most reliable translation of each.
        languages: of source and target.
        config: settings.
        name: file name of the pairs, for the places.

    Raises:
        ConfigError: the languages are unknown.

    Example:
        >>> import xswe
        >>> links = xswe.align_words(xswe.load("mini"), ["The train is late."], ["Die Bahn ist spät."])
        >>> check_terms(links, [xswe.types.AgreedTerm("train", "Zug")], ["en", "de"])[0].found
        'Bahn'
    """
    config = config or TermCheckConfig()
    codes = check_languages(languages)
    if terms is None:
        links = tuple(links)
        surest = {row.source: row.target for row in reversed(bilingual_terms(links, codes))}
        terms = [AgreedTerm(*pair) for pair in surest.items()]
    agreed: defaultdict[str, list[AgreedTerm]] = defaultdict(list)
    for term in terms:
        agreed[term.source].append(term)
    finder = _Finder(agreed, codes[0])
    findings: list[tuple[int, TermFinding]] = []
    used: defaultdict[str, list[tuple[int, str, LinkedPair, tuple[int, int]]]] = defaultdict(list)
    places = 0
    for number, pair in enumerate(links, 1):
        for source, span in finder.find(pair.source) if pair.target.strip() else ():
            places += 1
            found = _finding(f"{name}:{number}".lstrip(":"), agreed[source], pair, span)
            if isinstance(found, str):
                used[source].append((number, found, pair, span))
            else:
                findings.append((number, found))
    renderings = {source: Counter(target for _, target, _, _ in some) for source, some in used.items()}
    if config.consistency:
        findings += _inconsistent(used, renderings, name)
    findings.sort(key=lambda one: one[0])
    return TermCheck(tuple(found for _, found in findings), places, renderings)


def _finding(place: str, agreed: Sequence[AgreedTerm], pair: LinkedPair, span: tuple[int, int]) -> TermFinding | str:
    """Return the agreed translation in a pair, or else the finding."""
    texts = tuple(term.target for term in agreed if term.allowed)
    translation = _Text(pair.target)
    forbidden = next((term.target for term in agreed if not term.allowed and translation.holds(term.target)), None)
    right = next((text for text in texts if translation.holds(text)), None)
    if right is not None and forbidden is None:
        return right
    if forbidden is None and not texts:
        return ""
    found = forbidden or _counterpart(pair, span)
    problem = "forbidden" if forbidden else "missing"
    return TermFinding(place, problem, agreed[0].source, texts, found, pair.source, pair.target)


def _counterpart(pair: LinkedPair, span: tuple[int, int]) -> str:
    place = pair.counterpart(*span)
    return pair.target[slice(*place)] if place else ""


def _inconsistent(
    used: Mapping[str, Sequence[tuple[int, str, LinkedPair, tuple[int, int]]]],
    renderings: Mapping[str, Counter[str]],
    name: str,
) -> Iterator[tuple[int, TermFinding]]:
    """Yield the places where a term is rendered in an unusual way."""
    for source, some in used.items():
        usual = renderings[source].most_common(1)[0][0]
        for number, target, pair, _ in some:
            if target != usual:
                place = f"{name}:{number}".lstrip(":")
                yield number, TermFinding(place, "inconsistent", source, (usual,), target, pair.source, pair.target)


class _Finder:
    """Finder of terms in running text of a language, longest first."""

    def __init__(self, terms: Iterable[str], language: str) -> None:
        self.general = word_list(language, "general")
        self.words: defaultdict[str, list[tuple[list[str], str]]] = defaultdict(list)
        self.fused: list[tuple[str, str]] = []
        for term in terms:
            if has_cjk(term):
                self.fused.append((_stem(term), term))
            elif words := _WORD.findall(term):
                self.words[spelling(words[0])[:_STEM_LENGTH]].append((words, term))

    def find(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """Return the terms in a text and their places, each once."""
        found: list[tuple[str, tuple[int, int]]] = []
        tokens = [match.span() for match in _WORD.finditer(text)]
        for at, (start, _) in enumerate(tokens):
            for words, term in self.words.get(spelling(text[slice(*tokens[at])])[:_STEM_LENGTH], ()):
                own = tokens[at : at + len(words)]
                said = " ".join(text[a:b] for a, b in own)
                other = said.casefold() in self.general and said.casefold() != term.casefold()  # "last" is not "lasted"
                if len(own) == len(words) and not other and same_term(said, " ".join(words)):
                    found.append((term, (start, own[-1][1])))
        for stem, term in self.fused:
            place = text.find(stem)
            if place >= 0 and not splits_word(text, place) and (stem != term or not splits_word(text, place + len(stem))):
                found.append((term, (place, place + len(stem))))
        found.sort(key=lambda one: one[1][0] - one[1][1])
        kept: list[tuple[str, tuple[int, int]]] = []
        for term, (start, end) in found:
            if all(end <= a or b <= start for _, (a, b) in kept) and term not in (other for other, _ in kept):
                kept.append((term, (start, end)))
        return sorted(kept, key=lambda one: one[1])


def _stem(term: str) -> str:
    """Return the common prefix of all inflections of a Japanese term; a Chinese term is returned as it is."""
    stem = _VERBAL.sub("", term)
    return stem if re.search("[^ぁ-ゖ]", stem) else term


class _Text:
    """A translation to search for terms."""

    def __init__(self, text: str) -> None:
        self.bare = spelling(text)
        self.words = _WORD.findall(text)

    def holds(self, term: str) -> bool:
        """Return True if the text has a term, in any inflection or within a compound."""
        if has_cjk(term):
            return spelling(_stem(term)) in self.bare
        wanted = _WORD.findall(term)
        windows = (self.words[i : i + len(wanted)] for i in range(len(self.words) - len(wanted) + 1))
        if any(same_term(" ".join(window), " ".join(wanted), near=True) for window in windows):
            return True
        bare = spelling(term)
        spelled = list(map(spelling, self.words))
        compounds = chain(spelled, *(word.split("-") for word in spelled))
        return (
            len(wanted) == 1 and len(bare) >= _MIN_PART and any(w.endswith(bare) or w.startswith(bare) for w in compounds)
        )
